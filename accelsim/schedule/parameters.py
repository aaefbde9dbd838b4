"""Parameter rows of requantization, the same for every operator and rounding mode.

What comes in: an `artifacts.Requantize` and a bias a channel. What goes out: rows of LANES 32-bit
words and the fields of the instruction that reads them. It must not know operators.
"""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import I32, Requantize
from accelsim.errors import ModelError
from accelsim.schedule.limits import check_multipliers
from accelsim.schedule.view import Span
from accelsim.spec.arithmetic import MODES, SHIFT_BITS


def row_count(requantize: Requantize) -> int:
    """Rows a block: bias and multiplier, or bias, mantissa and shift."""
    return 2 if requantize.mode == "fp32" else 3


def is_shared(requantize: Requantize) -> bool:
    """Whether one multiplier serves all channels, so that blocks may share parameter rows."""
    return requantize.multiplier.size == 1 and (
        requantize.shift is None or requantize.shift.size == 1
    )


def end_values(requantize: Requantize) -> dict[str, int]:
    """Fields that say how an instruction rounds and clamps."""
    return {
        "mode": MODES.index(requantize.mode),
        "zero_point": requantize.zero_point,
        "clamp_min": requantize.clamp_min,
        "clamp_max": requantize.clamp_max,
    }


def parameter_rows(bias: I32, requantize: Requantize, blocks: Span, lanes: int, name: str) -> bytes:
    """Rows of a span of channel blocks, block by block; pad lanes are 0, a pad multiplier is 1.

    Raises ModelError that names the layer for a mode, multiplier or shift that the NPU lacks.
    """
    words = [bias.astype("<i4"), *_factors(requantize, bias.shape, name)]
    part = slice(blocks[0] * lanes, blocks[1] * lanes)
    rows = np.zeros((len(words), (blocks[1] - blocks[0]) * lanes), "<i4")
    if requantize.mode == "fp32":
        rows[1] = np.float32(1).view(np.int32)
    for row, word in zip(rows, words, strict=True):
        row[: len(word[part])] = word[part]
    return rows.reshape(len(words), -1, lanes).transpose(1, 0, 2).tobytes()


def shared_rows(requantize: Requantize, lanes: int, name: str) -> bytes:
    """Rows without a bias that all blocks share; the multiplier must be one for all channels."""
    return parameter_rows(np.zeros(lanes, np.int32), requantize, (0, 1), lanes, name)


def _factors(requantize: Requantize, shape: tuple[int, ...], name: str) -> list[I32]:
    """Multiplier, or mantissa and shift, one a channel, as 32-bit words."""
    if requantize.mode not in MODES:
        raise ModelError(
            f"layer {name}: rounding mode {requantize.mode!r} is not built; use {', '.join(MODES)}"
        )
    multiplier = np.broadcast_to(requantize.multiplier, shape)
    if requantize.mode == "fp32":
        floats = multiplier.astype("<f4")
        check_multipliers(name, floats)
        return [floats.view(np.int32)]
    if requantize.shift is None:
        raise ModelError(f"layer {name}: rounding mode {requantize.mode!r} needs a shift")
    shift = np.broadcast_to(requantize.shift, shape).astype(np.int64)
    limit = 1 << (SHIFT_BITS - 1)
    if np.any((shift < -limit) | (shift >= limit)):
        wrong = shift[(shift < -limit) | (shift >= limit)].flat[0]
        raise ModelError(
            f"layer {name}: a shift is {wrong}, the limits of the NPU are {-limit} and {limit - 1}"
        )
    return [multiplier.astype("<i4"), shift.astype("<i4")]
