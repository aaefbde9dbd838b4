"""Arguments of exported nodes, given by position or by name.

What comes in: a node. What goes out: its arguments. It must not know operators.
"""

from __future__ import annotations

from typing import Any

from torch import fx


def argument(node: fx.Node, position: int, name: str, default: Any) -> Any:
    """The argument at a position, or by its name, or what it is where it is not given."""
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def per_axis(value: Any, dims: int) -> list[int]:
    """One number for each of so many axes."""
    numbers = [int(value)] if isinstance(value, int) else [int(entry) for entry in value]
    return numbers * dims if len(numbers) == 1 else numbers


def shape_of(node: Any) -> tuple[int, ...]:
    """The shape of what a node computes."""
    return tuple(int(extent) for extent in node.meta["val"].shape)
