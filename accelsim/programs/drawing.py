"""Random legal instructions and random memories.

What comes in: a generator and a configuration. What goes out: field values that dispatch accepts,
drawn small so that oracles with Python loops stay quick.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.memory import Memory, new_memory
from accelsim.spec.config import Config
from accelsim.spec.encoding import check, decode, encode

Values = dict[str, int]
REGION_BEATS = 4096


def random_memory(rng: np.random.Generator, config: Config) -> Memory:
    """Memories of full-range random bytes; floats in parameter memory come from `parameters`."""
    dram = {b: rng.integers(0, 256, REGION_BEATS * config.lanes, dtype=np.uint8) for b in range(8)}
    memory = new_memory(config, dram)
    for array in (memory.act, memory.wgt, memory.par):
        array[...] = rng.integers(-128, 128, array.shape)
    memory.acc[...] = rng.integers(-(1 << 31), 1 << 31, memory.acc.shape)
    return memory


def put_parameters(
    rng: np.random.Generator, memory: Memory, v: Values, kinds: str, spread: float
) -> None:
    """Parameter rows of every block: `i` an int32 bias, `f` a positive float around `spread`.

    `m` is a multiplier of a fixed-point sum, `s` its shift, usual ones four times out of five.
    """
    for block in range(v["blocks"]):
        for row, kind in enumerate(kinds):
            at = v["par_base"] + block * v["par_stride"] + row
            words = memory.par_words[at]
            if kind == "i":
                words[...] = rng.integers(-(1 << 20), 1 << 20, words.shape)
            elif kind in "ms":
                words[...] = fixed_words(rng, kind, words.shape)
            else:
                words[...] = (
                    np.exp(rng.normal(0, 1.5, words.shape)).astype(np.float32) * np.float32(spread)
                ).view(np.int32)


def fixed_words(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Multipliers (many powers of two, which make ties) or shifts; any word one time in five."""
    if kind == "m":
        usual = rng.integers(0, (1 << 22) + 1, shape)
        usual = np.where(rng.random(shape) < 0.5, 1 << rng.integers(12, 23, shape), usual)
    else:
        usual = rng.integers(13, 32, shape)
    wild = rng.integers(-(1 << 31), 1 << 31, shape)
    return np.where(rng.random(shape) < 0.8, usual, wild)


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
        "par_base": int(rng.integers(0, 4)),
        "par_stride": int(rng.choice([0, 3])),
        "zero_point": int(rng.integers(-128, 128)),
        "clamp_min": int(rng.integers(-128, 128)),
        "clamp_max": int(rng.integers(-128, 128)),
    }


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
    v = {
        "acc_bank": int(rng.integers(2)),
        "acc_base": int(rng.integers(0, 8)),
        "out_h": int(rng.integers(1, 5)),
        "out_w": int(rng.integers(1, 5)),
        "blocks": int(rng.integers(1, 4)),
        "tail": int(rng.integers(1, config.lanes + 1)),
    }
    return {**v, **destination(rng, v)}


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
    return {**v, **destination(rng, v)}


def add(rng: np.random.Generator, config: Config) -> Values:
    """An add whose operands may have different layouts."""
    v = {
        "out_h": int(rng.integers(1, 5)),
        "out_w": int(rng.integers(1, 5)),
        "blocks": int(rng.integers(1, 4)),
        "tail": int(rng.integers(1, config.lanes + 1)),
        "a_zero_point": int(rng.integers(-128, 128)),
        "b_zero_point": int(rng.integers(-128, 128)),
        "mode": int(rng.integers(2)),
    }
    for name, base in (("a", 0), ("b", 90)):
        v[f"{name}_base"] = int(rng.integers(base, base + 20))
        v[f"{name}_row_stride"] = int(rng.integers(0, 8))
        v[f"{name}_col_stride"] = int(rng.integers(0, 3))
        v[f"{name}_block_stride"] = int(rng.integers(0, 20))
    return {**v, **destination(rng, v)}


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
    return {**v, "memory": int(rng.integers(3)), "dram_stride1": int(rng.integers(0, 10))}


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
}


def legal(rng: np.random.Generator, name: str, config: Config) -> Values:
    """All field values of one random instruction that dispatch accepts."""
    for _ in range(200):
        words = encode(name, DRAW[name](rng, config), config)
        if check(words, config, region_bytes=[REGION_BEATS * config.lanes] * 8) is None:
            return decode(words)[1]
    raise AssertionError(f"no legal {name} drawn for {config.name}")
