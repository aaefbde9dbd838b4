"""Running a case on a backend and comparing what it wrote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Backend, Launch, bare_program
from accelsim.spec.isa import INSTRUCTION_WORDS
from accelsim.spec.registers import address
from accelsim.vectors.case import Case

SEMAPHORES = 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one case on one backend."""

    case: str
    backend: str
    compared: int  # bytes under the mask
    mismatches: int
    error_code: int
    cycles: int
    first: str = ""  # the first wrong byte, in words

    @property
    def passed(self) -> bool:
        """Whether bytes were compared and all of them are right."""
        return self.compared > 0 and self.mismatches == 0 and self.error_code == 0


def launch_of(case: Case) -> Launch:
    """The launch that a case describes; programs are relocatable, so addresses may move."""
    words = case.program.view("<u4").reshape(-1, INSTRUCTION_WORDS).astype(np.uint32)
    writes = dict(case.registers)
    program = bare_program(
        symbol=case.name,
        config=case.config,
        words=words,
        opcode_mask=case.opcode_mask,
        contract_hash=case.contract_hash,
    )
    return Launch(
        program,
        {r.base: case.region(r.base, case.memory).copy() for r in case.regions},
        tuple(writes.get(address("PRESET", i), 0) for i in range(SEMAPHORES)),
        case.cycle_limit,
    )


def replay(case: Case, backend: Backend) -> Outcome:
    """Run a case and compare every byte under its mask, region by region."""
    result = backend(launch_of(case))
    compared = mismatches = 0
    first = ""
    for region in case.regions:
        mask = case.region(region.base, case.mask) != 0
        expected = case.region(region.base, case.expected)
        actual = np.asarray(result.dram[region.base])[: region.size_bytes]
        wrong = np.flatnonzero(mask & (actual != expected))
        compared += int(mask.sum())
        mismatches += len(wrong)
        if len(wrong) and not first:
            at = int(wrong[0])
            first = (
                f"byte {at} of base register {region.base}: expected {expected[at]}, "
                f"got {actual[at]}"
            )
    return Outcome(
        case.name, result.backend, compared, mismatches, result.error_code, result.cycles, first
    )
