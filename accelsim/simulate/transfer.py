"""The two ends of the load and store DMA: strided DRAM beats and on-chip rows.

What comes in: memories and field values. What goes out: views of rows, and what they touch. It
knows nothing of bursts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from accelsim.artifacts import I8
from accelsim.simulate.memory import Memory, rows_view
from accelsim.simulate.rows import Dimensions, Touch
from accelsim.simulate.touches import touch

LOCAL = ("act", "wgt", "par", "tab")  # by the field `memory` of a load
COUNTS = ("count2", "count1", "count0")


def dram_rows(memory: Memory, v: Mapping[str, int]) -> I8:
    """View (count2, count1, count0, lanes) of the DRAM beats of a load or store."""
    region = memory.dram[v["base_reg"]].view(np.int8)
    counts = tuple(v[c] for c in COUNTS)
    strides = (v["dram_stride2"], v["dram_stride1"], 1)
    return rows_view(region, v["dram_offset"], counts, strides, memory.lanes)


def local_rows(memory: Memory, v: Mapping[str, int]) -> I8:
    """View (count2, count1, count0, lanes) of the on-chip rows of a load or store."""
    local = memory.local[v.get("memory", 0)]
    counts = tuple(v[c] for c in COUNTS)
    strides = (v["local_stride2"], v["local_stride1"], v["local_stride0"])
    return rows_view(local, v["local_base"], counts, strides, memory.lanes)


def dram_dimensions(v: Mapping[str, int]) -> Dimensions:
    """Counts and strides in DRAM, in beats."""
    strides = (v["dram_stride2"], v["dram_stride1"], 1)
    return tuple((v[c], s) for c, s in zip(COUNTS, strides, strict=True))


def local_dimensions(v: Mapping[str, int]) -> Dimensions:
    """Counts and strides on chip, in rows (beats in parameter and table memory)."""
    return tuple((v[c], v[f"local_stride{2 - i}"]) for i, c in enumerate(COUNTS))


def dram_touch(v: Mapping[str, int], write: bool) -> Touch:
    """DRAM beats of a load or store."""
    return touch(f"dram{v['base_reg']}", v["dram_offset"], dram_dimensions(v), write)


def local_touch(v: Mapping[str, int], write: bool) -> Touch:
    """On-chip rows of a load or store."""
    return touch(LOCAL[v.get("memory", 0)], v["local_base"], local_dimensions(v), write)
