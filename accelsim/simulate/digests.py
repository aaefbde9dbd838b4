"""Digests of what an instruction wrote, computed without a product for every word.

What comes in: rows, the offset of their addresses, and their contents. What goes out: the 64-bit
digest that `accelsim.spec.digest` defines; its formula is rearranged here as below.

The weight of word j in row a is p | 1 with p = (64a + j + 1)·M. M is odd, so p is even where j is
odd, and there p | 1 = p + 1: digest = M·Σ w·(64a + j + 1) + Σ over odd j of w, and column sums
of w and of a·w suffice. Both come from one float64 product of 16-bit halves of the words, exact
because a counts from the lowest row.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.rows import Rows
from accelsim.spec.digest import MULTIPLIER, WORDS_PER_ROW

MASK = (1 << 64) - 1
HALF = 1 << 16
FLOAT64_EXACT = 1 << 53


@lru_cache(maxsize=16)
def factors(halves: int) -> NDArray[np.uint64]:
    """(2, halves): what a unit in a column of 16-bit halves adds, at address 0 and an address."""
    table = np.zeros((2, halves), np.uint64)
    for h in range(halves):
        word, shift = h // 2, h % 2 * 16
        table[0, h] = ((MULTIPLIER * (word + 1) + word % 2) << shift) & MASK
        table[1, h] = ((MULTIPLIER * WORDS_PER_ROW) << shift) & MASK
    return table


def digest_rows(rows: Rows, offset: int, contents: NDArray[np.generic]) -> int:
    """Digest of `contents` (n rows of bytes or int32 words) at addresses rows + offset."""
    if isinstance(rows, slice):
        first, count = rows.start, rows.stop - rows.start
        distance = _distances(count)
    else:
        first, count = int(rows.min()), len(rows)
        distance = (rows - first).astype(np.float64)
    if float(distance.max()) * count * HALF >= FLOAT64_EXACT:  # never a single row
        half = count // 2
        index = np.arange(first, first + count) if isinstance(rows, slice) else rows
        data = contents.reshape(count, -1)
        top = digest_rows(index[:half], offset, data[:half])
        return (top + digest_rows(index[half:], offset, data[half:])) & MASK
    halves = np.ascontiguousarray(contents).view(np.uint16).reshape(count, -1).astype(np.float64)
    left = np.empty((2, count))
    left[0] = 1
    left[1] = distance
    sums = (left @ halves).astype(np.int64).view(np.uint64)
    sums[1] += np.uint64((first + offset) & MASK) * sums[0]
    return int((sums * factors(halves.shape[1])).sum())


@lru_cache(maxsize=64)
def _distances(count: int) -> NDArray[np.float64]:
    return np.arange(count, dtype=np.float64)
