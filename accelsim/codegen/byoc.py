"""The code generator that TVM calls: `relax.ext.accelsim`.

What comes in: partitioned functions, and compiled payloads through RunCodegen's options. What goes
out: runtime modules of C source. It must not know how a payload was compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from accelsim.codegen.csource import region_source
from accelsim.errors import ModelError
from accelsim.partition import CODEGEN


def register_codegen() -> None:
    """Register `relax.ext.accelsim` with TVM. Calling it again changes nothing."""
    tvm_ffi.register_global_func(f"relax.ext.{CODEGEN}", _generate, override=True)


def run_codegen(module: Any, payloads: Mapping[str, bytes]) -> Any:
    """Replace the regions of a partitioned module by their payloads (global symbol → bytes)."""
    register_codegen()
    generated = relax.transform.RunCodegen({CODEGEN: {"payloads": dict(payloads)}})(module)
    # RunCodegen keeps the constants for generators that link them; programs hold their own.
    generated = generated.without_attr("const_name_to_constant")
    return relax.transform.DeadCodeElimination(["main"])(generated)


def _generate(functions: Sequence[Any], options: Mapping[str, Any], _: Any) -> list[Any]:
    """One C source module for each function."""
    payloads = options.get("payloads", {})
    create = tvm.get_global_func("runtime.CSourceModuleCreate")
    modules = []
    for function in functions:
        symbol = str(function.attrs["global_symbol"])
        if symbol not in payloads:
            raise ModelError(
                f"Region {symbol} has no program: give RunCodegen the option "
                f'{{"{CODEGEN}": {{"payloads": {{symbol: bytes}}}}}}.'
            )
        source = region_source(symbol, bytes(payloads[symbol]))
        modules.append(create(source, "c", [symbol], []))
    return modules
