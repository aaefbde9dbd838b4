"""The user's names of inputs, in a program of torch.export.

What comes in: an `ExportedProgram`, and the names. What goes out: the program with the names in the
metadata of its first operator, which survives `torch.export.save`; and back. torch.export itself
gives inputs names of small letters, digits and underscores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_KEY = "accelsim.inputs"


def keep_inputs(program: torch.export.ExportedProgram, names: Sequence[str]) -> None:
    """Write the names, where they differ from the program's own."""
    if list(names) == list(program.graph_signature.user_inputs):
        return
    for node in program.graph.nodes:
        if node.op == "call_function":
            known = node.meta.get("custom")
            kept = dict(known) if isinstance(known, dict) else {}
            node.meta["custom"] = {**kept, _KEY: list(names)}
            return


def input_names(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """The names that were kept, one for each input; else the program's own."""
    own = tuple(str(name) for name in program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        stored: Any = node.meta.get("custom")
        names = stored.get(_KEY) if isinstance(stored, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) and name for name in names):
            return tuple(names) if len(set(names)) == len(own) == len(names) else own
    return own
