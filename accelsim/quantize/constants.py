"""What an exported program knows before it runs: parameters, buffers and lifted constants.

What comes in: an `ExportedProgram`. What goes out: the values of its constant nodes. It must
not know Relax.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from accelsim.errors import ModelError

COPIES = frozenset(
    f"aten.{name}.default" for name in ("lift_fresh_copy", "lift_fresh", "detach", "detach_")
)


class Constants:
    """Values of parameter, buffer and constant nodes of a program."""

    def __init__(self, program: torch.export.ExportedProgram, model: str) -> None:
        self.model = model
        self._module = program.graph_module
        signature = program.graph_signature
        stored = {**program.state_dict, **program.constants}
        targets = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self._values = {name: stored[str(target)] for name, target in targets.items()}
        self._inner: dict[fx.Node, Any] = {}

    def stand_for(self, inner: fx.Node, argument: Any) -> None:
        """Let a node of another graph have the value of an argument in this one."""
        self._inner[inner] = self.find(argument)

    def find(self, argument: Any) -> Any | None:
        """The value of a constant argument, or None when it is computed from inputs."""
        if not isinstance(argument, fx.Node):
            return argument
        if argument in self._inner:
            return self._inner[argument]
        if argument.op == "call_function" and str(argument.target) in COPIES:
            return self.find(argument.args[0])
        if argument.graph is not self._module.graph:
            return None
        if argument.op == "get_attr":
            return getattr(self._module, str(argument.target)).detach()
        value = self._values.get(argument.name)
        return None if value is None else value.detach()

    def need(self, argument: Any, node: fx.Node, what: str) -> Any:
        """Like `find`; raises ModelError where the value is not constant."""
        value = self.find(argument)
        if value is None:
            raise ModelError(
                f"model {self.model} computes the {what} of '{node.name}' at run time; "
                "only static quantization is supported"
            )
        return value
