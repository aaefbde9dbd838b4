"""A graph of PyTorch modules and functions, built node by node.

What comes in: modules, functions and constants with the file's names. What goes out: an
`fx.GraphModule` in eval mode. It must not know the file's format.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn

Pads = Sequence[int]  # top, left, bottom, right
ROOT_NAMES = frozenset(dir(nn.Module()))
RESERVED = frozenset(keyword.kwlist) | {"self", "torch", "device", "inf", "nan"}
"""What the forward function that FX writes cannot have as a name of an input."""
SIGNS = str.maketrans({'"': "'", "\\": "/", **dict.fromkeys(";,()[]{}", "|")})
"""FX writes paths into a format string, between quotation marks; `torch.export.load` splits them at
semicolons, and at commas outside of brackets."""


class Network:
    """What was built so far."""

    def __init__(self) -> None:
        self._root = nn.Module()
        self._graph = fx.Graph()
        self._constants: dict[int, fx.Node] = {}
        self._inputs: set[str] = set()
        self._kept: list[Any] = []  # arrays whose identity is a key

    def input(self, name: str) -> fx.Node:
        """An input of the model."""
        clean = "".join(c if f"x{c}".isidentifier() else "_" for c in name)
        clean = clean if clean.isidentifier() and clean not in RESERVED else f"x_{clean}"
        unique, count = clean, 0
        while unique in self._inputs:
            count += 1
            unique = f"{clean}_{count}"
        self._inputs.add(unique)
        return self._graph.placeholder(unique)

    def constant(self, values: NDArray[Any]) -> fx.Node:
        """A tensor that the module holds."""
        if id(values) not in self._constants:
            number = len(self._constants)
            while hasattr(self._root, f"constant_{number}"):
                number += 1
            path = f"constant_{number}"
            self._root.register_buffer(path, tensor(values))
            self._constants[id(values)] = self._graph.get_attr(path)
            self._kept.append(values)
        return self._constants[id(values)]

    def module(self, name: str, layer: nn.Module, x: fx.Node) -> fx.Node:
        """Call a module that is placed under the layer's name."""
        path = self._place(name, layer)
        return self._graph.call_module(path, (x,))

    def call(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> fx.Node:
        """Call a function; the result has the layer's name."""
        node = self._graph.call_function(function, args, options)
        node.meta["user_name"] = name
        return node

    def method(self, name: str, method: str, x: fx.Node, *args: Any) -> fx.Node:
        """Call a method of a tensor."""
        node = self._graph.call_method(method, (x, *args))
        node.meta["user_name"] = name
        return node

    def padded(self, name: str, x: fx.Node, pads: Pads, value: float = 0.0) -> fx.Node:
        """The two last axes padded, where any of the four numbers is not 0."""
        if not any(pads):
            return x
        top, left, bottom, right = pads
        sides = [left, right, top, bottom]
        return self.call(f"{name}/pad", nn.functional.pad, x, sides, value=value)

    def value(self, node: fx.Node, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """What a node gives for some inputs, by what was built so far."""
        copied: dict[fx.Node, fx.Node] = {}
        graph = fx.Graph()
        graph.graph_copy(self._graph, copied)
        graph.output(copied[node])
        with torch.no_grad():
            found: torch.Tensor = fx.GraphModule(self._root, graph).eval()(*inputs)
        return found

    def finish(self, outputs: Sequence[fx.Node]) -> fx.GraphModule:
        """The module."""
        self._graph.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
        return fx.GraphModule(self._root, self._graph).eval()

    def _place(self, name: str, layer: nn.Module) -> str:
        """Put a module at a dotted path; where the path is no such, dots become underscores."""
        for parameter in layer.parameters():
            parameter.requires_grad_(False)
        name = "".join(c if c.isprintable() else "_" for c in name.translate(SIGNS))
        *outer, last = name.split(".")
        parent = self._root
        for part in outer:
            inner = parent._modules.get(part)
            if (
                not part
                or part in ROOT_NAMES
                or keyword.iskeyword(part)
                or (inner is not None and type(inner) is not nn.Module)
            ):
                return self._place(name.replace(".", "_"), layer)
            if inner is None:
                inner = nn.Module()
                parent.add_module(part, inner)
            parent = inner
        if last in ROOT_NAMES or not last or keyword.iskeyword(last):
            return self._place("layer_" + name.replace(".", "_"), layer)
        unique, count = last, 0
        while hasattr(parent, unique):
            count += 1
            unique = f"{last}_{count}"
        parent.add_module(unique, layer.eval())
        return ".".join((*outer, unique))


def tensor(values: NDArray[Any]) -> torch.Tensor:
    """A tensor of its own memory."""
    return torch.from_numpy(np.array(values, order="C"))


def convolution(
    weight: NDArray[Any],
    bias: NDArray[Any] | None,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    padding: Sequence[int] = (0, 0),
) -> nn.Module:
    """Weights (out, in / groups, kernel…) of one or two axes."""
    kind: Any = nn.Conv1d if weight.ndim == 3 else nn.Conv2d
    layer: nn.Module = kind(
        weight.shape[1] * groups,
        weight.shape[0],
        weight.shape[2:],
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        groups,
        bias is not None,
    )
    return filled(layer, weight, bias)


def linear(weight: NDArray[Any], bias: NDArray[Any] | None) -> nn.Module:
    """Weights (out, in)."""
    return filled(nn.Linear(weight.shape[1], weight.shape[0], bias is not None), weight, bias)


def filled(layer: Any, weight: NDArray[Any], bias: NDArray[Any] | None) -> nn.Module:
    """The layer with these weights."""
    layer.weight = nn.Parameter(tensor(weight.astype(np.float32)))
    if bias is not None:
        layer.bias = nn.Parameter(tensor(bias.astype(np.float32).reshape(-1)))
    module: nn.Module = layer
    return module
