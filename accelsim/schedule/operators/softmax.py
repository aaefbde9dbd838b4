"""Softmax over the channels of each pixel, perhaps of those only that a mask keeps.

A table of levels stands behind it where there is one.
"""

from __future__ import annotations

from accelsim.artifacts import Layer, Softmax, TensorExtent
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.elementwise import operands
from accelsim.schedule.masked_rows import Tables, schedule_masked_rows
from accelsim.schedule.operators import Operator
from accelsim.schedule.pointwise import check_row, schedule_rows
from accelsim.schedule.view import Box, tensor_view


def schedule_softmax(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one softmax; the table of exponentials is loaded once."""
    softmax = layer.compute
    assert isinstance(softmax, Softmax)
    lanes, chunk = builder.config.lanes, softmax.table.astype("<i4").tobytes()
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    levels = None if softmax.levels is None else softmax.levels.astype("<i4").tobytes()
    if softmax.masked:
        parts = operands(builder, layer, tensors, None)
        return schedule_masked_rows(builder, index, layer.name, parts, Tables(chunk, levels))
    looked_up = levels is not None
    check_row(builder, layer.name, target.channels, target.blocks, looked_up=looked_up)

    def table(unit: Unit, tile: int, _: Box) -> dict[str, int]:
        unit.fills = levels is not None
        return {"lut": builder.load_table((index,), chunk, unit, tile)}

    views = (source, target)
    return schedule_rows(builder, index, "softmax", views, table, target.blocks, levels)


OPERATORS = (Operator(Softmax, schedule_softmax),)
