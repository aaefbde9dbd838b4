"""Instructions whose extents end exactly at a limit, and one row or beat beyond it.

What comes in: a generator and a configuration. What goes out: single instructions, one
pair for each extent that the instruction table has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelsim.programs.building import REGION_BEATS, Step
from accelsim.programs.drawing import DRAW, legal
from accelsim.simulate.transfer import LOCAL
from accelsim.spec.config import Config
from accelsim.spec.encoding import check, encode, extent_end, extent_limit
from accelsim.spec.isa import BY_NAME
from accelsim.spec.registers import ErrorCode

TRIES = 200


def at_limits(rng: np.random.Generator, config: Config) -> Iterator[tuple[str, Step]]:
    """(what it is, step) for every extent: legal at its limit, illegal beyond it."""
    for name in ("load", "store"):
        for _ in range(4):
            drawn = legal(rng, name, config)
            drawn.pop("opcode")
            most = {"dram_offset": REGION_BEATS, "local_base": config.act_rows}
            alone = {"take": 0, "give": 0, "base_reg": int(rng.integers(1, 8))}
            yield f"{name} beyond both limits", (name, {**drawn, **alone, **most})
    for name in DRAW:
        for slot, extent in enumerate(BY_NAME[name].extents):
            memories = range(len(LOCAL)) if extent.memory == "local" and name == "load" else (None,)
            for memory in memories:
                for beyond in (0, 1):
                    values = _moved(rng, config, name, slot, memory, beyond)
                    if values is not None:
                        where = "beyond" if beyond else "at"
                        yield f"{name} {where} the limit of extent {slot}", (name, values)


def _moved(
    rng: np.random.Generator,
    config: Config,
    name: str,
    slot: int,
    memory: int | None,
    beyond: int,
) -> dict[str, int] | None:
    extent = BY_NAME[name].extents[slot]
    sizes = [REGION_BEATS * config.lanes] * 8
    wanted = (ErrorCode.DRAM_EXTENT if extent.memory == "dram" else ErrorCode.EXTENT, ())
    for _ in range(TRIES):
        values = legal(rng, name, config)
        values.pop("opcode")
        values |= {"take": 0, "give": 0} | ({} if memory is None else {"memory": memory})
        if extent.memory == "dram":
            values["base_reg"] = int(rng.integers(1, 8))
        limit = extent_limit(extent, values, config)
        limit = REGION_BEATS if limit is None else limit
        values[extent.base] += limit + beyond - extent_end(extent, values, config)
        if values[extent.base] < 0:
            continue
        violation = check(encode(name, values, config), config, region_bytes=sizes)
        if (violation is None) != bool(beyond) and (
            violation is None or violation.code == wanted[0]
        ):
            return values
    return None
