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

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.memory import Memory
from accelsim.simulate.transfer import COUNTS, dram_rows, local_rows
from accelsim.spec.digest import ACC_BANK_SHIFT, DRAM_BASE_SHIFT, MULTIPLIER, WORDS_PER_ROW

MASK = (1 << 64) - 1
HALF = 1 << 16
FLOAT64_EXACT = 1 << 53
Fields = Mapping[str, int]
Rows = tuple[NDArray[np.int64], NDArray[np.generic]]


def digest_rows(addresses: NDArray[np.int64], rows: NDArray[np.generic]) -> int:
    """Digest of `rows` (n, bytes or int32 words) at `addresses` (n,), modulo 2^64."""
    first = int(addresses.min())
    left = np.empty((2, len(addresses)))
    left[0] = 1
    left[1] = addresses - first
    if left[1].max() * len(addresses) * HALF >= FLOAT64_EXACT:
        middle = len(addresses) // 2  # a single row always fits
        top = digest_rows(addresses[:middle], rows[:middle])
        return (top + digest_rows(addresses[middle:], rows[middle:])) & MASK
    halves = np.ascontiguousarray(rows).view(np.uint16).reshape(len(addresses), -1)
    plain, weighted = (left @ halves.astype(np.float64)).astype(np.int64).tolist()
    total = 0
    for j in range(0, len(plain), 2):
        words = plain[j] + (plain[j + 1] << 16)
        by_address = weighted[j] + (weighted[j + 1] << 16) + first * words
        total += MULTIPLIER * (WORDS_PER_ROW * by_address + (j // 2 + 1) * words)
        total += words * (j // 2 % 2)
    return total & MASK


def grid(base: int, counts: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[np.int64]:
    """All base + Σ index·stride, flat, the last index fastest."""
    total = np.array([base], dtype=np.int64)
    for count, stride in zip(counts, strides, strict=True):
        total = (total[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return total


def _load(memory: Memory, v: Fields) -> Rows:
    counts = tuple(v[c] for c in COUNTS)
    strides = (v["local_stride2"], v["local_stride1"], v["local_stride0"])
    return grid(v["local_base"], counts, strides), local_rows(memory, v)


def _store(memory: Memory, v: Fields) -> Rows:
    counts = tuple(v[c] for c in COUNTS)
    beats = grid(v["dram_offset"], counts, (v["dram_stride2"], v["dram_stride1"], 1))
    return beats + (v["base_reg"] << DRAM_BASE_SHIFT), dram_rows(memory, v)


def _accumulators(blocks: str) -> Callable[[Memory, Fields], Rows]:
    def rows(memory: Memory, v: Fields) -> Rows:
        first, count = v["acc_base"], v[blocks] * v["out_h"] * v["out_w"]
        addresses = (v["acc_bank"] << ACC_BANK_SHIFT) + np.arange(first, first + count)
        return addresses, memory.acc[v["acc_bank"], first : first + count]

    return rows


def _activations(memory: Memory, v: Fields) -> Rows:
    counts = (v["blocks"], v["out_h"], v["out_w"])
    strides = (v["dst_block_stride"], v["dst_row_stride"], v["dst_col_stride"])
    addresses = grid(v["dst_base"], counts, strides)
    return addresses, memory.act[addresses]


WRITTEN: dict[str, Callable[[Memory, Fields], Rows]] = {
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
