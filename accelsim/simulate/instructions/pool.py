"""pool: the maximum of a window, or its requantized sum."""

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
from accelsim.simulate.vector import requantize, write_clamped
from accelsim.simulate.windows import axes, windows
from accelsim.spec.config import Config
from accelsim.spec.durations import REQUANTIZE_ROWS

EMPTY_MAXIMUM = -128


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Reduce every window."""
    row_taps, column_taps = axes(v, v["kernel_w"], v["dilation_w"])
    kind: type[np.generic] = np.int32 if v["sum"] else np.int8
    zero_point, fill = (v["input_zero_point"], 0) if v["sum"] else (0, EMPTY_MAXIMUM)
    x = windows(memory, v, v["blocks"], row_taps, column_taps, kind, zero_point, fill)
    total = x[:, :, 0, 0].copy()
    reduce = np.add if v["sum"] else np.maximum
    for h in range(v["kernel_h"]):
        for w in range(v["kernel_w"]):
            if h or w:
                reduce(total, x[:, :, h, w], out=total)
    result = total.transpose(2, 0, 1, 3)
    if v["sum"]:
        result = requantize(memory, v, rounding, result)
    return write_clamped(memory, v, result)


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Windows, parameters of a sum, and destination."""
    return (
        *parts.window(v, v["blocks"], *axes(v, v["kernel_w"], v["dilation_w"])),
        *((parts.parameters(v, REQUANTIZE_ROWS.of(v)),) if v["sum"] else ()),
        parts.destination(v),
    )


BEHAVIOUR = Behaviour(execute, touches, activations_written)
