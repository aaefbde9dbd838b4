"""A short, deterministic training loop for image classifiers.

What comes in: a module, images and labels, a seed. What goes out: the module with trained weights.
It must not know the network or the data set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accelsim.artifacts import F32

_PEAK_LEARNING_RATE = 6e-3
_WEIGHT_DECAY = 1e-2
_SHIFT_PIXELS = 1


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
    """AdamW under a one-cycle learning rate, with images shifted by up to one pixel.

    Args:
        module: maps (n, c, h, w) float32 to (n, classes) scores; trained in place.
        images: (samples, c, h, w).
        labels: (samples,) class numbers.
        epochs: passes over the samples.
        batch: samples a step; a last partial batch is dropped.
        seed: seeds the order of samples and the shifts.
    """
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
    steps = len(labels) // batch
    optimizer = torch.optim.AdamW(module.parameters(), weight_decay=_WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=_PEAK_LEARNING_RATE, total_steps=epochs * steps
    )
    module.train()
    for _ in range(epochs):
        order = torch.randperm(len(labels), generator=generator)
        for step in range(steps):
            chosen = order[step * batch : (step + 1) * batch]
            shift = torch.randint(-_SHIFT_PIXELS, _SHIFT_PIXELS + 1, (2,), generator=generator)
            shifted = torch.roll(inputs[chosen], (int(shift[0]), int(shift[1])), dims=(2, 3))
            loss = nn.functional.cross_entropy(module(shifted), targets[chosen])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    module.eval()
