"""What conv and dwconv share: accumulators, and exact products through float32 BLAS.

What comes in: memories, field values and matrices of small integers. What goes out: accumulator
rows, exact modulo 2^32. Sums go through BLAS in pieces of which every partial sum provably stays
below 2^24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I32
from accelsim.simulate.memory import Memory

FLOAT32_EXACT = 1 << 24
BYTE_LIMIT = 255  # magnitude of a centred byte


def accumulate(
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


def exact_product(
    left: NDArray[Any], right: NDArray[Any], left_limit: int, right_limit: int = BYTE_LIMIT
) -> I32:
    """left (m, k) times right (k, n), float32 integers, modulo 2^32.

    |left| ≤ left_limit ≤ 255 and |right| ≤ right_limit ≤ 255.
    """
    result: I32 = product(left, right, left_limit, right_limit).astype(np.int32, copy=False)
    return result


def product(
    left: NDArray[Any], right: NDArray[Any], left_limit: int, right_limit: int
) -> NDArray[Any]:
    """The same as float32 where that is exact; products too long for it are cut in two."""
    k = left.shape[1]
    if k * left_limit * right_limit < FLOAT32_EXACT or _bounded(right, left_limit):
        whole: NDArray[Any] = left @ right
        return whole
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
