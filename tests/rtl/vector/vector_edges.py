"""A drain whose accumulators and parameter words are at and around powers of two.

What comes in: a generator and a shift. What goes out: memory contents and an instruction. It knows
nothing of what a drain computes but the sizes at which results lie near small integers and ties.
"""

from __future__ import annotations

import numpy as np

from accelsim.spec.config import Config
from accelsim.spec.encoding import check, encode
from tests.rtl.float.scale_oracle import edge_words
from tests.rtl.vector.vector_jobs import instruction_bits
from tests.rtl.vector.vector_oracle import Memories, Values


def edge_memories(rng: np.random.Generator, memories: Memories, shift: int) -> None:
    """Accumulators and rows 0 to 2 of parameter memory for one shift; upper bits are random."""
    edges = np.array(edge_words(), np.int64)
    bias, mantissa, places = memories.par[:3]
    lanes = len(bias)
    bias[:] = np.where(rng.random(lanes) < 0.5, 0, rng.choice(edges, lanes)).astype(np.uint32)
    mantissa[:] = rng.choice(edges, lanes).astype(np.uint32)
    places[:] = (rng.integers(0, 1 << 26, lanes) << 6 | shift & 63).astype(np.uint32)
    acc = memories.acc
    wild = rng.choice(edges, acc.shape)
    # Half integers and what lies beside them, as far as accumulators reach.
    halves = rng.integers(-260, 261, acc.shape) / 2
    factors = np.ldexp(np.maximum(np.abs(mantissa.view(np.int32).astype(float)), 1), shift - 31)
    near = np.rint(halves / factors) + rng.integers(-1, 2, acc.shape) - bias.view(np.int32)
    near = np.clip(near, -(2.0**31), 2.0**31 - 1)
    acc[:] = np.where(rng.random(acc.shape) < 0.3, wild, near).astype(np.int64).astype(np.int32)


def edge_drain(rng: np.random.Generator, config: Config, mode: int) -> tuple[Values, int]:
    """A drain of one block that reads a whole accumulator bank with parameter rows 0 to 2."""
    out_h, out_w = 8, config.acc_rows // 8
    values = {
        "acc_bank": int(rng.integers(2)),
        "acc_base": 0,
        "out_h": out_h,
        "out_w": out_w,
        "blocks": 1,
        "tail": config.lanes,
        "dst_base": 0,
        "dst_row_stride": out_w,
        "dst_col_stride": 1,
        "dst_block_stride": 0,
        "mode": mode,
        "par_base": 0,
        "par_stride": 0,
        "zero_point": int(rng.integers(-3, 4)),
        "clamp_min": -128,
        "clamp_max": 127,
    }
    words = encode("drain", values, config)
    assert check(words, config) is None
    return values, instruction_bits(words)
