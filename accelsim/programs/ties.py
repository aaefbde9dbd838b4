"""Programs in which every scaled value lies beside a tie, so that each rounding decides a result.

What comes in: a generator and a configuration. What goes out: launches. Accumulators are zero, so a
drain scales its biases, which can be any int32; parameters are chosen for the values they meet. A
part of them is far out instead, as far as multipliers go.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch
from accelsim.programs.building import REGION_BEATS, Step
from accelsim.programs.building import launch as launch_steps
from accelsim.programs.streams import chained
from accelsim.spec.arithmetic import ADD_MODES, BINARY_KINDS, MODES, binary, scale_tflite, wrap32
from accelsim.spec.config import PAR_BEATS, Config
from accelsim.spec.durations import ADD_ROWS, REQUANTIZE_ROWS

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
ZEROS, PARAMETERS, OPERANDS = 2, 1, 4  # base registers
SLOTS = 8  # results on chip between two stores
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
    # Sums that carry, of operands with bits below the last one of the sum.
    carry = (rng.random(a.shape) < 0.3) & (ratio > 0)
    below = rng.uniform(1.75, 2, a.shape) / np.maximum(np.abs(a.astype(np.float64)), 1)
    sa = np.where(carry, below, sa).astype(np.float32)
    sb = np.where(carry, sa * ratio * rng.uniform(0.14, 0.25, a.shape), sb).astype(np.float32)
    total = a.astype(np.float32) * sa + b.astype(np.float32) * sb
    return np.stack([sa, sb, multipliers(rng, total)], axis=1)


def fixed_rows(rng: np.random.Generator, blocks: int, lanes: int) -> F32:
    """(blocks, 3, lanes) words of fixed-point sums: small numbers, so that ties abound."""
    shape = (blocks, lanes)
    rows = [rng.integers(1, 5, shape), rng.integers(1, 5, shape), rng.integers(0, 5, shape)]
    return _words(rows)


def _words(rows: list[NDArray[Any]]) -> F32:
    return np.stack([np.asarray(row, np.int64).astype(np.int32) for row in rows], 1).view(
        np.float32
    )


def mantissas(rng: np.random.Generator, value: I64) -> tuple[I64, I64]:
    """(mantissa, shift) of integer modes with which most int32 values come within a unit of a tie.

    A few of them are at the ends of int32, or anything at all.
    """
    target = np.copysign(rng.integers(0, 100, value.shape) + 0.5, rng.normal(size=value.shape))
    ratio = target / np.where(value == 0, 1, value)
    fraction, exponent = np.frexp(ratio)  # ratio = fraction · 2^exponent, ½ ≤ |fraction| < 1
    exact = np.rint(fraction * 2.0**31)
    near = np.clip(exact + rng.integers(-1, 2, value.shape), -(2.0**31), 2.0**31 - 1)
    wild = rng.integers(-(1 << 31), 1 << 31, value.shape)
    ends = rng.choice([-(1 << 31), (1 << 31) - 1, 1 << 30, -(1 << 30)], value.shape)
    draw = rng.random(value.shape)
    mantissa = np.select([draw < 0.9, draw < 0.95], [near.astype(np.int64), ends], wild)
    other = rng.integers(-64, 64, value.shape)
    shift = np.where(rng.random(value.shape) < 0.95, exponent, other)
    return mantissa, np.clip(shift, -64, 63)


def integer_rows(rng: np.random.Generator, value: I64) -> F32:
    """(blocks, 3, lanes) words for values of (blocks, lanes): near ties, half of them exact ones.

    An exact tie is an odd multiple of 2^j times 2^(-1-j).
    """
    shape = value.shape
    wide = rng.integers(-(1 << 31), 1 << 31, shape) >> rng.integers(0, 32, shape)
    bias = np.where(rng.random(shape) < 0.1, -(1 << 31) - value, wide)
    mantissa, shift = mantissas(rng, wrap32(value + bias))
    places = rng.integers(0, 24, shape) * (rng.random(shape) < 0.6)
    odd = 2 * rng.integers(-100, 100, shape) + 1
    exact = rng.random(shape) < 0.5
    bias = np.where(exact, (odd << places) - value, bias)
    mantissa = np.where(exact, 1 << 30, mantissa)
    return _words([bias, mantissa, np.where(exact, -places, shift)])


def tflite_rows(rng: np.random.Generator, a: I64, b: I64, subtract: bool) -> F32:
    """(blocks, 6, lanes) words of TFLite's sums for operands of (blocks, lanes)."""
    (ma, sa), (mb, sb) = (mantissas(rng, x << 27) for x in (a, b))
    sa, sb = np.clip(sa + 20, -32, 31), np.clip(sb + 20, -32, 31)
    left, right = scale_tflite(a << 20, ma, sa), scale_tflite(b << 20, mb, sb)
    total = wrap32(left - right if subtract else left + right)
    mantissa, shift = mantissas(rng, total)
    return _words([ma, mb, mantissa, sa, sb, shift])


