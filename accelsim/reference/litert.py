"""LiteRT as the framework of a TensorFlow Lite model: its reference kernels on the user's file.

What comes in: a `QuantizedModel` with its `TfliteModel`, and the `Network` of its QDQ module. What
goes out: a `FrameworkGolden`. It must not know how TVM, the simulator or the RTL compute.

Isolated, a layer is a model of its own operator, cut from the file. Accumulated, the file itself
runs and shows every tensor. Both use the reference kernels, which round as the format is defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from accelsim.artifacts import I8, QuantizedModel
from accelsim.errors import InputError, ModelError, ToolError
from accelsim.importer.tflite.model import TfliteModel
from accelsim.reference.boundary import from_nhwc, on_levels, to_nhwc
from accelsim.reference.golden import GoldenSet
from accelsim.reference.litert_cut import Cutter, Kernels
from accelsim.reference.network import Network

_OPTIMISED = ("SUM",)
"""Operators whose reference kernel is wrong: LiteRT 2.3's of SUM takes int8 for uint8."""


@dataclass(frozen=True, slots=True)
class LiteRtGolden:
    """The file, and the kernels of the layers that were asked for."""

    model: TfliteModel
    network: Network
    cutter: Cutter
    whole: Kernels
    indices: Mapping[str, int]  # tensor → its number in the file
    _cut: dict[str, Kernels | str] = field(default_factory=dict)  # layer → kernels, or why none

    @property
    def source(self) -> str:
        """As `TITLES` names it."""
        return "litert"

    def covers(self, name: str) -> bool:
        """Whether LiteRT runs the layer's operators alone."""
        return isinstance(self._kernels(name), Kernels)

    def run_layer(self, name: str, inputs: tuple[I8, ...]) -> I8:
        """The layer's own kernels on int8 (n, h, w, c) inputs."""
        kernels = self._kernels(name)
        if isinstance(kernels, str):
            raise ModelError(f"layer '{name}' has no LiteRT golden: {kernels}")
        layer, tensors = self.network.layer(name), self.network.tensors
        stored = [
            from_nhwc(value, tensors[source])
            for source, value in zip(layer.inputs, inputs, strict=True)
        ]
        (result,) = kernels.run(stored)
        return to_nhwc(result, tensors[layer.output])

    def accumulated(self, inputs: Mapping[str, np.ndarray]) -> GoldenSet:
        """Every layer's tensor after the whole file ran. Gates nothing.

        Float inputs are put on their own levels first, which every quantize finds again.
        """
        self._run({**inputs, **on_levels(self.network, inputs)})
        wanted = {one.output for one in self.network.layers} & set(self.indices)
        found = self.whole.tensors({name: self.indices[name] for name in sorted(wanted)})
        tensors = {
            one.output: to_nhwc(found[one.output], self.network.tensors[one.output])
            for one in self.network.layers
            if one.output in found
        }
        return GoldenSet(self.source, "accumulated", False, tensors, self.missing())

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...] | None:
        """What the file returns."""
        return self._run(inputs)

    def missing(self) -> dict[str, str]:
        """Layers that LiteRT does not run alone, and why."""
        reasons = {one.output: self._kernels(one.name) for one in self.network.layers}
        return {name: why for name, why in reasons.items() if isinstance(why, str)}

    def bound(self, name: str, inputs: tuple[I8, ...], exact: I8, own: I8) -> int | None:
        """None: every layer's integers are those of TensorFlow Lite."""
        return None

    def cause(self, name: str, inputs: tuple[I8, ...], own: I8) -> str | None:
        """None: nothing may differ."""
        return None

    def _makes(self, tensor: str) -> str:
        """The operator that makes a tensor."""
        index = self.indices[tensor]
        return next((one.op for one in self.model.operators if index in one.outputs), "")

    def _run(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        missing = [name for name in self.model.input_names if name not in inputs]
        if missing:
            raise InputError(f"input '{missing[0]}' is missing")
        return self.whole.run([np.asarray(inputs[name]) for name in self.model.input_names])

    def _kernels(self, name: str) -> Kernels | str:
        if name not in self._cut:
            layer = self.network.layer(name)
            unknown = [one for one in (*layer.inputs, layer.output) if one not in self.indices]
            if unknown:
                self._cut[name] = f"the file has no tensor '{unknown[0]}'"
                return self._cut[name]
            sources = [self.indices[one] for one in layer.inputs]
            try:
                data = self.cutter.between(sources, self.indices[layer.output])
                self._cut[name] = Kernels(data, plain=self._makes(layer.output) not in _OPTIMISED)
            except (ModelError, ToolError) as error:
                self._cut[name] = str(error)
        return self._cut[name]


def build_litert(quantized: QuantizedModel, network: Network) -> LiteRtGolden:
    """LiteRT with a model's file. `ToolError` where it is not installed or refuses the file."""
    model = quantized.original
    if not isinstance(model, TfliteModel):
        raise ModelError(f"model {quantized.name} came without a TensorFlow Lite file")
    indices = {one.name: index for index, one in enumerate(model.tensors)}
    return LiteRtGolden(model, network, Cutter(model.data), Kernels(model.data, keep=True), indices)
