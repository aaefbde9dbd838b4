"""add: the scaled sum or difference of two operands, rounded once or, in mode tflite, thrice."""

from __future__ import annotations

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
from accelsim.simulate.vector import operand, parameters, write_clamped
from accelsim.spec.config import Config
from accelsim.spec.durations import ADD_ROWS


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Scale and add."""
    words = parameters(memory, v, ADD_ROWS.of(v))
    a, b = operand(memory, v, "a"), operand(memory, v, "b")
    scaled = rounding.add(v["mode"], a, b, words, bool(v["subtract"]))
    scaled += v["zero_point"]
    return write_clamped(memory, v, scaled)


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Both operands, parameters and destination."""
    return (
        parts.operand(v, "a"),
        parts.operand(v, "b"),
        parts.parameters(v, ADD_ROWS.of(v)),
        parts.destination(v),
    )


BEHAVIOUR = Behaviour(execute, touches, activations_written)
