"""The launch function: what a library calls to run a region on a backend.

What comes in: a program's bytes and the region's int8 tensors in the graph's layout. What
goes out: the output tensors, filled. It must not know TVM beyond its function interface, nor
which backend it has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm_ffi

from accelsim.artifacts import I8, Backend, Launch, Program, RunResult
from accelsim.codegen.csource import LAUNCH
from accelsim.emit import launch_memory, program_from_bytes, read_tensor
from accelsim.errors import (
    InputError,
    ModelError,
    ProgramError,
    RtlError,
    TimeLimitError,
    ToolError,
)

_ERRORS = (InputError, ModelError, ProgramError, RtlError, TimeLimitError, ToolError)
_AXES = "nhwc"
Observer = Callable[[Launch, RunResult], None]


class Launcher:
    """Runs programs on one backend. Keeps those that it has read."""

    def __init__(self, backend: Backend, *, observe: bool, observer: Observer | None) -> None:
        self.backend = backend
        self.observe = observe
        self.observer = observer
        self.programs: dict[bytes, Program] = {}

    def __call__(self, data: bytes, *tensors: Any) -> None:
        """Run one region: `tensors` are its inputs, then its outputs, which are written.

        Raises ProgramError where the program is damaged or stops with an error.
        """
        program = self.programs.get(data)
        if program is None:
            program = self.programs[bytes(data)] = program_from_bytes(data)
        count = len(program.inputs)
        if len(tensors) != count + len(program.outputs):
            raise ProgramError(
                f"{program.symbol} takes {count} inputs and {len(program.outputs)} outputs, "
                f"and was called with {len(tensors)} tensors."
            )
        inputs = {
            name: to_nhwc(np.from_dlpack(tensor), program.tensors[name].layout)
            for name, tensor in zip(program.inputs, tensors[:count], strict=True)
        }
        launch = Launch(program, launch_memory(program, inputs), observe=self.observe)
        result = self.backend(launch)
        if self.observer is not None:
            self.observer(launch, result)
        if result.error_code:
            raise ProgramError(
                f"{program.symbol} stopped on backend {result.backend} with error "
                f"{result.error_code} at instruction {result.error_index}."
            )
        for name, tensor in zip(program.outputs, tensors[count:], strict=True):
            target = np.from_dlpack(tensor)
            value = to_graph(read_tensor(program, result.dram, name), program.tensors[name].layout)
            _copy_into(target, value)


def set_backend(
    backend: Backend, *, observe: bool = False, observer: Observer | None = None
) -> Launcher:
    """Make `backend` run the accelerated parts of every library in this process.

    `observe` asks for records and digests; `observer` sees each launch and its result.
    """
    for error in _ERRORS:  # so that they come back through TVM as what they are
        tvm_ffi.register_error(error)
    launcher = Launcher(backend, observe=observe, observer=observer)
    tvm_ffi.register_global_func(LAUNCH, launcher.__call__, override=True)
    return launcher


def to_nhwc(values: np.ndarray, layout: str) -> I8:
    """A tensor of the graph as (n, h, w, c); an axis that its layout lacks has extent 1."""
    order = [layout.index(axis) for axis in _AXES if axis in layout]
    missing = tuple(place for place, axis in enumerate(_AXES) if axis not in layout)
    return np.ascontiguousarray(np.expand_dims(values.transpose(order), missing))


def to_graph(values: I8, layout: str) -> I8:
    """(n, h, w, c) as the graph has it."""
    missing = tuple(place for place, axis in enumerate(_AXES) if axis not in layout)
    kept = [axis for axis in _AXES if axis in layout]
    order = [kept.index(axis) for axis in layout]
    return np.ascontiguousarray(np.squeeze(values, missing).transpose(order))


def _copy_into(view: np.ndarray, value: I8) -> None:
    """Write a result into the caller's memory, which NumPy may have been given read-only."""
    if view.flags.writeable:
        view[...] = value
        return
    address = view.__array_interface__["data"][0]
    ctypes.memmove(address, value.ctypes.data, view.nbytes)
