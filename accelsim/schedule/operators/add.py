"""Sum or difference of two tensors, or of a tensor and a constant."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Add, Layer, TensorExtent
from accelsim.schedule.build import Builder
from accelsim.schedule.elementwise import Pairing, operands, schedule_pairs
from accelsim.schedule.limits import check_multipliers
from accelsim.schedule.operators import Operator
from accelsim.spec.arithmetic import ADD_MODES


def schedule_add(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one addition; returns its facts."""
    add = layer.compute
    assert isinstance(add, Add)
    words, mode = _parameters(add, layer.name)
    chunk = np.repeat(words, builder.config.lanes).tobytes()
    values = {
        "a_zero_point": add.a_zero_point,
        "b_zero_point": add.b_zero_point,
        "mode": ADD_MODES.index(mode),
        "subtract": int(add.subtract),
        "zero_point": add.zero_point,
        "clamp_min": add.clamp_min,
        "clamp_max": add.clamp_max,
    }
    pairing = Pairing("add", values, lambda _: chunk, len(words), shared=True)
    parts = operands(builder, layer, tensors, add.constant)
    return schedule_pairs(builder, index, layer.name, parts, pairing)


def _parameters(add: Add, name: str) -> tuple[np.ndarray, str]:
    """A word for each row that all blocks and lanes share, and the rounding mode."""
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
