"""Random jobs of the row engine, and what they write, in Python's own integers.

What comes in: a generator and a configuration. What goes out: field values, and the rows that an
instruction writes, in order. It knows the instruction table's text, none of the RTL and nothing of
the module that defines the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.spec.config import Config
from accelsim.spec.encoding import check, encode

Values = dict[str, int]
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Memories:
    """On-chip memories: act (rows, lanes) int8, par (rows, lanes) int32, tab (2, 256) int32."""

    act: NDArray[np.int8]
    par: NDArray[np.int32]
    tab: NDArray[np.int32]


def rows_written(name: str, v: Values, memories: Memories) -> list[tuple[int, bytes]]:
    """Each row that the instruction writes and its bytes, pixel by pixel."""
    lanes = memories.act.shape[1]
    result = []
    for h, w in np.ndindex(v["out_h"], v["out_w"]):
        place = v["in_base"] + h * v["in_row_stride"] + w * v["in_col_stride"]
        blocks = range(v["blocks"])
        x = [int(e) for b in blocks for e in memories.act[place + b * v["in_block_stride"]]]
        x = x[: (v["blocks"] - 1) * lanes + v["tail"]]
        out = [y % 256 for y in CHANNELS[name](v, x, memories)]
        out += [0] * (v["blocks"] * lanes - len(out))
        row = v["dst_base"] + h * v["dst_row_stride"] + w * v["dst_col_stride"]
        for b in blocks:
            data = bytes(out[b * lanes : (b + 1) * lanes])
            result.append((row + b * v["dst_block_stride"], data))
    return result


def lookup(v: Values, x: list[int], memories: Memories) -> list[int]:
    """The low byte of word x + 128."""
    return [int(memories.tab[v["lut"], e + 128]) for e in x]


def half_up(numerator: int, bits: int) -> int:
    """numerator / 2^bits, ties up; bits may be 0."""
    return (2 * numerator + (1 << bits)) // (2 << bits)


def half_away(numerator: int, bits: int) -> int:
    """numerator / 2^bits, ties away from zero."""
    magnitude = (2 * abs(numerator) + (1 << bits)) // (2 << bits)
    return magnitude if numerator >= 0 else -magnitude


def high_multiply(a: int, b: int) -> int:
    """a·b / 2^31, rounded; a negative tie goes up, as truncating division does it."""
    nudged = a * b + (2**30 if a * b >= 0 else 1 - 2**30)
    return nudged // 2**31 if nudged >= 0 else -(-nudged // 2**31)


def limit(value: int, low: int, high: int) -> int:
    """Raise to the lower limit, then lower to the upper one."""
    return min(max(value, low), high)


def softmax_scale(total: int) -> tuple[int, int]:
    """1 / total, total in Q12.19, as a Q0.31 number and the places that are over one."""
    bits = 32 - total.bit_length() if total else 0
    denominator = half_away((total << bits) - 2**31 + INT32_MAX, 1)
    x = 1515870810 - high_multiply(denominator, 1010580540)
    for _ in range(3):
        step = high_multiply(x, 2**29 - high_multiply(denominator, x)) * 4
        x += limit(step, -(2**31), INT32_MAX)
    return limit(x * 2, -(2**31), INT32_MAX), 12 - bits


def softmax(v: Values, x: list[int], memories: Memories) -> list[int]:
    """Exponentials of maximum - x by table, over their sum."""
    words = [int(memories.tab[v["lut"], max(x) - e]) for e in x]
    scale, over = softmax_scale(sum(half_away(word, 12) for word in words) % 2**32)
    places = over + 31 - 8
    shares = [half_away(high_multiply(word, scale), places) if places < 32 else 0 for word in words]
    return [limit(share - 128, -128, 127) for share in shares]


def floor_root(number: int) -> int:
    """The largest integer whose square is not more than `number`, by halving an interval."""
    low, high = 0, 1 << 25
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * middle <= number else (low, middle)
    return low


def layernorm(v: Values, x: list[int], memories: Memories) -> list[int]:
    """Distances from the mean over the root of the variance, times gain, plus offset."""
    n, lanes = len(x), memories.act.shape[1]
    variance = n * sum(e * e for e in x) - sum(x) ** 2 + (v["epsilon"] << v["epsilon_shift"])
    height = max(h for h in range(24) if variance * 4**h < 2**48)
    inverse = 2**54 // max(floor_root(variance * 4**height), 1)
    result = []
    for place, element in enumerate(x):
        row = v["par_base"] + place // lanes * v["par_stride"]
        gain, offset = (int(memories.par[row + i, place % lanes]) for i in range(2))
        z = half_up((n * element - sum(x)) * inverse, 34 - height) if variance else 0
        y = half_up(z * gain + (offset << (4 + v["gain_bits"])), 20 + v["gain_bits"])
        y = limit(y, -(2**31), INT32_MAX) + v["zero_point"]
        result.append(limit(y, v["clamp_min"], v["clamp_max"]))
    return result


CHANNELS = {"lookup": lookup, "softmax": softmax, "layernorm": layernorm}


def random_memories(rng: np.random.Generator, config: Config) -> Memories:
    """Rows of every spread; parameters of every size; see `random_table` for tables."""
    act = rng.integers(-128, 128, (config.act_rows, config.lanes))
    act >>= rng.integers(0, 9, (config.act_rows, 1))
    act += rng.choice([0, 0, 100, -100], (config.act_rows, 1))
    act = np.clip(act, -128, 127)
    par = rng.integers(-(1 << 31), 1 << 31, (config.par_rows, config.lanes))
    par >>= rng.integers(0, 31, par.shape)
    return Memories(act.astype(np.int8), par.astype(np.int32), random_tables(rng))


def random_tables(rng: np.random.Generator) -> NDArray[np.int32]:
    """Two tables: real exponentials, noise of one size or of every size, extremes, or nothing."""

    def table() -> Any:
        kind = rng.integers(6)
        noise = rng.integers(-(1 << 31), 1 << 31, 256)
        if kind == 0:
            exponents = -np.arange(256) * float(rng.choice([0.0, 0.01, 0.05, 0.5]))
            return np.minimum(np.rint(np.exp(exponents) * 2.0**31), INT32_MAX)
        if kind == 1:
            return noise
        if kind == 2:
            return noise >> rng.integers(0, 32, 256)
        if kind == 3:
            return rng.choice([-(1 << 31), INT32_MAX], 256)
        if kind == 4:
            return np.abs(noise) >> int(rng.integers(1, 31))
        return rng.integers(0, 3000, 256) * int(rng.integers(0, 2))

    return np.stack([table(), table()]).astype(np.int32)


def encoded(name: str, values: Values, config: Config) -> int:
    """The instruction as one number; 0 if it is not legal."""
    words = encode(name, values, config)
    legal = check(words, config) is None
    return int.from_bytes(words.astype("<u4").tobytes(), "little") if legal else 0


def random_job(rng: np.random.Generator, config: Config, name: str) -> tuple[Values, int]:
    """Legal fields and the encoded instruction."""
    while True:
        values = random_fields(rng, config, name)
        instruction = encoded(name, values, config)
        if instruction:
            return values, instruction


def random_fields(rng: np.random.Generator, config: Config, name: str) -> Values:
    """One pixel or several, one block or as many as activation memory has room for."""

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high))

    def tensor(prefix: str, distinct: bool) -> Values:
        block = number(1 if distinct else 0, 3)
        col = number(0, 2) + block * v["blocks"] if distinct else number(0, 20)
        row = number(0, 2) + col * v["out_w"] if distinct else number(0, 40)
        strides = {"block_stride": block, "col_stride": col, "row_stride": row}
        fields = {f"{prefix}_{key}": value for key, value in strides.items()}
        return fields | {f"{prefix}_base": number(0, config.act_rows // 3)}

    most = 128 if rng.random() < 0.1 else 6
    v = {"out_h": number(1, 4), "out_w": number(1, 4), "blocks": number(1, most + 1)}
    if rng.random() < 0.2:
        v["blocks"] = 1
    v["tail"] = config.lanes if rng.random() < 0.3 else number(1, config.lanes + 1)
    v |= tensor("in", distinct=False) | tensor("dst", distinct=True)
    if name != "layernorm":
        return v | {"lut": number(0, 2)}
    low, high = sorted(rng.integers(-128, 128, 2)) if rng.random() < 0.5 else (-128, 127)
    if rng.random() < 0.1:
        low, high = high, low  # legal: the upper limit wins
    return v | {
        "gain_bits": number(0, 25),
        "epsilon": number(0, 1 << 32) >> number(0, 33),
        "epsilon_shift": number(0, 16) if rng.random() < 0.5 else 0,
        "par_base": number(0, config.par_rows // 2),
        "par_stride": number(0, 4) if rng.random() < 0.9 else number(0, 256),
        "zero_point": number(-128, 128),
        "clamp_min": int(low),
        "clamp_max": int(high),
    }
