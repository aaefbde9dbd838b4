"""Channels among themselves, and between channels and pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec, sized
from accelsim.ops.edges import TWO_VALUES, common_edges, square_beyond
from accelsim.ops.modules import Builder
from accelsim.ops.moves import (
    MoveSpec,
    draw_of,
    move,
)
from accelsim.ops.operator import Edges
from accelsim.spec.config import Config

op = relax.op


@dataclass(frozen=True, slots=True)
class FactorSpec(MoveSpec):
    """Groups of channels, or the side of a square of pixels."""

    factors: tuple[int, ...] = sized((2,), 1)


def _shuffle_plain(config: Config) -> FactorSpec:
    return FactorSpec("plain", channels=config.lanes * 2)


def _shuffle_edges(config: Config) -> tuple[Spec, ...]:
    lanes = config.lanes
    plain = _shuffle_plain(config)
    names = ("one_channel", "lanes_minus_one", "lanes_plus_one", "many_channels")
    kept = [one for one in common_edges(config, plain, 2) if one.name not in names]
    return (
        *kept,
        replace(plain, name="lanes_minus_one", channels=lanes - 1, factors=(lanes - 1,)),
        replace(plain, name="three_groups", channels=3 * (lanes + 1), factors=(3,)),
        replace(plain, name="rescaled", ratio=1.3),
        replace(plain, name="relu", relu=True, zeros=(90,)),
    )


def _shuffle_fields(rng: np.random.Generator, spec: FactorSpec, lanes: int) -> dict[str, Any]:
    groups = int(rng.integers(2, 5))
    return {"factors": (groups,), "channels": groups * int(rng.integers(1, lanes + 2))}


def _shuffle_torch(case: Case, sources: list[Any]) -> Any:
    spec: Any = case.spec
    n, c, *size = case.inputs[0].values.shape
    (groups,) = spec.factors
    split = sources[0].reshape(n, groups, c // groups, *size)
    return split.transpose(1, 2).reshape(n, c, *size)


def _shuffle_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    n, c, h, w = case.inputs[0].values.shape
    (groups,) = spec.factors
    split = build.emit(op.reshape(sources[0], (n, groups, c // groups, h, w)))
    turned = build.emit(op.permute_dims(split, [0, 2, 1, 3, 4]))
    return build.emit(op.reshape(turned, (n, c, h, w)))


def _pixels_edges(down: bool) -> Edges:
    def edges(config: Config) -> tuple[Spec, ...]:
        lanes = config.lanes
        size = (4, 6) if down else (3, 4)
        plain = FactorSpec("plain", channels=lanes if down else 4 * lanes, size=size)
        few = 1 if down else 4
        return (
            plain,
            replace(plain, name="few_channels", channels=few),
            replace(plain, name="one_block", size=(2, 2) if down else (1, 1)),
            replace(plain, name="tail", channels=few * (lanes + 1)),
            replace(plain, name="two_images", batch=2),
            replace(
                plain,
                name="by_three",
                channels=2 * (1 if down else 9),
                size=(3, 6) if down else (3, 4),
                factors=(3,),
            ),
            replace(plain, name="by_three_map", channels=9, size=(6, 3), factors=(3,)),
            replace(
                plain, name="beyond_activations", channels=few, size=_even(config.act_rows, down)
            ),
            replace(plain, name="rescaled", ratio=1.3),
            replace(plain, name="relu", relu=True, batch=3),
            replace(plain, name="zero_points_low", zeros=(0, 0), ratio=0.8),
            replace(plain, name="zero_points_high", zeros=(255, 255), ratio=0.8),
            replace(plain, name="ends_only", values="ends", few=TWO_VALUES),
        )

    return edges


def _even(rows: int, down: bool) -> tuple[int, int]:
    """A square of even sides, beyond so many rows before or after the shuffle."""
    side = square_beyond(rows)[0]
    return (side + side % 2,) * 2 if down else (side // 2 + 1,) * 2


def _pixels_fields(down: bool) -> Callable[..., Any]:
    def fields(rng: np.random.Generator, spec: FactorSpec, lanes: int) -> dict[str, Any]:
        r = int(rng.integers(2, 4))
        channels = int(rng.integers(1, lanes + 2)) * (1 if down else r * r)
        h, w = (int(one) * (r if down else 1) for one in rng.integers(1, 4, 2))
        return {"factors": (r,), "channels": channels, "size": (h, w)}

    return fields


def _pixels_torch(down: bool) -> Callable[[Case, list[Any]], Any]:
    functions: Any = torch.nn.functional
    run = functions.pixel_unshuffle if down else functions.pixel_shuffle

    def torch_of(case: Case, sources: list[Any]) -> Any:
        spec: Any = case.spec
        return run(sources[0], spec.factors[0])

    return torch_of


def _up_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    """As three operators: TVM has no CPU code of its own pixel shuffle."""
    spec: Any = case.spec
    n, c, h, w = case.inputs[0].values.shape
    (r,) = spec.factors
    split = build.emit(op.reshape(sources[0], (n, c // (r * r), r, r, h, w)))
    turned = build.emit(op.permute_dims(split, [0, 1, 4, 2, 5, 3]))
    return build.emit(op.reshape(turned, (n, c // (r * r), h * r, w * r)))


def _down_relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec: Any = case.spec
    n, c, h, w = case.inputs[0].values.shape
    (r,) = spec.factors
    split = build.emit(op.reshape(sources[0], (n, c, h // r, r, w // r, r)))
    turned = build.emit(op.permute_dims(split, [0, 1, 3, 5, 2, 4]))
    return build.emit(op.reshape(turned, (n, c * r * r, h // r, w // r)))


OPERATORS = (
    move(
        "channel_shuffle",
        FactorSpec,
        _shuffle_edges,
        draw_of(FactorSpec, (4,), _shuffle_fields),
        (_shuffle_relax, _shuffle_torch),
        instructions=("load", "store", "conv", "drain", "pool"),
    ),
    move(
        "pixel_shuffle",
        FactorSpec,
        _pixels_edges(False),
        draw_of(FactorSpec, (4,), _pixels_fields(False)),
        (_up_relax, _pixels_torch(False)),
    ),
    move(
        "pixel_unshuffle",
        FactorSpec,
        _pixels_edges(True),
        draw_of(FactorSpec, (4,), _pixels_fields(True)),
        (_down_relax, _pixels_torch(True)),
    ),
)
