"""A float `TfliteModel` as a module of PyTorch.

What comes in: the model, whose images are (n, h, w, c). What goes out: an `fx.GraphModule` with the
same inputs and outputs, whose inner images are (n, c, h, w). It must not know single operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn

from accelsim.discovery import modules_in
from accelsim.errors import ModelError
from accelsim.importer.floats import tflite_operators
from accelsim.importer.floats.network import Network
from accelsim.importer.floats.trial import DAMAGES, contradiction, tried
from accelsim.importer.tflite.model import TfliteModel, TfliteOperator

Array = NDArray[Any]
Rule = Callable[["TfliteGraph", TfliteOperator], None]
TO_IMAGE, FROM_IMAGE = (0, 3, 1, 2), (0, 2, 3, 1)


class TfliteGraph:
    """State of one conversion: each tensor in the file's layout, as an image, or as both."""

    def __init__(self, model: TfliteModel) -> None:
        self.model = model
        self.net = Network()
        self._plain: dict[int, fx.Node] = {}
        self._images: dict[int, fx.Node] = {}

    def plain(self, index: int) -> fx.Node:
        """A tensor in the file's layout, a constant included."""
        tensor = self.model.tensors[index]
        if tensor.values is not None:
            return self.net.constant(tensor.values)
        if index not in self._plain:
            name = f"{tensor.name}/to_nhwc"
            self._plain[index] = self.net.call(name, torch.permute, self._images[index], FROM_IMAGE)
        return self._plain[index]

    def image(self, index: int) -> fx.Node:
        """A tensor of four axes as (n, c, h, w)."""
        if index not in self._images:
            name = f"{self.model.tensors[index].name}/to_nchw"
            self._images[index] = self.net.call(name, torch.permute, self.plain(index), TO_IMAGE)
        return self._images[index]

    def put(self, operator: TfliteOperator, result: fx.Node, image: bool = False) -> None:
        """An operator's result, with its fused activation behind it."""
        kind = int(str(operator.options.get("activation", 0)))
        if kind:
            if kind not in ACTIVATIONS:
                raise self.wrong(operator, f"has the fused activation {kind}")
            result = self.net.module(f"{operator.name}/activation", ACTIVATIONS[kind](), result)
        (self._images if image else self._plain)[operator.outputs[0]] = result

    def as_image(self, index: int) -> bool:
        """Whether a tensor exists as an image and not in the file's layout."""
        return index in self._images and index not in self._plain

    def constant(self, operator: TfliteOperator, place: int) -> Array | None:
        """Values of an input that must be constant; None where it is left out."""
        if place >= len(operator.inputs) or operator.inputs[place] < 0:
            return None
        values = self.model.tensors[operator.inputs[place]].values
        if values is None:
            raise self.wrong(operator, f"computes its input {place} at run time")
        return values

    def shape(self, index: int) -> tuple[int, ...]:
        """Extents in the file's layout."""
        return self.model.tensors[index].shape

    def wrong(self, operator: TfliteOperator, what: str) -> ModelError:
        """A refusal that names the layer."""
        return ModelError(f"layer '{operator.name}' ({operator.op}) {what}, which is not supported")

    def build(self, rules: dict[str, Rule]) -> fx.GraphModule:
        """Convert all operators."""
        for index in self.model.inputs:
            self._plain[index] = self.net.input(self.model.tensors[index].name)
        for operator in self.model.operators:
            if operator.op not in rules:
                raise ModelError(
                    f"layer '{operator.name}': the float operator {operator.op} is not supported; "
                    "quantize the model with TensorFlow Lite's converter"
                )
            try:
                rules[operator.op](self, operator)
            except DAMAGES as error:
                raise contradiction(operator.name, operator.op, error) from error
        module = self.net.finish([self.plain(index) for index in self.model.outputs])
        known = {node: self.shape(index) for index, node in self._plain.items()}
        for index, node in self._images.items():
            shape = self.shape(index)
            if len(shape) != len(TO_IMAGE):
                name = self.model.tensors[index].name
                raise ModelError(
                    f"tensor '{name}' of model {self.model.name} has the shape {shape} where its "
                    "operator gives four axes; convert the model again"
                )
            known[node] = tuple(shape[axis] for axis in TO_IMAGE)
        tensors = [self.model.tensors[index] for index in self.model.inputs]
        return tried(module, [(one.dtype, one.shape) for one in tensors], known)


ACTIVATIONS: dict[int, Callable[[], nn.Module]] = {
    1: nn.ReLU,
    2: lambda: nn.Hardtanh(-1.0, 1.0),
    3: nn.ReLU6,
    4: nn.Tanh,
}
"""By number in TensorFlow Lite's schema."""


def from_tflite(model: TfliteModel) -> fx.GraphModule:
    """The module of a float model.

    Raises:
        ModelError: an operator, or a form of one, that has no counterpart here.
    """
    for tensor in model.tensors:
        values = tensor.values
        if values is not None and values.dtype.kind == "f" and np.isnan(values).any():
            raise ModelError(f"model {model.name}: constant '{tensor.name}' has NaN")
    return TfliteGraph(model).build(_rules())


def _rules() -> dict[str, Rule]:
    """Rules of all modules in the folder, by operator."""
    found: dict[str, Rule] = {}
    for module in modules_in(tflite_operators.__name__):
        found |= module.RULES
    return found
