"""Compare: tensors and records against goldens, and where a difference comes from.

What comes in: artifacts of a run and golden tensors. What goes out: `Comparison`s with the first
wrong element, its tile and its instruction, and waivers applied. It must not know how any of them
was computed, nor any backend.
"""

from __future__ import annotations

from accelsim.compare.locate import (
    Evidence,
    first_diverging_record,
    layer_of,
    locate,
    stopped,
    unfinished,
    writer_of,
)
from accelsim.compare.tensors import compare_tensors, missing
from accelsim.compare.waivers import Waiver, apply_waivers, failing, not_needed, read_waivers

__all__ = [
    "Evidence",
    "Waiver",
    "apply_waivers",
    "compare_tensors",
    "failing",
    "first_diverging_record",
    "layer_of",
    "locate",
    "missing",
    "not_needed",
    "read_waivers",
    "stopped",
    "unfinished",
    "writer_of",
]
