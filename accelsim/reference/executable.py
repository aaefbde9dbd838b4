"""Relax modules as code of this machine's CPU.

What comes in: a module, and how much the compiler should do for its speed. What goes out: a virtual
machine. It must not know what the module computes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

FASTEST = 3
UNOPTIMIZED = 0  # compiles several times faster and runs slower
# Passes that make code faster and change no result. On a long nest of selections (the exact
# roundings of a multiplier) they take a hundred times as long as all else.
SIMPLIFICATIONS = (
    *("s_tir.StmtSimplify", "tirx.StmtSimplify"),
    *("s_tir.HoistIfThenElse", "tirx.RemoveNoOp"),
)


def machine_of(module: Any, optimization: int = FASTEST) -> Any:
    """A virtual machine that runs the functions of a Relax module.

    `optimization` is LLVM's level. With 0, code is made as fast as can be and runs slower.
    """
    target = tvm.target.Target({"kind": "llvm", "opt-level": optimization})
    left_out = [] if optimization else list(SIMPLIFICATIONS)
    with tvm.transform.PassContext(disabled_pass=left_out):
        executable = tvm.compile(module, target)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "code.so"
        # Far faster than TVM's just-in-time linker.
        native = any(one.kind == "llvm" for one in executable.mod.imports)
        executable.export_library(str(library), **({"fpack_imports": _packed} if native else {}))
        loaded = tvm.runtime.load_module(str(library))
    return relax.VirtualMachine(loaded, tvm.cpu())


def _packed(module: Any, _system: bool, prefix: str, folder: str) -> str:
    """What a library holds besides code, as an object file.

    TVM takes code of LLVM for a part of the process, whose next one would replace it with a
    warning; each of these libraries stands alone.
    """
    code = module._collect_from_import_tree(lambda one: one.kind == "llvm")
    target = code[0].get_function("_get_target_string")()
    made = tvm.runtime._ffi_api.ModulePackImportsToLLVM(module, False, target, prefix)
    path = str(Path(folder) / "packed.o")
    made.write_to_file(path)
    return path
