"""Activations that an operator has fused.

What comes in: the number that the operator's options state. What goes out: the float result behind
it. It must not know the operator.
"""

from __future__ import annotations

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph, Value

NONE, RELU, RELU_N1_TO_1, RELU6 = range(4)
_CLIPS = {RELU_N1_TO_1: (-1.0, 1.0), RELU6: (0.0, 6.0)}
_NAMES = {4: "TANH", 5: "SIGN_BIT"}


def activated(graph: Graph, operator: TfliteOperator, value: Value) -> Value:
    """The value behind the operator's activation. Raises ModelError for one that is unknown."""
    kind = int(str(operator.options.get("activation", NONE)))
    if kind == NONE:
        return value
    if kind == RELU:
        return graph.emit(relax.op.nn.relu(value))
    if kind not in _CLIPS:
        name = _NAMES.get(kind, f"number {kind}")
        raise graph.wrong(f"has the fused activation {name}, which is not supported")
    return graph.emit(relax.op.clip(value, *_CLIPS[kind]))
