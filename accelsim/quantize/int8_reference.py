"""PyTorch's int8 network as quantize and dequantize around float operators.

What comes in: a traced int8 module, the user's names of its nodes and one input. What goes out: a
GraphModule of quantized_decomposed operators that torch.export takes, with every quantized value of
the int8 network as one quantize node. It must not know Relax.

Scales and zero points are those of the values themselves, weights those that were packed. The
limits are the dtype's: that is what PyTorch's kernels clamp to, whatever the observers meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from torch import fx, nn

from accelsim.errors import ModelError
from accelsim.quantize.int8_modules import packed_of, packed_weights
from accelsim.quantize.int8_operators import Emit, float_function, float_module
from accelsim.quantize.names import operator_name

_OPS: Any = torch.ops.quantized_decomposed
_DTYPES = {
    torch.quint8: (0, 255, torch.uint8),
    torch.qint8: (-128, 127, torch.int8),
}


@dataclass(frozen=True, slots=True)
class Int8Reference:
    """The network around float operators, and which of its nodes is which of the int8 graph."""

    module: fx.GraphModule
    quantized: dict[fx.Node, fx.Node]  # quantize node → node of the int8 graph


def int8_reference(
    traced: fx.GraphModule,
    names: dict[str, list[str]],
    values: dict[fx.Node, Any],
    model: str,
) -> Int8Reference:
    """Write the reference of an int8 graph.

    Args:
        traced: from `trace_int8`.
        names: the user's names of each node, its own first.
        values: what each node computed for an example.
        model: the user's name of the model, for errors.

    Raises:
        ModelError: an operator without float form, a scale that is none, or a dtype that is not
            8-bit.
    """
    writer = _Writer(traced, names, values, model)
    for node in traced.graph.nodes:
        writer.write(node)
    return Int8Reference(fx.GraphModule(writer.root, writer.graph).eval(), writer.quantized)


class _Writer:
    """Writes the new graph node by node."""

    def __init__(
        self,
        traced: fx.GraphModule,
        names: dict[str, list[str]],
        values: dict[fx.Node, Any],
        model: str,
    ) -> None:
        self.root = nn.Module()
        self.graph = fx.Graph()
        self.quantized: dict[fx.Node, fx.Node] = {}
        self._traced, self._names, self._values, self._model = traced, names, values, model
        self._new: dict[fx.Node, fx.Node] = {}
        self._qparams: dict[fx.Node, tuple[Any, ...]] = {}  # of new nodes that hold integers
        self._constants = 0

    def write(self, node: fx.Node) -> None:
        """Write what stands for one node of the int8 graph."""
        value = self._values.get(node)
        if node.op == "placeholder":
            self._new[node] = self.graph.placeholder(node.name)
        elif node.op == "output":
            self.graph.output(fx.map_arg(node.args[0], self._float))
        elif node.op == "get_attr":
            if isinstance(value, torch.Tensor) and not value.is_quantized:
                self._new[node] = self._constant(value)
        elif isinstance(value, torch.Tensor) and value.is_quantized:
            self._write_quantized(node, value)
        else:
            self._new[node] = self._host(node)

    def _write_quantized(self, node: fx.Node, value: torch.Tensor) -> None:
        first: Any = node.args[0] if node.args else None
        qparams = self._checked_qparams(node, value)
        if _quantizes(self._traced, node):
            computed = self._float(first)
        elif _only_moves(self._traced, node) and first in self._new:
            self._new[node] = self._new[first]  # the same integers: nothing to compute
            self._qparams[node] = self._qparams[first]
            return
        else:
            computed = self._operator(node)
        made = self.graph.call_function(_OPS.quantize_per_tensor.default, (computed, *qparams))
        self._new[node], self._qparams[node], self.quantized[made] = made, qparams, node

    def _checked_qparams(self, node: fx.Node, value: torch.Tensor) -> tuple[Any, ...]:
        name = self._names.get(node.name, [node.name])[0]
        if value.dtype not in _DTYPES:
            kind = str(value.dtype).removeprefix("torch.")
            raise ModelError(f"layer '{name}' of {self._model} is {kind}; use quint8 or qint8")
        if value.qscheme() != torch.per_tensor_affine:
            raise ModelError(f"layer '{name}' of {self._model} has activations per channel")
        low, high, dtype = _DTYPES[value.dtype]
        scale = float(torch.tensor(value.q_scale(), dtype=torch.float32))
        return scale, int(value.q_zero_point()), low, high, dtype

    def _operator(self, node: fx.Node) -> fx.Node:
        """The float operators of one quantized kernel."""
        own = self._names.get(node.name, [node.name])
        before = len(self.graph.nodes)
        emit = Emit(self.graph, self._float, self._weight, self._constant, self._module)
        weights = packed_weights(self._traced, node)
        if node.op == "call_module":
            layer = self._traced.get_submodule(str(node.target))
            made = float_module(emit, node, layer, weights)
        else:
            packed = packed_of(self._traced, node) if weights is not None else None
            made = float_function(emit, node, weights, packed)
        if made is None:
            kind = operator_name(node.target)
            if node.op == "call_module":
                kind = type(self._traced.get_submodule(str(node.target))).__name__
            raise ModelError(
                f"layer '{own[0]}' of {self._model} is a quantized {kind}, which has no float form"
            )
        for number, one in enumerate(self.graph.nodes):
            if number >= before and one.op in ("call_module", "call_function", "call_method"):
                one.meta["user_names"] = own
        return made

    def _host(self, node: fx.Node) -> fx.Node:
        """A node with a float or no tensor as result: the same on dequantized operands."""
        dequantizes = node.op == "call_method" and node.target == "dequantize"
        if node.op == "call_module":
            layer = self._traced.get_submodule(str(node.target))
            dequantizes = type(layer).__name__ == "DeQuantize"
        if dequantizes:
            source: fx.Node = self._float(node.args[0])
            return source
        made = self._module(node) if node.op == "call_module" else None
        if made is None:
            made = self.graph.create_node(
                node.op,
                node.target,
                fx.map_arg(node.args, self._float),
                fx.map_arg(node.kwargs, self._float),
            )
        made.meta["user_names"] = self._names.get(node.name, [node.name])
        return made

    def _module(self, node: fx.Node) -> fx.Node:
        """A call of the int8 graph's own module on dequantized operands."""
        path = str(node.target)
        outer: nn.Module = self.root
        *folders, last = path.split(".")
        for folder in folders:
            if not isinstance(getattr(outer, folder, None), nn.Module):
                outer.add_module(folder, nn.Module())
            outer = outer.get_submodule(folder)
        outer.add_module(last, self._traced.get_submodule(path))
        return self.graph.call_module(
            path, fx.map_arg(node.args, self._float), fx.map_arg(node.kwargs, self._float)
        )

    def _float(self, node: Any) -> Any:
        """The float value of a node of the int8 graph; quantized ones through a dequantize."""
        if not isinstance(node, fx.Node):
            return node
        if node not in self._new:
            raise ModelError(
                f"'{node.target}' of {self._model} is used in a way that has no float form"
            )
        if node not in self._qparams:
            return self._new[node]
        arguments = (self._new[node], *self._qparams[node])
        return self.graph.call_function(_OPS.dequantize_per_tensor.default, arguments)

    def _constant(self, value: torch.Tensor) -> fx.Node:
        name = f"constant_{self._constants}"
        self._constants += 1
        self.root.register_buffer(name, value.detach().clone())
        return self.graph.get_attr(name)

    def _weight(self, weight: torch.Tensor) -> fx.Node:
        """A packed weight as integers behind a dequantize."""
        low, high, dtype = _DTYPES[weight.dtype]
        integers = self._constant(weight.int_repr())
        if weight.qscheme() == torch.per_tensor_affine:
            scale, zero = float(torch.tensor(weight.q_scale())), int(weight.q_zero_point())
            return self.graph.call_function(
                _OPS.dequantize_per_tensor.default, (integers, scale, zero, low, high, dtype)
            )
        scales = self._constant(weight.q_per_channel_scales().to(torch.float32))
        zeros = self._constant(weight.q_per_channel_zero_points().to(torch.int64))
        axis = int(weight.q_per_channel_axis())
        return self.graph.call_function(
            _OPS.dequantize_per_channel.default,
            (integers, scales, zeros, axis, low, high, dtype),
        )


def _quantizes(traced: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return type(traced.get_submodule(str(node.target))).__name__ == "Quantize"
    return node.op == "call_function" and operator_name(node.target) == "quantize_per_tensor"


def _only_moves(traced: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node changes nothing but how a tensor lies in memory."""
    return node.op == "call_method" and node.target in ("contiguous", "clone", "detach")
