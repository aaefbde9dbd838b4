"""Averages over windows, and sums, means and maxima over height and width."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.ops.case import Case, Pair, Spec
from accelsim.ops.edges import common_edges, rounded, square_beyond
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.operators.pool import KERNELS, WindowSpec, legal_window, make_unscaled
from accelsim.ops.torch_kernels import exact_output
from accelsim.ops.values import (
    MATRIX_ERROR,
    activation,
    choice,
    drawn,
    output_zero,
    size_between,
)
from accelsim.spec.config import Config

op = relax.op
functional = torch.nn.functional
TYPES = "int8 or uint8 activations, int32 sums"
TIE = 2.0**-8  # output steps within which float32 may take the other side of a tie
SUMS = "sums that cannot leave int32"


@dataclass(frozen=True, slots=True)
class AverageSpec(WindowSpec):
    """Windows whose padding counts, or not; with `ceil` the last ones may hang over the edge."""

    counted: bool = True
    ceil: bool = False


@dataclass(frozen=True, slots=True)
class AdaptiveSpec(Spec):
    """Windows that cover a map in a given number of outputs, of different sizes if need be."""

    outputs: Pair = (2, 3)


@dataclass(frozen=True, slots=True)
class ReductionSpec(Spec):
    """A reduction over some of (n, c, h, w), kept as axes of one element."""

    kind: str = "mean"  # "mean", "sum" or "max"
    axes: tuple[int, ...] = (2, 3)


def average_edges(config: Config) -> tuple[AverageSpec, ...]:
    """Windows of 3×3 with padding, whose padding counts or not."""
    plain = AverageSpec("plain", channels=config.lanes, stride=(2, 2), size=(9, 8), padding=(1, 1))
    inside = replace(plain, name="inside", counted=False)
    bare = replace(plain, name="no_padding", padding=(0, 0), kernel=(3, 2), stride=(1, 2))
    few = "averages of narrow values"
    return (
        *common_edges(config, plain, 1),
        replace(plain, name="whole_map", kernel=(9, 8), padding=(0, 0), stride=(1, 1)),
        replace(plain, name="long_window", kernel=(1, 5), padding=(0, 2)),
        inside,
        bare,
        replace(inside, name="inside_two_images", batch=2, channels=config.lanes + 3),
        replace(inside, name="inside_zero_low", zeros=(0,)),
        replace(inside, name="inside_zero_high", zeros=(255,)),
        replace(inside, name="over_the_edge", ceil=True, size=(8, 10), kernel=(3, 2)),
        replace(inside, name="over_without_padding", ceil=True, padding=(0, 0), size=(8, 9)),
        *rounded((bare, inside), ("no_padding", "inside")),
        *rounded((replace(bare, name="ties", values="narrow", few=few),), ("ties",)),
        *rounded((replace(inside, name="edge", ceil=True, zeros=(0,)),), ("edge",)),
    )


def reduction_edges(config: Config) -> tuple[ReductionSpec, ...]:
    """Means, sums and maxima over both axes or one of them."""
    plain = ReductionSpec("plain", channels=config.lanes, size=(7, 6))
    edges = common_edges(config, plain, 2)
    kept = [spec for spec in edges if spec.name not in ("beyond_activations", "ends_only")]
    total = replace(plain, name="sum", kind="sum")
    beyond = square_beyond(config.act_rows // 4)
    return (
        *kept,
        replace(plain, name="over_rows", axes=(2,)),
        replace(plain, name="over_columns", axes=(3,)),
        total,
        replace(total, name="sum_over_columns", axes=(3,), channels=config.lanes + 1),
        replace(plain, name="maximum", kind="max"),
        replace(plain, name="maximum_over_rows", kind="max", axes=(2,)),
        replace(plain, name="beyond_activations", size=beyond, spread=300.0),
        replace(plain, name="narrowing", spread=6.0, few="a mean of few steps"),
        *rounded((plain, total), ("plain", "sum")),
        *rounded((replace(plain, name="columns", axes=(3,), zeros=(255, 250)),), ("columns",)),
    )


def adaptive_edges(config: Config) -> tuple[AdaptiveSpec, ...]:
    """Outputs that divide the map and others."""
    plain = AdaptiveSpec("plain", channels=config.lanes, size=(7, 10))
    alike = {"beyond_activations": "means of many elements lie close together"}
    return (
        *(replace(one, few=alike.get(one.name, one.few)) for one in common_edges(config, plain, 1)),
        replace(plain, name="even", size=(6, 9)),
        replace(plain, name="more_outputs", outputs=(9, 12)),
        replace(plain, name="one_output", outputs=(1, 1)),
        replace(plain, name="repeating", size=(12, 10), outputs=(8, 4), batch=2),
        *rounded((plain,), ("plain",)),
    )


def _draw_adaptive(rng: np.random.Generator, config: Config) -> AdaptiveSpec:
    return AdaptiveSpec(**drawn(rng, config.lanes, 1), outputs=size_between(rng, 1, 6))


def channel_edges(config: Config) -> tuple[ReductionSpec, ...]:
    """Means and sums over channels, alone or with height and width."""
    lanes = config.lanes
    plain = ReductionSpec("plain", channels=2 * lanes, size=(5, 6), axes=(1,))
    return (
        plain,
        replace(plain, name="sum", kind="sum"),
        replace(plain, name="all", axes=(1, 2, 3), batch=3, few="one number an image"),
        replace(plain, name="with_rows", axes=(1, 2), batch=3),
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="lanes_plus_one", channels=lanes + 1),
        replace(plain, name="many_channels", channels=(config.wgt_rows // 2 + 1) * lanes),
        replace(plain, name="three_axes", size=(9,), axes=(2,)),
        replace(plain, name="zero_points_low", zeros=(0, 0)),
        replace(plain, name="zero_points_high", zeros=(0, 255)),
        *rounded((plain, replace(plain, name="sum", kind="sum")), ("plain", "sum")),
    )


def _draw_channels(rng: np.random.Generator, config: Config) -> ReductionSpec:
    kind, axes = choice(rng, ("mean", "sum")), choice(rng, ((1,), (1, 2), (1, 3)))
    return ReductionSpec(**drawn(rng, config.lanes, 2), kind=kind, axes=axes)


def _draw_average(rng: np.random.Generator, config: Config) -> AverageSpec:
    common, kernel = drawn(rng, config.lanes, 1), choice(rng, KERNELS)
    common["size"] = tuple(max(s, k) for s, k in zip(common["size"], kernel, strict=True))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    counted = bool(rng.integers(2))
    return AverageSpec(
        **common,
        kernel=kernel,
        stride=size_between(rng, 1, 4),
        padding=(padding[0], padding[1]),
        counted=counted,
        ceil=not counted and bool(rng.integers(2)),
    )


def _draw_reduction(rng: np.random.Generator, config: Config) -> ReductionSpec:
    kind, axes = choice(rng, ("mean", "sum", "max")), choice(rng, ((2, 3), (2,), (3,)))
    return ReductionSpec(**drawn(rng, config.lanes, 2), kind=kind, axes=axes)


def _legal_average(spec: AverageSpec) -> bool:
    """What PyTorch has, and what is defined: padding that counts has no overhang."""
    return legal_window(spec) and not (spec.ceil and spec.counted)


def _make_reduction(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    if spec.kind == "max":
        return make_unscaled(rng, operator, spec)
    source = activation(rng, spec)
    reduced = source.reals.mean(spec.axes) if spec.kind == "mean" else source.reals.sum(spec.axes)
    deviation = max(float(reduced.std()), float(np.abs(reduced).mean()) / 2, 2.0**-20)
    scale = np.float32(deviation / spec.spread)
    return Case(operator, spec, (source,), scale, output_zero(rng, spec, 1))


def _relax_average(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(
        op.nn.avg_pool2d(
            sources[0],
            list(spec.kernel),
            list(spec.stride),
            [*spec.padding, *spec.padding],
            ceil_mode=spec.ceil,
            count_include_pad=spec.counted,
        )
    )


def _relax_adaptive(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(op.nn.adaptive_avg_pool2d(sources[0], list(spec.outputs)))


def _torch_adaptive(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return functional.adaptive_avg_pool2d(sources[0], spec.outputs)


def _adaptive_error(case: Case, sources: list[Any], result: Any) -> Any:
    terms = float(np.prod(case.spec.size))
    return _torch_adaptive(case, [sources[0].abs()]) * (terms * MATRIX_ERROR)


def _relax_reduction(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    run = {"mean": op.mean, "sum": op.sum, "max": op.max}[spec.kind]
    return build.emit(run(sources[0], list(spec.axes), keepdims=True))


def _torch_average(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    window = (spec.kernel, spec.stride, spec.padding, spec.ceil)
    return functional.avg_pool2d(sources[0], *window, count_include_pad=spec.counted)


def _torch_reduction(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    run: Any = {"mean": torch.mean, "sum": torch.sum, "max": torch.amax}[spec.kind]
    return run(sources[0], spec.axes, keepdim=True)


def _average_error(case: Case, sources: list[Any], result: Any) -> Any:
    spec: Any = case.spec
    terms = float(np.prod(spec.kernel))
    return _torch_average(case, [sources[0].abs()]) * (terms * MATRIX_ERROR)


def _reduction_error(case: Case, sources: list[Any], result: Any) -> Any:
    spec: Any = case.spec
    terms = float(np.prod([spec.shape[axis] for axis in spec.axes]))
    return _torch_reduction(case, [sources[0].abs()]).abs() * (terms * MATRIX_ERROR)


def _cause(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """Why a sum may differ from float32: a tie, or that TFLite rounds twice.

    Its first rounding is to a step of 2^shift output steps, shift being the multiplier's exponent.
    """
    spec: Any = case.spec
    count = np.prod([spec.shape[axis] for axis in spec.axes]) if spec.kind == "mean" else 1
    multiplier = float(case.inputs[0].scale) / float(case.scale) / float(count)
    twice = spec.rounding == "tflite"
    slack = TIE + (2.0 ** (frexp(multiplier)[1] - 1) if twice else 0.0)
    limits = np.iinfo(case.dtype)
    steps = np.clip(exact_output(case) / float(case.scale) + case.zero, limits.min, limits.max)
    apart = golden != expected
    near = np.abs(golden.astype(np.float64) - steps)[apart] <= 0.5 + slack
    if not near.all() or np.any(np.abs(expected.astype(np.float64) - steps)[apart] > 0.5 + TIE):
        return None
    return f"a tie, or TFLite's first rounding, within {slack} output steps of one"


OPERATORS = (
    Operator(
        "avg_pool2d",
        Facts(
            types=TYPES,
            limits=(SUMS, "padding that counts has no window beyond it (ceil_mode)"),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("PyTorch qnnpack", "LiteRT"),
            notes="qnnpack divides by the whole window even where padding does not count",
        ),
        average_edges,
        _draw_average,
        make_unscaled,
        relax=_relax_average,
        torch=_torch_average,
        error=_average_error,
        steps=1,
        legal=_legal_average,
        spec=AverageSpec,
    ),
    Operator(
        "adaptive_avg_pool2d",
        Facts(
            types=TYPES,
            limits=(SUMS,),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("PyTorch qnnpack",),
            notes="PyTorch's kernel of windows of different sizes takes ties otherwise",
        ),
        adaptive_edges,
        _draw_adaptive,
        make_unscaled,
        relax=_relax_adaptive,
        torch=_torch_adaptive,
        error=_adaptive_error,
        steps=1,
        spec=AdaptiveSpec,
    ),
    Operator(
        "reduce",
        Facts(
            types=TYPES,
            limits=("mean, sum and maximum over height, width or both", SUMS),
            instructions=("load", "store", "pool"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("LiteRT",),
        ),
        reduction_edges,
        _draw_reduction,
        _make_reduction,
        relax=_relax_reduction,
        torch=_torch_reduction,
        error=_reduction_error,
        steps=1,
        cause=_cause,
        spec=ReductionSpec,
    ),
    Operator(
        "reduce_channels",
        Facts(
            types=TYPES,
            limits=("mean and sum over channels, with maps up to 16×16 too", SUMS),
            instructions=("load", "store", "conv", "drain"),
            roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
            exact=("LiteRT",),
        ),
        channel_edges,
        _draw_channels,
        _make_reduction,
        relax=_relax_reduction,
        torch=_torch_reduction,
        error=_reduction_error,
        steps=1,
        cause=_cause,
        spec=ReductionSpec,
    ),
)
