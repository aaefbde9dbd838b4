"""Node tests of operators that only move values, or take the larger or smaller of them.

What comes in: tests with values of any type. What goes out: trials. A value becomes its rank among
all values of a test; such an operator commutes with every monotone function, so with the ranks
clipped to a window of 8 bits. Windows side by side tell all ranks apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from accelsim.artifacts import I8, Assemble, Binary, LayerOp, Piece, Pool2d, Transpose
from accelsim.peers.case import OutOfScopeError, Trial
from accelsim.peers.onnx_test import (
    STEP,
    Array,
    NodeTest,
    four_axes,
    image,
    overhang,
    parallel,
    window,
)
from accelsim.peers.shapes import all_of, four, identity, picked


class Ordered:
    """Ranks of all values of a test, and their windows of 8 bits."""

    def __init__(self, *arrays: Array) -> None:
        """Rank every value."""
        self.known = np.unique(np.concatenate([np.asarray(a).ravel() for a in arrays]))

    def windows(self, values: Array) -> list[I8]:
        """One int8 array a window."""
        ranks = np.searchsorted(self.known, values)
        count = max(1, -(-(self.known.size - 1) // STEP))
        return [np.clip(ranks - STEP * k - 128, -128, 127).astype(np.int8) for k in range(count)]


def moves(
    test: NodeTest, sources: Sequence[Array], ops: Sequence[tuple[LayerOp, Array]], fill: Any = None
) -> Trial:
    """Every window of the sources through every operator, against that window of its golden."""
    more = [] if fill is None else [np.asarray([fill])]
    ordered = Ordered(*sources, *(golden for _, golden in ops), *more)
    split = [ordered.windows(one.reshape(four_axes(one.shape))) for one in sources]
    fills = [] if fill is None else ordered.windows(np.asarray(fill))
    groups: list[dict[str, I8]] = []
    layers: list[tuple[LayerOp, str, I8]] = []
    for number in range(len(split[0])):
        groups.append({f"w{number}_{i}": one[number] for i, one in enumerate(split)})
        for op, golden in ops:
            wanted = ordered.windows(golden.reshape(four_axes(golden.shape)))[number]
            if isinstance(op, Assemble) and fills:
                op = Assemble(op.pieces, int(fills[number]))
            layers.append((op, f"w{number}_", wanted))
    return parallel(groups, layers)


def axes_of(test: NodeTest, rank: int, key: str = "axis", default: int = 0) -> int:
    """An axis attribute, counted among four axes."""
    axis = int(test.attributes.get(key, default))
    return axis % rank + 4 - rank


def transpose(test: NodeTest) -> Trial:
    """Any order of axes."""
    x = test.array(0)
    order = list(test.attributes.get("perm", range(x.ndim)[::-1]))
    more = len(four_axes(x.shape)) - x.ndim
    all_axes = [*range(more), *(axis + more for axis in order)]
    axes = (all_axes[0], all_axes[1], all_axes[2], all_axes[3])
    return moves(test, [x], [(Transpose(axes), test.outputs[0])])


def concat(test: NodeTest) -> Trial:
    """All inputs along an axis."""
    sources = [one for one in test.inputs if one is not None]
    axis, offset, pieces = axes_of(test, sources[0].ndim), 0, []
    for number, one in enumerate(sources):
        take = all_of(four_axes(one.shape))
        place = list(take)
        place[axis] = take[axis] + offset
        offset += len(take[axis])
        pieces.append(Piece(number, four(take), four(place)))
    return moves(test, sources, [(Assemble(tuple(pieces)), test.outputs[0])])


def split(test: NodeTest) -> Trial:
    """Parts along an axis, as long as the goldens are."""
    x = test.array(0)
    axis, start, ops = axes_of(test, x.ndim), 0, []
    for golden in test.outputs:
        take = all_of(four_axes(x.shape))
        length = four_axes(golden.shape)[axis]
        take[axis] = np.arange(start, start + length)
        start += length
        ops.append((picked(take), golden))
    return moves(test, [x], ops)


def slice_(test: NodeTest) -> Trial:
    """Starts, ends, axes and steps."""
    x = test.array(0)
    starts, ends = test.array(1).tolist(), test.array(2).tolist()
    axes, steps = test.optional(3), test.optional(4)
    named = list(range(len(starts))) if axes is None else axes.tolist()
    by = [1] * len(starts) if steps is None else steps.tolist()
    take = all_of(x.shape)
    for axis, first, last, step in zip(named, starts, ends, by, strict=True):
        below = -x.shape[axis] - 1  # what lies before the first element, not the last one
        stop = None if step < 0 and last < below + 1 else last
        take[axis] = take[axis][first:stop:step]
    four_axes([len(one) for one in take])
    more = [np.arange(1)] * (4 - x.ndim)
    return moves(test, [x], [(picked([*more, *take]), test.outputs[0])])


def pad(test: NodeTest) -> Trial:
    """Constant, edge, reflect and wrap."""
    x, pads = test.array(0), test.array(1).tolist()
    mode = test.attributes.get("mode", b"constant").decode()
    axes = test.optional(3)
    named = list(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in axes]
    before, after = [0] * x.ndim, [0] * x.ndim
    for axis, low, high in zip(named, pads[: len(named)], pads[len(named) :], strict=True):
        before[axis], after[axis] = low, high
    more = [np.arange(1)] * (4 - x.ndim)
    if mode == "constant":
        value = test.optional(2)
        place = [np.arange(b, b + n) for b, n in zip(before, x.shape, strict=True)]
        op = Assemble((Piece(0, four([*more, *all_of(x.shape)]), four([*more, *place])),))
        fill = 0 if value is None else value.item()
        return moves(test, [x], [(op, test.outputs[0])], np.asarray(fill, x.dtype))
    sides = zip(x.shape, before, after, strict=True)
    take = [np.pad(np.arange(n), (b, a), mode=mode) for n, b, a in sides]
    return moves(test, [x], [(picked([*more, *take]), test.outputs[0])])


def blocks(test: NodeTest) -> Trial:
    """DepthToSpace in both orders, and SpaceToDepth."""
    x, size = test.array(0), int(test.attributes["blocksize"])
    n, c, h, w = four_axes(x.shape)
    spread = test.operator == "DepthToSpace"
    fine = (h * size, w * size) if spread else (h, w)
    depth = c // (size * size) if spread else c
    columns_first = test.attributes.get("mode", b"DCR") == b"CRD"
    pieces = []
    for i, j in product(range(size), repeat=2):
        number, each = i * size + j, np.arange(depth)
        deep = each * size * size + number if columns_first else number * depth + each
        rows, cols = np.arange(i, fine[0], size), np.arange(j, fine[1], size)
        one = four([np.arange(n), deep, *all_of((len(rows), len(cols)))])
        other = four([np.arange(n), each, rows, cols])
        pieces.append(Piece(0, *((one, other) if spread else (other, one))))
    return moves(test, [x], [(Assemble(tuple(pieces)), test.outputs[0])])


def gather(test: NodeTest) -> Trial:
    """Indices of one axis."""
    x, chosen = test.array(0), test.array(1)
    if chosen.ndim > 1 and x.ndim + chosen.ndim - 1 > 4:
        raise OutOfScopeError("the NPU's tensors have four axes")
    axis = axes_of(test, x.ndim)
    take = all_of(four_axes(x.shape))
    take[axis] = np.arange(len(take[axis]))[chosen.ravel()]
    golden = test.outputs[0].reshape([len(one) for one in take])
    return moves(test, [x], [(picked(take), golden)])


def repeated(test: NodeTest) -> Trial:
    """Tile, Expand and Identity: whole copies along axes."""
    x, golden = test.array(0), test.outputs[0]
    lengths = zip(four_axes(x.shape), four_axes(golden.shape), strict=True)
    take = [np.arange(out) % length for length, out in lengths]
    return moves(test, [x], [(picked(take), golden)])


def resize(test: NodeTest) -> Trial:
    """The nearest element, in every mode of coordinates and of rounding that the tests have."""
    if test.attributes.get("mode", b"nearest") != b"nearest":
        raise OutOfScopeError("it interpolates real numbers, which have no scale of 8 bits")
    x, golden = test.array(0), test.outputs[0]
    scales = _resize_scales(test, x, golden)
    take = [
        _nearest(test, length, out, scale)
        for length, out, scale in zip(x.shape, golden.shape, scales, strict=True)
    ]
    more = [np.arange(1)] * (4 - x.ndim)
    return moves(test, [x], [(picked([*more, *take]), golden)])


def _resize_scales(test: NodeTest, x: Array, golden: Array) -> list[float]:
    """Scales as given, or from sizes; of axes that are not named it is 1."""
    axes = [int(a) % x.ndim for a in test.attributes.get("axes", range(x.ndim))]
    given, sizes = test.optional(2), test.optional(3)
    result = [1.0] * x.ndim
    if given is not None and given.size:
        for axis, scale in zip(axes, given.tolist(), strict=True):
            result[axis] = scale
        return result
    assert sizes is not None
    ratios = [size / x.shape[axis] for axis, size in zip(axes, sizes.tolist(), strict=True)]
    policy = test.attributes.get("keep_aspect_ratio_policy", b"stretch")
    if policy != b"stretch":
        one = min(ratios) if policy == b"not_larger" else max(ratios)
        ratios = [one] * len(ratios)
    for axis, scale in zip(axes, ratios, strict=True):
        result[axis] = scale
    return result


def _nearest(test: NodeTest, length: int, out: int, scale: float) -> np.ndarray:
    places = np.arange(out, dtype=np.float64)
    mode = test.attributes.get("coordinate_transformation_mode", b"half_pixel").decode()
    if mode == "half_pixel":
        places = (places + 0.5) / scale - 0.5
    elif mode == "asymmetric":
        places = places / scale
    elif mode == "align_corners":
        places = places * (length - 1) / max(out - 1, 1)
    else:
        raise OutOfScopeError(f"coordinates of {mode} are not known")
    rounding = test.attributes.get("nearest_mode", b"round_prefer_floor").decode()
    rounded = {
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }[rounding]
    return np.clip(rounded, 0, length - 1).astype(np.int64)


def max_pool(test: NodeTest) -> Trial:
    """Maximum over windows; where the largest element lies is not compared."""
    x, golden = image(test.array(0)), image(test.outputs[0])
    size, out = (x.shape[1], x.shape[2]), (golden.shape[1], golden.shape[2])
    if test.operator == "GlobalMaxPool":
        return moves(test, [x], [(Pool2d("max", size, (1, 1), (0, 0, 0, 0), 0, None), golden)])
    w = overhang(size, out, window(test, test.attributes["kernel_shape"], size))
    if w.dilation != (1, 1):
        raise OutOfScopeError("the NPU's pooling has no dilation")
    return moves(test, [x], [(Pool2d("max", w.kernel, w.stride, w.padding, 0, None), golden)])


def reduced(x: Array, axes: Sequence[int]) -> Array:
    """(1, reduced, 1, kept) of any tensor."""
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    size = int(np.prod([x.shape[axis] for axis in axes]))
    return np.ascontiguousarray(x.transpose([*axes, *rest]).reshape(1, size, 1, -1))


def reduce_axes(test: NodeTest) -> list[int]:
    """The axes of a reduction, all where none are named."""
    x, named = test.array(0), test.optional(1)
    if x.size == 0:
        raise OutOfScopeError("a tensor is empty")
    given = test.attributes.get("axes") if named is None else named.tolist()
    if not given:
        return [] if test.attributes.get("noop_with_empty_axes") else list(range(x.ndim))
    return [int(axis) % x.ndim for axis in given]


def reduce_max(test: NodeTest) -> Trial:
    """Maximum over axes."""
    axes = reduce_axes(test)
    x = reduced(test.array(0), axes)
    golden = test.outputs[0].reshape(1, 1, 1, -1)
    op = Pool2d("max", (x.shape[1], 1), (1, 1), (0, 0, 0, 0), 0, None)
    return moves(test, [x], [(op, golden)])


def extremum(test: NodeTest) -> Trial:
    """The larger or smaller of two tensors; of one it is itself."""
    sources = [one for one in test.inputs if one is not None]
    if len(sources) > 2:
        raise OutOfScopeError("a layer of the NPU has two operands")
    if len(sources) == 1:
        return repeated(test)
    kind = "maximum" if test.operator == "Max" else "minimum"
    shape = np.broadcast_shapes(*(one.shape for one in sources))
    first = np.ascontiguousarray(np.broadcast_to(sources[0], shape))
    return moves(test, [first, sources[1]], [(Binary(kind, 0, 0, identity()), test.outputs[0])])


def relu(test: NodeTest) -> Trial:
    """The larger of a value and zero."""
    x = test.array(0)
    op = Binary("maximum", 0, 0, identity())
    return moves(test, [x, np.zeros((1,) * x.ndim, x.dtype)], [(op, test.outputs[0])])


def clip(test: NodeTest) -> Trial:
    """One limit is an operand; both are the limits of a pooling of one element."""
    x, low, high = test.array(0), test.optional(1), test.optional(2)
    given = [one for one in (low, high) if one is not None]
    if not given:
        return repeated(test)
    if len(given) == 1:
        kind = "minimum" if low is None else "maximum"
        limit = given[0].reshape((1,) * max(x.ndim, 1))
        return moves(test, [x, limit], [(Binary(kind, 0, 0, identity()), test.outputs[0])])
    ordered = Ordered(x, *given, test.outputs[0])
    groups, layers = [], []
    for number, values in enumerate(ordered.windows(x.reshape(four_axes(x.shape)))):
        least, most = (int(ordered.windows(one)[number]) for one in given)
        op = Pool2d("max", (1, 1), (1, 1), (0, 0, 0, 0), 0, None, least, most)
        golden = test.outputs[0].reshape(four_axes(x.shape))
        groups.append({f"w{number}_x": values})
        layers.append((op, f"w{number}_", ordered.windows(golden)[number]))
    return parallel(groups, layers)


ORDER: dict[str, Callable[[NodeTest], Trial]] = {
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": slice_,
    "Pad": pad,
    "DepthToSpace": blocks,
    "SpaceToDepth": blocks,
    "Gather": gather,
    "Tile": repeated,
    "Expand": repeated,
    "Resize": resize,
    "MaxPool": max_pool,
    "GlobalMaxPool": max_pool,
    "ReduceMax": reduce_max,
    "Max": extremum,
    "Min": extremum,
    "Relu": relu,
    "Clip": clip,
}
