"""Schedule: a region of layers → steps in program order with every address chosen.

What comes in: an `artifacts.Region` and a configuration. What goes out: an `artifacts.Schedule`.
It must not know TVM, encodings or tokens: only what an instruction touches.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from accelsim.artifacts import Patches, Region, Schedule, Step, TensorExtent
from accelsim.schedule.build import ALIGN_BYTES, Builder, Unit
from accelsim.schedule.limits import check_sizes, check_tensors
from accelsim.schedule.operators import Operator, find, register
from accelsim.schedule.packing import pack_first_layers
from accelsim.spec.config import Config
from accelsim.spec.isa import ARENA_BASE, INPUT_BASE, OUTPUT_BASE

__all__ = ["Operator", "place_tensors", "register", "schedule"]


def schedule(region: Region, config: Config) -> Schedule:
    """Tile every layer, place every buffer and order the steps.

    Raises ModelError naming the layer that no tiling fits or whose kind is unknown.
    """
    check_tensors(region, config.lanes)
    region, packed = pack_first_layers(region, config)
    tensors, sizes = place_tensors(region, packed, config)
    builder = Builder(config)
    facts = []
    for index, layer in enumerate(region.layers):
        builder.layer = layer.name
        found = find(layer).schedule(builder, index, layer, tensors)
        facts.append({**found, "packed": int(layer.inputs[0] in packed)})
    named = {"inputs": INPUT_BASE, "outputs": OUTPUT_BASE, "intermediate tensors": ARENA_BASE}
    totals = {name: sizes[base] for name, base in named.items()}
    check_sizes(region.symbol, {**totals, "constants": len(builder.constants.data)})
    return Schedule(
        region=region,
        config_name=config.name,
        steps=tuple(_ordered(builder.units)),
        tensors=tensors,
        constants=bytes(builder.constants.data),
        arena_bytes=sizes[ARENA_BASE],
        input_bytes=sizes[INPUT_BASE],
        output_bytes=sizes[OUTPUT_BASE],
        facts=tuple(facts),
    )


def place_tensors(
    region: Region, packed: Mapping[str, Patches], config: Config
) -> tuple[dict[str, TensorExtent], dict[int, int]]:
    """DRAM extents: inputs, outputs and all others in the arena, none sharing memory.

    Nothing is reused, so that every intermediate can be compared after a run.
    """
    used = {INPUT_BASE: 0, OUTPUT_BASE: 0, ARENA_BASE: 0}
    extents = {}
    for name, tensor in region.tensors.items():
        base = ARENA_BASE
        if name in region.inputs:
            base = INPUT_BASE
        elif name in region.outputs:
            base = OUTPUT_BASE
        extent = TensorExtent(
            name,
            base,
            used[base],
            tensor.shape,
            tensor.zero_point,
            packed.get(name),
            tensor.layout,
        )
        extents[name] = extent
        size = extent.size_bytes(config.lanes)
        used[base] += size + -size % ALIGN_BYTES
    return extents, used


def _ordered(units: list[Unit]) -> list[Step]:
    """Program order: the loads of a unit stand before the work of the unit in front of it.

    Activations move up only within their layer, since they may be what the work in front stores;
    constants stay behind where one of both units has no second slot for its parameters.
    """
    steps = units[0].weights + units[0].inputs if units else []
    for unit, following in zip_longest(units, units[1:]):
        before, after = _around(unit, following)
        steps += [*before, *unit.compute, *after]
    return steps


def _around(unit: Unit, following: Unit | None) -> tuple[list[Step], list[Step]]:
    """Loads of the following unit that stand before the work of a unit, and those after it."""
    if following is None:
        return [], []
    alone, same = unit.fills or following.fills, following.layer == unit.layer
    before = ([] if alone else following.weights) + (following.inputs if same else [])
    after = (following.weights if alone else []) + ([] if same else following.inputs)
    return before, after
