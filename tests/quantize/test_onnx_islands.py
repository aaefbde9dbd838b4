"""Moves and masks of ONNX islands: the graph that is read computes what the file computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from accelsim.artifacts import SourceModel
from accelsim.importer.onnx.model import OnnxModel, proto_of
from accelsim.importer.onnx.reader import parse_onnx
from accelsim.legalize import Legalized, legalize
from accelsim.quantize import quantize
from accelsim.quantize.onnx.masks import with_quantized_masks
from accelsim.quantize.onnx.moved import with_moves_apart
from tests.importer.onnx_files import FLOAT, levels, model, node

INT64 = 7
LOWEST = np.float32(np.finfo(np.float32).min)
CONSTANTS = {
    **levels("x", 0.05, 3, np.int8),
    **levels("y", 0.06, -7, np.int8),
    "bias": np.linspace(-2, 3, 24, dtype=np.float32),
    "gain": np.linspace(0.5, 2, 24, dtype=np.float32),
    "flat": np.array([1, 6, 24], np.int64),
    "rows": np.array([6, 24], np.int64),
    "heads": np.array([1, 6, 3, 8], np.int64),
    "half": np.array(0.5, np.float32),
}


def island(*nodes: Any, shape: tuple[int, ...] = (1, 6, 24)) -> ModelProto:
    """Quantize, some nodes from `xd` to `end`, quantize."""
    return model(
        [
            node("QuantizeLinear", "x x_s x_z", "xq"),
            node("DequantizeLinear", "xq x_s x_z", "xd"),
            *nodes,
            node("QuantizeLinear", "end y_s y_z", "yq"),
            node("DequantizeLinear", "yq y_s y_z", "out"),
        ],
        CONSTANTS,
        {"x": (FLOAT, shape)},
        ["out"],
    )


ISLANDS: dict[str, tuple[ModelProto, tuple[str, ...]]] = {
    "a function between reshapes": (
        island(
            node("Reshape", "xd flat", "a", "in"),
            node("Sigmoid", "a", "b", "gate"),
            node("Reshape", "b rows", "end", "back"),
            shape=(6, 24),
        ),
        ("gate",),
    ),
    "functions of one tensor in front of a transpose": (
        island(
            node("Sigmoid", "xd", "a", "gate"),
            node("Mul", "xd a", "b", "silu"),
            node("Mul", "b half", "c", "halved"),
            node("Transpose", "c", "end", "turn", perm=[0, 2, 1]),
        ),
        ("halved", "turn"),
    ),
    "heads of what gets a bias": (
        island(
            node("Add", "xd bias", "a", "biased"),
            node("Reshape", "a heads", "b", "view"),
            node("Transpose", "b", "end", "heads_first", perm=[0, 2, 1, 3]),
        ),
        ("biased", "heads_first"),
    ),
    "a normalization between reshapes": (
        island(
            node("Reshape", "xd flat", "a", "in"),
            node("LayerNormalization", "a gain bias", "b", "norm"),
            node("Reshape", "b rows", "end", "back"),
            shape=(6, 24),
        ),
        ("in", "norm", "back"),
    ),
}


def parsed(proto: ModelProto) -> OnnxModel:
    """As a file is read."""
    return parse_onnx(proto.SerializeToString(), "net")


def placed(read: OnnxModel) -> Legalized:
    """What runs where."""
    names = tuple(value.name for value in read.inputs)
    source = SourceModel("net", read, (), names, already_quantized=True, framework="onnx")
    return legalize(quantize(source))


def outputs(read: OnnxModel, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime gives, without optimisation."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    proto = proto_of(read, read.nodes, read.inputs, read.outputs)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return list(session.run(None, given))


@pytest.mark.parametrize("name", ISLANDS)
def test_an_operator_beside_moves_is_a_layer_of_the_npu(name: str) -> None:
    proto, layers = ISLANDS[name]
    found = placed(parsed(proto))
    assert [op.name for op in found.host_ops if not op.boundary] == []
    assert tuple(found.layers) == layers


@pytest.mark.parametrize("name", ISLANDS)
def test_moves_apart_change_no_number(name: str) -> None:
    read = parsed(ISLANDS[name][0])
    apart = with_moves_apart(read)
    assert apart is not read
    shape = read.inputs[0].shape
    x = np.random.default_rng(1).normal(0, 4, shape).astype(np.float32)
    for one, other in zip(outputs(read, {"x": x}), outputs(apart, {"x": x}), strict=True):
        np.testing.assert_array_equal(one, other)
        assert len(np.unique(one)) > 16


def test_a_result_that_another_operator_reads_in_floats_is_moved_where_it_was() -> None:
    proto = island(
        node("LayerNormalization", "xd gain bias", "a", "norm"),
        node("Reshape", "a rows", "end", "flatten"),
        node("Neg", "a", "other", "negative"),
    )
    proto.graph.output.add().CopyFrom(proto.graph.output[0])
    proto.graph.output[1].name = "other"
    read = parsed(proto)
    assert with_moves_apart(read) is read


def attention(lowest: float, divides: bool = False) -> ModelProto:
    """A softmax of scores and a mask that is chosen at run time."""
    constants = {
        **levels("x", 0.45, 3, np.int8),
        **levels("y", 1 / 256, -128, np.int8),
        "zero": np.array(0, np.float32),
        "lowest": np.array(lowest, np.float32),
        "beta": np.array(4 if divides else 0.25, np.float32),
    }
    nodes = [
        node("QuantizeLinear", "x x_s x_z", "xq"),
        node("DequantizeLinear", "xq x_s x_z", "xd"),
        node("Div" if divides else "Mul", "xd beta", "scores", "scaled"),
        node("Cast", "keep", "kept", "cast", to=9),
        node("Where", "kept zero lowest", "mask", "mask"),
        node("Add", "scores mask", "masked", "masked"),
        node("Softmax", "masked", "p", "softmax", axis=-1),
        node("QuantizeLinear", "p y_s y_z", "yq"),
        node("DequantizeLinear", "yq y_s y_z", "out"),
    ]
    inputs = {"x": (FLOAT, (1, 3, 5, 20)), "keep": (INT64, (1, 1, 5, 20))}
    return model(nodes, constants, inputs, ["out"])


def rows() -> dict[str, np.ndarray]:
    """Scores of all levels; of the masks one hides everything, one nothing, one the largest."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-60, 60, (1, 3, 5, 20)).astype(np.float32)
    keep = rng.integers(0, 2, (1, 1, 5, 20))
    keep[0, 0, 0], keep[0, 0, 1] = 0, 1
    x[:, :, 2, 7], keep[0, 0, 2, 7] = 60, 0
    return {"x": x, "keep": keep}


@pytest.mark.parametrize("divides", [False, True])
def test_masked_softmax_runs_on_the_npu_and_its_mask_on_the_host(divides: bool) -> None:
    found = placed(parsed(attention(LOWEST, divides)))
    assert tuple(found.layers) == ("softmax",)
    reasons = {op.name: op.reason for op in found.host_ops if not op.boundary}
    assert list(reasons) == ["mask"]
    assert "the model's input 'keep', which is not quantized" in reasons["mask"]


def test_levels_of_a_mask_change_no_number() -> None:
    read = parsed(attention(LOWEST))
    found = with_quantized_masks(read)
    assert found is not read
    before, after = (outputs(one, rows())[0] for one in (read, found))
    np.testing.assert_array_equal(before, after)
    assert len(np.unique(before)) > 16


def test_a_mask_beside_which_scores_count_stays_as_it_is() -> None:
    read = parsed(attention(-10000.0))
    assert with_quantized_masks(read) is read
    reasons = {op.name: op.reason for op in placed(read).host_ops if not op.boundary}
    assert "what is added before its softmax has no levels" in reasons["softmax"]
