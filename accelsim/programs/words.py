"""Parameter words that suit each mode and tables of softmax, in a region of DRAM with fixed places.

What comes in: a generator, and instructions that need words. What goes out: the region, and the
fields of loads that bring rows of the right kind to where an instruction reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accelsim.programs.building import REGION_BEATS
from accelsim.programs.drawing import exponentials, parameter_kinds, parameter_row
from accelsim.spec.config import PAR_BEATS, TABLES

GAIN_BITS = 24  # at most
# Kinds of parameter rows, as `parameter_row` has them, and binary logarithms of their scales.
KINDS: dict[str, tuple[float, float]] = {
    "if": (-18, -2),
    "iMS": (-18, -2),
    "fff": (-2, 1),
    "mms": (0, 0),
    "MMMSSS": (-4, 0),
    "go": (0, GAIN_BITS),
}
SECTION_BEATS = 1152  # of each kind: a multiple of the beats of each
TABLE_BEAT = len(KINDS) * SECTION_BEATS
DIFFERENT = 16  # groups of rows in a section, of rising scales, repeated


def words_region(rng: np.random.Generator, lanes: int) -> NDArray[np.uint8]:
    """REGION_BEATS beats: a section of rows for each of KINDS, then tables of exponentials."""
    region = np.zeros(REGION_BEATS * lanes, np.uint8)
    for number, (kinds, (low, high)) in enumerate(KINDS.items()):
        rows = [
            parameter_row(rng, kind, 2.0 ** (low + (high - low) * group / DIFFERENT), lanes)
            for group in range(DIFFERENT)
            for kind in kinds
        ]
        data = np.concatenate(rows).view(np.uint8)
        first = number * SECTION_BEATS * lanes
        region[first : first + SECTION_BEATS * lanes] = np.resize(data, SECTION_BEATS * lanes)
    tables = np.concatenate([exponentials(rng) for _ in range(TABLES)]).view(np.uint8)
    region[TABLE_BEAT * lanes : TABLE_BEAT * lanes + len(tables)] = tables
    return region


def words_load(rng: np.random.Generator, name: str, v: Mapping[str, int]) -> dict[str, int] | None:
    """A load of the parameter rows of an instruction; None if it reads none."""
    kinds = parameter_kinds(name, dict(v))[0] if v.get("sum", 1) else ""
    if kinds not in KINDS:
        return None
    beats = PAR_BEATS * len(kinds)
    blocks = v["blocks"] if v["par_stride"] else 1
    first = int(rng.integers(SECTION_BEATS // beats - blocks - DIFFERENT))
    if "gain_bits" in v:  # the group whose gains are about 1
        first += v["gain_bits"] * DIFFERENT // GAIN_BITS - first % DIFFERENT
    return {
        "memory": 2,
        "dram_offset": list(KINDS).index(kinds) * SECTION_BEATS + first * beats,
        "dram_stride1": beats,
        "count0": beats,
        "count1": blocks,
        "local_base": PAR_BEATS * v["par_base"],
        "local_stride0": 1,
        "local_stride1": PAR_BEATS * v["par_stride"],
    }
