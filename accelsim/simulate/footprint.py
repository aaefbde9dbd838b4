"""What an instruction touches: the rows of each memory that it reads and writes, and the ports.

What comes in: a decoded instruction and a configuration. What goes out: `Touch`es, exact to the
row. Parameter memory counts in beats, DRAM in beats from its base register. It knows no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.decoded import Op
from accelsim.simulate.transfer import COUNTS
from accelsim.simulate.windows import Taps, axes
from accelsim.spec.config import DEPTHWISE_TAPS, PAR_BEATS, Config

Rows = slice | NDArray[np.int64]
Dimensions = tuple[tuple[int, int], ...]  # (count, stride), outermost first
LOCAL = ("act", "wgt", "par")
# Ports: one read and one write port a bank, numbered 2·bank and 2·bank + 1.
PORTS = {"act": "act port", "acc0": "acc port", "acc1": "acc port"}


@dataclass(frozen=True, slots=True)
class Touch:
    """Rows of one memory that one instruction reads or writes."""

    memory: str  # "act", "wgt", "par", "acc0", "acc1", "dram0" … "dram7"
    rows: Rows
    write: bool
    distinct: bool = True  # no row twice


def merged(dimensions: Dimensions) -> Dimensions:
    """The same rows in the same order with as few dimensions as possible."""
    result: list[tuple[int, int]] = []
    for count, stride in dimensions:
        if count == 1:
            continue
        if result and result[-1][1] == count * stride:
            result[-1] = (result[-1][0] * count, stride)
        else:
            result.append((count, stride))
    return tuple(result)


def rows_of(base: int, dimensions: Dimensions) -> Rows:
    """All base + Σ index·stride: a slice where they are contiguous."""
    few = merged(dimensions)
    if not few or (len(few) == 1 and few[0][1] == 1):
        return slice(base, base + (few[0][0] if few else 1))
    total = np.array([base], dtype=np.int64)
    for count, stride in few:
        total = (total[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return total


def distinct(rows: Rows, dimensions: Dimensions) -> bool:
    """Whether no row occurs twice: quickly where strides nest, by sorting where they don't."""
    reach = 0
    for count, stride in sorted(merged(dimensions), key=lambda d: d[1]):
        if stride <= reach:
            return isinstance(rows, slice) or len(np.unique(rows)) == len(rows)
        reach += (count - 1) * stride
    return True


def footprint(op: Op, config: Config) -> tuple[Touch, ...]:
    """Everything that an instruction touches, reads first. END touches nothing."""
    v = op.values
    match op.name:
        case "load":
            return _dram(v, write=False), _local(v, LOCAL[v["memory"]], write=True)
        case "store":
            return _local(v, "act", write=False), _dram(v, write=True)
        case "conv":
            tiles = v["out_blocks"] * v["kernel_h"] * v["kernel_w"] * v["in_blocks"]
            row_taps, column_taps = axes(v, v["kernel_w"], v["dilation_w"])
            weights = slice(v["wgt_base"], v["wgt_base"] + tiles * config.lanes)
            return (
                *_window(v, v["in_blocks"], row_taps, column_taps),
                Touch("wgt", weights, False),
                *_accumulators(v, v["out_blocks"]),
            )
        case "dwconv":
            columns = v["groups_w"] * (DEPTHWISE_TAPS if v["wide"] else 1)
            row_taps, column_taps = axes(v, columns, 1 if v["wide"] else v["dilation_w"])
            tiles = v["blocks"] * v["kernel_h"] * v["groups_w"]
            weights = slice(v["wgt_base"], v["wgt_base"] + tiles * DEPTHWISE_TAPS)
            return (
                *_window(v, v["blocks"], row_taps, column_taps),
                Touch("wgt", weights, False),
                *_accumulators(v, v["blocks"]),
            )
        case "drain":
            return _acc(v, v["blocks"], write=False), _parameters(v, 2), _destination(v)
        case "pool":
            return (
                *_window(v, v["blocks"], *axes(v, v["kernel_w"], v["dilation_w"])),
                *((_parameters(v, 2),) if v["sum"] else ()),
                _destination(v),
            )
        case "add":
            return _operand(v, "a"), _operand(v, "b"), _parameters(v, 3), _destination(v)
    return ()


def _touch(memory: str, base: int, dimensions: Dimensions, write: bool) -> Touch:
    rows = rows_of(base, dimensions)
    return Touch(memory, rows, write, not write or distinct(rows, dimensions))


def _dram(v: Mapping[str, int], write: bool) -> Touch:
    strides = (v["dram_stride2"], v["dram_stride1"], 1)
    dimensions = tuple((v[c], s) for c, s in zip(COUNTS, strides, strict=True))
    return _touch(f"dram{v['base_reg']}", v["dram_offset"], dimensions, write)


