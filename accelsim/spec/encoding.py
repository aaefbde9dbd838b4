"""Encoding: field values ↔ 512-bit instructions, and the checks that dispatch makes.

What comes in: the instruction table and a configuration. What goes out: words, values, or a
`Violation` with the same error code that the RTL reports. It knows nothing of timing or execution.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ProgramError
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.isa import (
    BY_NAME,
    BY_OPCODE,
    INSTRUCTION_BITS,
    INSTRUCTION_WORDS,
    Extent,
    Instruction,
)
from accelsim.spec.registers import ErrorCode
from accelsim.spec.row import Select

LOCAL_MEMORIES = ("act_rows", "wgt_rows", "par_beats", "tab_beats")


@dataclass(frozen=True, slots=True)
class Violation:
    """Why dispatch refuses an instruction."""

    code: ErrorCode
    reason: str


@cache
def positions(name: str) -> dict[str, int]:
    """Bit position of each field of an instruction: fields are packed from bit 0 in order."""
    result, at = {}, 0
    for field in BY_NAME[name].fields:
        result[field.name] = at
        at += field.width
    if at > INSTRUCTION_BITS or len(result) != len(BY_NAME[name].fields):
        raise ProgramError(f"instruction {name}: fields need {at} of {INSTRUCTION_BITS} bits")
    return result


def encode(name: str, values: Mapping[str, int], config: Config) -> NDArray[np.uint32]:
    """One instruction as (INSTRUCTION_WORDS,) uint32; fields left out take their default.

    Raises ProgramError for an unknown instruction or field and for a value out of its range.
    """
    if name not in BY_NAME:
        raise ProgramError(f"unknown instruction {name!r}: use one of {', '.join(BY_NAME)}")
    row = BY_NAME[name]
    at = positions(name)
    unknown = set(values) - set(at)
    if unknown:
        raise ProgramError(f"instruction {name} has no field {sorted(unknown)[0]!r}")
    bits = 0
    for field in row.fields:
        value = row.opcode if field.name == "opcode" else values.get(field.name, field.default)
        low, high = field.bounds(config)
        if not low <= value <= high:
            raise ProgramError(
                f"instruction {name}: {field.name} is {value}, legal in {config.name} are "
                f"{low} to {high}"
            )
        bits |= (int(value) & ((1 << field.width) - 1)) << at[field.name]
    data = bits.to_bytes(INSTRUCTION_BITS // 8, "little")
    return np.frombuffer(data, dtype="<u4").astype(np.uint32)


def decode(words: Sequence[int] | NDArray[np.uint32]) -> tuple[Instruction, dict[str, int]]:
    """The table row and all field values. Raises ProgramError for an unknown opcode."""
    data = np.asarray(words, dtype="<u4").tobytes()
    bits = int.from_bytes(data, "little")
    row = BY_OPCODE.get(bits & 0xFF)
    if row is None or len(data) != INSTRUCTION_BITS // 8:
        raise ProgramError(f"opcode {bits & 0xFF} is not an instruction")
    values = {}
    for field in row.fields:
        raw = (bits >> positions(row.name)[field.name]) & ((1 << field.width) - 1)
        if field.signed and raw >> (field.width - 1):
            raw -= 1 << field.width
        values[field.name] = raw
    return row, values


def reserved_bits(row: Instruction, words: Sequence[int] | NDArray[np.uint32]) -> int:
    """The bits above the last field, which must be zero."""
    bits = int.from_bytes(np.asarray(words, dtype="<u4").tobytes(), "little")
    return bits >> sum(f.width for f in row.fields)


def extent_end(extent: Extent, values: Mapping[str, int], config: Config) -> int:
    """First row past the extent: base + Σ (N - 1)·S + 1."""

    def number(x: str | int | Select) -> int:
        if isinstance(x, Select):
            return x.of(values)
        if isinstance(x, int):
            return x
        return values[x] if x in values else int(getattr(config, x))

    total = values[extent.base] + 1
    for counts, stride in extent.terms:
        total += (prod(number(c) for c in counts) - 1) * number(stride)
    return total


def extent_limit(extent: Extent, values: Mapping[str, int], config: Config) -> int | None:
    """Size of the memory of an extent in its own unit; None for DRAM."""
    if extent.memory == "dram":
        return None
    if extent.memory == "local":
        return int(getattr(config, LOCAL_MEMORIES[values["memory"]]))
    return int(getattr(config, f"{extent.memory}_rows"))


def check(
    words: Sequence[int] | NDArray[np.uint32],
    config: Config,
    opcode_mask: int = (1 << 32) - 1,
    region_bytes: Sequence[int] | None = None,
) -> Violation | None:
    """What dispatch checks, in its order: opcode, fields and reserved bits, extents in slot order.

    `region_bytes` are the eight size registers; None leaves DRAM unlimited.
    """
    opcode = int(words[0]) & 0xFF
    if opcode not in BY_OPCODE or opcode > 31 or not opcode_mask >> opcode & 1:
        return Violation(ErrorCode.OPCODE, f"opcode {opcode} is not an instruction of this program")
    row, values = decode(words)
    if reserved_bits(row, words):
        return Violation(ErrorCode.FIELD, f"{row.name}: bits above the last field are not zero")
    forbidden = 0xF if row.engine is None else 1 << row.engine
    for field in row.fields:
        low, high = field.bounds(config)
        value = values[field.name]
        if not low <= value <= high:
            return Violation(
                ErrorCode.FIELD, f"{row.name}: {field.name} is {value}, legal are {low} to {high}"
            )
        if field.name in ("take", "give") and value & forbidden:
            own = "end" if row.engine is None else ENGINES[row.engine]
            return Violation(
                ErrorCode.FIELD, f"{row.name}: {field.name} names an engine that {own} cannot name"
            )
    for extent in row.extents:
        end = extent_end(extent, values, config)
        limit = extent_limit(extent, values, config)
        if limit is None:
            if region_bytes is None:
                continue
            size = region_bytes[values["base_reg"]]
            if end * config.bus_bytes > size:
                return Violation(
                    ErrorCode.DRAM_EXTENT,
                    f"{row.name}: DRAM extent of base register {values['base_reg']} ends at byte "
                    f"{end * config.bus_bytes}, its size is {size}",
                )
        elif end > limit:
            return Violation(
                ErrorCode.EXTENT,
                f"{row.name}: {extent.access} of {extent.memory} memory ends at row {end}, "
                f"its size is {limit}",
            )
    return None


def row_hash(row: Instruction, config: Config) -> int:
    """64 bits over what gives an instruction its meaning, and nothing else.

    Names, widths, signs and limits of the fields, extents, revision, and the values of the
    configuration fields in `uses`; no descriptions and no latencies.
    """
    text = repr(
        (
            row.name,
            row.opcode,
            row.engine,
            row.revision,
            [(f.name, f.width, f.signed, f.bounds(config)) for f in row.fields],
            [(e.memory, e.access, e.base, e.terms) for e in row.extents],
            [(name, getattr(config, name)) for name in row.uses],
        )
    )
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def contract_hash(opcodes: Iterable[int], config: Config) -> int:
    """Exclusive or of the row hashes of the opcodes that a program uses."""
    result = 0
    for opcode in set(opcodes):
        result ^= row_hash(BY_OPCODE[opcode], config)
    return result


assert INSTRUCTION_WORDS * 32 == INSTRUCTION_BITS
