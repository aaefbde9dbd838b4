"""Softmax over channels of what a mask keeps, which is added to the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.ops.case import Activation, Case, Spec
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.operators.softmax import FLOAT_ERROR, SCALE
from accelsim.ops.operators.softmax import bound as plain_bound
from accelsim.ops.rows import RowSpec, draw_rows, row_edges, rows_of
from accelsim.ops.torch_kernels import exact_output
from accelsim.ops.values import choice
from accelsim.spec.config import Config

STEP, KEPT = np.float32(2.0**70), 255
LONGEST = 40  # blocks of a row that the smallest configuration takes
ROUNDINGS = ("qnnpack", "fp32", "onnxruntime")
HIDDEN = 1 / 64  # of a step: elements 255 levels below the largest
LEAST_SCALE = 1 / 8  # with which such elements are few enough


@dataclass(frozen=True, slots=True)
class MaskedSpec(RowSpec):
    """`own` masks differ from row to row; `share` of the elements are kept."""

    own: bool = True
    share: float = 0.6


def _edges(config: Config) -> tuple[MaskedSpec, ...]:
    plain = MaskedSpec("plain", channels=config.lanes, input_scale=0.15)
    few = {
        "one_channel": "the only element of a row has all of it, kept or not",
        "one_pixel": "one row has few values",
        "vector": "one row has few shares, and small ones where it is long",
        "one_row": "nine rows of one block have few shares",
        "one_column": "nine rows of one block have few shares",
        "largest_scale": "with inputs this far apart one element has all of a row",
        "many_channels": "a row this long has small shares only",
        "narrow": "shares of nearly equal elements are alike",
    }
    edges = [
        replace(spec, few=few.get(spec.name, spec.few))
        for spec in row_edges(config, plain, 1, LONGEST)
        if spec.input_scale >= LEAST_SCALE
    ]
    more = (
        replace(plain, name="one_mask", own=False),
        replace(plain, name="sequence_one_mask", own=False, size=(9,), last=True, channels=21),
        replace(plain, name="all_hidden", share=0.0, few="all elements are alike"),
        replace(plain, name="all_kept", share=1.0),
    )
    specs = (*edges, *more)
    return (*specs, *rounded(specs, ("plain", "one_mask"), ("onnxruntime",)))


def _draw(rng: np.random.Generator, config: Config) -> MaskedSpec:
    fields = draw_rows(rng, config, 1) | {"rounding": choice(rng, ROUNDINGS)}
    scale, own = float(2.0 ** rng.uniform(-3, 0)), bool(rng.integers(2))
    return MaskedSpec(**fields, input_scale=scale, own=own, share=float(rng.uniform()))


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    assert isinstance(spec, MaskedSpec)
    scores, axis = rows_of(rng, spec), spec.axis % len(spec.shape)
    shape = tuple(size if spec.own or place == axis else 1 for place, size in enumerate(spec.shape))
    kept = np.where(rng.random(shape) < spec.share, KEPT, 0).astype(np.uint8)
    return Case(operator, spec, (scores, Activation(kept, STEP, KEPT)), SCALE, 0)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(relax.op.nn.softmax(build.emit(relax.op.add(*sources)), axis=spec.axis))


def _torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return torch.softmax(sources[0] + sources[1], spec.axis)


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    return torch.full_like(result, FLOAT_ERROR * (1 + case.spec.channels / 64))


def bound(channels: int) -> float:
    """Output steps by which the integers may differ from the real softmax, at most."""
    return plain_bound(channels) + HIDDEN


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Both are within their own distance of the real result."""
    steps = np.minimum(exact_output(case) * 256, 255)
    far = np.abs(golden.astype(np.float64) - steps).max() > bound(case.spec.channels)
    wrong = np.abs(expected.astype(np.float64) - steps).max() > plain_bound(0)
    text = "the integers round half a step and their sum, PyTorch's float kernel half a step"
    return None if far or wrong else text


OPERATORS = (
    Operator(
        "masked_softmax",
        Facts(
            types="two int8 or uint8 activations, the mask in steps of 2^64 and more below 0; "
            "a table of 256 exponentials of 32 bits",
            limits=(
                "over the axis of the channels: the second or the last",
                "the mask's axes of the scores' size or, but for the channels, 1",
                "input scales with which channels·256·exp(-255 scale) is at most 1/64",
                "rows that fit into the buffers three times",
            ),
            instructions=("load", "store", "conv", "drain", "pool", "add", "binary", "softmax"),
            roundings=ROUNDINGS,
            exact=(),
            notes="from the real softmax of what is kept at most 1/2 + channels/4096 + 1/1024 + "
            "1/64 steps of 1/256; equal shares where nothing is kept",
        ),
        _edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        error=_error,
        steps=1,
        cause=_cause,
        spec=MaskedSpec,
    ),
)
