"""Networks that accelsim trains itself, on real data that comes with an installed package.

What comes in: a name, a seed and a cache directory. What goes out: an `artifacts.SourceModel` with
trained weights, calibration batches and a labelled test split. It must not know how the model is
quantized, compiled or compared.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError
from accelsim.zoo.cache import cache_dir

__all__ = ["cache_dir", "load", "zoo_names"]


def _builders() -> dict[str, Callable[[int, Path], SourceModel]]:
    """Name → builder. Imported here so that listing the zoo does not import torch."""
    from accelsim.zoo import digits_resnet

    return {"digits-resnet": digits_resnet.build}


def zoo_names() -> tuple[str, ...]:
    """Names that `load` knows, without the `zoo:` prefix."""
    return ("digits-resnet",)


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
    return _builders()[short](seed, cache if cache is not None else cache_dir())
