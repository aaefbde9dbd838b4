"""Conversion of PyTorch's resizes that interpolate.

What comes in: nodes of an exported program. What goes out: Relax calls that TVM has CPU code for.
It must not know layers or names.

TVM's importer takes coordinates from the sizes where PyTorch takes them from a scale factor, knows
no antialiasing, and has another cubic than PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx
from tvm import relax

from accelsim.quantize.node_arguments import argument, shape_of

op = relax.op
Converter = Callable[[fx.Node, Any], Any]
_INTERPOLATING = (
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d"),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)


def resize_converters() -> dict[str, Converter]:
    """By the names of exported operators."""
    names = (f"{name}.{form}" for name in _INTERPOLATING for form in ("vec", "default"))
    return dict.fromkeys(names, _interpolated)


def _interpolated(node: fx.Node, importer: Any) -> Any:
    """A linear resize where that is what it is, else a sum of gathers along each axis."""
    source: Any = node.args[0]
    value, before, after = importer.env[source], shape_of(source), shape_of(node)
    emit = importer.block_builder.emit
    aligned = bool(argument(node, 2, "align_corners", False))
    if str(node.target).rpartition(".")[0].endswith(".upsample_bilinear2d") and (
        aligned or _by_size(node, before, after)
    ):
        return emit(
            op.image.resize2d(
                value,
                after[2:],
                layout="NCHW",
                method="linear",
                coordinate_transformation_mode="align_corners" if aligned else "half_pixel",
            )
        )
    for axis in range(2, len(after)):
        value = _mixed(value, _matrix(node, axis, before, after), axis, len(after), emit)
    return value


def _mixed(
    value: Any, matrix: NDArray[np.float32], axis: int, rank: int, emit: Callable[[Any], Any]
) -> Any:
    """Σ over taps of gathered elements of an axis times their weights."""
    taps = max(1, int(np.count_nonzero(matrix, axis=1).max()))
    chosen = np.sort(np.argsort(matrix == 0, axis=1, kind="stable")[:, :taps], axis=1)
    weights = np.take_along_axis(matrix, chosen, axis=1)
    shape = [-1 if k == axis else 1 for k in range(rank)]
    total = None
    for tap in range(taps):
        taken = emit(op.take(value, relax.const(chosen[:, tap], "int64"), axis, mode="fast"))
        factor = relax.const(weights[:, tap].reshape(shape), "float32")
        term = emit(op.multiply(taken, factor))
        total = term if total is None else emit(op.add(total, term))
    return total


def _by_size(node: fx.Node, before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether scale factors, where there are any, are the quotients of the sizes."""
    given = [one for one in node.args[3:] if one is not None] + list(node.kwargs.values())
    flat: list[Any] = []
    for one in given:
        flat.extend(one if isinstance(one, list | tuple) else [one])
    factors = [float(one) for one in flat if isinstance(one, float)]
    sizes = zip(before[2:], after[2:], strict=True)
    return not factors or all(
        size * factor == target for (size, target), factor in zip(sizes, factors, strict=True)
    )


def _matrix(
    node: fx.Node, axis: int, before: tuple[int, ...], after: tuple[int, ...]
) -> NDArray[np.float32]:
    """Weights (outputs, inputs) of an axis, found by giving PyTorch's kernel unit vectors."""
    size, target = before[axis], after[axis]
    shape = [1 if k == axis else extent for k, extent in enumerate(before)]
    shape[0], shape[1], shape[axis] = 1, size, size
    units = torch.zeros(shape, dtype=torch.float32)
    for place in range(size):
        units[0, place].select(axis - 2, place).fill_(1.0)
    run: Any = node.target
    found = run(units, *node.args[1:], **node.kwargs)
    corner: list[Any] = [0, slice(None), *(0 for _ in before[2:])]
    corner[axis] = slice(None)
    weights = found[tuple(corner)].numpy().T
    assert weights.shape == (target, size)
    return np.asarray(weights, np.float32)
