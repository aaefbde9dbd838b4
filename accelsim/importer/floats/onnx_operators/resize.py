"""Resize and Upsample, GridSample and AffineGrid.

What comes in: a node with constant sizes or scales. What goes out: an interpolation of PyTorch's
where it computes the same, else constant places or weights along each axis, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import linear
from accelsim.importer.floats.resize_axis import Axis, outside, places, weights

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode


@dataclass(frozen=True, slots=True)
class Asked:
    """What a node asks for."""

    mode: str
    coordinates: str
    rounding: str
    axes: tuple[Axis, ...]
    plain: bool  # neither smoothing, nor weights that leave out what is outside


def resize(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Resize of any axes; Upsample is its oldest form."""
    asked = _asked(graph, node)
    options = _interpolation(graph, node, asked)
    x = graph.node(node.input(0))
    if options is not None:
        return graph.net.call(node.name, nn.functional.interpolate, x, **options)
    changed = [k for k, one in enumerate(asked.axes) if one.before != one.after or one.moved]
    beyond = [outside(one) for one in asked.axes]
    value = float(node.attributes.get("extrapolation_value", 0.0))
    crops = asked.coordinates == "tf_crop_and_resize" and any(one.any() for one in beyond)
    for number, axis in enumerate(changed):
        last = number == len(changed) - 1 and not crops
        name = node.name if last else f"{node.name}/axis_{axis}"
        x = _along(graph, name, x, asked, axis)
    if not crops:
        return x
    hidden = np.zeros([one.after for one in asked.axes], bool)
    for axis, one in enumerate(beyond):
        hidden |= one.reshape([-1 if k == axis else 1 for k in range(len(beyond))])
    mask, filling = graph.net.constant(hidden), graph.net.constant(np.array(value, np.float32))
    return graph.net.call(node.name, torch.where, mask, filling, x)


def _asked(graph: OnnxGraph, node: OnnxNode) -> Asked:
    named, first = node.attributes, graph.model.opsets.get("", 13) < 11
    given = _given(graph, node, first)
    before, after = graph.shape(node.input(0)), graph.shape(node.outputs[0])
    mode = {"bilinear": "linear"}.get(
        str(named.get("mode", "nearest")), str(named.get("mode", "nearest"))
    )
    coordinates = str(
        named.get("coordinate_transformation_mode", "asymmetric" if first else "half_pixel")
    )
    rounding = str(named.get("nearest_mode", "simple" if first else "round_prefer_floor"))
    axes = tuple(int(axis) % len(before) for axis in named.get("axes", range(len(before))))
    factors = [large / small for small, large in zip(before, after, strict=True)]
    if given is not None:
        for axis, factor in zip(axes, given, strict=True):
            factors[axis] = float(factor)
    elif str(named.get("keep_aspect_ratio_policy", "stretch")) != "stretch":
        sizes = graph.numbers(node, 3) or ()
        pick = min if named["keep_aspect_ratio_policy"] == "not_larger" else max
        shared = pick(size / before[axis] for axis, size in zip(axes, sizes, strict=True))
        for axis in axes:
            factors[axis] = shared
    regions: list[tuple[float, float]] = [(0.0, 1.0)] * len(before)
    if coordinates == "tf_crop_and_resize":
        roi = graph.constant(node.input(1)) if node.input(1) else None
        if roi is None:
            raise graph.wrong(node, "computes the region that it crops")
        for place, axis in enumerate(axes):
            regions[axis] = (float(roi[place]), float(roi[place + len(axes)]))
    smooth = bool(named.get("antialias", 0))
    exclude = bool(named.get("exclude_outside", 0))
    cubic = float(named.get("cubic_coeff_a", -0.75))
    made = tuple(
        Axis(*numbers, coordinates, cubic, smooth, exclude)
        for numbers in zip(before, after, factors, regions, strict=True)
    )
    plain = not smooth and not exclude and cubic == -0.75
    return Asked(mode, coordinates, rounding, made, plain)


