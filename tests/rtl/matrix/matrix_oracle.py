"""What conv and dwconv leave in the accumulators, written from the instruction table's text.

What comes in: field values and memory contents. What goes out: accumulator rows. It shares no code
with the simulator and knows nothing of cycles.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

I8 = NDArray[np.int8]
I64 = NDArray[np.int64]
Values = Mapping[str, int]


def input_rows(v: Values, act: I8, h: int, w: int, block: int) -> I64 | None:
    """LANES elements at an input position minus the zero point; None where it is padding."""
    if not (0 <= h < v["in_h"] and 0 <= w < v["in_w"]):
        return None
    row = (
        v["in_base"]
        + h * v["in_row_stride"]
        + w * v["in_col_stride"]
        + block * v["in_block_stride"]
    )
    result: I64 = act[row].astype(np.int64) - v["input_zero_point"]
    return result


def update(v: Values, acc: I64, block: int, sums: I64, tail: int, last: bool) -> None:
    """Adds the sums (pixels, LANES) of a block to the accumulators, or replaces them."""
    pixels = v["out_h"] * v["out_w"]
    rows = v["acc_base"] + block * pixels + np.arange(pixels)
    old = acc[v["acc_bank"], rows] if v["accumulate"] else 0
    new = (old + sums + (1 << 31)) % (1 << 32) - (1 << 31)
    if last:
        new[:, tail:] = 0
    acc[v["acc_bank"], rows] = new


def conv(v: Values, act: I8, wgt: I8, acc: I64) -> None:
    """Changes `acc` (bank, row, LANES) as a conv does."""
    lanes = act.shape[1]
    pixels = v["out_h"] * v["out_w"]
    tile = 0
    for o in range(v["out_blocks"]):
        sums = np.zeros((pixels, lanes), np.int64)
        for kh in range(v["kernel_h"]):
            for kw in range(v["kernel_w"]):
                for i in range(v["in_blocks"]):
                    first = v["wgt_base"] + tile * lanes
                    weight = wgt[first : first + lanes].astype(np.int64) - v["weight_zero_point"]
                    if v["transposed"]:  # rows are output lanes
                        weight = weight.T
                    used = v["in_tail"] if i == v["in_blocks"] - 1 else lanes
                    tile += 1
                    for pixel in range(pixels):
                        oh, ow = divmod(pixel, v["out_w"])
                        h = v["origin_h"] + oh * v["stride_h"] + kh * v["dilation_h"]
                        w = v["origin_w"] + ow * v["stride_w"] + kw * v["dilation_w"]
                        x = input_rows(v, act, h, w, i)
                        if x is not None:
                            sums[pixel] += x[:used] @ weight[:used]
        update(v, acc, o, sums, v["out_tail"], o == v["out_blocks"] - 1)


def dwconv(v: Values, act: I8, wgt: I8, acc: I64) -> None:
    """Changes `acc` (bank, row, LANES) as a dwconv does."""
    lanes = act.shape[1]
    pixels = v["out_h"] * v["out_w"]
    tile = 0
    for c in range(v["blocks"]):
        sums = np.zeros((pixels, lanes), np.int64)
        for kh in range(v["kernel_h"]):
            for g in range(v["groups_w"]):
                for tap in range(3 if v["wide"] else 1):
                    row = wgt[v["wgt_base"] + 3 * tile + tap].astype(np.int64)
                    weight = row - v["weight_zero_point"]
                    column = 3 * g + tap if v["wide"] else g * v["dilation_w"]
                    for pixel in range(pixels):
                        oh, ow = divmod(pixel, v["out_w"])
                        h = v["origin_h"] + oh * v["stride_h"] + kh * v["dilation_h"]
                        w = v["origin_w"] + ow * v["stride_w"] + column
                        x = input_rows(v, act, h, w, c)
                        if x is not None:
                            sums[pixel] += x * weight
                tile += 1
        update(v, acc, c, sums, v["tail"], c == v["blocks"] - 1)
