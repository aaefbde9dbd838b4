"""Groups of fields and extents that several instructions share.

What comes out: tuples of fields in their order from bit 0, and how far an instruction reaches into
a memory. This module must not know which instructions there are.
"""

from __future__ import annotations

from accelsim.spec.row import Extent, Field, Select, Terms


def bits(name: str, width: int, doc: str, **kw: int | str | bool) -> Field:
    """One field; `kw` as `Field` has them."""
    return Field(name, width, doc, **kw)  # type: ignore[arg-type]


HEADER = (
    bits("opcode", 8, "which instruction"),
    bits("take", 4, "engines from each of which one token is taken before the start; bit = engine"),
    bits("give", 4, "engines to each of which one token is given at the end; bit = engine"),
)

TAIL = "valid lanes of the last {} block; the others {}"
DRAM = (
    bits("base_reg", 3, "base register of the DRAM address"),
    bits("dram_offset", 32, "offset from the base register in beats of LANES bytes"),
    bits("count0", 16, "beats in one contiguous DRAM run (innermost)", minimum=1),
    bits("count1", 12, "runs (middle)", minimum=1),
    bits("count2", 12, "groups of runs (outermost)", minimum=1),
    bits("dram_stride1", 24, "beats between runs"),
    bits("dram_stride2", 24, "beats between groups"),
)
DRAM_TERMS = ((("count0",), 1), (("count1",), "dram_stride1"), (("count2",), "dram_stride2"))


def local(role: str) -> tuple[Field, ...]:
    """Rows of on-chip memory that a DMA engine walks."""
    return (
        bits("local_base", 16, f"first {role} row (beats in parameter memory)"),
        bits("local_stride0", 16, "rows between successive beats of a run"),
        bits("local_stride1", 16, "rows between runs"),
        bits("local_stride2", 16, "rows between groups"),
    )


