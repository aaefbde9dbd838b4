"""Building blocks of real networks in plain PyTorch, small, with random weights.

accelsim verify examples/blocks.py:transformer --config edge8
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class SqueezeExcite(nn.Module):
    """Scales each channel by a gate made of the channels' means."""

    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.average = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(channels, reduced, 1)
        self.relu = nn.ReLU()
        self.expand = nn.Conv2d(reduced, channels, 1)
        self.gate = nn.Hardsigmoid()

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(self.expand(self.relu(self.reduce(self.average(x)))))
        return x * gate


class InvertedResidual(nn.Module):
    """MobileNetV3's block: expand, depthwise, squeeze and excite, project; with a shortcut."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.expand = nn.Conv2d(channels, hidden, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(hidden)
        self.act1 = nn.Hardswish()
        self.depthwise = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False)
        self.bn2 = nn.BatchNorm2d(hidden)
        self.act2 = nn.Hardswish()
        self.excite = SqueezeExcite(hidden, 8)
        self.project = nn.Conv2d(hidden, channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act1(self.bn1(self.expand(x)))
        y = self.act2(self.bn2(self.depthwise(y)))
        return x + self.bn3(self.project(self.excite(y)))


class Shuffle(nn.Module):
    """ShuffleNetV2's unit: half of the channels pass by, then both halves are interleaved."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
            nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False),
            nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        passed, taken = torch.chunk(self.stem(x), 2, dim=1)
        joined = torch.cat([passed, self.branch(taken)], dim=1)
        return functional.channel_shuffle(joined, 2)


