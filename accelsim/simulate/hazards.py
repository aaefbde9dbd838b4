"""Static analysis: races, port sharing, undefined reads and overlaps, independent of data and time.

What comes in: decoded instructions, presets and DRAM sizes. What goes out: nothing, or a
ProgramError that names the instructions. A program is analysed once; launches skip it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ProgramError
from accelsim.simulate.decoded import Op
from accelsim.simulate.footprint import footprint, ports
from accelsim.simulate.ordering import COUNT, Order, order
from accelsim.simulate.rows import Rows, Touch
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.isa import PROGRAM_BASE

NAMES = {
    "act": "activation memory",
    "wgt": "weight memory",
    "par": "parameter memory (beats)",
    "tab": "table memory (beats)",
    "acc0": "accumulator bank 0",
    "acc1": "accumulator bank 1",
}


def analyse(
    ops: Sequence[Op],
    config: Config,
    presets: Sequence[int],
    region_bytes: Sequence[int],
    partial: bool = False,
) -> Order:
    """Check a program without running it. Raises ProgramError for the first mistake found."""
    found = order(ops, config.queue_depth, presets, partial)
    history = _History(ops, found, config, region_bytes)
    for index in found.sequence:
        op = ops[index]
        touches = footprint(op, config)
        check_inside(op, touches)
        history.check_defined(op, touches)
        history.check_order(op, touches)
        history.check_order(op, ports(op, touches, config))
    return found


def check_inside(op: Op, touches: Sequence[Touch]) -> None:
    """Destinations are distinct rows and not among the sources; the program is not written."""
    for touch in touches:
        if not touch.write:
            continue
        if not touch.distinct:
            raise ProgramError(
                f"{op} writes a row of {_name(touch.memory)} twice: its strides overlap"
            )
        if touch.memory == f"dram{PROGRAM_BASE}":
            raise ProgramError(f"{op} stores into the program, behind base register {PROGRAM_BASE}")
        if touch.memory != "act":
            continue
        for other in touches:
            if other.memory == "act" and not other.write:
                shared = _intersection(touch.rows, other.rows)
                if len(shared):
                    raise ProgramError(
                        f"{op} reads and writes {_ranges(shared)} of activation memory"
                    )


def _indices(rows: Rows) -> NDArray[np.int64]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _bounds(rows: Rows) -> tuple[int, int]:
    if isinstance(rows, slice):
        return rows.start, rows.stop - 1
    return int(rows.min()), int(rows.max())


def _intersection(a: Rows, b: Rows) -> NDArray[np.int64]:
    (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
    if a_high < b_low or b_high < a_low:
        return np.zeros(0, np.int64)
    return np.intersect1d(_indices(a), _indices(b))


def _name(memory: str) -> str:
    if memory.startswith("dram"):
        return f"DRAM (beats behind base register {memory[4:]})"
    return NAMES[memory]


def _ranges(rows: NDArray[np.int64]) -> str:
    """`rows 3-5, 9` of at most four ranges."""
    rows = np.unique(rows)
    breaks = np.flatnonzero(np.diff(rows) != 1)
    starts, ends = rows[np.r_[0, breaks + 1]], rows[np.r_[breaks, len(rows) - 1]]
    parts = [f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts[:4], ends[:4], strict=True)]
    more = f" and {len(starts) - 4} more ranges" if len(starts) > 4 else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {', '.join(parts)}{more}"


class _History:
    """The last access of each engine to each row, as ordinals, and which rows are defined."""

    def __init__(
        self, ops: Sequence[Op], found: Order, config: Config, region_bytes: Sequence[int]
    ) -> None:
        self.order = found
        self.sizes = {
            "act": config.act_rows,
            "wgt": config.wgt_rows,
            "par": config.par_beats,
            "tab": config.tab_beats,
            "acc0": config.acc_rows,
            "acc1": config.acc_rows,
            "act port": 2 * config.act_banks,
            "acc port": 4,
            **{f"dram{b}": -(-n // config.lanes) for b, n in enumerate(region_bytes)},
        }
        self.by_engine = [[op for op in ops if op.engine == e] for e in range(COUNT)]
        self.defined: dict[str, NDArray[np.bool_]] = {}
        # (memory, engine, write) → ordinal of the engine's last such access, by row
        self.last: dict[tuple[str, int, bool], NDArray[np.int32]] = {}

    def check_defined(self, op: Op, touches: Sequence[Touch]) -> None:
        """Every on-chip row that is read was written before; then mark what is written."""
        for touch in touches:
            if touch.memory.startswith("dram"):
                continue
            if touch.memory not in self.defined:
                self.defined[touch.memory] = np.zeros(self.sizes[touch.memory], np.bool_)
            defined = self.defined[touch.memory]
            if touch.write:
                defined[touch.rows] = True
            elif not defined[touch.rows].all():
                rows = _indices(touch.rows)
                missing = _ranges(rows[~defined[rows]])
                raise ProgramError(
                    f"{op} reads undefined {missing} of {_name(touch.memory)}: nothing wrote there"
                )

    def check_order(self, op: Op, touches: Sequence[Touch]) -> None:
        """No conflicting access of another engine is unordered; then remember these."""
        clock = self.order.clocks[op.index]
        for touch in touches:
            for engine in range(COUNT):
                if engine == op.engine:
                    continue
                for write in (True, False) if touch.write else (True,):
                    last = self.last.get((touch.memory, engine, write))
                    if last is not None and int(last[touch.rows].max()) > clock[engine]:
                        self._complain(op, touch, engine, write, last)
        for touch in touches:
            key = (touch.memory, op.engine, touch.write)
            if key not in self.last:
                self.last[key] = np.zeros(self.sizes[touch.memory], np.int32)
            self.last[key][touch.rows] = self.order.ordinals[op.index]

    def _complain(
        self, op: Op, touch: Touch, engine: int, write: bool, last: NDArray[np.int32]
    ) -> None:
        rows = _indices(touch.rows)
        late = last[rows] > self.order.clocks[op.index][engine]
        ordinal = int(last[rows][late].max())
        other = self.by_engine[engine][ordinal - 1]
        shared = rows[last[rows] == ordinal]
        uses = sorted(((other.index, other, write), (op.index, op, touch.write)))
        both = " and ".join(f"{o} on {ENGINES[o.engine]}" for _, o, _ in uses)
        if touch.memory.endswith("port"):
            bank, port = divmod(int(shared[0]), 2)
            kind = "an activation" if touch.memory.startswith("act") else "an accumulator"
            raise ProgramError(
                f"{both} share the {('read', 'write')[port]} port of {kind} bank, bank {bank}, and "
                "no semaphore orders them"
            )
        verbs = ["writes" if wrote else "reads" for _, _, wrote in uses]
        raise ProgramError(
            f"race: {both} are not ordered by semaphores; the first {verbs[0]} and the second "
            f"{verbs[1]} {_ranges(shared)} of {_name(touch.memory)}"
        )
