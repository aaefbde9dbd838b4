"""Softmax over channels in TFLite's integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import rounded
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.rows import LONGEST, RowSpec, draw_rows, row_edges, rows_of
from accelsim.ops.torch_kernels import exact_output
from accelsim.spec.config import Config

SCALE = np.float32(1 / 256)
FLOAT_ERROR = 2.0**-21


def _edges(config: Config) -> tuple[RowSpec, ...]:
    plain = RowSpec("plain", channels=config.lanes, input_scale=0.04)
    few = {
        "one_channel": "the only element of a row has all of it",
        "one_pixel": "one row has few values",
        "smallest_scale": "with inputs this near all shares are alike",
        "largest_scale": "with inputs this far apart one element has all of a row",
        "many_channels": "a row this long has small shares only",
        "narrow": "shares of nearly equal elements are alike",
    }
    edges = row_edges(config, plain, 1, LONGEST)
    edges = tuple(replace(spec, few=few.get(spec.name, spec.few)) for spec in edges)
    return (*edges, *rounded(edges, ("plain", "two_blocks_and_one", "smallest_scale")))


def _draw(rng: np.random.Generator, config: Config) -> RowSpec:
    return RowSpec(**draw_rows(rng, config, 1), input_scale=float(2.0 ** rng.uniform(-8, 0)))


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    assert isinstance(spec, RowSpec)
    return Case(operator, spec, (rows_of(rng, spec),), SCALE, 0)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(relax.op.nn.softmax(sources[0], axis=spec.axis))


def _torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return torch.softmax(sources[0], spec.axis)


def _error(case: Case, sources: list[Any], result: Any) -> Any:
    return torch.full_like(result, FLOAT_ERROR * (1 + case.spec.channels / 64))


def bound(channels: int) -> float:
    """Output steps by which the integers may differ from the real softmax, at most.

    Half a step of rounding; n / 4096 since each of n exponentials is rounded to 2^-19 before they
    are summed; 1 / 1024 for all other roundings. Below 255, where the output ends.
    """
    return 0.5 + channels / 4096 + 1 / 1024


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Both are within their own distance of the real result."""
    steps = np.minimum(exact_output(case) * 256, 255)
    far = np.abs(golden.astype(np.float64) - steps).max() > bound(case.spec.channels)
    wrong = np.abs(expected.astype(np.float64) - steps).max() > bound(0)
    text = "TFLite's integers round half a step and their sum, PyTorch's float kernel half a step"
    return None if far or wrong else text


OPERATORS = (
    Operator(
        "softmax",
        Facts(
            types="int8 or uint8 activations, a table of 256 exponentials of 32 bits",
            limits=(
                "over the axis of the channels: the second or the last",
                "output in steps of 1/256 from the lowest value on",
                f"rows of at most {LONGEST} blocks of LANES channels",
            ),
            instructions=("load", "store", "softmax"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("TFLite",),
            notes="TFLite's integers in every rounding: from the real softmax at most "
            "1/2 + channels/4096 + 1/1024 steps of 1/256, so from PyTorch's kernels at most one",
        ),
        _edges,
        _draw,
        _make,
        relax=_relax,
        torch=_torch,
        error=_error,
        steps=1,
        cause=_cause,
        spec=RowSpec,
    ),
)
