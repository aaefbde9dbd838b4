"""A short, deterministic training loop.

What comes in: a module, images, what is wanted for them, and a seed. What goes out: the module with
trained weights. It must not know the network or the data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accelsim.artifacts import F32

_PEAK_LEARNING_RATE = 6e-3
_WEIGHT_DECAY = 1e-2
SHIFT_PIXELS = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: sums are then taken in one order, so results repeat."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    module: nn.Module,
    images: F32,
    labels: NDArray[np.int64],
    epochs: int,
    batch: int,
    seed: int,
) -> None:
    """Train a classifier on images shifted by up to one pixel.

    Args:
        module: maps (n, c, h, w) float32 to (n, classes) scores; trained in place.
        images: (samples, c, h, w).
        labels: (samples,) class numbers.
        epochs: passes over the samples.
        batch: samples a step; a last partial batch is dropped.
        seed: seeds the order of samples and the shifts.
    """
    data = (images, labels)
    optimize(module, data, nn.functional.cross_entropy, epochs, batch, seed, SHIFT_PIXELS)


def optimize(
    module: nn.Module,
    data: tuple[F32, NDArray[Any]],
    loss: Callable[[Tensor, Tensor], Tensor],
    epochs: int,
    batch: int,
    seed: int,
    shift_pixels: int = 0,
) -> None:
    """AdamW under a one-cycle learning rate; the module is trained in place, and in eval mode then.

    Args:
        module: maps a batch of inputs to outputs.
        data: inputs (samples, c, h, w) and what is wanted for each, (samples, ...).
        loss: of outputs and what is wanted.
        epochs: passes over the samples.
        batch: samples a step; a last partial batch is dropped.
        seed: seeds the order of samples and the shifts.
        shift_pixels: largest shift of a batch's images.
    """
    generator = torch.Generator().manual_seed(seed)
    inputs, wanted = (torch.from_numpy(array) for array in data)
    steps = len(inputs) // batch
    optimizer = torch.optim.AdamW(module.parameters(), weight_decay=_WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=_PEAK_LEARNING_RATE, total_steps=epochs * steps
    )
    module.train()
    for _ in range(epochs):
        order = torch.randperm(len(inputs), generator=generator)
        for step in range(steps):
            chosen = order[step * batch : (step + 1) * batch]
            images = inputs[chosen]
            if shift_pixels:
                shift = torch.randint(-shift_pixels, shift_pixels + 1, (2,), generator=generator)
                images = torch.roll(images, (int(shift[0]), int(shift[1])), dims=(2, 3))
            value = loss(module(images), wanted[chosen])
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    module.eval()
