"""Digests of what an instruction wrote, computed without a product for every word.

What comes in: memories, field values and the name of the instruction. What goes out: the 64-bit
digest that `accelsim.spec.digest` defines; its formula is rearranged here as below.

The weight of word j in row a is p | 1 with p = (64a + j + 1)·M. M is odd, so p is even where j is
odd, and there p | 1 = p + 1: digest = M·Σ w·(64a + j + 1) + Σ over odd j of w, and column sums
of w and of a·w suffice. Both come from one float64 product of 16-bit halves of the words, exact
because a counts from the lowest row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.footprint import Dimensions, Rows, rows_of
from accelsim.simulate.memory import Memory, rows_view
from accelsim.simulate.transfer import COUNTS, dram_rows, local_rows
from accelsim.spec.digest import ACC_BANK_SHIFT, DRAM_BASE_SHIFT, MULTIPLIER, WORDS_PER_ROW

MASK = (1 << 64) - 1
HALF = 1 << 16
FLOAT64_EXACT = 1 << 53
Fields = Mapping[str, int]
Written = tuple[Rows, int, NDArray[np.generic]]  # rows, offset of their addresses, contents


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


def _load(memory: Memory, v: Fields) -> Written:
    dimensions = tuple((v[c], v[f"local_stride{2 - i}"]) for i, c in enumerate(COUNTS))
    return rows_of(v["local_base"], dimensions), 0, local_rows(memory, v)


def _store(memory: Memory, v: Fields) -> Written:
    strides = (v["dram_stride2"], v["dram_stride1"], 1)
    dimensions = tuple((v[c], s) for c, s in zip(COUNTS, strides, strict=True))
    beats = rows_of(v["dram_offset"], dimensions)
    return beats, v["base_reg"] << DRAM_BASE_SHIFT, dram_rows(memory, v)


def _accumulators(blocks: str) -> Callable[[Memory, Fields], Written]:
    def written(memory: Memory, v: Fields) -> Written:
        first, count = v["acc_base"], v[blocks] * v["out_h"] * v["out_w"]
        rows = slice(first, first + count)
        return rows, v["acc_bank"] << ACC_BANK_SHIFT, memory.acc[v["acc_bank"], rows]

    return written


def _activations(memory: Memory, v: Fields) -> Written:
    dimensions: Dimensions = (
        (v["blocks"], v["dst_block_stride"]),
        (v["out_h"], v["dst_row_stride"]),
        (v["out_w"], v["dst_col_stride"]),
    )
    counts, strides = zip(*dimensions, strict=True)
    contents = rows_view(memory.act, v["dst_base"], counts, strides, memory.lanes)
    return rows_of(v["dst_base"], dimensions), 0, contents


WRITTEN: dict[str, Callable[[Memory, Fields], Written]] = {
    "load": _load,
    "store": _store,
    "conv": _accumulators("out_blocks"),
    "dwconv": _accumulators("blocks"),
    "drain": _activations,
    "pool": _activations,
    "add": _activations,
}


def written_digest(name: str, memory: Memory, v: Fields) -> int:
    """Digest of what an instruction has just written."""
    return digest_rows(*WRITTEN[name](memory, v))
