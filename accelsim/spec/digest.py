"""The digest of what an instruction wrote: a sum over final row contents, weighted by address.

Order does not matter, so engines may write in any order. A row is taken as little-endian 32-bit
words; word j of row a counts word · weight(a, j), all modulo 2^64, with

    weight(a, j) = ((a·64 + j + 1) · 0x9E3779B97F4A7C15) | 1        (modulo 2^64)

(the multiplier is 2^64 divided by the golden ratio, the usual constant of Fibonacci hashing).

Row addresses: activation and weight rows by their row number; parameter and table memory by their
beat number, LANES bytes a beat; an accumulator row by bank·2^20 + row, LANES words. A store counts
bus beats by their beat number from the base register (dram_offset + …), base_reg·2^40 added.
Only the final value of a row counts: a conv or dwconv adds a row at its last weight tile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 0x9E3779B97F4A7C15
WORDS_PER_ROW = 64  # more than any row has
ACC_BANK_SHIFT = 20
DRAM_BASE_SHIFT = 40


def digest(addresses: NDArray[np.uint64], rows: NDArray[np.generic]) -> int:
    """Digest of `rows` (n, bytes or words a row) written at `addresses` (n,), modulo 2^64."""
    if len(rows) == 0:
        return 0
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(len(rows), -1).astype(np.uint64)
    column = np.arange(1, words.shape[1] + 1, dtype=np.uint64)
    place = addresses.astype(np.uint64)[:, None] * np.uint64(WORDS_PER_ROW) + column
    with np.errstate(over="ignore"):
        weights = (place * np.uint64(MULTIPLIER)) | np.uint64(1)
        return int((words * weights).sum(dtype=np.uint64))
