"""Jobs of the row engine at the ends of what its words can hold.

What comes in: a configuration. What goes out: field values with memories that belong to them. Long
rows have 128 blocks: 4096 channels in the widest configuration, the most that there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelsim.programs.row_ties import PAIRS, coarse_table, exact_table, operands
from accelsim.spec.config import Config
from tests.rtl.rows.rows_oracle import Memories, Values

LONGEST = 128  # blocks
LOW, HIGH = -(1 << 31), (1 << 31) - 1


def edges(config: Config, name: str) -> Iterator[tuple[Values, Memories]]:
    """Every edge of one instruction."""
    yield from {"softmax": softmax_edges, "layernorm": layernorm_edges}[name](config)


def _one_pixel(blocks: int, tail: int) -> Values:
    places = {f"{t}_{n}": 0 for t in ("in", "dst") for n in ("base", "row_stride", "col_stride")}
    steps = {"in_block_stride": 1, "dst_block_stride": 1}
    return places | steps | {"out_h": 1, "out_w": 1, "blocks": blocks, "tail": tail}


def _memories(config: Config, act: int) -> Memories:
    """Every element `act`, every parameter and table word 0."""
    return Memories(
        np.full((config.act_rows, config.lanes), act, np.int8),
        np.zeros((config.par_rows, config.lanes), np.int32),
        np.zeros((2, 256), np.int32),
    )


def softmax_edges(config: Config) -> Iterator[tuple[Values, Memories]]:
    """Sums of 2^31, of 0 and of one word; shares of more than one, below none, and beside ties."""
    for word in (LOW, HIGH, 0, 1, 2047, 2048, -2048, -2049, 4096, 1 << 30):
        for blocks, tail in ((LONGEST, config.lanes), (LONGEST, 1), (1, config.lanes), (1, 1)):
            memories = _memories(config, -128)
            memories.tab[1] = word
            yield _one_pixel(blocks, tail) | {"lut": 1}, memories
    for first, other in ((HIGH, LOW), (LOW, HIGH), (HIGH, -1), (1 << 30, 1 - (1 << 30))):
        memories = _memories(config, -128)
        memories.act[0, 0] = 127  # the maximum is the first element, in the first block
        memories.tab[0], memories.tab[0, 0] = other, first
        yield _one_pixel(3, config.lanes) | {"lut": 0}, memories
        # 4095 of the lowest words and one of the highest: a sum just above 2^31, modulo 2^32.
        yield _one_pixel(LONGEST, config.lanes) | {"lut": 0}, memories
        yield _one_pixel(1, 2) | {"lut": 0}, memories
    rng = np.random.default_rng(config.lanes)
    for table in (exact_table(rng), coarse_table(rng)):
        memories = _memories(config, 0)
        memories.tab[0] = table
        memories.act[:PAIRS] = operands(rng, config)[:PAIRS]
        pixels = {"out_w": PAIRS, "in_col_stride": 1, "dst_col_stride": 1, "lut": 0}
        yield _one_pixel(1, 3) | pixels, memories
    memories = _memories(config, 127)
    memories.act[0], memories.act[0, 0] = -128, -127  # pad lanes hold more than the maximum
    memories.act[0, 2:] = 127
    memories.tab[0] = np.arange(256) << 22
    yield _one_pixel(1, 2) | {"lut": 0}, memories


def layernorm_edges(config: Config) -> Iterator[tuple[Values, Memories]]:
    """The largest sums, distances and deviations, and gains and offsets at both ends."""
    ends = {"par_base": 0, "par_stride": 0, "clamp_min": -128, "clamp_max": 127}
    for usual, other in ((-128, 127), (127, -128), (0, 1), (-128, -128), (127, 127)):
        for gain, offset in ((LOW, LOW), (HIGH, HIGH), (LOW, HIGH), (1 << 18, 0), (0, 1 << 15)):
            memories = _memories(config, usual)
            memories.act[LONGEST - 1, config.lanes - 1] = other
            memories.par[0], memories.par[1] = gain, offset
            bits = 0 if gain != LOW else 24
            fields = {"gain_bits": bits, "zero_point": 0 if offset else 5, "epsilon": 0} | ends
            whole = _one_pixel(LONGEST, config.lanes) | fields
            yield whole | {"epsilon_shift": 0}, memories
            yield whole | {"epsilon": (1 << 32) - 1, "epsilon_shift": 15}, memories
            yield whole | {"epsilon": 1, "epsilon_shift": 0, "blocks": 1, "tail": 1}, memories
