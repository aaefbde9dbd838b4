"""Assembler and disassembler: readable text that round-trips to the same words.

A line is `name field=value …`; fields at their default are left out. `take` and `give` are written
as engine names joined by `+`; `#` begins a comment. Lines may begin with `INDEX:`.

    3: conv in_h=8 in_w=8 kernel_h=3 kernel_w=3 out_h=6 out_w=6 take=load give=vector+load
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ProgramError
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.encoding import decode, encode, reserved_bits
from accelsim.spec.isa import BY_NAME, INSTRUCTION_WORDS

_LABEL = re.compile(r"^\s*\d+\s*:")
_INTEGER = re.compile(r"^[+-]?(0x[0-9a-fA-F]+|[0-9]+)$")


def assemble(text: str, config: Config) -> NDArray[np.uint32]:
    """(instructions, INSTRUCTION_WORDS) uint32 of an assembler text.

    Raises ProgramError that names the line, the word and what is legal.
    """
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        body = _LABEL.sub("", line.split("#", 1)[0]).split()
        if not body:
            continue
        try:
            words.append(encode(body[0], _values(body[0], body[1:]), config))
        except ProgramError as error:
            raise ProgramError(f"line {number}: {error}") from None
    if not words:
        raise ProgramError("the program has no instructions")
    return np.stack(words)


def _values(name: str, items: list[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not value:
            raise ProgramError(f"{item!r} is not field=value")
        if key in values:
            raise ProgramError(f"field {key} stands twice")
        if key == "opcode":
            raise ProgramError(f"the opcode follows from the name {name}; leave it out")
        values[key] = _engines(value) if key in ("take", "give") else _integer(key, value)
    return values


def _engines(text: str) -> int:
    mask = 0
    for name in text.split("+"):
        if name not in ENGINES:
            raise ProgramError(f"unknown engine {name!r}: use {', '.join(ENGINES)}")
        mask |= 1 << ENGINES.index(name)
    return mask


def _integer(key: str, text: str) -> int:
    if not _INTEGER.match(text):
        raise ProgramError(f"{key}={text} is not an integer")
    return int(text, 0) if "x" in text else int(text)


def disassemble(words: NDArray[np.uint32]) -> str:
    """Text of a program, a line an instruction with its index.

    Raises ProgramError for an unknown opcode or set reserved bits, which text cannot express.
    """
    program = np.asarray(words, dtype=np.uint32).reshape(-1, INSTRUCTION_WORDS)
    return "".join(f"{i}: {disassemble_one(w, i)}\n" for i, w in enumerate(program))


def disassemble_one(words: NDArray[np.uint32], index: int = 0) -> str:
    """Text of one instruction without its index."""
    try:
        row, values = decode(words)
    except ProgramError as error:
        raise ProgramError(f"instruction {index}: {error}") from None
    if reserved_bits(row, words):
        raise ProgramError(f"instruction {index}: {row.name} has bits set above its last field")
    parts = [row.name]
    for field in BY_NAME[row.name].fields:
        value = values[field.name]
        if field.name == "opcode" or value == field.default:
            continue
        if field.name in ("take", "give"):
            names = [e for bit, e in enumerate(ENGINES) if value >> bit & 1]
            parts.append(f"{field.name}={'+'.join(names)}")
        else:
            parts.append(f"{field.name}={value}")
    return " ".join(parts)
