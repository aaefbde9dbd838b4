"""Operators on the height and width of images: resizes, and channels that become pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, constant, ints, shape_of

op = relax.op


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


CONVERTERS = {
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Resize": resize,
    "Upsample": resize,
}
MOVES = tuple(CONVERTERS)
