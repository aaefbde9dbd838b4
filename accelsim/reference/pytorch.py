"""PyTorch's own int8 kernels as a golden, on the qnnpack engine.

What comes in: a `QuantizedModel` and the `Network` read from its QDQ module. What goes out: golden
sets. It must not know how TVM, the simulator or the RTL compute the same layers.

Accumulated, the whole FX network runs from float inputs. Isolated, one layer's own fused kernel
runs on given integers, for instance a `ConvReLU2d` module or `torch.ops.quantized.add`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from accelsim.artifacts import I8, QuantizedModel
from accelsim.errors import InputError, ModelError, ToolError
from accelsim.quantize import qnnpack_engine, torch_layer_outputs, torch_layers
from accelsim.reference.boundary import from_nhwc, on_levels, quantize_inputs, to_nhwc
from accelsim.reference.golden import GoldenSet
from accelsim.reference.network import Network, QuantizedTensor, ReferenceLayer
from accelsim.reference.operators import is_trusted
from accelsim.reference.selfcheck import check_qnnpack
from accelsim.reference.torch_layer import run_kernel, torch_kernel
from accelsim.reference.torch_tensor import quantized_tensor

_ABSENT = "PyTorch has no single kernel of this form, and the model came without an int8 network"


@dataclass(frozen=True, slots=True)
class TorchGolden:
    """The FX int8 network, with the node that produces each tensor of `network`."""

    quantized: QuantizedModel
    network: Network
    nodes: Mapping[str, fx.Node]

    def missing(self) -> dict[str, str]:
        """Layers without a PyTorch kernel, and why."""
        reason = "PyTorch's int8 network has no such layer" if self._network_given else _ABSENT
        return {one.output: reason for one in self.network.layers if not self.covers(one.name)}

    @property
    def _network_given(self) -> bool:
        return self.quantized.torch_int8 is not None

    def covers(self, name: str) -> bool:
        """Whether a layer has a PyTorch kernel: its node, or one built from the QDQ module."""
        layer = self.network.layer(name)
        if self._network_given:
            return layer.output in self.nodes
        return torch_kernel(self.network, layer, self.quantized.rounding) is not None

    def runs(self, name: str) -> bool:
        """Whether a quantized kernel of the layer runs on given integers, as the layer means it."""
        layer = self.network.layer(name)
        if not is_trusted(self.network, layer, self.quantized.rounding):
            return False
        if not self._network_given or any(source not in self.nodes for source in layer.inputs):
            return torch_kernel(self.network, layer, self.quantized.rounding) is not None
        return self.covers(name)

    def accumulated(self, inputs: Mapping[str, np.ndarray]) -> GoldenSet:
        """Every layer of the whole network, from float inputs by name. Gates nothing.

        PyTorch's own quantize adds the zero point before it rounds, where the exported graph adds
        it after, so inputs are put on their own levels first, which both find again.
        """
        inputs = {**inputs, **on_levels(self.network, inputs)}
        ordered = []
        signature = zip(self.quantized.input_names, self.quantized.input_dtypes, strict=True)
        for name, dtype in signature:
            if name not in inputs:
                raise InputError(f"input '{name}' is missing")
            ordered.append(np.asarray(inputs[name], dtype=dtype))
        if not self._network_given:
            return GoldenSet(
                "torch", "accumulated", False, self._by_kernels(inputs), self.missing()
            )
        with torch.no_grad():
            stored = torch_layer_outputs(self.quantized, tuple(ordered))
        tensors = {
            layer.output: to_nhwc(stored[layer.output], self.network.tensors[layer.output])
            for layer in self.network.layers
            if layer.output in stored
        }
        return GoldenSet("torch", "accumulated", False, tensors, self.missing())

    def isolated(self, values: Mapping[str, I8]) -> GoldenSet:
        """Each layer's kernel on the given tensors, int8 (n, h, w, c) by name. Gates."""
        tensors = {
            layer.output: self.run_layer(layer.name, tuple(values[name] for name in layer.inputs))
            for layer in self.network.layers
            if self.covers(layer.name)
        }
        return GoldenSet("torch", "isolated", True, tensors, self.missing())

    def run_layer(self, name: str, inputs: tuple[I8, ...]) -> I8:
        """One layer's own quantized kernel on int8 (n, h, w, c) inputs."""
        layer = self.network.layer(name)
        if not self.covers(name) and not self.runs(name):
            raise ModelError(
                f"layer '{name}' has no PyTorch golden: {self.missing()[layer.output]}"
            )
        # A source without a node comes from a float operator of PyTorch's network.
        nodes = (*layer.inputs, layer.output)
        if not self._network_given or any(tensor not in self.nodes for tensor in nodes):
            return self._run_kernel(layer, inputs)
        known = {
            self.nodes[source]: _quantized(value, self.network.tensors[source])
            for source, value in zip(layer.inputs, inputs, strict=True)
        }
        node = self.nodes[layer.output]
        shapes = {one: self.network.tensors[name].shape for name, one in self.nodes.items()}
        asked = (one for one in node.graph.nodes if one.op == "placeholder")
        shapes |= dict(zip(asked, self.quantized.input_shapes, strict=False))
        known |= _shape_queries(node.graph, shapes)
        try:
            with qnnpack_engine(), torch.no_grad():
                result = _evaluate(self.quantized.torch_int8, node, known)
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise ToolError(f"PyTorch's kernel of layer '{name}' failed: {first}") from error
        return to_nhwc(result.int_repr().numpy(), self.network.tensors[layer.output])

    def _run_kernel(self, layer: ReferenceLayer, inputs: tuple[I8, ...]) -> I8:
        try:
            with qnnpack_engine(), torch.no_grad():
                return run_kernel(self.network, layer, inputs, self.quantized.rounding)
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise ToolError(f"PyTorch's kernel of layer '{layer.name}' failed: {first}") from error

    def _by_kernels(self, inputs: Mapping[str, np.ndarray]) -> dict[str, I8]:
        """Every layer by its own kernel, as far as all before it have one."""
        values = dict(quantize_inputs(self.network, inputs))
        for layer in self.network.layers:
            if self.covers(layer.name) and all(name in values for name in layer.inputs):
                values[layer.output] = self._run_kernel(
                    layer, tuple(values[name] for name in layer.inputs)
                )
        return {x.output: values[x.output] for x in self.network.layers if x.output in values}


