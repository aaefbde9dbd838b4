"""Every elementwise ONNX operator of one tensor between quantizers is a table on the NPU.

The golden is ONNX Runtime without optimisation, on all 256 values of an input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from accelsim.artifacts import SourceModel
from accelsim.importer.onnx import parse_onnx
from accelsim.legalize import legalize
from accelsim.quantize import quantize
from accelsim.quantize.onnx.operators.elementwise import CONVERTERS
from accelsim.reference import build
from tests.importer.onnx_files import levels, model, node

UINT8 = 2
WHOLE = np.arange(256, dtype=np.uint8).reshape(1, 4, 8, 8)
SIGNED = (0.03, 128)  # scale and zero point of an input from -3.84 to 3.81
POSITIVE = (0.02, 0)
UNIT = (1 / 128, 128)  # from -1 to 0.99
OPERATORS: dict[str, tuple[tuple[float, int], tuple[float, int], dict[str, Any], bool]] = {
    # input levels, output levels, attributes, whether all is exact in float32
    "Relu": (SIGNED, (0.02, 3), {}, True),
    "Abs": (SIGNED, (0.02, 3), {}, True),
    "Neg": (SIGNED, (0.025, 120), {}, True),
    "Floor": (SIGNED, (0.04, 120), {}, True),
    "Ceil": (SIGNED, (0.04, 120), {}, True),
    "Round": (SIGNED, (0.04, 120), {}, True),
    "Sign": (SIGNED, (0.01, 120), {}, True),
    "Sqrt": (POSITIVE, (0.01, 3), {}, True),
    "Reciprocal": ((0.05, 0), (0.09, 3), {}, True),
    "LeakyRelu": (SIGNED, (0.02, 60), {"alpha": 0.3}, True),
    "HardSigmoid": (SIGNED, (0.004, 3), {"alpha": 0.3}, True),
    "HardSwish": (SIGNED, (0.02, 30), {}, True),
    "Clip": (SIGNED, (0.01, 100), {}, True),
    "ThresholdedRelu": (SIGNED, (0.02, 0), {"alpha": 0.4}, True),
    "Shrink": (SIGNED, (0.02, 128), {"lambd": 0.6, "bias": 0.4}, True),
    "Softsign": (SIGNED, (0.008, 128), {}, True),
    "Sigmoid": (SIGNED, (1 / 256, 0), {}, False),
    "Tanh": (SIGNED, (1 / 128, 128), {}, False),
    "Erf": (SIGNED, (1 / 128, 128), {}, False),
    "Softplus": (SIGNED, (0.02, 0), {}, False),
    "Exp": (SIGNED, (0.1, 0), {}, False),
    "Log": ((0.02, 0), (0.03, 130), {}, False),
    "Sin": (SIGNED, (1 / 128, 128), {}, False),
    "Cos": (SIGNED, (1 / 128, 128), {}, False),
    "Tan": (UNIT, (0.015, 128), {}, False),
    "Asin": (UNIT, (0.015, 128), {}, False),
    "Acos": (UNIT, (0.015, 0), {}, False),
    "Atan": (SIGNED, (0.015, 128), {}, False),
    "Sinh": (SIGNED, (0.15, 128), {}, False),
    "Cosh": (SIGNED, (0.1, 0), {}, False),
    "Asinh": (SIGNED, (0.02, 128), {}, False),
    "Acosh": ((0.02, -50), (0.02, 10), {}, False),
    "Atanh": ((1 / 130, 128), (0.02, 128), {}, False),
    "Elu": (SIGNED, (0.03, 60), {"alpha": 0.8}, False),
    "Selu": (SIGNED, (0.03, 80), {}, False),
    "Celu": (SIGNED, (0.03, 60), {"alpha": 1.4}, False),
    "Gelu": (SIGNED, (0.02, 20), {}, False),
    "Mish": (SIGNED, (0.02, 20), {}, False),
}
BEHIND = {"Clip": ("a", "b")}
BOOLEAN = {"Not"}  # of truth values, which have no scale
TWO = {"Add", "Sub", "Mul", "Pow", "And", "Or", "Xor", "Equal", "Div", "Max", "Min", "Sum", "Where"}
TWO |= {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "PRelu", "Cast"}
NEWER = {"Swish"}  # opset 24, which ONNX Runtime has not


def qdq(operator: str) -> Any:
    source, target, attributes, _ = OPERATORS[operator]
    low, offset = (source[1], 0) if source[1] >= 0 else (0, source[1])
    assert offset == 0 or operator == "Acosh"
    constants = {**levels("x", source[0], low), **levels("y", *target)}
    constants |= {"a": np.float32(-0.5), "b": np.float32(0.9)} if operator in BEHIND else {}
    names = " ".join(("xd", *BEHIND.get(operator, ())))
    inner = [node(operator, names, "f", "tested", **attributes)]
    if operator == "Acosh":  # from 1 on
        constants["one"] = np.float32(1.0)
        inner = [node("Add", "xd one", "xo"), node(operator, "xo", "f", "tested")]
    nodes = [
        node("DequantizeLinear", "x x_s x_z", "xd"),
        *inner,
        node("QuantizeLinear", "f y_s y_z", "y"),
    ]
    proto = model(nodes, constants, {"x": (UINT8, WHOLE.shape)}, ["y"], opset=20)
    if operator in ("Celu", "Selu", "ThresholdedRelu", "Shrink", "Mish"):
        proto.opset_import[0].version = 20
    proto.graph.output[0].type.tensor_type.elem_type = UINT8
    return proto


def onnx_runtime(data: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": WHOLE})[0]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_between_quantizers_is_a_table_of_onnx_runtimes_integers(operator: str) -> None:
    data = qdq(operator).SerializeToString()
    parsed = parse_onnx(data, "net")
    source = SourceModel("net", parsed, (WHOLE,), ("x",), already_quantized=True, framework="onnx")
    quantized = quantize(source)
    legalized = legalize(quantized)
    assert [one.op for one in legalized.host_ops if not one.boundary] == []
    reference = build(quantized, optimization=0)
    (found,) = reference.dequantize_outputs(reference.run(reference.quantize_inputs({"x": WHOLE})))
    expected = onnx_runtime(data)
    assert np.unique(expected).size > (2 if operator == "Sign" else 7)
    steps = np.abs(found.astype(int) - expected.astype(int))
    exact = OPERATORS[operator][3]
    assert steps.max() <= (0 if exact else 1)
    assert np.count_nonzero(steps) <= (0 if exact else 2)


def test_every_elementwise_operator_that_is_read_has_a_case() -> None:
    own = {name for name in CONVERTERS if ":" not in name}
    assert own == {*OPERATORS, *TWO, *NEWER, *BOOLEAN}
