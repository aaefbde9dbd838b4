"""softmax: over the channels of each pixel, all pixels at once."""

from __future__ import annotations

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
from accelsim.simulate.vector import channels, from_channels, write
from accelsim.spec import normalization
from accelsim.spec.config import Config


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Normalize exponentials."""
    shares = normalization.softmax(channels(memory, v), memory.tables[v["lut"]])
    write(memory, v, from_channels(memory, v, shares))
    return UNCLAMPED


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Source, table and destination."""
    return parts.operand(v, "in"), parts.table(v, config), parts.destination(v)


BEHAVIOUR = Behaviour(execute, touches, activations_written)
