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


def _f(name: str, width: int, doc: str, **kw: int | str | bool) -> Field:
    return Field(name, width, doc, **kw)  # type: ignore[arg-type]


HEADER = (
    _f("opcode", 8, "which instruction"),
    _f("take", 4, "engines from each of which one token is taken before the start; bit = engine"),
    _f("give", 4, "engines to each of which one token is given at the end; bit = engine"),
)

_TAIL = "valid lanes of the last {} block; the others {}"
_DRAM = (
    _f("base_reg", 3, "base register of the DRAM address"),
    _f("dram_offset", 32, "offset from the base register in beats of LANES bytes"),
    _f("count0", 16, "beats in one contiguous DRAM run (innermost)", minimum=1),
    _f("count1", 12, "runs (middle)", minimum=1),
    _f("count2", 12, "groups of runs (outermost)", minimum=1),
    _f("dram_stride1", 24, "beats between runs"),
    _f("dram_stride2", 24, "beats between groups"),
)
_DRAM_TERMS = ((("count0",), 1), (("count1",), "dram_stride1"), (("count2",), "dram_stride2"))


def _local(role: str) -> tuple[Field, ...]:
    return (
        _f("local_base", 16, f"first {role} row (beats in parameter memory)"),
        _f("local_stride0", 16, "rows between successive beats of a run"),
        _f("local_stride1", 16, "rows between runs"),
        _f("local_stride2", 16, "rows between groups"),
    )


_LOCAL_TERMS = (
    (("count0",), "local_stride0"),
    (("count1",), "local_stride1"),
    (("count2",), "local_stride2"),
)
_WINDOW = (
    _f("in_base", 16, "activation row of input element (0, 0), block 0"),
    _f("in_h", 12, "input height; rows outside are padding", minimum=1),
    _f("in_w", 12, "input width; columns outside are padding", minimum=1),
    _f("in_row_stride", 16, "activation rows from one input row to the next"),
    _f("in_col_stride", 16, "activation rows from one input column to the next"),
    _f("in_block_stride", 16, "activation rows from one channel block to the next"),
    _f("origin_h", 12, "input row of output row 0 and kernel row 0", signed=True),
    _f("origin_w", 12, "input column of output column 0 and kernel column 0", signed=True),
    _f("stride_h", 5, "input rows between output rows", minimum=1),
    _f("stride_w", 5, "input columns between output columns", minimum=1),
    _f("dilation_h", 5, "input rows between kernel rows", minimum=1),
    _f("dilation_w", 5, "input columns between kernel columns", minimum=1),
    _f("kernel_h", 5, "kernel rows", minimum=1),
    _f("out_h", 12, "output rows", minimum=1),
    _f("out_w", 12, "output columns", minimum=1),
)
_KERNEL_W = _f("kernel_w", 5, "kernel columns", minimum=1)
_ACC = (
    _f("acc_bank", 1, "accumulator bank"),
    _f("acc_base", 16, "first accumulator row; row = base + block·out_h·out_w + pixel"),
)
_MAC = (
    _f("wgt_base", 16, "first weight row"),
    *_ACC,
    _f("accumulate", 1, "1: add to the accumulators, 0: overwrite them"),
    _f("input_zero_point", 8, "subtracted from every input element", signed=True),
    _f("weight_zero_point", 8, "subtracted from every weight", signed=True),
)
_DST = (
    _f("dst_base", 16, "activation row of output element (0, 0), block 0"),
    _f("dst_row_stride", 16, "activation rows from one output row to the next"),
    _f("dst_col_stride", 16, "activation rows from one output column to the next"),
    _f("dst_block_stride", 16, "activation rows from one channel block to the next"),
)
_OUT = (
    _f("par_base", 16, "first parameter row of block 0"),
    _f("par_stride", 8, "parameter rows from one block to the next; 0: all blocks share them"),
    _f("zero_point", 8, "added after rounding", signed=True),
    _f("clamp_min", 8, "lower limit, applied first", signed=True),
    _f("clamp_max", 8, "upper limit, applied last", signed=True),
)
_MODE = _f("mode", 3, "rounding mode: 0 fp32; the others are not built", maximum=0)
_ADD_MODE = _f("mode", 3, "rounding mode: 0 fp32, 1 fixed; the others are not built", maximum=1)


def _tail(block: str, effect: str) -> Field:
    return _f("tail", 6, _TAIL.format(block, effect), minimum=1, maximum="lanes")


def _window_terms(blocks: str) -> tuple[tuple[tuple[str | int, ...], str | int], ...]:
    return (
        (("in_h",), "in_row_stride"),
        (("in_w",), "in_col_stride"),
        ((blocks,), "in_block_stride"),
    )


