"""The simulated DRAM seen from Python: options, counters and the array itself.

What comes in: the executable's exported C functions (`rtl/tb/axi_memory.h`), reached in its own
process through ctypes. What goes out: a NumPy view without copying. This module must not know what
is stored where.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import InputError, ToolError

CHANCE_ONE = 256


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Behaviour of the memory. Chances are of 256 in a cycle; cycles are clock cycles.

    The order of the fields is the order in `rtl/tb/axi_memory.h`.
    """

    latency: int = 32  # from arrival to service
    queue_depth: int = 256
    seed: int = 1
    ready_stall: int = 0  # chance that AR, AW or W is not ready
    r_gap: int = 0  # chance that a cycle has no R beat
    b_delay_max: int = 0
    latency_extra_max: int = 0
    error_low: int = 0  # bus addresses [error_low, error_high) answer SLVERR
    error_high: int = 0
    error_reads: int = 0
    error_writes: int = 0

    def __post_init__(self) -> None:
        """Refuse what the model cannot do."""
        if self.latency < 2:
            raise InputError(f"memory latency is {self.latency} cycles, use 2 or more")
        if self.queue_depth < 2:
            raise InputError(f"memory queue depth is {self.queue_depth}, use 2 or more")
        for name in ("ready_stall", "r_gap"):
            if not 0 <= getattr(self, name) < CHANCE_ONE:
                raise InputError(f"memory {name} is {getattr(self, name)}, use 0 to 255")


def random_stalls(seed: int, latency: int = 32) -> MemoryOptions:
    """Options with every kind of random stall on."""
    return MemoryOptions(
        latency=latency,
        seed=seed,
        ready_stall=64,
        r_gap=64,
        b_delay_max=20,
        latency_extra_max=40,
    )


@dataclass(frozen=True, slots=True)
class MemoryCounters:
    """What the memory did. The order of the fields is the order in `rtl/tb/axi_memory.h`."""

    read_bursts: int
    read_beats: int
    write_bursts: int
    write_beats: int
    error_beats: int
    r_stall_cycles: int
    b_stall_cycles: int
    not_ready_cycles: int
    queue_peak: int


class SimulatedMemory:
    """The memory of the simulation that this process runs."""

    def __init__(self) -> None:
        self.exports = ctypes.CDLL(None)
        try:
            self.exports.axi_memory_pointer.restype = ctypes.c_void_p
            self.exports.axi_memory_bytes.restype = ctypes.c_uint64
        except AttributeError:
            raise ToolError("this process is not a simulation with axi_memory.cpp in it.") from None

    def map(self, origin: int, size_bytes: int, path: Path | None = None) -> NDArray[np.uint8]:
        """Places `size_bytes` at bus address `origin`; they lie in the file `path` if given."""
        name = str(path).encode() if path is not None else b""
        error = self.exports.axi_memory_map(
            ctypes.c_char_p(name), ctypes.c_uint64(origin), ctypes.c_uint64(size_bytes)
        )
        if error != 0:
            raise ToolError(f"memory of {size_bytes} bytes for {path}: {os.strerror(error)}.")
        return self.array()

    def array(self) -> NDArray[np.uint8]:
        """The whole memory as bytes, shared with the simulation."""
        size = int(self.exports.axi_memory_bytes())
        pointer = self.exports.axi_memory_pointer()
        if pointer is None:
            raise ToolError("no memory was mapped.")
        buffer = (ctypes.c_uint8 * size).from_address(pointer)
        return np.ctypeslib.as_array(buffer)

    def configure(self, options: MemoryOptions) -> None:
        """Sets behaviour and restarts the random sequence."""
        values = (ctypes.c_uint64 * len(fields(options)))(*astuple(options))
        self.exports.axi_memory_configure(values)

    def counters(self) -> MemoryCounters:
        """Counts since the last `clear_counters`."""
        values = (ctypes.c_uint64 * len(fields(MemoryCounters)))()
        self.exports.axi_memory_counters(values)
        return MemoryCounters(*values)

    def clear_counters(self) -> None:
        """Sets all counters to zero."""
        self.exports.axi_memory_clear_counters()
