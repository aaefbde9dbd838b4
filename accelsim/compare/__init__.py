"""Compare: tensors and records against goldens, and where a difference comes from.

What comes in: artifacts of a run and golden tensors. What goes out: `Comparison`s with the first
wrong element, its tile and its instruction, and waivers applied. It must not know how any of them
was computed, nor any backend.
"""

from __future__ import annotations

from accelsim.compare.locate import first_diverging_record, locate, writer_of
from accelsim.compare.tensors import compare_tensors, missing
from accelsim.compare.waivers import Waiver, apply_waivers, read_waivers

__all__ = [
    "Waiver",
    "apply_waivers",
    "compare_tensors",
    "first_diverging_record",
    "locate",
    "missing",
    "read_waivers",
    "writer_of",
]
