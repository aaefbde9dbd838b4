"""One ONNX model with a branch for each operator: quantized input, operator, quantized output.

What comes in: nothing. What goes out: branches by name, and the model of all of them. Every branch
gives an output of the model, whose last node is a dequantize.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

from tests.importer.onnx_files import FLOAT, levels, model, node, weights

IMAGE = (1, 6, 8, 8)
ROWS = (5, 12)
SCALE, ZERO = 0.03, 3  # of inputs
Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Branch:
    """Nodes with `X` for the input and `Y` for the output; `P` begins names of their own."""

    nodes: Sequence[tuple[Any, ...]]
    constants: Tensors = field(default_factory=dict)
    shape: Sequence[int] = IMAGE
    scale: float = SCALE
    zero: int = ZERO
    quantized: bool = False  # nodes take and give integers
    attributes: dict[str, Any] = field(default_factory=dict)


def float_node(operator: str, extra: str = "", **attributes: Any) -> Branch:
    """One float operator of the input, and perhaps of constants or again of the input."""
    return Branch([(operator, f"X {extra}".strip(), "Y")], attributes=attributes)


def rng() -> np.random.Generator:
    """The same numbers for everyone."""
    return np.random.default_rng(11)


def int64(*values: int) -> np.ndarray:
    """A constant of shapes and axes."""
    return np.array(values, np.int64)


def weighted(operator: str, shape: Sequence[int], **attributes: Any) -> Branch:
    """A float operator of the input and a dequantized weight, per channel along axis 0."""
    kernel = weights(rng(), *shape)
    constants = {
        "P_w": kernel,
        "P_ws": rng().uniform(0.002, 0.01, shape[0]).astype(np.float32),
        "P_wz": np.zeros(shape[0], np.int8),
    }
    nodes = [
        ("DequantizeLinear", "P_w P_ws P_wz", "P_wd", {"axis": 0}),
        (operator, "X P_wd", "Y"),
    ]
    return Branch(nodes, constants, attributes=attributes)


def quantized(
    operator: str,
    inputs: str,
    constants: Tensors | None = None,
    shape: Sequence[int] = IMAGE,
    **attributes: Any,
) -> Branch:
    """An operator of the QOperator form; `S Z` are the input's levels, `T U` the output's."""
    return Branch(
        [(operator, inputs, "Y")], constants or {}, shape, quantized=True, attributes=attributes
    )


def _matrix(columns: int) -> Tensors:
    return {
        "P_w": weights(rng(), ROWS[1], columns),
        "P_ws": np.float32(0.004).reshape(()),
        "P_wz": np.array(0, np.int8),
    }


def _kernel(*shape: int) -> Tensors:
    return {
        "P_w": weights(rng(), *shape),
        "P_ws": rng().uniform(0.002, 0.01, shape[0]).astype(np.float32),
        "P_wz": np.zeros(shape[0], np.int8),
        "P_b": rng().integers(-500, 500, shape[0]).astype(np.int32),
    }


OTHER = {"P_o": weights(rng(), 6, 1, 1), "P_os": np.float32(0.02).reshape(()), "P_oz": np.int8(4)}
OTHER = {name: np.asarray(value) for name, value in OTHER.items()}
PAIR = "X S Z P_o P_os P_oz T U"
GEMM = "X S Z P_w P_ws P_wz P_b T U"

BRANCHES: dict[str, Branch] = {
    "QLinearConv": quantized(
        "QLinearConv", "X S Z P_w P_ws P_wz T U P_b", _kernel(5, 6, 3, 3), pads=[1, 0, 1, 2]
    ),
    "QLinearConv groups": quantized(
        "QLinearConv", "X S Z P_w P_ws P_wz T U", _kernel(6, 3, 2, 2), group=2, strides=[2, 2]
    ),
    "QLinearConv depthwise": quantized(
        "QLinearConv",
        "X S Z P_w P_ws P_wz T U P_b",
        _kernel(6, 1, 3, 3),
        group=6,
        auto_pad="SAME_LOWER",
        strides=[2, 2],
    ),
    "QLinearMatMul": quantized("QLinearMatMul", "X S Z P_w P_ws P_wz T U", _matrix(7), ROWS),
    "QGemm": quantized(
        "QGemm", GEMM, {**_matrix(7), "P_b": np.arange(-3, 4, dtype=np.int32) * 99}, ROWS, alpha=0.5
    ),
    "QLinearAdd": quantized("QLinearAdd", PAIR, OTHER),
    "QLinearMul": quantized("QLinearMul", PAIR, OTHER),
    "QLinearAveragePool": quantized(
        "QLinearAveragePool", "X S Z T U", kernel_shape=[3, 3], pads=[1, 1, 1, 1]
    ),
    "QLinearGlobalAveragePool": quantized("QLinearGlobalAveragePool", "X S Z T U"),
    "QLinearSigmoid": quantized("QLinearSigmoid", "X S Z T U"),
    "QLinearLeakyRelu": quantized("QLinearLeakyRelu", "X S Z T U", alpha=0.2),
    "QLinearConcat": quantized("QLinearConcat", "T U X S Z X S Z", axis=1),
    "QLinearSoftmax": quantized("QLinearSoftmax", "X S Z T U", shape=ROWS, axis=-1, opset=17),
    "MaxPool of integers": quantized("MaxPool", "X", kernel_shape=[2, 2], strides=[2, 2]),
    "Transpose of integers": quantized("Transpose", "X", perm=[0, 2, 3, 1]),
    "Slice of integers": quantized(
        "Slice", "X P_b P_e P_a", {"P_b": int64(1), "P_e": int64(-1), "P_a": int64(1)}
    ),
    "Pad of integers": quantized("Pad", "X P_p", {"P_p": int64(0, 0, 1, 2, 0, 0, 1, 0)}),
    "Conv": weighted("Conv", (4, 6, 3, 3), pads=[1, 1, 1, 1]),
    "Conv dilated": weighted("Conv", (4, 6, 2, 2), dilations=[2, 1]),
    "ConvTranspose": Branch(
        [
            ("DequantizeLinear", "P_w P_ws P_wz", "P_wd", {"axis": 1}),
            ("ConvTranspose", "X P_wd", "Y"),
        ],
        {
            "P_w": weights(rng(), 6, 4, 3, 3),
            "P_ws": rng().uniform(0.002, 0.01, 4).astype(np.float32),
            "P_wz": np.zeros(4, np.int8),
        },
        attributes={"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]},
    ),
    "MatMul": Branch(
        [("DequantizeLinear", "P_w P_ws P_wz", "P_wd"), ("MatMul", "X P_wd", "Y")],
        _matrix(9),
        ROWS,
    ),
    "Gemm": Branch(
        [("DequantizeLinear", "P_w P_ws P_wz", "P_wd", {"axis": 0}), ("Gemm", "X P_wd P_b", "Y")],
        {
            "P_w": weights(rng(), 7, 12),
            "P_ws": rng().uniform(0.002, 0.01, 7).astype(np.float32),
            "P_wz": np.zeros(7, np.int8),
            "P_b": rng().standard_normal(7).astype(np.float32),
        },
        ROWS,
        attributes={"transB": 1},
    ),
    "MaxPool": float_node("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "AveragePool": float_node("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "GlobalAveragePool": float_node("GlobalAveragePool"),
    "GlobalMaxPool": float_node("GlobalMaxPool"),
    "ReduceMean": float_node("ReduceMean", axes=[2, 3], keepdims=0),
    "ReduceMax": float_node("ReduceMax", axes=[2], keepdims=1),
    "Add": float_node("Add", "X"),
    "Sub": Branch([("DequantizeLinear", "P_o P_os P_oz", "P_od"), ("Sub", "X P_od", "Y")], OTHER),
    "Mul": float_node("Mul", "X"),
    "Relu": float_node("Relu"),
    "Clip": Branch(
        [("Clip", "X P_l P_h", "Y")],
        {"P_l": np.array(-1, np.float32), "P_h": np.array(1.5, np.float32)},
    ),
    "LeakyRelu": float_node("LeakyRelu", alpha=0.3),
    "PRelu": Branch(
        [("PRelu", "X P_a", "Y")],
        {"P_a": np.linspace(0.1, 0.6, 6, dtype=np.float32).reshape(6, 1, 1)},
    ),
    **{
        name: float_node(name)
        for name in (
            *("Sigmoid", "Tanh", "Erf", "HardSigmoid", "HardSwish", "Softplus", "Elu", "Mish"),
            *("Exp", "Abs", "Neg", "Softmax", "Flatten", "Identity", "Gelu"),
        )
        if name not in ("Gelu", "Mish")  # of later opsets
    },
    "LogSoftmax": Branch([("LogSoftmax", "X", "Y")], zero=120),
    "Sqrt of square": Branch([("Mul", "X X", "P_q"), ("Sqrt", "P_q", "Y")]),
    "Pow": Branch([("Pow", "X P_e", "Y")], {"P_e": np.array(2, np.float32)}),
    "Div": Branch([("Div", "X P_e", "Y")], {"P_e": np.array(3, np.float32)}),
    "LayerNormalization": Branch(
        [("LayerNormalization", "X P_g P_b", "Y")],
        {
            "P_g": np.linspace(0.5, 1.5, 12, dtype=np.float32),
            "P_b": np.linspace(-1, 1, 12, dtype=np.float32),
        },
        ROWS,
    ),
    "BatchNormalization": Branch(
        [("BatchNormalization", "X P_g P_b P_m P_v", "Y")],
        {
            "P_g": np.linspace(0.5, 1.5, 6, dtype=np.float32),
            "P_b": np.linspace(-1, 1, 6, dtype=np.float32),
            "P_m": np.linspace(-0.3, 0.3, 6, dtype=np.float32),
            "P_v": np.linspace(0.5, 2, 6, dtype=np.float32),
        },
    ),
    "Reshape": Branch([("Reshape", "X P_s", "Y")], {"P_s": int64(0, -1, 4)}),
    "Squeeze": Branch([("Squeeze", "X P_s", "Y")], {"P_s": int64(0)}),
    "Unsqueeze": Branch([("Unsqueeze", "X P_s", "Y")], {"P_s": int64(0)}, ROWS),
    "Transpose": float_node("Transpose", perm=[0, 3, 1, 2]),
    "Concat": float_node("Concat", "X", axis=1),
    "Split": Branch([("Split", "X P_n", "Y P_rest")], {"P_n": int64(2, 4)}, attributes={"axis": 1}),
    "Slice backwards": Branch(
        [("Slice", "X P_b P_e P_a P_n", "Y")],
        {"P_b": int64(-1), "P_e": int64(-99), "P_a": int64(3), "P_n": int64(-1)},
    ),
    "Gather": Branch([("Gather", "X P_i", "Y")], {"P_i": int64(4, -1, 0)}, attributes={"axis": 1}),
    "Tile": Branch([("Tile", "X P_n", "Y")], {"P_n": int64(1, 2, 1, 1)}),
    "Expand": Branch([("Expand", "X P_s", "Y")], {"P_s": int64(2, 1, 1)}, ROWS),
    "Pad": Branch(
        [("Pad", "X P_p P_v", "Y")],
        {"P_p": int64(0, 0, 1, 1, 0, 0, 2, 0), "P_v": np.array(0.3, np.float32)},
    ),
    "DepthToSpace": Branch(
        [("Concat", "X X", "P_c", {"axis": 1}), ("DepthToSpace", "P_c", "Y", {"blocksize": 2})]
    ),
    "DepthToSpace columns": Branch(
        [
            ("Concat", "X X", "P_c", {"axis": 1}),
            ("DepthToSpace", "P_c", "Y", {"blocksize": 2, "mode": "CRD"}),
        ]
    ),
    "SpaceToDepth": float_node("SpaceToDepth", blocksize=2),
    "Resize nearest": Branch(
        [("Resize", "X - P_f", "Y")],
        {"P_f": np.array([1, 1, 2, 3], np.float32)},
        attributes={"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "Resize linear": Branch(
        [("Resize", "X - - P_f", "Y")], {"P_f": int64(1, 6, 12, 4)}, attributes={"mode": "linear"}
    ),
    "Where": Branch(
        [("Greater", "X P_t", "P_c"), ("Where", "P_c X P_t", "Y")],
        {"P_t": np.array(0.5, np.float32)},
    ),
    "Max": float_node("Max", "X"),
    "Cast": float_node("Cast", to=1),
}


def _like(value: np.ndarray, dtype: Any) -> np.ndarray:
    """int8 numbers as those of another type."""
    if value.dtype != np.int8 or dtype == np.int8:
        return value
    return (value.astype(np.int16) + 128).astype(np.uint8)


def whole(names: Sequence[str], dtype: Any = np.int8) -> ModelProto:
    """The model of some branches; outputs are NAME/y."""
    nodes: list[Any] = []
    constants: Tensors = {}
    shapes = {"image": IMAGE, "rows": ROWS}
    for source in shapes:
        constants |= levels(source, SCALE, ZERO, dtype)
        nodes.append(node("QuantizeLinear", f"{source} {source}_s {source}_z", f"{source}_q"))
    for name in names:
        one = BRANCHES[name]
        nodes += _nodes(name.replace(" ", "_"), one, constants, dtype)
    inputs = {source: (FLOAT, shape) for source, shape in shapes.items()}
    return model(nodes, constants, inputs, [f"{name.replace(' ', '_')}/y" for name in names])


def _nodes(name: str, one: Branch, constants: Tensors, dtype: Any) -> list[Any]:
    source = "image" if tuple(one.shape) == IMAGE else "rows"
    constants |= {
        key.replace("P_", f"{name}_"): _like(value, dtype) if key in OTHER else value
        for key, value in one.constants.items()
    }
    constants |= levels(f"{name}/y", one.scale, one.zero, dtype)
    ends = {"S": f"{source}_s", "Z": f"{source}_z", "T": f"{name}/y_s", "U": f"{name}/y_z"}
    words = {"X": f"{source}_q" if one.quantized else f"{name}/x", **ends}
    words["Y"] = f"{name}/q" if one.quantized else f"{name}/f"

    def renamed(text: str) -> str:
        return " ".join(words.get(w, w.replace("P_", f"{name}_")) for w in text.split())

    made = []
    if not one.quantized:
        made.append(node("DequantizeLinear", f"{source}_q {source}_s {source}_z", f"{name}/x"))
    for number, (operator, inputs, outputs, *rest) in enumerate(one.nodes):
        last = number == len(one.nodes) - 1
        attributes = {**(rest[0] if rest else {}), **(one.attributes if last else {})}
        title = name if last else f"{name}/{number}"
        made.append(node(operator, renamed(inputs), renamed(outputs), title, **attributes))
    if not one.quantized:
        made.append(node("QuantizeLinear", f"{name}/f {name}/y_s {name}/y_z", f"{name}/q"))
    made.append(node("DequantizeLinear", f"{name}/q {name}/y_s {name}/y_z", f"{name}/y"))
    return made
