"""A launch as the NPU's driver sees it: regions of memory, and registers to write and to read.

What comes in: a `Launch`. What goes out: contents by base register, where they lie, and accesses of
the register port. It must not know how the port is driven.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch
from accelsim.cosim.placement import ORIGIN, Placement, place
from accelsim.errors import InputError
from accelsim.spec import isa
from accelsim.spec.registers import address, token_presets

BASES = 8
ENGINES = 4
WATCHDOG_MAX = (1 << 32) - 1
START = (address("CTRL"), 1)
SOFT_RESET = (address("CTRL"), 2)
RESULT_REGISTERS = ("STATUS", "ERROR_CODE", "ERROR_INDEX", "ERROR_ENGINE", "CYCLES_LO", "CYCLES_HI")
AFTER_RESET = tuple(
    address(name)
    for name in (*RESULT_REGISTERS, "IRQ_ENABLE", "IRQ_STATUS", "PROGRAM_LENGTH", "WATCHDOG")
)


def launch_regions(launch: Launch) -> dict[int, NDArray[np.uint8]]:
    """Contents by base register: `launch.dram`, with program and constants where it lacks them."""
    program = launch.program
    regions = {base: np.asarray(data, dtype=np.uint8).ravel() for base, data in launch.dram.items()}
    implied = {
        isa.PROGRAM_BASE: np.ascontiguousarray(program.words, dtype="<u4").view(np.uint8).ravel(),
        isa.WEIGHTS_BASE: np.frombuffer(program.constants, dtype=np.uint8),
    }
    for base in regions:
        if not 0 <= base < BASES:
            raise InputError(f"launch of {program.symbol}: base register {base}, use 0 to 7.")
    return {**{base: data for base, data in implied.items() if len(data)}, **regions}


def launch_placement(launch: Launch, skews: Mapping[int, int] | None = None) -> Placement:
    """Where the regions of a launch lie, `skews` bytes beyond a page each."""
    return place({base: len(data) for base, data in launch_regions(launch).items()}, skews)


def register_writes(launch: Launch, placement: Placement) -> list[tuple[int, int]]:
    """(address, data) pairs that set up a run. Raises InputError for presets that do not fit."""
    program = launch.program
    writes = [
        (address("PROGRAM_LENGTH"), len(program.words)),
        (address("PROGRAM_OPCODES"), program.opcode_mask),
        (address("PROGRAM_HASH_LO"), program.contract_hash & 0xFFFFFFFF),
        (address("PROGRAM_HASH_HI"), program.contract_hash >> 32),
        (address("WATCHDOG"), min(launch.cycle_limit, WATCHDOG_MAX)),
        (address("IRQ_ENABLE"), 1),
    ]
    for base in range(BASES):
        known = base in placement.offsets
        where = placement.address(base) if known else ORIGIN
        writes.append((address("BASE_LO", base), where & 0xFFFFFFFF))
        writes.append((address("BASE_HI", base), where >> 32))
        writes.append((address("SIZE", base), placement.sizes[base] if known else 0))
    for index, tokens in enumerate(token_presets(launch.semaphores)):
        writes.append((address("PRESET", index), tokens))
    return writes


def register_reads() -> list[int]:
    """Addresses that are read after a run: the result registers, then all semaphores."""
    semaphores = [address("SEMAPHORE", index) for index in range(ENGINES * ENGINES)]
    return [*(address(name) for name in RESULT_REGISTERS), *semaphores]
