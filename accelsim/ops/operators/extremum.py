"""Minima over height and width, and maxima in other steps or over windows of different sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Pair, sized
from accelsim.ops.edges import common_edges, rounded
from accelsim.ops.modules import Builder
from accelsim.ops.moves import MoveSpec, make_move, quantized_of
from accelsim.ops.operator import Draw, Edges, Facts, Operator
from accelsim.ops.operators.pool import KERNELS, legal_window
from accelsim.ops.values import choice, drawn, size_between
from accelsim.quantize.pool_converters import adaptive_places
from accelsim.spec.config import Config

op = relax.op
functional = torch.nn.functional


@dataclass(frozen=True, slots=True)
class ReducedSpec(MoveSpec):
    """A minimum over some of (n, c, h, w), kept as axes of one element."""

    axes: tuple[int, ...] = (2, 3)


@dataclass(frozen=True, slots=True)
class WindowedSpec(MoveSpec):
    """A window that moves over a map."""

    kernel: Pair = sized((3, 3), 2)
    stride: Pair = (2, 2)
    padding: Pair = (1, 1)
    dilation: Pair = (1, 1)


@dataclass(frozen=True, slots=True)
class PartedSpec(MoveSpec):
    """Windows that cover a map in a given number of outputs, of different sizes."""

    outputs: Pair = (4, 3)


def _rescaled(plain: Any) -> tuple[Any, ...]:
    """Other steps, and ReLUs; TFLite has the input's steps only."""
    scaled = replace(plain, name="rescaled", ratio=1.7)
    return (
        scaled,
        replace(plain, name="finer", ratio=0.6, zeros=(90, 70)),
        replace(plain, name="relu", relu=True, zeros=(90,)),
        replace(scaled, name="relu_rescaled", relu=True, zeros=(90, 70)),
        *rounded((scaled,), ("rescaled",), ("fp32", "onnxruntime")),
    )


def _reduced_edges(config: Config) -> tuple[ReducedSpec, ...]:
    plain = ReducedSpec("plain", channels=3 * config.lanes, size=(7, 6), batch=2)
    low = "smallest elements lie close together"
    shared = [replace(one, few=one.few or low, batch=2) for one in common_edges(config, plain, 2)]
    return (
        *shared,
        *(replace(one, few=low) for one in _rescaled(plain)),
        replace(plain, name="over_rows", axes=(2,)),
        replace(plain, name="over_columns", axes=(3,)),
        *rounded((replace(plain, axes=(3,)),), ("plain",)),
    )


def _windowed_edges(config: Config) -> tuple[WindowedSpec, ...]:
    plain = WindowedSpec("plain", channels=config.lanes, size=(9, 8), ratio=1.3)
    shared = common_edges(config, plain, 2)
    return (
        *shared,
        *_rescaled(replace(plain, stride=(1, 1))),
        replace(plain, name="dilation", dilation=(2, 3), size=(11, 13)),
        replace(plain, name="long_window", kernel=(1, 5), padding=(0, 2)),
        replace(plain, name="whole_map", kernel=(9, 8), padding=(0, 0), channels=40),
    )


def _parted_edges(config: Config) -> tuple[PartedSpec, ...]:
    plain = PartedSpec("plain", channels=config.lanes, size=(7, 10))
    kept = ("one_pixel", "one_row", "one_column", "beyond_activations")
    shared = [one for one in common_edges(config, plain, 2) if one.name not in kept]
    high = "largest elements of many lie close together"
    return (
        *shared,
        replace(plain, name="one_row", size=(1, 9), outputs=(1, 4), channels=2 * config.lanes),
        replace(plain, name="more_outputs", outputs=(9, 12)),
        replace(plain, name="repeating", size=(12, 10), outputs=(8, 4), batch=2),
        replace(plain, name="large_map", size=(41, 43), outputs=(4, 3), few=high),
        *(replace(one, few=high) for one in _rescaled(plain)),
        *rounded((plain,), ("plain",)),
    )


def _draw(kind: type[Any], fields: Any) -> Draw:
    def draw(rng: np.random.Generator, config: Config) -> Any:
        ratio = 0.0 if rng.integers(2) else float(2.0 ** rng.uniform(-2, 2))
        common = drawn(rng, config.lanes, 2) | {"relu": bool(rng.integers(2)), "ratio": ratio}
        common["rounding"] = choice(rng, ("qnnpack", "fp32", "onnxruntime"))
        return kind(**{**common, **fields(rng, common)})

    return draw


