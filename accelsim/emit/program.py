"""Encoding of a schedule into a Program."""

from __future__ import annotations

from math import prod

import numpy as np

from accelsim.artifacts import Layer, LayerRecord, Program, Region, Schedule
from accelsim.emit.tokens import assign
from accelsim.schedule import schedule
from accelsim.spec.config import Config
from accelsim.spec.encoding import contract_hash, encode
from accelsim.spec.isa import BY_NAME


def compile_region(region: Region, config: Config) -> Program:
    """Schedule and emit a region. Raises ModelError naming the layer that does not fit."""
    return emit(schedule(region, config), config)


def emit(plan: Schedule, config: Config) -> Program:
    """Encode the steps with their tokens, END last."""
    tokens = assign(plan.steps)
    words = [
        encode(step.instruction, {**step.values, "take": take, "give": give}, config)
        for step, (take, give) in zip(plan.steps, tokens, strict=True)
    ]
    words.append(encode("end", {}, config))
    opcodes = {BY_NAME[s.instruction].opcode for s in plan.steps} | {BY_NAME["end"].opcode}
    return Program(
        symbol=plan.region.symbol,
        config=config,
        words=np.stack(words),
        opcode_mask=sum(1 << o for o in opcodes),
        contract_hash=contract_hash(opcodes, config),
        constants=plan.constants,
        arena_bytes=plan.arena_bytes,
        input_bytes=plan.input_bytes,
        output_bytes=plan.output_bytes,
        tensors=plan.tensors,
        inputs=plan.region.inputs,
        outputs=plan.region.outputs,
        layers=tuple(_record(plan, i, layer) for i, layer in enumerate(plan.region.layers)),
        tile_of=(*(s.tile for s in plan.steps), -1),
    )


def _record(plan: Schedule, index: int, layer: Layer) -> LayerRecord:
    facts = dict(plan.facts[index])
    return LayerRecord(
        name=layer.name,
        op=layer.op,
        members=layer.members,
        instructions=tuple(j for j, step in enumerate(plan.steps) if step.layer == index),
        inputs=layer.inputs,
        output=layer.output,
        elements=prod(plan.tensors[layer.output].shape),
        macs=facts.pop("macs", 0),
        tiles=facts.pop("tiles"),
        facts=facts,
    )
