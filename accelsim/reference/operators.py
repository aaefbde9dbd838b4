"""Float operators of the QDQ module as core operators of a layer.

What comes in: a Relax call, its shapes and its weight. What goes out: a `Core`, or None where the
operator has no integer definition here. It must not know layers or tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.artifacts import I8
from accelsim.reference.network import Add, Affine, Core, Padding, Pair, Pool, Shape


@dataclass(frozen=True, slots=True)
class Weight:
    """A dequantized integer constant, per tensor or per channel along `axis`."""

    values: I8
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int
    transposed: bool = False


def operator_core(
    operator: str, call: Any, source: Shape, output: Shape, weight: Weight | None
) -> Core | None:
    """The core of one Relax call on a tensor of shape `source` that gives `output`."""
    if operator == "relax.nn.conv2d":
        return _conv2d(call.attrs, weight)
    if operator == "relax.matmul":
        return _linear(source, weight)
    if operator == "relax.add":
        return Add() if weight is None else None
    if operator == "relax.nn.max_pool2d":
        return _window_pool("max", call.attrs, source, output)
    if operator == "relax.nn.avg_pool2d":
        return _window_pool("mean", call.attrs, source, output)
    if operator == "relax.nn.adaptive_avg_pool2d":
        return _adaptive_pool(call.attrs, source, output)
    if operator == "relax.mean":
        axes = {int(axis) % len(source) for axis in call.attrs.axis}
        if len(source) == 4 and axes == {2, 3}:
            return Pool("mean", (source[2], source[3]), (1, 1), (0, 0, 0, 0))
    return None


def _per_channel(values: np.ndarray, channels: int, dtype: Any) -> np.ndarray | None:
    if values.size not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(values.reshape(-1).astype(dtype), (channels,)))


def _affine(weight: Weight | None, rank: int, **geometry: Any) -> Affine | None:
    if weight is None or weight.values.dtype != np.int8 or weight.values.ndim != rank:
        return None
    channels = int(weight.values.shape[0])
    scale = _per_channel(weight.scale, channels, np.float32)
    zero_point = _per_channel(weight.zero_point, channels, np.int32)
    along_channels = weight.axis % rank == 0 or weight.scale.size == 1
    if scale is None or zero_point is None or not along_channels:
        return None
    values = np.ascontiguousarray(weight.values)
    return Affine(values, scale, zero_point, np.zeros(channels, np.float32), **geometry)


def _conv2d(attrs: Any, weight: Weight | None) -> Affine | None:
    if (str(attrs.data_layout), str(attrs.kernel_layout)) != ("NCHW", "OIHW"):
        return None
    return _affine(
        weight,
        4,
        stride=_pair(attrs.strides),
        padding=_padding(attrs.padding),
        dilation=_pair(attrs.dilation),
        groups=int(attrs.groups),
    )


def _linear(source: Shape, weight: Weight | None) -> Affine | None:
    if weight is None or not weight.transposed or len(source) != 2:
        return None
    return _affine(weight, 2)


def _window_pool(kind: str, attrs: Any, source: Shape, output: Shape) -> Pool | None:
    padding = _padding(attrs.padding)
    kernel, stride = _pair(attrs.pool_size), _pair(attrs.strides)
    padded = (source[2] + padding[0] + padding[2], source[3] + padding[1] + padding[3])
    if str(attrs.layout) != "NCHW" or _pair(attrs.dilation) != (1, 1):
        return None
    bottom, right = (
        max(0, (output[2 + i] - 1) * stride[i] + kernel[i] - padded[i]) for i in (0, 1)
    )
    # Of a mean, windows that hang over the edge and counts that vary are not defined.
    if kind == "mean" and (bottom or right or (any(padding) and not attrs.count_include_pad)):
        return None
    top, left = padding[:2]
    extended = (top, left, padding[2] + bottom, padding[3] + right)
    return Pool(kind, kernel, stride, extended, (bottom, right))


def _adaptive_pool(attrs: Any, source: Shape, output: Shape) -> Pool | None:
    if str(attrs.layout) != "NCHW" or source[2] % output[2] or source[3] % output[3]:
        return None
    kernel = (source[2] // output[2], source[3] // output[3])
    return Pool("mean", kernel, kernel, (0, 0, 0, 0))


def _pair(values: Any) -> Pair:
    first, second = (int(value) for value in values)
    return (first, second)


def _padding(values: Any) -> Padding:
    top, left, bottom, right = (int(value) for value in values)
    return (top, left, bottom, right)
