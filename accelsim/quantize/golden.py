"""PyTorch's own int8 kernels as a golden, layer by layer.

What comes in: a `QuantizedModel` and inputs. What goes out: each layer's output as PyTorch's
qnnpack engine computes it. It must not know Relax."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from accelsim.artifacts import QuantizedModel
from accelsim.quantize.fx_graph import FxQuantized, qnnpack_engine
from accelsim.quantize.limits import limit_nodes, reference_limits
from accelsim.quantize.names import is_activation_quantize, operator_name

__all__ = ["label_layers", "qnnpack_engine", "relabel", "torch_layer_outputs", "torch_layers"]

_Key = tuple[tuple[int, ...], float, int]  # shape, scale, zero point

_KEY = "accelsim_layer"
_CLAMPS = frozenset({"hardtanh", "relu6", "clamp", "clip", "clamp_min", "clamp_max"})
_CLAMP_MODULES = frozenset({"ReLU6", "Hardtanh"})


class _Recorder(fx.Interpreter):
    """Runs a graph and keeps the value of every node."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node and keep its value."""
        self.values[n] = super().run_node(n)
        return self.values[n]


def record(module: fx.GraphModule, inputs: tuple[NDArray[Any], ...]) -> dict[fx.Node, Any]:
    """The value of every node of an int8 network, on the qnnpack engine."""
    recorder = _Recorder(module)
    with warnings.catch_warnings(), qnnpack_engine(), torch.no_grad():
        warnings.simplefilter("ignore")
        recorder.run(*(torch.from_numpy(np.ascontiguousarray(array)) for array in inputs))
    return recorder.values


def relabel(int8: fx.GraphModule, names: Mapping[str, str]) -> None:
    """Give labelled nodes other names, from the labels that they have."""
    for node in int8.graph.nodes:
        if node.meta.get(_KEY) in names:
            node.meta[_KEY] = names[node.meta[_KEY]]


def label_layers(quantized: FxQuantized, inputs: tuple[NDArray[Any], ...]) -> bool:
    """Write each layer's name into the metadata of the int8 graph's node that produces it.

    Both graphs come from one prepared graph in one order. A layer whose shape, scale or zero point
    differs between the two (PyTorch's addition of a number picks its own) gets no node: it has no
    PyTorch golden.

    Returns whether PyTorch can run its own int8 graph; no node is labelled where it cannot.
    """
    make_clamps_contiguous(quantized.int8)
    try:
        values = record(quantized.int8, inputs)
    except Exception:  # torch raises many kinds where it lacks a kernel
        return False
    expected_values = record(quantized.reference, inputs)
    nodes = [node for node in quantized.int8.graph.nodes if _is_layer_output(node, values)]
    expected = [
        node
        for node in quantized.reference.graph.nodes
        if is_activation_quantize(node, lambda source: source.op == "get_attr")
    ]
    keys = [_key(values[node]) for node in nodes]
    expected_keys = [_reference_key(node, expected_values) for node in expected]
    limits: dict[fx.Node, tuple[int, int]] = {}
    for position, name in enumerate(quantized.names.quantized):
        key = expected_keys[position]
        if len(keys) == len(expected_keys):
            match = position
        elif keys.count(key) == 1 and expected_keys.count(key) == 1:
            match = keys.index(key)
        else:
            continue
        if keys[match] == key:
            nodes[match].meta[_KEY] = name.name
            limits[nodes[match]] = reference_limits(expected[position])
    limit_nodes(quantized.int8, limits)
    return True


def label_nodes(names: Mapping[fx.Node, str]) -> None:
    """Write each layer's name into the metadata of the int8 network's node that produces it."""
    for node, name in names.items():
        node.meta[_KEY] = name


def _is_layer_output(node: fx.Node, values: dict[fx.Node, Any]) -> bool:
    """Whether a node computes a quantized tensor; reordering and quantized weights do not count."""
    value = values.get(node)
    constant = all(source.op == "get_attr" for source in node.all_input_nodes)
    computed = isinstance(value, torch.Tensor) and value.is_quantized and not constant
    return computed and node.target != "contiguous"


def _key(value: torch.Tensor) -> _Key:
    return tuple(value.shape), float(np.float32(value.q_scale())), int(value.q_zero_point())


def _reference_key(node: fx.Node, values: dict[fx.Node, Any]) -> _Key:
    arguments: list[Any] = list(node.args)
    scale, zero = (values[a] if isinstance(a, fx.Node) else a for a in arguments[1:3])
    return tuple(values[node].shape), float(np.float32(float(scale))), int(zero)


def make_clamps_contiguous(module: fx.GraphModule) -> None:
    """Give every clamp a contiguous input.

    PyTorch's qnnpack clamp labels the result of a channels-last input as contiguous without moving
    the data, so its values come out permuted. Convolutions return channels-last.
    """
    for node in list(module.graph.nodes):
        kind = operator_name(node.target)
        if node.op == "call_module":
            kind = type(module.get_submodule(str(node.target))).__name__
        if node.op in ("call_module", "call_function", "call_method") and (
            kind in _CLAMPS or kind in _CLAMP_MODULES
        ):
            with module.graph.inserting_before(node):
                ordered = module.graph.call_method("contiguous", (node.args[0],))
            node.args = (ordered, *node.args[1:])
    module.recompile()


def torch_layers(model: QuantizedModel) -> dict[str, fx.Node]:
    """Layer name (or model input name) → node of `torch_int8` whose value is that layer's output.

    Empty where the model has no PyTorch golden.
    """
    if model.torch_int8 is None:
        return {}
    nodes = model.torch_int8.graph.nodes
    return {node.meta[_KEY]: node for node in nodes if _KEY in node.meta}


def torch_layer_outputs(
    model: QuantizedModel, inputs: tuple[NDArray[Any], ...]
) -> dict[str, NDArray[np.uint8]]:
    """Run PyTorch's int8 network from float inputs.

    Returns:
        Layer name → its quantized output in PyTorch's layout and quint8 domain; the quantized model
        inputs are included under their own names.
    """
    if model.torch_int8 is None:
        return {}
    values = record(model.torch_int8, inputs)
    layers = torch_layers(model)
    return {name: values[node].int_repr().numpy() for name, node in layers.items()}