class ConvSiLU(nn.Module):
    """Convolution, batch norm and SiLU."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        padding = kernel // 2
        self.conv = nn.Conv2d(in_channels, out_channels, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.bn(self.conv(x)))
        return y


class Neck(nn.Module):
    """A detector's neck: a CSP block, SPPF's chain of max pools, and an upsampled pyramid level."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.down = ConvSiLU(channels, channels, 3, 2)
        self.left = ConvSiLU(channels, half, 1)
        self.right = ConvSiLU(channels, half, 1)
        self.inner = ConvSiLU(half, half, 3)
        self.join = ConvSiLU(channels, channels, 1)
        self.narrow = ConvSiLU(channels, half, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.spread = ConvSiLU(4 * half, channels, 1)
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")
        self.head = ConvSiLU(2 * channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.down(x)
        left = self.left(y)
        y = self.join(torch.cat([left + self.inner(left), self.right(y)], dim=1))
        first = self.narrow(y)
        second = self.pool(first)
        third = self.pool(second)
        y = self.spread(torch.cat([first, second, third, self.pool(third)], dim=1))
        result: Tensor = self.head(torch.cat([self.upsample(y), x], dim=1))
        return result


class Fire(nn.Module):
    """SqueezeNet's module: squeeze, then 1×1 and 3×3 kernels side by side."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.relu = nn.ReLU()
        self.expand1 = nn.Conv2d(squeezed, expanded, 1)
        self.relu1 = nn.ReLU()
        self.expand3 = nn.Conv2d(squeezed, expanded, 3, padding=1)
        self.relu3 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.squeeze(x))
        return torch.cat([self.relu1(self.expand1(y)), self.relu3(self.expand3(y))], dim=1)


class UNet(nn.Module):
    """One level of an encoder and decoder: pool, transposed convolution, skipping concat."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.encode = nn.Conv2d(3, channels, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.middle = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.relu2 = nn.ReLU()
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.norm = nn.BatchNorm2d(2 * channels)
        self.decode = nn.Conv2d(2 * channels, 5, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.relu1(self.encode(x))
        deep = self.relu2(self.middle(self.pool(skip)))
        result: Tensor = self.decode(self.norm(torch.cat([self.up(deep), skip], dim=1)))
        return result


class KeywordSpotter(nn.Module):
    """(n, 10, 24) features over time → (n, 6): convolutions over one axis."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(10, 16, 5, stride=2, padding=2)
        self.relu1 = nn.ReLU()
        self.pool = nn.AvgPool1d(3, 2, 1, count_include_pad=False)
        self.conv2 = nn.Conv1d(16, 20, 3, padding=2, dilation=2)
        self.relu2 = nn.ReLU()
        self.linear = nn.Linear(20 * 6, 6)

    def forward(self, x: Tensor) -> Tensor:
        y = self.pool(self.relu1(self.conv1(x)))
        y = self.relu2(self.conv2(y))
        result: Tensor = self.linear(torch.flatten(y, 1))
        return result


class Attention(nn.Module):
    """Self-attention of (n, tokens, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.softmax = nn.Softmax(dim=-1)
        self.project = nn.Linear(width, width)

    def split(self, x: Tensor, tokens: int, width: int) -> Tensor:
        """(n, tokens, width) → (n, heads, tokens, width / heads)."""
        return x.view(-1, tokens, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        tokens, width = 10, 16
        query = self.split(self.query(x), tokens, width)
        key = self.split(self.key(x), tokens, width)
        value = self.split(self.value(x), tokens, width)
        scores = torch.matmul(query, key.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mixed = torch.matmul(self.softmax(scores), value)
        joined = mixed.transpose(1, 2).reshape(-1, tokens, width)
        result: Tensor = self.project(joined)
        return result


class Encoder(nn.Module):
    """A transformer's encoder layer, norms before attention and MLP."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, hidden)
        self.gelu = nn.GELU()
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(self.gelu(self.fc1(self.norm2(x))))


class SuperResolution(nn.Module):
    """(n, 3, h, w) → (n, 3, 2h, 2w): three bent lines, then channels turned into space."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1)
        self.prelu = nn.PReLU(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.leaky = nn.LeakyReLU(0.1)
        self.conv3 = nn.Conv2d(channels, channels, 1)
        self.elu = nn.ELU()
        self.conv4 = nn.Conv2d(channels, 12, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.prelu(self.conv1(x))
        y = self.elu(self.conv3(self.leaky(self.conv2(y))))
        result: Tensor = self.shuffle(self.conv4(y))
        return result


Model = tuple[nn.Module, Tensor]


def _seeded(make: type[nn.Module], *sizes: int, shape: tuple[int, ...]) -> Model:
    """A module and an example from a fixed seed; slopes and norms are not as they start."""
    torch.manual_seed(0)
    module = make(*sizes).eval()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, std=0.3)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
        if isinstance(layer, nn.BatchNorm2d | nn.LayerNorm):
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
        if isinstance(layer, nn.PReLU):
            nn.init.uniform_(layer.weight, 0.05, 0.5)
    return module, torch.randn(shape)


def squeeze_excite() -> Model:
    """Hard-swish, hard-sigmoid, a global average, a product over channels."""
    return _seeded(InvertedResidual, 12, 24, shape=(1, 12, 8, 8))


def shuffle() -> Model:
    """A split, a concat and a channel shuffle around convolutions."""
    return _seeded(Shuffle, 20, shape=(1, 3, 16, 16))


def neck() -> Model:
    """SiLU, concats of two and four tensors, max pools, an upsampling."""
    return _seeded(Neck, 12, shape=(1, 12, 12, 12))


def fire() -> Model:
    """A concat of two convolutions."""
    return _seeded(Fire, 16, 6, 11, shape=(1, 16, 8, 8))


def unet() -> Model:
    """A transposed convolution, a concat, and a batch norm that nothing can absorb."""
    return _seeded(UNet, 8, shape=(1, 3, 12, 12))


def keywords() -> Model:
    """Convolutions and an average over one axis."""
    return _seeded(KeywordSpotter, shape=(1, 10, 24))


def transformer() -> Model:
    """Projections, products of activations, softmax, layer norms, GELU."""
    return _seeded(Encoder, 16, 2, 24, shape=(1, 10, 16))


def super_resolution() -> Model:
    """PReLU, leaky ReLU, ELU and a pixel shuffle."""
    return _seeded(SuperResolution, 12, shape=(1, 3, 8, 8))
