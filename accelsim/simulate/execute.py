"""Values of instructions: one call an instruction, in the order in which they start.

What comes in: memories and decoded instructions. What goes out: changed memories, digests and
saturation counts. It knows nothing of cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from accelsim.simulate.decoded import Op
from accelsim.simulate.digests import digest_rows
from accelsim.simulate.instructions import behaviour
from accelsim.simulate.memory import Memory
from accelsim.simulate.scaling import Rounding


@dataclass(slots=True)
class Executor:
    """Runs instructions on `memory` and counts outputs that the clamp changed."""

    memory: Memory
    observe: bool = True
    rounding: Rounding = field(default_factory=Rounding)
    saturated_low: int = 0
    saturated_high: int = 0

    def run(self, op: Op) -> int:
        """Execute one instruction; returns its digest, 0 if not observed."""
        instruction = behaviour(op.name)
        # Multipliers outside the legal range may overflow; the result is then unspecified.
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = instruction.execute(self.memory, op.values, self.rounding)
        self.saturated_low += low
        self.saturated_high += high
        return digest_rows(*instruction.written(self.memory, op.values)) if self.observe else 0
