"""Whether this processor lets ONNX Runtime's 8-bit products saturate, and for which weights.

What comes in: weights. What goes out: whether sums of their products may be wrong. On x86
processors without an instruction for them, products of 8-bit numbers are added in pairs of 16 bits
that saturate; uint8 weights take another way. It must not know layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.importer.onnx import OnnxNode
from accelsim.reference.onnxruntime.session import Session

SAFE = 64  # 2 · 64 · 255 < 2^15
PLACES = {"QLinearConv": 3, "QLinearMatMul": 3, "QGemm": 3}  # where the weights stand


@cache
def saturates() -> bool:
    """Whether 255·127 + 255·127 is not what ONNX Runtime computes here."""
    from onnx import TensorProto, helper, numpy_helper

    weight = np.full((64, 16), 127, np.int8)
    node = helper.make_node("MatMulInteger", ["a", "w"], ["y"])
    graph = helper.make_graph(
        [node],
        "check",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [4, 64])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [4, 16])],
        [numpy_helper.from_array(weight, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    session = Session(helper.make_model(graph, opset_imports=opsets, ir_version=9), "a self-check")
    (found,) = session.run({"a": np.full((4, 64), 255, np.uint8)})
    return bool((found != 64 * 255 * 127).any())


def may_saturate(nodes: tuple[OnnxNode, ...], constants: Mapping[str, NDArray[Any]]) -> bool:
    """Whether a product among the nodes has weights that saturate on this processor."""
    for node in nodes:
        name = node.input(PLACES[node.operator]) if node.operator in PLACES else ""
        weight = constants.get(name)
        wide = weight is None or (
            weight.dtype == np.int8 and int(np.abs(weight.astype(np.int16)).max(initial=0)) > SAFE
        )
        if name and wide and saturates():
            return True
    return False
