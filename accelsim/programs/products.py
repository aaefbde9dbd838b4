"""All 65,536 products of two int8 elements, each scaled by a different word in every lane.

What comes in: a configuration, a mode and parameter rows. What goes out: a launch that leaves the
results behind base register RESULTS, (256, 256, lanes) int8 by first and second element.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch
from accelsim.programs.building import Step, program
from accelsim.programs.streams import chained
from accelsim.spec.config import PAR_BEATS, Config

VALUES = 256
WORDS, ELEMENTS, RESULTS = 1, 2, 3  # base registers


def products(config: Config, mode: int, rows: NDArray[np.int32]) -> Launch:
    """Multiply and scale; `rows` are (bias and what the mode wants, lanes) int32.

    Both operands are the same 256 rows, of which lane 0 stands for all lanes.
    """
    at = max(VALUES, 2 * config.act_bank_rows)  # rows of results on chip, beyond the operands
    height = min(VALUES, (config.act_rows - at) // VALUES)
    count = height * VALUES
    operands = {"a_row_stride": 1, "b_col_stride": 1, "a_scalar": 1, "b_scalar": 1}
    size = {"out_h": height, "out_w": VALUES, "tail": config.lanes}
    result = {"dst_base": at, "dst_row_stride": VALUES, "dst_col_stride": 1}
    limits = {"mode": mode, "clamp_min": -128, "clamp_max": 127}
    steps: list[Step] = [
        ("load", {"base_reg": ELEMENTS, "count0": VALUES, "local_stride0": 1}),
        ("load", {"memory": 2, "base_reg": WORDS, "count0": PAR_BEATS * len(rows)}
         | {"local_stride0": 1}),
    ]  # fmt: skip
    for first in range(0, VALUES, height):
        steps.append(("binary", {**operands, **size, **result, **limits, "a_base": first}))
        target = {"base_reg": RESULTS, "dram_offset": first * VALUES, "count0": count}
        steps.append(("store", {**target, "local_base": at, "local_stride0": 1}))
    elements = np.zeros((VALUES, config.lanes), np.int8)
    elements[:, 0] = np.arange(-128, 128)
    dram = {
        WORDS: np.ascontiguousarray(rows).view(np.uint8).reshape(-1),
        ELEMENTS: elements.view(np.uint8).reshape(-1),
        RESULTS: np.zeros(VALUES * VALUES * config.lanes, np.uint8),
    }
    return Launch(program(config, chained(steps)), dram, cycle_limit=10_000_000)


def words_beside_powers(rng: np.random.Generator, config: Config, mode: int) -> NDArray[np.int32]:
    """Rows with multipliers at powers of two and one unit beside them, a tenth with a bias."""
    lanes = config.lanes
    bias = rng.integers(-(1 << 14), 1 << 14, lanes) * (rng.random(lanes) < 0.1)
    power, unit = rng.integers(-10, 1, lanes), rng.integers(-1, 2, lanes)
    if mode == 0:
        floats = (2.0 ** power.astype(np.float32)).astype(np.float32).view(np.int32)
        return np.stack([bias, floats + unit]).astype(np.int32)
    exponent = rng.integers(20, 31, lanes)
    sign = rng.choice([-1, 1], lanes)
    mantissa = sign * ((1 << exponent) + unit)
    return np.stack([bias, mantissa, power + 31 - exponent]).astype(np.int32)
