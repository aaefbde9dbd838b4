"""Tensors in DRAM as regular grids, boxes of them, and their copies to and from the chip.

What comes in: a `View`, which is a tensor or a regular part of one, and a `Box` of it. What goes
out: steps that load or store the box as a dense (h, w, blocks) buffer. It must not know operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from accelsim.artifacts import Assemble, Step, TensorExtent, Transpose
from accelsim.errors import ModelError
from accelsim.schedule.limits import MAX_COUNT, MAX_DRAM_STRIDE, MAX_RUN
from accelsim.schedule.step import make_step
from accelsim.spec.config import Config

Span = tuple[int, int]
Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class View:
    """Pixels (images, h, w) of channel blocks in DRAM; a pixel's blocks are contiguous beats.

    Strides are beats from one image, row or column to the next; 0 repeats the same.
    """

    base: int  # base register number
    first: int  # beat of block 0 of pixel (0, 0, 0)
    shape: Grid
    strides: Grid
    channels: int
    blocks: int

    def part(self, rows: Span, cols: Span) -> View:
        """The rectangle of every image."""
        first = self.first + rows[0] * self.strides[1] + cols[0] * self.strides[2]
        shape = (self.shape[0], rows[1] - rows[0], cols[1] - cols[0])
        return replace(self, first=first, shape=shape)

    def every(self, origin: Grid, step: Grid, shape: Grid) -> View:
        """Pixels origin + index·step, axis by axis."""
        first = self.first + sum(o * s for o, s in zip(origin, self.strides, strict=True))
        n, h, w = (a * b for a, b in zip(step, self.strides, strict=True))
        return replace(self, first=first, shape=shape, strides=(n, h, w))

    def channel_blocks(self, blocks: Span, lanes: int) -> View:
        """The same pixels with some of the channel blocks only."""
        channels = min(self.channels, blocks[1] * lanes) - blocks[0] * lanes
        return replace(
            self, first=self.first + blocks[0], channels=channels, blocks=blocks[1] - blocks[0]
        )


def tensor_view(tensor: TensorExtent, lanes: int) -> View:
    """All of a tensor."""
    n, h, w, c = tensor.shape
    blocks = tensor.blocks(lanes)
    strides = (h * w * blocks, w * blocks, blocks)
    return View(tensor.base, tensor.offset_bytes // lanes, (n, h, w), strides, c, blocks)


def seen_views(
    tensors: Sequence[TensorExtent], compute: Assemble | Transpose, lanes: int
) -> list[View]:
    """All of an operator's inputs and its output, in the shapes in which it sees them."""
    shapes = compute.seen or [tensor.shape for tensor in tensors]
    return [
        tensor_view(replace(tensor, shape=shape), lanes)
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]


def merged(*views: View) -> tuple[View, ...]:
    """Views of one shape with as many pixels in a row as all of their strides allow."""
    n, h, w = views[0].shape
    if n == 1 or h == 1 or all(v.strides[0] == h * v.strides[1] for v in views):
        views = tuple(
            replace(v, shape=(1, n * h, w), strides=(0, v.strides[1 if h > 1 else 0], v.strides[2]))
            for v in views
        )
        n, h = 1, n * h
    if n == 1 and (h == 1 or w == 1 or all(v.strides[1] == w * v.strides[2] for v in views)):
        views = tuple(
            replace(v, shape=(1, 1, h * w), strides=(0, 0, v.strides[2 if w > 1 else 1]))
            for v in views
        )
    return views


@dataclass(frozen=True, slots=True)
class Box:
    """A piece of a view: image, rows, columns, channel blocks, each [start, end)."""

    image: int
    rows: Span
    cols: Span
    blocks: Span

    @property
    def shape(self) -> Grid:
        """(height, width, blocks)."""
        return (
            self.rows[1] - self.rows[0],
            self.cols[1] - self.cols[0],
            self.blocks[1] - self.blocks[0],
        )

    @property
    def size(self) -> int:
        """Activation rows that the piece takes on chip."""
        h, w, b = self.shape
        return h * w * b


def copy_values(
    view: View, box: Box, local_base: int, rows_apart: bool = False
) -> Mapping[str, int]:
    """Fields of a load or store between DRAM and a dense (h, w, blocks) buffer on chip.

    The longest contiguous runs are formed: pixels that lie together become one run, with
    `rows_apart` those of a row.
    """
    h, w, b = box.shape
    corner = (box.image, box.rows[0], box.cols[0])
    first = view.first + box.blocks[0]
    first += sum(i * s for i, s in zip(corner, view.strides, strict=True))
    loops = [(b, 1)]
    for axis, count, stride in ((2, w, view.strides[2]), (1, h, view.strides[1])):
        inner, step = loops[-1]
        limit = MAX_RUN if len(loops) == 1 else MAX_COUNT
        merges = stride == inner * step and inner * count <= limit and axis > rows_apart
        if count > 1 and merges:
            loops[-1] = (inner * count, step)
        elif count > 1:
            loops.append((count, stride))
    while len(loops) < 3:
        loops.append((1, 0))
    return {
        "base_reg": view.base,
        "dram_offset": first,
        **{f"count{i}": count for i, (count, _) in enumerate(loops)},
        "dram_stride1": loops[1][1],
        "dram_stride2": loops[2][1],
        "local_base": local_base,
        "local_stride0": 1,
        "local_stride1": loops[0][0] if loops[1][0] > 1 else 0,
        "local_stride2": loops[0][0] * loops[1][0] if loops[2][0] > 1 else 0,
    }


def load_box(config: Config, view: View, box: Box, base: int, layer: int, tile: int) -> Step:
    """Load a piece of a view to activation memory as dense (h, w, blocks)."""
    values = {"memory": 0, **copy_values(view, box, base)}
    return make_step(config, "load", values, layer, tile)


def store_box(
    config: Config,
    view: View,
    box: Box,
    base: int,
    layer: int,
    tile: int,
    rows_apart: bool = False,
) -> Step:
    """Store a dense (h, w, blocks) buffer to its place in a view."""
    return make_step(config, "store", copy_values(view, box, base, rows_apart), layer, tile)


def dense(prefix: str, shape: Grid) -> dict[str, int]:
    """Row, column and block strides of a dense (h, w, blocks) buffer, named `prefix_…`."""
    _, w, b = shape
    return {
        f"{prefix}_row_stride": w * b,
        f"{prefix}_col_stride": b,
        f"{prefix}_block_stride": 1,
    }


def spans(total: int, step: int) -> list[Span]:
    """[0, total) cut into pieces of `step`, the last one shorter."""
    return [(i, min(i + step, total)) for i in range(0, total, step)]


def tail(channels: int, blocks: Span, lanes: int) -> int:
    """Valid lanes in the last block of a block range."""
    return min(lanes, channels - (blocks[1] - 1) * lanes)


def check_strides(name: str, *views: View) -> None:
    """Raise ModelError where pixels of a view lie further apart than a DRAM stride spans."""
    for view in views:
        for count, stride in zip(view.shape[1:], view.strides[1:], strict=True):
            if count > 1 and stride > MAX_DRAM_STRIDE:
                raise ModelError(
                    f"layer {name}: elements lie {stride} beats apart, the limit of the NPU is "
                    f"{MAX_DRAM_STRIDE}; use smaller images"
                )
