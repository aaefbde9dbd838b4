"""An ONNX graph while it is written: nodes by layer, initializers, names of tensors.

What comes in: operators with operands, layer by layer. What goes out: the nodes of a graph. It must
not know Relax.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ToolError
from accelsim.quantize.names import UniqueNames

OPSET = 20
IR_VERSION = 9
_CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")
_FOLLOWING = ("Relu", "Clip", "Identity")


@dataclass(slots=True)
class OnnxNode:
    """One node. `layer` is the user's name of the layer that it belongs to."""

    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    layer: str


@dataclass(slots=True)
class OnnxGraph:
    """Nodes in execution order and constants by name."""

    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    tensors: UniqueNames = field(default_factory=UniqueNames)

    def constant(self, value: NDArray[Any], name: str) -> str:
        """An initializer; equal scalars of one name are one."""
        unique = self.tensors.take(name)
        self.constants[unique] = np.ascontiguousarray(value).reshape(np.shape(value))
        return unique

    def emit(
        self, operator: str, inputs: list[str], layer: str, outputs: int = 1, **attributes: Any
    ) -> list[str]:
        """A node; returns the names of its results."""
        made = [self.tensors.take(f"{layer}/{operator}:0") for _ in range(outputs)]
        self.nodes.append(OnnxNode(operator, inputs, made, attributes, layer))
        return made


def serialized(graph: OnnxGraph, inputs: list[Any], outputs: list[Any], name: str) -> bytes:
    """The file. `inputs` and `outputs` are (name, dtype, shape).

    Raises ToolError where the onnx package is missing.
    """
    try:
        from onnx import checker, helper, numpy_helper
    except ImportError as error:
        raise ToolError("writing ONNX needs the onnx package; pip install 'accelsim[onnx]'") from (
            error
        )

    def value(one: Any) -> Any:
        element = helper.np_dtype_to_tensor_dtype(np.dtype(one[1]))
        return helper.make_tensor_value_info(one[0], element, one[2])

    names = _node_names(graph)
    nodes = [
        helper.make_node(one.operator, one.inputs, one.outputs, name=own, **one.attributes)
        for one, own in zip(graph.nodes, names, strict=True)
    ]
    made = helper.make_graph(
        nodes,
        name,
        [value(one) for one in inputs],
        [value(one) for one in outputs],
        [numpy_helper.from_array(array, own) for own, array in graph.constants.items()],
    )
    model = helper.make_model(
        made,
        producer_name="accelsim",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _node_names(graph: OnnxGraph) -> list[str]:
    """A layer's last operator that is no activation has the layer's name, the others more of it."""
    anchors: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        kind, known = node.operator, anchors.get(node.layer)
        if kind in _CONVERSIONS:
            continue
        if known is None or kind not in _FOLLOWING:
            anchors[node.layer] = number
    unique = UniqueNames(anchors)
    return [
        node.layer
        if anchors.get(node.layer) == number
        else unique.take(f"{node.layer}/{node.operator}")
        for number, node in enumerate(graph.nodes)
    ]
