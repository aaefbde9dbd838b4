"""Programs made ready: decoded, checked, analysed, with their bursts, once for all launches.

What comes in: a program and what surrounds it (region sizes, presets, bus faults). What goes out:
`Prepared`. It knows nothing of data and time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelsim.artifacts import Program
from accelsim.simulate.bursts import BusFault, burst_beats, meets_fault
from accelsim.simulate.decoded import Decoded, decode_program
from accelsim.simulate.hazards import analyse
from accelsim.simulate.ordering import Order
from accelsim.simulate.timeline import Traffic
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.isa import INSTRUCTION_BYTES, PROGRAM_BASE

SEMAPHORES = len(ENGINES) ** 2
DMA = ("load", "store")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What of a program does not change from launch to launch."""

    decoded: Decoded
    traffic: Traffic


def decode_for(program: Program, config: Config, region_bytes: Sequence[int]) -> Decoded:
    """Decode a program against the eight region sizes."""
    return decode_program(
        program.words, config, program.opcode_mask, program.contract_hash, region_bytes
    )


def traffic_of(
    decoded: Decoded, config: Config, bases: Mapping[int, int], faults: Sequence[BusFault]
) -> Traffic:
    """Bursts of every load and store, and what the bus faults hit. `bases` are bus addresses."""
    lanes = config.lanes
    bursts = [
        burst_beats(op.values, lanes, bases.get(op.values["base_reg"], 0)) if op.name in DMA else []
        for op in decoded.ops
    ]
    failing = (
        op.index
        for op in decoded.ops
        if op.name in DMA and meets_fault(op.values, lanes, op.name == "store", faults)
    )
    fetches = (
        index
        for f in faults
        if f.base == PROGRAM_BASE and f.reads
        for index in range(f.first_byte // INSTRUCTION_BYTES, -(-f.end_byte // INSTRUCTION_BYTES))
    )
    return Traffic(bursts, frozenset(failing), frozenset(fetches))


def analyse_program(
    program: Program,
    config: Config,
    region_bytes: Sequence[int],
    presets: Sequence[int] = (0,) * SEMAPHORES,
) -> Order | None:
    """Static analysis of a program; None where dispatch would refuse it (RTL reports that).

    Raises ProgramError for races, undefined reads, shared ports, overlaps, deadlock and leftovers.
    """
    decoded = decode_for(program, config, region_bytes)
    if decoded.violation:
        return None
    return analyse(decoded.ops, config, presets, region_bytes, program.partial)
