"""The SystemVerilog package of one configuration: parameters, packed structs and legality.

A packed struct lists the highest bits first, so each instruction's fields appear in reverse order
behind `reserved`; RTL decode is a cast.
"""

from __future__ import annotations

from accelsim.spec import isa
from accelsim.spec.config import DEPTHWISE_TAPS, ENGINES, PAR_BEATS, TABLE_WORDS, TABLES, Config
from accelsim.spec.encoding import positions, row_hash
from accelsim.spec.generate.stamp import stamp
from accelsim.spec.isa import INSTRUCTIONS, Extent, Instruction
from accelsim.spec.registers import (
    BASE_ALIGN_BYTES,
    DISPATCH_ENGINE,
    DRAM_ADDRESS_BITS,
    IDENTIFIER,
    REGISTER_ADDRESS_BITS,
    REGISTERS,
    SEMAPHORE_MAX,
    ErrorCode,
)
from accelsim.spec.row import Select


def clog2(value: int) -> int:
    """Bits that address `value` places, at least 1."""
    return max(1, (value - 1).bit_length())


def package(config: Config) -> str:
    """Text of npu_pkg.sv for one configuration."""
    parts = [
        f"// Configuration {config.name}.\npackage npu_pkg;",
        *_parameters(config),
        _types(),
        *(_struct(row) for row in INSTRUCTIONS),
        _opcode_known(),
        _engine_of(),
        _row_hash(config),
        _fields_legal(config),
        _extent(config),
        "endpackage",
    ]
    return stamp("//", "\n\n".join(parts) + "\n")


def _number(name: str, value: int) -> str:
    return f"  localparam int unsigned {name} = {value};"


def _parameters(config: Config) -> list[str]:
    sizes = {
        "LANES": config.lanes,
        "BUS_BYTES": config.bus_bytes,
        "BUS_BITS": config.bus_bytes * 8,
        "ACT_BANKS": config.act_banks,
        "ACT_BANK_ROWS": config.act_bank_rows,
        "ACT_ROWS": config.act_rows,
        "WGT_ROWS": config.wgt_rows,
        "PAR_ROWS": config.par_rows,
        "PAR_BEATS": config.par_beats,
        "PAR_BEATS_PER_ROW": PAR_BEATS,
        "TABLES": TABLES,
        "TABLE_WORDS": TABLE_WORDS,
        "TAB_BEATS": config.tab_beats,
        "ACC_ROWS": config.acc_rows,
        "QUEUE_DEPTH": config.queue_depth,
        "FETCH_DEPTH": config.fetch_depth,
        "READ_OUTSTANDING": config.read_outstanding,
        "WRITE_OUTSTANDING": config.write_outstanding,
        "ACT_AW": clog2(config.act_rows),
        "WGT_AW": clog2(config.wgt_rows),
        "PAR_AW": clog2(config.par_rows),
        "PARB_AW": clog2(config.par_beats),
        "TAB_AW": clog2(config.tab_beats),
        "ACC_AW": clog2(config.acc_rows),
    }
    fixed = {
        "DEPTHWISE_TAPS": DEPTHWISE_TAPS,
        "MATRIX_LATENCY": isa.MATRIX_LATENCY,
        "VECTOR_LATENCY": isa.VECTOR_LATENCY,
        "DISPATCH_CYCLES": isa.DISPATCH_CYCLES,
        "INSTRUCTION_BITS": isa.INSTRUCTION_BITS,
        "INSTRUCTION_BYTES": isa.INSTRUCTION_BYTES,
        "BASE_REGISTERS": isa.BASE_REGISTERS,
        "EXTENT_SLOTS": isa.EXTENT_SLOTS,
        "SEMAPHORE_MAX": SEMAPHORE_MAX,
        "DRAM_AW": DRAM_ADDRESS_BITS,
        "BASE_ALIGN_BITS": clog2(BASE_ALIGN_BYTES),
        "REG_AW": REGISTER_ADDRESS_BITS,
    }
    engines = [f"  localparam logic [2:0] ENGINE_{n.upper()} = {i};" for i, n in enumerate(ENGINES)]
    engines.append(f"  localparam logic [2:0] ENGINE_DISPATCH = {DISPATCH_ENGINE};")
    errors = [f"  localparam logic [7:0] ERR_{e.name} = {int(e)};" for e in ErrorCode]
    opcodes = [f"  localparam logic [7:0] OP_{r.name.upper()} = {r.opcode};" for r in INSTRUCTIONS]
    registers = [
        f"  localparam logic [{REGISTER_ADDRESS_BITS - 1}:0] REG_{r.name} = 'h{r.offset:03x};"
        for r in REGISTERS
    ]
    registers.append(f"  localparam logic [31:0] IDENTIFIER = 'h{IDENTIFIER:08x};")
    return [
        "\n".join(_number(*item) for item in sizes.items()),
        "\n".join(_number(*item) for item in fixed.items()),
        *("\n".join(lines) for lines in (engines, errors, opcodes, registers)),
    ]


def _types() -> str:
    return """\
  typedef logic [INSTRUCTION_BITS-1:0] instr_t;
  typedef logic [LANES-1:0][7:0] row_t;
  typedef logic [LANES-1:0][31:0] word_row_t;

  typedef struct packed {
    logic [31:0] index;
    instr_t      instr;
  } command_t;

  // One place that an instruction may touch: legal if end_row <= limit. A DRAM extent counts beats
  // and is limited by the size register of base_reg instead.
  typedef struct packed {
    logic        valid;
    logic        dram;
    logic [2:0]  base_reg;
    logic [47:0] end_row;
    logic [47:0] limit;
  } extent_t;"""


