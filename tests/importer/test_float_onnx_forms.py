"""Forms of float ONNX operators that ONNX's node tests lack: older opsets, and rarer attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from accelsim.errors import ModelError
from accelsim.importer.floats import from_onnx
from accelsim.importer.onnx import parse_onnx
from tests.importer.onnx_files import FLOAT, model, node

RNG = np.random.default_rng(11)
X = (1, 6, 9, 8)
UP = np.array([1, 1, 2, 3], np.float32)
ODD = np.array([1, 1, 1.7, 0.6], np.float32)
PADS = [0, 0, 1, 2, 0, 0, 3, 0]


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


Case = tuple[Any, dict[str, np.ndarray], tuple[int, ...], int]
CASES: dict[str, Case] = {
    "squeeze_1": (node("Squeeze", "x", "y", axes=[0]), {}, X, 11),
    "unsqueeze_1": (node("Unsqueeze", "x", "y", axes=[0, 3]), {}, X, 11),
    "split_2": (node("Split", "x", "y z", axis=1, split=[2, 4]), {}, X, 11),
    "split_even": (node("Split", "x", "y z", axis=1), {}, X, 13),
    "split_18": (node("Split", "x", "y z", axis=2, num_outputs=2), {}, X, 18),
    "clip_6": (node("Clip", "x", "y", min=-0.5, max=0.6), {}, X, 9),
    "clip_one_side": (node("Clip", "x", "y", max=0.6), {}, X, 9),
    "slice_1": (node("Slice", "x", "y", starts=[1, -4], ends=[9, 7], axes=[2, 3]), {}, X, 9),
    "pad_2": (node("Pad", "x", "y", pads=PADS, value=1.5), {}, X, 9),
    "pad_reflect_2": (node("Pad", "x", "y", pads=PADS, mode="reflect"), {}, X, 9),
    "pad_cut": (node("Pad", "x p", "y"), {"p": ints(0, 0, -1, 2, 0, -2, 3, 0)}, X, 13),
    "pad_edge_channels": (
        node("Pad", "x p", "y", mode="edge"),
        {"p": ints(0, 2, 0, 1, 0, 1, 0, 0)},
        X,
        13,
    ),
    "pad_axes": (node("Pad", "x p - a", "y"), {"p": ints(1, 2), "a": ints(-1)}, X, 18),
    "softmax_11": (node("Softmax", "x", "y", axis=2), {}, X, 11),
    "softmax_default_11": (node("Softmax", "x", "y"), {}, X, 11),
    "log_softmax_11": (node("LogSoftmax", "x", "y", axis=1), {}, X, 11),
    "reduce_mean_1": (node("ReduceMean", "x", "y", axes=[1], keepdims=0), {}, X, 11),
    "reduce_l2_1": (node("ReduceL2", "x", "y", axes=[2, 3]), {}, X, 11),
    "reduce_prod_1": (node("ReduceProd", "x", "y", axes=[3]), {}, X, 11),
    "upsample_7": (node("Upsample", "x", "y", scales=[1.0, 1.0, 2.0, 3.0]), {}, X, 7),
    "upsample_9": (node("Upsample", "x s", "y"), {"s": UP}, X, 9),
    "upsample_linear_9": (node("Upsample", "x s", "y", mode="linear"), {"s": UP}, X, 9),
    "resize_10": (node("Resize", "x s", "y", mode="linear"), {"s": UP}, X, 10),
    "resize_nearest_10": (node("Resize", "x s", "y"), {"s": ODD}, X, 10),
    "resize_odd": (node("Resize", "x - s", "y", mode="linear"), {"s": ODD}, X, 13),
    "resize_odd_cubic": (node("Resize", "x - s", "y", mode="cubic"), {"s": ODD}, X, 13),
    "resize_whole_cubic": (node("Resize", "x - s", "y", mode="cubic"), {"s": UP}, X, 13),
    "resize_ceil": (
        node(
            "Resize", "x - s", "y", coordinate_transformation_mode="asymmetric", nearest_mode="ceil"
        ),
        {"s": UP},
        X,
        13,
    ),
    "resize_smooth": (
        node("Resize", "x - s", "y", mode="linear", antialias=1),
        {"s": np.array([1, 1, 0.5, 0.7], np.float32)},
        X,
        18,
    ),
    "resize_channels_last": (
        node("Resize", "x - s", "y", mode="linear", coordinate_transformation_mode="asymmetric"),
        {"s": np.array([1, 2, 1, 1], np.float32)},
        (1, 3, 5, 4),
        13,
    ),
    "batch_norm_7": (
        node("BatchNormalization", "x w b m v", "y"),
        {"w": real(6), "b": real(6), "m": real(6), "v": np.abs(real(6)) + 0.5},
        X,
        7,
    ),
    "group_norm_21": (
        node("GroupNormalization", "x w b", "y", num_groups=3),
        {"w": real(6), "b": real(6)},
        X,
        21,
    ),
    "instance_norm_1d": (
        node("InstanceNormalization", "x w b", "y", epsilon=0.01),
        {"w": real(6), "b": real(6)},
        (1, 6, 9),
        13,
    ),
    "max_pool_wide": (node("MaxPool", "x", "y", kernel_shape=[3, 3], pads=[2] * 4), {}, X, 13),
    "max_pool_1d_uneven": (
        node("MaxPool", "x", "y", kernel_shape=[3], pads=[0, 1], strides=[2]),
        {},
        (1, 6, 8),
        13,
    ),
    "average_same": (
        node("AveragePool", "x", "y", kernel_shape=[3, 2], auto_pad="SAME_UPPER", strides=[2, 1]),
        {},
        X,
        13,
    ),
    "average_uneven": (
        node("AveragePool", "x", "y", kernel_shape=[3, 3], pads=[0, 1, 1, 0]),
        {},
        X,
        13,
    ),
    "average_1d_same": (
        node("AveragePool", "x", "y", kernel_shape=[4], auto_pad="SAME_LOWER"),
        {},
        (1, 6, 9),
        13,
    ),
    "average_dilated": (
        node("AveragePool", "x", "y", kernel_shape=[2, 2], dilations=[2, 1], pads=[1, 0, 1, 0]),
        {},
        X,
        19,
    ),
    "global_lp": (node("GlobalLpPool", "x", "y", p=2), {}, X, 13),
    "global_lp_1": (node("GlobalLpPool", "x", "y", p=1), {}, X, 13),
    "global_lp_3": (node("GlobalLpPool", "x", "y", p=3), {}, X, 13),
    "lp_pool": (node("LpPool", "x", "y", kernel_shape=[2, 3], p=2, pads=[1] * 4), {}, X, 13),
    "lrn": (node("LRN", "x", "y", size=3, alpha=0.5, beta=0.6, bias=1.5), {}, X, 13),
    "transposed_1d": (
        node("ConvTranspose", "x w b", "y", strides=[2], pads=[1, 0], output_padding=[1]),
        {"w": real(6, 5, 3), "b": real(5)},
        (1, 6, 9),
        13,
    ),
    "transposed_uneven": (
        node("ConvTranspose", "x w", "y", strides=[2, 2], pads=[0, 1, 1, 0]),
        {"w": real(6, 5, 3, 3)},
        X,
        13,
    ),
    "transposed_same": (
        node("ConvTranspose", "x w", "y", strides=[2, 2], auto_pad="SAME_UPPER"),
        {"w": real(6, 5, 3, 3)},
        X,
        13,
    ),
    "transposed_lower": (
        node("ConvTranspose", "x w", "y", strides=[2, 2], auto_pad="SAME_LOWER"),
        {"w": real(6, 5, 3, 3)},
        X,
        13,
    ),
    "transposed_shape": (
        node("ConvTranspose", "x w", "y", strides=[2, 2], output_shape=[18, 17]),
        {"w": real(6, 5, 3, 3)},
        X,
        13,
    ),
    "gemm_column": (
        node("Gemm", "x w b", "y", alpha=0.5, beta=2.0),
        {"w": real(6, 7), "b": real(7, 1)},
        (7, 6),
        13,
    ),
    "gemm_turned": (node("Gemm", "x w", "y", transA=1), {"w": real(6, 7)}, (6, 4), 13),
    "prelu_elements": (node("PRelu", "x w", "y"), {"w": real(6, 9, 8)}, X, 13),
    "selu_own": (node("Selu", "x", "y", alpha=1.2, gamma=0.9), {}, X, 13),
    "gather_matrix": (
        node("Gather", "x i", "y", axis=2),
        {"i": np.array([[4, 0], [-1, 2]])},
        X,
        13,
    ),
    "back": (
        node("Slice", "x a b c d", "y"),
        {"a": ints(-1, 1), "b": ints(-(1 << 40), 6), "c": ints(3, 2), "d": ints(-2, 2)},
        X,
        13,
    ),
    "hardmax_11": (node("Hardmax", "x", "y", axis=3), {}, X, 11),
    "top": (node("TopK", "x k", "y z", axis=1), {"k": ints(3)}, X, 13),
    "lp_normal": (node("LpNormalization", "x", "y", axis=1), {}, X, 13),
    "einsum_attention": (
        node("Einsum", "x w", "y", equation="bhid,bhjd->bhij"),
        {"w": real(*X)},
        X,
        13,
    ),
    "einsum_turned": (
        node("Einsum", "x w", "y", equation="bchw,oc->bohw"),
        {"w": real(5, 6)},
        X,
        13,
    ),
    "einsum_joined": (
        node("Einsum", "x w", "y", equation="bchw, hwo -> bco"),
        {"w": real(9, 8, 5)},
        X,
        13,
    ),
    "mean_of_three": (node("Mean", "x w x", "y"), {"w": real(6, 1, 1)}, X, 13),
    "celu": (node("Celu", "x", "y", alpha=0.7), {}, X, 13),
    "shrink": (node("Shrink", "x", "y", lambd=0.4, bias=0.2), {}, X, 13),
    "thresholded": (node("ThresholdedRelu", "x", "y", alpha=0.4), {}, X, 13),
    "lstm": (
        node("LSTM", "x w r b", "y h c", hidden_size=5, direction="bidirectional"),
        {"w": real(2, 20, 8), "r": real(2, 20, 5), "b": real(2, 40)},
        (4, 2, 8),
        14,
    ),
    "gru": (
        node("GRU", "x w r b - h0", "y h", hidden_size=5, linear_before_reset=1),
        {"w": real(1, 15, 8), "r": real(1, 15, 5), "b": real(1, 30), "h0": real(1, 2, 5)},
        (4, 2, 8),
        14,
    ),
    "gru_backward": (
        node("GRU", "x w r b", "y h", hidden_size=5, direction="reverse"),
        {"w": real(1, 15, 8), "r": real(1, 15, 5), "b": real(1, 30)},
        (4, 2, 8),
        14,
    ),
    "rnn": (
        node("RNN", "x w r", "y h", hidden_size=5),
        {"w": real(1, 5, 8), "r": real(1, 5, 5)},
        (4, 2, 8),
        14,
    ),
    "cumulative": (node("CumSum", "x a", "y", reverse=1, exclusive=1), {"a": ints(2)}, X, 14),
}


@pytest.mark.parametrize("case", CASES)
def test_a_form_gives_what_onnx_runtime_gives(case: str) -> None:
    one, constants, shape, opset = CASES[case]
    data = model([one], constants, {"x": (FLOAT, shape)}, one.output, opset=opset)
    for value in data.graph.output[1:] if one.op_type == "TopK" else ():
        value.type.tensor_type.elem_type = 7
    x = real(*shape)
    session = onnxruntime.InferenceSession(
        data.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {"x": x})
    module = from_onnx(parse_onnx(data.SerializeToString(), "case"))
    with torch.no_grad():
        found = module(torch.from_numpy(x))
    results = found if isinstance(found, tuple) else (found,)
    assert len(results) == len(expected)
    for got, wanted in zip(results, expected, strict=True):
        assert tuple(got.shape) == wanted.shape
        np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-5, atol=2e-5)
        assert np.unique(wanted).size > 1


REFUSED: dict[str, tuple[Any, dict[str, np.ndarray], str]] = {
    "lengths": (
        node("GRU", "x w r - n", "y", "gru", hidden_size=5),
        {"w": real(1, 15, 8), "r": real(1, 15, 5), "n": np.array([3], np.int32)},
        "'gru' .GRU. has lengths of its own",
    ),
    "scales": (node("Resize", "x - s", "y", "up"), {}, "'up' .Resize. computes its scales"),
    "even": (node("LRN", "x", "y", "norm", size=4), {}, "'norm' .LRN. goes over 4 channels"),
    "count": (node("TopK", "x k", "y z", "top"), {}, "'top' .TopK. computes its input 1"),
    "places": (
        node("MaxPool", "x", "y z", "pool", kernel_shape=[2, 2]),
        {},
        "'pool' .MaxPool. gives the places",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_form_without_counterpart_is_refused_by_name(case: str) -> None:
    one, constants, sentence = REFUSED[case]
    inputs: dict[str, Any] = {"x": (FLOAT, X)}
    inputs |= {"s": (FLOAT, (4,))} if case == "scales" else {}
    inputs |= {"x": (FLOAT, (4, 1, 8))} if case == "lengths" else {}
    inputs |= {"k": (7, (1,))} if case == "count" else {}
    proto = model([one], constants, inputs, one.output)
    with pytest.raises(ModelError, match=sentence):
        from_onnx(parse_onnx(proto.SerializeToString(), "case"))
