"""What an operator lacks: rooms that do not know it, instructions without code, empty stages.

What comes in: an operator's name, results, the folders of package, RTL and vectors. What goes out:
sentences. The rooms are asked with the operator's plain case, so that it does not matter what
their modules are called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from accelsim.errors import ModelError
from accelsim.legalize import legalize
from accelsim.ops.batch import Batch
from accelsim.ops.case import Case
from accelsim.ops.matrix import empty_cells, support_matrix, wrong_instructions
from accelsim.ops.operators import module_of, operator_of
from accelsim.ops.outcome import DEFAULT_CONFIG
from accelsim.ops.results import Results
from accelsim.ops.values import make_case
from accelsim.sources import PACKAGE, rtl_root, vectors_root
from accelsim.spec.config import CONFIGS, ENGINES
from accelsim.spec.isa import BY_NAME, INSTRUCTIONS


def missing(name: str, results: Results) -> tuple[str, ...]:
    """All that `name` lacks, one sentence each. Raises InputError for an unknown operator.

    A registered operator needs no vectors.
    """
    operator = operator_of(name)
    found: list[str] = []
    edges = operator.edges(CONFIGS[DEFAULT_CONFIG])
    if edges:
        case = make_case(name, edges[0], 1)
        folders = vectors_root() / DEFAULT_CONFIG if name in module_of() else None
        found += missing_rooms(Batch([case]), case, folders)
    else:
        found.append(f"ops: accelsim/ops/operators has no case of {name}")
    for instruction in operator.facts.instructions:
        found += missing_code(instruction, PACKAGE, rtl_root())
    found += empty_cells(support_matrix((operator,), results))
    if results.instructions(name):
        found += wrong_instructions((operator,), results)
    return tuple(found)


def missing_rooms(batch: Batch, case: Case, vectors: Path | None) -> Iterator[str]:
    """Rooms without a module for a case; vectors are looked for below `vectors`, if given."""
    if batch.reference.network.layer(case.name).kind == "host":
        yield "reference: no module of accelsim/reference/operators claims it"
    hosts = {one.name: one.reason for one in legalize(batch.quantized).host_ops if not one.boundary}
    if case.name in hosts:
        yield f"legalize: no module of accelsim/legalize/operators reads it: {hosts[case.name]}"
        return
    try:
        program, _ = batch.program(case, CONFIGS[DEFAULT_CONFIG])
    except ModelError as error:
        yield f"schedule: no module of accelsim/schedule/operators places it: {error}"
        return
    names = {layer.op for layer in program.layers}
    if vectors is not None and not names & committed_operators(vectors):
        words = " or ".join(sorted(names))
        yield f"vectors: no committed case of accelsim/vectors/operators has a layer {words}"


def committed_operators(folder: Path) -> set[str]:
    """What the committed vectors of one configuration are cases of."""
    headers = (path.read_text(encoding="utf-8") for path in folder.glob("*/case.json"))
    return {str(json.loads(text)["operator"]) for text in headers}


def missing_code(instruction: str, package: Path, rtl: Path) -> Iterator[str]:
    """Simulator and RTL without the instruction.

    The RTL's modules name its opcode; the first instruction of an engine is what the engine does
    where no opcode is named.
    """
    if instruction not in BY_NAME:
        yield f"spec: the instruction table has no {instruction}"
        return
    module = package / "simulate" / "instructions" / f"{instruction}.py"
    if not module.is_file():
        yield f"simulate: accelsim/simulate/instructions/{instruction}.py is missing"
    engine = BY_NAME[instruction].engine
    first = min((row for row in INSTRUCTIONS if row.engine == engine), key=lambda row: row.opcode)
    engine_module = engine is not None and (rtl / f"npu_{ENGINES[engine]}.sv").is_file()
    opcode = re.compile(rf"\bOP_{instruction.upper()}\b")
    sources = (path.read_text(encoding="utf-8") for path in sorted(rtl.glob("*.sv")))
    named = any(opcode.search(text) for text in sources)
    if not named and not (engine_module and first.name == instruction):
        yield f"rtl: no module of rtl/ decodes {instruction}"
