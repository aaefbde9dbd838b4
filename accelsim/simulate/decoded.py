"""Decoded programs: what the simulator keeps of a program between launches.

What comes in: instruction words, a configuration and the sizes of the DRAM regions. What goes out:
one `Op` an instruction up to the first that dispatch refuses. It knows nothing of time and data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.spec.config import ENGINES, Config
from accelsim.spec.encoding import Violation, check, contract_hash, decode
from accelsim.spec.isa import BY_OPCODE, INSTRUCTION_WORDS
from accelsim.spec.registers import ErrorCode

END = -1  # engine number of END, which dispatch handles


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction. `duration` is in cycles, 0 where AXI decides."""

    index: int
    name: str
    engine: int  # 0 to 3, or END
    values: dict[str, int]
    take: tuple[int, ...]  # engines from which a token is taken
    give: tuple[int, ...]  # engines to which a token is given
    duration: int

    def __str__(self) -> str:
        """Short name for messages, as in `instruction 12 (conv)`."""
        return f"instruction {self.index} ({self.name})"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A program up to its END or to the first instruction that dispatch refuses."""

    ops: tuple[Op, ...]
    length: int  # PROGRAM_LENGTH
    violation: Violation | None  # of instruction `len(ops)`; CONTRACT belongs to index 0


def engines_of(mask: int) -> tuple[int, ...]:
    """Engine numbers in a `take` or `give` mask."""
    return tuple(e for e in range(len(ENGINES)) if mask >> e & 1)


def make_op(index: int, name: str, values: dict[str, int], config: Config) -> Op:
    """An op from field values, with its masks split and its duration computed."""
    row = BY_OPCODE[values["opcode"]]
    return Op(
        index,
        name,
        END if row.engine is None else row.engine,
        values,
        engines_of(values["take"]),
        engines_of(values["give"]),
        row.duration(values, config) if row.duration else 0,
    )


def decode_program(
    words: NDArray[np.uint32],
    config: Config,
    opcode_mask: int,
    expected_hash: int,
    region_bytes: Sequence[int],
) -> Decoded:
    """Decode and check (instructions, INSTRUCTION_WORDS) uint32 as dispatch does, in its order."""
    words = np.asarray(words, dtype=np.uint32).reshape(-1, INSTRUCTION_WORDS)
    allowed = {o for o in range(32) if opcode_mask >> o & 1}
    if contract_hash(allowed & set(BY_OPCODE), config) != expected_hash:
        reason = "the program's contract hash is not that of this configuration"
        return Decoded((), len(words), Violation(ErrorCode.CONTRACT, reason))
    ops: list[Op] = []
    for index, instruction in enumerate(words):
        violation = check(instruction, config, opcode_mask, region_bytes)
        if violation:
            return Decoded(tuple(ops), len(words), violation)
        row, values = decode(instruction)
        ops.append(make_op(index, row.name, values, config))
        if row.engine is None:
            return Decoded(tuple(ops), len(words), None)
    reason = f"no END within {len(words)} instructions"
    return Decoded(tuple(ops), len(words), Violation(ErrorCode.NO_END, reason))
