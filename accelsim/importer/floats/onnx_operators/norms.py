"""Normalizations and softmax.

What comes in: a node with constant gains and offsets. What goes out: modules of PyTorch, or
functions where there is none.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import filled, tensor

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode


def _constants(graph: OnnxGraph, node: OnnxNode, places: range) -> list[np.ndarray]:
    """Gains, offsets and statistics, which must be constants."""
    found = [graph.constant(node.input(place)) for place in places if node.input(place)]
    if len(found) != len(places) or any(one is None for one in found):
        raise graph.wrong(node, "computes its gains, offsets or statistics")
    return [np.asarray(one, np.float32) for one in found]


def _epsilon(node: OnnxNode) -> float:
    return float(node.attributes.get("epsilon", 1e-5))


def batch_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """BatchNormalization with constant statistics."""
    if node.attributes.get("training_mode", 0) or not node.attributes.get("spatial", 1):
        raise graph.wrong(node, "computes its statistics, or has them for each element")
    scale, bias, mean, variance = _constants(graph, node, range(1, 5))
    rank = len(graph.shape(node.input(0)))
    kind: Any = {4: nn.BatchNorm2d, 5: nn.BatchNorm3d}.get(rank, nn.BatchNorm1d)
    layer = kind(len(mean), eps=_epsilon(node))
    layer.running_mean, layer.running_var = tensor(mean), tensor(variance)
    return graph.net.module(node.name, filled(layer, scale, bias), graph.node(node.input(0)))


def instance_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """InstanceNormalization."""
    scale, bias = _constants(graph, node, range(1, 3))
    rank = len(graph.shape(node.input(0)))
    kinds: dict[int, Any] = {3: nn.InstanceNorm1d, 4: nn.InstanceNorm2d, 5: nn.InstanceNorm3d}
    if rank not in kinds:
        raise graph.wrong(node, f"has a tensor of {rank} axes")
    layer = kinds[rank](len(scale), eps=_epsilon(node), affine=True)
    return graph.net.module(node.name, filled(layer, scale, bias), graph.node(node.input(0)))


def group_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GroupNormalization; before opset 21 gains belong to groups and not to channels."""
    scale, bias = _constants(graph, node, range(1, 3))
    channels = graph.shape(node.input(0))[1]
    groups = int(node.attributes["num_groups"])
    if scale.size != channels:
        scale, bias = (np.repeat(one, channels // groups) for one in (scale, bias))
    layer = nn.GroupNorm(groups, channels, eps=_epsilon(node))
    return graph.net.module(node.name, filled(layer, scale, bias), graph.node(node.input(0)))


def layer_norm(graph: OnnxGraph, node: OnnxNode) -> Any:
    """LayerNormalization over the last axes; mean and reciprocal deviation where they are read."""
    shape, net = graph.shape(node.input(0)), graph.net
    axis = int(node.attributes.get("axis", -1)) % len(shape)
    scale = _constants(graph, node, range(1, 2))[0]
    bias = _constants(graph, node, range(2, 3))[0] if node.input(2) else np.zeros(1, np.float32)
    layer = nn.LayerNorm(shape[axis:], eps=_epsilon(node))
    gains, offsets = (np.broadcast_to(one, shape[axis:]) for one in (scale, bias))
    filled(layer, gains, None)
    layer.bias = nn.Parameter(tensor(offsets))
    x = graph.node(node.input(0))
    result = net.module(node.name, layer, x)
    if not any(name and graph.uses[name] for name in node.outputs[1:]):
        return result
    axes = tuple(range(axis, len(shape)))
    mean = net.call(f"{node.name}/mean", torch.mean, x, dim=axes, keepdim=True)
    centred = net.call(f"{node.name}/centre", operator.sub, x, mean)
    square = net.call(f"{node.name}/square", operator.mul, centred, centred)
    variance = net.call(f"{node.name}/variance", torch.mean, square, dim=axes, keepdim=True)
    raised = net.call(f"{node.name}/epsilon", operator.add, variance, _epsilon(node))
    return result, mean, net.call(f"{node.name}/rsqrt", torch.rsqrt, raised)


def rms_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """RMSNormalization over the last axes."""
    shape = graph.shape(node.input(0))
    axis = int(node.attributes.get("axis", -1)) % len(shape)
    scale = _constants(graph, node, range(1, 2))[0]
    layer = nn.RMSNorm(shape[axis:], eps=_epsilon(node))
    gains = np.broadcast_to(scale, shape[axis:])
    return graph.net.module(node.name, filled(layer, gains, None), graph.node(node.input(0)))


def mean_variance(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """MeanVarianceNormalization: (x - mean) / (deviation + 1e-9)."""
    net, x, name = graph.net, graph.node(node.input(0)), node.name
    rank = len(graph.shape(node.input(0)))
    axes = tuple(int(axis) % rank for axis in node.attributes.get("axes", (0, 2, 3)))
    mean = net.call(f"{name}/mean", torch.mean, x, dim=axes, keepdim=True)
    centred = net.call(f"{name}/centre", operator.sub, x, mean)
    square = net.call(f"{name}/square", operator.mul, centred, centred)
    variance = net.call(f"{name}/variance", torch.mean, square, dim=axes, keepdim=True)
    deviation = net.call(f"{name}/deviation", torch.sqrt, variance)
    raised = net.call(f"{name}/epsilon", operator.add, deviation, 1e-9)
    return net.call(name, operator.truediv, centred, raised)


def unit_length(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """LpNormalization of an axis; where all elements are 0, they stay so."""
    net, x, name = graph.net, graph.node(node.input(0)), node.name
    rank, order = len(graph.shape(node.input(0))), int(node.attributes.get("p", 2))
    axis = int(node.attributes.get("axis", -1)) % rank
    if order not in (1, 2):
        raise graph.wrong(node, f"has the order {order}")
    each = (
        net.call(f"{name}/abs", torch.abs, x)
        if order == 1
        else net.call(f"{name}/square", operator.mul, x, x)
    )
    total = net.call(f"{name}/sum", torch.sum, each, dim=(axis,), keepdim=True)
    length = total if order == 1 else net.call(f"{name}/sqrt", torch.sqrt, total)
    above = net.call(f"{name}/above", torch.clamp, length, 1e-30, None)
    return net.call(name, operator.truediv, x, above)


def across_channels(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """LRN over an odd number of channels."""
    named = node.attributes
    size = int(named["size"])
    if size % 2 == 0:
        raise graph.wrong(node, f"goes over {size} channels, which have no middle")
    numbers = (float(named.get(k, d)) for k, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    layer = nn.LocalResponseNorm(size, *numbers)
    return graph.net.module(node.name, layer, graph.node(node.input(0)))


def softmax(kind: Any) -> Any:
    """A rule over one axis; before opset 13 it meant all axes from the given one on."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        shape, x = graph.shape(node.input(0)), graph.node(node.input(0))
        old = graph.model.opsets.get("", 13) < 13
        axis = int(node.attributes.get("axis", 1 if old else -1))
        axis = axis % len(shape) if axis != len(shape) else axis
        if not old or axis == len(shape) - 1:
            return graph.net.module(node.name, kind(axis), x)
        rows = (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
        flat = graph.net.call(f"{node.name}/rows", torch.reshape, x, rows)
        result = graph.net.module(node.name, kind(1), flat)
        return graph.net.call(f"{node.name}/reshape", torch.reshape, result, shape)

    return rule


RULES: dict[str, Any] = {
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "MeanVarianceNormalization": mean_variance,
    "LpNormalization": unit_length,
    "LRN": across_channels,
    "Softmax": softmax(nn.Softmax),
    "LogSoftmax": softmax(nn.LogSoftmax),
}
