"""Passes of a team's own, over the QDQ module, before its operators are read.

What comes in: functions from an IRModule to an IRModule, such as TVM's passes. What goes out: the
module after all of them. It must not know what a pass does.

    from accelsim.legalize import register_pass
    register_pass(my_pass)

A pass keeps a function `main`, and the user's layer names on the spans of its calls. The reference
reads the module as it was before: a pass that changes results is found by comparing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm

from accelsim.errors import InputError, ModelError

Pass = Callable[[Any], Any]

_passes: list[tuple[str, Pass]] = []


def register_pass(function: Pass, name: str | None = None) -> None:
    """Run `function` on every QDQ module before it is legalized, after those registered before.

    `name` is for messages; by default the function's or the TVM pass's own. Raises InputError if a
    pass of that name is registered already.
    """
    if name is None:
        info = getattr(function, "info", None)
        name = str(
            getattr(info, "name", "") or getattr(function, "__name__", type(function).__name__)
        )
    if any(name == known for known, _ in _passes):
        raise InputError(
            f"A pass named '{name}' is registered already; give this one another name."
        )
    _passes.append((name, function))


def run_passes(module: Any) -> Any:
    """The module after every registered pass. Raises ModelError, naming the pass that failed."""
    for name, function in _passes:
        try:
            module = function(module)
        except Exception as error:  # the user's pass runs here
            raise ModelError(f"The registered pass '{name}' failed: {error}") from error
        if not isinstance(module, tvm.IRModule) or "main" not in _names(module):
            raise ModelError(f"The registered pass '{name}' did not return a module with a main.")
    return module


def _names(module: Any) -> set[str]:
    return {str(var.name_hint) for var in module.get_global_vars()}
