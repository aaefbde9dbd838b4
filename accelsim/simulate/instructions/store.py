"""store: activation rows to DRAM beats."""

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
    dram_dimensions,
    dram_rows,
    dram_touch,
    local_rows,
    local_touch,
)
from accelsim.spec.config import Config
from accelsim.spec.digest import DRAM_BASE_SHIFT


def execute(memory: Memory, v: Fields, rounding: Rounding) -> Saturated:
    """Copy."""
    dram_rows(memory, v)[...] = local_rows(memory, v)
    return UNCLAMPED


def touches(v: Fields, config: Config) -> tuple[Touch, ...]:
    """Activation rows and DRAM beats."""
    return local_touch(v, write=False), dram_touch(v, write=True)


def written(memory: Memory, v: Fields) -> Written:
    """DRAM beats behind the base register."""
    beats = rows_of(v["dram_offset"], dram_dimensions(v))
    return beats, v["base_reg"] << DRAM_BASE_SHIFT, dram_rows(memory, v)


BEHAVIOUR = Behaviour(execute, touches, written)
