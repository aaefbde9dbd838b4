"""Parts of a tensor: ranges of its axes, and results of a split."""

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
    legal_of,
    move,
    move_edges,
    plain_of,
)
from accelsim.ops.values import choice
from accelsim.spec.config import Config

op = relax.op
LAST = 2**63 - 1  # the end of a slice that has none, as PyTorch exports it


@dataclass(frozen=True, slots=True)
class SliceSpec(MoveSpec):
    """One range an axis, from the first axis on: (begin, end, step); a split has its ends."""

    ranges: tuple[tuple[int, int, int], ...] = ((0, LAST, 1), (1, LAST, 1))


@dataclass(frozen=True, slots=True)
class SplitSpec(MoveSpec):
    """Result number `taken` of a split of `axis` at `ends`."""

    axis: int = 1
    ends: tuple[int, ...] = sized((3,), 1)
    taken: int = 0


def _slice_fields(rng: np.random.Generator, spec: SliceSpec, lanes: int) -> dict[str, Any]:
    ranges = []
    for size in spec.shape:
        begin = int(rng.integers(-size, size))
        end = choice(rng, (LAST, size, -1 if begin % size < size - 1 else LAST))
        ranges.append((begin, end, int(rng.integers(1, 4))))
    return {"ranges": tuple(ranges)}


def _slice_more(plain: SliceSpec, config: Config) -> tuple[SliceSpec, ...]:
    whole, lanes = (0, LAST, 1), config.lanes
    return (
        replace(plain, name="even_rows", ranges=(whole, whole, (0, LAST, 2))),
        replace(plain, name="odd_columns", ranges=(whole, whole, whole, (1, LAST, 2))),
        replace(plain, name="from_the_end", ranges=(whole, whole, (-3, -1, 1), (-2, LAST, 1))),
        replace(
            plain, name="every_third_channel", channels=3 * lanes + 1, ranges=(whole, (1, LAST, 3))
        ),
        replace(
            plain, name="second_block", channels=3 * lanes, ranges=(whole, (lanes, 2 * lanes, 1))
        ),
        replace(plain, name="one_image", batch=3, ranges=((1, 2, 1),)),
        replace(plain, name="token", size=(7,), ranges=(whole, whole, (0, 1, 1))),
        replace(plain, name="features", size=(), ranges=(whole, (2, 6, 1))),
    )


def _slice_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    """One operator an axis, as PyTorch exports them."""
    spec: Any = case.spec
    value = sources[0]
    for axis, (begin, end, step) in enumerate(spec.ranges):
        if (begin, end, step) != (0, LAST, 1):
            value = build.emit(op.strided_slice(value, [axis], [begin], [end], [step]))
    return value


def _slice_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return sources[0][tuple(slice(*one) for one in spec.ranges)]


def _slice_legal(spec: Any) -> bool:
    """Some element is left, and some range cuts, so that the graph has an operator."""
    cuts = [one for one in spec.ranges if tuple(one) != (0, LAST, 1)]
    return bool(cuts) and legal_of(_slice_torch)(spec)


def _split_fields(rng: np.random.Generator, spec: SplitSpec, lanes: int) -> dict[str, Any]:
    axis = choice(rng, tuple(k for k, size in enumerate(spec.shape) if size > 1) or (1,))
    size = spec.shape[axis]
    end = int(rng.integers(1, size)) if size > 1 else 1
    return {"axis": axis, "ends": (end,), "taken": int(rng.integers(2)) if size > 1 else 0}


def _split_more(plain: SplitSpec, config: Config) -> tuple[SplitSpec, ...]:
    lanes = config.lanes
    return (
        replace(plain, name="second", taken=1),
        replace(plain, name="third_of_four", channels=4 * lanes, ends=(5, 9, 20), taken=2),
        replace(plain, name="rows", axis=2, ends=(2,), taken=1),
        replace(plain, name="columns", axis=3, ends=(2,), taken=1),
        replace(plain, name="gate", size=(4,), axis=2, ends=(2,), taken=1),
        replace(plain, name="halves", channels=2 * lanes, ends=(lanes,), taken=1),
    )


def _split_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    parts = build.emit(op.split(sources[0], list(spec.ends), spec.axis))
    return build.emit(relax.TupleGetItem(parts, spec.taken))


def _split_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return torch.tensor_split(sources[0], spec.ends, spec.axis)[spec.taken]


def _split_legal(spec: Any) -> bool:
    size = spec.shape[spec.axis] if spec.axis < len(spec.shape) else 0
    inside = spec.ends and all(0 < end < size for end in spec.ends)
    return bool(inside) and spec.taken <= len(spec.ends)


OPERATORS = (
    move(
        "slice",
        SliceSpec,
        move_edges(
            plain_of(SliceSpec, ranges=((0, LAST, 1), (0, LAST, 1), (0, LAST, 2))), _slice_more
        ),
        draw_of(SliceSpec, (2, 3, 4), _slice_fields),
        (_slice_relax, _slice_torch),
        legal=_slice_legal,
    ),
    move(
        "split",
        SplitSpec,
        lambda config: tuple(
            one
            for one in move_edges(plain_of(SplitSpec), _split_more)(config)
            if one.name != "one_channel"
        ),
        draw_of(SplitSpec, (2, 3, 4), _split_fields),
        (_split_relax, _split_torch),
        legal=_split_legal,
    ),
)
