"""Steps: an instruction with its values, and what it touches as the instruction table states it.

What comes in: an instruction's name and values. What goes out: an `artifacts.Step` whose accesses
are those of its extents, with the bank ports that they need. It must not know operators.
"""

from __future__ import annotations

from collections.abc import Mapping

from accelsim.artifacts import Access, Step
from accelsim.spec.config import PAR_BEATS, TABLES, Config
from accelsim.spec.encoding import extent_end
from accelsim.spec.isa import BY_NAME, Extent, Values

LOCAL = ("act", "wgt", "par", "table")


def make_step(
    config: Config,
    name: str,
    values: Mapping[str, int],
    layer: int,
    tile: int,
) -> Step:
    """A step with everything that it touches, in the units of `artifacts.Access`."""
    row = BY_NAME[name]
    full = {f.name: f.default for f in row.fields} | dict(values)
    accesses: list[Access] = []
    for extent in row.extents:
        accesses += _accesses(extent, full, config)
    if "lut" in full:
        beats = config.tab_beats // TABLES
        accesses.append(Access("table", full["lut"] * beats, (full["lut"] + 1) * beats, False))
    return Step(name, values, layer, tile, tuple(accesses))


def _accesses(extent: Extent, values: Values, config: Config) -> list[Access]:
    start, end = values[extent.base], extent_end(extent, values, config)
    write = extent.access == "write"
    match extent.memory:
        case "acc":
            # The matrix engine uses both ports of a bank, so a bank is never shared.
            return [Access(f"acc{values['acc_bank']}", 0, config.acc_rows, True)]
        case "dram":
            return [Access(f"dram{values['base_reg']}", start, end, write)]
        case "par":
            # A maximum reads no parameters.
            used = values.get("sum", 1)
            return [Access("par", start * PAR_BEATS, end * PAR_BEATS, False)] if used else []
        case "local":
            memory = LOCAL[values["memory"]]
        case _:
            memory = extent.memory
    found = [Access(memory, start, end, write)]
    if memory == "act":
        rows, kind = config.act_bank_rows, extent.access
        banks = range(start // rows, (end - 1) // rows + 1)
        found += [Access(f"act{bank}.{kind}", 0, 1, True) for bank in banks]
    return found
