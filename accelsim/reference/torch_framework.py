"""PyTorch as the framework of a model: its quantized kernels, and its float kernels beside them.

What comes in: a `QuantizedModel` and its `Network`. What goes out: a `FrameworkGolden`. It must not
know how TVM, the simulator or the RTL compute the same layers.

A layer without a quantized kernel is computed by its float kernels between the dequantize and the
quantize of the exported graph.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils import _pytree as pytree

from accelsim.artifacts import I8, QuantizedModel
from accelsim.errors import ModelError
from accelsim.quantize import qnnpack_engine
from accelsim.reference.derive import clamp_of
from accelsim.reference.exported import ExportedGolden, build_exported
from accelsim.reference.golden import GoldenSet
from accelsim.reference.network import Network
from accelsim.reference.operators import distance_of
from accelsim.reference.pytorch import TorchGolden, build_torch


@dataclass(frozen=True, slots=True)
class TorchFramework:
    """The two goldens of PyTorch behind one door, see `reference.framework`."""

    kernels: TorchGolden
    exported: ExportedGolden

    @property
    def source(self) -> str:
        """As `TITLES` names it."""
        return "torch"

    def covers(self, name: str) -> bool:
        """Whether a quantized kernel runs the layer, or float kernels do."""
        return self.kernels.runs(name) or self.exported.covers(self.kernels.network.layer(name))

    def run_layer(self, name: str, inputs: tuple[I8, ...]) -> I8:
        """The layer's quantized kernel, or its float kernels and their quantization."""
        if self.kernels.runs(name):
            return self.kernels.run_layer(name, inputs)
        layer = self.kernels.network.layer(name)
        if not self.exported.covers(layer):
            reason = self.missing().get(layer.output, "its kernel is not defined for these scales")
            raise ModelError(f"layer '{name}' has no PyTorch golden: {reason}")
        return self.exported.run_layer(layer, inputs)

    def accumulated(self, inputs: Mapping[str, np.ndarray]) -> GoldenSet:
        """The whole int8 network."""
        return self.kernels.accumulated(inputs)

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...] | None:
        """What the int8 network returns, or the exported graph where there is none."""
        quantized = self.kernels.quantized
        module = self.exported.module if quantized.torch_int8 is None else quantized.torch_int8
        if module is None:
            return None
        tensors = [
            torch.from_numpy(np.ascontiguousarray(inputs[name])) for name in quantized.input_names
        ]
        with warnings.catch_warnings(), qnnpack_engine(), torch.no_grad():
            warnings.simplefilter("ignore")
            leaves = pytree.tree_leaves(module(*tensors))
        return tuple(leaf.numpy() for leaf in leaves)

    def missing(self) -> dict[str, str]:
        """Layers that neither covers."""
        reasons = self.kernels.missing()
        network = self.kernels.network
        names = {layer.output: layer.name for layer in network.layers}
        return {one: why for one, why in reasons.items() if not self.covers(names[one])}

    def bound(self, name: str, inputs: tuple[I8, ...], exact: I8, own: I8) -> int | None:
        """Steps by which PyTorch's result may differ; None where it must be equal.

        It may where the integers are an operator's own and are as near to the real result as the
        operator promises, and PyTorch's are within one step of it. Both are computed.
        """
        network, rounding = self.kernels.network, self.kernels.quantized.rounding
        layer = network.layer(name)
        distance = distance_of(network, layer, rounding)
        if distance is None or not self.exported.covers(layer):
            return None
        tensor = network.tensors[layer.output]
        clamp = clamp_of(layer, tensor, rounding)
        steps = np.clip(self.exported.steps(layer, inputs), clamp.low, clamp.high)
        steps = steps.reshape(exact.shape)
        near = np.abs(exact - steps).max() <= distance and np.abs(own - steps).max() <= 1
        return math.ceil(distance) if near else None

    def cause(self, name: str, inputs: tuple[I8, ...], own: I8) -> str | None:
        """None: what `bound` allows are an operator's own integers."""
        return None


def build_torch_framework(quantized: QuantizedModel, network: Network) -> TorchFramework:
    """Check PyTorch's engine, and pair the network's tensors with its nodes.

    `ToolError` where the engine deviates from its exact definition on this machine.
    """
    return TorchFramework(build_torch(quantized, network), build_exported(quantized, network))
