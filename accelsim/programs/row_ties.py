"""Softmaxes and layer normalizations whose every rounding decides a result.

What comes in: a generator and a configuration. What goes out: launches. A softmax here has rows of
three elements with distances 0, k and j, a pair of its own for each row, so that one table serves
rows with chosen words. Where a layer normalization has a gain of one step, it writes its normalized
elements themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch
from accelsim.programs.building import REGION_BEATS, Step
from accelsim.programs.building import launch as launch_steps
from accelsim.programs.streams import chained
from accelsim.spec.arithmetic import rounding_divide_by_power
from accelsim.spec.config import PAR_BEATS, TABLE_WORDS, TABLES, Config
from accelsim.spec.normalization import DEVIATION_BITS, SUM_SHIFT, softmax_reciprocal

I64 = NDArray[np.int64]
WORDS, OPERANDS = 1, 4  # base registers
PAIRS = 127  # rows of a softmax, with distances k = 1 to 127 and j = k + 127
NORM_PIXELS = 8
NORM_BLOCKS = 4
PLACES = 31 - 8  # of a share in 256ths, beyond the bits of a sum over one


def part(word: I64) -> I64:
    """What a word adds to the sum of its row."""
    return rounding_divide_by_power(word, np.array(SUM_SHIFT))


def exact_table(rng: np.random.Generator) -> I64:
    """Shares at a tie or one unit below: word k is fitted to a sum that word j completes.

    Sums are about 2^18 parts, so a share needs every bit of its sum's reciprocal.
    """
    table = np.zeros(TABLE_WORDS, np.int64)
    table[0] = 1 << SUM_SHIFT
    total = rng.integers(1 << 17, 1 << 19, PAIRS)
    scale, over = softmax_reciprocal(total)
    share = rng.integers(1, 255, PAIRS)
    wanted = (share << (over + PLACES)) - (np.int64(1) << (over + PLACES - 1))
    wanted -= rng.integers(0, 2, PAIRS)
    word = -(-((wanted << 31) - (1 << 30)) // scale)  # the least word whose product is `wanted`
    table[1 : PAIRS + 1] = word
    table[PAIRS + 1 : 2 * PAIRS + 1] = (total - 1 - part(word)) << SUM_SHIFT
    return table


def coarse_table(rng: np.random.Generator) -> I64:
    """Words beside ties of the sum's parts, in sums of so few parts that one more is seen."""
    parts = rng.integers(-4, 9, TABLE_WORDS)
    table = (parts << SUM_SHIFT) + (1 << (SUM_SHIFT - 1)) + rng.integers(-1, 2, TABLE_WORDS)
    tiny = rng.random(TABLE_WORDS) < 0.3
    table[tiny] = 8 * rng.integers(-3, 40, TABLE_WORDS)[tiny] + rng.integers(-1, 2)
    table[0] = rng.integers(10, 20) << SUM_SHIFT
    return table


def operands(rng: np.random.Generator, config: Config) -> NDArray[np.int8]:
    """(PAIRS + rows of the normalization, lanes): three elements of each softmax, then noise."""
    lanes = config.lanes
    rows = rng.integers(-128, 128, (REGION_BEATS, lanes))
    distance = np.arange(1, PAIRS + 1)
    rows[:PAIRS, :3] = 127 - np.stack([0 * distance, distance, distance + PAIRS], axis=1)
    for row in rows[:PAIRS]:
        row[:3] = rng.permutation(row[:3])
    rows[PAIRS:] >>= rng.integers(4, 8, (REGION_BEATS - PAIRS, 1))
    return rows.astype(np.int8)


def norm_fields(rng: np.random.Generator, kind: int) -> dict[str, int]:
    """Normalizations that write z itself (0), with a root of 2^23 (1), or of plain numbers (2)."""
    limits = {"clamp_min": -128, "clamp_max": 127}
    if kind == 2:
        return limits | {"gain_bits": int(rng.integers(25)), "epsilon": int(rng.integers(1 << 20))}
    epsilon = 1 << 31 if kind == 1 else int(rng.integers(1 << 24, 1 << 32))
    return limits | {"gain_bits": 0, "epsilon": epsilon, "epsilon_shift": 15}


def norm_words(rng: np.random.Generator, kind: int, gain_bits: int, lanes: int) -> I64:
    """(2, lanes): gains and offsets, small where z is to be seen."""
    if kind == 2:
        gain = rng.integers(-20, 21, lanes) << gain_bits
        return np.stack([gain, rng.integers(-(1 << 20), 1 << 20, lanes)])
    return np.stack([np.full(lanes, 1 << DEVIATION_BITS), np.zeros(lanes, np.int64)])


def row_ties(rng: np.random.Generator, config: Config) -> Launch:
    """A launch of two softmaxes and three layer normalizations."""
    lanes, bank = config.lanes, config.act_bank_rows
    softmax = {"out_h": 1, "out_w": PAIRS, "in_col_stride": 1, "blocks": 1, "tail": 3}
    softmax |= {"dst_base": bank, "dst_col_stride": 1}
    store = {"base_reg": 3, "local_base": bank, "local_stride0": 1}
    words = [np.stack([exact_table(rng), coarse_table(rng)]).ravel()]
    beats = TABLES * TABLE_WORDS * 4 // lanes
    place = {"base_reg": WORDS, "local_stride0": 1}
    steps: list[Step] = [
        ("load", {"base_reg": OPERANDS, "count0": PAIRS, "local_stride0": 1}),
        ("load", place | {"memory": 3, "count0": beats}),
    ]
    for lut in range(TABLES):
        target = store | {"count0": PAIRS, "dram_offset": lut * PAIRS}
        steps += [("softmax", softmax | {"lut": lut}), ("store", target)]
    rows = NORM_PIXELS * NORM_BLOCKS
    norm = {"out_h": 1, "out_w": NORM_PIXELS, "blocks": NORM_BLOCKS, "tail": lanes - 1}
    norm |= {"in_col_stride": NORM_BLOCKS, "in_block_stride": 1}
    norm |= {"dst_base": bank, "dst_col_stride": NORM_BLOCKS, "dst_block_stride": 1}
    for kind in range(3):
        fields = norm_fields(rng, kind)
        words.append(norm_words(rng, kind, fields["gain_bits"], lanes).ravel())
        source = {"base_reg": OPERANDS, "dram_offset": PAIRS + kind * rows, "count0": rows}
        parameters = place | {"memory": 2, "dram_offset": beats, "count0": 2 * PAR_BEATS}
        beats += 2 * PAR_BEATS
        steps += [
            ("load", source | {"local_stride0": 1}),
            ("load", parameters),
            ("layernorm", norm | fields),
            ("store", store | {"count0": rows, "dram_offset": 2 * PAIRS + kind * rows}),
        ]
    given = launch_steps(config, chained(steps), int(rng.integers(1 << 30)))
    loaded = np.concatenate(words).astype(np.int32).view(np.uint8)
    dram = dict(given.dram) | {
        OPERANDS: operands(rng, config).view(np.uint8).ravel(),
        WORDS: np.resize(loaded, REGION_BEATS * lanes),
    }
    return Launch(given.program, dram, cycle_limit=given.cycle_limit)
