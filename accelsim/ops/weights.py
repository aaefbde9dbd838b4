"""What families of products with constant weights share: attributes, cases, bounds and facts.

What comes in: a spec, random numbers, PyTorch tensors. What goes out: a `Case`, PyTorch's float
result and the bound of its error. It must not know edge cases nor quantized kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from accelsim.ops.case import Activation, Case, Spec, Weight, sized
from accelsim.ops.operator import Facts
from accelsim.ops.values import MATRIX_ERROR, activation, output_zero, weighted

ROUNDINGS = ("qnnpack", "fp32", "tflite", "onnxruntime")
LIMITS = (
    "weights int8, per tensor or per output channel; one weight zero point",
    "sums that cannot leave int32 for any input",
)
GROUPS = "groups whose weights, expanded, are at most 2^24"
PEERS = ("PyTorch qnnpack", "ONNX Runtime", "LiteRT")
ROUNDED = ("plain", "zero_points_high", "per_channel", "saturating", "small_multiplier", "relu")


@dataclass(frozen=True, slots=True)
class WeightSpec(Spec):
    """A product with weights: linear layers have no more attributes than these."""

    outputs: int = sized(8, 1)
    per_channel: bool = False
    weight_zero: int = 0
    full: bool = False  # biases up to the ends of int32


@dataclass(frozen=True, slots=True)
class ConvSpec(WeightSpec):
    """A convolution over one or two axes; a depthwise one has as many outputs as channels.

    `extra` rows and columns of padding are at the end only.
    """

    kernel: tuple[int, ...] = (1, 1)
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    extra: tuple[int, ...] = (0, 0)


def groups_of(case: Case) -> int:
    """Groups of a convolution."""
    spec: Any = case.spec
    return int(spec.channels if case.operator == "depthwise_conv2d" else spec.groups)


def make_weighted(rng: np.random.Generator, operator: str, spec: Any) -> Case:
    """A case whose weights fit its operator."""
    shape: tuple[int, ...] = (spec.outputs, spec.channels)
    if operator == "flatten":
        shape = (spec.outputs, spec.channels * spec.size[0] * spec.size[1])
    elif operator == "depthwise_conv2d":
        shape = (spec.channels, 1, *spec.kernel)
    elif operator in ("conv1d", "conv2d"):
        shape = (spec.outputs, spec.channels // spec.groups, *spec.kernel)
    source = activation(rng, spec)
    weight, scale = weighted(
        rng, spec, shape, source, per_channel=spec.per_channel, weight_zero=spec.weight_zero
    )
    if spec.full:
        weight, scale = _full(rng, weight, source)
    return Case(operator, spec, (source,), scale, output_zero(rng, spec, 1), weight)


def _full(
    rng: np.random.Generator, weight: Weight, source: Activation
) -> tuple[Weight, np.float32]:
    """Biases from one end of int32 to the other, as far as the products leave room."""
    terms = int(np.prod(weight.values.shape[1:]))
    room = 2**31 - 2 * terms * 255 * 255 - 2**8  # float32 holds these biases in steps of 128
    share = rng.uniform(-1, 1, weight.bias.size)
    share[:2] = (-1, 1)
    step = source.scale * np.resize(weight.scale, weight.bias.size)
    bias = (share * room * step).astype(np.float32)
    return replace(weight, bias=bias), np.float32(2**31 / 120 * step.max())


def torch_weighted(case: Case, sources: list[Any], magnitude: bool = False) -> Any:
    """PyTorch's float kernel; with `magnitude` of the absolute values."""
    assert case.weight is not None
    x = sources[0]
    weight, bias = (torch.from_numpy(v).to(x.dtype) for v in (case.weight.reals, case.weight.bias))
    if magnitude:
        x, weight, bias = x.abs(), weight.abs(), bias.abs()
    if weight.ndim == 2:
        return torch.nn.functional.linear(x.flatten(1), weight, bias)
    spec: Any = case.spec
    functional = torch.nn.functional
    run: Any = functional.conv2d if len(spec.size) == 2 else functional.conv1d
    geometry = (spec.stride, spec.padding, spec.dilation, groups_of(case))
    return run(functional.pad(x, padding_at_end(spec)), weight, bias, *geometry)


def padding_at_end(spec: ConvSpec) -> tuple[int, ...]:
    """Padding that is at the end only, as PyTorch's pad takes it."""
    return tuple(amount for extra in reversed(spec.extra) for amount in (0, extra))


def summation_error(case: Case, sources: list[Any], result: Any) -> Any:
    """The bound of a sum of n products in any order: n·u·Σ|x·w| with unit round-off u."""
    assert case.weight is not None
    terms = int(np.prod(case.weight.values.shape[1:])) + 1
    return torch_weighted(case, sources, magnitude=True) * (terms * MATRIX_ERROR)


def facts(instruction: str, *limits: str, others: tuple[str, ...] = ()) -> Facts:
    """What the support matrix says of a product with weights."""
    return Facts(
        types="int8 or uint8 activations, int8 weights, int32 bias and sums",
        limits=(*limits, *LIMITS),
        instructions=("load", "store", *others, instruction, "drain"),
        roundings=ROUNDINGS,
        exact=PEERS,
    )
