"""Random legal programs in which all four engines work at once and never meet.

What comes in: a generator and a configuration. What goes out: launches. A program is a list of
phases with a barrier of tokens between them; in one phase each engine has its own activation bank,
its own half of weight, parameter and table memory and its own accumulator bank, and the roles
rotate. The lower half of parameter memory holds multipliers only, the upper one pairs of a small
bias and a multiplier, with which results depend on every operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Launch
from accelsim.programs.building import REGION_BEATS, Step
from accelsim.programs.building import launch as launch_steps
from accelsim.programs.drawing import parameter_row
from accelsim.programs.transfers import random_fields
from accelsim.programs.vector_fields import MAKERS, random_parameters, small, strides
from accelsim.simulate.transfer import LOCAL
from accelsim.spec.config import ENGINES, LOAD, MATRIX, PAR_BEATS, STORE, VECTOR, Config
from accelsim.spec.encoding import check, encode, extent_end
from accelsim.spec.isa import BY_NAME

Rng = np.random.Generator
Values = dict[str, int]
Rows = tuple[int, int]  # first row and the one after the last
PARAMETER_REGION, PAIR_REGION, TARGET_REGIONS = 1, 6, (3, 4)
PAIR_BEATS = 2 * PAR_BEATS
PAIR_SCALES = (-15, -3)  # binary logarithms
PHASES = 6


@dataclass(frozen=True, slots=True)
class Roles:
    """Where the extents of one phase may lie, by memory and access."""

    load: dict[str, Rows]
    matrix: dict[str, Rows]
    vector: dict[str, Rows]
    store: dict[str, Rows]
    matrix_bank: int


def roles(config: Config, phase: int) -> Roles:
    """The places of a phase."""
    size = config.act_bank_rows
    bank = [((phase + i) % 4 * size, ((phase + i) % 4 + 1) * size) for i in range(4)]
    low, high = bank[2]
    odd = phase % 2

    def half(rows: int, upper: int) -> Rows:
        return (upper * (rows // 2), (upper + 1) * (rows // 2))

    return Roles(
        load={"act": bank[0], "wgt": half(config.wgt_rows, odd),
              "par": half(config.par_beats, odd), "tab": half(config.tab_beats, odd)},
        matrix={"act": bank[1], "wgt": half(config.wgt_rows, 1 - odd), "acc": (0, config.acc_rows)},
        vector={"act read": ((low + high) // 2, high), "act write": (low, (low + high) // 2),
                "par": half(config.par_rows, 1 - odd), "acc": (0, config.acc_rows)},
        store={"act": bank[3]},
        matrix_bank=odd,
    )  # fmt: skip


def fits(name: str, values: Values, places: dict[str, Rows], config: Config) -> bool:
    """Whether every on-chip extent lies where the phase wants it."""
    for extent in BY_NAME[name].extents:
        memory = extent.memory
        if memory == "dram":
            if extent_end(extent, values, config) > REGION_BEATS:
                return False
            continue
        if memory == "local":
            memory = LOCAL[values["memory"]]
        low, high = places.get(memory) or places[f"{memory} {extent.access}"]
        if values[extent.base] < low or extent_end(extent, values, config) > high:
            return False
    return check(encode(name, values, config), config) is None


def random_conv(rng: Rng, config: Config) -> Values:
    """A CONV that is small enough for the weights and accumulators of edge8."""
    return {
        **window(rng, config),
        "kernel_w": small(rng, 3),
        "in_blocks": small(rng, 3),
        "out_blocks": small(rng, 3),
        "in_tail": int(rng.integers(1, config.lanes + 1)),
        "out_tail": int(rng.integers(1, config.lanes + 1)),
        "transposed": int(rng.integers(2)),
    }


def random_dwconv(rng: Rng, config: Config) -> Values:
    """A DWCONV, wide or not."""
    return {
        **window(rng, config),
        "groups_w": small(rng, 3),
        "wide": int(rng.integers(2)),
        "blocks": small(rng, 3),
        "tail": int(rng.integers(1, config.lanes + 1)),
    }


def window(rng: Rng, config: Config) -> Values:
    """Fields that CONV and DWCONV share."""
    pair = ("h", "w")
    return {
        **strides(rng, "in", config.act_bank_rows // 2),
        **{f"in_{x}": int(rng.integers(1, 7)) for x in pair},
        **{f"origin_{x}": int(rng.integers(-2, 2)) for x in pair},
        **{f"{n}_{x}": small(rng, 3) for n in ("stride", "dilation") for x in pair},
        **{f"out_{x}": small(rng, 6) for x in pair},
        "kernel_h": small(rng, 3),
        "accumulate": int(rng.integers(2)),
        "input_zero_point": int(rng.integers(-128, 128)),
        "weight_zero_point": int(rng.integers(-128, 128)),
    }


def moved(rng: Rng, values: Values, base: str, places: Rows, span: int) -> Values:
    """`values` with a base somewhere in its place."""
    low, high = places
    return {**values, base: int(rng.integers(low, max(low + 1, low + min(span, high - low))))}


def load(rng: Rng, config: Config, place: Roles) -> tuple[str, Values]:
    """A LOAD to distinct rows: parameters only from the region that holds legal multipliers."""
    values = random_fields(rng, config, 90)
    values["local_stride0"] = int(rng.integers(1, 3))
    values["local_stride1"] = values["count0"] * values["local_stride0"]
    values["local_stride2"] = values["count1"] * values["local_stride1"] + int(rng.integers(3))
    values["memory"] = int(rng.integers(len(LOCAL)))
    values["dram_offset"] = int(rng.integers(0, REGION_BEATS // 2))
    values["base_reg"] = PARAMETER_REGION if values["memory"] == 2 else int(rng.choice([2, 5]))
    places = place.load[LOCAL[values["memory"]]]
    values = moved(rng, values, "local_base", places, 64)
    return "load", _in_pairs(values) if values["memory"] == 2 and places[0] else values


def _in_pairs(values: Values) -> Values:
    """A load of whole pairs of parameter rows to where a pair belongs."""
    beats = PAIR_BEATS
    count = -(-values["count0"] // beats) * beats
    aligned = ("dram_offset", "local_base", "dram_stride1", "dram_stride2")
    return {
        **values,
        **{name: values[name] // beats * beats for name in aligned},
        "base_reg": PAIR_REGION,
        "count0": count,
        "local_stride0": 1,
        "local_stride1": count,
        "local_stride2": count * values["count1"],
    }


def store(rng: Rng, config: Config, place: Roles) -> tuple[str, Values]:
    """A STORE whose beats all have their own place."""
    values = random_fields(rng, config, 90)
    values["dram_offset"] = int(rng.integers(0, REGION_BEATS // 2))
    values["base_reg"] = int(rng.choice(TARGET_REGIONS))
    values["dram_stride1"] = values["count0"] + int(rng.integers(0, 4))
    values["dram_stride2"] = values["count1"] * values["dram_stride1"] + int(rng.integers(0, 9))
    return "store", moved(rng, values, "local_base", place.store["act"], 64)


def matrix(rng: Rng, config: Config, place: Roles) -> tuple[str, Values]:
    """A CONV or DWCONV."""
    name = str(rng.choice(["conv", "dwconv"]))
    values = (random_conv if name == "conv" else random_dwconv)(rng, config)
    values = moved(rng, values, "in_base", place.matrix["act"], 32)
    values = moved(rng, values, "wgt_base", place.matrix["wgt"], 32)
    values["acc_base"] = int(rng.integers(0, config.acc_rows // 2))
    return name, {**values, "acc_bank": place.matrix_bank}


def vector(rng: Rng, config: Config, place: Roles) -> tuple[str, Values]:
    """An instruction of the vector engine whose destination rows are all different."""
    name = str(rng.choice([*MAKERS, "add", "binary", "binary"]))
    values = MAKERS[name](rng, config)
    values["dst_col_stride"] = 1 + int(rng.integers(2))
    values["dst_row_stride"] = values["out_w"] * values["dst_col_stride"]
    values["dst_block_stride"] = values["out_h"] * values["dst_row_stride"]
    values = moved(rng, values, "dst_base", place.vector["act write"], 32)
    if "par_base" in values:
        values = moved(rng, values, "par_base", place.vector["par"], 4)
        if place.vector["par"][0]:
            values = _of_pairs(name, values)
    if "lut" in values:
        values["lut"] = 1 - place.matrix_bank  # the table that no load fills in this phase
    for base in ("in_base", "a_base", "b_base"):
        if base in values:
            values = moved(rng, values, base, place.vector["act read"], 32)
    if name == "drain":
        values["acc_bank"] = 1 - place.matrix_bank
    return name, values


def _of_pairs(name: str, values: Values) -> Values:
    """Where parameters are pairs of bias and multiplier, mode fp32 takes a pair a block."""
    if name == "add":
        return {**values, "mode": max(1, values["mode"])}
    even = {name: values[name] & ~1 for name in ("par_base", "par_stride")}
    plain = {"mode": 0} if values.get("mode") in (1, 2, 3) else {}  # of which results depend more
    return {**values, **even, **plain}


MAKE: dict[int, Callable[[Rng, Config, Roles], tuple[str, Values]]] = {
    LOAD: load,
    MATRIX: matrix,
    VECTOR: vector,
    STORE: store,
}


def one(rng: Rng, config: Config, engine: int, place: Roles) -> tuple[str, Values]:
    """One instruction of an engine that fits its place; the first one drawn says which."""
    places = (place.load, place.matrix, place.vector, place.store)[engine]
    wanted, values = MAKE[engine](rng, config, place)
    name = wanted
    while name != wanted or not fits(name, values, places, config):
        name, values = MAKE[engine](rng, config, place)
    return name, values


def filled(config: Config) -> list[Step]:
    """Instructions after which no row is undefined; they give a token of load and of matrix."""
    bank, lanes, others = config.act_bank_rows, config.lanes, (MATRIX, VECTOR, STORE)
    rows = {"local_stride0": 1, "local_stride1": bank}
    ones = {"in_h": 1, "in_w": config.acc_rows, "in_col_stride": 1, "out_w": config.acc_rows}
    tails = {"in_tail": lanes, "out_tail": lanes}
    return [
        ("load", {"base_reg": 2, "count0": bank, "count1": config.act_banks, "dram_stride1": 999}
         | rows),
        ("load", {"memory": 1, "base_reg": 2, "count0": config.wgt_rows} | rows),
        ("load", {"memory": 2, "base_reg": PARAMETER_REGION, "count0": config.par_beats // 2}
         | rows),
        ("load", {"memory": 2, "base_reg": PAIR_REGION, "count0": config.par_beats // 2,
                  "local_base": config.par_beats // 2} | rows),
        ("load", {"memory": 3, "base_reg": 2, "count0": config.tab_beats,
                  "give": bits(*others)} | rows),
        ("conv", {"take": bits(LOAD), "acc_bank": 0, **ones, **tails}),
        ("conv", {"give": bits(LOAD, VECTOR, STORE), "acc_bank": 1, **ones, **tails}),
    ]  # fmt: skip


def bits(*engines: int) -> int:
    """A `take` or `give` mask."""
    return sum(1 << e for e in engines)


def barrier(phase: int, engine: int) -> tuple[int, int]:
    """What the first instruction of a phase takes and the last gives."""
    others = bits(*(e for e in range(len(ENGINES)) if e != engine))
    first = {LOAD: bits(MATRIX), MATRIX: 0, VECTOR: bits(LOAD, MATRIX), STORE: bits(LOAD, MATRIX)}
    take = others if phase else first[engine]
    return take, others if phase < PHASES - 1 else 0


def random_steps(rng: Rng, config: Config) -> list[Step]:
    """A whole program."""
    steps = filled(config)
    for phase in range(PHASES):
        place = roles(config, phase)
        queues: list[list[Step]] = []
        for engine in range(len(ENGINES)):
            take, give = barrier(phase, engine)
            made = [one(rng, config, engine, place) for _ in range(int(rng.integers(1, 5)))]
            made[0][1]["take"] = take
            made[-1][1]["give"] = give
            queues.append(list(made))
        while any(queues):
            queue = queues[int(rng.choice([i for i, q in enumerate(queues) if q]))]
            steps.append(queue.pop(0))
    return [*steps, ("end", {})]


def random_launch(rng: Rng, config: Config) -> Launch:
    """A launch over random memory."""
    launch = launch_steps(config, random_steps(rng, config), int(rng.integers(1 << 30)))
    dram = dict(launch.dram)
    repeats = -(-REGION_BEATS // config.par_beats)
    words = np.concatenate([random_parameters(rng, config) for _ in range(repeats)])
    dram[PARAMETER_REGION] = words.view(np.uint8).ravel()[: REGION_BEATS * config.lanes]
    pairs = [
        parameter_row(rng, kind, scale, config.lanes)
        for scale in 2.0 ** rng.uniform(*PAIR_SCALES, 64)
        for kind in "if"
    ]
    pair_bytes = np.concatenate(pairs).view(np.uint8)
    dram[PAIR_REGION] = np.resize(pair_bytes, REGION_BEATS * config.lanes)
    return Launch(launch.program, dram, cycle_limit=launch.cycle_limit)
