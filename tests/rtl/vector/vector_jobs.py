"""Random jobs of the vector engine: fields, encoded instructions, and memories that suit them.

What comes in: a generator and a configuration. What goes out: field values, and parameter words of
which many lead to results within int8. It knows nothing of what a job computes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.programs.vector_fields import MAKERS, random_parameters
from accelsim.spec.config import Config
from accelsim.spec.encoding import check, encode
from tests.rtl.float.scale_oracle import FP32, edge_words
from tests.rtl.vector.vector_oracle import (
    ADD_FIXED,
    ADD_FP32,
    ADD_TFLITE,
    Memories,
    Values,
    parameter_rows,
)

U32 = NDArray[np.uint32]
NAMES = ("drain", "pool", "add", "binary")


def random_memories(rng: np.random.Generator, config: Config) -> Memories:
    """Full-range activations; accumulators of every size; parameter words are 0 as yet."""
    act = rng.integers(-128, 128, (config.act_rows, config.lanes), dtype=np.int8)
    acc = rng.integers(-(1 << 31), 1 << 31, (2, config.acc_rows, config.lanes))
    acc >>= rng.integers(0, 31, acc.shape)
    par = np.zeros((config.par_rows, config.lanes), np.uint32)
    return Memories(act, acc.astype(np.int32), par)


def random_job(
    rng: np.random.Generator, config: Config, name: str, number: int
) -> tuple[Values, int]:
    """Legal fields and the encoded instruction; successive numbers take the modes in turn."""
    while True:
        values = MAKERS["add" if name == "binary" else name](rng, config)
        if name in ("add", "binary"):
            values |= {f"{x}_scalar": int(rng.random() < 0.3) for x in "ab"}
        if name == "add":
            values |= {"mode": number % 3, "subtract": int(rng.integers(2))}
        else:
            values["mode"] = number % 5
        if name == "pool":
            values["sum"] = int(number // 5 % 4 != 3)
        if name == "binary":
            values = {k: v for k, v in values.items() if k != "subtract"}
            values["kind"] = int(rng.integers(3))
        words = encode(name, values, config)
        if check(words, config) is None:
            return values, instruction_bits(words)


def instruction_bits(words: NDArray[np.uint32]) -> int:
    """Words of an instruction as one number."""
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def fill_parameters(
    rng: np.random.Generator, config: Config, name: str, v: Values, par: U32
) -> None:
    """Writes words that suit the job into parameter memory `par` (rows, lanes)."""
    count = parameter_rows(name, v)
    firsts = v["par_base"] + v["par_stride"] * np.arange(v["blocks"] if count else 0)
    if v["mode"] == (ADD_FP32 if name == "add" else FP32):
        par[:] = random_parameters(rng, config)
        if name != "add":  # biases may be anything, multipliers may not
            multipliers = par[firsts + 1]
            par[firsts] = random_bias(rng, par[firsts].shape) & 0xFFFFFFFF
            par[firsts + 1] = multipliers
        return
    par[:] = random_words(rng, par.shape)
    for first in firsts:
        rows = par[first : first + count]
        usual = usual_words(rng, name, v, rows.shape)
        rows[:] = np.where(rng.random(rows.shape) < 0.85, usual, rows)


def random_words(rng: np.random.Generator, shape: tuple[int, ...]) -> U32:
    """Any 32-bit words, half of them at or around powers of two."""
    edges = rng.choice(np.array(edge_words(), np.int64), shape)
    words = np.where(rng.random(shape) < 0.5, edges, rng.integers(-(1 << 31), 1 << 31, shape))
    return words.astype(np.int32).view(np.uint32)


def random_bias(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Signed numbers of all sizes up to 12 bits."""
    return rng.integers(-(1 << 31), 1 << 31, shape) >> rng.integers(20, 32, shape)


def usual_words(
    rng: np.random.Generator, name: str, v: Values, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Words of one block that lead to small results; bits that do not count are random."""
    lanes = shape[1]
    mantissa = rng.integers(1 << 30, 1 << 31, (3, lanes))
    zeros = rng.integers(0, 31, mantissa.shape) * (rng.random(mantissa.shape) < 0.5)  # ties
    mantissa = mantissa >> zeros << zeros
    above = rng.integers(0, 1 << 26, (3, lanes)) << 6
    if name == "add" and v["mode"] == ADD_TFLITE:
        first = rng.integers(-3, 3, (2, lanes))
        last = rng.integers(-23, -15, (1, lanes))
        shifts = np.concatenate([first, last]) & 63
        return np.concatenate([mantissa, above | shifts])
    if name == "add" and v["mode"] == ADD_FIXED:
        places = rng.integers(0, 21, (1, lanes))
        factors = (1 << places) - rng.integers(-2, 3, (2, lanes)) + (1 << places >> 1)
        return np.concatenate([factors & 0x7FFFFF, above[:1] << 5 & 0xFFFFFFE0 | places])
    bias = random_bias(rng, (1, lanes))
    product = name == "binary" and v["kind"] == 0
    low, high = (-18, -2) if name == "drain" else (-10, -3) if product else (-5, 2)
    shift = rng.integers(low, high, (1, lanes)) & 63
    return np.concatenate([bias & 0xFFFFFFFF, mantissa[:1], above[:1] | shift])
