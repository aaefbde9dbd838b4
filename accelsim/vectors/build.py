"""Making cases: an operator is quantized and compiled, and its goldens give the expected bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from accelsim.artifacts import F32, I8, Program, QuantizedModel, SourceModel
from accelsim.codegen import compile_model
from accelsim.emit import launch_memory, pack
from accelsim.errors import ModelError
from accelsim.quantize import quantize
from accelsim.reference import build, is_constant
from accelsim.reference.pytorch import build_torch
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.isa import ARENA_BASE, BASE_REGISTERS, OUTPUT_BASE
from accelsim.spec.registers import address
from accelsim.vectors.case import Bytes, Case, Region
from accelsim.vectors.module import OperatorCase
from accelsim.vectors.operators import operator_cases

PAGE_BYTES = 4096
FIRST_ADDRESS = 0x1000_0000
CYCLE_LIMIT = 1_000_000
GOLDEN = "PyTorch qnnpack kernels, equal to the integer reference in every byte"
ALONE = "the integer reference, equal to PyTorch's qnnpack kernels but for"


def build_cases() -> Iterator[Case]:
    """Every operator for every named configuration. Raises ModelError if goldens disagree."""
    for name, operator in operator_cases().items():
        quantized, values, golden = _goldens(name, operator)
        for config in CONFIGS.values():
            yield _case(name, operator, quantized, values, golden, config)


def _goldens(name: str, operator: OperatorCase) -> tuple[QuantizedModel, dict[str, I8], str]:
    """The quantized operator, every int8 tensor, and where PyTorch has other values or none."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    torch.manual_seed(seed)
    module = operator.make().eval()
    rng = np.random.default_rng(seed)
    batches = [_batch(rng, operator) for _ in range(4)]
    names = ("x", "y", "z")[: len(operator.shapes)]
    calibration = tuple(batch[0] for batch in batches) if len(names) == 1 else ()
    source = SourceModel(name, module, batches[0], names, calibration=calibration)
    if operator.quantized:
        program = torch.export.export(module, tuple(map(torch.from_numpy, batches[0])))
        source = replace(source, float_module=program, calibration=(), already_quantized=True)
    quantized = quantize(source)
    reference = build(quantized)
    given = zip(quantized.input_names, batches[0], strict=True)
    inputs = reference.quantize_inputs({name: 1.3 * batch for name, batch in given})
    values = reference.run(inputs)
    torch_values = build_torch(quantized, reference.network).isolated(values)
    notes = []
    for layer in reference.layers:
        mine, theirs = values[layer.output], torch_values.tensors.get(layer.output)
        if is_constant(mine):
            raise ModelError(f"vector {name}: the golden of {layer.name} is constant")
        if theirs is None:
            notes.append(f"{layer.op}, which has none")
        elif layer.op == operator.operator and operator.torch_defect:
            notes.append(f"{layer.op}: {operator.torch_defect}")
        elif not np.array_equal(theirs, mine):
            notes.append(_difference(name, layer.op, mine, theirs))
    return quantized, values, f"{ALONE}: {'; '.join(notes)}" if notes else GOLDEN


def _difference(name: str, op: str, mine: I8, theirs: I8) -> str:
    """How PyTorch's kernel differs. Raises ModelError where it does by more than a step."""
    steps = np.abs(mine.astype(np.int16) - theirs.astype(np.int16))
    if steps.max() > 1:
        raise ModelError(f"vector {name}: PyTorch and reference differ in {op} by {steps.max()}")
    return f"{op}, by one step in {np.count_nonzero(steps)} of {steps.size} elements"


def _batch(rng: np.random.Generator, operator: OperatorCase) -> tuple[F32, ...]:
    sizes = operator.sizes or (1.0,) * len(operator.shapes)
    return tuple(
        (size * rng.normal(0.2, 1.0, shape)).astype(np.float32)
        for size, shape in zip(sizes, operator.shapes, strict=True)
    )


def _case(
    name: str,
    operator: OperatorCase,
    quantized: QuantizedModel,
    values: dict[str, I8],
    golden: str,
    config: Config,
) -> Case:
    compiled = compile_model(quantized, config)
    if len(compiled.programs) != 1:
        raise ModelError(f"vector {name}: it compiles to {len(compiled.programs)} programs, not 1")
    program = compiled.programs[0]
    before = launch_memory(program, {n: values[n] for n in program.inputs})
    after, mask = {b: d.copy() for b, d in before.items()}, _masks(before)
    for layer in program.layers:
        extent = program.tensors[layer.output]
        data = pack(values[layer.output], config.lanes)
        place = slice(extent.offset_bytes, extent.offset_bytes + len(data))
        after[extent.base][place] = data
        mask[extent.base][place] = 255
    regions = _regions(before)
    return Case(
        name=name,
        operator=operator.operator,
        description=operator.description,
        config=config,
        address=FIRST_ADDRESS,
        regions=regions,
        registers=_registers(program, regions),
        opcode_mask=program.opcode_mask,
        contract_hash=program.contract_hash,
        cycle_limit=CYCLE_LIMIT,
        golden=golden,
        program=program.words.astype("<u4").reshape(-1).view(np.uint8),
        memory=_flat(before, regions),
        expected=_flat(after, regions),
        mask=_flat(mask, regions),
    )


def _masks(memory: dict[int, Bytes]) -> dict[int, Bytes]:
    """Program, constants and inputs must not change; outputs count where tensors lie."""
    free = (OUTPUT_BASE, ARENA_BASE)
    return {b: np.full(len(d), 0 if b in free else 255, np.uint8) for b, d in memory.items()}


def _regions(memory: dict[int, Bytes]) -> tuple[Region, ...]:
    regions, at = [], FIRST_ADDRESS
    for base, data in sorted(memory.items()):
        if len(data) == 0:
            continue
        regions.append(Region(base, at, len(data)))
        at += -(-len(data) // PAGE_BYTES) * PAGE_BYTES
    return tuple(regions)


def _flat(memory: dict[int, Bytes], regions: tuple[Region, ...]) -> Bytes:
    end = max(r.address + r.size_bytes for r in regions)
    flat = np.zeros(end - FIRST_ADDRESS, np.uint8)
    for r in regions:
        start = r.address - FIRST_ADDRESS
        flat[start : start + r.size_bytes] = memory[r.base]
    return flat


def _registers(program: Program, regions: tuple[Region, ...]) -> tuple[tuple[int, int], ...]:
    where = {r.base: r for r in regions}
    writes = [
        (address("PROGRAM_LENGTH"), len(program.words)),
        (address("PROGRAM_OPCODES"), program.opcode_mask),
        (address("PROGRAM_HASH_LO"), program.contract_hash & 0xFFFFFFFF),
        (address("PROGRAM_HASH_HI"), program.contract_hash >> 32),
        (address("WATCHDOG"), CYCLE_LIMIT),
        (address("IRQ_ENABLE"), 1),
    ]
    for base in range(BASE_REGISTERS):
        region = where.get(base, Region(base, FIRST_ADDRESS, 0))
        writes += [
            (address("BASE_LO", base), region.address & 0xFFFFFFFF),
            (address("BASE_HI", base), region.address >> 32),
            (address("SIZE", base), region.size_bytes),
        ]
    writes += [(address("PRESET", i), 0) for i in range(16)]
    return (*writes, (address("CTRL"), 1))
