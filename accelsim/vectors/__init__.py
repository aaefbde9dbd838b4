"""Vectors: small programs with memory before and after, for simulator, RTL and boards.

What comes in: operators as PyTorch modules. What goes out: cases on disk (`case.json` and four
little-endian binaries) whose expected bytes come from PyTorch's int8 kernels and the integer
reference, never from simulator or RTL. Reading and replaying a case needs neither TVM nor torch.
"""

from __future__ import annotations

from accelsim.vectors.case import Case, case_folders, read_case, write_case
from accelsim.vectors.replay import Outcome, launch_of, replay

__all__ = [
    "Case",
    "Outcome",
    "case_folders",
    "launch_of",
    "read_case",
    "replay",
    "write_case",
]
