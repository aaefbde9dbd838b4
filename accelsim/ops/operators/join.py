"""Tensors made larger: by a constant around them, or by each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, sized
from accelsim.ops.modules import Builder
from accelsim.ops.moves import (
    MoveSpec,
    draw_of,
    move,
    move_edges,
    moved_case,
    plain_of,
)
from accelsim.ops.values import activation, choice
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class PadSpec(MoveSpec):
    """Elements added before and after each axis from the last one on, as PyTorch counts them."""

    pads: tuple[int, ...] = sized((1, 2, 0, 1), 1)
    fill: float = 0.0  # in steps of the output


@dataclass(frozen=True, slots=True)
class ConcatSpec(MoveSpec):
    """`others` are the extents along `axis` of the inputs after the first one."""

    axis: int = 1
    others: tuple[int, ...] = sized((5,), 1)
    alike: bool = False  # all inputs have one scale and zero point


def _pad_fields(rng: np.random.Generator, spec: PadSpec, lanes: int) -> dict[str, Any]:
    axes = len(spec.size) + int(rng.integers(2))
    fill = choice(rng, (0.0, float(rng.integers(-100, 100))))
    return {"pads": tuple(int(one) for one in rng.integers(0, 4, 2 * axes)), "fill": fill}


def _pad_more(plain: PadSpec, config: Config) -> tuple[PadSpec, ...]:
    return (
        replace(plain, name="channels", pads=(0, 0, 0, 0, 2, 3)),
        replace(plain, name="filled", fill=7.0),
        replace(plain, name="filled_beyond_range", fill=-400.0),
        replace(plain, name="cropped", pads=(-1, 2, 0, -1)),
        replace(plain, name="sequence", size=(7,), pads=(2, 1)),
        replace(plain, name="vector", size=(), pads=(3, 4)),
    )


def _pad_width(case: Case) -> list[int]:
    spec: Any = case.spec
    pairs = [spec.pads[i : i + 2] for i in range(0, len(spec.pads), 2)]
    pairs += [(0, 0)] * (case.inputs[0].values.ndim - len(pairs))
    return [one for pair in pairs[::-1] for one in pair]


def _fill(case: Case) -> float:
    spec: Any = case.spec
    return float(np.float32(spec.fill) * case.scale)


def _pad_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    width, shape = _pad_width(case), case.inputs[0].values.shape
    begins = [max(0, -one) for one in width[::2]]
    ends = [size - max(0, -one) for size, one in zip(shape, width[1::2], strict=True)]
    value = sources[0]
    if any(begins) or ends != list(shape):
        axes = list(range(len(shape)))
        value = build.emit(op.strided_slice(value, axes, begins, ends, [1] * len(shape)))
    grown = [max(0, one) for one in width]
    return build.emit(op.nn.pad(value, grown, "constant", _fill(case)))


def _pad_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return torch.nn.functional.pad(sources[0], spec.pads, value=_fill(case))


def _make_concat(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    """Further inputs have levels of their own, or those of the first one."""
    sources = [activation(rng, spec)]
    for side, extent in enumerate(spec.others):
        shape = list(spec.shape)
        shape[spec.axis] = extent
        one = activation(rng, replace(spec, zeros=()), side + 1, tuple(shape))
        scale, zero = sources[0].scale, sources[0].zero
        sources.append(replace(one, scale=scale, zero=zero) if spec.alike else one)
    return moved_case(rng, operator, spec, tuple(sources))


def _concat_fields(rng: np.random.Generator, spec: ConcatSpec, lanes: int) -> dict[str, Any]:
    axis = choice(rng, tuple(range(len(spec.shape))))
    most = 2 * lanes if axis == 1 else 5
    others = tuple(int(one) for one in rng.integers(1, most, int(rng.integers(1, 4))))
    return {"axis": axis, "others": others, "alike": bool(rng.integers(2))}


def _concat_more(plain: ConcatSpec, config: Config) -> tuple[ConcatSpec, ...]:
    lanes = config.lanes
    return (
        replace(plain, name="alike", alike=True),
        replace(plain, name="whole_blocks", alike=True, others=(lanes, 2 * lanes)),
        replace(plain, name="whole_blocks_rescaled", ratio=1.3, others=(lanes, 2 * lanes)),
        replace(plain, name="many", alike=True, others=(1, 2, 3, 4, 5)),
        replace(plain, name="four_tails", channels=3, others=(3, 3, 3), ratio=1.1),
        replace(plain, name="rows", axis=2, others=(3,)),
        replace(plain, name="columns", axis=3, others=(3, 1), ratio=1.5),
        replace(plain, name="batch", axis=0, others=(2,)),
        replace(plain, name="vectors", size=(), others=(3, 9)),
        replace(plain, name="sequences", size=(5,), axis=2, others=(3,)),
    )


def _concat_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(op.concat(sources, spec.axis))


def _concat_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return torch.cat(sources, spec.axis)


OPERATORS = (
    move(
        "pad",
        PadSpec,
        move_edges(plain_of(PadSpec), _pad_more),
        draw_of(PadSpec, (2, 3, 4), _pad_fields),
        (_pad_relax, _pad_torch),
        limits=("one constant",),
    ),
    move(
        "concat",
        ConcatSpec,
        move_edges(plain_of(ConcatSpec, ratio=1.2), _concat_more),
        draw_of(ConcatSpec, (2, 3, 4), _concat_fields),
        (_concat_relax, _concat_torch),
        make=_make_concat,
    ),
)
