"""Planted bugs: named mutations of what instructions mean, for tests that must see a failure.

What comes in: decoded instructions and the name of a bug, `name` for every instruction that it
affects or `name@index` for one. What goes out: instructions that mean something else, or another
rounding. Off by default; the hot path does not know that this module exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from accelsim.errors import InputError
from accelsim.simulate.decoded import Op, engines_of
from accelsim.simulate.scaling import Rounding
from accelsim.simulate.wrong_arithmetic import CUT, SHIFTED
from accelsim.spec.arithmetic import BINARY_KINDS, MODES
from accelsim.spec.config import ENGINES, VECTOR, Config
from accelsim.spec.encoding import extent_end, extent_limit
from accelsim.spec.isa import BY_NAME, INSTRUCTIONS

Values = dict[str, int]


@dataclass(frozen=True, slots=True)
class Bug:
    """One mutation: kind is address, sign, rounding, semaphore, count, table or operation."""

    kind: str
    doc: str
    opcodes: tuple[str, ...]  # instructions that it affects
    change: Callable[[Values, Op, Config], Values]  # fields that differ
    rounding: Rounding | None = None  # another arithmetic

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that it affects."""
        numbers = {BY_NAME[name].engine for name in self.opcodes}
        return tuple(ENGINES[n] for n in sorted(n for n in numbers if n is not None))


def _moved(field: str) -> Callable[[Values, Op, Config], Values]:
    """The next row where that lies within the memory, else the one before."""

    def change(v: Values, op: Op, config: Config) -> Values:
        moved = {**v, field: v[field] + 1}
        for extent in BY_NAME[op.name].extents:
            if extent.base == field:
                limit = extent_limit(extent, moved, config)
                if limit is not None and extent_end(extent, moved, config) > limit:
                    return {field: max(0, v[field] - 1)}
        return {field: v[field] + 1}

    return change


def _earlier(field: str) -> Callable[[Values, Op, Config], Values]:
    return lambda v, op, config: {field: max(0, v[field] - 1)}


def _negated(field: str) -> Callable[[Values, Op, Config], Values]:
    return lambda v, op, config: {field: -v[field]}


def _plus(field: str, step: int) -> Callable[[Values, Op, Config], Values]:
    return lambda v, op, config: {field: v[field] + step}


def _toggled(field: str) -> Callable[[Values, Op, Config], Values]:
    return lambda v, op, config: {field: v[field] ^ 1}


def _next(field: str, first: int, end: int) -> Callable[[Values, Op, Config], Values]:
    """The next value from `first` on, the first one after the last; values before it stay."""

    def change(v: Values, op: Op, config: Config) -> Values:
        after = v[field] + 1 if v[field] + 1 < end else first
        return {field: after} if v[field] >= first else {}

    return change


def _fewer(*names: str) -> Callable[[Values, Op, Config], Values]:
    """One less of the first count that is above one."""

    def change(v: Values, op: Op, config: Config) -> Values:
        return next(({name: v[name] - 1} for name in names if v[name] > 1), {})

    return change


def _same(v: Values, op: Op, config: Config) -> Values:
    return {}


VECTOR_OPS = tuple(i.name for i in INSTRUCTIONS if i.engine == VECTOR)
SCALED_OPS = ("drain", "pool", "add", "binary")
COUNTS = ("count0", "count1", "count2")
BUGS: dict[str, Bug] = {
    "load_address": Bug("address", "load writes one row further", ("load",), _moved("local_base")),
    "load_count": Bug("count", "load leaves the last beats out", ("load",), _fewer(*COUNTS)),
    "conv_address": Bug(
        "address", "conv reads one input column on", ("conv",), _plus("origin_w", 1)
    ),
    "conv_sign": Bug(
        "sign", "conv adds the input zero point", ("conv",), _negated("input_zero_point")
    ),
    "conv_count": Bug(
        "count", "conv leaves the last input lane out", ("conv",), _fewer("in_tail", "in_blocks")
    ),
    "dwconv_sign": Bug(
        "sign", "dwconv adds the input zero point", ("dwconv",), _negated("input_zero_point")
    ),
    "dwconv_address": Bug(
        "address", "dwconv reads weights one row on", ("dwconv",), _moved("wgt_base")
    ),
    "matrix_give": Bug(
        "semaphore", "the matrix engine gives no tokens", ("conv", "dwconv"), _plus("give", 0)
    ),
    "vector_take": Bug("semaphore", "the vector engine takes no tokens", VECTOR_OPS, _same),
    "vector_rounding": Bug(
        "rounding", "scaled values are cut off, not rounded", SCALED_OPS, _same, CUT
    ),
    "vector_address": Bug(
        "address", "results land one row further", VECTOR_OPS, _moved("dst_base")
    ),
    "drain_clamp": Bug("count", "drain clamps one step lower", ("drain",), _plus("clamp_max", -1)),
    "pool_sign": Bug("sign", "pool adds the zero point", ("pool",), _negated("input_zero_point")),
    "add_sign": Bug("sign", "add adds the second zero point", ("add",), _negated("b_zero_point")),
    "conv_transposed": Bug(
        "address", "conv takes weight tiles the other way round", ("conv",), _toggled("transposed")
    ),
    "add_subtract": Bug(
        "operation", "add subtracts, and the other way round", ("add",), _toggled("subtract")
    ),
    "binary_kind": Bug(
        "operation",
        "binary does the next operation",
        ("binary",),
        _next("kind", 0, len(BINARY_KINDS)),
    ),
    "binary_mode": Bug(
        "rounding",
        "binary rounds as the next integer mode",
        ("binary",),
        _next("mode", 1, len(MODES)),
    ),
    "binary_shift": Bug(
        "sign", "binary shifts the other way in integer modes", ("binary",), _same, SHIFTED
    ),
    "table_index": Bug("table", "the other table is read", ("lookup", "softmax"), _toggled("lut")),
    "softmax_count": Bug(
        "count", "softmax leaves the last channel out", ("softmax",), _fewer("tail", "blocks")
    ),
    "layernorm_count": Bug(
        "count", "layernorm takes a gain for half of it", ("layernorm",), _plus("gain_bits", 1)
    ),
    "store_address": Bug(
        "address", "store writes one beat before", ("store",), _earlier("dram_offset")
    ),
    "store_count": Bug("count", "store leaves the last beats out", ("store",), _fewer(*COUNTS)),
}


def find(name: str) -> tuple[Bug, int | None]:
    """The bug and the index behind `@`. Raises InputError for an unknown name."""
    plain, _, at = name.partition("@")
    if plain not in BUGS or (at and not at.isdigit()):
        raise InputError(f"no planted bug is called {name!r}: use one of {', '.join(BUGS)}")
    return BUGS[plain], int(at) if at else None


def plant(ops: Sequence[Op], name: str, config: Config) -> tuple[Op, ...]:
    """The instructions with one bug in them; durations and tokens not named by it stay."""
    bug, at = find(name)
    plain = name.partition("@")[0]

    def changed(op: Op) -> Op:
        if op.name not in bug.opcodes or at not in (None, op.index):
            return op
        result = replace(op, values={**op.values, **bug.change(op.values, op, config)})
        if plain == "matrix_give":
            return replace(result, give=engines_of(0))
        if plain == "vector_take":
            return replace(result, take=engines_of(0))
        return result

    return tuple(changed(op) for op in ops)


def rounding(name: str | None, op: Op) -> Rounding:
    """How an instruction rounds under a bug."""
    if name:
        bug, at = find(name)
        if bug.rounding and op.name in bug.opcodes and at in (None, op.index):
            return bug.rounding
    return Rounding()