def product_rows(rng: np.random.Generator, value: I64) -> F32:
    """(blocks, 2, lanes) words of mode fp32 for values of (blocks, lanes)."""
    wide = rng.integers(-(1 << 31), 1 << 31, value.shape) >> rng.integers(0, 32, value.shape)
    total = wrap32(value + wide).astype(np.int32)
    return np.stack(
        [wide.astype(np.int32).view(np.float32), multipliers(rng, total.astype(np.float32))], 1
    )


# (instruction, mode), mode fp32 of drain and add more often: each of its roundings counts.
FORMS = (
    *(("drain", 0), ("add", 0)) * 6,
    *(("drain", mode) for mode in range(1, len(MODES))),
    *(("add", mode) for mode in range(1, len(ADD_MODES))),
    *(("binary", mode) for mode in range(len(MODES))),
)


class _Round:
    """One instruction, and the words that go with it."""

    def __init__(self, rng: np.random.Generator, config: Config, form: tuple[str, int]) -> None:
        self.rng, self.config = rng, config
        self.name, self.mode = form
        rows = ADD_ROWS if self.name == "add" else REQUANTIZE_ROWS
        self.rows = rows.numbers[self.mode]
        self.blocks = min(config.par_rows // self.rows, config.acc_rows, SLOTS)

    def step(self, operands: NDArray[np.int8]) -> tuple[dict[str, int], F32]:
        """Fields beside those that all have, and (blocks, rows, lanes) words."""
        common = {"mode": self.mode, "blocks": self.blocks, "par_stride": self.rows}
        shape = (self.blocks, self.config.lanes)
        if self.name == "drain":
            if self.mode == 0:
                return common, drain_rows(self.rng, *shape)
            return common, integer_rows(self.rng, np.zeros(shape, np.int64))
        first = int(self.rng.integers(0, self.config.act_bank_rows // 2 - 2 * self.blocks))
        common |= {"a_base": first, "a_block_stride": 1, "b_block_stride": 1}
        common |= {"b_base": first + self.blocks}
        a = operands[first:][: self.blocks]
        b = operands[first + self.blocks :][: self.blocks]
        wide = a.astype(np.int64), b.astype(np.int64)
        if self.name == "binary":
            kind = int(self.rng.integers(len(BINARY_KINDS)))
            value = binary(BINARY_KINDS[kind], *wide)
            words = (integer_rows if self.mode else product_rows)(self.rng, value)
            return {**common, "kind": kind}, words
        subtract = int(self.rng.integers(2))
        common |= {"subtract": subtract}
        if ADD_MODES[self.mode] == "tflite":
            return common, tflite_rows(self.rng, *wide, bool(subtract))
        if ADD_MODES[self.mode] == "fixed":
            return common, fixed_rows(self.rng, *shape)
        return common, add_rows(self.rng, a, -b if subtract else b)


def ties(rng: np.random.Generator, config: Config) -> Launch:
    """A launch of one instruction for each of `FORMS`, each with parameters of its own."""
    lanes, bank = config.lanes, config.act_bank_rows
    operands = rng.integers(-127, 128, (REGION_BEATS, lanes)).astype(np.int8)
    operands[: bank // 2] //= rng.integers(1, 64, (bank // 2, lanes)).astype(np.int8)
    ones = {"in_h": 1, "in_w": 1, "in_col_stride": 1, "in_tail": lanes, "out_tail": lanes}
    steps: list[Step] = [
        ("load", {"base_reg": OPERANDS, "count0": bank + SLOTS**2, "local_stride0": 1}),
        ("load", {"memory": 1, "base_reg": ZEROS, "count0": lanes * SLOTS, "local_stride0": 1}),
        ("conv", {**ones, "out_w": 1, "out_blocks": SLOTS}),
    ]
    words: list[F32] = []
    beats = 0
    for number, form in enumerate(FORMS):
        made = _Round(rng, config, form)
        point = int(rng.integers(-20, 20))
        common = {"tail": lanes, "zero_point": point, "clamp_min": -128, "clamp_max": 127}
        common |= {"dst_base": bank + SLOTS * (number % SLOTS), "dst_block_stride": 1}
        values, rows = made.step(operands)
        count = rows.shape[0] * rows.shape[1] * PAR_BEATS
        place = {"memory": 2, "base_reg": PARAMETERS, "dram_offset": beats, "local_stride0": 1}
        steps += [("load", {**place, "count0": count}), (form[0], {**common, **values})]
        words.append(rows.ravel())
        beats += count
        if number % SLOTS == SLOTS - 1 or number == len(FORMS) - 1:
            target = {"base_reg": 3, "dram_offset": SLOTS**2 * (number // SLOTS)}
            target |= {"local_base": bank, "count0": SLOTS**2, "local_stride0": 1}
            steps.append(("store", target))
    given = launch_steps(config, chained(steps), int(rng.integers(1 << 30)))
    parameters = np.concatenate(words).view(np.uint8)
    dram = dict(given.dram) | {
        ZEROS: np.zeros(REGION_BEATS * lanes, np.uint8),
        OPERANDS: operands.view(np.uint8).ravel(),
        PARAMETERS: np.resize(parameters, REGION_BEATS * lanes),
    }
    return Launch(given.program, dram, cycle_limit=given.cycle_limit)
