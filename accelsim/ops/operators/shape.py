"""The same elements in another shape or order of axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.edges import TWO_VALUES, common_edges
from accelsim.ops.modules import Builder
from accelsim.ops.moves import (
    MoveSpec,
    draw_of,
    move,
)
from accelsim.ops.values import choice
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class ShapeSpec(MoveSpec):
    """`target` is the shape, -1 in it what remains; a transpose has an order of axes."""

    target: tuple[int, ...] = (0, -1)


_ORDERS = {
    2: ((1, 0),),
    3: ((0, 2, 1), (1, 0, 2), (2, 0, 1)),
    4: ((0, 1, 3, 2), (0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (1, 0, 2, 3), (3, 2, 1, 0)),
}


def _order_fields(rng: np.random.Generator, spec: ShapeSpec, lanes: int) -> dict[str, Any]:
    return {"target": choice(rng, _ORDERS[len(spec.shape)]), "ratio": 0.0, "relu": False}


def _order_edges(config: Config) -> tuple[Spec, ...]:
    lanes = config.lanes
    plain = ShapeSpec("plain", channels=lanes, target=(0, 1, 3, 2))
    orders = [
        replace(plain, name="order_" + "".join(map(str, order)), channels=lanes + 3, target=order)
        for order in _ORDERS[4][1:]
    ]
    deep = replace(plain, channels=2 * lanes + 1, size=(3, lanes + 2))
    return (
        *common_edges(config, plain, 1),
        *orders,
        replace(deep, name="deep_channels_last", target=(0, 2, 3, 1)),
        replace(deep, name="deep_reversed", target=(3, 2, 1, 0)),
        replace(plain, name="matrix", size=(), batch=5, target=(1, 0)),
        replace(plain, name="rescaled", ratio=1.7),
        replace(plain, name="no_multiplier", ratio=1.2, input_scale=0.1),
        replace(plain, name="sequence", size=(lanes + 1,), target=(0, 2, 1)),
    )


def _order_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return sources[0].permute(spec.target)


def _order_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(op.permute_dims(sources[0], list(spec.target)))


def _shape_of(case: Case) -> tuple[int, ...]:
    """The target of a reshape: 0 keeps an axis, -1 is what remains."""
    spec: Any = case.spec
    shape = case.inputs[0].values.shape
    target = [shape[k] if one == 0 else one for k, one in enumerate(spec.target)]
    known = int(np.prod([one for one in target if one > 0]))
    return tuple(int(np.prod(shape)) // known if one < 0 else one for one in target)


def _shape_fields(rng: np.random.Generator, spec: ShapeSpec, lanes: int) -> dict[str, Any]:
    """Maps of few pixels: each is a piece, and TVM's code for many pieces is slow to compile."""
    size = tuple(int(one) for one in rng.integers(1, 4, len(spec.size)))
    channels = int(rng.integers(1, lanes + 3))
    return {"target": choice(rng, ((0, -1), (0, 0, -1))), "channels": channels, "size": size}


def _shape_edges(config: Config) -> tuple[Spec, ...]:
    lanes = config.lanes
    plain = ShapeSpec("plain", channels=lanes, size=(3, 4), target=(0, -1))
    return (
        plain,
        replace(plain, name="one_channel", channels=1),
        replace(plain, name="one_row", size=(1, 7)),
        replace(plain, name="lanes_plus_one", channels=lanes + 1),
        replace(plain, name="lanes_minus_one", channels=lanes - 1),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="rescaled", ratio=1.4),
        replace(plain, name="relu", relu=True, zeros=(90,)),
        replace(plain, name="sequence", target=(0, 0, -1)),
        replace(plain, name="map", channels=24, size=(5,), target=(0, 4, 6, -1)),
        replace(plain, name="channels_into_rows", channels=2 * lanes, target=(0, 2, -1, 4)),
        replace(
            plain,
            name="rows_into_map",
            batch=lanes + 1,
            channels=2 * lanes,
            size=(),
            target=(1, -1, 2, lanes),
        ),
        # A piece for each row would be more than the compiler cuts.
        replace(
            plain, name="many_rows_into_map", batch=300, channels=9, size=(), target=(1, -1, 3, 3)
        ),
        replace(plain, name="vector_into_map", channels=6 * lanes, size=(), target=(0, -1, 2, 3)),
        replace(plain, name="zero_points_low", zeros=(0, 0), ratio=0.8),
        replace(plain, name="zero_points_high", zeros=(255, 255), ratio=0.8),
        replace(plain, name="ends_only", values="ends", few=TWO_VALUES),
    )


def _shape_torch(case: Case, sources: list[Any]) -> Any:
    return sources[0].reshape(_shape_of(case))


def _shape_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return build.emit(op.reshape(sources[0], _shape_of(case)))


@dataclass(frozen=True, slots=True)
class HeadsSpec(MoveSpec):
    """The channels of rows fall into heads, which become the first axis."""

    heads: int = 2


def _heads_fields(rng: np.random.Generator, spec: HeadsSpec, lanes: int) -> dict[str, Any]:
    heads = int(rng.integers(2, 4))
    channels = heads * int(rng.integers(1, lanes + 2))
    return {"heads": heads, "channels": channels, "batch": int(rng.integers(1, 2 * lanes))}


def _heads_edges(config: Config) -> tuple[Spec, ...]:
    lanes = config.lanes
    plain = HeadsSpec("plain", batch=lanes + 1, channels=2 * lanes, size=())
    return (
        plain,
        replace(plain, name="one_row", batch=1),
        replace(plain, name="lanes_plus_one", channels=3 * (lanes + 1), heads=3),
        replace(plain, name="narrow_heads", channels=6, heads=3),
        replace(plain, name="many_rows", batch=300, channels=8),
        replace(plain, name="rescaled", ratio=1.4),
        replace(plain, name="no_multiplier", ratio=1.2, input_scale=0.1),
        replace(plain, name="relu", relu=True, zeros=(90,)),
        replace(plain, name="ends_only", values="ends", few=TWO_VALUES),
    )


def _heads_shape(case: Case) -> tuple[int, int, int, int]:
    spec: Any = case.spec
    rows, channels = case.inputs[0].values.shape
    return 1, rows, spec.heads, channels // spec.heads


def _heads_torch(case: Case, sources: list[Any]) -> Any:
    return sources[0].reshape(_heads_shape(case)).permute(0, 2, 1, 3)


def _heads_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    split = build.emit(op.reshape(sources[0], _heads_shape(case)))
    return build.emit(op.permute_dims(split, [0, 2, 1, 3]))


OPERATORS = (
    move(
        "transpose",
        ShapeSpec,
        _order_edges,
        draw_of(ShapeSpec, (2, 3, 4), _order_fields),
        (_order_relax, _order_torch),
        limits=("at unchanged scale where channels move",),
        instructions=("load", "store", "conv", "drain", "pool", "lookup"),
    ),
    move(
        "reshape",
        ShapeSpec,
        _shape_edges,
        draw_of(ShapeSpec, (3, 4), _shape_fields),
        (_shape_relax, _shape_torch),
    ),
    move(
        "split_heads",
        HeadsSpec,
        _heads_edges,
        draw_of(HeadsSpec, (2,), _heads_fields),
        (_heads_relax, _heads_torch),
    ),
)
