"""What instructions compute, element by element in Python loops, from the manual's words.

Shares nothing with the simulator but the memory arrays; integers are Python's, floats float32.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelsim.simulate.memory import Memory
from tests.simulate import oracle_arithmetic as arithmetic
from tests.simulate.oracle_arithmetic import wrap32

Values = dict[str, int]


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
                        row, byte = (lane, i) if v["transposed"] else (i, lane)
                        weight = int(memory.wgt[v["wgt_base"] + tile * lanes + row, byte])
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


def parameters(memory: Memory, v: Values, block: int, rows: int, lane: int) -> list[int]:
    """One word of each parameter row of a block."""
    first = 4 * (v["par_base"] + block * v["par_stride"])
    words = memory.par[first : first + 4 * rows].tobytes()
    at = [4 * (row * memory.lanes + lane) for row in range(rows)]
    return [int.from_bytes(words[i : i + 4], "little", signed=True) for i in at]


def requantize(memory: Memory, v: Values, at: tuple[int, int, int, int], value: int) -> int:
    block, _, _, lane = at
    words = parameters(memory, v, block, 3 if v["mode"] else 2, lane)
    result = arithmetic.scaled(v["mode"], wrap32(value + words[0]), words[1:])
    return limit(result + v["zero_point"], v)


def drain(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        block, h, w, lane = at
        row = v["acc_base"] + (block * v["out_h"] + h) * v["out_w"] + w
        acc = int(memory.acc[v["acc_bank"], row, lane])
        put_act(memory, v, at, requantize(memory, v, at, acc))


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
            value = requantize(memory, v, at, total)
        else:
            value = limit(max(seen, default=-128), v)
        put_act(memory, v, at, value)


def element(memory: Memory, v: Values, name: str, at: tuple[int, int, int, int]) -> int:
    """An element of the operand that lies at an output: "a", "b" or "in"."""
    block, h, w, lane = at
    row = v[f"{name}_base"] + h * v[f"{name}_row_stride"] + w * v[f"{name}_col_stride"]
    row += block * v[f"{name}_block_stride"]
    return int(memory.act[row, 0 if v.get(f"{name}_scalar") else lane])


def operands(memory: Memory, v: Values, at: tuple[int, int, int, int]) -> list[int]:
    return [element(memory, v, name, at) - v[f"{name}_zero_point"] for name in "ab"]


def add(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        words = parameters(memory, v, at[0], (3, 3, 6)[v["mode"]], at[3])
        total = arithmetic.summed(v["mode"], *operands(memory, v, at), words, v["subtract"])
        put_act(memory, v, at, limit(total + v["zero_point"], v))


def binary(memory: Memory, v: Values) -> None:
    for at in outputs(memory, v, v["blocks"]):
        value = arithmetic.combined(v["kind"], *operands(memory, v, at))
        put_act(memory, v, at, requantize(memory, v, at, value))


def table(memory: Memory, v: Values) -> list[int]:
    """The 256 words of the table that `lut` names."""
    data = memory.tab.tobytes()[1024 * v["lut"] : 1024 * (v["lut"] + 1)]
    return [int.from_bytes(data[i : i + 4], "little", signed=True) for i in range(0, 1024, 4)]


def lookup(memory: Memory, v: Values) -> None:
    words = table(memory, v)
    for at in outputs(memory, v, v["blocks"]):
        byte = words[element(memory, v, "in", at) + 128] & 255
        put_act(memory, v, at, byte - 256 if byte > 127 else byte)


def channels(memory: Memory, v: Values) -> Iterator[list[tuple[int, int, int, int]]]:
    """For each pixel the places of its channels, pad lanes last."""
    for h in range(v["out_h"]):
        for w in range(v["out_w"]):
            yield [(b, h, w, i) for b in range(v["blocks"]) for i in range(memory.lanes)]


def softmax(memory: Memory, v: Values) -> None:
    words, pads = table(memory, v), memory.lanes - v["tail"]
    for places in channels(memory, v):
        row = [element(memory, v, "in", at) for at in places[: len(places) - pads]]
        for at, share in zip(places, [*arithmetic.softmax(row, words), *[0] * pads], strict=True):
            put_act(memory, v, at, share)


def layernorm(memory: Memory, v: Values) -> None:
    pads = memory.lanes - v["tail"]
    for places in channels(memory, v):
        real = places[: len(places) - pads]
        row = [element(memory, v, "in", at) for at in real]
        words = [parameters(memory, v, at[0], 2, at[3]) for at in real]
        gains, offsets = ([word[i] for word in words] for i in range(2))
        epsilon = v["epsilon"] << v["epsilon_shift"]
        steps = arithmetic.layernorm(row, gains, offsets, v["gain_bits"], epsilon)
        results = [limit(step + v["zero_point"], v) for step in steps]
        for at, value in zip(places, [*results, *[0] * pads], strict=True):
            put_act(memory, v, at, value)


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
    target = (memory.act, memory.wgt, memory.par, memory.tab)[v["memory"]]
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
    "binary": binary,
    "lookup": lookup,
    "softmax": softmax,
    "layernorm": layernorm,
}
