"""The layers that are measured, with random weights.

What comes in: a seeded generator. What goes out: regions of one layer. Shapes are those of
ResNet-18's convolutions and linear layer, of the first layer and three depthwise layers of
MobileNetV2, at 224×224, and depthwise layers of the sizes that networks have.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from accelsim.artifacts import Conv2d, Layer, Region, Requantize, Shape4, Tensor

INPUT_ZERO_POINT = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """One convolution. `times` is how often the network has it; 0: it counts for no network."""

    name: str
    in_channels: int
    out_channels: int
    size: int  # input height and width
    kernel: int
    stride: int
    padding: int
    times: int = 1
    depthwise: bool = False

    @property
    def out_size(self) -> int:
        """Output height and width."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def macs(self) -> int:
        """Products of the layer."""
        taps = self.kernel**2 * (1 if self.depthwise else self.in_channels)
        return self.out_size**2 * self.out_channels * taps

    @property
    def product(self) -> tuple[int, int, int, int]:
        """(batch, pixels, depth, outputs) of the im2col product; depthwise has a batch."""
        pixels, taps = self.out_size**2, self.kernel**2
        if self.depthwise:
            return self.out_channels, pixels, taps, 1
        return 1, pixels, taps * self.in_channels, self.out_channels


RESNET18 = (
    Shape("conv1", 3, 64, 224, 7, 2, 3),
    Shape("layer1 3×3", 64, 64, 56, 3, 1, 1, 4),
    Shape("layer2 3×3/2", 64, 128, 56, 3, 2, 1),
    Shape("layer2 1×1/2", 64, 128, 56, 1, 2, 0),
    Shape("layer2 3×3", 128, 128, 28, 3, 1, 1, 3),
    Shape("layer3 3×3/2", 128, 256, 28, 3, 2, 1),
    Shape("layer3 1×1/2", 128, 256, 28, 1, 2, 0),
    Shape("layer3 3×3", 256, 256, 14, 3, 1, 1, 3),
    Shape("layer4 3×3/2", 256, 512, 14, 3, 2, 1),
    Shape("layer4 1×1/2", 256, 512, 14, 1, 2, 0),
    Shape("layer4 3×3", 512, 512, 7, 3, 1, 1, 3),
    Shape("fc", 512, 1000, 1, 1, 1, 0),
)
MOBILENETV2 = (
    Shape("first 3×3/2 @224", 3, 32, 224, 3, 2, 1, 0),
    Shape("depthwise 32 @112", 32, 32, 112, 3, 1, 1, 0, True),
    Shape("depthwise 96/2 @112", 96, 96, 112, 3, 2, 1, 0, True),
    Shape("depthwise 384 @14", 384, 384, 14, 3, 1, 1, 0, True),
)

DEPTHWISE = tuple(
    Shape(f"depthwise {channels} @{size}", channels, channels, size, 3, 1, 1, 0, True)
    for size in (56, 28, 14, 7)
    for channels in (64, 128, 256, 512)
    if size < 56 or channels < 256
)


def convolution(rng: np.random.Generator, shape: Shape) -> Conv2d:
    """Full-range weights, with multipliers that spread the outputs over int8."""
    taps = shape.kernel**2 * (1 if shape.depthwise else shape.in_channels)
    weights = (shape.out_channels, shape.kernel, shape.kernel, taps // shape.kernel**2)
    scale = 40 / (74 * 74 * np.sqrt(taps)) * rng.uniform(0.5, 2, shape.out_channels)
    return Conv2d(
        weight=rng.integers(-128, 128, weights).astype(np.int8),
        bias=rng.integers(-3000, 3000, shape.out_channels).astype(np.int32),
        input_zero_point=INPUT_ZERO_POINT,
        weight_zero_point=0,
        requantize=Requantize(scale.astype(np.float32), 5, -128, 127),
        stride=(shape.stride, shape.stride),
        padding=(shape.padding,) * 4,
        depthwise=shape.depthwise,
    )


def region(rng: np.random.Generator, shape: Shape) -> Region:
    """The layer on its own: input "x", output "y"."""
    source: Shape4 = (1, shape.size, shape.size, shape.in_channels)
    target: Shape4 = (1, shape.out_size, shape.out_size, shape.out_channels)
    tensors = {
        "x": Tensor("x", source, INPUT_ZERO_POINT, 1.0),
        "y": Tensor("y", target, 5, 1.0),
    }
    op = "depthwise_conv2d" if shape.depthwise else "conv2d"
    layer = Layer(shape.name, op, (shape.name,), ("x",), "y", convolution(rng, shape))
    return Region("bench", tensors, ("x",), ("y",), (layer,))


def random_input(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """(1, size, size, in_channels) int8 over the whole range."""
    extent = (1, shape.size, shape.size, shape.in_channels)
    return rng.integers(-128, 128, prod(extent)).astype(np.int8).reshape(extent)
