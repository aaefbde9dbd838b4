"""A short training after a replacement.

What comes in: a changed float module and what the model was trained on. What goes out: the module,
trained. It must not know what was replaced.
"""

from __future__ import annotations

import torch
from torch import fx, nn

from accelsim.artifacts import Training
from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.zoo.training import one_thread, optimize

BATCH = 64


def fine_tune(module: nn.Module, training: Training, epochs: int, seed: int, model: str) -> None:
    """Train in place, every parameter.

    Raises ModelError where the model's own loss or forward fails.
    """
    parameters = [one.requires_grad for one in module.parameters()]
    try:
        for one in module.parameters():
            one.requires_grad_(True)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            batch = min(BATCH, len(training.inputs))
            data = (training.inputs, training.wanted)
            shift = training.shift_pixels
            optimize(module, data, training.loss, epochs, batch, seed, shift)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise ModelError(f"model {model} cannot be trained: {reason(error)}") from error
    finally:
        for one, wanted in zip(module.parameters(), parameters, strict=True):
            one.requires_grad_(wanted)


def trainable(module: fx.GraphModule) -> bool:
    """Whether there is anything to train."""
    return any(True for _ in module.parameters())
