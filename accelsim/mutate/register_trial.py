"""Trials of the register file: what is written can be read, and a busy NPU keeps what it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Launch
from accelsim.cosim.session import Cosim
from accelsim.spec.config import Config
from accelsim.spec.registers import BASE_ALIGN_BYTES, IDENTIFIER, REGISTERS, address

WORD = (1 << 32) - 1
# Bits that a register has, where they are not all 32.
BITS = {"BASE_LO": WORD - (BASE_ALIGN_BYTES - 1), "BASE_HI": 0xFF, "PRESET": 0xFF, "IRQ_ENABLE": 1}
LEADS = (0, 3, -3)
DONE = 2  # STATUS


@dataclass(frozen=True, slots=True)
class RegisterTrial:
    """Writes every register that can be written and reads all of them back."""

    name: str
    config: Config
    seed: int

    def run(self, cosim: Cosim) -> str:
        """What is wrong; empty where all is as expected."""
        rng = np.random.default_rng(self.seed)
        accesses: list[tuple[int, ...]] = []
        expected = {address("ID"): IDENTIFIER, address("LANES"): self.config.lanes}
        for register in REGISTERS:
            for index in range(register.count if register.access == "rw" else 0):
                where = address(register.name, index)
                data = int(rng.integers(1 << 32))
                accesses.append((where, data, int(rng.choice(LEADS))))
                expected[where] = data & BITS.get(register.name, WORD)
        reads = cosim.access([*accesses, *((where,) for where in expected)])
        for (where, wanted), got in zip(expected.items(), reads, strict=True):
            if got != wanted:
                return f"register {where:#x} is {got:#x}, expected {wanted:#x}"
        return self._beside_opposites(cosim)

    def _beside_opposites(self, cosim: Cosim) -> str:
        """Each register keeps its bits while another one is written with the opposite.

        Random data cannot tell two registers of one bit apart: they agree half of the time.
        """
        places = [
            (r, address(r.name, i)) for r in REGISTERS if r.access == "rw" for i in range(r.count)
        ]
        accesses: list[tuple[int, ...]] = []
        expected = []
        for number, (register, where) in enumerate(places):
            other = places[number - 1][1]
            for data in (WORD, 0):
                accesses += [(where, data, 0), (other, WORD - data, 0), (where,)]
                expected.append((where, data & BITS.get(register.name, WORD)))
        for (where, wanted), got in zip(expected, cosim.access(accesses), strict=True):
            if got != wanted:
                return f"register {where:#x} is {got:#x}, expected {wanted:#x} beside another"
        return ""


@dataclass(frozen=True, slots=True)
class BusyTrial:
    """Writes to a busy NPU change nothing, and the interrupt stays until its own bit is written."""

    name: str
    launch: Launch

    def run(self, cosim: Cosim) -> str:
        """What is wrong; empty where all is as expected."""
        length = len(self.launch.program.words)
        held = [(address("PROGRAM_LENGTH"), length), (address("WATCHDOG"), self.launch.cycle_limit)]
        early: list[tuple[int, ...]] = [(where, wanted ^ 5, 0) for where, wanted in held]
        early += [(address("CTRL"), 1, 0), *((where,) for where, _ in held)]
        cosim.abandon(self.launch, 60, early)
        if cosim.seen != [wanted for _, wanted in held]:
            return f"registers of a busy NPU are {cosim.seen}, expected {held}"
        status, enable = address("IRQ_STATUS"), address("IRQ_ENABLE")
        late: list[tuple[int, ...]] = [
            (enable, 1, 0),
            (status,),
            (status, 0, 0),
            (status,),
            (address("WATCHDOG"), 9, 0),
        ]
        late += [(status,), (enable,), (status, 1, 0), (status,)]
        late += [(address("CTRL"), 0, 0), (address("STATUS"),)]  # starts nothing
        cosim.abandon(self.launch, self.launch.cycle_limit, late)
        if cosim.seen != [1, 1, 1, 1, 0, DONE]:
            return f"interrupt status, enable and status are {cosim.seen}"
        return ""
