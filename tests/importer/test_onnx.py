"""Facts about reading ONNX files: what is read, and the one sentence for what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.onnx import load_onnx, parse_onnx
from accelsim.quantize.onnx import quantize_onnx
from tests.importer.onnx_files import FLOAT, changed, model, node, qdq_convolution, replaced, tensor

ROOT = Path(__file__).parents[2]


def test_graph_is_read_with_the_files_names_and_a_batch_of_one() -> None:
    found = parse_onnx(qdq_convolution().SerializeToString(), "net.onnx")
    assert [one.shape for one in found.inputs] == [(1, 3, 8, 8)]
    assert [n.name for n in found.nodes if n.operator in ("Conv", "Relu")] == [
        "stem/conv",
        "stem/relu",
    ]
    assert found.nodes[0].name == "xq"  # a node without a name is called after its output
    assert found.values["p"].shape == (1, 6, 4, 4)
    assert found.constants["w"].dtype == np.int8


def test_shapes_that_are_computed_are_folded() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Unsqueeze", "n axes", "n1"),
        node("Constant", "", "rest", value_ints=[-1]),
        node("Concat", "n1 rest", "shape", axis=0),
        node("Reshape", "x shape", "y"),
    ]
    constants = {"zero": np.array(0, np.int64), "axes": np.array([0], np.int64)}
    proto = model(nodes, constants, {"x": (FLOAT, ("n", 3, 4))}, ["y"])
    found = parse_onnx(proto.SerializeToString(), "net.onnx")
    assert [one.operator for one in found.nodes] == ["Reshape"]
    assert found.constants["shape"].tolist() == [1, -1]
    assert found.values["y"].shape == (1, 12)


def test_nodes_are_put_into_an_order_of_execution() -> None:
    data = changed(lambda m: _reverse(m))
    found = parse_onnx(data, "net.onnx")
    made: set[str] = {"image", *found.constants}
    for one in found.nodes:
        assert set(one.inputs) <= made
        made |= set(one.outputs)


def _reverse(proto: ModelProto) -> None:
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


def _drop(proto: ModelProto, name: str) -> None:
    proto.graph.initializer.remove(tensor(proto, name))


def _announce(proto: ModelProto, name: str, shape: list[int]) -> None:
    del tensor(proto, name).dims[:]
    tensor(proto, name).dims.extend(shape)


def _loop(proto: ModelProto) -> None:
    body = helper.make_graph([], "body", [], [])
    proto.graph.node.append(helper.make_node("Loop", ["out"], ["z"], name="again", body=body))


def _cycle(proto: ModelProto) -> None:
    proto.graph.node.append(node("Add", "out late", "early", "one"))
    proto.graph.node.append(node("Add", "early out", "late", "two"))
    proto.graph.output[0].name = "late"


def _domain(proto: ModelProto) -> None:
    proto.opset_import.append(helper.make_opsetid("my.company", 3))
    proto.graph.node[4].domain = "my.company"


def _foreign(kind: int) -> Callable[[ModelProto], None]:
    def change(proto: ModelProto) -> None:
        tensor(proto, "w").data_type = kind

    return change


REFUSED: dict[str, tuple[Callable[[ModelProto], Any], str]] = {
    "unknown opset": (lambda m: setattr(m.opset_import[0], "version", 99), "opset 99"),
    "old opset": (lambda m: setattr(m.opset_import[0], "version", 5), "opset 5"),
    "no opset": (lambda m: m.ClearField("opset_import"), "truncated or damaged"),
    "two opsets": (lambda m: m.opset_import.append(helper.make_opsetid("", 13)), "two opsets"),
    "foreign domain": (_domain, r"'stem/conv' \(Conv\).*domain 'my.company'"),
    "unknown operator": (
        lambda m: setattr(m.graph.node[4], "op_type", "Convolve"),
        r"'stem/conv' \(Convolve\).*no operator",
    ),
    "control flow": (_loop, r"'again' \(Loop\).*control flow"),
    "cycle": (_cycle, "cyclic at layer '(one|two)'"),
    "missing initializer": (lambda m: _drop(m, "w_s"), "reads 'w_s', which no operator gives"),
    "two origins": (lambda m: m.graph.node[1].output.__setitem__(0, "xq"), "gives 'xq', which"),
    "two initializers": (
        lambda m: m.graph.initializer.append(tensor(m, "w")),
        "two tensors 'w'",
    ),
    "output of nobody": (lambda m: setattr(m.graph.output[0], "name", "nowhere"), "'nowhere'"),
    "no output": (lambda m: m.graph.ClearField("output"), "no outputs"),
    "too little data": (
        lambda m: setattr(tensor(m, "w"), "raw_data", b"123"),
        "'w'.*3 bytes of data, not 162",
    ),
    "two gigabytes announced": (
        lambda m: _announce(m, "w", [1 << 20, 1 << 12, 3, 3]),
        "announces 38,654,705,664 bytes",
    ),
    "overflowing extents": (lambda m: _announce(m, "w", [1 << 40, 1 << 40]), "announces"),
    "negative extent": (lambda m: _announce(m, "w", [-6, 3, 3, 3]), r"shape \(-6, 3, 3, 3\)"),
    "empty input": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 0),
        "axis 1 of 0 elements",
    ),
    "open axis": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[2], "dim_param", "h"),
        r"axis 2 \('h'\) open; fix its shape with onnx.tools",
    ),
    "output of text": (
        lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", TensorProto.STRING),
        "output '.*' of net.onnx is STRING, which is not supported",
    ),
    "output of sequences": (
        lambda m: m.graph.output[0].type.CopyFrom(
            helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
        ),
        "output '.*' of net.onnx is no tensor",
    ),
    "wide integers": (_foreign(TensorProto.INT4), r"'wd' \(DequantizeLinear\).*INT4"),
    "small floats": (_foreign(TensorProto.FLOAT8E4M3FN), r"'wd' .*FLOAT8E4M3FN"),
    "infinite scale": (
        replaced("w_s", np.array([np.inf] * 6, np.float32)),
        r"'wd' \(DequantizeLinear\).*scale that is inf",
    ),
    "scale that is no number": (
        replaced("x_s", np.array(np.nan, np.float32)),
        r"'xq' \(QuantizeLinear\).*scale that is nan",
    ),
    "zero scale": (replaced("y_s", np.array(0, np.float32)), r"'yq' .*scale that is 0"),
    "negative scale": (replaced("y_s", np.array(-1, np.float32)), r"'yq' .*scale that is -1"),
    "wrong number of scales": (
        replaced("w_s", np.ones(5, np.float32)),
        r"'wd' .*6 zero points|'wd' .*5 scales",
    ),
    "16-bit activations": (
        replaced("y_z", np.array(0, np.int16)),
        r"'yq' \(QuantizeLinear\).*quantizes to int16",
    ),
    "shapes that do not fit": (
        replaced("w", np.zeros((6, 4, 3, 3), np.int8)),
        "stem/conv|contradicts itself",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_model_is_refused_in_one_sentence(case: str) -> None:
    change, message = REFUSED[case]
    with pytest.raises(ModelError) as caught:
        imported(changed(change))
    text = str(caught.value)
    assert re.search(message, text), text
    assert "\n" not in text and len(text) < 400


def imported(data: bytes) -> Any:
    found = parse_onnx(data, "net.onnx")
    names = tuple(one.name for one in found.inputs)
    return quantize_onnx(
        SourceModel("net.onnx", found, (), names, already_quantized=True, framework="onnx")
    )


@pytest.mark.parametrize("data", [b"", b"TFL3", b"PK\x03\x04 no protobuf", b"\x08\x09" * 9])
def test_other_data_is_no_model(data: bytes) -> None:
    with pytest.raises(ModelError, match="is no ONNX model, or is truncated or damaged"):
        parse_onnx(data, "net.onnx")


def test_every_truncation_is_refused() -> None:
    whole = qdq_convolution().SerializeToString()
    for length in range(0, len(whole) - 1, 97):
        with pytest.raises(ModelError):
            imported(whole[:length])


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.onnx does not exist"):
        load_onnx(tmp_path / "gone.onnx", "gone.onnx")


def split(folder: Path, location: str = "net.data") -> Path:
    """The model with its weights in another file."""
    proto = qdq_convolution()
    weight = tensor(proto, "w")
    (folder / "net.data").write_bytes(weight.raw_data)
    external_data_helper.set_external_data(weight, location)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    path = folder / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_beside_the_file_is_taken_in(tmp_path: Path) -> None:
    found = load_onnx(split(tmp_path), "net.onnx").float_module
    whole = numpy_helper.to_array(tensor(qdq_convolution(), "w"))
    np.testing.assert_array_equal(found.constants["w"], whole)
    again = parse_onnx(found.data, "again.onnx")
    np.testing.assert_array_equal(again.constants["w"], whole)


@pytest.mark.parametrize("location", ["../net.data", "/etc/hostname", "none.data"])
def test_external_data_elsewhere_is_refused(location: str, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    path = split(inner, location)
    (tmp_path / "net.data").write_bytes(bytes(1000))
    with pytest.raises(ModelError, match=r"not beside the model|does not exist"):
        load_onnx(path, "net.onnx")


def test_mutated_models_end_in_one_sentence_within_bounded_memory() -> None:
    command = [sys.executable, "-m", "tests.importer.fuzz_onnx", "--count", "250"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    refused, accepted = (int(part.split()[0]) for part in result.stdout.split(", "))
    assert refused > 50 and refused + accepted == 250


def test_name_that_is_no_text_is_refused() -> None:
    data = qdq_convolution().SerializeToString()
    assert data.count(b"stem/conv") == 1
    for name in (b"stem\x83conv", b"stem\nconv"):
        with pytest.raises(ModelError, match="a name that is no text"):
            parse_onnx(data.replace(b"stem/conv", name), "net.onnx")
