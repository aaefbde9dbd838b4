"""conv: acc[block, pixel, o] (+)= Σ (x - input_zero_point)(w - weight_zero_point).

One whole-array product an instruction, over windows as they are laid out in memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate import touches as parts
from accelsim.simulate.instructions.behaviour import (
    UNCLAMPED,
    Behaviour,
    Fields,
    Saturated,
    accumulators_written,
)
from accelsim.simulate.matrix import accumulate, product
from accelsim.simulate.memory import Memory
from accelsim.simulate.rows import Touch
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.windows import axes, windows
from accelsim.spec.config import Config


def conv_weights(memory: Memory, v: Fields, k: int) -> NDArray[np.int8]:
    """Weight tiles as (k, out_channels) int8: a copy with output blocks side by side."""
    lanes, blocks = memory.lanes, v["out_blocks"]
    first = v["wgt_base"]
    rows = memory.wgt[first : first + blocks * k]
    if v["transposed"]:
        tiles = rows.reshape(blocks, k // lanes, lanes, lanes)
        return tiles.transpose(1, 3, 0, 2).reshape(k, blocks * lanes)
    if blocks == 1:
        return rows
    # One element a row of LANES bytes: transposing moves rows, not bytes.
    row = rows.view(f"V{lanes}").reshape(blocks, k)
    return np.ascontiguousarray(row.T).view(np.int8)


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Multiply all pixels by all tiles."""
    lanes, pixels = memory.lanes, v["out_h"] * v["out_w"]
    blocks_in, blocks_out = v["in_blocks"], v["out_blocks"]
    k = v["kernel_h"] * v["kernel_w"] * blocks_in * lanes
    raw = conv_weights(memory, v, k)
    row_taps, column_taps = axes(v, v["kernel_w"], v["dilation_w"])
    x = windows(memory, v, blocks_in, row_taps, column_taps, np.float32, v["input_zero_point"], 0)
    left = x.reshape(pixels, k)
    right = raw.astype(np.float32)
    if v["weight_zero_point"]:
        right -= np.float32(v["weight_zero_point"])
    if v["in_tail"] < lanes:
        right.reshape(-1, blocks_in, lanes, right.shape[1])[:, -1, v["in_tail"] :] = 0
    x_limit = max(127 - v["input_zero_point"], 128 + v["input_zero_point"])
    w_limit = max(127 - v["weight_zero_point"], 128 + v["weight_zero_point"])
    out = product(left, right, x_limit, w_limit)
    accumulate(memory, v, blocks_out, v["out_tail"], out.reshape(pixels, blocks_out, lanes))
    return UNCLAMPED


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Windows, whole weight tiles and accumulators."""
    tiles = v["out_blocks"] * v["kernel_h"] * v["kernel_w"] * v["in_blocks"]
    return (
        *parts.window(v, v["in_blocks"], *axes(v, v["kernel_w"], v["dilation_w"])),
        parts.weights(v, tiles * config.lanes),
        *parts.accumulators(v, v["out_blocks"]),
    )


BEHAVIOUR = Behaviour(execute, touches, accumulators_written("out_blocks"))
