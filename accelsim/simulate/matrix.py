"""Values of the matrix engine: conv and dwconv, one whole-array product an instruction.

What comes in: memories and field values. What goes out: accumulator rows, exact modulo 2^32. Sums
go through float32 BLAS, in pieces for which every partial sum provably stays below 2^24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I32
from accelsim.simulate.memory import Memory
from accelsim.simulate.windows import axes, windows
from accelsim.spec.config import DEPTHWISE_TAPS

FLOAT32_EXACT = 1 << 24
BYTE_LIMIT = 255  # magnitude of a centred byte


def _accumulate(
    memory: Memory, v: Mapping[str, int], blocks: int, tail: int, out: NDArray[Any]
) -> None:
    """Write or add `out` (pixels, blocks, lanes) to the accumulators; lanes past tail become 0.

    `out` holds integers, as int32 or as float32 below 2^24.
    """
    pixels = v["out_h"] * v["out_w"]
    first = v["acc_base"]
    rows = memory.acc[v["acc_bank"], first : first + blocks * pixels]
    target = rows.reshape(blocks, pixels, memory.lanes)
    if v["accumulate"]:
        target += out.astype(np.int32, copy=False).transpose(1, 0, 2)
    else:
        target[...] = out.transpose(1, 0, 2)
    if tail < memory.lanes:
        target[-1, :, tail:] = 0


def conv_weights(memory: Memory, v: Mapping[str, int], k: int) -> NDArray[np.int8]:
    """Weight tiles as (k, out_channels) int8: a copy with output blocks side by side."""
    lanes, blocks = memory.lanes, v["out_blocks"]
    first = v["wgt_base"]
    rows = memory.wgt[first : first + blocks * k]
    if blocks == 1:
        return rows
    # One element a row of LANES bytes: transposing moves rows, not bytes.
    row = rows.view(f"V{lanes}").reshape(blocks, k)
    return np.ascontiguousarray(row.T).view(np.int8)


def conv(memory: Memory, v: Mapping[str, int]) -> None:
    """conv: acc[block, pixel, o] (+)= Σ (x - input_zero_point)(w - weight_zero_point)."""
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
    out = _product(left, right, x_limit, w_limit)
    _accumulate(memory, v, blocks_out, v["out_tail"], out.reshape(pixels, blocks_out, lanes))


def exact_product(
    left: NDArray[Any], right: NDArray[Any], left_limit: int, right_limit: int = BYTE_LIMIT
) -> I32:
    """left (m, k) times right (k, n), float32 integers, modulo 2^32.

    |left| ≤ left_limit ≤ 255 and |right| ≤ right_limit ≤ 255.
    """
    product: I32 = _product(left, right, left_limit, right_limit).astype(np.int32, copy=False)
    return product


def _product(
    left: NDArray[Any], right: NDArray[Any], left_limit: int, right_limit: int
) -> NDArray[Any]:
    """The same as float32 where that is exact; products too long for it are cut in two."""
    k = left.shape[1]
    if k * left_limit * right_limit < FLOAT32_EXACT or _bounded(right, left_limit):
        product: NDArray[Any] = left @ right
        return product
    half = k // 2
    total = exact_product(left[:, :half], right[:half], left_limit, right_limit)
    total += exact_product(left[:, half:], right[half:], left_limit, right_limit)
    return total


def _bounded(right: NDArray[Any], left_limit: int) -> bool:
    """Whether Σ|w|·left_limit stays below 2^24 in every column."""
    k = right.shape[0]
    if k * BYTE_LIMIT >= FLOAT32_EXACT:
        return False
    magnitude = np.ones(k, np.float32) @ np.abs(right)  # exact: below 2^24 itself
    return bool(float(magnitude.max()) * left_limit < FLOAT32_EXACT)


def dwconv(memory: Memory, v: Mapping[str, int]) -> None:
    """dwconv: one product a tap, channel by channel, over whole arrays."""
    lanes, blocks, groups = memory.lanes, v["blocks"], v["groups_w"]
    wide = v["wide"]
    columns = groups * DEPTHWISE_TAPS if wide else groups
    row_taps, column_taps = axes(v, columns, 1 if wide else v["dilation_w"])
    x = windows(memory, v, blocks, row_taps, column_taps, np.int32, v["input_zero_point"], 0)
    count = blocks * v["kernel_h"] * groups * DEPTHWISE_TAPS
    rows = memory.wgt[v["wgt_base"] : v["wgt_base"] + count].astype(np.int32)
    rows -= v["weight_zero_point"]
    tiles = rows.reshape(blocks, v["kernel_h"], groups, DEPTHWISE_TAPS, lanes)
    used = tiles if wide else tiles[:, :, :, :1]
    taps = used.reshape(blocks, v["kernel_h"], columns, lanes)
    total = x[:, :, 0, 0] * taps[:, 0, 0]
    product = np.empty_like(total)
    for h in range(v["kernel_h"]):
        for w in range(columns):
            if h or w:
                np.multiply(x[:, :, h, w], taps[:, h, w], out=product)
                total += product
    _accumulate(memory, v, blocks, v["tail"], total.reshape(-1, blocks, lanes))
