"""Image classifiers trained on the digits.

What comes in: a recipe, a seed and a cache directory. What goes out: the trained network as a
`SourceModel` with calibration batches and a labelled test split. It must not know how the network
is quantized or which hardware runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from accelsim.artifacts import SourceModel, Training
from accelsim.zoo.cache import read_arrays, write_arrays
from accelsim.zoo.digits import Digits, load_digits
from accelsim.zoo.training import SHIFT_PIXELS, one_thread, train

EPOCHS = 14
_BATCH = 64
_CALIBRATION_BATCHES = 6


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network of the zoo is made.

    `version` is part of the cache key: raise it when network, data or training change.
    """

    name: str  # without `zoo:`
    make: Callable[[], nn.Module]
    epochs: int = EPOCHS
    version: int = 1


def build(recipe: Recipe, seed: int, cache: Path) -> SourceModel:
    """Train, or take the weights of an earlier training with this recipe and seed.

    Raises:
        InputError: the cache directory cannot be written.
    """
    digits = load_digits(seed)

    def fit(module: nn.Module) -> None:
        train(module, digits.train_images, digits.train_labels, recipe.epochs, _BATCH, seed)

    module = trained(recipe, seed, cache, fit)
    return classifier(f"zoo:{recipe.name}", module, digits)


def trained(recipe: Recipe, seed: int, cache: Path, fit: Callable[[nn.Module], None]) -> nn.Module:
    """The network in eval mode, from the cache or trained by `fit` and then cached."""
    key = f"{recipe.name}-r{recipe.version}-e{recipe.epochs}-s{seed}-torch{torch.__version__}.npz"
    path = cache / "zoo" / key
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = recipe.make()
        if not _restored(module, path):
            with one_thread():
                fit(module)
            state = module.state_dict()
            write_arrays(path, {key: value.numpy() for key, value in state.items()})
    return module.eval()


def classifier(name: str, module: nn.Module, digits: Digits) -> SourceModel:
    """A classifier of the digits with their calibration batches and test split."""
    images = digits.train_images[: _BATCH * _CALIBRATION_BATCHES]
    return SourceModel(
        name=name,
        float_module=module,
        example_inputs=(digits.test_images[:1],),
        input_names=("x",),
        calibration=tuple(np.split(images, _CALIBRATION_BATCHES)),
        test_inputs=digits.test_images,
        test_labels=digits.test_labels,
        training=Training(
            digits.train_images, digits.train_labels, nn.functional.cross_entropy, SHIFT_PIXELS
        ),
    )


def _restored(module: nn.Module, path: Path) -> bool:
    """Whether the cache had weights that fit the network."""
    arrays = read_arrays(path)
    if arrays is None:
        return False
    try:
        module.load_state_dict({key: torch.from_numpy(value) for key, value in arrays.items()})
    except (RuntimeError, TypeError):  # another network's weights: train again
        return False
    return True
