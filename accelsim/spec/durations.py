"""How long an instruction takes: closed forms of its fields, exact for simulator and RTL.

What comes in: field values and a configuration. What goes out: cycles from the one in which an
engine accepts an instruction to the one in which it reports done. Loads and stores depend on AXI
and have no closed form.
"""

from __future__ import annotations

from collections.abc import Mapping

from accelsim.spec.config import DEPTHWISE_TAPS, Config

# From the cycle in which an engine accepts an instruction to the cycle in which it reports done,
# beyond the cycles that its loops take.
MATRIX_LATENCY = 9
VECTOR_LATENCY = 12
# Cycles that dispatch takes to decode and check one instruction before it is queued.
DISPATCH_CYCLES = 5

Values = Mapping[str, int]


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
    """blocks·(pixels + 2 parameter rows) + VECTOR_LATENCY."""
    return v["blocks"] * (v["out_h"] * v["out_w"] + 2) + VECTOR_LATENCY


def pool_cycles(v: Values, config: Config) -> int:
    """blocks·(pixels·kernel_h·kernel_w + 2 parameter rows if sum) + VECTOR_LATENCY."""
    window = v["kernel_h"] * v["kernel_w"]
    return v["blocks"] * (v["out_h"] * v["out_w"] * window + 2 * v["sum"]) + VECTOR_LATENCY


def add_cycles(v: Values, config: Config) -> int:
    """blocks·(2·pixels + 3 parameter rows) + VECTOR_LATENCY."""
    return v["blocks"] * (2 * v["out_h"] * v["out_w"] + 3) + VECTOR_LATENCY