def _struct(row: Instruction) -> str:
    used = sum(f.width for f in row.fields)
    lines = [f"    logic [{isa.INSTRUCTION_BITS - used - 1}:0] reserved;"]
    for f in reversed(row.fields):
        sign = "logic signed" if f.signed else "logic"
        size = f" [{f.width - 1}:0]" if f.width > 1 else ""
        lines.append(f"    {sign}{size} {f.name};")
    body = "\n".join(lines)
    return f"  typedef struct packed {{\n{body}\n  }} {row.name}_t;"


def _case(signature: str, selector: str, rows: list[tuple[str, str]], default: str) -> str:
    lines = [f"  function automatic {signature};", f"    unique case ({selector})"]
    lines += [f"      {label}: return {value};" for label, value in rows]
    lines += [f"      default: return {default};", "    endcase", "  endfunction"]
    return "\n".join(lines)


def _op(row: Instruction) -> str:
    return f"OP_{row.name.upper()}"


def _opcode_known() -> str:
    return _case(
        "logic opcode_known(logic [7:0] opcode)",
        "opcode",
        [(",\n      ".join(_op(r) for r in INSTRUCTIONS), "1'b1")],
        "1'b0",
    )


def _engine_of() -> str:
    return _case(
        "logic [2:0] engine_of(logic [7:0] opcode)",
        "opcode",
        [
            (_op(r), f"ENGINE_{ENGINES[r.engine].upper()}")
            for r in INSTRUCTIONS
            if r.engine is not None
        ],
        "ENGINE_DISPATCH",
    )


def _row_hash(config: Config) -> str:
    return _case(
        "logic [63:0] row_hash(logic [4:0] opcode)",
        "opcode",
        [(f"5'd{r.opcode}", f"64'h{row_hash(r, config):016x}") for r in INSTRUCTIONS],
        "64'h0",
    )


def _slice(row: Instruction, name: str) -> str:
    field = next(f for f in row.fields if f.name == name)
    low = positions(row.name)[name]
    bits = f"i[{low + field.width - 1}:{low}]" if field.width > 1 else f"i[{low}]"
    return f"$signed({bits})" if field.signed else bits


def _legal(row: Instruction, config: Config) -> str:
    used = sum(f.width for f in row.fields)
    terms = [f"i[{isa.INSTRUCTION_BITS - 1}:{used}] == '0"]
    own = 0xF if row.engine is None else 1 << row.engine
    for name in ("take", "give"):
        terms.append(f"({_slice(row, name)} & 4'd{own}) == '0")
    for f in row.fields:
        low, high = f.bounds(config)
        if f.minimum is not None:
            terms.append(f"{_slice(row, f.name)} >= {f.width}'d{low}")
        if f.maximum is not None and high < (1 << f.width) - 1:
            terms.append(f"{_slice(row, f.name)} <= {f.width}'d{high}")
    return " &&\n          ".join(terms)


def _fields_legal(config: Config) -> str:
    rows = [(_op(r), _legal(r, config)) for r in INSTRUCTIONS]
    return _case("logic fields_legal(instr_t i)", "i[7:0]", rows, "1'b0")


def _wide(row: Instruction, item: str | int | Select, config: Config) -> str:
    if isinstance(item, Select):
        field = next(f for f in row.fields if f.name == item.field)
        chosen = [
            f"({_slice(row, item.field)} == {field.width}'d{value}) ? 48'd{number}"
            for value, number in enumerate(item.numbers[:-1])
        ]
        chosen.append(f"48'd{item.numbers[-1]}")
        return "(" + " :\n              ".join(chosen) + ")"
    if isinstance(item, int):
        return f"48'd{item}"
    if any(f.name == item for f in row.fields):
        return f"48'({_slice(row, item)})"
    return f"48'd{getattr(config, item)}"


def _end(row: Instruction, extent: Extent, config: Config) -> str:
    parts = [_wide(row, extent.base, config), "48'd1"]
    for counts, stride in extent.terms:
        product = (" *\n              ").join(_wide(row, c, config) for c in counts)
        step = "" if stride == 1 else f" * {_wide(row, stride, config)}"
        parts.append(f"({product} - 48'd1){step}")
    return " +\n              ".join(parts)


def _limit(row: Instruction, extent: Extent) -> str:
    if extent.memory == "dram":
        return "'0"
    if extent.memory != "local":
        return f"48'({extent.memory.upper()}_ROWS)"
    memory = _slice(row, "memory")
    sizes = ["48'(ACT_ROWS)", "48'(WGT_ROWS)", "48'(PAR_BEATS)"]
    last = "48'(TAB_BEATS)" if row.name == "load" else sizes.pop()
    chosen = [f"({memory} == 2'd{n}) ? {size} :" for n, size in enumerate(sizes)]
    return "\n              ".join([*chosen, last])


def _extent(config: Config) -> str:
    lines = [
        "  // The extent in one slot; slots that an instruction does not have are not valid.",
        "  function automatic extent_t extent(instr_t i, logic [1:0] slot);",
        "    extent_t e;",
        "    e = '0;",
        "    unique case (i[7:0])",
    ]
    for row in INSTRUCTIONS:
        if not row.extents:
            continue
        lines += [f"      {_op(row)}:", "      unique case (slot)"]
        for slot, extent in enumerate(row.extents):
            lines += [
                f"        2'd{slot}: begin",
                "          e.valid = 1'b1;",
            ]
            if extent.memory == "dram":
                lines += ["          e.dram = 1'b1;"]
                lines += [f"          e.base_reg = {_slice(row, 'base_reg')};"]
            lines += [
                f"          e.end_row = {_end(row, extent, config)};",
                f"          e.limit = {_limit(row, extent)};",
                "        end",
            ]
        lines += ["        default: ;", "      endcase"]
    lines += ["      default: ;", "    endcase", "    return e;", "  endfunction"]
    return "\n".join(lines)
