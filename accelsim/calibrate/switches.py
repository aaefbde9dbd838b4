"""The quantized reference graph with a switch for each layer: quantized, or in float.

What comes in: an `FxQuantized`. What goes out: its outputs, and what each layer gives, with any
choice of layers quantized. It must not know what the choice is for.

A layer's switch turns the rounding of its weights and of its output; that of a model input is a row
of its own. Everything off is the float network with batch norm folded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from accelsim.quantize.fx_graph import FxQuantized
from accelsim.quantize.names import is_activation_quantize, is_dequantize, is_quantize


@dataclass(frozen=True, slots=True)
class SwitchedLayer:
    """One layer of the reference graph: what rounds its weights and its output."""

    name: str
    members: tuple[str, ...]  # empty for a model input
    quantize: fx.Node | None  # of its output; None behind the last one
    modules: tuple[nn.Module, ...]  # reference modules that hold quantized weights
    weights: tuple[fx.Node, ...]  # quantize nodes of weights of functions
    target: str  # fx target of the module that holds the weights, "" where there is none

    @property
    def weighty(self) -> bool:
        """Whether it has weights that are quantized."""
        return bool(self.modules or self.weights)


def switched_layers(quantized: FxQuantized) -> tuple[SwitchedLayer, ...]:
    """All layers in order, model inputs included."""
    graph, names = quantized.reference.graph, quantized.names
    ends = [node for node in graph.nodes if is_activation_quantize(node, _is_stored)]
    seen: set[fx.Node] = set()
    layers = []
    for node, name in zip(ends, names.quantized, strict=True):
        layers.append(_layer(quantized.reference, node, node, name.name, name.members, seen))
    if names.tail is not None:
        end = next(node for node in graph.nodes if node.op == "output")
        tail = names.tail
        layers.append(_layer(quantized.reference, end, None, tail.name, tail.members, seen))
    return tuple(layers)


class Switchboard(fx.Interpreter):
    """Runs the reference graph with some layers quantized."""

    def __init__(self, quantized: FxQuantized, layers: tuple[SwitchedLayer, ...]) -> None:
        super().__init__(quantized.reference)
        self._layers = layers
        self._off: frozenset[fx.Node] = frozenset()
        self._ends = {layer.quantize: layer.name for layer in layers if layer.quantize is not None}
        self._values: dict[str, torch.Tensor] | None = None

    @contextmanager
    def quantizing(self, names: Collection[str], weights_only: bool = False) -> Iterator[None]:
        """While this lasts, the named layers are quantized (their weights only) and no others."""
        off: set[fx.Node] = set()
        floating: list[Any] = []
        for layer in self._layers:
            chosen = layer.name in names
            if layer.quantize is not None and (not chosen or weights_only):
                off.add(layer.quantize)
            if not chosen:
                off.update(layer.weights)
                floating += layer.modules
        self._off = frozenset(off)
        for module in floating:
            module.get_weight = lambda module=module: module.weight
        try:
            yield
        finally:
            self._off = frozenset()
            for module in floating:
                del module.get_weight

    def values_of(self, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """Run once: what each layer with a quantize gives, as real numbers, by its name."""
        self._values = {}
        try:
            with torch.no_grad():
                self.run(*inputs)
            return self._values
        finally:
            self._values = None

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the quantize of a layer that is off, and its dequantize, do nothing."""
        if n in self._off or (is_dequantize(n) and n.args[0] in self._off):
            value = self.fetch_args_kwargs_from_env(n)[0][0]
        else:
            value = super().run_node(n)
        if self._values is not None and is_dequantize(n) and n.args[0] in self._ends:
            self._values[self._ends[n.args[0]]] = value  # type: ignore[index]
        return value


def _is_stored(node: fx.Node) -> bool:
    return node.op == "get_attr"


def _layer(
    reference: fx.GraphModule,
    end: fx.Node,
    quantize: fx.Node | None,
    name: str,
    members: tuple[str, ...],
    seen: set[fx.Node],
) -> SwitchedLayer:
    """Collect what lies between `end` and the dequantize nodes before it."""
    pending, modules, weights, target = list(end.all_input_nodes), [], [], ""
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        if is_dequantize(node):
            source = node.args[0]
            if (
                isinstance(source, fx.Node)
                and is_quantize(source)
                and _is_stored(source.all_input_nodes[0])
            ):
                seen.add(node)
                weights.append(source)
            continue
        seen.add(node)
        if node.op == "call_module":
            found = [
                module
                for module in reference.get_submodule(str(node.target)).modules()
                if hasattr(module, "get_weight")
            ]
            modules += found
            target = str(node.target) if found else target
        pending.extend(node.all_input_nodes)
    return SwitchedLayer(name, members, quantize, tuple(modules), tuple(weights), target)
