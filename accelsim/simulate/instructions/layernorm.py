"""layernorm: over the channels of each pixel, all pixels at once."""

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
from accelsim.simulate.vector import channels, from_channels, parameters, write_clamped
from accelsim.spec.config import Config
from accelsim.spec.normalization import layer_norm_steps

ROWS = 2  # parameter rows of a block: gain and offset


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Centre, scale to a variance of 1, then gain and offset."""
    x = channels(memory, v)
    words = parameters(memory, v, ROWS).reshape(ROWS, -1)[:, : x.shape[-1]]
    epsilon = v["epsilon"] << v["epsilon_shift"]
    steps = layer_norm_steps(x, words[0], words[1], v["gain_bits"], epsilon)
    return write_clamped(memory, v, from_channels(memory, v, steps + v["zero_point"]))


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Source, parameters and destination."""
    return parts.operand(v, "in"), parts.parameters(v, ROWS), parts.destination(v)


BEHAVIOUR = Behaviour(execute, touches, activations_written)
