"""A function of one int8 value as a table of 256 results."""

from __future__ import annotations

from accelsim.artifacts import Layer, Lookup, TensorExtent
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.operators import Operator
from accelsim.schedule.pointwise import schedule_rows
from accelsim.schedule.view import Box, tensor_view


def schedule_lookup(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one lookup; the table is loaded once."""
    lookup = layer.compute
    assert isinstance(lookup, Lookup)
    lanes, chunk = builder.config.lanes, lookup.table.astype("<i4").tobytes()
    views = tuple(tensor_view(tensors[name], lanes) for name in (layer.inputs[0], layer.output))

    def table(unit: Unit, tile: int, _: Box) -> dict[str, int]:
        return {"lut": builder.load_table((index,), chunk, unit, tile)}

    blocks = min(views[1].blocks, builder.inputs.size, MAX_COUNT)
    return schedule_rows(builder, index, "lookup", (views[0], views[1]), table, blocks)


OPERATORS = (Operator(Lookup, schedule_lookup),)
