"""An ONNX file as plain records, and back as an ONNX model.

What comes in: nothing. What goes out: the dataclasses that `reader` fills in and that `quantize`
and the goldens read, and `proto_of`, which writes some of a model's nodes as an ONNX model again.
It must not know what an operator computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MICROSOFT = "com.microsoft"


@dataclass(frozen=True, slots=True)
class OnnxValue:
    """A tensor between nodes. Every extent is a positive number."""

    name: str
    dtype: str  # as NumPy calls it
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operator. `name` is the file's own, or that of its first output, and unique."""

    name: str
    operator: str
    domain: str  # "" for ONNX's own operators
    inputs: tuple[str, ...]  # "" for an input that is left out
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    # Attributes are int, float, str, array, or a tuple of one of the first three.

    def input(self, place: int) -> str:
        """The name of an input, "" where it is left out."""
        return self.inputs[place] if place < len(self.inputs) else ""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A checked graph: every input of a node is a constant, a model input or an earlier output."""

    name: str
    opsets: Mapping[str, int]  # domain → version
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[str, ...]
    nodes: tuple[OnnxNode, ...]  # in execution order; those that no output needs are gone
    constants: Mapping[str, Array]
    values: Mapping[str, OnnxValue]  # inputs and outputs of nodes, as far as ONNX infers them
    data: bytes = field(default=b"", repr=False)  # the file, with external data taken in

    def input(self, name: str) -> OnnxValue | None:
        """The model's input of that name, or None."""
        return next((value for value in self.inputs if value.name == name), None)


def proto_of(
    model: OnnxModel,
    nodes: Sequence[OnnxNode],
    inputs: Sequence[OnnxValue],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
) -> Any:
    """An `onnx.ModelProto` of some nodes; their constants are the model's, or those given.

    Outputs have no type, which ONNX Runtime then infers.
    """
    from onnx import ValueInfoProto, helper, numpy_helper

    known = {**model.constants, **(constants or {})}
    needed = dict.fromkeys(name for node in nodes for name in node.inputs if name in known)
    needed |= dict.fromkeys(name for name in outputs if name in known)
    taken = {value.name for value in inputs}
    graph = helper.make_graph(
        [_node(node) for node in nodes],
        "graph",
        [
            helper.make_tensor_value_info(
                one.name, helper.np_dtype_to_tensor_dtype(np.dtype(one.dtype)), one.shape
            )
            for one in inputs
        ],
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(known[name], name) for name in needed if name not in taken],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in model.opsets.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _node(node: OnnxNode) -> Any:
    from onnx import AttributeProto, helper, numpy_helper

    made = helper.make_node(
        node.operator, list(node.inputs), list(node.outputs), name=node.name, domain=node.domain
    )
    for key, value in node.attributes.items():
        plain = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        kind = AttributeProto.INTS if isinstance(value, tuple) and not value else None
        made.attribute.append(helper.make_attribute(key, plain, attr_type=kind))
    return made
