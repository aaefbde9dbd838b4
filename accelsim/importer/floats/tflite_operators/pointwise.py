"""Activations, operators of two tensors, softmax, moves and reductions.

What comes in: an operator. What goes out: modules and functions of PyTorch.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from accelsim.importer.floats.tflite_graph import TfliteGraph
    from accelsim.importer.tflite.model import TfliteOperator

CHANNELS = {0: 0, 1: 2, 2: 3, 3: 1}
"""Axis of (n, h, w, c) → axis of (n, c, h, w)."""


def module(make: Callable[[TfliteOperator], nn.Module]) -> Any:
    """A rule that calls a module on every element, in the layout that its input has."""

    def rule(graph: TfliteGraph, operator: TfliteOperator) -> None:
        source = operator.inputs[0]
        image = graph.as_image(source)
        x = graph.image(source) if image else graph.plain(source)
        graph.put(operator, graph.net.module(operator.name, make(operator), x), image)

    return rule


def binary(function: Callable[..., Any]) -> Any:
    """A rule of two tensors; a constant of one element becomes a number."""

    def rule(graph: TfliteGraph, operator: TfliteOperator) -> None:
        sources = operator.inputs
        if len(sources) != 2:
            raise graph.wrong(operator, f"has {len(sources)} inputs and not two")
        shapes = {graph.shape(index) for index in sources}
        image = len(shapes) == 1 and any(graph.as_image(index) for index in sources)
        operands: list[Any] = []
        for index in sources:
            values = graph.model.tensors[index].values
            if values is not None and values.size == 1:
                operands.append(float(values.item()))
                image = image or any(graph.as_image(one) for one in sources)
            else:
                operands.append(index)
        nodes = [
            one if isinstance(one, float) else graph.image(one) if image else graph.plain(one)
            for one in operands
        ]
        result = graph.net.call(operator.name, function, *nodes)
        graph.put(operator, result, image)

    return rule


def softmax(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """SOFTMAX over the last axis with a beta of 1."""
    if float(str(operator.options.get("beta", 1.0))) != 1.0:
        raise graph.wrong(operator, f"has the beta {operator.options['beta']}")
    x = graph.plain(operator.inputs[0])
    graph.put(operator, graph.net.module(operator.name, nn.Softmax(-1), x))


def reshape(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the shape is that of the result."""
    shape = graph.shape(operator.outputs[0])
    x = graph.plain(operator.inputs[0])
    graph.put(operator, graph.net.call(operator.name, torch.reshape, x, shape))


def transpose(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """TRANSPOSE."""
    order = graph.constant(operator, 1)
    places = tuple(int(one) for one in np.asarray(order).reshape(-1))
    x = graph.plain(operator.inputs[0])
    graph.put(operator, graph.net.call(operator.name, torch.permute, x, places))


def concat(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """CONCATENATION, of images where all are."""
    rank = len(graph.shape(operator.outputs[0]))
    axis = int(str(operator.options["axis"])) % rank
    image = rank == 4 and all(graph.as_image(index) for index in operator.inputs)
    parts = [graph.image(one) if image else graph.plain(one) for one in operator.inputs]
    axis = CHANNELS[axis] if image else axis
    graph.put(operator, graph.net.call(operator.name, torch.cat, parts, dim=axis), image)


def pad(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """PAD with zeros."""
    pads = graph.constant(operator, 1)
    x = graph.plain(operator.inputs[0])
    sides = [int(one) for row in reversed(np.asarray(pads).tolist()) for one in row]
    while len(sides) > 2 and not any(sides[-2:]):
        sides = sides[:-2]
    result = graph.net.call(operator.name, nn.functional.pad, x, sides)
    graph.put(operator, result)


def reduce(function: Callable[..., Any]) -> Any:
    """A rule of a reduction over constant axes."""

    def rule(graph: TfliteGraph, operator: TfliteOperator) -> None:
        source = operator.inputs[0]
        rank = len(graph.shape(source))
        axes = [int(one) % rank for one in np.asarray(graph.constant(operator, 1)).reshape(-1)]
        keep = bool(operator.options.get("keep_dims", 0))
        image = graph.as_image(source)
        x = graph.image(source) if image else graph.plain(source)
        chosen = tuple(CHANNELS[axis] if image else axis for axis in axes)
        result = graph.net.call(operator.name, function, x, dim=chosen, keepdim=keep)
        if image and not keep and set(axes) != {1, 2}:
            raise graph.wrong(operator, f"reduces the axes {axes} of an image")
        graph.put(operator, result, image and keep)

    return rule


RULES: dict[str, Any] = {
    "RELU": module(lambda _: nn.ReLU()),
    "RELU6": module(lambda _: nn.ReLU6()),
    "RELU_N1_TO_1": module(lambda _: nn.Hardtanh(-1.0, 1.0)),
    "LOGISTIC": module(lambda _: nn.Sigmoid()),
    "TANH": module(lambda _: nn.Tanh()),
    "HARD_SWISH": module(lambda _: nn.Hardswish()),
    "ELU": module(lambda _: nn.ELU()),
    "LEAKY_RELU": module(lambda one: nn.LeakyReLU(float(str(one.options["alpha"])))),
    "GELU": module(lambda one: nn.GELU("tanh" if one.options.get("approximate") else "none")),
    "ADD": binary(op.add),
    "SUB": binary(op.sub),
    "MUL": binary(op.mul),
    "DIV": binary(op.truediv),
    "MAXIMUM": binary(torch.maximum),
    "MINIMUM": binary(torch.minimum),
    "SOFTMAX": softmax,
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), reshape),
    "TRANSPOSE": transpose,
    "CONCATENATION": concat,
    "PAD": pad,
    "MEAN": reduce(torch.mean),
    "SUM": reduce(torch.sum),
    "REDUCE_MAX": reduce(torch.amax),
}
