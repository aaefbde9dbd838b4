"""Numbers of TensorFlow Lite's schema: operators, types, and where options lie in their tables.

What comes in: nothing. What goes out: tables. It must not know how a file is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BUILTIN_OPERATORS = (
    *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D"),
    *("DEPTH_TO_SPACE", "DEQUANTIZE", "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED"),
    *("HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION"),
    *("LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D", "MUL", "RELU", "RELU_N1_TO_1"),
    *("RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH"),
    *("CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD"),
    *("UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"),
    *("TRANSPOSE", "MEAN", "SUB", "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    *("STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP", "TOPK_V2", "SPLIT", "LOG_SOFTMAX"),
    *("DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM", "ARG_MAX"),
    *("MINIMUM", "LESS", "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT"),
    *("SLICE", "SIN", "TRANSPOSE_CONV", "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL"),
    *("NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT", "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT"),
    *("REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT", "LOGICAL_AND"),
    *("LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE"),
    *("FILL", "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU"),
    *("SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS", "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2"),
    *("ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU", "REVERSE_SEQUENCE", "MATRIX_DIAG"),
    *("QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE"),
    *("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY"),
    *("SEGMENT_SUM", "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE"),
    *("BROADCAST_TO", "RFFT2D", "CONV_3D", "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE"),
    *("HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "REDUCE_ALL", "CONV_3D_TRANSPOSE"),
    *("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS"),
    *("RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU"),
    *("DYNAMIC_UPDATE_SLICE", "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX"),
    *("UNSORTED_SEGMENT_SUM", "ATAN2", "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST", "BITWISE_XOR"),
    *("RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD", "STABLEHLO_DIVIDE"),
    *("STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP"),
    *("STABLEHLO_CONCATENATE", "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION"),
    *("STABLEHLO_SLICE", "STABLEHLO_CUSTOM_CALL", "STABLEHLO_REDUCE", "STABLEHLO_ABS"),
    *("STABLEHLO_AND", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR"),
    *("STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE", "STABLEHLO_OR"),
    *("STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT"),
    *("STABLEHLO_SUBTRACT", "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE"),
    *("STABLEHLO_CONVERT", "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE"),
    *("STABLEHLO_PAD", "STABLEHLO_IOTA", "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW"),
    *("STABLEHLO_SORT", "STABLEHLO_WHILE", "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE", "DILATE"),
    *("STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE"),
    *("STABLEHLO_SHIFT_LEFT", "STABLEHLO_CBRT", "STABLEHLO_CASE"),
)
"""By number."""

CUSTOM = BUILTIN_OPERATORS.index("CUSTOM")
TENSOR_TYPES = (
    *("float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64"),
    *("int8", "float64", "complex128", "uint64", "resource", "variant", "uint32", "uint16"),
    *("int4", "bfloat16", "int2", "uint4", "float8_e4m3fn", "float8_e5m2"),
)
"""By number, as NumPy calls them."""
READABLE = ("float32", "int32", "uint8", "int64", "bool", "int8")
"""Types of tensors that a model may have here."""


@dataclass(frozen=True, slots=True)
class Field:
    """An option: its slot, `struct`'s form ("*i" for a vector of int32) and its default."""

    name: str
    slot: int
    form: str
    default: int | float | bool = 0


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an operator: the number of their table in the union, and what it has."""

    kind: int
    fields: tuple[Field, ...] = ()


_FUSED = "activation"


def _fused(kind: int, slot: int = 0) -> Options:
    return Options(kind, (Field(_FUSED, slot, "b"),))


def _window(*later: Field, first: int = 0) -> tuple[Field, ...]:
    strides = (Field("stride_w", first + 1, "i"), Field("stride_h", first + 2, "i"))
    return (Field("padding", first, "b"), *strides, *later)


def _dilation(slot: int) -> tuple[Field, ...]:
    return (Field("dilation_w", slot, "i", 1), Field("dilation_h", slot + 1, "i", 1))


_POOL = Options(
    5, _window(Field("kernel_w", 3, "i"), Field("kernel_h", 4, "i"), Field(_FUSED, 5, "b"))
)
_REDUCER = Options(27, (Field("keep_dims", 0, "?"),))
OPTIONS: Mapping[str, Options] = {
    "ADD": _fused(11),
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": Options(101, (Field("adj_x", 0, "?"), Field("adj_y", 1, "?"))),
    "CONCATENATION": Options(10, (Field("axis", 0, "i"), Field(_FUSED, 1, "b"))),
    "CONV_2D": Options(1, _window(Field(_FUSED, 3, "b"), *_dilation(4))),
    "DEPTHWISE_CONV_2D": Options(
        2, _window(Field("multiplier", 3, "i"), Field(_FUSED, 4, "b"), *_dilation(5))
    ),
    "DEPTH_TO_SPACE": Options(94, (Field("block_size", 0, "i"),)),
    "DIV": _fused(29),
    "FULLY_CONNECTED": Options(
        8, (Field(_FUSED, 0, "b"), Field("format", 1, "b"), Field("keep_num_dims", 2, "?"))
    ),
    "GATHER": Options(23, (Field("axis", 0, "i"), Field("batch_dims", 1, "i"))),
    "GELU": Options(116, (Field("approximate", 0, "?"),)),
    "L2_NORMALIZATION": _fused(12),
    "LEAKY_RELU": Options(75, (Field("alpha", 0, "f"),)),
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCER,
    "MIRROR_PAD": Options(77, (Field("mode", 0, "b"),)),
    "MUL": _fused(21),
    "PACK": Options(59, (Field("count", 0, "i"), Field("axis", 1, "i"))),
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "REDUCE_PROD": _REDUCER,
    "RESHAPE": Options(17, (Field("new_shape", 0, "*i"),)),
    "RESIZE_BILINEAR": Options(
        15, (Field("align_corners", 2, "?"), Field("half_pixel_centers", 3, "?"))
    ),
    "RESIZE_NEAREST_NEIGHBOR": Options(
        74, (Field("align_corners", 0, "?"), Field("half_pixel_centers", 1, "?"))
    ),
    "SOFTMAX": Options(9, (Field("beta", 0, "f"),)),
    "SPACE_TO_DEPTH": Options(19, (Field("block_size", 0, "i"),)),
    "SPLIT": Options(35, (Field("count", 0, "i"),)),
    "SPLIT_V": Options(79, (Field("count", 0, "i"),)),
    "SQUEEZE": Options(30, (Field("axes", 0, "*i"),)),
    "STRIDED_SLICE": Options(
        32,
        (
            *(Field(f"{name}_mask", slot, "i") for slot, name in enumerate(("begin", "end"))),
            *(Field(f"{name}_mask", 2 + slot, "i") for slot, name in enumerate(("ellipsis",))),
            Field("new_axis_mask", 3, "i"),
            Field("shrink_axis_mask", 4, "i"),
            Field("offset", 5, "?"),
        ),
    ),
    "SUB": _fused(28),
    "SUM": _REDUCER,
    "TRANSPOSE_CONV": Options(49, _window(Field(_FUSED, 3, "b"))),
    "UNPACK": Options(64, (Field("count", 0, "i"), Field("axis", 1, "i"))),
}
"""Of the operators whose options are read; others are taken to have none."""