def _dst_terms(blocks: str) -> tuple[tuple[tuple[str | int, ...], str | int], ...]:
    return (
        (("out_h",), "dst_row_stride"),
        (("out_w",), "dst_col_stride"),
        ((blocks,), "dst_block_stride"),
    )


def _acc_extent(access: str, blocks: str) -> Extent:
    return Extent("acc", access, "acc_base", (((blocks, "out_h", "out_w"), 1),))


def _par_extent(blocks: str, rows: int) -> Extent:
    return Extent("par", "read", "par_base", (((blocks,), "par_stride"), ((rows,), 1)))


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
            _f("memory", 2, "0 activation, 1 weight, 2 parameter memory", maximum=2),
            *_DRAM,
            *_local("destination"),
        ),
        (
            Extent("dram", "read", "dram_offset", _DRAM_TERMS),
            Extent("local", "write", "local_base", _LOCAL_TERMS),
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
        (*HEADER, *_DRAM, *_local("source")),
        (
            Extent("act", "read", "local_base", _LOCAL_TERMS),
            Extent("dram", "write", "dram_offset", _DRAM_TERMS),
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
            *_WINDOW,
            _KERNEL_W,
            _f("in_blocks", 12, "input channel blocks", minimum=1),
            _f("out_blocks", 12, "output channel blocks", minimum=1),
            _f("in_tail", 6, _TAIL.format("input", "are ignored"), minimum=1, maximum="lanes"),
            _f("out_tail", 6, _TAIL.format("output", "become 0"), minimum=1, maximum="lanes"),
            *_MAC,
        ),
        (
            Extent("act", "read", "in_base", _window_terms("in_blocks")),
            Extent(
                "wgt",
                "read",
                "wgt_base",
                ((("out_blocks", "kernel_h", "kernel_w", "in_blocks", "lanes"), 1),),
            ),
            _acc_extent("write", "out_blocks"),
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
            *_WINDOW,
            _f("groups_w", 5, "groups of kernel columns", minimum=1),
            _f("wide", 1, "1: 3 adjacent taps a group, 0: one"),
            _f("blocks", 12, "channel blocks", minimum=1),
            _tail("channel", "become 0"),
            *_MAC,
        ),
        (
            Extent("act", "read", "in_base", _window_terms("blocks")),
            Extent(
                "wgt",
                "read",
                "wgt_base",
                ((("blocks", "kernel_h", "groups_w", DEPTHWISE_TAPS), 1),),
            ),
            _acc_extent("write", "blocks"),
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
            *_ACC,
            _f("out_h", 12, "output rows", minimum=1),
            _f("out_w", 12, "output columns", minimum=1),
            _f("blocks", 12, "channel blocks", minimum=1),
            _tail("channel", "become 0"),
            *_DST,
            _MODE,
            *_OUT,
        ),
        (
            _acc_extent("read", "blocks"),
            Extent("act", "write", "dst_base", _dst_terms("blocks")),
            _par_extent("blocks", 2),
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
            *_WINDOW,
            _KERNEL_W,
            _f("blocks", 12, "channel blocks", minimum=1),
            _tail("channel", "become 0"),
            _f("sum", 1, "1: sum and requantize, 0: maximum"),
            _f("input_zero_point", 8, "subtracted from every element of a sum", signed=True),
            *_DST,
            _MODE,
            *_OUT,
        ),
        (
            Extent("act", "read", "in_base", _window_terms("blocks")),
            Extent("act", "write", "dst_base", _dst_terms("blocks")),
            _par_extent("blocks", 2),
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
            _f("a_base", 16, "activation row of the first operand"),
            _f("a_row_stride", 16, "activation rows from one row to the next"),
            _f("a_col_stride", 16, "activation rows from one column to the next"),
            _f("a_block_stride", 16, "activation rows from one block to the next"),
            _f("b_base", 16, "activation row of the second operand"),
            _f("b_row_stride", 16, "activation rows from one row to the next"),
            _f("b_col_stride", 16, "activation rows from one column to the next"),
            _f("b_block_stride", 16, "activation rows from one block to the next"),
            _f("out_h", 12, "output rows", minimum=1),
            _f("out_w", 12, "output columns", minimum=1),
            _f("blocks", 12, "channel blocks", minimum=1),
            _tail("channel", "become 0"),
            _f("a_zero_point", 8, "subtracted from the first operand", signed=True),
            _f("b_zero_point", 8, "subtracted from the second operand", signed=True),
            *_DST,
            _ADD_MODE,
            *_OUT,
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
            Extent("act", "write", "dst_base", _dst_terms("blocks")),
            _par_extent("blocks", 3),
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
