"""What parts of instructions touch: operands, windows, parameters, accumulators, destinations.

What comes in: field values. What goes out: `Touch`es, exact to the row. Instructions are put
together from these; this module must not know which ones there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.rows import Dimensions, Touch, distinct, rows_of
from accelsim.simulate.windows import Taps
from accelsim.spec.config import PAR_BEATS, TABLES, Config

Fields = Mapping[str, int]


def touch(memory: str, base: int, dimensions: Dimensions, write: bool) -> Touch:
    """Rows base + Σ index·stride of a memory."""
    rows = rows_of(base, dimensions)
    return Touch(memory, rows, write, not write or distinct(rows, dimensions))


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


def window(v: Fields, blocks: int, r: Taps, c: Taps) -> tuple[Touch, ...]:
    """Activations that the windows of a conv, dwconv or pool read."""
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


def acc(v: Fields, blocks: int, write: bool) -> Touch:
    """Accumulators of all outputs, read or written."""
    count = blocks * v["out_h"] * v["out_w"]
    return Touch(f"acc{v['acc_bank']}", slice(v["acc_base"], v["acc_base"] + count), write)


def accumulators(v: Fields, blocks: int) -> tuple[Touch, ...]:
    """What the matrix engine does to its accumulators."""
    written = acc(v, blocks, write=True)
    return (acc(v, blocks, write=False), written) if v["accumulate"] else (written,)


def weights(v: Fields, rows: int) -> Touch:
    """Weight rows from the first one on."""
    return Touch("wgt", slice(v["wgt_base"], v["wgt_base"] + rows), False)


def parameters(v: Fields, rows: int) -> Touch:
    """`rows` parameter rows of every block, in beats."""
    stride = PAR_BEATS * v["par_stride"]
    dimensions = ((v["blocks"], stride), (PAR_BEATS * rows, 1))
    return touch("par", PAR_BEATS * v["par_base"], dimensions, False)


def table(v: Fields, config: Config) -> Touch:
    """All beats of the table that `lut` names: undefined words are an error, used or not."""
    beats = config.tab_beats // TABLES
    return Touch("tab", slice(v["lut"] * beats, (v["lut"] + 1) * beats), False)


def output_dimensions(v: Fields, prefix: str) -> Dimensions:
    """Blocks, rows and columns of the outputs, with the strides of `prefix`."""
    return (
        (v["blocks"], v[f"{prefix}_block_stride"]),
        (v["out_h"], v[f"{prefix}_row_stride"]),
        (v["out_w"], v[f"{prefix}_col_stride"]),
    )


def destination(v: Fields) -> Touch:
    """Activation rows of all outputs."""
    return touch("act", v["dst_base"], output_dimensions(v, "dst"), True)


def operand(v: Fields, name: str) -> Touch:
    """Activation rows of an operand, one for each output row: "a", "b" or "in"."""
    return touch("act", v[f"{name}_base"], output_dimensions(v, name), False)
