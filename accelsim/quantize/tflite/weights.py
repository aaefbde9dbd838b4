"""Constant weights of products, and the bias in steps of their accumulator.

What comes in: an operator's inputs. What goes out: int8 weights and dequantized constants. It must
not know which operator multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator, TfliteTensor
from accelsim.quantize.tflite.graph import Graph, Value, constant


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """int8 values as the file has them; of uint8 ones 128 is taken off, their zero points too."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    zero_points: NDArray[np.int64]

    def real(self, graph: Graph, arranged: NDArray[np.int8], axis: int) -> Value:
        """The values in another order, dequantized along the axis of the outputs."""
        return graph.dequantized(constant(arranged), self.scales, self.zero_points, axis)


def weight_of(graph: Graph, operator: TfliteOperator, place: int, rank: int, axis: int) -> Weight:
    """Constant weights with one scale, or one along `axis`. Raises ModelError."""
    tensor = graph.tensor(operator, place)
    if tensor.values is None:
        raise graph.wrong(f"has weights '{tensor.name}' that are computed")
    if len(tensor.shape) != rank:
        raise graph.wrong(f"has weights of shape {tensor.shape}; {rank} axes are needed")
    if tensor.dtype not in ("int8", "uint8") or not tensor.quantized:
        raise graph.wrong(f"has weights of {tensor.dtype} and a quantized input; int8 is needed")
    if tensor.scales.size > 1 and tensor.axis != axis:
        raise graph.wrong(f"has weight scales along axis {tensor.axis}, not {axis}")
    shift = 128 if tensor.dtype == "uint8" else 0
    values = (tensor.values.astype(np.int16) - shift).astype(np.int8)
    return Weight(values, tensor.scales, tensor.zero_points - shift)


def biased(
    graph: Graph,
    operator: TfliteOperator,
    place: int,
    value: Value,
    source: TfliteTensor,
    weight: Weight,
) -> Value:
    """The value plus the bias of input `place`, if the operator has one.

    A step of it is the input's scale times a weight's, whatever scale the file gives it.
    """
    if graph.index(operator, place) is None:
        return value
    tensor = graph.tensor(operator, place)
    channels = int(value.ty.shape[-1])
    if tensor.values is None or tensor.dtype != "int32" or tensor.values.size != channels:
        raise graph.wrong(
            f"has the bias '{tensor.name}' of {tensor.dtype} {tensor.shape}; {channels} constant "
            "int32 are needed"
        )
    steps = source.scales * weight.scales
    stored = constant(tensor.values.reshape(-1))
    return graph.emit(relax.op.add(value, graph.dequantized(stored, steps, _none(steps))))


def _none(steps: NDArray[Any]) -> NDArray[Any]:
    return np.zeros(steps.shape, np.int64)