def build_torch(quantized: QuantizedModel, network: Network) -> TorchGolden:
    """Pair the network's tensors with PyTorch's nodes, after checking the engine itself.

    `ToolError` where the engine deviates from its exact definition on this machine.
    """
    check_qnnpack()
    if quantized.torch_int8 is None:
        return TorchGolden(quantized, network, {})
    return TorchGolden(quantized, network, torch_layers(quantized))


def _quantized(value: I8, tensor: QuantizedTensor) -> Any:
    """A quantized tensor in PyTorch's layout from int8 (n, h, w, c)."""
    zero_point = tensor.zero_point + tensor.offset
    return quantized_tensor(from_nhwc(value, tensor), tensor.scale, zero_point)


def _shape_queries(
    graph: fx.Graph, shapes: Mapping[fx.Node, tuple[int, ...]]
) -> dict[fx.Node, Any]:
    """Nodes that ask a tensor of known shape for it, which no layer's inputs tell."""
    found: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        of_method = node.op == "call_method" and node.target == "size"
        of_attribute = node.target is getattr and node.args[1:] == ("shape",)
        if (of_method or of_attribute) and node.args[0] in shapes:
            shape = torch.Size(shapes[node.args[0]])
            found[node] = shape[node.args[1]] if of_method and len(node.args) > 1 else shape
    return found


def _evaluate(module: Any, node: fx.Node, known: dict[fx.Node, Any]) -> Any:
    """The value of one node from known ones; constants of the graph are looked up."""
    if node in known:
        return known[node]
    if node.op == "placeholder":
        raise ModelError(f"node '{node.name}' is needed but is no input of the layer")
    if node.op == "get_attr":
        owner, _, attribute = str(node.target).rpartition(".")
        return getattr(module.get_submodule(owner), attribute)
    arguments = fx.map_arg(node.args, lambda one: _evaluate(module, one, known))
    keywords = fx.map_arg(node.kwargs, lambda one: _evaluate(module, one, known))
    if node.op == "call_module":
        return module.get_submodule(str(node.target))(*arguments, **keywords)
    if node.op == "call_method":
        owner_value, *rest = arguments
        return getattr(owner_value, str(node.target))(*rest, **keywords)
    return node.target(*arguments, **keywords)  # type: ignore[operator]
