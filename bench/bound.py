"""The fewest cycles in which one depthwise layer can go from memory to memory.

What comes in: a 3×3 layer of stride 1 and a configuration. What goes out: cycles that no order of
the work can beat, since nothing overlaps the first load and the last store of a layer on its own,
and the matrix engine streams every column of every row. Sizes of the buffers are left out.
"""

from __future__ import annotations

from accelsim.simulate.machine import DEFAULT_LATENCY
from accelsim.spec.config import DEPTHWISE_TAPS, PAR_BEATS, Config
from accelsim.spec.durations import DISPATCH_CYCLES, MATRIX_LATENCY, VECTOR_LATENCY
from accelsim.spec.isa import INSTRUCTION_BYTES
from bench.shapes import Shape

PARAMETER_ROWS = 2  # of a channel block in mode fp32
TRANSFER = DEFAULT_LATENCY + 1  # cycles of a load or store beyond its beats


def least_cycles(shape: Shape, config: Config) -> int:
    """Whichever is more: what the engines do one after another, or what the bus carries."""
    lanes, size, out = config.lanes, shape.size, shape.out_size
    blocks = -(-shape.in_channels // lanes)
    fetch = INSTRUCTION_BYTES // lanes
    start = 1 + DEFAULT_LATENCY + fetch + DISPATCH_CYCLES + 1
    weights = shape.kernel * DEPTHWISE_TAPS
    tiles, columns = blocks * shape.kernel, out + DEPTHWISE_TAPS - 1
    matrix = DEPTHWISE_TAPS + tiles * out * columns + MATRIX_LATENCY

    def wasted(rows: int) -> int:
        """Cycles that an instruction of few columns waits for its weight tiles."""
        return shape.kernel * max(0, lanes - rows * columns)

    first = min(
        wasted(rows)
        + TRANSFER
        + _moved(size * min(rows + shape.kernel - 1 - shape.padding, size), blocks, config)
        for rows in range(1, out + 1)
    )
    last = min(
        wasted(rows)
        + rows * out
        + PARAMETER_ROWS
        + VECTOR_LATENCY
        + TRANSFER
        + _moved(rows * out, blocks, config)
        for rows in range(1, out + 1)
    )
    pixels = size * size + out * out
    bus = blocks * (pixels + weights + PARAMETER_ROWS * PAR_BEATS)
    return start + max(TRANSFER + weights + first + matrix + last, bus)


def _moved(pixels: int, blocks: int, config: Config) -> int:
    """Cycles of some pixels of one block at least: bursts of a beat, or all blocks in one run."""
    return min(pixels * blocks, pixels * TRANSFER // config.read_outstanding)
