"""Product, minimum or maximum of two tensors, or of a tensor and a constant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelsim.artifacts import Binary, Layer, TensorExtent
from accelsim.schedule.build import Builder
from accelsim.schedule.elementwise import Pairing, operands, schedule_pairs
from accelsim.schedule.operators import Operator
from accelsim.schedule.parameters import (
    end_values,
    is_shared,
    parameter_rows,
    row_count,
    shared_rows,
)
from accelsim.schedule.view import Span
from accelsim.spec.arithmetic import BINARY_KINDS


def schedule_binary(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one elementwise operator; returns its facts."""
    binary = layer.compute
    assert isinstance(binary, Binary)
    requantize, lanes = binary.requantize, builder.config.lanes
    a, b, target = operands(builder, layer, tensors, binary.constant)
    a = replace(a, requantize=binary.a_requantize, zero_point=binary.a_source_zero_point)
    b = replace(b, requantize=binary.b_requantize, zero_point=binary.b_source_zero_point)
    bias = np.zeros(target.channels, np.int32)

    def rows(blocks: Span) -> bytes:
        if is_shared(requantize):
            return shared_rows(requantize, lanes, layer.name)
        return parameter_rows(bias, requantize, blocks, lanes, layer.name)

    values = {
        "a_zero_point": binary.a_zero_point,
        "b_zero_point": binary.b_zero_point,
        "kind": BINARY_KINDS.index(binary.kind),
        **end_values(requantize),
    }
    pairing = Pairing("binary", values, rows, row_count(requantize), is_shared(requantize))
    return schedule_pairs(builder, index, layer.name, (a, b, target), pairing)


OPERATORS = (Operator(Binary, schedule_binary),)
