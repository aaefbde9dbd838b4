"""Random legal instructions and random memories.

What comes in: a generator and a configuration. What goes out: field values that dispatch accepts,
drawn small so that oracles with Python loops stay quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.memory import Memory, new_memory
from accelsim.spec.arithmetic import ADD_MODES, BINARY_KINDS, MODES
from accelsim.spec.config import Config
from accelsim.spec.durations import ADD_ROWS, REQUANTIZE_ROWS
from accelsim.spec.encoding import check, decode, encode
from accelsim.spec.normalization import softmax_table

Values = dict[str, int]
REGION_BEATS = 4096
ADD_TFLITE = ADD_MODES.index("tflite")


def random_memory(rng: np.random.Generator, config: Config) -> Memory:
    """Memories of full-range random bytes; table 0 is one of a softmax."""
    dram = {b: rng.integers(0, 256, REGION_BEATS * config.lanes, dtype=np.uint8) for b in range(8)}
    memory = new_memory(config, dram)
    for array in memory.local:
        array[...] = rng.integers(-128, 128, array.shape)
    memory.tables[0] = exponentials(rng)
    memory.acc[...] = rng.integers(-(1 << 31), 1 << 31, memory.acc.shape)
    return memory


def exponentials(rng: np.random.Generator) -> NDArray[np.int32]:
    """A table as softmax has it: exp(-d·scale) in Q0.31, of any scale."""
    return softmax_table(float(np.exp(rng.uniform(np.log(1e-3), np.log(2)))))


def parameter_kinds(name: str, v: Values) -> tuple[str, float]:
    """(kinds of the parameter rows of a block, usual scale) for `put_parameters`; "" has none."""
    integer = v.get("mode", 0) != 0
    if name == "add":
        return ("fff", "mms", "MMMSSS")[v["mode"]], 0.3 if v["mode"] != ADD_TFLITE else 0.5
    if name == "layernorm":
        return "go", float(1 << v["gain_bits"])
    scales = {"drain": 2e-8, "pool": 1e-5, "binary": 1e-4}
    return ("iMS" if integer else "if", scales[name]) if name in scales else ("", 1.0)


def put_parameters(rng: np.random.Generator, memory: Memory, name: str, v: Values) -> None:
    """Parameter rows of every block of an instruction, of `parameter_kinds`."""
    kinds, spread = parameter_kinds(name, v)
    for block in range(v.get("blocks", 0)):
        for row, kind in enumerate(kinds):
            at = v["par_base"] + block * v["par_stride"] + row
            memory.par_words[at] = parameter_row(rng, kind, spread, memory.lanes)


def parameter_row(
    rng: np.random.Generator, kind: str, spread: float, lanes: int
) -> NDArray[np.int32]:
    """`lanes` words of one kind, the usual ones of integer modes four times out of five.

    `i` a bias that stays within int8 with a scale of `spread`, `f` a positive float around it; `m`
    a multiplier of a fixed-point sum, `s` its shift; `M` a mantissa, `S` a shift with which it is
    around `spread`; `g` a gain of about `spread`, `o` an offset of a layer normalization.
    """
    if kind == "i":
        bound = min(1 << 20, 1 + round(64 / spread))
        return rng.integers(-bound, bound, lanes).astype(np.int32)
    if kind == "f":
        floats = np.exp(rng.normal(0, 1.5, lanes)).astype(np.float32) * np.float32(spread)
        return floats.view(np.int32)
    powers = 1 << rng.integers(12, 23, lanes)  # they make ties
    half = rng.random(lanes) < 0.5
    made: dict[str, Callable[[], NDArray[Any]]] = {
        "m": lambda: np.where(half, powers, rng.integers(0, (1 << 22) + 1, lanes)),
        "s": lambda: rng.integers(13, 32, lanes),
        "M": lambda: np.where(half, powers << 8, rng.integers(1 << 30, 1 << 31, lanes)),
        "S": lambda: round(np.log2(spread)) + rng.integers(-2, 3, lanes),
        "g": lambda: rng.normal(0, 30, lanes) * spread,
        "o": lambda: rng.integers(-(1 << 22), 1 << 22, lanes),
    }
    wild = rng.integers(-(1 << 31), 1 << 31, lanes)
    return np.where(rng.random(lanes) < 0.8, made[kind]().astype(np.int64), wild).astype(np.int32)


def window(rng: np.random.Generator, blocks: int) -> Values:
    """Window fields over a tensor of `blocks` blocks, padding on any side."""
    height, width = rng.integers(1, 7, 2)
    layout = int(rng.integers(2))
    col = blocks if layout else 1
    return {
        "in_base": int(rng.integers(0, 40)),
        "in_h": int(height),
        "in_w": int(width),
        "in_row_stride": int(width * col + rng.integers(0, 3)),
        "in_col_stride": int(col),
        "in_block_stride": 1 if layout else int(height * (width + 2)),
        "origin_h": int(rng.integers(-4, 4)),
        "origin_w": int(rng.integers(-4, 4)),
        "stride_h": int(rng.integers(1, 4)),
        "stride_w": int(rng.integers(1, 4)),
        "dilation_h": int(rng.integers(1, 4)),
        "dilation_w": int(rng.integers(1, 4)),
        "kernel_h": int(rng.integers(1, 4)),
        "out_h": int(rng.integers(1, 5)),
        "out_w": int(rng.integers(1, 5)),
    }


def mac(rng: np.random.Generator) -> Values:
    """Fields that conv and dwconv share."""
    return {
        "wgt_base": int(rng.integers(0, 24)),
        "acc_bank": int(rng.integers(2)),
        "acc_base": int(rng.integers(0, 8)),
        "accumulate": int(rng.integers(2)),
        "input_zero_point": int(rng.integers(-128, 128)),
        "weight_zero_point": int(rng.integers(2) * rng.integers(-128, 128)),
    }


def destination(rng: np.random.Generator, v: Values) -> Values:
    """Distinct output rows in either layout."""
    blocks, height, width = v["blocks"], v["out_h"], v["out_w"]
    layout = int(rng.integers(2))
    col = blocks if layout else 1
    return {
        "dst_base": int(rng.integers(256, 300)),
        "dst_row_stride": int(width * col + rng.integers(0, 3)),
        "dst_col_stride": int(col),
        "dst_block_stride": 1 if layout else int(height * (width + 2)),
    }


def ending(rng: np.random.Generator, rows: int) -> Values:
    """Where `rows` parameter rows a block lie, zero point and limits, a tenth of them crossed."""
    low, high = sorted(int(limit) for limit in rng.integers(-128, 128, 2))
    kind = rng.random()
    limits = (-128, 127) if kind < 0.4 else (low, high) if kind < 0.9 else (high, low)
    return {
        "par_base": int(rng.integers(0, 3)),
        "par_stride": int(rng.choice([0, rows, rows + 1])),
        "zero_point": int(rng.integers(-128, 128)),
        "clamp_min": limits[0],
        "clamp_max": limits[1],
    }


def requantized(rng: np.random.Generator) -> Values:
    """A mode of requantization, and what goes with it."""
    mode = int(rng.integers(len(MODES)))
    return {"mode": mode, **ending(rng, REQUANTIZE_ROWS.numbers[mode])}


def conv(rng: np.random.Generator, config: Config) -> Values:
    """A conv of up to 2 × 2 blocks."""
    blocks = int(rng.integers(1, 3))
    return {
        **window(rng, blocks),
        **mac(rng),
        "kernel_w": int(rng.integers(1, 4)),
        "in_blocks": blocks,
        "out_blocks": int(rng.integers(1, 3)),
        "in_tail": int(rng.integers(1, config.lanes + 1)),
        "out_tail": int(rng.integers(1, config.lanes + 1)),
        "transposed": int(rng.integers(2)),
    }


def dwconv(rng: np.random.Generator, config: Config) -> Values:
    """A dwconv with either kind of group."""
    blocks = int(rng.integers(1, 3))
    return {
        **window(rng, blocks),
        **mac(rng),
        "groups_w": int(rng.integers(1, 4)),
        "wide": int(rng.integers(2)),
        "blocks": blocks,
        "tail": int(rng.integers(1, config.lanes + 1)),
    }


def drain(rng: np.random.Generator, config: Config) -> Values:
    """A drain of up to 3 blocks."""
    v = {"acc_bank": int(rng.integers(2)), "acc_base": int(rng.integers(0, 8)), **size(rng, config)}
    return {**v, **destination(rng, v), **requantized(rng)}


def size(rng: np.random.Generator, config: Config) -> Values:
    """Outputs of up to 3 blocks."""
    return {
        "out_h": int(rng.integers(1, 5)),
        "out_w": int(rng.integers(1, 5)),
        "blocks": int(rng.integers(1, 4)),
        "tail": int(rng.integers(1, config.lanes + 1)),
    }


def pool(rng: np.random.Generator, config: Config) -> Values:
    """A pool, maximum or sum."""
    blocks = int(rng.integers(1, 4))
    v = {
        **window(rng, blocks),
        "kernel_w": int(rng.integers(1, 4)),
        "blocks": blocks,
        "tail": int(rng.integers(1, config.lanes + 1)),
        "sum": int(rng.integers(2)),
        "input_zero_point": int(rng.integers(-128, 128)),
    }
    return {**v, **destination(rng, v), **requantized(rng)}


def operands(rng: np.random.Generator, v: Values) -> Values:
    """Two operands, which may have different layouts; one row may stand for many."""
    v = {**v, **{f"{name}_zero_point": int(rng.integers(-128, 128)) for name in "ab"}}
    for name, base in (("a", 0), ("b", 90)):
        v |= source(rng, name, base)
        v[f"{name}_scalar"] = int(rng.random() < 0.5)
    if rng.random() < 0.1:  # an operand and itself
        v |= {f"b_{part}": v[f"a_{part}"] for part in PLACE}
    return v


PLACE = ("base", "row_stride", "col_stride", "block_stride")


def source(rng: np.random.Generator, name: str, base: int = 0) -> Values:
    """Where an operand lies."""
    strides = (int(rng.integers(0, 8)), int(rng.integers(0, 3)), int(rng.integers(0, 20)))
    place = (int(rng.integers(base, base + 20)), *strides)
    return {f"{name}_{part}": value for part, value in zip(PLACE, place, strict=True)}


def add(rng: np.random.Generator, config: Config) -> Values:
    """An add or a difference."""
    v = operands(rng, size(rng, config))
    mode = int(rng.integers(len(ADD_MODES)))
    given = {"mode": mode, "subtract": int(rng.integers(2)), **ending(rng, ADD_ROWS.numbers[mode])}
    return {**v, **destination(rng, v), **given}


def binary(rng: np.random.Generator, config: Config) -> Values:
    """A product, minimum or maximum."""
    v = operands(rng, size(rng, config))
    kind = int(rng.integers(len(BINARY_KINDS)))
    return {**v, **destination(rng, v), **requantized(rng), "kind": kind}


def lookup(rng: np.random.Generator, config: Config) -> Values:
    """A lookup in either table."""
    v = {**source(rng, "in"), **size(rng, config), "lut": int(rng.integers(2))}
    return {**v, **destination(rng, v)}


def softmax(rng: np.random.Generator, config: Config) -> Values:
    """A softmax with either table."""
    return lookup(rng, config)


def layernorm(rng: np.random.Generator, config: Config) -> Values:
    """A layernorm; a third of them with an epsilon as large as fields allow."""
    v = {**source(rng, "in"), **size(rng, config)}
    if rng.random() < 0.3:
        v |= {"in_row_stride": 0, "in_col_stride": 0}
    epsilon = int(rng.integers(0, 1 << int(rng.integers(1, 33))))
    shift = int(rng.integers(0, 16) if rng.random() < 0.3 else rng.integers(0, 3))
    given = {"gain_bits": int(rng.integers(25)), "epsilon": epsilon, "epsilon_shift": shift}
    return {**v, **destination(rng, v), **ending(rng, 2), **given}


def transfer(rng: np.random.Generator) -> Values:
    """Three nested counts with distinct rows at both ends."""
    count0, count1, count2 = (int(n) for n in rng.integers(1, 6, 3))
    stride0 = int(rng.integers(1, 3))
    stride1 = count0 * stride0 + int(rng.integers(0, 3))
    return {
        "base_reg": int(rng.integers(8)),
        "dram_offset": int(rng.integers(0, 600)),
        "count0": count0,
        "count1": count1,
        "count2": count2,
        "dram_stride1": count0 + int(rng.integers(0, 5)),
        "dram_stride2": (count0 + 5) * count1 + int(rng.integers(0, 100)),
        "local_base": int(rng.integers(0, 20)),
        "local_stride0": stride0,
        "local_stride1": stride1,
        "local_stride2": stride1 * count1,
    }


def load(rng: np.random.Generator, config: Config) -> Values:
    """A load into any memory; its DRAM runs may overlap."""
    v = transfer(rng)
    return {**v, "memory": int(rng.integers(4)), "dram_stride1": int(rng.integers(0, 10))}


def store(rng: np.random.Generator, config: Config) -> Values:
    """A store."""
    return transfer(rng)


DRAW: dict[str, Callable[[np.random.Generator, Config], Values]] = {
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


def legal(rng: np.random.Generator, name: str, config: Config) -> Values:
    """All field values of one random instruction that dispatch accepts."""
    for _ in range(200):
        words = encode(name, DRAW[name](rng, config), config)
        if check(words, config, region_bytes=[REGION_BEATS * config.lanes] * 8) is None:
            return decode(words)[1]
    raise AssertionError(f"no legal {name} drawn for {config.name}")
