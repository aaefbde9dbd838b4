"""Convolution, depthwise convolution and linear layers: `relax.nn.conv1d`, `conv2d`, and
`relax.matmul` with a constant, each with or without a bias.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.artifacts import F32, I8, I32
from accelsim.reference.derive import affine_parameters, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source, Weight
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.network import Padding, Pair
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.site import Site
from accelsim.reference.torch_tensor import torch_target
from accelsim.reference.weighted import biases, centred, per_channel, torch_weight, without_bias

op = relax.op
_LAYOUTS = {
    "relax.nn.conv1d": (("NCW", "OIW"),),
    "relax.nn.conv2d": (("NCHW", "OIHW"), ("NHWC", "OIHW")),
}


@dataclass(frozen=True, slots=True)
class Affine:
    """conv2d with OIHW weight, conv1d with OIW weight, or linear with (out, in) weight.

    The height of a conv1d has stride 1, padding 0 and dilation 1.
    """

    weight: I8
    weight_scale: F32  # (out_channels,)
    weight_zero_point: I32  # (out_channels,)
    bias: F32  # (out_channels,)
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    integer_bias: I32 | None = None  # where the model has the bias in int32 steps
    layout: str = "NCHW"  # of a conv2d's activations


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the compiled function depends on beyond shapes."""

    mode: str
    stride: Pair
    padding: Padding
    dilation: Pair
    groups: int
    layout: str


def recognise(island: Island) -> Claim | None:
    """A convolution or matrix product of one activation and one weight, perhaps plus a bias."""
    node, bias = without_bias(island.ending.value)
    if not isinstance(node, Node) or len(node.operands) != 2:
        return None
    source, weight = node.operands
    if not isinstance(source, Source) or not isinstance(weight, Weight):
        return None
    core = None
    if node.operator in _LAYOUTS:
        core = _convolution(node, weight)
    elif node.operator == "relax.matmul":
        core = _linear(weight)
        # Of more axes the last one is the channels', which a reshape behind it would move.
        if len(node.shape) != 2 and node.shape != island.output.shape:
            return None
    if core is None:
        return None
    channels, steps = core.weight.shape[0], source.tensor.scale * core.weight_scale
    found = biases(bias, channels, 0 if core.layout == "NHWC" else core.weight.ndim - 2, steps)
    if found is None:
        return None
    core = replace(core, bias=found[0], integer_bias=found[1])
    macs = math.prod(node.shape) * core.weight[0].size
    return Claim(_name(core), core, (source,), node.shape, island.ending.limits, macs)


def _name(core: Affine) -> str:
    if core.weight.ndim == 2:
        return "linear"
    depthwise = core.groups > 1 and core.weight.shape[:2] == (core.groups, 1)
    return "depthwise_conv2d" if depthwise else "conv2d"


def _convolution(node: Node, weight: Weight) -> Affine | None:
    attrs = node.attrs
    if (str(attrs.data_layout), str(attrs.kernel_layout)) not in _LAYOUTS[node.operator]:
        return None
    stride, dilation = ([int(one) for one in v] for v in (attrs.strides, attrs.dilation))
    padding = [int(value) for value in attrs.padding]
    if len(stride) == 1:
        stride, dilation, padding = [1, *stride], [1, *dilation], [0, padding[0], 0, padding[1]]
    (top, left, bottom, right), groups = padding, int(attrs.groups)
    return _affine(
        weight,
        len(node.shape),
        0,
        stride=(stride[0], stride[1]),
        padding=(top, left, bottom, right),
        dilation=(dilation[0], dilation[1]),
        groups=groups,
        layout="NHWC" if str(attrs.data_layout) == "NHWC" else "NCHW",
    )


def _linear(weight: Weight) -> Affine | None:
    """A weight (in, out), as the product takes it."""
    core = _affine(weight, 2, 1)
    return core and replace(core, weight=np.ascontiguousarray(core.weight.T))


