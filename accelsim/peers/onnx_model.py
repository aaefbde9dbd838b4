"""ONNX models of a few nodes, built in process, and run by ONNX Runtime without optimisation.

What comes in: nodes, constants and inputs. What goes out: the outputs. Arrays are in ONNX's own
layout. It must not know what the NPU computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from accelsim.artifacts import I8

OPSETS = {"": 20, "com.microsoft": 1}
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One node: operator, names of its inputs and output, domain and attributes."""

    operator: str
    inputs: Sequence[str]
    output: str = "y"
    domain: str = ""
    attributes: Mapping[str, Any] | None = None


def onnx_model(
    steps: Sequence[Step],
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    output_type: str,
) -> ModelProto:
    """A model whose output is the last step's."""
    nodes = [
        helper.make_node(
            s.operator, list(s.inputs), [s.output], domain=s.domain, **(s.attributes or {})
        )
        for s in steps
    ]
    values = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    kind = getattr(TensorProto, output_type.upper())
    result = helper.make_tensor_value_info(steps[-1].output, kind, None)
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "case", values, [result], tensors)
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def onnx_output(model: ModelProto, inputs: Mapping[str, Array]) -> Array:
    """The model's output."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (output,) = session.run(None, dict(inputs))
    return np.asarray(output)


def stored(values: Array) -> I8:
    """int8, or uint8 less 128: the NPU's activations."""
    if values.dtype == np.int8:
        return values.astype(np.int8)
    if values.dtype != np.uint8:
        raise ValueError(f"{values.dtype} is no activation")
    return (values.astype(np.int16) - 128).astype(np.int8)


def stored_zero(value: int, dtype: np.dtype[Any] | type) -> int:
    """A zero point in the int8 domain."""
    return value - 128 if np.dtype(dtype) == np.uint8 else value


def nhwc(values: Array) -> Array:
    """(n, c, h, w) → (n, h, w, c)."""
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1))
