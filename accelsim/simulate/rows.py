"""Rows of a memory, as slices where they are contiguous and as index arrays elsewhere.

What comes in: a base and (count, stride) dimensions. What goes out: rows in order, and `Touch`es:
who reads or writes which rows of which memory. It knows no instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = slice | NDArray[np.int64]
Dimensions = tuple[tuple[int, int], ...]  # (count, stride), outermost first


@dataclass(frozen=True, slots=True)
class Touch:
    """Rows of one memory that one instruction reads or writes.

    Memories are "act", "wgt", "par", "tab", "acc0", "acc1", "dram0" … "dram7"; parameter and table
    memory count in beats, DRAM in beats from its base register.
    """

    memory: str
    rows: Rows
    write: bool
    distinct: bool = True  # no row twice


def merged(dimensions: Dimensions) -> Dimensions:
    """The same rows in the same order with as few dimensions as possible."""
    result: list[tuple[int, int]] = []
    for count, stride in dimensions:
        if count == 1:
            continue
        if result and result[-1][1] == count * stride:
            result[-1] = (result[-1][0] * count, stride)
        else:
            result.append((count, stride))
    return tuple(result)


def rows_of(base: int, dimensions: Dimensions) -> Rows:
    """All base + Σ index·stride: a slice where they are contiguous."""
    few = merged(dimensions)
    if not few or (len(few) == 1 and few[0][1] == 1):
        return slice(base, base + (few[0][0] if few else 1))
    total = np.array([base], dtype=np.int64)
    for count, stride in few:
        total = (total[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return total


def distinct(rows: Rows, dimensions: Dimensions) -> bool:
    """Whether no row occurs twice: quickly where strides nest, by sorting where they don't."""
    reach = 0
    for count, stride in sorted(merged(dimensions), key=lambda d: d[1]):
        if stride <= reach:
            return isinstance(rows, slice) or len(np.unique(rows)) == len(rows)
        reach += (count - 1) * stride
    return True
