"""The AXI4-Lite register map, error codes and identification, stated once.

Offsets are in bytes; every register is 32 bits wide. Base registers are 40-bit byte addresses whose
low six bits are hardwired to zero, so that instructions never cross a 4 KiB boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from accelsim.errors import InputError

REGISTER_ADDRESS_BITS = 12
IDENTIFIER = 0x4E505531  # "NPU1"
BASE_ALIGN_BYTES = 64
DRAM_ADDRESS_BITS = 40
SEMAPHORE_MAX = 255  # a token given beyond this is an error


class ErrorCode(IntEnum):
    """What stopped a run. The lowest instruction index wins."""

    NONE = 0
    OPCODE = 1  # unknown, or not in PROGRAM_OPCODES
    FIELD = 2  # a field out of range, or a reserved bit set
    EXTENT = 3  # beyond an on-chip memory
    DRAM_EXTENT = 4  # beyond the size register of its base register
    BUS_READ = 5  # SLVERR or DECERR on a load
    BUS_WRITE = 6  # SLVERR or DECERR on a store
    BUS_FETCH = 7  # SLVERR or DECERR on an instruction fetch
    CONTRACT = 8  # PROGRAM_HASH does not match this hardware
    NO_END = 9  # PROGRAM_LENGTH instructions and no END
    SEMAPHORE = 10  # more than SEMAPHORE_MAX tokens
    BANK = 11  # two engines used one memory port in the same cycle
    WATCHDOG = 12  # WATCHDOG cycles passed


@dataclass(frozen=True, slots=True)
class Register:
    """One register, or `count` of them `stride` bytes apart. `access`: ro, rw, w1s or w1c."""

    name: str
    offset: int
    access: str
    doc: str
    count: int = 1
    stride: int = 4


REGISTERS: tuple[Register, ...] = (
    Register("ID", 0x000, "ro", "0x4E505531"),
    Register("LANES", 0x004, "ro", "lanes of this configuration"),
    Register("CTRL", 0x008, "w1s", "bit 0 start, bit 1 soft reset (drains AXI first)"),
    Register("STATUS", 0x00C, "ro", "bit 0 busy, bit 1 done, bit 2 error, bit 3 resetting"),
    Register("IRQ_ENABLE", 0x010, "rw", "bit 0: interrupt on done or error"),
    Register("IRQ_STATUS", 0x014, "w1c", "bit 0: done or error"),
    Register("ERROR_CODE", 0x018, "ro", "see the error codes"),
    Register("ERROR_INDEX", 0x01C, "ro", "instruction index"),
    Register("ERROR_ENGINE", 0x020, "ro", "0 load, 1 matrix, 2 vector, 3 store, 4 dispatch"),
    Register("PROGRAM_LENGTH", 0x024, "rw", "instructions in the program, END included"),
    Register("PROGRAM_OPCODES", 0x028, "rw", "bit i: opcode i may occur"),
    Register("PROGRAM_HASH_LO", 0x02C, "rw", "contract hash of the program, low half"),
    Register("PROGRAM_HASH_HI", 0x030, "rw", "contract hash of the program, high half"),
    Register("WATCHDOG", 0x034, "rw", "cycles after which a run is stopped; 0: never"),
    Register("CYCLES_LO", 0x038, "ro", "cycles of the run, low half"),
    Register("CYCLES_HI", 0x03C, "ro", "cycles of the run, high half"),
    Register("BASE_LO", 0x080, "rw", "base register, bits 31:0 (5:0 are zero)", 8, 8),
    Register("BASE_HI", 0x084, "rw", "base register, bits 39:32", 8, 8),
    Register("SIZE", 0x0C0, "rw", "bytes reachable from the base register", 8),
    Register("PRESET", 0x100, "rw", "tokens at the start; index = giver·4 + taker", 16),
    Register("SEMAPHORE", 0x140, "ro", "tokens now; index = giver·4 + taker", 16),
)

DISPATCH_ENGINE = 4  # ERROR_ENGINE when dispatch found the error


def address(name: str, index: int = 0) -> int:
    """Byte offset of a register. Raises KeyError for an unknown name or index."""
    for register in REGISTERS:
        if register.name == name and 0 <= index < register.count:
            return register.offset + index * register.stride
    raise KeyError(f"{name}[{index}]")


def token_presets(given: Sequence[int]) -> tuple[int, ...]:
    """Tokens of all PRESET registers: those given, or none. Raises InputError for what misfits."""
    (register,) = (r for r in REGISTERS if r.name == "PRESET")
    count = register.count
    if not given:
        return (0,) * count
    if len(given) != count:
        raise InputError(f"a launch has {len(given)} semaphore presets, use {count} or none")
    if not all(0 <= tokens <= SEMAPHORE_MAX for tokens in given):
        raise InputError(f"semaphore presets are {tuple(given)}, use 0 to {SEMAPHORE_MAX}")
    return tuple(given)
