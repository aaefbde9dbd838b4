"""Sum or difference of two tensors, or of a tensor and a constant."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import F32, Add, Layer, TensorExtent
from accelsim.schedule.build import Builder
from accelsim.schedule.elementwise import Pairing, operands, schedule_pairs
from accelsim.schedule.limits import check_multipliers
from accelsim.schedule.operators import Operator
from accelsim.schedule.view import Span
from accelsim.spec.arithmetic import ADD_MODES


def schedule_add(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one addition; returns its facts."""
    add = layer.compute
    assert isinstance(add, Add)
    words, mode = _parameters(add, layer.name)
    lanes = builder.config.lanes
    chunk = np.repeat(words, lanes).tobytes()
    each = None if add.b_scales is None else _each_channel(words, add.b_scales, lanes, layer.name)
    values = {
        "a_zero_point": add.a_zero_point,
        "b_zero_point": add.b_zero_point,
        "mode": ADD_MODES.index(mode),
        "subtract": int(add.subtract),
        "zero_point": add.zero_point,
        "clamp_min": add.clamp_min,
        "clamp_max": add.clamp_max,
    }

    def rows(blocks: Span) -> bytes:
        return chunk if each is None else each[blocks[0] : blocks[1]].tobytes()

    pairing = Pairing("add", values, rows, len(words), shared=each is None)
    parts = operands(builder, layer, tensors, add.constant)
    return schedule_pairs(builder, index, layer.name, parts, pairing)


def _each_channel(words: np.ndarray, scales: F32, lanes: int, name: str) -> np.ndarray:
    """(blocks, 3, lanes) float32: the words, with the second scale of each channel."""
    check_multipliers(name, scales)
    blocks = -(-scales.size // lanes)
    rows = np.repeat(words, lanes).reshape(1, -1, lanes).repeat(blocks, axis=0)
    rows[:, 1] = np.pad(scales, (0, blocks * lanes - scales.size), constant_values=1).reshape(
        blocks, lanes
    )
    return rows


def _parameters(add: Add, name: str) -> tuple[np.ndarray, str]:
    """A word for each row, in all blocks and lanes, and the rounding mode."""
    if add.fixed is not None:
        f = add.fixed
        return np.array([f.a_multiplier, f.b_multiplier, f.shift], "<i4"), "fixed"
    if add.tflite is not None:
        t = add.tflite
        mantissas = [t.a_mantissa, t.b_mantissa, t.mantissa]
        return np.array([*mantissas, t.a_shift, t.b_shift, t.shift], "<i4"), "tflite"
    scales = np.array([add.a_scale, add.b_scale, add.inverse_output_scale], "<f4")
    check_multipliers(name, scales)
    return scales, "fp32"


OPERATORS = (Operator(Add, schedule_add),)
