"""Values of the vector engine: drain, pool and add, through the arithmetic of the specification.

What comes in: memories, field values and a rounding function for each form of scaling. What goes
out: int8 activation rows and how many outputs the clamp changed, low and high. Sums wrap modulo
2^32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I32
from accelsim.simulate.memory import Memory, rows_view
from accelsim.simulate.windows import axes, windows
from accelsim.spec import arithmetic

EMPTY_MAXIMUM = -128
Saturated = tuple[int, int]


def scale_float(acc: I32, multiplier: NDArray[np.float32]) -> NDArray[np.float32]:
    """`arithmetic.scale_fp32` left in float32, where the zero point and both limits are exact."""
    x = acc.astype(np.float32)
    x *= multiplier
    return np.rint(x, out=x)


def add_float(
    a: NDArray[np.int16],
    b: NDArray[np.int16],
    a_scale: NDArray[np.float32],
    b_scale: NDArray[np.float32],
    inverse_scale: NDArray[np.float32],
) -> NDArray[np.float32]:
    """`arithmetic.add_fp32` left in float32."""
    left = a.astype(np.float32)
    left *= a_scale
    right = b.astype(np.float32)
    right *= b_scale
    left += right
    left *= inverse_scale
    return np.rint(left, out=left)


@dataclass(frozen=True, slots=True)
class Rounding:
    """The scalings of the vector engine; a planted bug replaces them."""

    scale: Callable[..., NDArray[Any]] = scale_float
    add: Callable[..., NDArray[Any]] = add_float
    add_fixed: Callable[..., NDArray[Any]] = arithmetic.add_fixed


def parameters(memory: Memory, v: Mapping[str, int], rows: int) -> I32:
    """(rows, blocks, 1, 1, lanes) int32 parameter words of all blocks."""
    first = v["par_base"] + np.arange(v["blocks"]) * v["par_stride"]
    index = first[None, :] + np.arange(rows)[:, None]
    words: I32 = memory.par_words[index][:, :, None, None, :]
    return words


def _write(memory: Memory, v: Mapping[str, int], shifted: NDArray[Any]) -> Saturated:
    """Clamp (blocks, out_h, out_w, lanes) into activation memory; count what the clamp changed."""
    tail, lanes = v["tail"], memory.lanes
    low, high = v["clamp_min"], v["clamp_max"]
    counted = (shifted,) if tail == lanes else (shifted[:-1], shifted[-1, ..., :tail])
    below = sum(int(np.count_nonzero(part < low)) for part in counted)
    above = sum(int(np.count_nonzero(part > high)) for part in counted)
    out = np.maximum(shifted, low)
    np.minimum(out, high, out=out)
    if tail < lanes:
        out[-1, ..., tail:] = 0
    _destination(memory, v)[...] = out
    return below, above


def _destination(memory: Memory, v: Mapping[str, int]) -> NDArray[np.int8]:
    return rows_view(
        memory.act,
        v["dst_base"],
        (v["blocks"], v["out_h"], v["out_w"]),
        (v["dst_block_stride"], v["dst_row_stride"], v["dst_col_stride"]),
        memory.lanes,
    )


def drain(memory: Memory, v: Mapping[str, int], rounding: Rounding) -> Saturated:
    """drain: clamp(round((acc + bias)·multiplier) + zero_point)."""
    shape = (v["blocks"], v["out_h"], v["out_w"], memory.lanes)
    first = v["acc_base"]
    rows = memory.acc[v["acc_bank"], first : first + shape[0] * shape[1] * shape[2]]
    bias, multiplier = parameters(memory, v, 2)
    scaled = rounding.scale(rows.reshape(shape) + bias, multiplier.view(np.float32))
    scaled += v["zero_point"]
    return _write(memory, v, scaled)


def pool(memory: Memory, v: Mapping[str, int], rounding: Rounding) -> Saturated:
    """pool: the maximum of a window, or its requantized sum."""
    row_taps, column_taps = axes(v, v["kernel_w"], v["dilation_w"])
    kind: type[np.generic] = np.int32 if v["sum"] else np.int8
    zero_point, fill = (v["input_zero_point"], 0) if v["sum"] else (0, EMPTY_MAXIMUM)
    x = windows(memory, v, v["blocks"], row_taps, column_taps, kind, zero_point, fill)
    total = x[:, :, 0, 0].copy()
    reduce = np.add if v["sum"] else np.maximum
    for h in range(v["kernel_h"]):
        for w in range(v["kernel_w"]):
            if h or w:
                reduce(total, x[:, :, h, w], out=total)
    result = total.transpose(2, 0, 1, 3)
    if not v["sum"]:
        return _write(memory, v, result)
    bias, multiplier = parameters(memory, v, 2)
    scaled = rounding.scale(result + bias, multiplier.view(np.float32))
    return _write(memory, v, scaled + v["zero_point"])


def add(memory: Memory, v: Mapping[str, int], rounding: Rounding) -> Saturated:
    """add: clamp(round(((a - za)·sa + (b - zb)·sb)·inv) + zero_point), float32 throughout.

    In mode fixed the sum of integer products, divided by a power of two.
    """
    counts = (v["blocks"], v["out_h"], v["out_w"])

    def operand(name: str) -> NDArray[np.int16]:
        strides = tuple(v[f"{name}_{axis}_stride"] for axis in ("block", "row", "col"))
        rows = rows_view(memory.act, v[f"{name}_base"], counts, strides, memory.lanes)
        return rows.astype(np.int16) - np.int16(v[f"{name}_zero_point"])

    words = parameters(memory, v, 3)
    if arithmetic.ADD_MODES[v["mode"]] == "fixed":
        scaled = rounding.add_fixed(operand("a"), operand("b"), words[0], words[1], words[2])
    else:
        scales = words.view(np.float32)
        scaled = rounding.add(operand("a"), operand("b"), scales[0], scales[1], scales[2])
    return _write(memory, v, scaled + v["zero_point"])
