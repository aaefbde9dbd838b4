"""BYOC: a partitioned module → a library that runs its regions on a backend, the rest on the CPU.

What comes in: a `QuantizedModel` and a configuration. What goes out: a `CompiledModel`, an
exported library, and in the process that loads it a launch function. It must not know any
backend: who runs a library calls `set_backend` first.
"""

from __future__ import annotations

from accelsim.codegen.byoc import register_codegen
from accelsim.codegen.compile import (
    CompiledModel,
    compile_model,
    export_library,
    load_library,
    run_library,
)
from accelsim.codegen.launch import Launcher, set_backend

__all__ = [
    "CompiledModel",
    "Launcher",
    "compile_model",
    "export_library",
    "load_library",
    "register_codegen",
    "run_library",
    "set_backend",
]
