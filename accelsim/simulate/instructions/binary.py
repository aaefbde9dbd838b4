"""binary: the requantized product, minimum or maximum of two operands."""

from __future__ import annotations

import numpy as np

from accelsim.simulate import touches as parts
from accelsim.simulate.instructions.behaviour import (
    Behaviour,
    Fields,
    Saturated,
    activations_written,
)
from accelsim.simulate.memory import Memory
from accelsim.simulate.rows import Touch
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.vector import operand, requantize, write_clamped
from accelsim.spec.arithmetic import BINARY_KINDS
from accelsim.spec.config import Config
from accelsim.spec.durations import REQUANTIZE_ROWS

COMBINE = {"multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Combine, then scale."""
    combine = COMBINE[BINARY_KINDS[v["kind"]]]
    a, b = operand(memory, v, "a"), operand(memory, v, "b")
    value = combine(a, b, dtype=np.int32)
    return write_clamped(memory, v, requantize(memory, v, rounding, value))


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Both operands, parameters and destination."""
    return (
        parts.operand(v, "a"),
        parts.operand(v, "b"),
        parts.parameters(v, REQUANTIZE_ROWS.of(v)),
        parts.destination(v),
    )


BEHAVIOUR = Behaviour(execute, touches, activations_written)
