"""Elements repeated: tiles, mirrored axes, and nearest-neighbour resizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec, sized
from accelsim.ops.edges import TWO_VALUES, square_beyond
from accelsim.ops.modules import Builder
from accelsim.ops.moves import (
    ONE_PIXEL,
    MoveSpec,
    draw_of,
    move,
    move_edges,
    plain_of,
)
from accelsim.ops.values import choice
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class RepeatSpec(MoveSpec):
    """Repeats of each axis, the axis of a flip, or the size of a resized map."""

    factors: tuple[int, ...] = sized((2,), 1)


def _tile_fields(rng: np.random.Generator, spec: RepeatSpec, lanes: int) -> dict[str, Any]:
    return {"factors": tuple(int(one) for one in rng.integers(1, 4, len(spec.shape)))}


def _tile_more(plain: RepeatSpec, config: Config) -> tuple[RepeatSpec, ...]:
    return (
        replace(plain, name="channels", channels=config.lanes - 3, factors=(1, 3, 1, 1)),
        replace(plain, name="images", factors=(3, 1, 1, 1)),
        replace(plain, name="spread", size=(1, 1), factors=(1, 1, 5, 4), few=ONE_PIXEL),
        replace(plain, name="everything", channels=3, factors=(2, 2, 2, 2)),
    )


def _tile_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return sources[0].repeat(spec.factors)


def _tile_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(op.tile(sources[0], list(spec.factors)))


def _flip_fields(rng: np.random.Generator, spec: RepeatSpec, lanes: int) -> dict[str, Any]:
    return {"factors": (choice(rng, tuple(range(len(spec.shape)))),)}


def _flip_more(plain: RepeatSpec, config: Config) -> tuple[RepeatSpec, ...]:
    return (
        replace(plain, name="rows", factors=(2,)),
        replace(plain, name="channels", channels=config.lanes + 3, factors=(1,)),
        replace(plain, name="images", batch=3, factors=(0,)),
    )


def _flip_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    return torch.flip(sources[0], spec.factors)


def _flip_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(op.flip(sources[0], spec.factors[0]))


def _resize_fields(rng: np.random.Generator, spec: RepeatSpec, lanes: int) -> dict[str, Any]:
    return {"factors": tuple(int(one) for one in rng.integers(1, 15, 2))}


def _resize_edges(config: Config) -> tuple[Spec, ...]:
    plain = RepeatSpec("plain", channels=config.lanes, size=(4, 5), factors=(8, 10))
    far = square_beyond(config.act_rows)
    small = [
        replace(plain, name=name, channels=channels)
        for name, channels in (
            ("one_channel", 1),
            ("lanes_minus_one", config.lanes - 1),
            ("lanes_plus_one", config.lanes + 1),
        )
    ]
    return (
        plain,
        *small,
        replace(plain, name="one_pixel", size=(1, 1), factors=(3, 4), few=ONE_PIXEL),
        replace(plain, name="one_row", size=(1, 5), factors=(1, 13)),
        replace(plain, name="odd_ratio", factors=(7, 9)),
        replace(plain, name="smaller", size=(9, 8), factors=(4, 3)),
        replace(plain, name="same_rows", factors=(4, 10)),
        replace(plain, name="two_images", batch=2),
        replace(plain, name="beyond_activations", size=(far[0] // 2, far[1] // 2), factors=far),
        replace(plain, name="rescaled", ratio=1.3),
        replace(plain, name="relu", relu=True, zeros=(90,)),
        replace(plain, name="zero_points_low", zeros=(0, 0), ratio=0.8),
        replace(plain, name="zero_points_high", zeros=(255, 255), ratio=0.8),
        replace(plain, name="ends_only", values="ends", few=TWO_VALUES),
    )


def _resize_torch(case: Case, sources: list[Any]) -> Any:
    """Of maps of one pixel PyTorch's quantized kernel mixes channels up: they are spread."""
    spec: Any = case.spec
    if case.inputs[0].values.shape[2:] == (1, 1):
        return sources[0].expand(*case.inputs[0].values.shape[:2], *spec.factors)
    return torch.nn.functional.interpolate(sources[0], size=spec.factors, mode="nearest")


def _resize_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    return build.emit(
        op.image.resize2d(
            sources[0],
            spec.factors,
            layout="NCHW",
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        )
    )


OPERATORS = (
    move(
        "tile",
        RepeatSpec,
        move_edges(plain_of(RepeatSpec, factors=(1, 1, 2, 3)), _tile_more),
        draw_of(RepeatSpec, (4,), _tile_fields),
        (_tile_relax, _tile_torch),
    ),
    move(
        "flip",
        RepeatSpec,
        move_edges(plain_of(RepeatSpec, factors=(3,), size=(4, 5)), _flip_more),
        draw_of(RepeatSpec, (2, 3, 4), _flip_fields),
        (_flip_relax, _flip_torch),
    ),
    move(
        "resize_nearest",
        RepeatSpec,
        _resize_edges,
        draw_of(RepeatSpec, (4,), _resize_fields),
        (_resize_relax, _resize_torch),
        limits=("indices that float32 finds exactly",),
        instructions=("load", "store", "pool", "lookup"),
    ),
)
