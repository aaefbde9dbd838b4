"""One small ResNet, quantized in every way that PyTorch has."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.ao.quantization as tq
from torch import nn
from torch.ao.nn.quantized import FloatFunctional
from torch.ao.quantization import quantize_fx
from torch.nn import functional

from accelsim.artifacts import SourceModel

PAIRS = [["conv1", "bn1", "relu"], ["conv2", "bn2"]]


class Block(nn.Module):
    """Two convolutions and a shortcut, written for eager quantization."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.skip = FloatFunctional()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.bn1(self.conv1(x)))
        return self.skip.add_relu(x, self.bn2(self.conv2(hidden)))


class SmallResNet(nn.Module):
    """Stem, two blocks, average and a linear layer, with stubs that only eager mode uses."""

    def __init__(self) -> None:
        super().__init__()
        self.quant = tq.QuantStub()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.layer = nn.Sequential(Block(8), Block(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)
        self.dequant = tq.DeQuantStub()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.bn1(self.conv1(self.quant(image))))
        hidden = self.pool(self.layer(hidden))
        return self.dequant(self.fc(torch.flatten(hidden, 1)))


def network() -> SmallResNet:
    """Seeded weights and uneven batch norms, in eval mode."""
    torch.manual_seed(5)
    module = SmallResNet().eval()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = torch.randn(8) * 0.3
            layer.running_var = torch.rand(8) + 0.2
    return module


def images(batch: int, seed: int = 0) -> torch.Tensor:
    """(batch, 3, 8, 8) float32 of both signs."""
    values = np.random.default_rng(seed).normal(size=(batch, 3, 8, 8)).astype(np.float32)
    return torch.from_numpy(values)


def source(module: nn.Module, name: str = "resnet") -> SourceModel:
    """A model of one image."""
    return SourceModel(name, module, (images(1).numpy(),), ("image",))


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Select a quantized engine, and keep PyTorch's advice to itself."""
    backend: Any = torch.backends.quantized
    before = backend.engine
    backend.engine = name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        backend.engine = before


def fx_prepared(kind: str = "qnnpack", calibrated: bool = True) -> nn.Module:
    """prepare_fx with the default configuration of an engine."""
    with engine(kind), torch.no_grad():
        mapping = tq.get_default_qconfig_mapping(kind)
        prepared = quantize_fx.prepare_fx(network(), mapping, (images(1),))
        if calibrated:
            prepared(images(16, 1))
    return prepared


def fx_trained(kind: str = "qnnpack", steps: int = 3) -> nn.Module:
    """prepare_qat_fx, and a few steps of training."""
    with engine(kind):
        mapping = tq.get_default_qat_qconfig_mapping(kind)
        prepared = quantize_fx.prepare_qat_fx(network().train(), mapping, (images(1),))
        train(prepared, steps)
    return prepared


def fx_converted(kind: str = "qnnpack") -> nn.Module:
    """convert_fx, its weights packed for an engine."""
    with engine(kind):
        return quantize_fx.convert_fx(fx_prepared(kind))


def eager_prepared(kind: str = "qnnpack", calibrated: bool = True) -> nn.Module:
    """Fused, observed by the default observers of an engine."""
    module = network()
    with engine(kind), torch.no_grad():
        tq.fuse_modules(module, PAIRS[0], inplace=True)
        for block in module.layer:
            tq.fuse_modules(block, PAIRS, inplace=True)
        module.qconfig = tq.get_default_qconfig(kind)
        tq.prepare(module, inplace=True)
        if calibrated:
            module(images(16, 1))
    return module


def eager_trained(kind: str = "qnnpack", steps: int = 3) -> nn.Module:
    """The ResNet recipe: MinMax observers, fuse, prepare_qat, train."""
    module = network().train()
    with engine(kind):
        tq.fuse_modules_qat(module, PAIRS[0], inplace=True)
        for block in module.layer:
            tq.fuse_modules_qat(block, PAIRS, inplace=True)
        activations = tq.FakeQuantize.with_args(
            observer=tq.MinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8
        )
        module.qconfig = tq.QConfig(activations, tq.default_weight_fake_quant)
        tq.prepare_qat(module, inplace=True)
        train(module, steps)
    return module


def eager_converted(kind: str = "qnnpack") -> nn.Module:
    """torch.ao.quantization.convert, its weights packed for an engine."""
    with engine(kind):
        return tq.convert(eager_prepared(kind))


def pt2e_prepared(calibrated: bool = True) -> nn.Module:
    """prepare_pt2e with symmetric weights per channel, as XNNPACK takes them."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(network(), (images(1),)).module()
        config = get_symmetric_quantization_config(is_per_channel=True)
        prepared = prepare_pt2e(exported, XNNPACKQuantizer().set_global(config))
        if calibrated:
            for image in images(16, 1):
                prepared(image[None])
    return prepared


def pt2e_converted() -> nn.Module:
    """convert_pt2e."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return convert_pt2e(copy.deepcopy(pt2e_prepared()))


def train(module: nn.Module, steps: int) -> None:
    """A few steps of the prepared module's own parameters."""
    optimizer = torch.optim.SGD(module.parameters(), 0.01)
    for seed in range(steps):
        optimizer.zero_grad()
        module(images(8, seed)).square().mean().backward()
        optimizer.step()


def fx() -> SourceModel:
    """Converted by convert_fx, for `accelsim verify`."""
    return source(fx_converted())


def eager() -> SourceModel:
    """Trained in eager mode and converted, for `accelsim verify`."""
    with engine("qnnpack"):
        return source(tq.convert(eager_trained().eval()))


def pt2e() -> SourceModel:
    """Converted by convert_pt2e, for `accelsim verify`."""
    return source(pt2e_converted())


class Kernels(nn.Module):
    """Most of the other kernels that PyTorch has for quantized tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.swish, self.leaky, self.elu = nn.Hardswish(), nn.LeakyReLU(0.1), nn.ELU()
        self.sigmoid, self.prelu, self.up = nn.Sigmoid(), nn.PReLU(), nn.ConvTranspose2d(8, 4, 2, 2)
        self.twice, self.line = nn.Upsample(scale_factor=2), nn.Conv1d(4, 4, 3)
        self.norm, self.fc = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.elu(self.leaky(self.swish(self.conv(x))))
        hidden = self.bn(functional.max_pool2d(hidden, 2))
        hidden = self.prelu(self.up(hidden * self.sigmoid(hidden)))
        hidden = self.twice(functional.avg_pool2d(hidden, 2)).mean([2])
        hidden = self.line(torch.cat([hidden, hidden], 2))[:, :, :4]
        return self.fc(self.norm(hidden.reshape(1, 16)))


def kernels_prepared() -> nn.Module:
    """`Kernels`, calibrated."""
    torch.manual_seed(6)
    module = Kernels().eval()
    with engine("qnnpack"), torch.no_grad():
        mapping = tq.get_default_qconfig_mapping("qnnpack")
        prepared = quantize_fx.prepare_fx(module, mapping, (images(1),))
        for image in images(16, 1):
            prepared(image[None])
    return prepared


def kernels() -> SourceModel:
    """`Kernels`, converted, for `accelsim verify`."""
    with engine("qnnpack"):
        return source(quantize_fx.convert_fx(kernels_prepared()))
