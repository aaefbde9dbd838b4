"""ONNX operators as Relax: one module a family, found by looking into this folder.

What comes in: a node and the emitter. What goes out: the node's results, as the emitter knows them
(see `quantize.onnx.emitter`). It must not know the hardware.

A module has `CONVERTERS`, from operator to a function of emitter and node; "com.microsoft:Name" is
an operator of that domain. It may have `MOVES`, operators that only move or choose numbers: these
work on integers as well, and are then one layer with the levels of what they read. `RENAMING` names
operators that are emitted anew for each consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from accelsim.discovery import modules_in
from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter

Converter = Callable[[Emitter, OnnxNode], Any]


@dataclass(frozen=True, slots=True)
class Converters:
    """What all modules together know."""

    by_name: dict[str, Converter]
    moves: frozenset[str]
    renaming: frozenset[str]

    def of(self, node: OnnxNode) -> Converter | None:
        """A node's converter, or None."""
        return self.by_name.get(key_of(node))


def key_of(node: OnnxNode) -> str:
    """The key of a node's operator."""
    return f"{node.domain}:{node.operator}" if node.domain else node.operator


@cache
def converters() -> Converters:
    """All modules of this folder, read once."""
    by_name: dict[str, Converter] = {}
    moves: set[str] = set()
    renaming: set[str] = set()
    for module in modules_in(__name__):
        by_name |= module.CONVERTERS
        moves |= set(getattr(module, "MOVES", ()))
        renaming |= set(getattr(module, "RENAMING", ()))
    return Converters(by_name, frozenset(moves), frozenset(renaming))
