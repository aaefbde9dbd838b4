"""A layer with the tensors around it: all that an operator module derives its values from.

What comes in: a `Network` and one of its layers. What goes out: a `Site`. It must not know
operators.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.reference.network import Network, QuantizedTensor, ReferenceLayer


@dataclass(frozen=True, slots=True)
class Site:
    """A layer, its quantized inputs in order, its output and whose rounding counts."""

    layer: ReferenceLayer
    inputs: tuple[QuantizedTensor, ...]
    output: QuantizedTensor
    rounding: str

    @property
    def same_levels(self) -> bool:
        """Whether equal real numbers have equal int8 values in the first input and the output."""
        return same_levels(self.inputs[0], self.output)


def same_levels(a: QuantizedTensor, b: QuantizedTensor) -> bool:
    """Whether equal real numbers have equal int8 values in both."""
    return a.scale == b.scale and a.zero_point == b.zero_point


def site_of(network: Network, layer: ReferenceLayer, rounding: str) -> Site:
    """A layer of a network with its tensors."""
    inputs = tuple(network.tensors[name] for name in layer.inputs)
    return Site(layer, inputs, network.tensors[layer.output], rounding)
