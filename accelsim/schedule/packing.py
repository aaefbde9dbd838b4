"""First layers of few channels: the host packs the kernel's window into lanes.

A convolution of 3 channels would leave most lanes of every weight tile idle. Where its input comes
from the host and nothing else reads it, the host stores patches (`artifacts.Patches`), and the
layer becomes a 1×1 convolution over kernel_h · kernel_w · channels channels. The same products are
summed; padding is stored as the zero point and so adds nothing.
"""

from __future__ import annotations

from dataclasses import replace

from accelsim.artifacts import Conv2d, Layer, Patches, Region, Tensor
from accelsim.spec.config import Config


def pack_first_layers(region: Region, config: Config) -> tuple[Region, dict[str, Patches]]:
    """The region with packed first layers, and the inputs that the host must store as patches."""
    readers: dict[str, int] = {}
    for layer in region.layers:
        for name in layer.inputs:
            readers[name] = readers.get(name, 0) + 1
    tensors, layers = dict(region.tensors), list(region.layers)
    packed: dict[str, Patches] = {}
    for i, layer in enumerate(layers):
        name = layer.inputs[0]
        if name not in region.inputs or readers[name] > 1 or name in region.outputs:
            continue
        if not isinstance(layer.compute, Conv2d) or not _worthwhile(layer.compute, config.lanes):
            continue
        packed[name] = _patches(layer.compute, tensors[name])
        out = tensors[layer.output].shape
        channels = layer.compute.weight[0].size
        tensors[name] = replace(tensors[name], shape=(*out[:3], channels))
        layers[i] = _pointwise(layer, layer.compute)
    return replace(region, tensors=tensors, layers=tuple(layers)), packed


def _worthwhile(conv: Conv2d, lanes: int) -> bool:
    """Whether packing at least halves the weight tiles."""
    kernel_h, kernel_w, channels = (int(size) for size in conv.weight.shape[1:])
    taps = kernel_h * kernel_w
    if conv.depthwise or taps == 1:
        return False
    packed, plain = -(-taps * channels // lanes), taps * -(-channels // lanes)
    return 2 * packed <= plain


def _patches(conv: Conv2d, tensor: Tensor) -> Patches:
    kernel = (conv.weight.shape[1], conv.weight.shape[2])
    return Patches(
        tensor.shape, kernel, conv.stride, conv.padding, conv.dilation, conv.input_zero_point
    )


def _pointwise(layer: Layer, conv: Conv2d) -> Layer:
    weight = conv.weight.reshape(conv.weight.shape[0], 1, 1, -1)
    compute = replace(conv, weight=weight, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1))
    return replace(layer, compute=compute)
