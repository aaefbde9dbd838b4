"""Networks that accelsim trains itself, on real data that comes with an installed package.

What comes in: a name, a seed and a cache directory. What goes out: an `artifacts.SourceModel` with
trained weights, calibration batches and a labelled test split. It must not know how the model is
quantized, compiled or compared.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError
from accelsim.zoo.cache import cache_dir

__all__ = ["cache_dir", "load", "zoo_names"]

# Name → module and function of the untrained network. Text: listing the zoo must not import torch.
NETWORKS = {
    "digits-resnet": "digits_resnet:DigitsResNet",
    "digits-squeezenet": "squeeze:squeezenet",
    "digits-squeezenext": "squeeze:squeezenext",
    "digits-mobilenetv1": "separable:mobilenetv1",
    "digits-mobilenetv2": "separable:mobilenetv2",
    "digits-xception": "separable:xception",
    "digits-shufflenet": "separable:shufflenet",
    "digits-yolov5": "yolo:yolov5",
    "digits-yolov5-relu6": "yolo:yolov5_relu6",
    "digits-transformer": "transformer:VisionTransformer",
    "digits-detector": "detector:Detector",
}
_EPOCHS = {"digits-transformer": 50, "digits-detector": 20}


def zoo_names() -> tuple[str, ...]:
    """Names that `load` knows, without the `zoo:` prefix."""
    return tuple(NETWORKS)


def load(name: str, seed: int = 0, cache: Path | None = None) -> SourceModel:
    """Return a trained model, from the cache when the same recipe and seed made it before.

    Args:
        name: one of `zoo_names()`, with or without `zoo:` in front.
        seed: seeds data split, initial weights and the order of training batches.
        cache: directory of cached weights; `cache_dir()` when None.

    Raises:
        InputError: no such name, a negative seed, or an unwritable cache directory.
    """
    short = name.removeprefix("zoo:")
    if short not in zoo_names():
        known = ", ".join(f"zoo:{known}" for known in zoo_names())
        raise InputError(f"the zoo has no model '{name}'; it has {known}")
    if not 0 <= seed < 1 << 32:
        raise InputError(f"seed {seed} is out of range; use 0 to {(1 << 32) - 1}")
    from accelsim.zoo import classifier, detector

    module, _, function = NETWORKS[short].partition(":")
    make = getattr(importlib.import_module(f"accelsim.zoo.{module}"), function)
    recipe = classifier.Recipe(short, make, epochs=_EPOCHS.get(short, classifier.EPOCHS))
    build = detector.build if short == "digits-detector" else classifier.build
    return build(recipe, seed, cache if cache is not None else cache_dir())
