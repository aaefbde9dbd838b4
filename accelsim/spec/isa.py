"""The instruction table: every instruction once, with its fields, extents and duration.

What comes out: `INSTRUCTIONS`, from which encoder, assembler, manual, C header and the
SystemVerilog decoder are computed. Bit positions are never typed: fields are packed in order from
bit 0 of a 512-bit instruction; unused bits must be zero.
"""

from __future__ import annotations

from collections.abc import Callable

from accelsim.spec.config import DEPTHWISE_TAPS, LOAD, MATRIX, STORE, VECTOR, Config
from accelsim.spec.durations import (
    ADD_ROWS,
    DISPATCH_CYCLES,
    MATRIX_LATENCY,
    REQUANTIZE_ROWS,
    VECTOR_LATENCY,
    add_cycles,
    binary_cycles,
    conv_cycles,
    drain_cycles,
    dwconv_cycles,
    layernorm_cycles,
    lookup_cycles,
    pool_cycles,
    softmax_cycles,
)
from accelsim.spec.groups import (
    ACC,
    ADD_MODE,
    BLOCKS,
    DRAM,
    DRAM_TERMS,
    DST,
    HEADER,
    KERNEL_W,
    LOCAL_TERMS,
    MAC,
    MODE,
    OPERAND_ENDS,
    OPERANDS,
    OUT,
    OUT_SIZE,
    ROW_BLOCKS,
    SOURCE,
    SOURCE_EXTENT,
    TABLE,
    TAIL,
    WINDOW,
    acc_extent,
    bits,
    dst_terms,
    local,
    operand_extent,
    par_extent,
    tail,
    window_terms,
)
from accelsim.spec.row import Extent, Field, Instruction, Values

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
            bits("memory", 2, "0 activation, 1 weight, 2 parameter, 3 table memory"),
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
        "row = wgt_base + tile·LANES + input lane, byte = output lane; with `transposed` rows are "
        "output lanes and bytes are input lanes.",
        (
            *HEADER,
            *WINDOW,
            KERNEL_W,
            bits("in_blocks", 12, "input channel blocks", minimum=1),
            bits("out_blocks", 12, "output channel blocks", minimum=1),
            bits("in_tail", 6, TAIL.format("input", "are ignored"), minimum=1, maximum="lanes"),
            bits("out_tail", 6, TAIL.format("output", "become 0"), minimum=1, maximum="lanes"),
            *MAC,
            bits("transposed", 1, "1: rows of a weight tile are output lanes"),
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
        "Parameter rows of a block: bias (int32), multiplier (float32); in the integer modes bias, "
        "mantissa and shift, all int32.",
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
            par_extent("blocks", REQUANTIZE_ROWS),
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
        "a block, with `sum` only, as of drain.",
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
            par_extent("blocks", REQUANTIZE_ROWS),
        ),
        _doc(pool_cycles),
        pool_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows"),
    ),
    Instruction(
        "add",
        8,
        VECTOR,
        "Elementwise sum, or with `subtract` difference, of two activation tensors without their "
        "zero points: clamp(round(x) + zero_point). In mode fp32 x = (a·sa ± b·sb)·inv, every "
        "operation rounded to float32; parameter rows of a block: sa, sb, inv. In mode fixed "
        "x = (a·ma ± b·mb) / 2^shift, modulo 2^32 before the division, ties away from 0; rows: ma, "
        "mb (bits 22:0, unsigned), shift (bits 4:0). In mode tflite a·2^20 and b·2^20 are scaled, "
        "then their sum, modulo 2^32; rows: mantissas of a, b and the sum, then their shifts.",
        (
            *HEADER,
            *OPERANDS,
            *OUT_SIZE,
            BLOCKS,
            tail("channel", "become 0"),
            *OPERAND_ENDS,
            *DST,
            ADD_MODE,
            bits("subtract", 1, "1: the second product is subtracted"),
            *OUT,
        ),
        (
            operand_extent("a"),
            operand_extent("b"),
            Extent("act", "write", "dst_base", dst_terms("blocks")),
            par_extent("blocks", ADD_ROWS),
        ),
        _doc(add_cycles),
        add_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows"),
    ),
    Instruction(
        "binary",
        9,
        VECTOR,
        "Elementwise product, minimum or maximum of two activation tensors without their zero "
        "points: clamp(round((x + bias)·multiplier) + zero_point). Parameter rows as of drain.",
        (
            *HEADER,
            *OPERANDS,
            *OUT_SIZE,
            BLOCKS,
            tail("channel", "become 0"),
            *OPERAND_ENDS,
            *DST,
            MODE,
            bits("kind", 2, "0 product, 1 minimum, 2 maximum", maximum=2),
            *OUT,
        ),
        (
            operand_extent("a"),
            operand_extent("b"),
            Extent("act", "write", "dst_base", dst_terms("blocks")),
            par_extent("blocks", REQUANTIZE_ROWS),
        ),
        _doc(binary_cycles),
        binary_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows"),
    ),
    Instruction(
        "lookup",
        10,
        VECTOR,
        "Elementwise table: the low byte of word x + 128 of the table.",
        (*HEADER, *SOURCE, BLOCKS, tail("channel", "become 0"), *DST, TABLE),
        (SOURCE_EXTENT, Extent("act", "write", "dst_base", dst_terms("blocks"))),
        _doc(lookup_cycles),
        lookup_cycles,
        uses=("lanes", "act_banks", "act_bank_rows"),
    ),
    Instruction(
        "softmax",
        11,
        VECTOR,
        "Softmax over the channels of each pixel, scale 1/256 and zero point -128. Word d of the "
        "table is exp(-d·scale) in Q0.31 for d = maximum - x.",
        (
            *HEADER,
            *SOURCE,
            ROW_BLOCKS,
            tail("channel", "take no part and become 0"),
            *DST,
            TABLE,
        ),
        (SOURCE_EXTENT, Extent("act", "write", "dst_base", dst_terms("blocks"))),
        _doc(softmax_cycles),
        softmax_cycles,
        uses=("lanes", "act_banks", "act_bank_rows"),
    ),
    Instruction(
        "layernorm",
        12,
        VECTOR,
        "Normalization over the channels of each pixel: mean 0 and variance 1, times gain, plus "
        "offset. Added to channels²·variance is epsilon·2^epsilon_shift. Parameter rows of a "
        "block: gain in units of 2^-gain_bits steps, offset in units of 2^-16 steps, both int32.",
        (
            *HEADER,
            *SOURCE,
            ROW_BLOCKS,
            tail("channel", "take no part and become 0"),
            *DST,
            bits("gain_bits", 5, "fraction bits of the gain", maximum=24),
            bits("epsilon", 32, "added to channels²·variance, before its shift"),
            bits("epsilon_shift", 4, "places that epsilon is shifted left"),
            *OUT,
        ),
        (
            SOURCE_EXTENT,
            Extent("act", "write", "dst_base", dst_terms("blocks")),
            par_extent("blocks", 2),
        ),
        _doc(layernorm_cycles),
        layernorm_cycles,
        uses=("lanes", "act_banks", "act_bank_rows", "par_rows"),
    ),
)

BY_NAME: dict[str, Instruction] = {i.name: i for i in INSTRUCTIONS}
BY_OPCODE: dict[int, Instruction] = {i.opcode: i for i in INSTRUCTIONS}
EXTENT_SLOTS = max(len(i.extents) for i in INSTRUCTIONS)
EXTENT_TERMS = max(len(e.terms) for i in INSTRUCTIONS for e in i.extents)