def _reduced_fields(rng: np.random.Generator, common: dict[str, Any]) -> dict[str, Any]:
    return {"axes": choice(rng, ((2, 3), (2,), (3,)))}


def _windowed_fields(rng: np.random.Generator, common: dict[str, Any]) -> dict[str, Any]:
    kernel = choice(rng, KERNELS)
    size = tuple(max(s, k) for s, k in zip(common["size"], kernel, strict=True))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    fields = {"kernel": kernel, "size": size, "padding": padding, "stride": size_between(rng, 1, 4)}
    return fields | {"ratio": common["ratio"] or 1.3}


def _parted_fields(rng: np.random.Generator, common: dict[str, Any]) -> dict[str, Any]:
    size = size_between(rng, 5, 14)
    return {"size": size, "outputs": (size[0] // 2 + 1, int(rng.integers(1, 9)))}


def _legal_parts(spec: PartedSpec) -> bool:
    """Windows of different sizes along an axis at least; PyTorch takes any."""
    pairs = zip(spec.size, spec.outputs, strict=True)
    return any(size % outputs for size, outputs in pairs)


def _relax_reduced(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(op.min(sources[0], list(spec.axes), keepdims=True))


def _relax_windowed(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    window = (list(spec.kernel), list(spec.stride), [*spec.padding, *spec.padding])
    return build.emit(op.nn.max_pool2d(sources[0], *window, list(spec.dilation)))


def _relax_parted(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    value, window = sources[0], []
    for axis, (size, outputs) in enumerate(zip(spec.size, spec.outputs, strict=True), 2):
        places = adaptive_places(size, outputs)
        window.append(places.shape[1])
        indices = relax.const(places.reshape(-1), "int64")
        value = build.emit(op.take(value, indices, axis, mode="fast"))
    return build.emit(op.nn.max_pool2d(value, window, window))


def _torch_reduced(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    whole = sources[0]
    if whole.is_quantized:  # PyTorch has no kernel for it
        chosen = whole.int_repr().amin(spec.axes, keepdim=True)
        scale, zero = whole.q_scale(), whole.q_zero_point()
        return torch._make_per_tensor_quantized_tensor(chosen, scale, zero)
    return whole.amin(spec.axes, keepdim=True)


def _torch_windowed(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return functional.max_pool2d(sources[0], spec.kernel, spec.stride, spec.padding, spec.dilation)


def _torch_parted(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    whole = sources[0]
    if whole.is_quantized:  # PyTorch has no kernel for it
        chosen = functional.adaptive_max_pool2d(whole.int_repr().float(), spec.outputs)
        scale, zero = whole.q_scale(), whole.q_zero_point()
        return torch._make_per_tensor_quantized_tensor(chosen.to(torch.uint8), scale, zero)
    return functional.adaptive_max_pool2d(whole, spec.outputs)


def _operator(
    name: str,
    spec: type[Any],
    edges: Edges,
    fields: Any,
    pair: tuple[Any, Any],
    limits: tuple[str, ...],
    legal: Any = lambda spec: True,
) -> Operator:
    relax_of, torch_of = pair
    windowed = name == "rescaled_max_pool2d"
    others = ("fp32", "onnxruntime") if windowed else ("fp32", "tflite", "onnxruntime")
    return Operator(
        name,
        Facts(
            types="int8 or uint8 activations",
            limits=limits,
            instructions=("load", "store", "pool", "lookup"),
            roundings=("qnnpack", *others),
            exact=("PyTorch",),
            notes="a table behind the extremum gives other steps; TFLite has those of the input",
        ),
        edges,
        _draw(spec, fields),
        make_move,
        relax=relax_of,
        torch=torch_of,
        quantized=quantized_of(torch_of),
        spec=spec,
        legal=legal,
    )


OPERATORS = (
    _operator(
        "reduce_min",
        ReducedSpec,
        _reduced_edges,
        _reduced_fields,
        (_relax_reduced, _torch_reduced),
        ("minimum over height, width or both",),
    ),
    _operator(
        "rescaled_max_pool2d",
        WindowedSpec,
        _windowed_edges,
        _windowed_fields,
        (_relax_windowed, _torch_windowed),
        ("every window covers an element of the input",),
        legal_window,
    ),
    _operator(
        "adaptive_max_pool2d",
        PartedSpec,
        _parted_edges,
        _parted_fields,
        (_relax_parted, _torch_parted),
        ("windows of different sizes along an axis at least; equal ones are a max_pool2d",),
        _legal_parts,
    ),
)
