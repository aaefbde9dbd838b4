"""The shipped library: exported, loaded back, and run as a deployment would run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tvm.support.cc import get_cc

from accelsim.codegen import CompiledModel, export_library, load_library, run_library
from accelsim.cosim.tools import find_tool


def need_compiler() -> None:
    """Raise ToolError without a C++ compiler, of which TVM would make a TypeError."""
    if get_cc() is None:
        find_tool("g++")


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded network; `codegen.set_backend` says what its accelerated parts run on."""

    path: Path
    machine: Any

    @staticmethod
    def of(compiled: CompiledModel, path: Path) -> Library:
        """Export the network to `path` and load it. Raises ToolError without a C++ compiler."""
        need_compiler()
        export_library(compiled, path)
        return Library(path, load_library(path))

    @staticmethod
    def load(path: Path) -> Library:
        """A network that was exported before."""
        return Library(path, load_library(path))

    def run(self, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The network's outputs for one batch in the model's own layout and dtype."""
        return run_library(self.machine, inputs)
