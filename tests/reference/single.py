"""One layer in a module of its own: quantized inputs, an operator, a quantized output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.reference.graph import read_network
from accelsim.reference.integer import Reference, build_network
from tests.reference.qdq import QdqModule


@dataclass(frozen=True)
class Input:
    shape: tuple[int, ...]
    scale: Any
    zero: int


def layer(
    name: str,
    inputs: list[Input],
    operator: Callable[..., Any],
    scale: Any,
    zero: int,
    rounding: str = "fp32",
    **quantizer: Any,
) -> Reference:
    """The compiled reference of `operator(module, *dequantized inputs)`."""
    module = QdqModule(**{f"x{side}": one.shape for side, one in enumerate(inputs)})
    dtype = quantizer.get("dtype", "uint8")
    sources = [
        module.dequantize(module.quantize(value, f"in{side}", one.scale, one.zero, dtype))
        for side, (value, one) in enumerate(zip(module.inputs, inputs, strict=True))
    ]
    result = module.quantize(operator(module, *sources), name, scale, zero, **quantizer)
    built = module.module(module.dequantize(result))
    return build_network(read_network(built, rounding=rounding), rounding)


def stored(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 256, shape).astype(np.uint8)
