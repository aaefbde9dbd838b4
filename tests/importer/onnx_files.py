"""Small ONNX models built in process, as bytes, and ways to damage them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT, INT8 = TensorProto.FLOAT, TensorProto.INT8
Constants = Mapping[str, np.ndarray]


def model(
    nodes: Sequence[Any],
    constants: Constants,
    inputs: Mapping[str, tuple[int, Sequence[Any]]],
    outputs: Sequence[str],
    opset: int = 17,
) -> ModelProto:
    """A model; inputs are name → (element type, shape)."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [
            helper.make_tensor_value_info(name, kind, shape)
            for name, (kind, shape) in inputs.items()
        ],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def node(operator: str, inputs: str, outputs: str, name: str = "", **attributes: Any) -> Any:
    """A node; names of tensors are separated by blanks, "-" stands for one left out."""
    names = ["" if one == "-" else one for one in inputs.split()]
    domain = "com.microsoft" if operator in MICROSOFT else ""
    return helper.make_node(
        operator, names, outputs.split(), name=name, domain=domain, **attributes
    )


MICROSOFT = (
    *("QLinearAdd", "QLinearMul", "QLinearAveragePool", "QLinearGlobalAveragePool", "QGemm"),
    *("QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat", "QLinearSoftmax", "QLinearWhere"),
    "QLinearReduceMean",
)


def levels(name: str, scale: float, zero: int, dtype: Any = np.uint8) -> dict[str, np.ndarray]:
    """The constants NAME_s and NAME_z."""
    return {f"{name}_s": np.float32(scale).reshape(()), f"{name}_z": np.array(zero, dtype)}


def weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """int8 weights that no processor's 16-bit sums of products saturate with."""
    return rng.integers(-63, 64, shape).astype(np.int8)


def qdq_convolution(scale: float = 0.02, dtype: Any = np.uint8) -> ModelProto:
    """Quantize, convolution with bias and ReLU, average pool, all in QDQ form."""
    rng = np.random.default_rng(7)
    constants = {
        **levels("x", scale, 120, dtype),
        **levels("y", 0.05, 0, dtype),
        "w": weights(rng, 6, 3, 3, 3),
        "w_s": rng.uniform(0.002, 0.01, 6).astype(np.float32),
        "w_z": np.zeros(6, np.int8),
        "b": rng.integers(-500, 500, 6).astype(np.int32),
        "b_z": np.zeros(6, np.int32),
    }
    constants["b_s"] = np.float32(scale) * constants["w_s"]
    nodes = [
        node("QuantizeLinear", "image x_s x_z", "xq"),
        node("DequantizeLinear", "xq x_s x_z", "xd"),
        node("DequantizeLinear", "w w_s w_z", "wd", axis=0),
        node("DequantizeLinear", "b b_s b_z", "bd", axis=0),
        node("Conv", "xd wd bd", "c", "stem/conv", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r", "stem/relu"),
        node("QuantizeLinear", "r y_s y_z", "yq"),
        node("DequantizeLinear", "yq y_s y_z", "yd"),
        node("AveragePool", "yd", "p", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", "p y_s y_z", "pq"),
        node("DequantizeLinear", "pq y_s y_z", "out"),
    ]
    return model(nodes, constants, {"image": (FLOAT, ("batch", 3, 8, 8))}, ["out"])


def changed(change: Callable[[ModelProto], Any], proto: ModelProto | None = None) -> bytes:
    """A model's bytes after a change."""
    proto = qdq_convolution() if proto is None else proto
    change(proto)
    return bytes(proto.SerializeToString())


def tensor(proto: ModelProto, name: str) -> Any:
    """An initializer."""
    return next(one for one in proto.graph.initializer if one.name == name)


def replaced(name: str, value: np.ndarray) -> Callable[[ModelProto], Any]:
    """A change that puts another constant in an initializer's place."""
    return lambda proto: tensor(proto, name).CopyFrom(numpy_helper.from_array(value, name))
