"""Which axis of a tensor is n, h, w and c: the one place that knows how ranks lie in the NPU.

What comes in: shapes of the graph. What goes out: a layout, one letter an axis ("nchw", "nc"), and
shapes as (n, h, w, c). It must not know operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelsim.artifacts import Shape4

AXES = "nhwc"
_BY_RANK = {2: "nc", 4: "nchw"}


def layout_of(shape: Sequence[int]) -> str:
    """The layout of a tensor of the graph; "" for a rank that the NPU does not have."""
    return _BY_RANK.get(len(shape), "")


def nhwc(shape: Sequence[int], layout: str) -> Shape4:
    """The shape as (n, h, w, c); an axis that the layout lacks is 1."""
    extents = dict(zip(layout, shape, strict=True))
    n, h, w, c = (int(extents.get(axis, 1)) for axis in AXES)
    return n, h, w, c
