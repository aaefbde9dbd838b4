"""PyTorch's float kernels of one layer, between the dequantize and the quantize of the export.

What comes in: a `QuantizedModel` with its exported program, and a layer's integer inputs. What goes
out: its real results, in float32 as PyTorch computes them or in float64, and their quantization.
It must not know how TVM, the simulator or the RTL compute the same layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from accelsim.artifacts import I8, QuantizedModel
from accelsim.quantize import span_name
from accelsim.quantize.names import is_activation_quantize, is_dequantize
from accelsim.reference.boundary import from_nhwc, to_nhwc
from accelsim.reference.network import Network, ReferenceLayer


@dataclass(frozen=True, slots=True)
class ExportedGolden:
    """The exported graph as a module, and the quantize node of each tensor by its name."""

    module: fx.GraphModule | None
    nodes: Mapping[str, fx.Node]
    network: Network

    def covers(self, layer: ReferenceLayer) -> bool:
        """Whether the layer and its inputs are quantized in the exported graph."""
        return all(name in self.nodes for name in (layer.output, *layer.inputs))

    def run_layer(self, layer: ReferenceLayer, inputs: tuple[I8, ...]) -> I8:
        """The float32 results, quantized, int8 (n, h, w, c)."""
        node, tensor = self.nodes[layer.output], self.network.tensors[layer.output]
        value = self._evaluate(node.args[0], self._known(layer, inputs), torch.float32)
        run: Any = node.target
        with torch.no_grad():
            arguments = [self._evaluate(one, {}, torch.float32) for one in node.args[1:]]
            stored = run(value, *arguments)
        return to_nhwc(stored.numpy(), tensor)

    def steps(self, layer: ReferenceLayer, inputs: tuple[I8, ...]) -> np.ndarray:
        """The results of float64 kernels in output steps, limits not applied, (n, h, w, c)."""
        node, tensor = self.nodes[layer.output], self.network.tensors[layer.output]
        value = self._evaluate(node.args[0], self._known(layer, inputs), torch.float64)
        steps = value.numpy() / float(tensor.scale) + tensor.zero_point
        order = [a for a in range(steps.ndim) if a != tensor.axis] + [tensor.axis]
        return np.asarray(steps.transpose(order))

    def _known(self, layer: ReferenceLayer, inputs: tuple[I8, ...]) -> dict[fx.Node, Any]:
        return {
            self.nodes[name]: torch.from_numpy(from_nhwc(value, self.network.tensors[name]))
            for name, value in zip(layer.inputs, inputs, strict=True)
        }

    def _evaluate(self, node: Any, known: dict[fx.Node, Any], dtype: torch.dtype) -> Any:
        """A node's value from known ones, with float operands of `dtype`."""
        if not isinstance(node, fx.Node) or node in known:
            return known[node] if isinstance(node, fx.Node) else node
        with torch.no_grad():
            if node.op == "get_attr":
                owner, _, name = str(node.target).rpartition(".")
                assert self.module is not None
                value = getattr(self.module.get_submodule(owner), name)
            else:
                arguments = fx.map_arg(node.args, lambda one: self._evaluate(one, known, dtype))
                named = fx.map_arg(node.kwargs, lambda one: self._evaluate(one, known, dtype))
                value = node.target(*arguments, **named)  # type: ignore[operator]
        real = isinstance(value, torch.Tensor) and value.is_floating_point()
        if real and (node.op == "get_attr" or is_dequantize(node)):
            value = value.to(dtype)
        known[node] = value
        return value


def build_exported(quantized: QuantizedModel, network: Network) -> ExportedGolden:
    """Pair tensors with the exported graph's nodes; without such a graph it covers nothing."""
    if not isinstance(quantized.exported, torch.export.ExportedProgram):
        return ExportedGolden(None, {}, network)
    module = quantized.exported.module()
    assert isinstance(module, fx.GraphModule)
    found = [
        node
        for node in module.graph.nodes
        if is_activation_quantize(node, lambda source: source.op == "get_attr")
    ]
    names = [
        span_name(binding.value)
        for block in quantized.qdq["main"].body.blocks
        for binding in block.bindings
        if str(getattr(getattr(binding.value, "op", None), "name", "")) == "relax.quantize"
    ]
    paired = len(found) == len(names)
    nodes = {str(name): node for name, node in zip(names, found, strict=False) if paired and name}
    return ExportedGolden(module, nodes, network)
