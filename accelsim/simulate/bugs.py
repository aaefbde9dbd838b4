"""Planted bugs: named mutations of what instructions mean, for tests that must see a failure.

What comes in: decoded instructions and the name of a bug, `name` for every instruction that it
affects or `name@index` for one. What goes out: instructions that mean something else, or another
rounding. Off by default; the hot path does not know that this module exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelsim.errors import InputError
from accelsim.simulate.decoded import Op, engines_of
from accelsim.simulate.vector import Rounding
from accelsim.spec.arithmetic import FIXED_SHIFT_MAX, I64, add_fixed, saturate32
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.encoding import extent_end, extent_limit
from accelsim.spec.isa import BY_NAME

Values = dict[str, int]


@dataclass(frozen=True, slots=True)
class Bug:
    """One mutation: kind is address, sign, rounding, semaphore or count."""

    kind: str
    doc: str
    opcodes: tuple[str, ...]  # instructions that it affects
    change: Callable[[Values, Op, Config], Values]  # fields that differ

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


def _fewer(*names: str) -> Callable[[Values, Op, Config], Values]:
    """One less of the first count that is above one."""

    def change(v: Values, op: Op, config: Config) -> Values:
        return next(({name: v[name] - 1} for name in names if v[name] > 1), {})

    return change


def _same(v: Values, op: Op, config: Config) -> Values:
    return {}


VECTOR_OPS = ("drain", "pool", "add")
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
    "vector_rounding": Bug("rounding", "scaled values are cut off, not rounded", VECTOR_OPS, _same),
    "vector_address": Bug(
        "address", "results land one row further", VECTOR_OPS, _moved("dst_base")
    ),
    "drain_clamp": Bug("count", "drain clamps one step lower", ("drain",), _plus("clamp_max", -1)),
    "pool_sign": Bug("sign", "pool adds the zero point", ("pool",), _negated("input_zero_point")),
    "add_sign": Bug("sign", "add adds the second zero point", ("add",), _negated("b_zero_point")),
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


def _cut(scaled: Any) -> I64:
    return saturate32(np.trunc(np.nan_to_num(scaled.astype(np.float64))).astype(np.int64))


def _scale_cut(accumulator: Any, multiplier: Any) -> I64:
    return _cut(accumulator.astype(np.float32) * multiplier)


def _add_cut(a: Any, b: Any, a_scale: Any, b_scale: Any, inverse: Any) -> I64:
    total = a.astype(np.float32) * a_scale + b.astype(np.float32) * b_scale
    return _cut(total * inverse)


def _add_fixed_cut(a: Any, b: Any, a_multiplier: Any, b_multiplier: Any, shift: Any) -> I64:
    total = add_fixed(a, b, a_multiplier, b_multiplier, np.zeros_like(shift))
    whole: I64 = np.sign(total) * (np.abs(total) >> (shift & FIXED_SHIFT_MAX))
    return whole


def rounding(name: str | None, index: int) -> Rounding:
    """How instruction `index` rounds under a bug."""
    if name and name.partition("@")[0] == "vector_rounding" and find(name)[1] in (None, index):
        return Rounding(_scale_cut, _add_cut, _add_fixed_cut)
    return Rounding()
