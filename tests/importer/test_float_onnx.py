"""Float ONNX graphs as PyTorch modules: the same numbers as ONNX Runtime, and the file's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from accelsim.errors import ModelError
from accelsim.importer.floats import from_onnx
from accelsim.importer.onnx import parse_onnx
from tests.importer.onnx_files import FLOAT, model, node

RNG = np.random.default_rng(3)
X = (1, 6, 9, 8)


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


W, S = real(10, 6, 3, 3), real(6)
CASES: dict[str, tuple[Any, dict[str, np.ndarray], tuple[int, ...]]] = {
    "conv": (node("Conv", "x w b", "y", pads=[1, 1, 1, 1]), {"w": W, "b": real(10)}, X),
    "uneven": (node("Conv", "x w", "y", pads=[0, 1, 2, 0], strides=[2, 1]), {"w": W}, X),
    "same": (node("Conv", "x w", "y", auto_pad="SAME_UPPER", strides=[2, 2]), {"w": W}, X),
    "lower": (node("Conv", "x w", "y", auto_pad="SAME_LOWER", strides=[2, 2]), {"w": W}, X),
    "grouped": (node("Conv", "x w", "y", group=3, dilations=[2, 1]), {"w": real(9, 2, 3, 2)}, X),
    "conv1d": (
        node("Conv", "x w b", "y", pads=[1, 2]),
        {"w": real(5, 4, 3), "b": real(5)},
        (2, 4, 9),
    ),
    "transposed": (
        node(
            "ConvTranspose", "x w b", "y", strides=[2, 2], pads=[1, 0, 1, 0], output_padding=[1, 0]
        ),
        {"w": real(6, 5, 3, 2), "b": real(5)},
        X,
    ),
    "gemm": (
        node("Gemm", "x w b", "y", alpha=0.5, beta=2.0, transB=1),
        {"w": real(7, 6), "b": real(7)},
        (3, 6),
    ),
    "gemm_plain": (node("Gemm", "x w", "y"), {"w": real(6, 7)}, (3, 6)),
    "matmul": (node("MatMul", "x w", "y"), {"w": real(8, 5)}, X),
    "max_pool": (
        node("MaxPool", "x", "y", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1]),
        {},
        X,
    ),
    "average": (node("AveragePool", "x", "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), {}, X),
    "average_counted": (
        node("AveragePool", "x", "y", kernel_shape=[3, 3], pads=[1, 0, 0, 1], count_include_pad=1),
        {},
        X,
    ),
    "ceil": (
        node("AveragePool", "x", "y", kernel_shape=[2, 3], strides=[2, 3], ceil_mode=1),
        {},
        X,
    ),
    "global_average": (node("GlobalAveragePool", "x", "y"), {}, X),
    "global_max": (node("GlobalMaxPool", "x", "y"), {}, X),
    "clip": (node("Clip", "x a b", "y"), {"a": np.float32(-0.5), "b": np.float32(0.7)}, X),
    "relu6": (node("Clip", "x a b", "y"), {"a": np.float32(0), "b": np.float32(6)}, X),
    "clip_low": (node("Clip", "x a", "y"), {"a": np.float32(-0.5)}, X),
    "leaky": (node("LeakyRelu", "x", "y", alpha=0.2), {}, X),
    "elu": (node("Elu", "x", "y", alpha=0.7), {}, X),
    "sigmoid": (node("Sigmoid", "x", "y"), {}, X),
    "hard_sigmoid": (node("HardSigmoid", "x", "y"), {}, X),
    "hard_swish": (node("HardSwish", "x", "y"), {}, X),
    "prelu": (node("PRelu", "x w", "y"), {"w": real(6, 1, 1)}, X),
    "batch_norm": (
        node("BatchNormalization", "x w b m v", "y", epsilon=0.01),
        {"w": S, "b": real(6), "m": real(6), "v": np.abs(real(6)) + 0.5},
        X,
    ),
    "layer_norm": (
        node("LayerNormalization", "x w b", "y", axis=-1, epsilon=0.01),
        {"w": real(8), "b": real(8)},
        X,
    ),
    "softmax": (node("Softmax", "x", "y", axis=1), {}, X),
    "add": (node("Add", "x w", "y"), {"w": real(6, 1, 1)}, X),
    "number_first": (node("Sub", "w x", "y"), {"w": np.float32(2)}, X),
    "divide": (node("Div", "x w", "y"), {"w": np.float32(3)}, X),
    "power": (node("Pow", "x w", "y"), {"w": np.float32(2)}, X),
    "maximum": (node("Max", "x w", "y"), {"w": real(1, 6, 1, 1)}, X),
    "reshape": (node("Reshape", "x w", "y"), {"w": ints(0, 2, -1)}, X),
    "squeeze": (node("Squeeze", "x w", "y"), {"w": ints(0)}, X),
    "transpose": (node("Transpose", "x", "y", perm=[0, 2, 3, 1]), {}, X),
    "concat": (node("Concat", "x w x", "y", axis=2), {"w": real(1, 6, 2, 8)}, X),
    "split": (node("Split", "x w", "y z", axis=1), {"w": ints(2, 4)}, X),
    "slice": (
        node("Slice", "x a b c d", "y"),
        {"a": ints(1, -4), "b": ints(9, 1 << 62), "c": ints(2, 3), "d": ints(2, 1)},
        X,
    ),
    "pad": (
        node("Pad", "x p v", "y"),
        {"p": ints(0, 0, 1, 2, 0, 0, 3, 0), "v": np.float32(1.5)},
        X,
    ),
    "reflect": (node("Pad", "x p", "y", mode="reflect"), {"p": ints(0, 0, 1, 2, 0, 0, 3, 0)}, X),
    "mean": (node("ReduceMean", "x", "y", axes=[2, 3], keepdims=0), {}, X),
    "sum": (node("ReduceSum", "x a", "y"), {"a": ints(1)}, X),
    "largest": (node("ReduceMax", "x", "y", axes=[-1]), {}, X),
    "depth_crd": (node("DepthToSpace", "x", "y", blocksize=2, mode="CRD"), {}, (1, 8, 3, 4)),
    "depth_dcr": (node("DepthToSpace", "x", "y", blocksize=2), {}, (1, 8, 3, 4)),
    "space": (node("SpaceToDepth", "x", "y", blocksize=2), {}, (1, 3, 4, 6)),
    "sum_of_three": (node("Sum", "x w x", "y"), {"w": real(6, 1, 1)}, X),
    "selu": (node("Selu", "x", "y"), {}, X),
    "nearest": (
        node(
            "Resize",
            "x - s",
            "y",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        {"s": np.array([1, 1, 2, 3], np.float32)},
        X,
    ),
    "linear": (
        node("Resize", "x - s", "y", mode="linear", coordinate_transformation_mode="half_pixel"),
        {"s": np.array([1, 1, 2, 2], np.float32)},
        X,
    ),
    "gather": (node("Gather", "x i", "y", axis=1), {"i": ints(4, 0, -1)}, X),
    "gather_one": (node("Gather", "x i", "y", axis=2), {"i": np.array(3, np.int64)}, X),
    "gather_nd": (node("GatherND", "x i", "y"), {"i": np.array([[[0, 5], [0, 2]]], np.int64)}, X),
    "uneven_ceil": (
        node(
            "MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1], ceil_mode=1
        ),
        {},
        X,
    ),
    "higher": (node("Add", "x w", "y"), {"w": np.full((1,) * 5, 2, np.float32)}, X),
    "three": (node("Max", "x w x", "y"), {"w": real(8)}, X),
    "alone": (node("Min", "x", "y"), {}, X),
    "edge": (node("Pad", "x p", "y", mode="edge"), {"p": ints(0, 0, 0, 2, 0, 0, 0, 1)}, X),
    "clip_nothing": (node("Clip", "x", "y"), {}, X),
    "expand": (node("Expand", "x w", "y"), {"w": ints(2, 6, 9, 8)}, X),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_gives_what_onnx_runtime_gives(case: str) -> None:
    one, constants, shape = CASES[case]
    outputs = list(one.output)
    nodes = [one, *(node("Identity", name, f"{name}_out") for name in outputs)]
    proto = model(nodes, constants, {"x": (FLOAT, shape)}, [f"{name}_out" for name in outputs])
    data = proto.SerializeToString()
    x = real(*shape)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})
    module = from_onnx(parse_onnx(data, "case"))
    with torch.no_grad():
        found = module(torch.from_numpy(x))
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected, strict=True):
        assert tuple(got.shape) == wanted.shape
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-5)
        assert np.unique(wanted).size > 3


def test_a_bias_behind_a_product_joins_it_and_modules_have_the_files_names() -> None:
    nodes = [
        node("Conv", "x w", "c", "block.0/conv"),
        node("Add", "c b", "d", "block.0/add"),
        node("Relu", "d", "r", "block.0/relu"),
        node("Reshape", "r s", "f", "flatten"),
        node("MatMul", "f m", "p", "head.fc"),
        node("Add", "p o", "y", "head.add"),
    ]
    constants = {"w": W, "b": real(10, 1, 1), "s": ints(1, -1), "m": real(420, 4), "o": real(1, 4)}
    proto = model(nodes, constants, {"x": (FLOAT, X)}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    called = [n.target for n in module.graph.nodes if n.op == "call_module"]
    assert called == ["block.0/conv", "block.0/relu", "head.fc"]
    assert module.get_submodule("head.fc").bias is not None
    assert not [n for n in module.graph.nodes if n.name.startswith("add")]


NAMES = ("self", "class", "a b", "x²", "1", "torch", "inf", "a.b", "é/ü")


@pytest.mark.parametrize("name", NAMES)
def test_an_input_may_have_any_name(name: str) -> None:
    one = helper.make_node("Relu", [name], ["y"])
    proto = model([one], {}, {name: (FLOAT, X)}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    assert torch.equal(module(-torch.ones(X)), torch.zeros(X))


def test_inputs_whose_names_differ_in_signs_stay_two() -> None:
    one = helper.make_node("Sub", ["A.B", "A/B"], ["y"])
    proto = model([one], {}, {"A.B": (FLOAT, X), "A/B": (FLOAT, X)}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    assert torch.equal(module(torch.ones(X), torch.zeros(X)), torch.ones(X))


@pytest.mark.parametrize(
    "name", ["class", 'a"b', "a\\b", "constant_0", "a.class.b", "forward", "{1}", "a{b"]
)
def test_a_layer_may_have_any_name(name: str) -> None:
    nodes = [node("Conv", "x w", "c", name), node("Mul", "c k", "y", "scale")]
    proto = model(nodes, {"w": W, "k": real(10, 1, 1)}, {"x": (FLOAT, X)}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    assert module(torch.ones(X)).shape == (1, 10, 7, 6)


def test_quotients_of_integers_lose_their_fraction() -> None:
    nodes = [
        node("Cast", "x", "i", to=7),
        node("Div", "i k", "q"),
        node("Cast", "q", "y", to=1),
    ]
    proto = model(nodes, {"k": ints(2)}, {"x": (FLOAT, (3,))}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    assert module(torch.tensor([-3.0, 3.0, 5.0])).tolist() == [-1.0, 1.0, 2.0]


def test_a_reduction_over_no_axes_may_do_nothing() -> None:
    one = node("ReduceSum", "x a", "y", noop_with_empty_axes=1)
    proto = model([one], {"a": ints()}, {"x": (FLOAT, X)}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    assert torch.equal(module(torch.ones(X)), torch.ones(X))


def test_other_floats_than_32_bits_are_refused_with_the_way_out() -> None:
    proto = model([node("Relu", "x", "y")], {}, {"x": (TensorProto.DOUBLE, X)}, ["y"])
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    with pytest.raises(ModelError, match=r"input 'x' .* float64, .*convert"):
        from_onnx(parse_onnx(proto.SerializeToString(), "case"))


def test_a_bias_that_has_another_use_stays_an_addition() -> None:
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("Add", "c b", "d", "add"),
        node("Mul", "c d", "y", "mul"),
    ]
    proto = model(nodes, {"w": W, "b": real(10, 1, 1)}, {"x": (FLOAT, X)}, ["y"])
    module = from_onnx(parse_onnx(proto.SerializeToString(), "case"))
    assert module.get_submodule("conv").bias is None


REFUSED = {
    "computed_weights": (node("Conv", "x x", "y", "layer7"), {}, "layer7"),
    "unknown": (node("Det", "x", "y", "det"), {}, "float operator Det"),
    "computed_bias": (node("Conv", "x w x", "y", "layer7"), {"w": W}, "computes its bias"),
    "column": (
        node("MatMul", "x w", "y", "cols"),
        {"w": real(7, 3)},
        "'cols' cannot be computed in PyTorch",
    ),
    "far": (node("Gather", "x i", "y", axis=1), {"i": ints(6)}, "outside of the 6"),
    "groups": (node("Conv", "x w", "y", "layer7", group=4), {"w": W}, "'layer7' .*groups"),
    "no_stride": (
        node("Conv", "x w", "y", "layer7", auto_pad="SAME_UPPER", strides=[0, 0]),
        {"w": W},
        "'layer7' .Conv. cannot be computed",
    ),
    "no_axis": (node("Concat", "x x", "y", "join"), {}, "'join' .Concat. .*axis"),
    "late_window": (
        node(
            "MaxPool", "x", "y", kernel_shape=[3, 3], strides=[7, 7], pads=[0, 0, 5, 0], ceil_mode=1
        ),
        {},
        "begins in the padding",
    ),
    "nan": (node("Add", "x w", "y"), {"w": np.full(8, np.nan, np.float32)}, "constant 'w' has NaN"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_counterpart_is_refused_by_name(case: str) -> None:
    one, constants, sentence = REFUSED[case]
    shape = (1, 3, 3) if case == "unknown" else (1, 6, 8, 8)
    proto = model([one], constants, {"x": (FLOAT, shape)}, ["y"])
    with pytest.raises(ModelError, match=sentence):
        from_onnx(parse_onnx(proto.SerializeToString(), "case"))


def masked(behind: str, lowest: float) -> tuple[bytes, Any]:
    """Scores with a mask added, and an operator behind; as a file and as a module."""
    nodes = [
        node("Greater", "x z", "m", "greater"),
        node("Where", "m z low", "mask", "mask"),
        node("Add", "x mask", "s", "add"),
        node(behind, "s", "y", "end"),
    ]
    constants = {"z": np.float32(0), "low": np.array(lowest, np.float32)}
    data = model(nodes, constants, {"x": (FLOAT, X)}, ["y"]).SerializeToString()
    return data, from_onnx(parse_onnx(data, "case"))


@pytest.mark.parametrize("lowest", [float(np.finfo(np.float32).min), float("-inf"), -1e33])
def test_a_mask_below_a_softmax_becomes_a_number_that_a_scale_can_hold(lowest: float) -> None:
    data, module = masked("Softmax", lowest)
    x = real(*X)
    x[..., 0] = 1.0  # of a row that is masked whole, nobody reads the result
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    np.testing.assert_allclose(module(torch.from_numpy(x)).numpy(), wanted, rtol=1e-6, atol=1e-24)
    assert min(float(one.min()) for one in module.buffers() if one.is_floating_point()) == -60


def test_a_low_number_elsewhere_stays() -> None:
    _, module = masked("Relu", -1e33)
    stored = [float(one.min()) for one in module.buffers() if one.is_floating_point()]
    assert min(stored) == pytest.approx(-1e33)
