"""The C header of one configuration: what a host driver and a board bring-up include."""

from __future__ import annotations

from accelsim.spec import isa
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.encoding import positions, row_hash
from accelsim.spec.generate.stamp import stamp
from accelsim.spec.isa import INSTRUCTIONS
from accelsim.spec.registers import BASE_ALIGN_BYTES, IDENTIFIER, REGISTERS, ErrorCode


def c_header(config: Config) -> str:
    """Text of npu.h for one configuration."""
    lines = [
        f"/* Configuration {config.name}. */",
        "#ifndef NPU_H",
        "#define NPU_H",
        "",
        f"#define NPU_LANES {config.lanes}u",
        f"#define NPU_ACT_BANKS {config.act_banks}u",
        f"#define NPU_ACT_BANK_ROWS {config.act_bank_rows}u",
        f"#define NPU_WGT_ROWS {config.wgt_rows}u",
        f"#define NPU_PAR_ROWS {config.par_rows}u",
        f"#define NPU_ACC_ROWS {config.acc_rows}u",
        f"#define NPU_INSTRUCTION_BYTES {isa.INSTRUCTION_BYTES}u",
        f"#define NPU_BASE_ALIGN_BYTES {BASE_ALIGN_BYTES}u",
        f"#define NPU_IDENTIFIER 0x{IDENTIFIER:08x}u",
        "",
        "/* Registers: byte offsets; array registers take an index. */",
    ]
    for r in REGISTERS:
        if r.count == 1:
            lines.append(f"#define NPU_REG_{r.name} 0x{r.offset:03x}u")
        else:
            step = f"0x{r.offset:03x}u + {r.stride}u * (i)"
            lines.append(f"#define NPU_REG_{r.name}(i) ({step}) /* 0 <= i < {r.count} */")
    lines += ["", "/* Error codes. */"]
    lines += [f"#define NPU_ERR_{e.name} {int(e)}u" for e in ErrorCode]
    lines += ["", "/* Engines. */"]
    lines += [f"#define NPU_ENGINE_{n.upper()} {i}u" for i, n in enumerate(ENGINES)]
    lines += ["", "/* Instructions: opcode, row hash, and bit position and width of each field. */"]
    for row in INSTRUCTIONS:
        upper = row.name.upper()
        lines.append(f"#define NPU_OP_{upper} {row.opcode}u")
        lines.append(f"#define NPU_HASH_{upper} 0x{row_hash(row, config):016x}ull")
        for f in row.fields:
            name = f"NPU_{upper}_{f.name.upper()}"
            lines.append(f"#define {name}_LSB {positions(row.name)[f.name]}u")
            lines.append(f"#define {name}_WIDTH {f.width}u")
    lines += ["", "#endif"]
    return stamp("//", "\n".join(lines) + "\n")
