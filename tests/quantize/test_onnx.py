"""ONNX graphs as QDQ modules: ONNX's own node tests, names, and what is refused."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import ModelError
from accelsim.importer.onnx import parse_onnx
from accelsim.quantize import layer_members
from accelsim.quantize.onnx import quantize_onnx
from accelsim.reference import build
from tests.importer.onnx_files import FLOAT, levels, model, node, qdq_convolution

NODE_TESTS = (
    "qlinearconv",
    *(
        f"qlinearmatmul_{rank}_{kind}_{scale}"
        for rank in ("2D", "3D")
        for kind in ("uint8", "int8")
        for scale in ("float16", "float32")
    ),
)


def quantized(proto: Any) -> QuantizedModel:
    """A model as `verify` takes it."""
    found = parse_onnx(proto.SerializeToString(), "net.onnx")
    names = tuple(one.name for one in found.inputs)
    return quantize_onnx(SourceModel("net.onnx", found, (), names, already_quantized=True))


@cache
def node_tests() -> dict[str, Any]:
    """ONNX's own tests of quantized operators, by name."""
    with warnings.catch_warnings():  # other tests divide by zero on purpose
        warnings.simplefilter("ignore")
        found = {test.name.removeprefix("test_"): test for test in collect_testcases()}
    return {name: found[name] for name in NODE_TESTS}


@pytest.mark.parametrize("name", NODE_TESTS)
def test_onnx_s_own_test_gives_its_integers(name: str) -> None:
    test = node_tests()[name]
    given, (expected,) = test.data_sets[0]
    arrays = [one if isinstance(one, np.ndarray) else _array(one) for one in given]
    names = [one.name for one in test.model.graph.input]
    activations = {0, 3} if test.model.graph.node[0].op_type == "QLinearMatMul" else {0}
    proto = type(test.model)()
    proto.CopyFrom(test.model)
    for place, (key, value) in enumerate(zip(names, arrays, strict=True)):
        if place not in activations:
            proto.graph.initializer.append(numpy_helper.from_array(value, key))
    network = quantized(proto)
    reference = build(network, optimization=0)
    assert [layer.kind for layer in reference.layers] == ["integer"]
    inputs = {names[place]: arrays[place] for place in activations}
    values = reference.run(reference.quantize_inputs(inputs))
    (found,) = reference.dequantize_outputs(values)
    np.testing.assert_array_equal(found, expected)


def _array(value: Any) -> np.ndarray:
    """A test's data is an array, a number or a tensor."""
    numbers = isinstance(value, np.generic)
    return np.asarray(value) if numbers else np.asarray(numpy_helper.to_array(value))


def test_layer_is_called_by_its_last_operator_that_is_no_activation() -> None:
    network = quantized(qdq_convolution())
    assert network.layer_names == ("stem/conv", "pool")
    assert layer_members(network.qdq) == {
        "stem/conv": ("stem/conv", "stem/relu"),
        "pool": ("pool",),
    }
    assert network.rounding == "onnxruntime" and network.output_names == ("out",)


def test_tensor_read_with_other_levels_than_it_was_quantized_with_is_refused() -> None:
    constants = {**levels("x", 0.1, 3), **levels("y", 0.2, 3)}
    nodes = [
        node("QuantizeLinear", "image x_s x_z", "q"),
        node("DequantizeLinear", "q y_s y_z", "d", "odd"),
        node("Relu", "d", "r"),
        node("QuantizeLinear", "r y_s y_z", "p"),
        node("DequantizeLinear", "p y_s y_z", "out"),
    ]
    proto = model(nodes, constants, {"image": (FLOAT, (1, 4))}, ["out"])
    with pytest.raises(ModelError, match=r"'odd' .*reads 'q' with scale 0\.2 .*with 0\.1"):
        quantized(proto)


def test_float_result_that_two_layers_need_is_a_layer_of_its_own() -> None:
    constants = {**levels("x", 0.1, 3), **levels("y", 0.2, 3)}
    nodes = [
        node("QuantizeLinear", "image x_s x_z", "q"),
        node("DequantizeLinear", "q x_s x_z", "d"),
        node("Exp", "d", "e", "exp"),
        node("Sqrt", "e", "f", "root"),
        node("QuantizeLinear", "f y_s y_z", "p"),
        node("DequantizeLinear", "p y_s y_z", "one"),
        node("Neg", "e", "n", "minus"),
        node("QuantizeLinear", "n y_s y_z", "r"),
        node("DequantizeLinear", "r y_s y_z", "two"),
    ]
    network = quantized(model(nodes, constants, {"image": (FLOAT, (1, 4))}, ["one", "two"]))
    assert network.layer_names == ("exp", "root", "minus")
