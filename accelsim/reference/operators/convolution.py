"""Convolution, depthwise convolution and linear layers: `relax.nn.conv2d`, and `relax.matmul` with
a constant, each with or without a bias.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

import math
import warnings
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
from accelsim.reference.torch_tensor import quantized_tensor, torch_target

op = relax.op


@dataclass(frozen=True, slots=True)
class Affine:
    """conv2d with OIHW weight, or linear with (out, in) weight; all in the model's own terms."""

    weight: I8
    weight_scale: F32  # (out_channels,)
    weight_zero_point: I32  # (out_channels,)
    bias: F32  # (out_channels,)
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    integer_bias: I32 | None = None  # where the model has the bias in int32 steps


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the compiled function depends on beyond shapes."""

    mode: str
    stride: Pair
    padding: Padding
    dilation: Pair
    groups: int


def recognise(island: Island) -> Claim | None:
    """A convolution or matrix product of one activation and one weight, perhaps plus a bias."""
    node, bias = _without_bias(island.ending.value)
    if not isinstance(node, Node) or len(node.operands) != 2:
        return None
    source, weight = node.operands
    if not isinstance(source, Source) or not isinstance(weight, Weight):
        return None
    core = None
    if node.operator == "relax.nn.conv2d":
        core = _conv2d(node.attrs, weight)
    elif node.operator == "relax.matmul" and len(source.shape) == 2:
        core = _linear(weight)
    if core is None:
        return None
    if bias is not None:
        core = _biased(core, bias, source.tensor.scale)
    if core is None:
        return None
    macs = math.prod(node.shape) * core.weight[0].size
    return Claim(_name(core), core, (source,), node.shape, island.ending.limits, macs)


def _without_bias(value: Any) -> tuple[Any, np.ndarray | Weight | None]:
    """The product and the constant added to it, on either side."""
    if isinstance(value, Node) and value.operator == "relax.add":
        for product, bias in (value.operands, value.operands[::-1]):
            if isinstance(product, Node) and isinstance(bias, (np.ndarray, Weight)):
                return product, bias
    return value, None


def _biased(core: Affine, bias: np.ndarray | Weight, scale: np.float32) -> Affine | None:
    """The core with a bias per channel, or None where the constant is not one.

    A dequantized int32 constant is a bias in steps if its scales are the accumulator's, but for
    the rounding of their product.
    """
    channels, trailing = core.weight.shape[0], (1,) * (core.weight.ndim - 2)
    if bias.shape not in ((channels, *trailing), (1, channels, *trailing)):
        return None
    if isinstance(bias, np.ndarray):
        return replace(core, bias=bias.reshape(-1).astype(np.float32))
    steps = scale * core.weight_scale
    near = np.allclose(bias.scale, steps, rtol=2.0**-20, atol=0)
    if bias.values.dtype != np.int32 or np.any(bias.zero_point) or not near:
        return None
    integers = bias.values.reshape(-1)
    return replace(core, bias=integers.astype(np.float32) * steps, integer_bias=integers)


def _name(core: Affine) -> str:
    if core.weight.ndim == 2:
        return "linear"
    depthwise = core.groups > 1 and core.weight.shape[:2] == (core.groups, 1)
    return "depthwise_conv2d" if depthwise else "conv2d"


def _conv2d(attrs: Any, weight: Weight) -> Affine | None:
    if (str(attrs.data_layout), str(attrs.kernel_layout)) != ("NCHW", "OIHW"):
        return None
    top, left, bottom, right = (int(value) for value in attrs.padding)
    stride, dilation = ((int(y), int(x)) for y, x in (attrs.strides, attrs.dilation))
    geometry = {"stride": stride, "dilation": dilation, "padding": (top, left, bottom, right)}
    return _affine(weight, 4, 0, groups=int(attrs.groups), **geometry)


def _linear(weight: Weight) -> Affine | None:
    """A weight (in, out), as the product takes it."""
    core = _affine(weight, 2, 1)
    return core and replace(core, weight=np.ascontiguousarray(core.weight.T))


def _affine(weight: Weight, rank: int, axis: int, **geometry: Any) -> Affine | None:
    """Weight with output channels along `axis`, its scales one for all or one a channel."""
    if weight.values.dtype != np.int8 or weight.values.ndim != rank:
        return None
    channels = int(weight.values.shape[axis])
    scale = _per_channel(weight.scale, channels, np.float32)
    zero_point = _per_channel(weight.zero_point, channels, np.int32)
    along_channels = weight.axis % rank == axis or weight.scale.size == 1
    if scale is None or zero_point is None or not along_channels:
        return None
    values = np.ascontiguousarray(weight.values)
    return Affine(values, scale, zero_point, np.zeros(channels, np.float32), **geometry)


def _per_channel(values: np.ndarray, channels: int, dtype: Any) -> np.ndarray | None:
    if values.size not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(values.reshape(-1).astype(dtype), (channels,)))


def kernel(site: Site) -> Kernel:
    """Σ (x - zx)(w - zw) + bias in int32, requantized."""
    core: Affine = site.layer.core
    bias, scaling = affine_parameters(site, core, connected=core.weight.ndim == 2)
    zero_point = core.weight_zero_point.reshape((-1,) + (1,) * (core.weight.ndim - 1))
    values: dict[str, np.ndarray] = {
        "centred_weight": (core.weight.astype(np.int32) - zero_point).astype(np.int16),
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int16),
        "bias": bias,
        **scaling.values(),
        **ends_of(site),
    }
    geometry = Geometry(scaling.mode, core.stride, core.padding, core.dilation, core.groups)
    return Kernel(_emit_linear if core.weight.ndim == 2 else _emit_conv2d, values, geometry)


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
    """PyTorch pads alike on both sides."""
    top, left, bottom, right = site.layer.core.padding
    return site.rounding in ("fp32", "qnnpack") and (top, left) == (bottom, right)


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Affine = site.layer.core
    relu = site.layer.limits == (0.0, math.inf)
    kernels: Any = torch.ops.quantized
    bias = torch.from_numpy(np.ascontiguousarray(core.bias, dtype=np.float32))
    if core.weight.ndim == 2:
        packed = kernels.linear_prepack(_torch_weight(core), bias)
        run = kernels.linear_relu if relu else kernels.linear
    else:
        sizes = ([*core.stride], [*core.padding[:2]], [*core.dilation], core.groups)
        packed = kernels.conv2d_prepack(_torch_weight(core), bias, *sizes)
        run = kernels.conv2d_relu if relu else kernels.conv2d
    return run(operands[0], packed, *torch_target(site.output))


def _torch_weight(core: Affine) -> Any:
    """Per tensor where all channels agree, as FX does it; else per channel."""
    same = len(set(core.weight_scale.tolist())) == len(set(core.weight_zero_point.tolist())) == 1
    weight = np.ascontiguousarray(core.weight)
    if same:
        return quantized_tensor(weight, core.weight_scale[0], int(core.weight_zero_point[0]))
    make: Any = torch._make_per_channel_quantized_tensor
    scales = torch.from_numpy(core.weight_scale.astype(np.float64))
    zero_points = torch.from_numpy(core.weight_zero_point.astype(np.int64))
    with warnings.catch_warnings():  # PyTorch announces the end of quantized tensors once a process
        warnings.simplefilter("ignore", UserWarning)
        return make(torch.from_numpy(weight), scales, zero_points, 0)


OPERATOR = Operator("convolution", recognise, kernel, TorchKernel(_torch_covers, _torch_run))
