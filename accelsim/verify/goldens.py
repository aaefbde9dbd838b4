"""The goldens of one batch: what every layer should give, from sources outside the product."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import I8, LayerRecord, QuantizedModel
from accelsim.errors import ModelError
from accelsim.reference import (
    TITLES,
    FrameworkGolden,
    GoldenSet,
    Reference,
    build,
    build_framework,
    is_constant,
)
from accelsim.reference.graph import read_network
from accelsim.reference.tvm_float import TvmGolden, build_tvm
from accelsim.verify.options import Progress


@dataclass(frozen=True, slots=True)
class Goldens:
    """Reference and framework goldens of a network."""

    reference: Reference
    framework: FrameworkGolden
    tvm: TvmGolden
    name: str  # of the framework

    @staticmethod
    def of(quantized: QuantizedModel, progress: Progress, npu: Collection[str]) -> Goldens:
        """Build all three; layers of the QDQ module that are not in `npu` run on the host.

        Raises ToolError where the framework is missing or fails its self-check, ModelError where a
        layer of the NPU has no integer definition.
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
        progress(f"preparing the golden of {quantized.framework}")
        framework = build_framework(quantized, reference.network)
        progress(f"compiling TVM's float run; layers are compared with {TITLES[framework.source]}")
        tvm = build_tvm(quantized, reference.network, reference.optimization)
        return Goldens(reference, framework, tvm, quantized.framework)

    def about(self) -> dict[str, str]:
        """The framework's name, its golden's and what that is, for reports."""
        source = self.framework.source
        return {"name": self.name, "golden": source, "title": TITLES[source]}

    def framework_alone(
        self, layer: LayerRecord, qdq_layers: tuple[str, ...], values: Mapping[str, I8]
    ) -> I8 | None:
        """The framework's kernels of a fused layer on golden inputs; None where one is missing."""
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
            if not self.framework.covers(name):
                return None
            one = network.layer(name)
            inputs = tuple(map(known_of, one.inputs))
            known[one.output] = self.framework.run_layer(name, inputs)
        return known[layer.output]


@dataclass(frozen=True, slots=True)
class BatchGoldens:
    """Goldens of one batch in accumulated mode, and the inputs that the network really sees."""

    inputs: Mapping[str, I8]
    integer: GoldenSet
    framework: GoldenSet
    tvm: GoldenSet

    @staticmethod
    def of(goldens: Goldens, tensors: Mapping[str, np.ndarray]) -> BatchGoldens:
        """Run all goldens on one batch of the model's inputs by name."""
        inputs = goldens.reference.quantize_inputs(tensors)
        return BatchGoldens(
            inputs,
            goldens.reference.accumulated(inputs, tensors),
            goldens.framework.accumulated(tensors),
            goldens.tvm.accumulated(tensors),
        )

    @property
    def values(self) -> dict[str, I8]:
        """Every tensor of the integer reference by name, the network's inputs included."""
        return {**self.inputs, **self.integer.tensors}

    def constant(self, tensor: str) -> bool:
        """Whether the integer golden of a tensor has one value only and so proves nothing."""
        return is_constant(self.integer.tensors[tensor])
