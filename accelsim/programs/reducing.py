"""The smallest program found that still fails: fewer instructions, then plainer fields.

What comes in: a launch and a question, whether a launch fails. What goes out: another launch over
the same memory, whose instructions run one after the other. It must not know what failing means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from accelsim.artifacts import Launch
from accelsim.errors import ProgramError
from accelsim.programs.building import Step, program
from accelsim.programs.streams import chained
from accelsim.spec.encoding import decode
from accelsim.spec.isa import BY_NAME

Fails = Callable[[Launch], bool]
KEPT = ("opcode", "take", "give")


def reduced(given: Launch, fails: Fails) -> Launch | None:
    """A small launch that fails, None if it does not once its instructions run in turn.

    A launch for which `fails` raises ProgramError (undefined rows, races) is no candidate.
    """
    decoded = ((row.name, values) for row, values in map(decode, given.program.words))
    steps: list[Step] = [(name, values) for name, values in decoded if name != "end"]

    def still(candidate: Sequence[Step]) -> bool:
        try:
            return bool(candidate) and fails(_launch(given, candidate))
        except ProgramError:
            return False

    if not still(steps):
        return None
    plain = _plainer(_fewer(steps, still), still)
    return _launch(given, _fewer(plain, still))


def _launch(given: Launch, steps: Sequence[Step]) -> Launch:
    bare = [(name, {k: v for k, v in values.items() if k != "opcode"}) for name, values in steps]
    return replace(given, program=program(given.program.config, chained(bare)), semaphores=())


def _fewer(steps: list[Step], still: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Runs of instructions left out, long ones first."""
    size = len(steps) // 2
    while size:
        first = 0
        while first < len(steps):
            candidate = steps[:first] + steps[first + size :]
            if still(candidate):
                steps = candidate
            else:
                first += size
        size //= 2
    return steps


def _plainer(steps: list[Step], still: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Fields set to what the assembler leaves out."""
    for index, (name, _) in enumerate(steps):
        for field in BY_NAME[name].fields:
            values = steps[index][1]
            if field.name in KEPT or values[field.name] == field.default:
                continue
            changed: Step = (name, {**values, field.name: field.default})
            candidate = [*steps[:index], changed, *steps[index + 1 :]]
            if still(candidate):
                steps = candidate
    return steps
