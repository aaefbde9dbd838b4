"""Programs in which every scaled value lies beside a tie, so that each rounding decides a result.

What comes in: a generator and a configuration. What goes out: launches. Accumulators are zero, so a
drain scales its biases, which can be any int32; parameters are chosen for the values they meet. A
part of them is far out instead, as far as multipliers go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch
from accelsim.programs.building import REGION_BEATS, Step
from accelsim.programs.building import launch as launch_steps
from accelsim.programs.streams import chained
from accelsim.spec.arithmetic import ADD_MODES
from accelsim.spec.config import Config

F32 = NDArray[np.float32]
ROUNDS = 24
ZEROS, PARAMETERS, OPERANDS = 2, 1, 4  # base registers
ADD_ROWS, DRAIN_ROWS = 3, 2
BEATS_PER_ROW = 4
FIXED = ADD_MODES.index("fixed")
EXPONENTS = (127 - 100, 127 + 100)  # legal multipliers are within 2^±100


def multipliers(rng: np.random.Generator, value: F32) -> F32:
    """Positive normal multipliers that put most values within a few units of a half."""
    near = rng.integers(0, 100, value.shape) + 0.5
    huge = rng.uniform(0.4, 3, value.shape) * 2.0**31  # saturates, or nearly
    target = np.copysign(np.where(rng.random(value.shape) < 0.95, near, huge), value)
    with np.errstate(divide="ignore", over="ignore"):
        wanted = np.nan_to_num((target / value.astype(np.float64)).astype(np.float32), nan=1.0)
    bits = wanted.view(np.int32) + rng.integers(-1, 2, value.shape).astype(np.int32)
    edge = rng.integers(0, 8, value.shape)
    exponent = np.where(rng.random(value.shape) < 0.5, EXPONENTS[0] + edge, EXPONENTS[1] - 1 - edge)
    far = (exponent << 23 | rng.integers(0, 1 << 23, value.shape)).astype(np.int32)
    bits = np.where(rng.random(value.shape) < 0.1, far, bits)
    return (
        np.clip(bits, EXPONENTS[0] << 23, (EXPONENTS[1] << 23) - 1)
        .astype(np.int32)
        .view(np.float32)
    )


def drain_rows(rng: np.random.Generator, blocks: int, lanes: int) -> F32:
    """(blocks, 2, lanes) parameter words: biases of every size, multipliers for them."""
    shape = (blocks, lanes)
    wide = rng.integers(-(1 << 31), 1 << 31, shape) >> rng.integers(0, 32, shape)
    bias = wide.astype(np.int32)
    return np.stack([bias.view(np.float32), multipliers(rng, bias.astype(np.float32))], axis=1)


def add_rows(rng: np.random.Generator, a: NDArray[np.int8], b: NDArray[np.int8]) -> F32:
    """(blocks, 3, lanes) parameter words for operands of (blocks, lanes): scales, inverses."""

    far = rng.random(a.shape) < 0.1

    def scale() -> F32:
        exponent = rng.integers(-30, 10, a.shape)
        exponent = np.where(rng.random(a.shape) < 0.9, exponent // 4, exponent) + 127
        exponent = np.where(far, EXPONENTS[0] + (exponent & 7), exponent)
        large = rng.random(a.shape) < 0.05
        exponent = np.where(large, EXPONENTS[1] - 1 - (exponent & 7), exponent)
        words = exponent << 23 | rng.integers(0, 1 << 23, a.shape)
        return words.astype(np.int32).view(np.float32)

    sa, sb = scale(), scale()
    near = rng.random(a.shape) < 0.3  # sums that cancel
    ratio = np.abs(a.astype(np.float32)) / np.maximum(np.abs(b.astype(np.float32)), 1)
    sb = np.where(near & (ratio > 0), sa * ratio * np.float32(1 + 2.0**-20), sb).astype(np.float32)
    total = a.astype(np.float32) * sa + b.astype(np.float32) * sb
    return np.stack([sa, sb, multipliers(rng, total)], axis=1)


def fixed_rows(rng: np.random.Generator, blocks: int, lanes: int) -> F32:
    """(blocks, 3, lanes) words of fixed-point sums: small numbers, so that ties abound."""
    shape = (blocks, lanes)
    rows = [rng.integers(1, 5, shape), rng.integers(1, 5, shape), rng.integers(0, 5, shape)]
    return np.stack(rows, axis=1).astype(np.int32).view(np.float32)


def ties(rng: np.random.Generator, config: Config) -> Launch:
    """A launch of `ROUNDS` drains and adds, each with parameters of its own."""
    lanes, bank = config.lanes, config.act_bank_rows
    operands = rng.integers(-128, 128, (REGION_BEATS, lanes)).astype(np.int8)
    operands[: bank // 2] //= rng.integers(1, 64, (bank // 2, lanes)).astype(np.int8)
    ones = {"in_h": 1, "in_w": 1, "in_col_stride": 1, "in_tail": lanes, "out_tail": lanes}
    drains = min(config.par_rows // DRAIN_ROWS, config.acc_rows, 8)
    adds = min(config.par_rows // ADD_ROWS, 8)
    steps: list[Step] = [
        ("load", {"base_reg": OPERANDS, "count0": bank + 64, "local_stride0": 1}),
        ("load", {"memory": 1, "base_reg": ZEROS, "count0": lanes * drains, "local_stride0": 1}),
        ("conv", {**ones, "out_w": 1, "out_blocks": drains}),
    ]
    words: list[F32] = []
    beats = 0
    for number in range(ROUNDS):
        point = int(rng.integers(-20, 20))
        common = {"tail": lanes, "zero_point": point, "clamp_min": -128, "clamp_max": 127}
        common |= {"dst_base": bank + 8 * (number % 8), "dst_block_stride": 1}
        if number % 2:
            first = int(rng.integers(0, bank // 2 - 2 * adds))
            places = {"a_base": first, "b_base": first + adds, "blocks": adds}
            strides = {"a_block_stride": 1, "b_block_stride": 1, "par_stride": ADD_ROWS}
            step = ("add", {**common, **places, **strides})
            made = add_rows(rng, operands[first:][:adds], operands[first + adds :][:adds])
            if number % 8 == 5:
                step = ("add", {**step[1], "mode": FIXED})
                made = fixed_rows(rng, adds, lanes)
        else:
            step = ("drain", {**common, "blocks": drains, "par_stride": DRAIN_ROWS})
            made = drain_rows(rng, drains, lanes)
        count = made.shape[0] * made.shape[1] * BEATS_PER_ROW
        place = {"memory": 2, "base_reg": PARAMETERS, "dram_offset": beats, "local_stride0": 1}
        steps += [("load", {**place, "count0": count}), step]
        words.append(made.ravel())
        beats += count
        if number % 8 == 7:
            target = {"base_reg": 3, "dram_offset": 64 * (number // 8), "local_base": bank}
            steps.append(("store", {**target, "count0": 64, "local_stride0": 1}))
    given = launch_steps(config, chained(steps), int(rng.integers(1 << 30)))
    parameters = np.concatenate(words).view(np.uint8)
    dram = dict(given.dram) | {
        ZEROS: np.zeros(REGION_BEATS * lanes, np.uint8),
        OPERANDS: operands.view(np.uint8).ravel(),
        PARAMETERS: np.resize(parameters, REGION_BEATS * lanes),
    }
    return Launch(given.program, dram, cycle_limit=given.cycle_limit)
