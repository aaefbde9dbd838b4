"""What the fields of an instruction can express, and how a layer is kept within it.

What comes in: an axis of a window operator. What goes out: tile limits, field values, or a
ModelError that names the layer, its value and the limit. It must not know how tiles are chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Region
from accelsim.errors import ModelError
from accelsim.schedule.window import Axis
from accelsim.spec.arithmetic import MULTIPLIER_MAX, MULTIPLIER_MIN, legal_multiplier

# From the widths of the fields of load, store, conv, dwconv, pool and add; tests hold them equal.
MAX_COUNT = 4095  # pixels of an axis, and channel blocks
MAX_KERNEL = 31
MAX_STEP = 31  # stride or dilation
MIN_ORIGIN, MAX_ORIGIN = -2048, 2047
MAX_RUN = (1 << 16) - 1  # beats of a contiguous DRAM run
MAX_DRAM_STRIDE = (1 << 24) - 1  # beats
MAX_REGION_BYTES = (1 << 32) - 1  # size registers


def largest_tile(axis: Axis) -> int:
    """Outputs of a tile along one axis: with a stride beyond its field, one."""
    return MAX_COUNT if axis.stride <= MAX_STEP else 1


def largest_kernel(axis: Axis) -> int:
    """Taps of an instruction along one axis: with a dilation beyond its field, one."""
    return MAX_KERNEL if axis.dilation <= MAX_STEP else 1


def step(value: int) -> int:
    """The field of a stride or dilation; one that no tile or kernel piece uses is written as 1."""
    return value if value <= MAX_STEP else 1


def check_padding(name: str, axes: tuple[Axis, Axis], kernel: tuple[int, int]) -> None:
    """Raise ModelError where padding puts an origin beyond its field."""
    for axis, taps in zip(axes, kernel, strict=True):
        reach = (axis.out - 1) * axis.stride + (taps - 1) * axis.dilation - axis.pad
        after = reach - (axis.size - 1)
        for padding, limit in ((axis.pad, -MIN_ORIGIN), (after, MAX_ORIGIN)):
            if padding > limit:
                raise ModelError(
                    f"layer {name}: a padding of {padding} exceeds {limit}, the limit of the NPU"
                )


def check_multipliers(name: str, multipliers: NDArray[np.float32]) -> None:
    """Raise ModelError for a multiplier with which the NPU's float arithmetic is not exact."""
    if not legal_multiplier(multipliers):
        wrong = multipliers[~((multipliers >= MULTIPLIER_MIN) & (multipliers <= MULTIPLIER_MAX))]
        raise ModelError(
            f"layer {name}: a multiplier is {wrong.flat[0]:g}, the limits of the NPU are 2^-100 "
            "and 2^100"
        )


def check_tensors(region: Region, lanes: int) -> None:
    """Raise ModelError for a layer with an empty tensor or a row that no DRAM stride spans."""
    for layer in region.layers:
        for name in (*layer.inputs, layer.output):
            shape = region.tensors[name].shape
            if min(shape) < 1:
                raise ModelError(f"layer {layer.name}: tensor {name} of shape {shape} is empty")
            row = shape[2] * -(-shape[3] // lanes)
            if row > MAX_DRAM_STRIDE:
                raise ModelError(
                    f"layer {layer.name}: a row of tensor {name} takes {row} beats, the limit of "
                    f"the NPU is {MAX_DRAM_STRIDE}"
                )


def check_sizes(symbol: str, sizes: dict[str, int]) -> None:
    """Raise ModelError where memory behind a base register is larger than its size register."""
    for name, size in sizes.items():
        if size > MAX_REGION_BYTES:
            raise ModelError(
                f"{symbol}: its {name} take {size} bytes, the limit of the NPU is "
                f"{MAX_REGION_BYTES}; use a smaller batch"
            )
