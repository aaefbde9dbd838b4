"""Softmax over channels in TFLite's integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from accelsim.ops.values import choice
from accelsim.spec.config import Config

SCALE = np.float32(1 / 256)
ROUNDINGS = ("qnnpack", "fp32", "onnxruntime")
NARROWEST, WIDEST = 1 / 330, 1 / 64  # output scales of which the integers stay within two steps
FLOAT_ERROR = 2.0**-21


@dataclass(frozen=True, slots=True)
class ScaledSpec(RowSpec):
    """An output in levels of its own."""

    scale: float = 1 / 255
    zero: int = 0


def _edges(config: Config) -> tuple[RowSpec, ...]:
    return _edges_of(config, RowSpec("plain", channels=config.lanes, input_scale=0.04), LONGEST)


def _scaled_edges(config: Config) -> tuple[RowSpec, ...]:
    plain = ScaledSpec("plain", channels=config.lanes, input_scale=0.04)
    edges = _edges_of(config, plain, LONGEST // 2)
    others = {"coarse": (1 / 100, 0), "fine": (1 / 320, 3), "shifted": (1 / 256, 100)}
    return (
        *(spec for spec in edges if spec.rounding != "tflite"),
        *(replace(plain, name=name, scale=s, zero=z) for name, (s, z) in others.items()),
    )


def _edges_of(config: Config, plain: RowSpec, longest: int) -> tuple[RowSpec, ...]:
    few = {
        "one_channel": "the only element of a row has all of it",
        "one_pixel": "one row has few values",
        "smallest_scale": "with inputs this near all shares are alike",
        "largest_scale": "with inputs this far apart one element has all of a row",
        "many_channels": "a row this long has small shares only",
        "narrow": "shares of nearly equal elements are alike",
    }
    edges = row_edges(config, plain, 1, longest)
    edges = tuple(replace(spec, few=few.get(spec.name, spec.few)) for spec in edges)
    return (*edges, *rounded(edges, ("plain", "two_blocks_and_one", "smallest_scale")))


def _draw(rng: np.random.Generator, config: Config) -> RowSpec:
    return RowSpec(**draw_rows(rng, config, 1), input_scale=float(2.0 ** rng.uniform(-8, 0)))


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    assert isinstance(spec, RowSpec)
    return Case(operator, spec, (rows_of(rng, spec),), SCALE, 0)


def _draw_scaled(rng: np.random.Generator, config: Config) -> ScaledSpec:
    fields = draw_rows(rng, config, 1) | {"rounding": choice(rng, ROUNDINGS)}
    scale = float(np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST))))
    zero = int(rng.integers(0, 100))
    input_scale = float(2.0 ** rng.uniform(-8, 0))
    return ScaledSpec(**fields, input_scale=input_scale, scale=scale, zero=zero)


def _make_scaled(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    assert isinstance(spec, ScaledSpec)
    return Case(operator, spec, (rows_of(rng, spec),), np.float32(spec.scale), spec.zero)


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


def scaled_bound(channels: int, scale: float) -> float:
    """As `bound`, of an output that changes levels behind a result that ends at 255."""
    return 0.5 + 2.0**-12 + (1 + channels / 4096 + 1 / 1024) / (256 * scale)


def _scaled_cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Both are within their own distance of the real result."""
    steps = np.clip(exact_output(case) / float(case.scale) + case.zero, 0, 255)
    most = scaled_bound(case.spec.channels, float(case.scale))
    far = np.abs(golden.astype(np.float64) - steps).max() > most
    wrong = np.abs(expected.astype(np.float64) - steps).max() > bound(0)
    text = "the integers are rounded to 1/256 and then to a step, PyTorch's float kernel once"
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
    Operator(
        "rescaled_softmax",
        Facts(
            types="int8 or uint8 activations, a table of 256 exponentials of 32 bits",
            limits=(
                "over the axis of the channels: the second or the last",
                "within two steps of the real result: an output scale of about 1/380 and more",
                f"rows of at most {LONGEST // 2} blocks of LANES channels",
            ),
            instructions=("load", "store", "softmax", "lookup"),
            roundings=ROUNDINGS,
            exact=(),
            notes="a table behind TFLite's integers gives other steps than 1/256 from the lowest "
            "value on: from the real softmax at most 1/2 + (1 + channels/4096 + 1/1024) / "
            "(256 scale) steps",
        ),
        _scaled_edges,
        _draw_scaled,
        _make_scaled,
        relax=_relax,
        torch=_torch,
        error=_error,
        steps=2,
        cause=_scaled_cause,
        spec=ScaledSpec,
    ),
)
