"""What a quantized network costs on the NPU, by its timing model.

What comes in: a `QuantizedModel` and a configuration. What goes out: cycles, bytes moved and
multiplications, and why layers stay on the host. It computes no values.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.advise.record import Costs
from accelsim.artifacts import Launch, Program, QuantizedModel, RunResult
from accelsim.codegen.placement import place
from accelsim.emit import compile_region, launch_memory
from accelsim.quantize import layer_members
from accelsim.simulate import Simulator
from accelsim.spec.config import Config


@dataclass(frozen=True, slots=True)
class Placed:
    """Costs, the NPU's layers with their operators, and the host's layers with reasons."""

    costs: Costs
    operators: dict[str, str]
    macs: dict[str, int]
    host: dict[str, str]
    members: dict[str, tuple[str, ...]]  # layer → the user's operators in it


def costs_of(model: QuantizedModel, config: Config) -> Placed:
    """Compile and time a network. Raises ModelError where it cannot be compiled."""
    members = layer_members(model.qdq)
    placed = place(model, config, members, compile_region)
    known = set(model.layer_names)
    host = {one.name: one.reason for one in placed.legalized.host_ops if one.name in known}
    cycles: dict[str, int] = {}
    total = moved = 0
    for program in placed.programs:
        result = _timed(program)
        cycles |= _layer_cycles(program, result)
        total += result.cycles
        beats = result.counters["load_beats"] + result.counters["store_beats"]
        moved += beats * config.lanes
    layers = [layer for program in placed.programs for layer in program.layers]
    own = {layer.name: layer.members or (layer.name,) for layer in layers}
    return Placed(
        Costs(total, moved, sum(layer.macs for layer in layers), len(host), cycles),
        {layer.name: layer.op for layer in layers},
        {layer.name: layer.macs for layer in layers},
        host,
        {**members, **own},
    )


def _timed(program: Program) -> RunResult:
    simulator = Simulator(program.config, values=False, checks=False)
    return simulator.run(Launch(program, launch_memory(program, {})))


def _layer_cycles(program: Program, result: RunResult) -> dict[str, int]:
    """Cycles from the end of what came before to each layer's end."""
    ends = {record.index: record.end_cycle for record in result.records}
    found: dict[str, int] = {}
    done = 0
    for layer in program.layers:
        end = max((ends.get(index, 0) for index in layer.instructions), default=done)
        found[layer.name] = max(0, end - done)
        done = max(done, end)
    return found
