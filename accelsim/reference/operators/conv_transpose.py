"""Transposed convolution: `relax.nn.conv1d_transpose` and `conv2d_transpose`, perhaps plus a bias.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tvm import te, tirx

from accelsim.artifacts import F32, I8, I32
from accelsim.reference.derive import affine_parameters, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source, Weight
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.network import Pair
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.site import Site
from accelsim.reference.torch_tensor import torch_target
from accelsim.reference.weighted import biases, centred, per_channel, torch_weight, without_bias
from accelsim.reference.windows import pair_of

_LAYOUTS = {
    "relax.nn.conv1d_transpose": (("NCW", "IOW"),),
    "relax.nn.conv2d_transpose": (("NCHW", "IOHW"), ("NHWC", "IOHW")),
}


@dataclass(frozen=True, slots=True)
class Spread:
    """Weights (out_channels, in_channels / groups, kernel_h, kernel_w), and where inputs fall.

    `padding` is what is cut off at the top and left, `added` the rows and columns at the end
    beyond what equal padding at both ends leaves. A conv1d has one row.
    """

    weight: I8
    weight_scale: F32  # (out_channels,)
    weight_zero_point: I32  # (out_channels,)
    bias: F32  # (out_channels,)
    integer_bias: I32 | None
    stride: Pair
    padding: Pair
    added: Pair
    dilation: Pair
    groups: int
    last: bool  # whether channels are the last axis of activations


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the compiled function depends on beyond shapes."""

    mode: str
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    last: bool


def recognise(island: Island) -> Claim | None:
    """A transposed convolution of one activation and one weight."""
    node, bias = without_bias(island.ending.value)
    if not isinstance(node, Node) or node.operator not in _LAYOUTS:
        return None
    source, weight = node.operands
    attrs = node.attrs
    layouts = str(attrs.data_layout), str(attrs.kernel_layout)
    known = isinstance(source, Source) and isinstance(weight, Weight)
    if not known or layouts not in _LAYOUTS[node.operator] or weight.values.dtype != np.int8:
        return None
    groups = int(attrs.groups)
    scale, zero_point = _channels(weight, groups)
    if scale is None or zero_point is None:
        return None
    last = layouts[0] == "NHWC"
    trailing = 0 if last else len(node.shape) - 2
    found = biases(bias, scale.size, trailing, source.tensor.scale * scale)
    if found is None:
        return None
    values = _output_first(weight.values, groups)
    core = Spread(
        values,
        scale,
        zero_point,
        *found,
        stride=pair_of(attrs.strides, 1),
        padding=pair_of(list(attrs.padding)[: len(node.shape) - 2], 0),
        added=(0, 0),
        dilation=pair_of(attrs.dilation, 1),
        groups=groups,
        last=last,
    )
    extents = [_extents(shape, last) for shape in (source.shape, node.shape)]
    core = replace(core, added=_added(core, *extents))
    macs = math.prod(source.shape) * math.prod(values.shape[2:]) * values.shape[0] // groups
    return Claim("conv_transpose2d", core, (source,), node.shape, island.ending.limits, macs)


def _channels(weight: Weight, groups: int) -> tuple[F32 | None, I32 | None]:
    """Scales and zero points one an output channel; each group has the same ones."""
    each = weight.values.shape[1]
    if weight.scale.size > 1 and weight.axis % weight.values.ndim != 1:
        return None, None
    scale = per_channel(weight.scale, each, np.float32)
    zero_point = per_channel(weight.zero_point, each, np.int32)
    if scale is None or zero_point is None:
        return None, None
    return np.tile(scale, groups), np.tile(zero_point, groups)


