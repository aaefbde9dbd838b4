"""Random jobs of the vector engine, and what they write, computed with NumPy's float32.

What comes in: a generator and a configuration. What goes out: field values, and the rows that an
instruction writes, in order. It knows the instruction table's text and none of the RTL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.programs.vector_fields import MAKERS, random_parameters
from accelsim.spec.config import Config
from accelsim.spec.encoding import check, encode

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
Values = dict[str, int]


@dataclass(frozen=True, slots=True)
class Memories:
    """On-chip memories: act (rows, lanes) int8, acc (2, rows, lanes) int32, par uint32 bits."""

    act: NDArray[np.int8]
    acc: NDArray[np.int32]
    par: NDArray[np.uint32]


def random_memories(rng: np.random.Generator, config: Config) -> Memories:
    """Full-range activations; accumulators of every size; parameter words of every kind."""
    act = rng.integers(-128, 128, (config.act_rows, config.lanes), dtype=np.int8)
    acc = rng.integers(-(1 << 31), 1 << 31, (2, config.acc_rows, config.lanes))
    acc >>= rng.integers(0, 31, acc.shape)
    return Memories(act, acc.astype(np.int32), random_parameters(rng, config))


def random_job(rng: np.random.Generator, config: Config, name: str) -> tuple[Values, int]:
    """Legal fields and the encoded instruction."""
    while True:
        values = MAKERS[name](rng, config)
        words = encode(name, values, config)
        if check(words, config) is None:
            return values, int.from_bytes(words.astype("<u4").tobytes(), "little")


def rows_written(name: str, v: Values, memories: Memories) -> list[tuple[int, bytes]]:
    """Each row that the instruction writes and its bytes, in order."""
    lanes = memories.act.shape[1]
    result = []
    for block, h, w in walk(v["blocks"], v["out_h"], v["out_w"]):
        row = v["dst_base"] + h * v["dst_row_stride"] + w * v["dst_col_stride"]
        row += block * v["dst_block_stride"]
        par = memories.par[v["par_base"] + block * v["par_stride"] :]
        with np.errstate(over="ignore", under="ignore"):
            scaled = SOURCES[name](v, memories, par, block, h, w)
        out = np.minimum(np.maximum(scaled, v["clamp_min"]), v["clamp_max"]).astype(np.int8)
        if block == v["blocks"] - 1:
            out[np.arange(lanes) >= v["tail"]] = 0
        result.append((row, out.tobytes()))
    return result


def walk(*counts: int) -> Iterator[tuple[int, ...]]:
    """Indices, the last innermost."""
    return iter(np.ndindex(*counts))


def requantize(value: I64, bias: NDArray[np.uint32], multiplier: NDArray[np.uint32]) -> I64:
    """round(float32(value + bias, modulo 2^32) · multiplier), saturated to int32."""
    total = (value + bias.view(np.int32)).astype(np.int32)
    return saturate(total.astype(np.float32) * multiplier.view(np.float32))


def saturate(value: F32) -> I64:
    """Half-even rounding to int32."""
    return np.clip(np.rint(value).astype(np.float64), -(2**31), 2**31 - 1).astype(np.int64)


def drain(v: Values, m: Memories, par: NDArray[np.uint32], *at: int) -> I64:
    """One row of a DRAIN before the clamp."""
    block, h, w = at
    row = v["acc_base"] + (block * v["out_h"] + h) * v["out_w"] + w
    value = m.acc[v["acc_bank"], row].astype(np.int64)
    return requantize(value, par[0], par[1]) + v["zero_point"]


def pool(v: Values, m: Memories, par: NDArray[np.uint32], *at: int) -> I64:
    """One row of a POOL before the clamp."""
    block, h, w = at
    elements = []
    for kh, kw in walk(v["kernel_h"], v["kernel_w"]):
        y = v["origin_h"] + h * v["stride_h"] + kh * v["dilation_h"]
        x = v["origin_w"] + w * v["stride_w"] + kw * v["dilation_w"]
        if 0 <= y < v["in_h"] and 0 <= x < v["in_w"]:
            row = v["in_base"] + y * v["in_row_stride"] + x * v["in_col_stride"]
            elements.append(m.act[row + block * v["in_block_stride"]].astype(np.int64))
    window = np.array(elements).reshape(len(elements), m.act.shape[1])
    if not v["sum"]:
        return np.max(window, axis=0, initial=-128).astype(np.int64)
    total = (window - v["input_zero_point"]).sum(axis=0).astype(np.int64)
    return requantize(total, par[0], par[1]) + v["zero_point"]


def add(v: Values, m: Memories, par: NDArray[np.uint32], *at: int) -> I64:
    """One row of an ADD before the clamp."""
    block, h, w = at

    def operand(x: str) -> I64:
        row = v[f"{x}_base"] + h * v[f"{x}_row_stride"] + w * v[f"{x}_col_stride"]
        element = m.act[row + block * v[f"{x}_block_stride"]].astype(np.int64)
        return element - v[f"{x}_zero_point"]

    a, b = operand("a"), operand("b")
    if v["mode"]:
        return fixed_sum(a, b, par) + v["zero_point"]
    total = a.astype(np.float32) * par[0].view(np.float32)
    total += b.astype(np.float32) * par[1].view(np.float32)
    return saturate(total * par[2].view(np.float32)) + v["zero_point"]


def fixed_sum(a: I64, b: I64, par: NDArray[np.uint32]) -> I64:
    """(a·ma + b·mb modulo 2^32) / 2^shift with ties away from zero, in Python's integers."""
    result = []
    for x, y, left, right, shift in zip(a, b, par[0], par[1], par[2], strict=True):
        total = int(x) * (int(left) % (1 << 23)) + int(y) * (int(right) % (1 << 23))
        total = (total + (1 << 31)) % (1 << 32) - (1 << 31)
        divisor = 1 << int(shift) % 32
        magnitude = (2 * abs(total) + divisor) // (2 * divisor)
        result.append(magnitude if total >= 0 else -magnitude)
    return np.array(result, dtype=np.int64)


SOURCES: dict[str, Callable[..., I64]] = {"drain": drain, "pool": pool, "add": add}
