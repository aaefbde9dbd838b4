"""Signal-to-quantization-noise ratios.

What comes in: what a float and a quantized network give on the same samples. What goes out:
decibels. It must not know networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LOUDEST_DB = 150.0  # stands for no noise at all: float32 resolves no more


@dataclass(slots=True)
class Noise:
    """Energies of a signal and of what quantization added to it, summed over batches."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, exact: np.ndarray, quantized: np.ndarray) -> None:
        """Count one batch, of equal shapes."""
        exact = exact.astype(np.float64)
        self.signal += float((exact**2).sum())
        self.noise += float(((quantized - exact) ** 2).sum())

    @property
    def decibels(self) -> float:
        """10·log10(signal / noise), at most `LOUDEST_DB`; its negative for noise over silence."""
        if self.noise == 0:
            return LOUDEST_DB
        if self.signal == 0:
            return -LOUDEST_DB
        return min(LOUDEST_DB, 10 * math.log10(self.signal / self.noise))


def decibels_of(exact: tuple[np.ndarray, ...], quantized: tuple[np.ndarray, ...]) -> float:
    """The ratio over all outputs of a network."""
    noise = Noise()
    for one, other in zip(exact, quantized, strict=True):
        noise.add(one, other)
    return noise.decibels
