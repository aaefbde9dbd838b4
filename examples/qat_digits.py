"""Quantization-aware training that wins back what post-training quantization lost.

A depthwise separable network on scikit-learn's digits, whose channels differ in range by powers of
two, as in networks that were trained long or pruned: one scale for all channels loses nearly half
of the accuracy. Equalisation wins most of it back; training on from there with fake quantizers wins
the rest. (Training on from the unequal network wins half of it.) All with per-tensor weights:

    python examples/qat_digits.py

The trained int8 network on simulator and RTL:

    accelsim verify examples/qat_digits.py:make --config edge8
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.ao.quantization import get_default_qat_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_qat_fx

from accelsim.artifacts import SourceModel
from accelsim.calibrate import check_optimizer
from accelsim.calibrate.equalize import equalized
from accelsim.calibrate.trials import Choice, Workshop
from accelsim.quantize import qnnpack_engine
from accelsim.quantize.recipe import Recipe
from accelsim.zoo.digits import Digits, load_digits
from accelsim.zoo.training import one_thread, train

SEED = 0
BATCH = 64
FLOAT_EPOCHS = 10
QAT_EPOCHS = 6
QAT_RATE = 3e-3  # the highest of a one-cycle learning rate
SPREAD = 2.0  # standard deviation of the channels' first ranges, in powers of two


class Separable(nn.Module):
    """A depthwise 3×3 convolution, then a pointwise one, each with batch norm and ReLU."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels, in_channels, 3, stride, padding=1, groups=in_channels, bias=False
        )
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.relu1 = nn.ReLU()
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.relu1(self.bn1(self.depthwise(x)))
        y: Tensor = self.relu2(self.bn2(self.pointwise(hidden)))
        return y


class UnequalNet(nn.Module):
    """(n, 1, 16, 16) → (n, 10); scales of batch norm start spread over powers of two."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.blocks = nn.Sequential(
            Separable(16, 24, 2), Separable(24, 32), Separable(32, 48, 2), Separable(48, 48)
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(48, 10)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                with torch.no_grad():
                    module.weight.mul_(torch.exp2(SPREAD * torch.randn(len(module.weight))))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.blocks(self.relu(self.bn(self.stem(x))))
        y: Tensor = self.fc(torch.flatten(self.pool(hidden), 1))
        return y


def trained(digits: Digits, epochs: int = FLOAT_EPOCHS) -> SourceModel:
    """The float network, with calibration batches and the test split."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        module = UnequalNet()
        train(module, digits.train_images, digits.train_labels, epochs, BATCH, SEED)
    images = digits.train_images[: 6 * BATCH]
    return source_of(module, digits, tuple(np.split(images, 6)))


def source_of(
    module: nn.Module, digits: Digits, calibration: tuple[np.ndarray, ...] = ()
) -> SourceModel:
    """A module with the test split, as `accelsim` takes it."""
    return SourceModel(
        name="qat_digits",
        float_module=module,
        example_inputs=(digits.test_images[:1],),
        input_names=("x",),
        calibration=calibration,
        test_inputs=digits.test_images,
        test_labels=digits.test_labels,
    )


def post_training(source: SourceModel, equal: bool) -> Callable[[Tensor], Tensor]:
    """PyTorch's int8 network, calibrated on the training images."""
    with one_thread():
        workshop = Workshop(source, [(batch,) for batch in source.calibration])
        choice = Choice(Recipe("mse", per_channel=False), equal, bias_corrected=False)
        int8: Callable[[Tensor], Tensor] = workshop.quantized(choice).int8
    return int8


def quantization_aware(
    module: nn.Module, digits: Digits, epochs: int = QAT_EPOCHS
) -> fx.GraphModule:
    """A float network with fake quantizers, trained further; not converted yet.

    The optimizer is made after preparing, since preparing makes new parameters. In the last epoch
    ranges and batch norm stand still, so that the weights settle for the scales that will be used.
    """
    images, labels = torch.from_numpy(digits.train_images), torch.from_numpy(digits.train_labels)
    generator = torch.Generator().manual_seed(SEED)
    steps = len(labels) // BATCH
    with qnnpack_engine(), one_thread():
        mapping = get_default_qat_qconfig_mapping("qnnpack")
        prepared: Any = prepare_qat_fx(copy.deepcopy(module).train(), mapping, (images[:1],))
        optimizer = torch.optim.AdamW(prepared.parameters(), weight_decay=0.0)
        check_optimizer(optimizer, prepared)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=QAT_RATE, total_steps=epochs * steps
        )
        for epoch in range(epochs):
            if epoch == epochs - 1:
                prepared.apply(torch.ao.quantization.disable_observer)
                prepared.apply(torch.ao.nn.intrinsic.qat.freeze_bn_stats)
            order = torch.randperm(len(labels), generator=generator)
            for chosen in order[: steps * BATCH].reshape(steps, BATCH):
                loss = nn.functional.cross_entropy(prepared(images[chosen]), labels[chosen])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    result: fx.GraphModule = prepared.eval()
    return result


def converted(prepared: fx.GraphModule) -> Callable[[Tensor], Tensor]:
    """PyTorch's int8 network of a trained one, which stays as it is."""
    with qnnpack_engine():
        int8: Callable[[Tensor], Tensor] = convert_fx(copy.deepcopy(prepared))
    return int8


def accuracy(network: Callable[[Tensor], Tensor], digits: Digits) -> float:
    """Share of right classes on the test split."""
    with torch.no_grad(), qnnpack_engine(), one_thread():
        scores = network(torch.from_numpy(digits.test_images))
    return float((scores.argmax(1).numpy() == digits.test_labels).mean())


def make() -> SourceModel:
    """The network after quantization-aware training, for `accelsim verify`."""
    digits = load_digits(SEED)
    equal, _ = equalized(trained(digits).float_module, "qat_digits")
    return source_of(quantization_aware(equal, digits), digits)


def main(float_epochs: int = FLOAT_EPOCHS, qat_epochs: int = QAT_EPOCHS) -> dict[str, float]:
    """Accuracies by way, printed too."""
    digits = load_digits(SEED)
    source = trained(digits, float_epochs)
    found = {"float": accuracy(source.float_module, digits)}
    found["post-training"] = accuracy(post_training(source, equal=False), digits)
    found["post-training, equalised"] = accuracy(post_training(source, equal=True), digits)
    equal, _ = equalized(source.float_module, source.name)
    prepared = quantization_aware(equal, digits, qat_epochs)
    found["equalised, then trained"] = accuracy(converted(prepared), digits)
    for way, share in found.items():
        sys.stdout.write(f"{way:26}{share:8.2%} of {len(digits.test_labels)}\n")
    return found


if __name__ == "__main__":
    main()
