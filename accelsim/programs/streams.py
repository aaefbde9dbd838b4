"""Random programs of many instructions: some free of races and defined, some that overlap freely.

What comes in: a generator and a configuration. What goes out: steps for `building.launch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from accelsim.errors import ProgramError
from accelsim.programs.building import REGION_BEATS, Step
from accelsim.programs.drawing import DRAW, legal
from accelsim.programs.words import TABLE_BEAT, words_load, words_region
from accelsim.simulate.decoded import make_op
from accelsim.simulate.footprint import footprint
from accelsim.simulate.hazards import check_inside
from accelsim.spec.config import ENGINES, VECTOR, Config
from accelsim.spec.encoding import check, decode, encode, extent_end
from accelsim.spec.isa import BY_NAME

FLOATS = 1  # base register behind which every word is a positive float
WORDS = 7  # base register behind which words suit each mode, and tables suit softmax
NAMES = [*DRAW, *("add", "binary") * 2, *("load", "store") * 3]  # many forms, and bus errors


def regions(seed: int, lanes: int) -> dict[int, np.ndarray]:
    """DRAM behind base registers 1 to 7; behind FLOATS words that are multipliers and biases.

    Behind WORDS are rows that suit each mode, see `accelsim.programs.words`.
    """
    rng = np.random.default_rng(seed)
    dram = {b: rng.integers(0, 256, REGION_BEATS * lanes, dtype=np.uint8) for b in range(1, 8)}
    words = REGION_BEATS * lanes // 4
    tiny = np.exp(rng.uniform(np.log(2e-10), np.log(1e-6), words))
    plain = np.exp(rng.uniform(np.log(1e-3), np.log(3), words))
    floats = np.where(rng.random(words) < 0.5, tiny, plain).astype(np.float32)
    dram[FLOATS] = floats.view(np.uint8).copy()
    dram[WORDS] = words_region(rng, lanes)
    return dram


def accepted(name: str, values: dict[str, int], config: Config) -> bool:
    """Whether dispatch and the checks within an instruction let it pass."""
    words = encode(name, values, config)
    if check(words, config, region_bytes=[REGION_BEATS * config.lanes] * 8):
        return False
    op = make_op(0, name, decode(words)[1], config)
    try:
        check_inside(op, footprint(op, config))
    except ProgramError:
        return False
    return True


def fill(config: Config) -> list[Step]:
    """Loads and convs that define every on-chip row."""
    steps: list[Step] = []
    sizes = (config.act_rows, config.wgt_rows, config.par_beats, config.tab_beats)
    for memory, rows in enumerate(sizes):
        for at in range(0, rows, 4000):
            base = FLOATS if memory == 2 else 2 + len(steps) % 4
            place = {"memory": memory, "base_reg": base, "dram_offset": 37 * len(steps)}
            count = min(4000, rows - at)
            steps.append(("load", {**place, "count0": count, "local_base": at, "local_stride0": 1}))
    half = {"count0": config.tab_beats // 2, "local_stride0": 1}
    steps.append(("load", {"memory": 3, "base_reg": WORDS, "dram_offset": TABLE_BEAT, **half}))
    width = min(256, config.acc_rows)
    for bank in (0, 1):
        window = {"in_h": 1, "in_w": width, "in_col_stride": 1, "out_w": width}
        tails = {"in_tail": config.lanes, "out_tail": config.lanes}
        blocks = {"out_blocks": config.acc_rows // width, "acc_bank": bank}
        steps.append(("conv", {**window, **tails, **blocks, "input_zero_point": 3 - 9 * bank}))
    return steps


def draw(rng: np.random.Generator, config: Config) -> Step:
    """One random instruction that a program of `serial` may hold."""
    while True:
        name = str(rng.choice(NAMES))
        values = legal(rng, name, config)
        values.pop("opcode")
        if name == "load":
            values["base_reg"] = FLOATS if values["memory"] == 2 else int(rng.integers(2, 6))
        if name == "store":
            values["base_reg"] = int(rng.integers(2, WORDS))
            values["local_base"] += int(rng.integers(0, 300))
        if accepted(name, values, config):
            return name, values


def serial(rng: np.random.Generator, config: Config, count: int) -> list[Step]:
    """A defined program whose tokens put every instruction after the one before."""
    steps = fill(config)
    for _ in range(count):
        steps += with_words(rng, draw(rng, config), config)
    return chained(steps)


def with_words(rng: np.random.Generator, step: Step, config: Config) -> list[Step]:
    """The step, behind a load of words that suit it and before one of floats again.

    In mode fp32 it may take what is there, of which results depend less on the other operands.
    """
    load = words_load(rng, *step)
    if load is None or (not step[1].get("mode", 1) and rng.random() < 0.3):
        return [step]
    return [
        ("load", {**load, "base_reg": WORDS}),
        step,
        ("load", {**load, "base_reg": FLOATS, "dram_offset": int(rng.integers(4000))}),
    ]


def chained(given: Sequence[Step]) -> list[Step]:
    """The steps with tokens that put each after the one before, and END."""
    steps = [(name, {**values, "take": 0, "give": 0}) for name, values in given]
    for (before, giver), (after, taker) in pairwise(steps):
        first, second = BY_NAME[before].engine, BY_NAME[after].engine
        if first is not None and second is not None and first != second:
            giver["give"] |= 1 << second
            taker["take"] |= 1 << first
    return [*steps, ("end", {})]


LOOPS = (
    *("out_h", "out_w", "blocks", "kernel_h", "kernel_w", "in_blocks", "out_blocks", "groups_w"),
    *("count0", "count1", "count2"),
)


def corners(rng: np.random.Generator, config: Config, count: int) -> list[Step]:
    """A defined program like `serial` in whose instructions most loops run once."""
    steps = fill(config)
    wanted = len(steps) + count
    while len(steps) < wanted:
        name, given = draw(rng, config)
        once = {loop: 1 for loop in LOOPS if loop in given and rng.random() < 0.7}
        values = {**given, **once}
        if accepted(name, values, config):
            steps += with_words(rng, (name, values), config)
    return chained(steps)


def apart(name: str, v: dict[str, int], config: Config) -> bool:
    """Move an instruction to banks that only its engine uses; whether it fits there."""
    bank = config.act_bank_rows
    if name == "store":
        v["local_base"] += 3 * bank
    if name in ("load", "store"):
        v["base_reg"] = max(1, v["base_reg"])
    if name in ("conv", "dwconv", "drain"):
        v["acc_bank"] = int(name == "drain")
    vector = BY_NAME[name].engine == VECTOR
    for base in ("in_base", "a_base", "b_base") if vector else ():
        if base in v:
            v[base] += bank
    if "dst_base" in v and config.lanes > 8:
        v["dst_base"] += 2 * bank
    limit = 3 if vector else {"load": 1, "conv": 1, "dwconv": 1, "store": 4}[name]
    for extent in BY_NAME[name].extents:
        local = extent.memory == "local" and v["memory"] == 0
        read = extent.memory == "act" and extent.access == "read"
        if (local or read) and extent_end(extent, v, config) > limit * bank:
            return False
    return check(encode(name, v, config), config) is None


def overlapping(rng: np.random.Generator, config: Config, count: int) -> list[Step]:
    """A program with random tokens whose engines never meet at a memory port.

    It has races and reads undefined rows: for cycles and errors, not for values.
    """
    steps: list[Step] = []
    pending = np.zeros((len(ENGINES), len(ENGINES)), int)
    while len(steps) < count:
        name = str(rng.choice(NAMES))
        v = legal(rng, name, config)
        v.pop("opcode")
        if not apart(name, v, config):
            continue
        engine = BY_NAME[name].engine
        v["take"] = v["give"] = 0
        for other in range(len(ENGINES)):
            if pending[other, engine] and rng.random() < 0.6:
                v["take"] |= 1 << other
                pending[other, engine] -= 1
            if other != engine and rng.random() < 0.25:
                v["give"] |= 1 << other
                pending[engine, other] += 1
        steps.append((name, v))
    return [*steps, ("end", {})]
