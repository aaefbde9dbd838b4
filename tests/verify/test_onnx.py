"""Quantized ONNX files through `verify`: both forms, integers at the ends, dynamic quantization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from accelsim.errors import ModelError
from accelsim.report import document
from accelsim.spec.config import CONFIGS
from accelsim.verify import RunRecord, VerifyOptions, new_record, verify
from tests.importer.onnx_files import FLOAT, levels, model, node, qdq_convolution, weights

UINT8 = 2


def verified(proto: ModelProto, folder: Path, **options: Any) -> RunRecord:
    """The record of a verification of a file, as `accelsim verify FILE.onnx` makes it."""
    path = folder / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    chosen = {"backends": ("sim",), "self_test": False, "stalls": False} | options
    run = VerifyOptions(model=str(path), config=CONFIGS["edge8"], out=folder / "run", **chosen)
    run.out.mkdir()
    record = new_record(run)
    verify(run, lambda _: None, record)
    return record


def qoperator() -> ModelProto:
    """uint8 in and out: QLinearConv, MaxPool of integers, QLinearAdd, QLinearGlobalAveragePool."""
    rng = np.random.default_rng(5)
    constants = {
        **levels("x", 0.02, 7),
        **levels("y", 0.04, 128),
        **levels("z", 0.09, 120),
        "w": weights(rng, 6, 3, 3, 3),
        "w_s": rng.uniform(0.002, 0.01, 6).astype(np.float32),
        "w_z": np.zeros(6, np.int8),
        "b": rng.integers(-900, 900, 6).astype(np.int32),
    }
    nodes = [
        node("QLinearConv", "image x_s x_z w w_s w_z y_s y_z b", "c", "conv", pads=[1, 1, 1, 1]),
        node("MaxPool", "c", "m", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("QLinearAdd", "m y_s y_z m y_s y_z z_s z_z", "s", "sum"),
        node("QLinearGlobalAveragePool", "s z_s z_z z_s z_z", "out", "mean"),
    ]
    proto = model(nodes, constants, {"image": (UINT8, (1, 3, 8, 8))}, ["out"])
    proto.graph.output[0].type.tensor_type.elem_type = UINT8
    return proto


def check(record: RunRecord, names: list[str]) -> None:
    """Every layer ran on the NPU, and equals the reference and ONNX Runtime in every element."""
    assert record.problems == [] and record.status == "passed"
    assert [layer.name for layer in record.layers] == names
    for layer in record.layers:
        assert layer.placement == "npu"
        gates = {(c.actual, c.golden): c.status for c in layer.compare if c.gate}
        assert {golden for _, golden in gates} == {"integer", "framework"}
        assert set(gates.values()) == {"equal"}, (layer.name, gates)


def test_qdq_file_is_verified_layer_by_layer(tmp_path: Path) -> None:
    record = verified(qdq_convolution(), tmp_path)
    check(record, ["stem/conv", "pool"])
    assert record.layers[0].members == ("stem/conv", "stem/relu")
    assert "onnxruntime" in str(document(record))


def test_file_with_integers_at_its_ends_is_verified_on_simulator_and_rtl(tmp_path: Path) -> None:
    record = verified(qoperator(), tmp_path, backends=("sim", "rtl"))
    check(record, ["conv", "pool", "sum", "mean"])


def attention() -> ModelProto:
    """Scores of two heads with a bias of each key, a mask that is known at run time, softmax."""
    rng = np.random.default_rng(8)
    constants = {
        **levels("x", 0.4, 3, np.int8),
        **levels("s", 0.5, -9, np.int8),
        **levels("p", 1 / 255, -128, np.int8),
        "bias": rng.normal(0, 3, 20).astype(np.float32),
        "heads": np.array([1, 2, 5, 20], np.int64),
        "zero": np.array(0, np.float32),
        "lowest": np.array(np.finfo(np.float32).min, np.float32),
        "beta": np.array(0.7, np.float32),
    }
    nodes = [
        node("QuantizeLinear", "x x_s x_z", "xq"),
        node("DequantizeLinear", "xq x_s x_z", "xd"),
        node("Add", "xd bias", "b", "biased"),
        node("Reshape", "b heads", "h", "heads"),
        node("QuantizeLinear", "h s_s s_z", "sq"),
        node("DequantizeLinear", "sq s_s s_z", "sd"),
        node("Mul", "sd beta", "scaled", "scaled"),
        node("Cast", "keep", "kept", "cast", to=9),
        node("Where", "kept zero lowest", "mask", "mask"),
        node("Add", "scaled mask", "masked", "masked"),
        node("Softmax", "masked", "p", "softmax", axis=-1),
        node("QuantizeLinear", "p p_s p_z", "pq"),
        node("DequantizeLinear", "pq p_s p_z", "out"),
    ]
    inputs = {"x": (FLOAT, (1, 10, 20)), "keep": (7, (1, 1, 1, 20))}
    return model(nodes, constants, inputs, ["out"])


WAIVER = """
[[waive]]
layer = "mask"
golden = "host"
reason = "chosen by an input of the model"
expires = 2099-12-31
"""


def test_masked_attention_is_verified_on_simulator_and_rtl(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    keep = rng.integers(0, 2, (1, 1, 1, 20))
    np.savez(tmp_path / "x.npz", x=rng.normal(0, 16, (1, 10, 20)).astype(np.float32), keep=keep)
    (tmp_path / "waivers.toml").write_text(WAIVER)
    record = verified(
        attention(),
        tmp_path,
        backends=("sim", "rtl"),
        input=tmp_path / "x.npz",
        waive=tmp_path / "waivers.toml",
    )
    assert record.problems == [] and record.status == "passed"
    npu = {layer.name: layer for layer in record.layers if layer.placement == "npu"}
    assert [npu[name].op for name in ("biased", "softmax")] == ["add", "masked_softmax"]
    for layer in npu.values():
        gates = [one for one in layer.compare if one.gate and one.golden == "integer"]
        assert {one.actual for one in gates} == {"sim", "rtl"}
        assert {one.status for one in gates} == {"equal"} and all(one.elements for one in gates)
    assert [layer.name for layer in record.layers if layer.placement == "host"] == ["mask"]


def dynamic() -> ModelProto:
    """A linear layer whose scale is that of the values at hand, behind a static convolution."""
    proto = qdq_convolution()
    del proto.graph.output[:]
    rng = np.random.default_rng(2)
    constants = {
        "v": weights(rng, 96, 5),
        "v_z": np.array(0, np.int8),
        "v_s": np.array(0.01, np.float32),
        "flat": np.array([1, -1], np.int64),
    }
    nodes = [
        node("Reshape", "out flat", "row", "flatten"),
        node("DynamicQuantizeLinear", "row", "d d_s d_z", "dynamic"),
        node("MatMulInteger", "d v d_z v_z", "i", "fc"),
        node("Cast", "i", "f", "fc/cast", to=FLOAT),
        node("Mul", "d_s v_s", "scale", "fc/scale"),
        node("Mul", "f scale", "logits", "fc/mul"),
    ]
    more = model(nodes, constants, {}, ["logits"])
    proto.graph.node.extend(more.graph.node)
    proto.graph.initializer.extend(more.graph.initializer)
    proto.graph.output.extend(more.graph.output)
    return proto


def test_dynamic_quantization_stays_on_the_host_with_the_reason(tmp_path: Path) -> None:
    record = verified(dynamic(), tmp_path)
    host = {layer.name: layer.reason for layer in record.layers if layer.placement == "host"}
    assert set(host) and all("run time" in str(reason) for reason in host.values()), host
    assert [x.name for x in record.layers if x.placement == "npu"] == ["stem/conv", "pool"]


def test_operator_that_is_not_known_is_named_with_its_layer(tmp_path: Path) -> None:
    proto = qdq_convolution()
    proto.graph.node.append(node("Det", "out", "det", "head/det"))
    proto.graph.output[0].name = "det"
    with pytest.raises(ModelError, match=r"'head/det' .* operator Det"):
        verified(proto, tmp_path)