def _given(graph: OnnxGraph, node: OnnxNode, first: bool) -> Any:
    """Scales, where the node has them."""
    if "scales" in node.attributes:
        return node.attributes["scales"]
    name = node.input(1 if first else 2)
    values = graph.constant(name) if name else None
    if name and values is None:
        raise graph.wrong(node, "computes its scales")
    return values if values is not None and values.size else None


def _interpolation(graph: OnnxGraph, node: OnnxNode, asked: Asked) -> dict[str, Any] | None:
    """The arguments of PyTorch's function; None where it computes something else."""
    before, after = (tuple(getattr(one, end) for one in asked.axes) for end in ("before", "after"))
    factors = [large / small for small, large in zip(before, after, strict=True)]
    exact = np.allclose([one.factor for one in asked.axes], factors, rtol=1e-6)
    if len(before) != 4 or before[:2] != after[:2] or not exact or not asked.plain:
        return None
    if asked.mode == "nearest":
        whole = all(factor.is_integer() for factor in factors)
        if asked.coordinates == "half_pixel":
            fits = whole and asked.rounding.startswith("round_prefer_")
        elif asked.coordinates == "asymmetric":  # of halves this rounding is a floor, too
            small = asked.rounding == "round_prefer_floor" and max(factors) <= 2
            fits = whole and (asked.rounding in ("floor", "simple") or small)
        else:
            fits = False
        return {"size": after[2:], "mode": "nearest"} if fits else None
    kinds = {"linear": "bilinear", "cubic": "bicubic"}
    if asked.coordinates == "pytorch_half_pixel" and 1 in after[2:]:
        return None
    if asked.mode in kinds and asked.coordinates in (
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
    ):
        corners = asked.coordinates == "align_corners"
        return {"size": after[2:], "mode": kinds[asked.mode], "align_corners": corners}
    return None


def _along(graph: OnnxGraph, name: str, x: fx.Node, asked: Asked, axis: int) -> fx.Node:
    """One axis resized."""
    one, net, rank = asked.axes[axis], graph.net, len(asked.axes)
    if asked.mode == "nearest":
        index = net.constant(places(one, asked.rounding))
        return net.call(name, torch.index_select, x, axis, index)
    matrix = weights(one, asked.mode)
    order = [k for k in range(rank) if k != axis] + [axis]
    back = tuple(int(k) for k in np.argsort(order))
    if axis == rank - 1:
        return net.module(name, linear(matrix, None), x)
    turned = net.call(f"{name}/turn", torch.permute, x, tuple(order))
    mixed = net.module(f"{name}/weights", linear(matrix, None), turned)
    return net.call(name, torch.permute, mixed, back)


def grid_sample(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GridSample of two axes."""
    named = node.attributes
    modes = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest"}
    modes |= {"cubic": "bicubic", "bicubic": "bicubic"}
    mode = modes.get(str(named.get("mode", "linear")))
    rank = len(graph.shape(node.input(0)))
    if mode is None or rank not in (4, 5) or (rank == 5 and mode == "bicubic"):
        raise graph.wrong(node, f"samples {rank - 2} axes by '{named.get('mode')}'")
    return graph.net.call(
        node.name,
        nn.functional.grid_sample,
        graph.node(node.input(0)),
        graph.node(node.input(1)),
        mode=mode,
        padding_mode=str(named.get("padding_mode", "zeros")),
        align_corners=bool(named.get("align_corners", 0)),
    )


def affine_grid(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """AffineGrid of a constant size."""
    size = graph.numbers(node, 1)
    corners = bool(node.attributes.get("align_corners", 0))
    theta = graph.node(node.input(0))
    return graph.net.call(node.name, nn.functional.affine_grid, theta, size, align_corners=corners)


RULES: dict[str, Any] = {
    "Resize": resize,
    "Upsample": resize,
    "GridSample": grid_sample,
    "AffineGrid": affine_grid,
}
