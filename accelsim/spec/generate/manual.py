"""The instruction-set manual, docs/isa.md."""

from __future__ import annotations

from accelsim.spec import durations, isa
from accelsim.spec.config import CONFIGS, ENGINES
from accelsim.spec.encoding import positions
from accelsim.spec.generate.stamp import stamp
from accelsim.spec.isa import INSTRUCTIONS, Extent, Field, Instruction
from accelsim.spec.registers import REGISTERS, ErrorCode
from accelsim.spec.row import Select


def manual() -> str:
    """Text of the manual: configurations, instructions, registers, error codes."""
    parts = [
        "# Instruction set, registers and configurations",
        "How the machine behaves beyond these tables is in `docs/contract.md`; the arithmetic is "
        "`accelsim/spec/arithmetic.py`.",
        "## Configurations",
        _configurations(),
        "## Instructions",
        f"An instruction is {isa.INSTRUCTION_BYTES} bytes, little-endian. Fields are packed from "
        "bit 0 in the order given; all bits above the last field must be 0. `take` and `give` may "
        f"not name the instruction's own engine. MATRIX_LATENCY is {isa.MATRIX_LATENCY}, "
        f"VECTOR_LATENCY {isa.VECTOR_LATENCY}, ROWS_LATENCY {durations.ROWS_LATENCY}, "
        f"SOFTMAX_CYCLES {durations.SOFTMAX_CYCLES}, LAYERNORM_CYCLES "
        f"{durations.LAYERNORM_CYCLES}, and dispatch takes {isa.DISPATCH_CYCLES} cycles an "
        "instruction. An extent is legal if every row of it exists.",
        *(_instruction(row) for row in INSTRUCTIONS),
        "## Registers",
        _registers(),
        "## Error codes",
        "\n".join(
            ["| code | name |", "|---|---|", *(f"| {int(e)} | {e.name} |" for e in ErrorCode)]
        ),
    ]
    # A comment that Markdown does not show.
    return (
        stamp("[//]: #", "\n\n".join(parts) + "\n")
        .replace("[//]: # ", "<!-- ")
        .replace("do not edit.\n", "do not edit. -->\n", 1)
        .replace(".\n\n#", ". -->\n\n#", 1)
    )


def _configurations() -> str:
    names = [
        "lanes",
        "act_banks",
        "act_bank_rows",
        "wgt_rows",
        "par_rows",
        "acc_rows",
        "queue_depth",
        "fetch_depth",
        "read_outstanding",
        "write_outstanding",
        "on_chip_bytes",
    ]
    head = "| | " + " | ".join(CONFIGS) + " |"
    rows = [
        f"| {n} | " + " | ".join(str(getattr(c, n)) for c in CONFIGS.values()) + " |" for n in names
    ]
    return "\n".join([head, "|---|" + "---|" * len(CONFIGS), *rows])


def _legal(field: Field) -> str:
    if field.minimum is None and field.maximum is None:
        return "all"
    low = 0 if field.minimum is None else field.minimum
    high = (1 << field.width) - 1 if field.maximum is None else field.maximum
    return f"{low} to {str(high).upper()}"


def _count(count: str | int | Select) -> str:
    """A count as the manual writes it: 2, blocks, or mode→(2, 3, …)."""
    return f"{count.field}→{count.numbers}" if isinstance(count, Select) else str(count)


def _extent(extent: Extent) -> str:
    terms = "".join(
        f" + ({'·'.join(_count(c) for c in counts)} - 1)" + ("" if stride == 1 else f"·{stride}")
        for counts, stride in extent.terms
    )
    return f"- {extent.access} {extent.memory}: last row `{extent.base}{terms}`"


def _instruction(row: Instruction) -> str:
    engine = "dispatch" if row.engine is None else ENGINES[row.engine]
    table = ["| bits | field | legal | meaning |", "|---|---|---|---|"]
    for f in row.fields:
        low = positions(row.name)[f.name]
        sign = "signed, " if f.signed else ""
        table.append(f"| {low + f.width - 1}:{low} | `{f.name}` | {sign}{_legal(f)} | {f.doc} |")
    extents = "\n".join(_extent(e) for e in row.extents) or "- none"
    return (
        f"### {row.name} (opcode {row.opcode}, {engine})\n\n{row.doc}\n\n"
        f"Duration in cycles: {row.duration_doc}.\n\n"
        + "\n".join(table)
        + f"\n\nExtents:\n\n{extents}"
    )


def _registers() -> str:
    lines = ["| offset | name | access | meaning |", "|---|---|---|---|"]
    for r in REGISTERS:
        name = r.name if r.count == 1 else f"{r.name}[0..{r.count - 1}], {r.stride} bytes apart"
        lines.append(f"| 0x{r.offset:03x} | {name} | {r.access} | {r.doc} |")
    return "\n".join(lines)
