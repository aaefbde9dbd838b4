"""Softmax over the channels of each pixel."""

from __future__ import annotations

from accelsim.artifacts import Layer, Softmax, TensorExtent
from accelsim.schedule.build import Builder, Unit
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
    check_row(builder, layer.name, target.channels, target.blocks)

    def table(unit: Unit, tile: int, _: Box) -> dict[str, int]:
        return {"lut": builder.load_table((index,), chunk, unit, tile)}

    return schedule_rows(builder, index, "softmax", (source, target), table, target.blocks)


OPERATORS = (Operator(Softmax, schedule_softmax),)
