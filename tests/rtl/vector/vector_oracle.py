"""What jobs of the vector engine write, in NumPy's float32 and Python's integers.

What comes in: field values and memory contents. What goes out: the rows that an instruction
writes, in order. It knows the instruction table's text and none of the RTL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.rtl.float.scale_oracle import FP32, TFLITE, divided_away, scaled, wrapped

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Values = dict[str, int]
ADD_FP32, ADD_FIXED, ADD_TFLITE = range(3)


@dataclass(frozen=True, slots=True)
class Memories:
    """On-chip memories: act (rows, lanes) int8, acc (2, rows, lanes) int32, par uint32 bits."""

    act: NDArray[np.int8]
    acc: NDArray[np.int32]
    par: U32


def parameter_rows(name: str, v: Values) -> int:
    """Parameter rows of a block."""
    if name == "add":
        return 6 if v["mode"] == ADD_TFLITE else 3
    if name == "pool" and not v["sum"]:
        return 0
    return 2 if v["mode"] == FP32 else 3


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


def requantize(v: Values, value: I64, par: U32) -> I64:
    """Value plus bias (row 0), modulo 2^32, scaled by the other parameter rows."""
    total = (value + par[0].view(np.int32)).astype(np.int32)
    if v["mode"] == FP32:
        product = saturate(total.astype(np.float32) * par[1].view(np.float32))
        return product + v["zero_point"]
    words = zip(total.tolist(), par[1].tolist(), par[2].tolist(), strict=True)
    result = [scaled(v["mode"], *lane) for lane in words]
    return np.array(result, dtype=np.int64) + v["zero_point"]


def saturate(value: F32) -> I64:
    """Half-even rounding to int32."""
    return np.clip(np.rint(value).astype(np.float64), -(2**31), 2**31 - 1).astype(np.int64)


def drain(v: Values, m: Memories, par: U32, *at: int) -> I64:
    """One row of a DRAIN before the clamp."""
    block, h, w = at
    row = v["acc_base"] + (block * v["out_h"] + h) * v["out_w"] + w
    value = m.acc[v["acc_bank"], row].astype(np.int64)
    return requantize(v, value, par)


def pool(v: Values, m: Memories, par: U32, *at: int) -> I64:
    """One row of a POOL before the clamp."""
    block, h, w = at
    elements = []
    for kh, kw in walk(v["kernel_h"], v["kernel_w"]):
        y = v["origin_h"] + h * v["stride_h"] + kh * v["dilation_h"]
        x = v["origin_w"] + w * v["stride_w"] + kw * v["dilation_w"]
        if 0 <= y < v["in_h"] and 0 <= x < v["in_w"]:
            row = v["in_base"] + y * v["in_row_stride"] + x * v["in_col_stride"]
            elements.append(m.act[row + block * v["in_block_stride"]].astype(np.int64))
    window: I64 = np.array(elements, np.int64).reshape(len(elements), m.act.shape[1])
    if not v["sum"]:
        return np.asarray(np.max(window, axis=0, initial=-128), np.int64)
    total: I64 = (window - v["input_zero_point"]).sum(axis=0)
    return requantize(v, total, par)


def operands(v: Values, m: Memories, *at: int) -> tuple[I64, I64]:
    """Both operands of an ADD or BINARY without their zero points."""
    block, h, w = at
    result = []
    for x in "ab":
        row = v[f"{x}_base"] + h * v[f"{x}_row_stride"] + w * v[f"{x}_col_stride"]
        element = m.act[row + block * v[f"{x}_block_stride"]].astype(np.int64)
        if v[f"{x}_scalar"]:
            element = np.full_like(element, element[0])
        result.append(element - v[f"{x}_zero_point"])
    return result[0], result[1]


def binary(v: Values, m: Memories, par: U32, *at: int) -> I64:
    """One row of a BINARY before the clamp."""
    a, b = operands(v, m, *at)
    return requantize(v, (a * b, np.minimum(a, b), np.maximum(a, b))[v["kind"]], par)


def add(v: Values, m: Memories, par: U32, *at: int) -> I64:
    """One row of an ADD before the clamp."""
    a, b = operands(v, m, *at)
    if v["mode"] != ADD_FP32:
        lanes = zip(a.tolist(), b.tolist(), par[:6].T.tolist(), strict=True)
        one = tflite_sum if v["mode"] == ADD_TFLITE else fixed_sum
        sums = [one(x, y, words, bool(v["subtract"])) for x, y, words in lanes]
        return np.array(sums, dtype=np.int64) + v["zero_point"]
    left = a.astype(np.float32) * par[0].view(np.float32)
    right = b.astype(np.float32) * par[1].view(np.float32)
    total = left - right if v["subtract"] else left + right
    return saturate(total * par[2].view(np.float32)) + v["zero_point"]


def fixed_sum(a: int, b: int, words: list[int], subtract: bool) -> int:
    """(a·ma ± b·mb modulo 2^32) / 2^shift with ties away from zero."""
    left, right = a * (words[0] % (1 << 23)), b * (words[1] % (1 << 23))
    total = wrapped(left - right if subtract else left + right)
    return divided_away(total, 1 << words[2] % 32)


def tflite_sum(a: int, b: int, words: list[int], subtract: bool) -> int:
    """Both operands times 2^20 scaled, their sum modulo 2^32 scaled again."""
    left = scaled(TFLITE, a << 20, words[0], words[3])
    right = scaled(TFLITE, b << 20, words[1], words[4])
    return scaled(TFLITE, wrapped(left - right if subtract else left + right), words[2], words[5])


SOURCES: dict[str, Callable[..., I64]] = {
    "drain": drain,
    "pool": pool,
    "add": add,
    "binary": binary,
}
