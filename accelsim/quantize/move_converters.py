"""Conversion of exported operators that only move elements.

What comes in: nodes of an exported program. What goes out: Relax calls that TVM has CPU code for.
It must not know layers or names.

TVM's importer takes PyTorch's nearest resize for one about pixel centres, has no code for its own
pixel shuffle, and knows neither its inverse nor repeat_interleave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx
from tvm import relax

op = relax.op
Converter = Callable[[fx.Node, Any], Any]


def move_converters() -> dict[str, Converter]:
    """By the names of exported operators."""
    table: dict[str, Converter] = {
        "pixel_shuffle.default": _pixel_shuffle,
        "pixel_unshuffle.default": _pixel_unshuffle,
        "channel_shuffle.default": _channel_shuffle,
        "native_channel_shuffle.default": _channel_shuffle,
        "repeat_interleave.self_int": _repeat_interleave,
    }
    for name in ("upsample_nearest", "_upsample_nearest_exact"):
        for rank in (1, 2):
            table[f"{name}{rank}d.vec"] = table[f"{name}{rank}d.default"] = _nearest
    return table


def _shape(node: fx.Node) -> list[int]:
    return [int(extent) for extent in node.meta["val"].shape]


def _nearest(node: fx.Node, importer: Any) -> Any:
    """A resize where its indices are floor(i · size / target), else one gather an axis."""
    source: Any = node.args[0]
    value, before, after = importer.env[source], _shape(source), _shape(node)
    chosen = [_indices(node, axis, before, after) for axis in range(2, len(before))]
    plain = [
        np.array_equal(found, np.arange(target) * size // target)
        for found, size, target in zip(chosen, before[2:], after[2:], strict=True)
    ]
    if all(plain) and len(before) == 4:
        resized = op.image.resize2d(
            value,
            tuple(after[2:]),
            layout="NCHW",
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        )
        return importer.block_builder.emit(resized)
    for axis, found in enumerate(chosen, 2):
        taken = op.take(value, relax.const(found, "int64"), axis, mode="fast")
        value = importer.block_builder.emit(taken)
    return value


def _indices(node: fx.Node, axis: int, before: list[int], after: list[int]) -> NDArray[np.int64]:
    """What PyTorch's own kernel takes along an axis, found by giving it indices as values."""
    line = [1] * len(before)
    line[axis] = before[axis]
    image = torch.arange(before[axis], dtype=torch.float64).reshape(line)
    expanded = image.expand(1, 1, *before[2:]).contiguous()
    target: Any = node.target
    found = target(expanded, *node.args[1:], **node.kwargs)
    first = [0] * len(after)
    place: list[Any] = list(first)
    place[axis] = slice(None)
    return np.asarray(found[tuple(place)].numpy().astype(np.int64))


def _pixel_shuffle(node: fx.Node, importer: Any) -> Any:
    source: Any = node.args[0]
    *outer, channels, height, width = _shape(source)
    r = int(node.args[1])  # type: ignore[arg-type]
    split = (*outer, channels // (r * r), r, r, height, width)
    k = len(outer)
    order = [*range(k), k, k + 3, k + 1, k + 4, k + 2]
    return _turned(node, importer, split, order)


def _pixel_unshuffle(node: fx.Node, importer: Any) -> Any:
    source: Any = node.args[0]
    *outer, channels, height, width = _shape(source)
    r = int(node.args[1])  # type: ignore[arg-type]
    split = (*outer, channels, height // r, r, width // r, r)
    k = len(outer)
    order = [*range(k), k, k + 2, k + 4, k + 1, k + 3]
    return _turned(node, importer, split, order)


def _channel_shuffle(node: fx.Node, importer: Any) -> Any:
    source: Any = node.args[0]
    n, channels, *size = _shape(source)
    groups = int(node.args[1])  # type: ignore[arg-type]
    split = (n, groups, channels // groups, *size)
    order = [0, 2, 1, *range(3, 3 + len(size))]
    return _turned(node, importer, split, order)


def _turned(node: fx.Node, importer: Any, split: tuple[int, ...], order: list[int]) -> Any:
    """Axes split, permuted and joined again."""
    emit = importer.block_builder.emit
    parts = emit(op.reshape(importer.env[node.args[0]], split))
    return emit(op.reshape(emit(op.permute_dims(parts, order)), _shape(node)))


def _repeat_interleave(node: fx.Node, importer: Any) -> Any:
    axis = node.args[2] if len(node.args) > 2 else node.kwargs.get("dim")
    repeats = int(node.args[1])  # type: ignore[arg-type]
    repeated = op.repeat(
        importer.env[node.args[0]],
        repeats,
        None if axis is None else int(axis),  # type: ignore[arg-type]
    )
    return importer.block_builder.emit(repeated)