LOCAL_TERMS = (
    (("count0",), "local_stride0"),
    (("count1",), "local_stride1"),
    (("count2",), "local_stride2"),
)
WINDOW = (
    bits("in_base", 16, "activation row of input element (0, 0), block 0"),
    bits("in_h", 12, "input height; rows outside are padding", minimum=1),
    bits("in_w", 12, "input width; columns outside are padding", minimum=1),
    bits("in_row_stride", 16, "activation rows from one input row to the next"),
    bits("in_col_stride", 16, "activation rows from one input column to the next"),
    bits("in_block_stride", 16, "activation rows from one channel block to the next"),
    bits("origin_h", 12, "input row of output row 0 and kernel row 0", signed=True),
    bits("origin_w", 12, "input column of output column 0 and kernel column 0", signed=True),
    bits("stride_h", 5, "input rows between output rows", minimum=1),
    bits("stride_w", 5, "input columns between output columns", minimum=1),
    bits("dilation_h", 5, "input rows between kernel rows", minimum=1),
    bits("dilation_w", 5, "input columns between kernel columns", minimum=1),
    bits("kernel_h", 5, "kernel rows", minimum=1),
    bits("out_h", 12, "output rows", minimum=1),
    bits("out_w", 12, "output columns", minimum=1),
)
KERNEL_W = bits("kernel_w", 5, "kernel columns", minimum=1)
ACC = (
    bits("acc_bank", 1, "accumulator bank"),
    bits("acc_base", 16, "first accumulator row; row = base + block·out_h·out_w + pixel"),
)
MAC = (
    bits("wgt_base", 16, "first weight row"),
    *ACC,
    bits("accumulate", 1, "1: add to the accumulators, 0: overwrite them"),
    bits("input_zero_point", 8, "subtracted from every input element", signed=True),
    bits("weight_zero_point", 8, "subtracted from every weight", signed=True),
)
DST = (
    bits("dst_base", 16, "activation row of output element (0, 0), block 0"),
    bits("dst_row_stride", 16, "activation rows from one output row to the next"),
    bits("dst_col_stride", 16, "activation rows from one output column to the next"),
    bits("dst_block_stride", 16, "activation rows from one channel block to the next"),
)
OUT = (
    bits("par_base", 16, "first parameter row of block 0"),
    bits("par_stride", 8, "parameter rows from one block to the next; 0: all blocks share them"),
    bits("zero_point", 8, "added after rounding", signed=True),
    bits("clamp_min", 8, "lower limit, applied first", signed=True),
    bits("clamp_max", 8, "upper limit, applied last", signed=True),
)
MODE = bits(
    "mode", 3, "rounding mode: 0 fp32, 1 tflite, 2 half_up, 3 half_even, 4 half_away", maximum=4
)
ADD_MODE = bits("mode", 3, "rounding mode: 0 fp32, 1 fixed, 2 tflite", maximum=2)
OPERANDS = tuple(
    bits(f"{operand}_{name}", 16, f"activation {doc.format(word)}")
    for operand, word in (("a", "first"), ("b", "second"))
    for name, doc in (
        ("base", "row of the {} operand"),
        ("row_stride", "rows of the {} operand from one row to the next"),
        ("col_stride", "rows of the {} operand from one column to the next"),
        ("block_stride", "rows of the {} operand from one block to the next"),
    )
)
OPERAND_ENDS = (
    bits("a_zero_point", 8, "subtracted from the first operand", signed=True),
    bits("b_zero_point", 8, "subtracted from the second operand", signed=True),
    bits("a_scalar", 1, "1: lane 0 of a row of the first operand stands for all lanes"),
    bits("b_scalar", 1, "1: lane 0 of a row of the second operand stands for all lanes"),
)
OUT_SIZE = (
    bits("out_h", 12, "output rows", minimum=1),
    bits("out_w", 12, "output columns", minimum=1),
)
SOURCE = (
    bits("in_base", 16, "activation row of input element (0, 0), block 0"),
    bits("in_row_stride", 16, "activation rows from one input row to the next"),
    bits("in_col_stride", 16, "activation rows from one input column to the next"),
    bits("in_block_stride", 16, "activation rows from one channel block to the next"),
    *OUT_SIZE,
)
BLOCKS = bits("blocks", 12, "channel blocks", minimum=1)
ROW_BLOCKS = bits("blocks", 12, "channel blocks of a row", minimum=1, maximum=128)
TABLE = bits("lut", 1, "which table of table memory")


def tail(block: str, effect: str) -> Field:
    """Valid lanes of the last block, and what the other lanes do."""
    return bits("tail", 6, TAIL.format(block, effect), minimum=1, maximum="lanes")


def window_terms(blocks: str) -> Terms:
    """Terms of all input elements of a window."""
    return (
        (("in_h",), "in_row_stride"),
        (("in_w",), "in_col_stride"),
        ((blocks,), "in_block_stride"),
    )


def dst_terms(blocks: str) -> Terms:
    """Terms of all output elements."""
    return (
        (("out_h",), "dst_row_stride"),
        (("out_w",), "dst_col_stride"),
        ((blocks,), "dst_block_stride"),
    )


def acc_extent(access: str, blocks: str) -> Extent:
    """Accumulators of all output elements."""
    return Extent("acc", access, "acc_base", (((blocks, "out_h", "out_w"), 1),))


def par_extent(blocks: str, rows: int | Select) -> Extent:
    """Parameter rows of all blocks, `rows` a block."""
    return Extent("par", "read", "par_base", (((blocks,), "par_stride"), ((rows,), 1)))


def operand_extent(operand: str) -> Extent:
    """Activation rows of one operand of an elementwise instruction."""
    strides = (("out_h", "row_stride"), ("out_w", "col_stride"), ("blocks", "block_stride"))
    terms: Terms = tuple(((count,), f"{operand}_{stride}") for count, stride in strides)
    return Extent("act", "read", f"{operand}_base", terms)


SOURCE_EXTENT = Extent(
    "act",
    "read",
    "in_base",
    (
        (("out_h",), "in_row_stride"),
        (("out_w",), "in_col_stride"),
        (("blocks",), "in_block_stride"),
    ),
)
