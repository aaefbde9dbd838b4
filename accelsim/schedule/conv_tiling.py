"""Choice of tile sizes of a convolution: what fits, and what is estimated to be fastest.

What comes in: sizes of one layer and a configuration. What goes out: a `Tiling`. The estimate is
the larger of the matrix engine's, the vector engine's and the bus's cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from accelsim.errors import ModelError
from accelsim.schedule.limits import MAX_COUNT, largest_kernel, largest_tile
from accelsim.schedule.window import Axis, tile_sizes
from accelsim.spec.config import DEPTHWISE_TAPS, Config

BURST_CYCLES = 12  # bus cycles that a short burst costs at least, latency over bursts in flight
INSTRUCTION_CYCLES = 24  # start, fill and drain of an instruction
BUS_WEIGHT = 0.2  # short bursts cost simulation time even where they hide behind the matrix engine
PREFERENCE_CYCLES = 150  # what one instruction less is worth: simulation time follows their number


@dataclass(frozen=True, slots=True)
class ConvShape:
    """Sizes of a convolution in pixels and channel blocks."""

    images: int
    rows: Axis
    cols: Axis
    kernel: tuple[int, int]
    in_blocks: int
    out_blocks: int
    depthwise: bool = False
    par_rows: int = 2  # parameter rows of a channel block


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tile sizes: output rows, columns, blocks; input blocks; kernel rows and columns a pass."""

    rows: int
    cols: int
    out_blocks: int
    in_blocks: int
    kernel: tuple[int, int]
    blocks_outer: bool  # output blocks outside the spatial loop: weights stay, inputs reload
    whole_input: bool  # all input blocks of a spatial tile lie on chip at once


def choose(shape: ConvShape, config: Config, name: str) -> Tiling:
    """The tiling with the smallest estimate. Raises ModelError where nothing fits."""
    for kernel in _kernel_pieces(shape):
        best = _best(shape, config, kernel)
        if best is not None:
            return best
    raise ModelError(
        f"layer {name}: not even one output pixel of one channel block fits into the buffers of "
        f"configuration {config.name}; enlarge act_bank_rows, wgt_rows or acc_rows"
    )


def _kernel_pieces(shape: ConvShape) -> list[tuple[int, int]]:
    kernel_h, kernel_w = shape.kernel
    rows = [k for k in tile_sizes(kernel_h) if k <= largest_kernel(shape.rows)]
    cols = [k for k in tile_sizes(kernel_w) if k <= largest_kernel(shape.cols)]
    pieces = [(h, cols[0]) for h in rows]
    return pieces + [(1, w) for w in cols[1:]]


def _best(shape: ConvShape, config: Config, kernel: tuple[int, int]) -> Tiling | None:
    """Cheapest feasible tiling for one kernel piece; whole output rows are preferred."""
    best: tuple[float, Tiling] | None = None
    for cols in tile_sizes(shape.cols.out):
        if cols > largest_tile(shape.cols) or shape.cols.longest(cols, kernel[1]) > MAX_COUNT:
            continue
        found = _grid(shape, config, kernel, cols)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
        if best is not None and cols < shape.cols.out and cols * 2 < best[1].cols:
            break
    return best[1] if best else None


def _grid(
    shape: ConvShape, config: Config, kernel: tuple[int, int], cols: int
) -> tuple[float, Tiling] | None:
    """Evaluate all row and block tile sizes at once for one column tile size."""
    rows_list = [r for r in tile_sizes(shape.rows.out) if r <= largest_tile(shape.rows)]
    out_list = [b for b in tile_sizes(shape.out_blocks) if b <= MAX_COUNT]
    in_list = [1] if shape.depthwise else tile_sizes(shape.in_blocks)
    grid = np.array(list(product(rows_list, out_list, in_list)), dtype=np.int64)
    rows, out_b, in_b = grid.T
    if shape.depthwise:
        in_b = out_b
    in_h = np.minimum(
        shape.rows.size, (rows - 1) * shape.rows.stride + 1 + (kernel[0] - 1) * shape.rows.dilation
    )
    in_w = shape.cols.longest(cols, kernel[1])
    taps = kernel[0] * kernel[1]
    pixels = rows * cols
    slot = config.act_rows // 4
    if shape.depthwise:
        weight_rows = out_b * taps * DEPTHWISE_TAPS
    else:
        weight_rows = out_b * in_b * taps * config.lanes
    fits = (
        (in_h <= MAX_COUNT)
        & (in_b <= MAX_COUNT)
        & (in_h * in_w * in_b <= slot)
        & (pixels * out_b <= slot)
        & (pixels * out_b <= config.acc_rows)
        & (weight_rows <= config.wgt_rows // 2)
        & (shape.par_rows * out_b <= config.par_rows // 2)
    )
    if not fits.any():
        return None
    one_pass = kernel == shape.kernel
    in_total = out_b if shape.depthwise else np.full_like(out_b, shape.in_blocks)
    whole = one_pass & (in_h * in_w * in_total <= slot)
    spatial = shape.images * -(-shape.rows.out // rows) * -(-shape.cols.out // cols)
    groups = -(-shape.out_blocks // out_b)
    passes = -(-shape.kernel[0] // kernel[0]) * -(-shape.kernel[1] // kernel[1])
    depth = passes * (1 if shape.depthwise else -(-shape.in_blocks // in_b))
    instructions = spatial * groups * depth
    tiles = out_b * taps * (1 if shape.depthwise else in_b)
    if shape.depthwise:
        tiles = tiles * 0.4  # three taps a cycle, less the ends of rows
    matrix = instructions * (tiles * np.maximum(pixels, config.lanes) + INSTRUCTION_CYCLES)
    vector = spatial * groups * (out_b * (pixels + 2) + INSTRUCTION_CYCLES)
    results = []
    for outer in (False, True):
        stay = (depth <= 2) & (outer | (groups * depth <= 2))
        weight_loads = np.where(stay, groups * depth, instructions)
        if shape.depthwise:
            input_loads = spatial * groups
            input_size = in_h * in_w * in_b
            run = np.where(in_b == shape.in_blocks, in_h * in_w * in_b, in_b)
        else:
            again = groups if outer else 1
            input_loads = np.where(whole, spatial * again, instructions)
            input_size = in_h * in_w * np.where(whole, shape.in_blocks, in_b)
            run = np.where(whole | (in_b == shape.in_blocks), in_w * shape.in_blocks, in_b)
        beats = input_loads * input_size + weight_loads * weight_rows
        out_run = np.where(out_b == shape.out_blocks, cols * out_b, out_b)
        written = spatial * groups * pixels * out_b
        bursts = input_loads * input_size / run + written / out_run
        bus = np.maximum(beats + written, bursts * BURST_CYCLES)
        first = input_size + weight_rows  # nothing overlaps the first loads
        cost = np.maximum(np.maximum(matrix, vector), bus) + BUS_WEIGHT * bus + first
        cost = cost + PREFERENCE_CYCLES * (instructions + spatial * groups)
        cost = np.where(fits, cost, np.inf)
        at = int(np.argmin(cost))
        results.append((float(cost[at]), _tiling(grid[at], cols, kernel, outer, whole[at], shape)))
    return min(results, key=lambda item: item[0])


def _tiling(
    row: np.ndarray,
    cols: int,
    kernel: tuple[int, int],
    outer: bool,
    whole: np.bool_,
    shape: ConvShape,
) -> Tiling:
    rows, out_b, in_b = (int(x) for x in row)
    return Tiling(rows, cols, out_b, out_b if shape.depthwise else in_b, kernel, outer, bool(whole))
