"""Operators that move, choose or repeat numbers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Stored, constant, ints, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of

op = relax.op


def identity(g: Emitter, node: OnnxNode) -> Any:
    """Identity and Dropout."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise g.fail("gives the mask of a dropout, which is not supported")
    return g.value(node.input(0))


def reshape(g: Emitter, node: OnnxNode) -> Any:
    """Reshape; 0 keeps an extent, -1 takes what is left."""
    x = g.real(node.input(0))
    before = shape_of(x)
    wanted = ints(g.numbers(node.input(1), "shapes"))
    if not node.attributes.get("allowzero", 0):
        if any(not n and i >= len(before) for i, n in enumerate(wanted)):
            raise g.fail(f"cannot give {before} the shape {wanted}")
        wanted = [extent or before[i] for i, extent in enumerate(wanted)]
    known = prod(extent for extent in wanted if extent >= 0)
    if wanted.count(-1) == 1 and known and prod(before) % known == 0:
        wanted[wanted.index(-1)] = prod(before) // known
    if min(wanted, default=1) < 1 or prod(wanted) != prod(before):
        raise g.fail(f"cannot give {before} the shape {wanted}")
    return g.emit(op.reshape(x, wanted))


def flatten(g: Emitter, node: OnnxNode) -> Any:
    """Flatten to two axes."""
    x = g.real(node.input(0))
    shape, axis = shape_of(x), node.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return g.emit(op.reshape(x, [prod(shape[:axis]), prod(shape[axis:])]))


def axes_input(g: Emitter, node: OnnxNode) -> list[int] | None:
    """Axes of an attribute or of the second input."""
    if node.input(1):
        return ints(g.numbers(node.input(1), "axes"))
    return ints(node.attributes["axes"]) if "axes" in node.attributes else None


def squeeze(g: Emitter, node: OnnxNode) -> Any:
    """Squeeze as a reshape."""
    x, axes = g.real(node.input(0)), axes_input(g, node)
    shape = shape_of(x)
    gone = {axis % len(shape) for axis in axes} if axes is not None else None
    kept = [n for i, n in enumerate(shape) if (i not in gone if gone is not None else n != 1)]
    if prod(kept) != prod(shape):
        raise g.fail(f"cannot squeeze axes {axes} of {shape}")
    return g.emit(op.reshape(x, kept))


def unsqueeze(g: Emitter, node: OnnxNode) -> Any:
    """Unsqueeze as a reshape."""
    x, axes = g.real(node.input(0)), axes_input(g, node) or []
    shape = list(shape_of(x))
    for axis in sorted(axis % (len(shape) + len(axes)) for axis in axes):
        shape.insert(axis, 1)
    return g.emit(op.reshape(x, shape))


def transpose(g: Emitter, node: OnnxNode) -> Any:
    """Transpose."""
    x = g.real(node.input(0))
    order = ints(node.attributes.get("perm", range(len(shape_of(x)))[::-1]))
    if sorted(order) != list(range(len(shape_of(x)))):
        raise g.fail(f"cannot order the axes of {shape_of(x)} as {order}")
    return g.emit(op.permute_dims(x, order))


def concat(g: Emitter, node: OnnxNode) -> Any:
    """Concat."""
    parts = [g.real(name) for name in node.inputs]
    return g.emit(op.concat(parts, int(node.attributes["axis"])))


