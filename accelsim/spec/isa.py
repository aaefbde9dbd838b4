"""The instruction table: every instruction once, with its fields, extents and duration.

What comes out: `INSTRUCTIONS`, from which encoder, assembler, manual, C header and the
SystemVerilog decoder are computed. Bit positions are never typed: fields are packed in order from
bit 0 of a 512-bit instruction; unused bits must be zero.
"""

from __future__ import annotations

from collections.abc import Callable

from accelsim.spec.config import DEPTHWISE_TAPS, LOAD, MATRIX, STORE, VECTOR, Config
from accelsim.spec.durations import (
    DISPATCH_CYCLES,
    MATRIX_LATENCY,
    VECTOR_LATENCY,
    Values,
    add_cycles,
    conv_cycles,
    drain_cycles,
    dwconv_cycles,
    pool_cycles,
)
from accelsim.spec.groups import (
    ACC,
    ADD_MODE,
    DRAM,
    DRAM_TERMS,
    DST,
    HEADER,
    KERNEL_W,
    LOCAL_TERMS,
    MAC,
    MODE,
    OUT,
    TAIL,
    WINDOW,
    acc_extent,
    bits,
    dst_terms,
    local,
    par_extent,
    tail,
    window_terms,
)
from accelsim.spec.row import Extent, Field, Instruction

__all__ = [
    "ARENA_BASE",
    "BASE_REGISTERS",
    "BY_NAME",
    "BY_OPCODE",
    "DISPATCH_CYCLES",
    "EXTENT_SLOTS",
    "EXTENT_TERMS",
    "HEADER",
    "INPUT_BASE",
    "INSTRUCTIONS",
    "INSTRUCTION_BITS",
    "INSTRUCTION_BYTES",
    "INSTRUCTION_WORDS",
    "MATRIX_LATENCY",
    "OUTPUT_BASE",
    "PROGRAM_BASE",
    "VECTOR_LATENCY",
    "WEIGHTS_BASE",
    "Extent",
    "Field",
    "Instruction",
    "Values",
]

INSTRUCTION_BITS = 512
INSTRUCTION_WORDS = INSTRUCTION_BITS // 32
INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
BASE_REGISTERS = 8
PROGRAM_BASE, WEIGHTS_BASE, INPUT_BASE, OUTPUT_BASE, ARENA_BASE = range(5)


def _doc(function: Callable[[Values, Config], int]) -> str:
    return (function.__doc__ or "").split("\n\n")[0].strip().rstrip(".")


