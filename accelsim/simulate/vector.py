"""What instructions of the vector engine share: operands, parameters, and the way out.

What comes in: memories and field values. What goes out: operands as arrays, int8 activation rows,
and how many outputs the clamp changed, low and high.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, I32
from accelsim.simulate.memory import Memory, rows_view
from accelsim.simulate.scaling import Rounding
from accelsim.spec.durations import REQUANTIZE_ROWS

Fields = Mapping[str, int]


def parameters(memory: Memory, v: Fields, rows: int) -> I32:
    """(rows, blocks, 1, 1, lanes) int32 parameter words of all blocks."""
    first = v["par_base"] + np.arange(v["blocks"]) * v["par_stride"]
    index = first[None, :] + np.arange(rows)[:, None]
    words: I32 = memory.par_words[index][:, :, None, None, :]
    return words


def requantize(
    memory: Memory, v: Fields, rounding: Rounding, value: NDArray[np.int32]
) -> NDArray[Any]:
    """round((value + bias)·multiplier) + zero_point of (blocks, h, w, lanes) int32, which wrap."""
    words = parameters(memory, v, REQUANTIZE_ROWS.of(v))
    scaled = rounding.scale(v["mode"], value + words[0], words[1:])
    scaled += v["zero_point"]
    return scaled


def write_clamped(memory: Memory, v: Fields, shifted: NDArray[Any]) -> tuple[int, int]:
    """Clamp (blocks, out_h, out_w, lanes) into activation memory; count what the clamp changed."""
    tail, lanes = v["tail"], memory.lanes
    low, high = v["clamp_min"], v["clamp_max"]
    counted = (shifted,) if tail == lanes else (shifted[:-1], shifted[-1, ..., :tail])
    below = sum(int(np.count_nonzero(part < low)) for part in counted)
    above = sum(int(np.count_nonzero(part > high)) for part in counted)
    out = np.maximum(shifted, low)
    np.minimum(out, high, out=out)
    write(memory, v, out)
    return below, above


def write(memory: Memory, v: Fields, out: NDArray[Any]) -> None:
    """Put (blocks, out_h, out_w, lanes) into activation memory; pad lanes become 0 (in `out`)."""
    if v["tail"] < memory.lanes:
        out[-1, ..., v["tail"] :] = 0
    outputs(memory, v, "dst")[...] = out


def outputs(memory: Memory, v: Fields, prefix: str) -> I8:
    """View (blocks, out_h, out_w, lanes) of activation rows, with the base and strides of prefix.

    One row for each output row: "dst", or an operand "a", "b" or "in".
    """
    return rows_view(
        memory.act,
        v[f"{prefix}_base"],
        (v["blocks"], v["out_h"], v["out_w"]),
        tuple(v[f"{prefix}_{axis}_stride"] for axis in ("block", "row", "col")),
        memory.lanes,
    )


def operand(memory: Memory, v: Fields, name: str) -> NDArray[np.int16]:
    """(blocks, out_h, out_w, lanes): operand "a" or "b" without its zero point.

    With its scalar flag lane 0 of each row stands for all.
    """
    rows = outputs(memory, v, name)
    if v[f"{name}_scalar"]:
        rows = np.broadcast_to(rows[..., :1], rows.shape)
    return rows.astype(np.int16) - np.int16(v[f"{name}_zero_point"])


def channels(memory: Memory, v: Fields) -> I8:
    """(out_h, out_w, channels) int8: the channels of each pixel in order, pad lanes left out."""
    rows = outputs(memory, v, "in").transpose(1, 2, 0, 3)
    count = (v["blocks"] - 1) * memory.lanes + v["tail"]
    return rows.reshape(*rows.shape[:2], -1)[..., :count]


def from_channels(memory: Memory, v: Fields, values: NDArray[Any]) -> NDArray[Any]:
    """The way back: (out_h, out_w, channels) to (blocks, out_h, out_w, lanes), pad lanes 0."""
    padded = np.zeros((v["out_h"], v["out_w"], v["blocks"] * memory.lanes), values.dtype)
    padded[..., : values.shape[-1]] = values
    blocked = padded.reshape(v["out_h"], v["out_w"], v["blocks"], memory.lanes)
    return blocked.transpose(2, 0, 1, 3)
