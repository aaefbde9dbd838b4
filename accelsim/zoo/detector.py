"""`zoo:digits-detector`: digits found and read in scenes.

What comes in: a seed and a cache directory. What goes out: the trained detector as a `SourceModel`
whose metric is mean average precision. It must not know how the network is quantized or run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from accelsim.artifacts import F32, SourceModel, Training
from accelsim.zoo.blocks import ConvBlock
from accelsim.zoo.classifier import Recipe, trained
from accelsim.zoo.detection import FIELDS, mean_average_precision
from accelsim.zoo.digits import load_digits
from accelsim.zoo.scenes import SIDE, Boxes, compose
from accelsim.zoo.training import optimize
from accelsim.zoo.yolo import Csp, Sppf

_CELL = 8  # pixels
_CELLS = SIDE // _CELL
_TRAINING_SCENES, _TEST_SCENES, _BATCH = 800, 100, 32


class Detector(nn.Module):
    """(n, 1, 48, 48) → (n, 15, 6, 6): a CSP backbone, SPPF, and a 1×1 head."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.ReLU6
        self.stem = ConvBlock(1, 16, 3, stride=2, act=act)
        self.down1 = ConvBlock(16, 32, 3, stride=2, act=act)
        self.csp1 = Csp(32, 32, act)
        self.down2 = ConvBlock(32, 64, 3, stride=2, act=act)
        self.csp2 = Csp(64, 64, act)
        self.sppf = Sppf(64, 64, act)
        self.head = nn.Conv2d(64, FIELDS, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.csp1(self.down1(self.stem(x)))
        grid: Tensor = self.head(self.sppf(self.csp2(self.down2(y))))
        return grid


def build(recipe: Recipe, seed: int, cache: Path) -> SourceModel:
    """Train, or take the weights of an earlier training with this recipe and seed.

    Raises:
        InputError: the cache directory cannot be written.
    """
    digits = load_digits(seed)
    scenes, boxes = compose(digits.train_images, digits.train_labels, _TRAINING_SCENES, seed)
    test, found = compose(digits.test_images, digits.test_labels, _TEST_SCENES, seed + 1)

    def fit(module: nn.Module) -> None:
        optimize(module, (scenes, targets(boxes)), loss, recipe.epochs, _BATCH, seed)

    return SourceModel(
        name=f"zoo:{recipe.name}",
        float_module=trained(recipe, seed, cache, fit),
        example_inputs=(test[:1],),
        input_names=("x",),
        calibration=tuple(np.split(scenes[: 4 * _BATCH], 4)),
        test_inputs=test,
        test_labels=found,
        metric=mean_average_precision,
        training=Training(scenes, targets(boxes), loss),
    )


def targets(boxes: Boxes) -> F32:
    """(scenes, 4, 5) boxes → (scenes, 6, 6, 6) wanted presence, place, sizes and class of cells."""
    wanted = np.zeros((len(boxes), 6, _CELLS, _CELLS), np.float32)
    scene, slot = np.nonzero(boxes[..., 0] >= 0)
    number, left, top, width, height = boxes[scene, slot].T
    x, y = (left + width / 2) / _CELL, (top + height / 2) / _CELL
    column, row = x.astype(np.int64), y.astype(np.int64)
    sizes = np.log(width / _CELL), np.log(height / _CELL)
    values: Any = (np.ones(len(scene)), x - column, y - row, *sizes, number)
    wanted[scene, :, row, column] = np.stack(values, 1)
    return wanted


def loss(grid: Tensor, wanted: Tensor) -> Tensor:
    """Presence everywhere; place, size and class where a digit has its centre."""
    presence = functional.binary_cross_entropy_with_logits(grid[:, 0], wanted[:, 0])
    here = wanted[:, 0] > 0
    chosen, truth = grid.permute(0, 2, 3, 1)[here], wanted.permute(0, 2, 3, 1)[here]
    place = functional.mse_loss(torch.sigmoid(chosen[:, 1:3]), truth[:, 1:3])
    size = functional.mse_loss(chosen[:, 3:5], truth[:, 3:5])
    kind = functional.cross_entropy(chosen[:, 5:], truth[:, 5].long())
    return 4 * presence + 2 * place + 2 * size + kind
