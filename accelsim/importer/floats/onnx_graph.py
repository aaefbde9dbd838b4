"""A float `OnnxModel` as a module of PyTorch.

What comes in: the model. What goes out: an `fx.GraphModule`. It must not know single operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from accelsim.discovery import modules_in
from accelsim.errors import ModelError
from accelsim.importer.floats import onnx_operators
from accelsim.importer.floats.network import Network
from accelsim.importer.floats.trial import DAMAGES, contradiction, tried
from accelsim.importer.onnx.model import OnnxModel, OnnxNode, OnnxValue

Array = NDArray[Any]
Rule = Callable[["OnnxGraph", OnnxNode], Any]  # → one node, or a tuple of them


class OnnxGraph:
    """State of one conversion."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model
        self.net = Network()
        self.nodes: dict[str, fx.Node] = {}
        self.uses = Counter(name for node in model.nodes for name in node.inputs if name)
        self.uses.update(model.outputs)
        self.joined: dict[str, OnnxNode] = {}  # a node's name → the bias behind it
        self._skipped: set[str] = set()
        self._tried: dict[str, OnnxValue] = {}

    def node(self, name: str) -> fx.Node:
        """A tensor by name, a constant included."""
        if name not in self.nodes and name in self.model.constants:
            return self.net.constant(self.model.constants[name])
        return self.nodes[name]

    def constant(self, name: str) -> Array | None:
        """A constant's values; None for one that is computed, or left out."""
        return self.model.constants.get(name)

    def numbers(self, node: OnnxNode, place: int, attribute: str = "") -> tuple[int, ...] | None:
        """Integers from an attribute or a constant input; None where they are left out."""
        if attribute and attribute in node.attributes:
            given = node.attributes[attribute]
            return tuple(int(one) for one in (given if isinstance(given, tuple) else (given,)))
        if not node.input(place):
            return None
        values = self.constant(node.input(place))
        if values is None:
            raise self.wrong(node, f"computes its input {place} at run time")
        return tuple(int(one) for one in values.reshape(-1))

    def shape(self, name: str) -> tuple[int, ...]:
        """Extents of a tensor; where ONNX infers none, those that it has for zeros."""
        values = self.model.constants.get(name)
        return values.shape if values is not None else self._known(name).shape

    def _known(self, name: str) -> OnnxValue:
        found = self.model.values.get(name) or self._tried.get(name)
        if found is None and name in self.nodes:
            zeros = [torch.zeros(v.shape, dtype=_dtype(v.dtype)) for v in self.model.inputs]
            value = self.net.value(self.nodes[name], zeros)
            dtype = str(value.dtype).removeprefix("torch.")
            found = self._tried[name] = OnnxValue(name, dtype, tuple(value.shape))
        if found is None:
            raise ModelError(
                f"model {self.model.name}: the shape of tensor '{name}' is not known; give the "
                "model fixed shapes"
            )
        return found

    def dtype(self, name: str) -> str:
        """NumPy's name of a tensor's type."""
        values = self.model.constants.get(name)
        return str(values.dtype) if values is not None else self._known(name).dtype

    def wrong(self, node: OnnxNode, what: str) -> ModelError:
        """A refusal that names the layer."""
        return ModelError(f"layer '{node.name}' ({node.operator}) {what}, which is not supported")

    def bias_behind(self, node: OnnxNode, shapes: tuple[tuple[int, ...], ...]) -> Array | None:
        """A constant of one of `shapes` added to the node's only use, which is taken with it."""
        output = node.outputs[0]
        if self.uses[output] != 1 or output in self.model.outputs:
            return None
        for after in self.model.nodes:
            if after.operator == "Add" and output in after.inputs:
                other = after.inputs[1 - after.inputs.index(output)]
                values = self.constant(other)
                if values is not None and values.shape in shapes:
                    self._skipped.add(after.name)
                    self.joined[node.name] = after
                    return values.reshape(-1)
        return None

    def build(self, rules: dict[str, Rule]) -> fx.GraphModule:
        """Convert all nodes."""
        for value in self.model.inputs:
            self.nodes[value.name] = self.net.input(value.name)
        for node in self.model.nodes:
            if node.name in self._skipped:
                continue
            rule = rules.get(node.operator) if node.domain in ("", "ai.onnx") else None
            if rule is None:
                raise ModelError(
                    f"layer '{node.name}': the float operator {node.operator} is not supported; "
                    "export the model from PyTorch as .pt2, or quantize it before"
                )
            try:
                made = rule(self, node)
            except DAMAGES as error:
                raise contradiction(node.name, node.operator, error) from error
            outputs = self.joined[node.name].outputs if node.name in self.joined else node.outputs
            results = made if isinstance(made, tuple) else (made,)
            self.nodes |= dict(zip(outputs, results, strict=False))
        module = self.net.finish([self.node(name) for name in self.model.outputs])
        known = {
            node: self.model.values[name].shape
            for name, node in self.nodes.items()
            if name in self.model.values
        }
        return tried(module, [(one.dtype, one.shape) for one in self.model.inputs], known)


def _dtype(name: str) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, np.dtype(name))).dtype


def from_onnx(model: OnnxModel) -> fx.GraphModule:
    """The module of a float model.

    Raises:
        ModelError: an operator, or a form of one, that has no counterpart here.
    """
    for name, values in model.constants.items():
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ModelError(f"model {model.name}: constant '{name}' has NaN")
    for value in model.inputs:
        if value.dtype in ("float16", "float64", "bfloat16"):
            raise ModelError(
                f"input '{value.name}' of model {model.name} is {value.dtype}, where float32 is "
                "supported; convert the model to float32"
            )
    return OnnxGraph(model).build(operators())


def operators() -> dict[str, Rule]:
    """The operators that are converted: rules of all modules in the folder."""
    found: dict[str, Rule] = {}
    for module in modules_in(onnx_operators.__name__):
        found |= module.RULES
    return found
