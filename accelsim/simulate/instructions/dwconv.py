"""dwconv: one product a tap, channel by channel, over whole arrays."""

from __future__ import annotations

import numpy as np

from accelsim.simulate import touches as parts
from accelsim.simulate.instructions.behaviour import (
    UNCLAMPED,
    Behaviour,
    Fields,
    Saturated,
    accumulators_written,
)
from accelsim.simulate.matrix import accumulate
from accelsim.simulate.memory import Memory
from accelsim.simulate.rows import Touch
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.windows import Taps, axes, windows
from accelsim.spec.config import DEPTHWISE_TAPS, Config


def _axes(v: Fields) -> tuple[Taps, Taps]:
    """Rows and columns of the windows: with `wide` every column of a group, else its first."""
    if v["wide"]:
        return axes(v, v["groups_w"] * DEPTHWISE_TAPS, 1)
    return axes(v, v["groups_w"], v["dilation_w"])


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Multiply every tap by its window elements."""
    lanes, blocks, groups = memory.lanes, v["blocks"], v["groups_w"]
    row_taps, column_taps = _axes(v)
    x = windows(memory, v, blocks, row_taps, column_taps, np.int32, v["input_zero_point"], 0)
    count = blocks * v["kernel_h"] * groups * DEPTHWISE_TAPS
    rows = memory.wgt[v["wgt_base"] : v["wgt_base"] + count].astype(np.int32)
    rows -= v["weight_zero_point"]
    tiles = rows.reshape(blocks, v["kernel_h"], groups, DEPTHWISE_TAPS, lanes)
    used = tiles if v["wide"] else tiles[:, :, :, :1]
    taps = used.reshape(blocks, v["kernel_h"], column_taps.taps, lanes)
    total = x[:, :, 0, 0] * taps[:, 0, 0]
    product = np.empty_like(total)
    for h in range(v["kernel_h"]):
        for w in range(column_taps.taps):
            if h or w:
                np.multiply(x[:, :, h, w], taps[:, h, w], out=product)
                total += product
    accumulate(memory, v, blocks, v["tail"], total.reshape(-1, blocks, lanes))
    return UNCLAMPED


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Windows, all three rows of every weight tile, and accumulators."""
    tiles = v["blocks"] * v["kernel_h"] * v["groups_w"]
    return (
        *parts.window(v, v["blocks"], *_axes(v)),
        parts.weights(v, tiles * DEPTHWISE_TAPS),
        *parts.accumulators(v, v["blocks"]),
    )


BEHAVIOUR = Behaviour(execute, touches, accumulators_written("blocks"))
