"""What an operator lacks: rooms without its module, instructions without code, empty stages.

What comes in: an operator's name, results, the folders of package and RTL. What goes out:
sentences. It looks at files, so that a room need not be imported to be found wanting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from accelsim.artifacts import Layer
from accelsim.errors import ModelError
from accelsim.legalize.operators import operators as legalize_operators
from accelsim.ops.matrix import empty_cells, support_matrix
from accelsim.ops.operators import module_of, operator_of
from accelsim.ops.results import Results
from accelsim.schedule.operators import find
from accelsim.sources import PACKAGE, rtl_root
from accelsim.spec.config import ENGINES
from accelsim.spec.isa import BY_NAME, INSTRUCTIONS

ROOMS = ("legalize", "reference", "schedule", "ops", "vectors")


def missing(
    name: str, results: Results, package: Path = PACKAGE, rtl: Path | None = None
) -> tuple[str, ...]:
    """All that `name` lacks, one sentence each. Raises InputError for an unknown operator."""
    operator = operator_of(name)
    family = module_of().get(name)
    found: list[str] = []
    if family is not None:
        found += missing_modules(family, package)
    root = rtl_root() if rtl is None else rtl
    for instruction in operator.facts.instructions:
        found += missing_code(instruction, package, root)
    return (*found, *empty_cells(support_matrix((operator,), results)))


def missing_modules(family: str, package: Path) -> Iterator[str]:
    """Rooms whose folder of operators has no module of the family.

    A family that only renames elements needs no schedule, and neither does one whose type of
    layer is another family's.
    """
    for room in ROOMS:
        module = package / room / "operators" / f"{family}.py"
        if module.is_file() or (room == "schedule" and _is_scheduled(family)):
            continue
        yield f"{room}: accelsim/{room}/operators/{family}.py is missing"


def _is_scheduled(family: str) -> bool:
    for operator in legalize_operators():
        if operator.read.__module__.rpartition(".")[2] == family:
            return operator.compute is None or _has_schedule(operator.compute)
    return False


def _has_schedule(compute: type) -> bool:
    layer = Layer("", "", (), (), "", object.__new__(compute))
    try:
        find(layer)
    except ModelError:
        return False
    return True


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