def _affine(weight: Weight, rank: int, axis: int, **geometry: Any) -> Affine | None:
    """Weight with output channels along `axis`, its scales one for all or one a channel."""
    if weight.values.dtype != np.int8 or weight.values.ndim != rank:
        return None
    channels = int(weight.values.shape[axis])
    scale = per_channel(weight.scale, channels, np.float32)
    zero_point = per_channel(weight.zero_point, channels, np.int32)
    along_channels = weight.axis % rank == axis or weight.scale.size == 1
    if scale is None or zero_point is None or not along_channels:
        return None
    values = np.ascontiguousarray(weight.values)
    return Affine(values, scale, zero_point, np.zeros(channels, np.float32), **geometry)


def kernel(site: Site) -> Kernel:
    """Σ (x - zx)(w - zw) + bias in int32, requantized."""
    core: Affine = site.layer.core
    bias, scaling = affine_parameters(site, core, connected=core.weight.ndim == 2)
    values: dict[str, np.ndarray] = {
        "centred_weight": centred(core.weight, core.weight_zero_point),
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int16),
        "bias": bias,
        **scaling.values(),
        **ends_of(site),
    }
    windows = (core.stride, core.padding, core.dilation)
    geometry = Geometry(scaling.mode, *windows, core.groups, core.layout)
    emissions = {2: _emit_linear, 3: _emit_conv1d, 4: _emit_conv2d}
    return Kernel(emissions[core.weight.ndim], values, geometry)


def _emit_conv1d(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    _, before, _, after = geometry.padding
    accumulator = emit(
        op.nn.conv1d(
            emit.centred(x[0], p["input_zero_point"]),
            p["centred_weight"],
            strides=geometry.stride[1],
            padding=[before, after],
            dilation=geometry.dilation[1],
            groups=geometry.groups,
            out_dtype="int32",
        )
    )
    return emit.requantized(accumulator, p, geometry.mode)


def _emit_conv2d(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    accumulator = emit(
        op.nn.conv2d(
            emit.centred(x[0], p["input_zero_point"]),
            p["centred_weight"],
            strides=list(geometry.stride),
            padding=list(geometry.padding),
            dilation=list(geometry.dilation),
            groups=geometry.groups,
            data_layout=geometry.layout,
            kernel_layout="OIHW",
            out_layout=geometry.layout,
            out_dtype="int32",
        )
    )
    return emit.requantized(accumulator, p, geometry.mode)


def _emit_linear(emit: Emitter, x: list[Any], p: Values) -> Any:
    data = emit.centred(x[0], p["input_zero_point"])
    turned = emit(op.permute_dims(p["centred_weight"]))
    product = emit(op.matmul(data, turned, out_dtype="int32"))
    return emit.requantized(product, p, emit.geometry.mode)


def _torch_covers(site: Site) -> bool:
    """PyTorch pads alike on both sides, and has its channels second."""
    top, left, bottom, right = site.layer.core.padding
    even = (top, left) == (bottom, right) and site.layer.core.layout == "NCHW"
    return site.rounding in ("fp32", "qnnpack") and even


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Affine = site.layer.core
    relu = site.layer.limits == (0.0, math.inf)
    kernels: Any = torch.ops.quantized
    bias = torch.from_numpy(np.ascontiguousarray(core.bias, dtype=np.float32))
    weight = torch_weight(core.weight, core.weight_scale, core.weight_zero_point)
    if core.weight.ndim == 2:
        packed = kernels.linear_prepack(weight, bias)
        run = kernels.linear_relu if relu else kernels.linear
        return run(operands[0], packed, *torch_target(site.output))
    name = f"conv{core.weight.ndim - 2}d"
    first = 4 - core.weight.ndim  # of a conv1d the width alone
    sizes = ([*core.stride][first:], [*core.padding[:2]][first:], [*core.dilation][first:])
    packed = getattr(kernels, f"{name}_prepack")(weight, bias, *sizes, core.groups)
    run = getattr(kernels, f"{name}_relu" if relu else name)
    return run(operands[0], packed, *torch_target(site.output))


OPERATOR = Operator(
    "convolution",
    recognise,
    kernel,
    TorchKernel(_torch_covers, _torch_run),
    tensor_ranks=frozenset({2, 3, 4}),
)