def _output_first(values: I8, groups: int) -> I8:
    """(in, out / groups, …) → (out, in / groups, kernel_h, kernel_w)."""
    inputs, each, *taps = values.shape
    kernel = taps if len(taps) == 2 else [1, *taps]
    split = values.reshape(groups, inputs // groups, each, *kernel)
    turned = split.transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(turned.reshape(groups * each, inputs // groups, *kernel))


def _extents(shape: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """Height and width, 1 of a tensor without rows."""
    return shape[1:3] if last else (1, *shape[2:])[-2:]


def _added(core: Spread, source: tuple[int, ...], output: tuple[int, ...]) -> Pair:
    """Rows and columns at the end beyond those of equal padding at both ends."""
    extents = (source, output)
    rows, columns = (
        out
        - ((size - 1) * core.stride[i] + (core.weight.shape[2 + i] - 1) * core.dilation[i] + 1)
        + 2 * core.padding[i]
        for i, (size, out) in enumerate(zip(*extents, strict=True))
    )
    return rows, columns


def kernel(site: Site) -> Kernel:
    """Every input adds its products to the outputs under its window; + bias, requantized."""
    core: Spread = site.layer.core
    bias, scaling = affine_parameters(site, core, connected=False)
    values: dict[str, np.ndarray] = {
        "centred_weight": centred(core.weight, core.weight_zero_point),
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int16),
        "bias": bias,
        **scaling.values(),
        **ends_of(site),
    }
    windows = (core.stride, core.padding, core.dilation)
    geometry = Geometry(scaling.mode, *windows, core.groups, core.last)
    return Kernel(_emit, values, geometry)


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    geometry: Geometry = emit.geometry
    shape = emit.shapes.core_output

    def spread(data: Any, weight: Any) -> Any:
        inputs, each = int(weight.shape[1]), int(weight.shape[0]) // geometry.groups
        channel = te.reduce_axis((0, inputs), name="channel")
        taps = [te.reduce_axis((0, int(weight.shape[2 + i])), name=f"tap{i}") for i in (0, 1)]
        size = _extents(tuple(int(extent) for extent in data.shape), geometry.last)

        def element(image: Any, *index: Any) -> Any:
            *place, out = index if geometry.last else (*index[1:], index[0])
            target = (0, *place)[-2:]
            reached = [
                target[i] + geometry.padding[i] - taps[i] * geometry.dilation[i] for i in (0, 1)
            ]
            met = [te.floordiv(reached[i], geometry.stride[i]) for i in (0, 1)]
            falls = [
                condition
                for i in (0, 1)
                for condition in (
                    te.floormod(reached[i], geometry.stride[i]) == 0,
                    met[i] >= 0,
                    met[i] < size[i],
                )
            ]
            at = met if len(place) == 2 else met[1:]
            source = te.floordiv(out, each) * inputs + channel
            taken = data(image, *at, source) if geometry.last else data(image, source, *at)
            factor = weight(out, channel, *taps).astype("int32")
            product = taken.astype("int32") * factor
            meets = tirx.if_then_else(tirx.all(*falls), product, tirx.const(0, "int32"))
            return te.sum(meets, axis=[channel, *taps])

        return te.compute(shape, element)

    data = emit.centred(x[0], p["input_zero_point"])
    accumulator = emit.builder.emit_te(spread, data, p["centred_weight"])
    return emit.requantized(accumulator, p, geometry.mode)


def _torch_covers(site: Site) -> bool:
    """PyTorch's extra outputs are fewer than a stride or a dilation; its groups share a scale."""
    core: Spread = site.layer.core
    if core.groups > 1 and len(set(core.weight_scale.tolist())) > 1:
        return False
    limits = (max(s, d) for s, d in zip(core.stride, core.dilation, strict=True))
    fits = all(0 <= added < limit for added, limit in zip(core.added, limits, strict=True))
    return site.rounding in ("fp32", "qnnpack") and fits and not core.last


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Spread = site.layer.core
    kernels: Any = torch.ops.quantized
    outputs, inputs, *taps = core.weight.shape
    each, dims = outputs // core.groups, operands[0].dim() - 2
    split = core.weight.reshape(core.groups, each, inputs, *taps).transpose(0, 2, 1, 3, 4)
    values = split.reshape(core.groups * inputs, each, *taps[2 - dims :])
    weight = torch_weight(values, core.weight_scale[:each], core.weight_zero_point[:each], axis=1)
    bias = torch.from_numpy(np.ascontiguousarray(core.bias, dtype=np.float32))
    pairs = (core.stride, core.padding, core.added, core.dilation)
    packed = getattr(kernels, f"conv_transpose{dims}d_prepack")(
        weight, bias, *([*pair][2 - dims :] for pair in pairs), core.groups
    )
    run = getattr(kernels, f"conv_transpose{dims}d")
    return run(operands[0], packed, *torch_target(site.output))


OPERATOR = Operator(
    "conv_transpose",
    recognise,
    kernel,
    TorchKernel(_torch_covers, _torch_run),
    tensor_ranks=frozenset({3, 4}),
)
