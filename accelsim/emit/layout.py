"""DRAM layout of tensors and the memory image of a launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, Patches, Program, TensorExtent
from accelsim.errors import InputError
from accelsim.spec.isa import (
    ARENA_BASE,
    INPUT_BASE,
    OUTPUT_BASE,
    PROGRAM_BASE,
    WEIGHTS_BASE,
)


def pack(values: I8, lanes: int) -> NDArray[np.uint8]:
    """(n, h, w, c) int8 → the bytes of n, h, w, c/LANES, LANES with pad lanes 0."""
    n, h, w, c = values.shape
    blocks = -(-c // lanes)
    padded = np.zeros((n, h, w, blocks * lanes), np.int8)
    padded[..., :c] = values
    return padded.reshape(-1).view(np.uint8)


def patches(values: I8, p: Patches) -> I8:
    """(n, h, w, c) → (n, oh, ow, kernel_h · kernel_w · c) as `Patches` describes."""
    top, left, bottom, right = p.padding
    padded = np.pad(values, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=p.fill)
    reach = [(k - 1) * d + 1 for k, d in zip(p.kernel, p.dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(1, 2))
    chosen = windows[:, :: p.stride[0], :: p.stride[1], :, :: p.dilation[0], :: p.dilation[1]]
    ordered = chosen.transpose(0, 1, 2, 4, 5, 3)
    return np.ascontiguousarray(ordered).reshape(*ordered.shape[:3], -1)


def unpack(data: NDArray[np.uint8], extent: TensorExtent, lanes: int) -> I8:
    """The inverse of `pack` for the bytes of one tensor; pad lanes are dropped."""
    n, h, w, c = extent.shape
    return data.view(np.int8).reshape(n, h, w, extent.blocks(lanes) * lanes)[..., :c].copy()


def launch_memory(program: Program, tensors: Mapping[str, I8]) -> dict[int, NDArray[np.uint8]]:
    """DRAM contents by base register: program, constants and the given tensors; the rest is 0.

    `tensors` maps names in `program.tensors` to (n, h, w, c) int8 arrays: the program's inputs, or
    any intermediate for a layer on its own. Raises InputError for a wrong name, shape or dtype.
    """
    memory = {
        PROGRAM_BASE: program.words.astype("<u4").reshape(-1).view(np.uint8).copy(),
        WEIGHTS_BASE: np.frombuffer(program.constants, np.uint8).copy(),
        INPUT_BASE: np.zeros(program.input_bytes, np.uint8),
        OUTPUT_BASE: np.zeros(program.output_bytes, np.uint8),
        ARENA_BASE: np.zeros(program.arena_bytes, np.uint8),
    }
    for name, values in tensors.items():
        extent = program.tensors.get(name)
        if extent is None:
            raise InputError(
                f"program {program.symbol} has no tensor {name!r}; it has "
                f"{', '.join(program.tensors)}"
            )
        if values.dtype != np.int8 or values.shape != extent.logical:
            raise InputError(
                f"tensor {name}: expected int8 of shape {extent.logical}, got {values.dtype} of "
                f"shape {values.shape}"
            )
        stored = values if extent.patches is None else patches(values, extent.patches)
        data = pack(stored, program.config.lanes)
        memory[extent.base][extent.offset_bytes : extent.offset_bytes + data.size] = data
    return memory


def read_tensor(program: Program, memory: Mapping[int, NDArray[np.uint8]], name: str) -> I8:
    """A tensor as (n, h, w, c) int8 from DRAM contents after a run; packed inputs as patches."""
    extent = program.tensors[name]
    lanes = program.config.lanes
    size = extent.size_bytes(lanes)
    data = memory[extent.base][extent.offset_bytes : extent.offset_bytes + size]
    return unpack(np.ascontiguousarray(data), extent, lanes)
