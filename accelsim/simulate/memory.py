"""The contents of all memories, and strided views of them.

What comes in: a configuration and DRAM regions. What goes out: a `Memory` of NumPy arrays that the
values of instructions are read from and written to. It knows nothing of time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, I32
from accelsim.spec.config import PAR_BEATS, TABLE_WORDS, TABLES, Config

# On-chip contents are undefined at the start: a value that no test expects by chance.
UNDEFINED_BYTE = 0x5B
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Memory:
    """All memories of one run, changed in place."""

    lanes: int
    act: I8  # (act_rows, lanes)
    wgt: I8  # (wgt_rows, lanes)
    par: I8  # (par_beats, lanes)
    tab: I8  # (tab_beats, lanes)
    acc: I32  # (2, acc_rows, lanes)
    dram: dict[int, Bytes]  # by base register

    @property
    def par_words(self) -> I32:
        """Parameter memory as (par_rows, lanes) int32."""
        return self.par.view(np.int32).reshape(-1, self.lanes)

    @property
    def tables(self) -> I32:
        """Table memory as (TABLES, TABLE_WORDS) int32."""
        return self.tab.reshape(-1).view(np.int32).reshape(TABLES, TABLE_WORDS)

    @property
    def local(self) -> tuple[I8, I8, I8, I8]:
        """What a load fills, by its field `memory`."""
        return self.act, self.wgt, self.par, self.tab


def new_memory(
    config: Config, dram: Mapping[int, Bytes], written: Collection[int] | None = None
) -> Memory:
    """Undefined on-chip memories, and copies of the DRAM regions that will be `written`.

    None copies all; a region that is only read is shared with the caller.
    """

    def undefined(rows: int) -> I8:
        return np.full((rows, config.lanes), UNDEFINED_BYTE, dtype=np.int8)

    def region(base: int, data: Bytes) -> Bytes:
        copied = written is None or base in written
        flat = np.array(data, np.uint8) if copied else np.asarray(data, np.uint8)
        return flat.reshape(-1)

    acc = undefined(2 * config.acc_rows * PAR_BEATS).view(np.int32)
    return Memory(
        config.lanes,
        undefined(config.act_rows),
        undefined(config.wgt_rows),
        undefined(config.par_beats),
        undefined(config.tab_beats),
        acc.reshape(2, config.acc_rows, config.lanes),
        {base: region(base, data) for base, data in dram.items()},
    )


def rows_view(
    memory: I8, base: int, counts: tuple[int, ...], strides: tuple[int, ...], lanes: int
) -> I8:
    """View (*counts, lanes) of rows base + Σ index·stride. ValueError beyond the memory."""
    return np.ndarray(
        (*counts, lanes),
        np.int8,
        buffer=memory,
        offset=base * lanes,
        strides=(*(s * lanes for s in strides), 1),
    )
