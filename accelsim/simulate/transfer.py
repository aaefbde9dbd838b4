"""Values of the load and store DMA: strided copies between DRAM and on-chip rows.

What comes in: memories and field values. What goes out: copied rows. It knows nothing of bursts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from accelsim.artifacts import I8
from accelsim.simulate.memory import Memory, rows_view

COUNTS = ("count2", "count1", "count0")


def dram_rows(memory: Memory, v: Mapping[str, int]) -> I8:
    """View (count2, count1, count0, lanes) of the DRAM beats of a load or store."""
    region = memory.dram[v["base_reg"]].view(np.int8)
    counts = tuple(v[c] for c in COUNTS)
    strides = (v["dram_stride2"], v["dram_stride1"], 1)
    return rows_view(region, v["dram_offset"], counts, strides, memory.lanes)


def local_rows(memory: Memory, v: Mapping[str, int]) -> I8:
    """View (count2, count1, count0, lanes) of the on-chip rows of a load or store."""
    local = (memory.act, memory.wgt, memory.par)[v.get("memory", 0)]
    counts = tuple(v[c] for c in COUNTS)
    strides = (v["local_stride2"], v["local_stride1"], v["local_stride0"])
    return rows_view(local, v["local_base"], counts, strides, memory.lanes)


def load(memory: Memory, v: Mapping[str, int]) -> None:
    """load: DRAM beats to on-chip rows."""
    local_rows(memory, v)[...] = dram_rows(memory, v)


def store(memory: Memory, v: Mapping[str, int]) -> None:
    """store: activation rows to DRAM beats."""
    dram_rows(memory, v)[...] = local_rows(memory, v)
