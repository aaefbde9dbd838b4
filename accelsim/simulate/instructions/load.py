"""load: DRAM beats to on-chip rows."""

from __future__ import annotations

from accelsim.simulate.instructions.behaviour import (
    UNCLAMPED,
    Behaviour,
    Fields,
    Saturated,
    Written,
)
from accelsim.simulate.memory import Memory
from accelsim.simulate.rows import Touch, rows_of
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.transfer import (
    dram_rows,
    dram_touch,
    local_dimensions,
    local_rows,
    local_touch,
)
from accelsim.spec.config import Config


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Copy."""
    local_rows(memory, v)[...] = dram_rows(memory, v)
    return UNCLAMPED


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """DRAM beats and on-chip rows."""
    return dram_touch(v, write=False), local_touch(v, write=True)


def written(memory: Memory, v: Fields) -> Written:
    """On-chip rows, in beats where the memory counts in beats."""
    return rows_of(v["local_base"], local_dimensions(v)), 0, local_rows(memory, v)


BEHAVIOUR = Behaviour(execute, touches, written)
