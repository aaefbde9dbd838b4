"""Digests of what an instruction wrote, computed without a product for every word.

What comes in: memories, field values and the name of the instruction. What goes out: the 64-bit
digest that `accelsim.spec.digest` defines; its formula is rearranged here as below.

The weight of word j in row a is p | 1 with p = (64a + j + 1)·M. M is odd, so p is even where j is
odd, and there p | 1 = p + 1. Hence digest = M·Σ w·(64a + j + 1) + Σ over odd j of w, and the first
sum needs row sums and column sums only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.memory import Memory
from accelsim.simulate.transfer import COUNTS, dram_rows, local_rows
from accelsim.spec.digest import ACC_BANK_SHIFT, DRAM_BASE_SHIFT, MULTIPLIER, WORDS_PER_ROW

MASK = (1 << 64) - 1
Fields = Mapping[str, int]
Rows = tuple[NDArray[np.int64], NDArray[np.generic]]


def digest_rows(addresses: NDArray[np.int64], rows: NDArray[np.generic]) -> int:
    """Digest of `rows` (n, bytes or int32 words) at `addresses` (n,), modulo 2^64."""
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(len(addresses), -1)
    columns = words.sum(axis=0, dtype=np.uint64)
    row_sums = words.sum(axis=1, dtype=np.uint64)
    by_row = int((row_sums * addresses.astype(np.uint64)).sum(dtype=np.uint64))
    by_column = sum((j + 1) * int(c) for j, c in enumerate(columns))
    odd = int(columns[1::2].sum(dtype=np.uint64))
    return (MULTIPLIER * (WORDS_PER_ROW * by_row + by_column) + odd) & MASK


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
