"""drain: clamp(round((acc + bias)·multiplier) + zero_point), in any mode."""

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
from accelsim.simulate.vector import requantize, write_clamped
from accelsim.spec.config import Config
from accelsim.spec.durations import REQUANTIZE_ROWS


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Scale accumulators."""
    shape = (v["blocks"], v["out_h"], v["out_w"], memory.lanes)
    first = v["acc_base"]
    rows = memory.acc[v["acc_bank"], first : first + shape[0] * shape[1] * shape[2]]
    return write_clamped(memory, v, requantize(memory, v, rounding, rows.reshape(shape)))


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Accumulators, parameters and destination."""
    return (
        parts.acc(v, v["blocks"], write=False),
        parts.parameters(v, REQUANTIZE_ROWS.of(v)),
        parts.destination(v),
    )


BEHAVIOUR = Behaviour(execute, touches, activations_written)
