"""Which axis of a tensor is n, h, w and c: the one place that knows how ranks lie in the NPU.

What comes in: a graph. What goes out: the layout of each of its tensors, one letter an axis such
as "nchw", and shapes as (n, h, w, c). It must not know how operators compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accelsim.artifacts import Shape4
from accelsim.legalize.graph import Graph, static_shape
from accelsim.quantize.layouts import variable_axes

AXES = "nhwc"
_CHANNELS_SECOND = {2: "nc", 3: "ncw", 4: "nchw"}
_CHANNELS_LAST = {1: "c", 2: "nc", 3: "nwc", 4: "nhwc"}


def find_layouts(graph: Graph) -> Mapping[Any, str]:
    """The layout of every variable; "" for a rank that the NPU does not have."""
    shapes = {var: static_shape(var, str(var.name)) for var in graph.parameters}
    shapes.update((node.var, node.shape) for node in graph.nodes)
    axes = variable_axes(graph.function)
    return {var: layout_of(len(shape), axes[var]) for var, shape in shapes.items()}


def layout_of(rank: int, channels: int) -> str:
    """The layout of a tensor whose axis `channels` goes into the lanes."""
    last = channels == rank - 1
    return (_CHANNELS_LAST if last else _CHANNELS_SECOND).get(rank, "")


def nhwc(shape: Sequence[int], layout: str) -> Shape4:
    """The shape as (n, h, w, c); an axis that the layout lacks is 1."""
    extents = dict(zip(layout, shape, strict=True))
    n, h, w, c = (int(extents.get(axis, 1)) for axis in AXES)
    return n, h, w, c