def _local(v: Mapping[str, int], memory: str, write: bool) -> Touch:
    dimensions = tuple((v[c], v[f"local_stride{2 - i}"]) for i, c in enumerate(COUNTS))
    return _touch(memory, v["local_base"], dimensions, write)


@lru_cache(maxsize=4096)
def _coordinates(taps: Taps) -> tuple[int, ...]:
    """Input coordinates that are read, ascending, padding left out."""
    found = np.unique(taps.coordinates())
    return tuple(found[(found >= 0) & (found < taps.size)].tolist())


def _axis(taps: Taps, stride: int) -> tuple[int, Dimensions, NDArray[np.int64] | None]:
    """(first row, dimensions) of the coordinates of one axis, or explicit row offsets."""
    found = _coordinates(taps)
    if not found:
        return 0, ((0, 0),), None
    step = found[1] - found[0] if len(found) > 1 else 1
    if found[-1] - found[0] == step * (len(found) - 1) and (len(found) < 3 or step == 1):
        return found[0] * stride, ((len(found), step * stride),), None
    return 0, (), np.asarray(found, dtype=np.int64) * stride


def _window(v: Mapping[str, int], blocks: int, r: Taps, c: Taps) -> tuple[Touch, ...]:
    first_h, rows, offsets_h = _axis(r, v["in_row_stride"])
    first_w, columns, offsets_w = _axis(c, v["in_col_stride"])
    if (0, 0) in rows or (0, 0) in columns:
        return ()  # padding only
    block = (blocks, v["in_block_stride"])
    if offsets_h is None and offsets_w is None:
        base = v["in_base"] + first_h + first_w
        return (Touch("act", rows_of(base, (*rows, *columns, block)), False),)
    h = offsets_h if offsets_h is not None else first_h + _offsets(rows)
    w = offsets_w if offsets_w is not None else first_w + _offsets(columns)
    total = v["in_base"] + (h[:, None] + w)[..., None] + np.arange(blocks) * block[1]
    return (Touch("act", total.reshape(-1), False),)


def _offsets(dimensions: Dimensions) -> NDArray[np.int64]:
    ((count, stride),) = dimensions
    return np.arange(count, dtype=np.int64) * stride


def _acc(v: Mapping[str, int], blocks: int, write: bool) -> Touch:
    count = blocks * v["out_h"] * v["out_w"]
    return Touch(f"acc{v['acc_bank']}", slice(v["acc_base"], v["acc_base"] + count), write)


def _accumulators(v: Mapping[str, int], blocks: int) -> tuple[Touch, ...]:
    written = _acc(v, blocks, write=True)
    return (_acc(v, blocks, write=False), written) if v["accumulate"] else (written,)


def _parameters(v: Mapping[str, int], rows: int) -> Touch:
    stride = PAR_BEATS * v["par_stride"]
    dimensions = ((v["blocks"], stride), (PAR_BEATS * rows, 1))
    return _touch("par", PAR_BEATS * v["par_base"], dimensions, False)


def _output_dimensions(v: Mapping[str, int], prefix: str) -> Dimensions:
    return (
        (v["blocks"], v[f"{prefix}_block_stride"]),
        (v["out_h"], v[f"{prefix}_row_stride"]),
        (v["out_w"], v[f"{prefix}_col_stride"]),
    )


def _destination(v: Mapping[str, int]) -> Touch:
    return _touch("act", v["dst_base"], _output_dimensions(v, "dst"), True)


def _operand(v: Mapping[str, int], name: str) -> Touch:
    return _touch("act", v[f"{name}_base"], _output_dimensions(v, name), False)


def ports(op: Op, touches: tuple[Touch, ...], config: Config) -> tuple[Touch, ...]:
    """Ports of banked memories that an instruction uses: each use excludes other engines.

    The matrix engine uses both ports of its accumulator bank: it reads what it adds to.
    """
    result = []
    for touch in touches:
        if touch.memory == "act":
            banks = _banks(touch.rows, config.act_bank_rows)
            result.append(Touch(PORTS["act"], 2 * banks + touch.write, True))
        elif touch.memory in ("acc0", "acc1"):
            port = 2 * int(touch.memory[-1])
            both = touch.write
            result.append(Touch(PORTS[touch.memory], slice(port, port + 1 + both), True))
    return tuple(result)


def _banks(rows: Rows, bank_rows: int) -> NDArray[np.int64]:
    if isinstance(rows, slice):
        return np.arange(rows.start // bank_rows, (rows.stop - 1) // bank_rows + 1)
    first, last = int(rows.min()) // bank_rows, int(rows.max()) // bank_rows
    if first == last:
        return np.array([first])
    return np.unique(rows // bank_rows)
