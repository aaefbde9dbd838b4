"""Emit: a schedule → a `Program`, its bytes, its launch, and single layers cut out of it.

What comes in: an `artifacts.Schedule`. What goes out: encoded instructions with tokens, the layer
table and the tensors' DRAM extents. It must not know how tiles were chosen.
"""

from __future__ import annotations

from accelsim.emit.isolate import isolate
from accelsim.emit.layout import launch_memory, pack, read_tensor, unpack
from accelsim.emit.program import compile_region, emit
from accelsim.emit.serialize import program_from_bytes, program_to_bytes

__all__ = [
    "compile_region",
    "emit",
    "isolate",
    "launch_memory",
    "pack",
    "program_from_bytes",
    "program_to_bytes",
    "read_tensor",
    "unpack",
]
