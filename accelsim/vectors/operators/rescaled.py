"""Vectors whose result has levels of its own: networks that come quantized."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from torch import Tensor, nn

from accelsim.vectors.module import OperatorCase

_OPS = torch.ops.quantized_decomposed
Levels = tuple[float, int]  # scale, zero point
_LIMITS = (-128, 127, torch.int8)


class Rescaled(nn.Module):
    """A function between quantizes of two scales and zero points."""

    def __init__(
        self, function: Callable[[Tensor], Tensor], source: Levels, target: Levels
    ) -> None:
        super().__init__()
        self.function, self.source, self.target = function, source, target

    def forward(self, x: Tensor) -> Tensor:
        result = self.function(quantized(x, *self.source))
        return quantized(result, *self.target)


def quantized(x: Tensor, scale: float, zero_point: int) -> Tensor:
    """Through int8 and back."""
    stored = _OPS.quantize_per_tensor(x, scale, zero_point, *_LIMITS)
    result: Tensor = _OPS.dequantize_per_tensor(stored, scale, zero_point, *_LIMITS)
    return result


CASES = {
    "rescaled_max_pool2d": OperatorCase(
        "extremum",
        "3×3 at stride 2, padded, in steps of its own",
        ((1, 10, 9, 7),),
        lambda: Rescaled(nn.MaxPool2d(3, 2, 1), (0.03, 5), (0.021, -40)),
        quantized=True,
    ),
    "rescaled_softmax": OperatorCase(
        "softmax",
        "rows of channels, in steps of 1/255",
        ((1, 15, 6, 5),),
        lambda: Rescaled(nn.Softmax(1), (0.04, 3), (1 / 255, -127)),
        quantized=True,
    ),
}