def split(g: Emitter, node: OnnxNode) -> Any:
    """Split at given lengths, or into as many equal parts as there are outputs."""
    x = g.real(node.input(0))
    axis = node.attributes.get("axis", 0) % len(shape_of(x))
    length, count = shape_of(x)[axis], len(node.outputs)
    given = node.attributes.get("split")
    if node.input(1):
        given = ints(g.numbers(node.input(1), "lengths"))
    each = -(-length // count)
    lengths = list(given) if given else [min(each, length - each * i) for i in range(count)]
    if sum(lengths) != length or len(lengths) != count or min(lengths) < 1:
        raise g.fail(f"cannot split {length} elements into {lengths}")
    if count == 1:
        return x
    parts = g.emit(op.split(x, [int(n) for n in np.cumsum(lengths)[:-1]], axis))
    return tuple(g.emit(relax.TupleGetItem(parts, index)) for index in range(count))


def slice_(g: Emitter, node: OnnxNode) -> Any:
    """Slice with constant bounds."""
    x = g.real(node.input(0))
    shape = shape_of(x)
    if "starts" in node.attributes:
        starts, ends = ints(node.attributes["starts"]), ints(node.attributes["ends"])
        axes, steps = ints(node.attributes.get("axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = (ints(g.numbers(node.input(i), "bounds")) for i in (1, 2))
        axes = ints(g.numbers(node.input(3), "axes")) if node.input(3) else list(range(len(starts)))
        steps = ints(g.numbers(node.input(4), "steps")) if node.input(4) else [1] * len(starts)
    bounds = [
        slice(first, last, step).indices(shape[axis % len(shape)])
        if not (step < 0 and last < -shape[axis % len(shape)])
        else (*slice(first, None, step).indices(shape[axis % len(shape)])[:1], -1, step)
        for axis, first, last, step in zip(axes, starts, ends, steps, strict=True)
    ]
    if any(not len(range(*bound)) for bound in bounds):
        raise g.fail("keeps nothing of its input")
    if all(step > 0 for step in steps):
        lows, highs, by = ([bound[i] for bound in bounds] for i in range(3))
        return g.emit(op.strided_slice(x, [a % len(shape) for a in axes], lows, highs, by))
    for axis, bound in zip(axes, bounds, strict=True):
        x = g.emit(op.take(x, constant(np.arange(*bound, dtype=np.int64)), axis=axis % len(shape)))
    return x


def gather(g: Emitter, node: OnnxNode) -> Any:
    """Gather; constant indices below zero count from the end."""
    x, axis = g.real(node.input(0)), node.attributes.get("axis", 0)
    at = g.value(node.input(1))
    length = shape_of(x)[axis]
    if isinstance(at, np.ndarray):
        if at.size and not -length <= int(at.min()) <= int(at.max()) < length:
            raise g.fail(f"takes elements beyond the {length} of its axis")
        at = np.where(at < 0, at + length, at)
    return g.emit(op.take(x, g.operand(at), axis=axis % len(shape_of(x)), mode="clip"))


def gather_nd(g: Emitter, node: OnnxNode) -> Any:
    """GatherND."""
    return g.emit(
        op.gather_nd(
            g.real(node.input(0)), g.real(node.input(1)), int(node.attributes.get("batch_dims", 0))
        )
    )


def gather_elements(g: Emitter, node: OnnxNode) -> Any:
    """GatherElements."""
    axis = int(node.attributes.get("axis", 0))
    return g.emit(op.gather_elements(g.real(node.input(0)), g.real(node.input(1)), axis))


def expand(g: Emitter, node: OnnxNode) -> Any:
    """Expand."""
    x = g.real(node.input(0))
    wanted = tuple(ints(g.numbers(node.input(1), "shapes")))
    try:
        shape = np.broadcast_shapes(shape_of(x), wanted)
    except ValueError:
        raise g.fail(f"cannot expand {shape_of(x)} to {wanted}") from None
    return x if shape == shape_of(x) else g.emit(op.broadcast_to(x, shape))


def tile(g: Emitter, node: OnnxNode) -> Any:
    """Tile."""
    return g.emit(op.tile(g.real(node.input(0)), ints(g.numbers(node.input(1), "repeats"))))


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def pad(g: Emitter, node: OnnxNode) -> Any:
    """Pad; a constant is a number of the input's own kind, an integer of integers."""
    source = g.value(node.input(0))
    x = g.operand(source)
    rank = len(shape_of(x))
    pads = ints(g.numbers(node.input(1), "widths") if node.input(1) else node.attributes["pads"])
    axes = ints(g.numbers(node.input(3), "axes")) if node.input(3) else list(range(rank))
    if len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        raise g.fail(f"has widths {pads} for {len(axes)} axes")
    widths = [0] * 2 * rank
    for place, axis in enumerate(axes):
        widths[2 * (axis % rank)] = pads[place]
        widths[2 * (axis % rank) + 1] = pads[place + len(axes)]
    mode = node.attributes.get("mode", "constant")
    if mode not in _MODES:
        raise g.fail(f"has the unknown mode {mode!r}")
    value = float(node.attributes.get("value", 0.0))
    if node.input(2):
        value = float(g.numbers(node.input(2), "a value").reshape(-1)[0])
    if isinstance(source, Stored):
        levels = g.levels(source)
        value = float((np.float32(value) - np.float32(levels.zero)) * levels.scale)
    return g.emit(op.nn.pad(x, widths, _MODES[mode], value))


def depth_to_space(g: Emitter, node: OnnxNode) -> Any:
    """DepthToSpace in both orders."""
    x, size = g.real(node.input(0)), int(node.attributes["blocksize"])
    n, c, h, w = _image(g, x)
    if c % (size * size):
        raise g.fail(f"cannot spread {c} channels over blocks of {size}×{size}")
    depth = c // (size * size)
    if node.attributes.get("mode", "DCR") == "CRD":
        return g.emit(op.nn.pixel_shuffle(x, size))
    apart = g.emit(op.reshape(x, [n, size, size, depth, h, w]))
    turned = g.emit(op.permute_dims(apart, [0, 3, 4, 1, 5, 2]))
    return g.emit(op.reshape(turned, [n, depth, h * size, w * size]))


def space_to_depth(g: Emitter, node: OnnxNode) -> Any:
    """SpaceToDepth."""
    x, size = g.real(node.input(0)), int(node.attributes["blocksize"])
    n, c, h, w = _image(g, x)
    if h % size or w % size:
        raise g.fail(f"cannot cut {h}×{w} into blocks of {size}×{size}")
    apart = g.emit(op.reshape(x, [n, c, h // size, size, w // size, size]))
    turned = g.emit(op.permute_dims(apart, [0, 3, 5, 1, 2, 4]))
    return g.emit(op.reshape(turned, [n, c * size * size, h // size, w // size]))


def _image(g: Emitter, x: Any) -> tuple[int, ...]:
    shape = shape_of(x)
    if len(shape) != 4:
        raise g.fail(f"has an input of shape {shape}; images have four axes")
    return shape


def resize(g: Emitter, node: OnnxNode) -> Any:
    """Resize of height and width."""
    x = g.real(node.input(0))
    n, c, h, w = _image(g, x)
    out = _resized(g, node, (n, c, h, w))
    if out[:2] != (n, c):
        raise g.fail("resizes other than height and width")
    mode = node.attributes.get("mode", "nearest")
    coordinates = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    if node.operator == "Upsample":
        coordinates = "asymmetric"
    nearest = node.attributes.get("nearest_mode", "round_prefer_floor")
    if node.operator == "Upsample":
        nearest = "floor"
    methods = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
    if mode not in methods or coordinates == "tf_crop_and_resize":
        raise g.fail(f"has the mode {mode!r} with coordinates {coordinates!r}")
    if mode == "nearest":
        return _nearest(g, x, (h, w), out[2:], coordinates, nearest)
    return g.emit(
        op.image.resize2d(
            x,
            relax.ShapeExpr(list(out[2:])),
            layout="NCHW",
            method=methods[mode],
            coordinate_transformation_mode=coordinates,
            rounding_method="",
            cubic_alpha=float(node.attributes.get("cubic_coeff_a", -0.75)),
            cubic_exclude=int(node.attributes.get("exclude_outside", 0)),
        )
    )


def _resized(g: Emitter, node: OnnxNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    upsample = node.operator == "Upsample"
    scales = g.known(node.input(1 if upsample or len(node.inputs) == 2 else 2))
    sizes = g.known(node.input(3))
    if "scales" in node.attributes:
        scales = np.asarray(node.attributes["scales"])
    axes = ints(node.attributes.get("axes", range(len(shape))))
    result = list(shape)
    if sizes is not None and sizes.size == len(axes):
        for axis, size in zip(axes, ints(sizes), strict=True):
            result[axis] = size
    elif scales is not None and scales.size == len(axes):
        for axis, scale in zip(axes, scales.tolist(), strict=True):
            result[axis] = int(np.floor(shape[axis] * scale))
    else:
        raise g.fail("has a size that is known only at run time")
    if node.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise g.fail("keeps an aspect ratio, which is not supported")
    if min(result) < 1:
        raise g.fail(f"gives the shape {tuple(result)}")
    return tuple(result)


def _nearest(
    g: Emitter, x: Any, size: tuple[int, int], out: tuple[int, ...], coordinates: str, mode: str
) -> Any:
    """Whole rows and columns, chosen by index."""
    roundings: dict[str, Any] = {
        "round_prefer_floor": lambda v: np.ceil(v - 0.5),
        "round_prefer_ceil": lambda v: np.floor(v + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in roundings:
        raise g.fail(f"has the unknown mode {mode!r}")
    for axis, (length, wanted) in enumerate(zip(size, out, strict=True), start=2):
        if length == wanted:
            continue
        at = np.arange(wanted, dtype=np.float64)
        scale = wanted / length
        if coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            at = (at + 0.5) / scale - 0.5
        elif coordinates == "align_corners":
            at = at * (length - 1) / max(wanted - 1, 1)
        elif coordinates == "asymmetric":
            at = at / scale
        else:
            raise g.fail(f"has coordinates {coordinates!r}, which are not known")
        index = np.clip(roundings[mode](at), 0, length - 1).astype(np.int64)
        x = g.emit(op.take(x, constant(index), axis=axis))
    return x


def shape(g: Emitter, node: OnnxNode) -> Any:
    """Shape, which is known when the graph is read."""
    value = g.value(node.input(0))
    source = value.var if isinstance(value, Stored) else g.operand(value)
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return np.asarray(shape_of(source)[start:end], np.int64)


def qlinear_concat(g: Emitter, node: OnnxNode) -> Any:
    """QLinearConcat: the output's levels, then each tensor with its own."""
    parts = [
        g.operand(integers(g, *node.inputs[place : place + 3]))
        for place in range(2, len(node.inputs), 3)
    ]
    value = g.emit(op.concat(parts, int(node.attributes["axis"])))
    return g.quantize(value, levels_of(g, *node.inputs[:2]))


CONVERTERS = {
    "Identity": identity,
    "Dropout": identity,
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": slice_,
    "Gather": gather,
    "GatherND": gather_nd,
    "GatherElements": gather_elements,
    "Expand": expand,
    "Tile": tile,
    "Pad": pad,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Resize": resize,
    "Upsample": resize,
    "Shape": shape,
    "com.microsoft:QLinearConcat": qlinear_concat,
}
MOVES = (
    *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice"),
    *("Gather", "GatherND", "GatherElements", "Expand", "Tile", "Pad", "DepthToSpace"),
    *("SpaceToDepth", "Resize", "Upsample"),
)
RENAMING = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
