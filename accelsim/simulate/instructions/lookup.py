"""lookup: the low byte of word x + 128 of a table, element by element."""

from __future__ import annotations

import numpy as np

from accelsim.simulate import touches as parts
from accelsim.simulate.instructions.behaviour import (
    UNCLAMPED,
    Behaviour,
    Fields,
    Saturated,
    activations_written,
)
from accelsim.simulate.memory import Memory
from accelsim.simulate.rows import Touch
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.vector import outputs, write
from accelsim.spec.config import Config


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Replace every element."""
    # Signed elements as unsigned ones run from 0 to 127, then from -128 to -1.
    low_bytes = np.roll(memory.tables[v["lut"]].astype(np.int8), 128)
    write(memory, v, low_bytes[outputs(memory, v, "in").view(np.uint8)])
    return UNCLAMPED


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Source, table and destination."""
    return parts.operand(v, "in"), parts.table(v, config), parts.destination(v)


BEHAVIOUR = Behaviour(execute, touches, activations_written)
