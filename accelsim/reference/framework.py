"""The golden of the framework that a model came from: one protocol, whatever the framework.

What comes in: a `QuantizedModel` and the `Network` read from its QDQ module. What goes out: a
`FrameworkGolden`, whose kernels share no arithmetic with the compiler, the simulator or the RTL. It
must not know what its results are compared with.

All activations are int8 (n, h, w, c), zero points in the int8 domain, whatever dtype and layout the
framework has; tensors have the names of `network`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from accelsim.artifacts import I8, QuantizedModel
from accelsim.reference.golden import GoldenSet
from accelsim.reference.network import Network

TITLES = {
    "torch": "PyTorch's int8 kernels",
    "litert": "LiteRT's reference kernels",
    "onnxruntime": "ONNX Runtime without graph optimisation",
}
"""What reports call a golden, by its `source`."""


class FrameworkGolden(Protocol):
    """A framework's own kernels. Isolated they gate; accumulated they are reported."""

    @property
    def source(self) -> str:
        """A key of `TITLES`."""

    def covers(self, name: str) -> bool:
        """Whether `run_layer` computes that layer of the network."""

    def run_layer(self, name: str, inputs: tuple[I8, ...]) -> I8:
        """One layer alone on given inputs, which are in the order of the layer's.

        `ModelError` with the reason where no kernel covers it, `ToolError` where the kernel fails.
        """

    def accumulated(self, inputs: Mapping[str, np.ndarray]) -> GoldenSet:
        """Every layer that the whole network shows, from the model's inputs by name.

        Inputs have the model's own dtype and layout. The set gates nothing; what it lacks is in its
        `missing`.
        """

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...] | None:
        """The model's outputs as the framework gives them; None where it cannot run the whole."""

    def missing(self) -> dict[str, str]:
        """Layers that nothing covers, and why."""

    def bound(self, name: str, inputs: tuple[I8, ...], exact: I8, own: I8) -> int | None:
        """Steps by which the framework's result of a layer may differ from the integer reference.

        `exact` and `own` are the two results on `inputs`. None where they must be equal.
        """

    def cause(self, name: str, inputs: tuple[I8, ...], own: I8) -> str | None:
        """Why the framework's result differs within `bound`, where it was computed; else None."""


def build_framework(quantized: QuantizedModel, network: Network) -> FrameworkGolden:
    """The golden of the framework that `quantized` came from.

    `ToolError` where the framework is not installed or computes other than it is defined to.
    """
    if quantized.framework == "tflite":
        from accelsim.reference.litert import build_litert

        return build_litert(quantized, network)
    if quantized.framework == "onnx":
        from accelsim.reference.onnxruntime import build_onnxruntime

        return build_onnxruntime(quantized, network)
    from accelsim.reference.torch_framework import build_torch_framework

    return build_torch_framework(quantized, network)
