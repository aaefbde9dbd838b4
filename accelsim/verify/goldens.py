"""The goldens of one batch: what every layer should give, from sources outside the product."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import I8, LayerRecord, QuantizedModel
from accelsim.errors import ModelError
from accelsim.reference import GoldenSet, Reference, build, is_constant
from accelsim.reference.derive import clamp_of
from accelsim.reference.exported import ExportedGolden, build_exported
from accelsim.reference.graph import read_network
from accelsim.reference.operators import distance_of
from accelsim.reference.pytorch import TorchGolden, build_torch
from accelsim.reference.tvm_float import TvmGolden, build_tvm
from accelsim.verify.options import Progress


@dataclass(frozen=True, slots=True)
class Goldens:
    """Reference and framework goldens of a network."""

    reference: Reference
    torch: TorchGolden
    exported: ExportedGolden
    tvm: TvmGolden

    @staticmethod
    def of(quantized: QuantizedModel, progress: Progress, npu: Collection[str]) -> Goldens:
        """Build all three; layers of the QDQ module that are not in `npu` run on the host.

        Raises ToolError where PyTorch's engine fails its self-check, ModelError where a layer of
        the NPU has no integer definition.
        """
        progress("building the integer reference")
        network = read_network(quantized.qdq, rounding=quantized.rounding)
        host = [layer.name for layer in network.layers if layer.name not in npu]
        reference = build(quantized, host=host)
        for layer in reference.layers:
            if layer.kind == "host" and layer.name in npu:
                raise ModelError(
                    f"layer '{layer.name}': operator {layer.op} is not supported by the reference"
                )
        progress("checking PyTorch's int8 kernels")
        torch = build_torch(quantized, reference.network)
        exported = build_exported(quantized, reference.network)
        progress("compiling TVM's float run")
        tvm = build_tvm(quantized, reference.network)
        return Goldens(reference, torch, exported, tvm)

    def torch_alone(
        self, layer: LayerRecord, qdq_layers: tuple[str, ...], values: Mapping[str, I8]
    ) -> I8 | None:
        """PyTorch's kernels of a fused layer on the golden inputs; None where one is missing.

        Where a layer has no quantized kernel its float kernels are taken, and their quantization.
        """
        known = {name: values[name] for name in layer.inputs}
        network = self.reference.network

        def known_of(tensor: str) -> I8:
            """A tensor that is known, or that only renames the elements of such a one."""
            if tensor not in known:
                renaming = network.layer(tensor)
                sources = tuple(known_of(one) for one in renaming.inputs)
                known[tensor] = self.reference.run_layer(renaming.name, sources)
            return known[tensor]

        for name in qdq_layers:
            one = network.layer(name)
            kernel = self.torch.runs(name)
            if not kernel and not self.exported.covers(one):
                return None
            inputs = tuple(map(known_of, one.inputs))
            known[one.output] = (
                self.torch.run_layer(name, inputs)
                if kernel
                else self.exported.run_layer(one, inputs)
            )
        return known[layer.output]

    def bound(self, name: str, inputs: tuple[I8, ...], exact: I8, torch: I8) -> int | None:
        """Steps by which PyTorch's output of a layer may differ; None where it must be equal.

        It may where the integers are an operator's own and are as near to the real result as the
        operator promises, and PyTorch's are within one step of it. Both are computed.
        """
        layer, rounding = self.reference.network.layer(name), self.torch.quantized.rounding
        distance = distance_of(self.reference.network, layer, rounding)
        if distance is None or not self.exported.covers(layer):
            return None
        tensor = self.reference.network.tensors[layer.output]
        clamp = clamp_of(layer, tensor, rounding)
        steps = np.clip(self.exported.steps(layer, inputs), clamp.low, clamp.high)
        steps = steps.reshape(exact.shape)
        near = np.abs(exact - steps).max() <= distance and np.abs(torch - steps).max() <= 1
        return math.ceil(distance) if near else None


@dataclass(frozen=True, slots=True)
class BatchGoldens:
    """Goldens of one batch in accumulated mode, and the inputs that the network really sees."""

    inputs: Mapping[str, I8]
    integer: GoldenSet
    torch: GoldenSet
    tvm: GoldenSet

    @staticmethod
    def of(goldens: Goldens, tensors: Mapping[str, np.ndarray]) -> BatchGoldens:
        """Run all goldens on one batch of float inputs by name."""
        inputs = goldens.reference.quantize_inputs(tensors)
        return BatchGoldens(
            inputs,
            goldens.reference.accumulated(inputs),
            goldens.torch.accumulated(tensors),
            goldens.tvm.accumulated(tensors),
        )

    @property
    def values(self) -> dict[str, I8]:
        """Every tensor of the integer reference by name, the network's inputs included."""
        return {**self.inputs, **self.integer.tensors}

    def constant(self, tensor: str) -> bool:
        """Whether the integer golden of a tensor has one value only and so proves nothing."""
        return is_constant(self.integer.tensors[tensor])
