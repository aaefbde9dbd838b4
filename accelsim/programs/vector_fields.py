"""Random fields of vector instructions, legal or not, and words that are legal multipliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accelsim.spec.arithmetic import ADD_MODES, BINARY_KINDS, MODES
from accelsim.spec.config import Config

Values = dict[str, int]


def random_parameters(rng: np.random.Generator, config: Config) -> NDArray[np.uint32]:
    """Words that are legal multipliers (so biases are wild): usual, powers of two, far out.

    As words of a fixed-point sum they are arbitrary in all bits that count there.
    """
    shape = (config.par_rows, config.lanes)
    exponent = np.select(
        [rng.random(shape) < 0.7, rng.random(shape) < 0.5],
        [rng.integers(-12, 2, shape), rng.integers(-40, 40, shape)],
        rng.integers(-100, 100, shape),
    )
    fraction = rng.integers(0, 1 << 23, shape) * (rng.random(shape) < 0.8)
    zeros = rng.integers(0, 23, shape) * (rng.random(shape) < 0.3)  # low bits: ties
    fraction = fraction >> zeros << zeros
    return ((exponent + 127) << 23 | fraction).astype(np.uint32)


def small(rng: np.random.Generator, high: int) -> int:
    """1 to `high`, small more often."""
    return int(rng.integers(1, rng.integers(1, high + 1) + 1))


def strides(rng: np.random.Generator, prefix: str, rows: int) -> Values:
    """Base and strides somewhere in a memory; sometimes 0, so that rows coincide."""
    names = ("row_stride", "col_stride", "block_stride")
    values = {f"{prefix}_{n}": int(rng.integers(0, rows // 8)) for n in names}
    return {f"{prefix}_base": int(rng.integers(0, rows // 2)), **values}


def outputs(rng: np.random.Generator, config: Config) -> Values:
    """Where outputs lie, and how many there are."""
    return {
        **strides(rng, "dst", config.act_rows),
        "out_h": small(rng, 5),
        "out_w": small(rng, 6),
        "blocks": small(rng, 3),
        "tail": int(rng.integers(1, config.lanes + 1)),
    }


def common(rng: np.random.Generator, config: Config) -> Values:
    """Fields of instructions that scale and clamp."""
    low, high = sorted(int(x) for x in rng.integers(-128, 128, 2))
    if rng.random() < 0.5:
        low, high = -128, 127
    return {
        **outputs(rng, config),
        "par_base": int(rng.integers(0, 8)),
        "par_stride": int(rng.integers(0, 5)),
        "zero_point": int(rng.integers(-128, 128)),
        "clamp_min": low,
        "clamp_max": high if rng.random() < 0.9 else low - 1 if low > -128 else 5,
    }


def random_drain(rng: np.random.Generator, config: Config) -> Values:
    """A DRAIN, legal or not."""
    base = int(rng.integers(0, config.acc_rows // 2))
    return {**common(rng, config), "acc_bank": int(rng.integers(2)), "acc_base": base} | mode(rng)


def random_pool(rng: np.random.Generator, config: Config) -> Values:
    """A POOL: mostly usual windows, sometimes with padding and steps as far as they go."""
    far = rng.random() < 0.2
    ends = (1, 6) if not far else (1, 32)
    pair = ("h", "w")
    values = {f"{n}_{x}": int(rng.integers(*ends)) for n in ("stride", "dilation") for x in pair}
    values |= {f"origin_{x}": int(rng.integers(-2048, 2048) if far else rng.integers(-4, 3))
               for x in pair}  # fmt: skip
    return {
        **common(rng, config),
        **mode(rng),
        **strides(rng, "in", config.act_rows),
        **values,
        **{f"kernel_{x}": small(rng, 4) for x in pair},
        **{f"in_{x}": small(rng, 4000 if far else 8) for x in pair},
        "sum": int(rng.integers(2)),
        "input_zero_point": int(rng.integers(-128, 128)),
        **({"in_row_stride": 0, "in_col_stride": 0} if far else {}),
    }


def mode(rng: np.random.Generator) -> Values:
    """A mode of requantization."""
    return {"mode": int(rng.integers(len(MODES)))}


def operands(rng: np.random.Generator, config: Config) -> Values:
    """Two operands, each of which may be a scalar."""
    return {
        **strides(rng, "a", config.act_rows),
        **strides(rng, "b", config.act_rows),
        **{f"{x}_zero_point": int(rng.integers(-128, 128)) for x in "ab"},
        **{f"{x}_scalar": int(rng.random() < 0.5) for x in "ab"},
    }


def random_add(rng: np.random.Generator, config: Config) -> Values:
    """An ADD, legal or not."""
    values = {"mode": int(rng.integers(len(ADD_MODES))), "subtract": int(rng.integers(2))}
    return {**common(rng, config), **operands(rng, config), **values}


def random_binary(rng: np.random.Generator, config: Config) -> Values:
    """A BINARY, legal or not."""
    kind = int(rng.integers(len(BINARY_KINDS)))
    return {**common(rng, config), **operands(rng, config), **mode(rng), "kind": kind}


def random_lookup(rng: np.random.Generator, config: Config) -> Values:
    """A LOOKUP or SOFTMAX, legal or not."""
    source = strides(rng, "in", config.act_rows)
    return {**outputs(rng, config), **source, "lut": int(rng.integers(2))}


def random_layernorm(rng: np.random.Generator, config: Config) -> Values:
    """A LAYERNORM, legal or not; a few with an epsilon as large as fields allow."""
    far = rng.random() < 0.2
    return {
        **common(rng, config),
        **strides(rng, "in", config.act_rows),
        "gain_bits": int(rng.integers(25)),
        "epsilon": int(rng.integers(0, 1 << int(rng.integers(1, 33)))),
        "epsilon_shift": int(rng.integers(0, 16 if far else 3)),
    }


MAKERS: dict[str, Callable[[np.random.Generator, Config], Values]] = {
    "drain": random_drain,
    "pool": random_pool,
    "add": random_add,
    "binary": random_binary,
    "lookup": random_lookup,
    "softmax": random_lookup,
    "layernorm": random_layernorm,
}
