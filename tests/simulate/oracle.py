"""What instructions compute, element by element in Python loops, from the manual's words.

Shares nothing with the simulator but the memory arrays; integers are Python's, floats float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from accelsim.simulate.memory import Memory

Values = dict[str, int]


def wrap32(x: int) -> int:
    return (int(x) + (1 << 31)) % (1 << 32) - (1 << 31)


def round_even(x: np.float32) -> int:
    return round(Fraction(float(x)))


def round_away(x: int, shift: int) -> int:
    """x / 2^shift, ties away from zero."""
    magnitude = int(abs(Fraction(x, 1 << shift)) + Fraction(1, 2))
    return magnitude if x >= 0 else -magnitude


def requantize(acc: int, bias: int, multiplier: np.float32, v: Values) -> int:
    product = np.float32(np.float32(wrap32(acc + bias)) * multiplier)
    return limit(saturate(round_even(product)) + v["zero_point"], v)


def saturate(x: int) -> int:
    return min(max(x, -(1 << 31)), (1 << 31) - 1)


def limit(x: int, v: Values) -> int:
    return min(max(x, v["clamp_min"]), v["clamp_max"])


def read(memory: Memory, v: Values, h: int, w: int, block: int, lane: int) -> int | None:
    """An input element, None for padding."""
    if not (0 <= h < v["in_h"] and 0 <= w < v["in_w"]):
        return None
    row = v["in_base"] + h * v["in_row_stride"] + w * v["in_col_stride"]
    return int(memory.act[row + block * v["in_block_stride"], lane])


def outputs(memory: Memory, v: Values, blocks: int) -> Iterator[tuple[int, int, int, int]]:
    for block in range(blocks):
        for h in range(v["out_h"]):
            for w in range(v["out_w"]):
                for lane in range(memory.lanes):
                    yield block, h, w, lane


def put_acc(memory: Memory, v: Values, at: tuple[int, int, int, int], total: int, zero: bool):
    block, h, w, lane = at
    row = v["acc_base"] + (block * v["out_h"] + h) * v["out_w"] + w
    cell = memory.acc[v["acc_bank"]]
    old = int(cell[row, lane]) if v["accumulate"] else 0
    cell[row, lane] = 0 if zero else wrap32(old + total)


def conv(memory: Memory, v: Values) -> None:
    lanes = memory.lanes
    for at in outputs(memory, v, v["out_blocks"]):
        block, oh, ow, lane = at
        total = 0
        for kh in range(v["kernel_h"]):
            for kw in range(v["kernel_w"]):
                h = v["origin_h"] + oh * v["stride_h"] + kh * v["dilation_h"]
                w = v["origin_w"] + ow * v["stride_w"] + kw * v["dilation_w"]
                for ib in range(v["in_blocks"]):
                    tile = ((block * v["kernel_h"] + kh) * v["kernel_w"] + kw) * v["in_blocks"] + ib
                    valid = v["in_tail"] if ib == v["in_blocks"] - 1 else lanes
                    for i in range(valid):
                        x = read(memory, v, h, w, ib, i)
                        weight = int(memory.wgt[v["wgt_base"] + tile * lanes + i, lane])
                        if x is not None:
                            total += (x - v["input_zero_point"]) * (weight - v["weight_zero_point"])
        put_acc(memory, v, at, total, block == v["out_blocks"] - 1 and lane >= v["out_tail"])


def dwconv(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        block, oh, ow, lane = at
        total = 0
        for kh in range(v["kernel_h"]):
            for group in range(v["groups_w"]):
                for tap in range(3 if v["wide"] else 1):
                    column = 3 * group + tap if v["wide"] else group * v["dilation_w"]
                    h = v["origin_h"] + oh * v["stride_h"] + kh * v["dilation_h"]
                    x = read(memory, v, h, v["origin_w"] + ow * v["stride_w"] + column, block, lane)
                    tile = (block * v["kernel_h"] + kh) * v["groups_w"] + group
                    weight = int(memory.wgt[v["wgt_base"] + tile * 3 + tap, lane])
                    if x is not None:
                        total += (x - v["input_zero_point"]) * (weight - v["weight_zero_point"])
        put_acc(memory, v, at, total, block == v["blocks"] - 1 and lane >= v["tail"])


def put_act(memory: Memory, v: Values, at: tuple[int, int, int, int], value: int) -> None:
    block, h, w, lane = at
    row = v["dst_base"] + h * v["dst_row_stride"] + w * v["dst_col_stride"]
    pad = block == v["blocks"] - 1 and lane >= v["tail"]
    memory.act[row + block * v["dst_block_stride"], lane] = 0 if pad else value


def parameter(memory: Memory, v: Values, block: int, row: int, lane: int) -> np.int32:
    at = v["par_base"] + block * v["par_stride"] + row
    words = memory.par[4 * at : 4 * at + 4].reshape(-1).view(np.int32)
    return words[lane]


def as_float(word: np.int32) -> np.float32:
    return word.view(np.float32)


def drain(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        block, h, w, lane = at
        row = v["acc_base"] + (block * v["out_h"] + h) * v["out_w"] + w
        acc = int(memory.acc[v["acc_bank"], row, lane])
        bias = int(parameter(memory, v, block, 0, lane))
        put_act(
            memory, v, at, requantize(acc, bias, as_float(parameter(memory, v, block, 1, lane)), v)
        )


def pool(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        block, oh, ow, lane = at
        seen = []
        for kh in range(v["kernel_h"]):
            for kw in range(v["kernel_w"]):
                h = v["origin_h"] + oh * v["stride_h"] + kh * v["dilation_h"]
                w = v["origin_w"] + ow * v["stride_w"] + kw * v["dilation_w"]
                x = read(memory, v, h, w, block, lane)
                seen += [] if x is None else [x]
        if v["sum"]:
            total = sum(x - v["input_zero_point"] for x in seen)
            bias = int(parameter(memory, v, block, 0, lane))
            value = requantize(total, bias, as_float(parameter(memory, v, block, 1, lane)), v)
        else:
            value = limit(max(seen, default=-128), v)
        put_act(memory, v, at, value)


def add(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        block, h, w, lane = at
        operands = []
        for name in "ab":
            x = memory.act[
                v[f"{name}_base"]
                + h * v[f"{name}_row_stride"]
                + w * v[f"{name}_col_stride"]
                + block * v[f"{name}_block_stride"],
                lane,
            ]
            operands.append(int(x) - v[f"{name}_zero_point"])
        words = [parameter(memory, v, block, row, lane) for row in range(3)]
        scaled = fixed_sum(operands, words) if v["mode"] else float_sum(operands, words)
        put_act(memory, v, at, limit(scaled + v["zero_point"], v))


def float_sum(operands: list[int], words: list[np.int32]) -> int:
    terms = [np.float32(x) * as_float(word) for x, word in zip(operands, words[:2], strict=True)]
    return saturate(round_even(np.float32(np.float32(terms[0] + terms[1]) * as_float(words[2]))))


def fixed_sum(operands: list[int], words: list[np.int32]) -> int:
    factors = [int(word) & 0x7FFFFF for word in words[:2]]
    total = sum(x * factor for x, factor in zip(operands, factors, strict=True))
    return round_away(wrap32(total), int(words[2]) & 31)


def transfer(memory: Memory, v: Values) -> Iterator[tuple[int, int]]:
    """(DRAM beat, on-chip row) pairs in order."""
    for i2 in range(v["count2"]):
        for i1 in range(v["count1"]):
            for i0 in range(v["count0"]):
                yield (
                    v["dram_offset"] + i2 * v["dram_stride2"] + i1 * v["dram_stride1"] + i0,
                    v["local_base"]
                    + i2 * v["local_stride2"]
                    + i1 * v["local_stride1"]
                    + i0 * v["local_stride0"],
                )


def load(memory: Memory, v: Values) -> None:
    target = (memory.act, memory.wgt, memory.par)[v["memory"]]
    for beat, row in transfer(memory, v):
        data = memory.dram[v["base_reg"]][beat * memory.lanes : (beat + 1) * memory.lanes]
        target[row] = data.view(np.int8)


def store(memory: Memory, v: Values) -> None:
    for beat, row in transfer(memory, v):
        region = memory.dram[v["base_reg"]]
        region[beat * memory.lanes : (beat + 1) * memory.lanes] = memory.act[row].view(np.uint8)


ORACLE = {
    "load": load,
    "store": store,
    "conv": conv,
    "dwconv": dwconv,
    "drain": drain,
    "pool": pool,
    "add": add,
}
