"""How long an instruction takes: closed forms of its fields, exact for simulator and RTL.

What comes in: field values and a configuration. What goes out: cycles from the one in which an
engine accepts an instruction to the one in which it reports done. Loads and stores depend on AXI
and have no closed form.
"""

from __future__ import annotations

from accelsim.spec.config import DEPTHWISE_TAPS, Config
from accelsim.spec.row import Select, Values

# From the cycle in which an engine accepts an instruction to the cycle in which it reports done,
# beyond the cycles that its loops take.
MATRIX_LATENCY = 9
VECTOR_LATENCY = 12
# Cycles that dispatch takes to decode and check one instruction before it is queued.
DISPATCH_CYCLES = 5

# The same for lookup, softmax and layernorm; and what the latter two wait for each pixel, between
# the passes over its channels: a maximum and a reciprocal, or a root and a quotient, bit by bit.
ROWS_LATENCY = 8
SOFTMAX_CYCLES = 18
LAYERNORM_CYCLES = 60


# Parameter rows of a block, by mode.
REQUANTIZE_ROWS = Select("mode", (2, 3, 3, 3, 3))
ADD_ROWS = Select("mode", (3, 3, 6))


def conv_cycles(v: Values, config: Config) -> int:
    """LANES + (tiles - 1)·max(pixels, LANES) + pixels + MATRIX_LATENCY.

    The first weight tile is loaded before the first pixel; each later one is loaded while the
    pixels of the one before it stream.
    """
    tiles = v["out_blocks"] * v["kernel_h"] * v["kernel_w"] * v["in_blocks"]
    pixels = v["out_h"] * v["out_w"]
    return config.lanes + (tiles - 1) * max(pixels, config.lanes) + pixels + MATRIX_LATENCY


def depthwise_columns(v: Values) -> int:
    """Input columns that stream for one output row: every one under `wide`, else those used."""
    return (v["out_w"] - 1) * v["stride_w"] + DEPTHWISE_TAPS if v["wide"] else v["out_w"]


def dwconv_cycles(v: Values, config: Config) -> int:
    """TAPS + (tiles - 1)·max(columns, LANES) + columns + MATRIX_LATENCY, TAPS = 3."""
    tiles = v["blocks"] * v["kernel_h"] * v["groups_w"]
    columns = v["out_h"] * depthwise_columns(v)
    return DEPTHWISE_TAPS + (tiles - 1) * max(columns, config.lanes) + columns + MATRIX_LATENCY


def drain_cycles(v: Values, config: Config) -> int:
    """blocks·(pixels + parameter rows) + VECTOR_LATENCY, 2 rows in mode fp32 and 3 in others."""
    return v["blocks"] * (v["out_h"] * v["out_w"] + REQUANTIZE_ROWS.of(v)) + VECTOR_LATENCY


def pool_cycles(v: Values, config: Config) -> int:
    """blocks·(pixels·kernel_h·kernel_w + parameter rows if sum) + VECTOR_LATENCY."""
    window = v["kernel_h"] * v["kernel_w"]
    rows = REQUANTIZE_ROWS.of(v) * v["sum"]
    return v["blocks"] * (v["out_h"] * v["out_w"] * window + rows) + VECTOR_LATENCY


def add_cycles(v: Values, config: Config) -> int:
    """blocks·(2·pixels + parameter rows) + VECTOR_LATENCY, 3 rows or, in mode tflite, 6."""
    return v["blocks"] * (2 * v["out_h"] * v["out_w"] + ADD_ROWS.of(v)) + VECTOR_LATENCY


def binary_cycles(v: Values, config: Config) -> int:
    """blocks·(2·pixels + parameter rows) + VECTOR_LATENCY, rows as of drain."""
    return v["blocks"] * (2 * v["out_h"] * v["out_w"] + REQUANTIZE_ROWS.of(v)) + VECTOR_LATENCY


def lookup_cycles(v: Values, config: Config) -> int:
    """blocks·pixels + ROWS_LATENCY."""
    return v["blocks"] * v["out_h"] * v["out_w"] + ROWS_LATENCY


def softmax_cycles(v: Values, config: Config) -> int:
    """pixels·(3·blocks + SOFTMAX_CYCLES) + ROWS_LATENCY."""
    return v["out_h"] * v["out_w"] * (3 * v["blocks"] + SOFTMAX_CYCLES) + ROWS_LATENCY


def layernorm_cycles(v: Values, config: Config) -> int:
    """pixels·(3·blocks + LAYERNORM_CYCLES) + ROWS_LATENCY; its parameters take 2 of the 3."""
    return v["out_h"] * v["out_w"] * (3 * v["blocks"] + LAYERNORM_CYCLES) + ROWS_LATENCY
