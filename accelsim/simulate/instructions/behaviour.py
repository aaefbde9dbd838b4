"""What the simulator must know of an instruction, beyond its row of the table.

What comes in: nothing. What goes out: types, and the forms that most instructions share. It must
not know which instructions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.memory import Memory, rows_view
from accelsim.simulate.rows import Rows, Touch, rows_of
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.touches import output_dimensions
from accelsim.spec.config import Config
from accelsim.spec.digest import ACC_BANK_SHIFT

Fields = Mapping[str, int]
Written = tuple[Rows, int, NDArray[np.generic]]  # rows, offset of their addresses, contents
Saturated = tuple[int, int]  # outputs that the clamp raised, lowered
UNCLAMPED: Saturated = (0, 0)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """An instruction: `execute` changes memories and returns how many outputs the clamp changed.

    `touches` are all rows that it reads and writes, reads first; `written` is what it has just
    written, for its digest.
    """

    execute: Callable[[Memory, Fields, Rounding], Saturated]
    touches: Callable[[Fields, Config], tuple[Touch, ...]]
    written: Callable[[Memory, Fields], Written]


def accumulators_written(blocks: str) -> Callable[[Memory, Fields], Written]:
    """Accumulator rows of all outputs, `blocks` the field that counts their blocks."""

    def written(memory: Memory, v: Fields) -> Written:
        first, count = v["acc_base"], v[blocks] * v["out_h"] * v["out_w"]
        rows = slice(first, first + count)
        return rows, v["acc_bank"] << ACC_BANK_SHIFT, memory.acc[v["acc_bank"], rows]

    return written


def activations_written(memory: Memory, v: Fields) -> Written:
    """Activation rows of all outputs."""
    dimensions = output_dimensions(v, "dst")
    counts, strides = zip(*dimensions, strict=True)
    contents = rows_view(memory.act, v["dst_base"], counts, strides, memory.lanes)
    return rows_of(v["dst_base"], dimensions), 0, contents
