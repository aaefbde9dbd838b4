"""Values of instructions: one call an instruction, in the order in which they start.

What comes in: memories and decoded instructions. What goes out: changed memories, digests and
saturation counts. It knows nothing of cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from accelsim.simulate.decoded import Op
from accelsim.simulate.digests import written_digest
from accelsim.simulate.matrix import conv, dwconv
from accelsim.simulate.memory import Memory
from accelsim.simulate.transfer import load, store
from accelsim.simulate.vector import Rounding, add, drain, pool

MATRIX_AND_DMA = {"load": load, "store": store, "conv": conv, "dwconv": dwconv}
VECTOR_UNIT = {"drain": drain, "pool": pool, "add": add}


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
        # Multipliers outside the legal range may overflow; the result is then unspecified.
        with np.errstate(over="ignore", invalid="ignore"):
            if op.name in MATRIX_AND_DMA:
                MATRIX_AND_DMA[op.name](self.memory, op.values)
            else:
                low, high = VECTOR_UNIT[op.name](self.memory, op.values, self.rounding)
                self.saturated_low += low
                self.saturated_high += high
        return written_digest(op.name, self.memory, op.values) if self.observe else 0
