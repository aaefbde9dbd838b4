"""PyTorch's other engine on this processor, against the one that accelsim takes as golden.

What comes in: a network with PyTorch's int8 form, and float inputs. What goes out: how many outputs
of each convolution and linear layer differ between the x86 and the qnnpack kernels, and how many of
these are what a bias in float explains. Nothing is gated by it. It must not know TVM.

The x86 engine (fbgemm) keeps the bias in float32: rint((a + b / s) · (s / so)) + z, of the
accumulator a, the bias b, the steps s of the accumulator and so of the output. The qnnpack engine
rounds the bias to an integer of steps s first. A difference counts as explained only where the
first formula, computed here, gives exactly what the x86 kernel gave.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn
from torch.nn import functional

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.quantize import torch_layers
from accelsim.quantize.calibrated import has_observers
from accelsim.quantize.golden import record
from accelsim.quantize.int8_modules import Weights, is_int8, packed_weights

X86 = "x86"


@dataclass(frozen=True, slots=True)
class EngineDifference:
    """One layer on both engines, fed the same integers."""

    layer: str
    elements: int
    differences: int
    explained: int


@dataclass(frozen=True, slots=True)
class _Layer:
    """A convolution (with its settings) or a linear layer (without)."""

    weights: Weights
    settings: tuple[list[int], list[int], list[int], int] | None
    relu: bool
    scale: float
    zero_point: int


def engine_differences(
    quantized: QuantizedModel, inputs: tuple[NDArray[Any], ...]
) -> tuple[EngineDifference, ...]:
    """Run each 2-D convolution and linear layer on both engines, on the qnnpack network's values.

    Empty where the network has no int8 form, or this PyTorch no x86 engine.
    """
    if quantized.torch_int8 is None or X86 not in torch.backends.quantized.supported_engines:
        return ()
    module = quantized.torch_int8
    names = {node: name for name, node in torch_layers(quantized).items()}
    values = record(module, inputs)
    found = []
    for node in module.graph.nodes:
        layer = _layer(module, node)
        if layer is None:
            continue
        data, expected = values[node.args[0]], values[node].int_repr().numpy()
        actual = _run(layer, data)
        exact = _float_bias(layer, data)
        differs = actual != expected
        name = names.get(node) or next((names[u] for u in node.users if u in names), node.name)
        found.append(
            EngineDifference(
                name, expected.size, int(differs.sum()), int((differs & (actual == exact)).sum())
            )
        )
    return tuple(found)


def engine_notes(
    source: SourceModel, quantized: QuantizedModel, tensors: Mapping[str, NDArray[Any]]
) -> list[str]:
    """A sentence about a module that its user quantized, perhaps to run on the x86 engine."""
    module = source.float_module
    if not isinstance(module, nn.Module) or not (is_int8(module) or has_observers(module)):
        return []
    given = tuple(np.asarray(tensors[name]) for name in quantized.input_names)
    found = engine_differences(quantized, given)
    return [engine_sentence(found)] if found else []


def engine_sentence(differences: tuple[EngineDifference, ...]) -> str:
    """What was found, for a report."""
    total = sum(one.elements for one in differences)
    count = sum(one.differences for one in differences)
    rest = count - sum(one.explained for one in differences)
    cause = (
        "all of them as its float32 bias makes them"
        if not rest
        else (f"{count - rest:,} of them as its float32 bias makes them, {rest:,} unexplained")
    )
    if not count:
        cause = "its float32 bias changed none"
    return (
        f"PyTorch's x86 engine differs from qnnpack in {count:,} of {total:,} outputs of "
        f"{len(differences)} layers: {cause}"
    )


def _layer(module: fx.GraphModule, node: fx.Node) -> _Layer | None:
    if node.op != "call_module":
        return None
    own: Any = module.get_submodule(str(node.target))
    weights, kind = packed_weights(module, node), type(own).__name__
    if weights is None or kind not in ("Conv2d", "ConvReLU2d", "Linear", "LinearReLU"):
        return None
    settings = None
    if kind.startswith("Conv"):
        settings = (list(own.stride), list(own.padding), list(own.dilation), int(own.groups))
    return _Layer(weights, settings, "ReLU" in kind, float(own.scale), int(own.zero_point))


@contextmanager
def _engine(name: str) -> Iterator[None]:
    backend: Any = torch.backends.quantized
    before = backend.engine
    backend.engine = name
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        backend.engine = before


def _run(layer: _Layer, data: Any) -> NDArray[np.uint8]:
    """The x86 kernel."""
    ops: Any = torch.ops.quantized
    end = "_relu" if layer.relu else ""
    with _engine(X86):
        if layer.settings is None:
            packed = ops.linear_prepack(layer.weights.weight, layer.weights.bias)
            run = getattr(ops, f"linear{end}")
        else:
            packed = ops.conv2d_prepack(layer.weights.weight, layer.weights.bias, *layer.settings)
            run = getattr(ops, f"conv2d{end}")
        result: NDArray[np.uint8] = (
            run(data, packed, layer.scale, layer.zero_point).int_repr().numpy()
        )
    return result


def _float_bias(layer: _Layer, data: Any) -> NDArray[np.int64]:
    """What the formula gives."""
    weight = layer.weights.weight
    channel = weight.qscheme() != torch.per_tensor_affine
    scales = weight.q_per_channel_scales() if channel else torch.tensor([weight.q_scale()])
    zeros = weight.q_per_channel_zero_points() if channel else torch.tensor([weight.q_zero_point()])
    shape = (-1, *(1,) * (weight.dim() - 1))
    integers = data.int_repr().double() - data.q_zero_point()
    kernel = weight.int_repr().double() - zeros.reshape(shape).double()
    place: tuple[int, ...] = (-1,)
    if layer.settings is None:
        total = functional.linear(integers, kernel)
    else:
        total, place = functional.conv2d(integers, kernel, None, *layer.settings), (1, -1, 1, 1)
    f32 = np.float32
    steps = (f32(data.q_scale()) * scales.numpy().astype(f32)).reshape(place)
    bias = layer.weights.bias
    offset = f32(0) if bias is None else bias.detach().numpy().astype(f32).reshape(place) / steps
    real = (total.numpy().astype(f32) + offset) * (steps / f32(layer.scale))
    levels = np.rint(real).astype(np.int64) + layer.zero_point
    low = layer.zero_point if layer.relu else 0
    clamped: NDArray[np.int64] = np.clip(levels, low, 255)
    return clamped