INSTRUCTIONS: tuple[Instruction, ...] = (
    Instruction(
        "end",
        1,
        None,
        "Ends the program: retires when every engine is idle and every write is acknowledged.",
        HEADER,
        (),
        "until all engines are idle",
        None,
        uses=(),
    ),
    Instruction(
        "load",
        2,
        LOAD,
        "Copies count2·count1 runs of count0 beats from DRAM to on-chip memory.",
        (
            *HEADER,
            bits("memory", 2, "0 activation, 1 weight, 2 parameter memory", maximum=2),
            *DRAM,
            *local("destination"),
        ),
        (
            Extent("dram", "read", "dram_offset", DRAM_TERMS),
            Extent("local", "write", "local_base", LOCAL_TERMS),
        ),
        "AXI",
        None,
        uses=("lanes", "act_banks", "act_bank_rows", "wgt_rows", "par_rows"),
    ),
    Instruction(
        "store",
        3,
        STORE,
        "Copies activation rows to count2·count1 runs of count0 beats in DRAM.",
        (*HEADER, *DRAM, *local("source")),
        (
            Extent("act", "read", "local_base", LOCAL_TERMS),
            Extent("dram", "write", "dram_offset", DRAM_TERMS),
        ),
        "AXI; ends with the last write response",
        None,
        uses=("lanes", "act_banks", "act_bank_rows"),
    ),
    Instruction(
        "conv",
        4,
        MATRIX,
        "Convolution of a tile: for each output block, kernel row, kernel column and input block "
        "one LANES×LANES weight tile, through which all pixels stream. "
        "acc[block, pixel, o] (+)= Σ (x - input_zero_point)(w - weight_zero_point); padding and "
        "lanes beyond in_tail contribute nothing. Weight rows of a tile are input lanes: "
        "row = wgt_base + tile·LANES + input lane, byte = output lane.",
        (
            *HEADER,
            *WINDOW,
            KERNEL_W,
            bits("in_blocks", 12, "input channel blocks", minimum=1),
            bits("out_blocks", 12, "output channel blocks", minimum=1),
            bits("in_tail", 6, TAIL.format("input", "are ignored"), minimum=1, maximum="lanes"),
            bits("out_tail", 6, TAIL.format("output", "become 0"), minimum=1, maximum="lanes"),
            *MAC,
        ),
        (
            Extent("act", "read", "in_base", window_terms("in_blocks")),
            Extent(
                "wgt",
                "read",
                "wgt_base",
                ((("out_blocks", "kernel_h", "kernel_w", "in_blocks", "lanes"), 1),),
            ),
            acc_extent("write", "out_blocks"),
        ),
        _doc(conv_cycles),
        conv_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "wgt_rows", "acc_rows"),
    ),
    Instruction(
        "dwconv",
        5,
        MATRIX,
        "Depthwise convolution of a tile: for each channel block, kernel row and group of kernel "
        "columns one weight tile of 3 rows, through which the input columns stream. With `wide` a "
        "group is 3 adjacent columns (dilation_w must be 1 to mean anything and is ignored) and "
        "every input column streams, so 3 taps are multiplied a cycle; without it a group is one "
        "column (rows 1 and 2 of its weight tile are ignored). Group g begins at kernel column "
        "3·g with `wide` and at g·dilation_w without.",
        (
            *HEADER,
            *WINDOW,
            bits("groups_w", 5, "groups of kernel columns", minimum=1),
            bits("wide", 1, "1: 3 adjacent taps a group, 0: one"),
            bits("blocks", 12, "channel blocks", minimum=1),
            tail("channel", "become 0"),
            *MAC,
        ),
        (
            Extent("act", "read", "in_base", window_terms("blocks")),
            Extent(
                "wgt",
                "read",
                "wgt_base",
                ((("blocks", "kernel_h", "groups_w", DEPTHWISE_TAPS), 1),),
            ),
            acc_extent("write", "blocks"),
        ),
        _doc(dwconv_cycles),
        dwconv_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "wgt_rows", "acc_rows"),
    ),
    Instruction(
        "drain",
        6,
        VECTOR,
        "Accumulators to int8 activations: clamp(round((acc + bias)·multiplier) + zero_point). "
        "Parameter rows of a block: bias (int32), multiplier (float32).",
        (
            *HEADER,
            *ACC,
            bits("out_h", 12, "output rows", minimum=1),
            bits("out_w", 12, "output columns", minimum=1),
            bits("blocks", 12, "channel blocks", minimum=1),
            tail("channel", "become 0"),
            *DST,
            MODE,
            *OUT,
        ),
        (
            acc_extent("read", "blocks"),
            Extent("act", "write", "dst_base", dst_terms("blocks")),
            par_extent("blocks", 2),
        ),
        _doc(drain_cycles),
        drain_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows", "acc_rows"),
    ),
    Instruction(
        "pool",
        7,
        VECTOR,
        "Window reduction of activations: the clamped maximum, or with `sum` "
        "clamp(round((Σ (x - input_zero_point) + bias)·multiplier) + zero_point). Padding never "
        "wins a maximum (an empty window gives -128) and adds nothing to a sum. Parameter rows of "
        "a block, with `sum` only: bias (int32), multiplier (float32).",
        (
            *HEADER,
            *WINDOW,
            KERNEL_W,
            bits("blocks", 12, "channel blocks", minimum=1),
            tail("channel", "become 0"),
            bits("sum", 1, "1: sum and requantize, 0: maximum"),
            bits("input_zero_point", 8, "subtracted from every element of a sum", signed=True),
            *DST,
            MODE,
            *OUT,
        ),
        (
            Extent("act", "read", "in_base", window_terms("blocks")),
            Extent("act", "write", "dst_base", dst_terms("blocks")),
            par_extent("blocks", 2),
        ),
        _doc(pool_cycles),
        pool_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows"),
    ),
    Instruction(
        "add",
        8,
        VECTOR,
        "Elementwise sum of two activation tensors without their zero points: clamp(round(x) + "
        "zero_point). In mode fp32 x = (a·sa + b·sb)·inv, every operation rounded to float32; "
        "parameter rows of a block: sa, sb, inv. In mode fixed x = (a·ma + b·mb) / 2^shift, the "
        "sum modulo 2^32, ties away from 0; rows: ma, mb (bits 22:0, unsigned), shift (bits 4:0).",
        (
            *HEADER,
            bits("a_base", 16, "activation row of the first operand"),
            bits("a_row_stride", 16, "activation rows from one row to the next"),
            bits("a_col_stride", 16, "activation rows from one column to the next"),
            bits("a_block_stride", 16, "activation rows from one block to the next"),
            bits("b_base", 16, "activation row of the second operand"),
            bits("b_row_stride", 16, "activation rows from one row to the next"),
            bits("b_col_stride", 16, "activation rows from one column to the next"),
            bits("b_block_stride", 16, "activation rows from one block to the next"),
            bits("out_h", 12, "output rows", minimum=1),
            bits("out_w", 12, "output columns", minimum=1),
            bits("blocks", 12, "channel blocks", minimum=1),
            tail("channel", "become 0"),
            bits("a_zero_point", 8, "subtracted from the first operand", signed=True),
            bits("b_zero_point", 8, "subtracted from the second operand", signed=True),
            *DST,
            ADD_MODE,
            *OUT,
        ),
        (
            Extent(
                "act",
                "read",
                "a_base",
                (
                    (("out_h",), "a_row_stride"),
                    (("out_w",), "a_col_stride"),
                    (("blocks",), "a_block_stride"),
                ),
            ),
            Extent(
                "act",
                "read",
                "b_base",
                (
                    (("out_h",), "b_row_stride"),
                    (("out_w",), "b_col_stride"),
                    (("blocks",), "b_block_stride"),
                ),
            ),
            Extent("act", "write", "dst_base", dst_terms("blocks")),
            par_extent("blocks", 3),
        ),
        _doc(add_cycles),
        add_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows"),
    ),
)

BY_NAME: dict[str, Instruction] = {i.name: i for i in INSTRUCTIONS}
BY_OPCODE: dict[int, Instruction] = {i.opcode: i for i in INSTRUCTIONS}
EXTENT_SLOTS = max(len(i.extents) for i in INSTRUCTIONS)
EXTENT_TERMS = max(len(e.terms) for i in INSTRUCTIONS for e in i.extents)
