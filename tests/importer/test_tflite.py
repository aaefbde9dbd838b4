"""A `.tflite` file is read as it is, or refused in one sentence that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from ai_edge_litert import schema_py_generated as schema

from accelsim.errors import InputError, ModelError
from accelsim.importer import load_model
from accelsim.importer.tflite import read_model
from accelsim.importer.tflite.flatbuffer import Flatbuffer
from accelsim.importer.tflite.schema import BUILTIN_OPERATORS, OPTIONS, TENSOR_TYPES
from tests.importer.tflite_files import changed, plain, saved


def test_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    source = load_model(saved(tmp_path, plain()))
    model = source.float_module
    (step,) = model.operators
    assert (source.framework, source.already_quantized, source.input_names) == (
        "tflite",
        True,
        ("t0",),
    )
    assert (step.op, step.name, step.inputs, step.outputs) == ("CONV_2D", "t3", (0, 1, 2), (3,))
    assert step.options["activation"] == 1 and step.options["dilation_h"] == 1
    weight = model.tensors[1]
    rng = np.random.default_rng(5)
    assert np.array_equal(weight.values, rng.integers(-127, 128, (4, 3, 3, 3)))
    assert np.array_equal(weight.scales, np.array([0.01, 0.02, 0.03, 0.04], np.float32))
    assert model.tensors[3].zero_points.tolist() == [-5]
    assert [one.dtype for one in source.example_inputs] == ["int8"]


def test_a_batch_that_is_left_open_counts_as_written(tmp_path: Path) -> None:
    data = changed(plain(), tensor(0, "shapeSignature", [-1, 6, 5, 3]))
    (example,) = load_model(saved(tmp_path, data)).example_inputs
    assert example.shape == (1, 6, 5, 3)


def test_numbers_of_operators_are_those_of_the_schema() -> None:
    for number, name in enumerate(BUILTIN_OPERATORS):
        assert getattr(schema.BuiltinOperator, name) == number
    for number, name in enumerate(TENSOR_TYPES):
        assert getattr(schema.TensorType, name.upper()) == number


@pytest.mark.parametrize("op", OPTIONS)
def test_options_lie_where_the_schema_puts_them(op: str) -> None:
    names = {v: k for k, v in vars(schema.BuiltinOptions).items() if isinstance(v, int)}
    source = (Path(tflite.__file__).parent / f"{names[OPTIONS[op].kind]}.py").read_text()
    for field in OPTIONS[op].fields:
        assert f"self._tab.Offset({4 + 2 * field.slot})" in source, field


def graph(model: Any) -> Any:
    return model.subgraphs[0]


def tensor(number: int, field: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(graph(model).tensors[number], field, value)


def quantization(number: int, field: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(graph(model).tensors[number].quantization, field, value)


def operator(field: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(graph(model).operators[0], field, value)


def code(field: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(model.operatorCodes[0], field, value)


def twice(model: Any) -> None:
    model.subgraphs = [*model.subgraphs, graph(model)]


def cyclic(model: Any) -> None:
    graph(model).operators[0].inputs = [3, 1, 2]


def custom(model: Any) -> None:
    model.operatorCodes[0].builtinCode = 32
    model.operatorCodes[0].customCode = b"TFLite_Detection_PostProcess"


def sparse(model: Any) -> None:
    graph(model).tensors[1].sparsity = schema.SparsityParametersT()


def halves(model: Any) -> None:
    graph(model).tensors[1].type = schema.TensorType.FLOAT16


REFUSED: dict[str, tuple[Callable[[Any], None], str]] = {
    "two graphs": (twice, "2 graphs"),
    "cycle": (cyclic, "layer 't3' reads 't3', which nothing before it makes"),
    "custom operator": (custom, "TFLite_Detection_PostProcess"),
    "unknown operator": (code("builtinCode", 4000), "number 4000"),
    "schema version": (lambda model: setattr(model, "version", 2), "schema version 2"),
    "2 GB": (tensor(0, "shape", [1, 1 << 10, 1 << 10, 1 << 11]), "announces 2,147,483,648 bytes"),
    "open height": (
        tensor(0, "shapeSignature", [-1, -1, 5, 3]),
        "input 't0' leaves axis 1 open in its shape signature",
    ),
    "dynamic": (tensor(0, "shape", [-1, 6, 5, 3]), "dynamic shape"),
    "no elements": (tensor(3, "shape", [1, 0, 5, 4]), "no elements"),
    "nine axes": (tensor(0, "shape", [1] * 9), "9 axes"),
    "int16": (tensor(0, "type", schema.TensorType.INT16), "layer 't3' is int16"),
    "float16": (halves, "layer 't3' is float16"),
    "unknown type": (tensor(0, "type", 77), "type 77"),
    "variable": (tensor(0, "isVariable", True), "variable"),
    "sparse": (sparse, "sparse"),
    "buffer": (tensor(1, "buffer", 900), "buffer 900"),
    "length of values": (tensor(1, "shape", [4, 3, 3, 2]), "108 bytes of values"),
    "NaN": (quantization(0, "scale", [float("nan")]), "scale nan"),
    "infinite": (quantization(0, "scale", [float("inf")]), "scale inf"),
    "zero scale": (quantization(3, "scale", [0.0]), "scale 0"),
    "negative": (quantization(1, "scale", [0.1, -0.1, 0.1, 0.1]), "scale -0.1"),
    "zero point": (quantization(0, "zeroPoint", [128]), "zero point outside int8"),
    "scales of one axis": (quantization(1, "quantizedDimension", 1), "4 scales along axis 1"),
    "scales of an activation": (quantization(0, "scale", [0.1, 0.1, 0.1]), "3 scales"),
    "input beyond": (operator("inputs", [0, 1, 99]), "tensor 99"),
    "output beyond": (operator("outputs", [-1]), "tensor -1"),
    "no outputs": (operator("outputs", []), "without outputs"),
    "operator code": (operator("opcodeIndex", 5), "code 5"),
    "input made twice": (operator("outputs", [0]), "'t0' is made more than once"),
    "graph's input": (lambda model: setattr(graph(model), "inputs", [77]), "none of its tensors"),
    "graph without outputs": (lambda model: setattr(graph(model), "outputs", []), "no outputs"),
    "line in a name": (tensor(3, "name", b"a\nPASSED: b"), r"control characters: 'a\nPASSED: b'"),
    "colour in a name": (tensor(3, "name", b"\x1b[31m"), r"control characters: '\x1b[31m'"),
    "constant output": (
        lambda model: setattr(graph(model), "outputs", [3, 1]),
        "an output that is a constant: 't1'",
    ),
    "without operators": (lambda model: setattr(graph(model), "operators", []), "no operators"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_impossible_model_is_refused_by_what_is_wrong(what: str, tmp_path: Path) -> None:
    change, said = REFUSED[what]
    with pytest.raises(ModelError) as caught:
        load_model(saved(tmp_path, changed(plain(), change)))
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 3, 7, 40, 200])
def test_truncated_file_is_refused(length: int, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        load_model(saved(tmp_path, plain()[:length]))


def test_wrong_identifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a TensorFlow Lite model"):
        load_model(saved(tmp_path, b"PK\3\4" + plain()[4:6] + b"XX" + plain()[8:]))


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.tflite", tmp_path):
        with pytest.raises((ModelError, InputError)):
            load_model(f"{path}.tflite" if path.is_dir() else str(path))


def test_vector_that_announces_more_than_the_file_is_refused() -> None:
    data = bytearray(plain())
    values = np.frombuffer(bytes(data), np.int8)
    start = bytes(values).find(np.random.default_rng(5).integers(-127, 128, 108).astype(np.int8))
    data[start - 4 : start] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(ModelError, match="announces 2147483648 elements"):
        read_model(bytes(data), "net")


def test_vectors_that_share_their_bytes_are_limited() -> None:
    file = Flatbuffer(bytes(1000), "net")
    file.spend(8 * 1000)
    with pytest.raises(ModelError, match="far more data than the file has"):
        file.spend(1 << 17)
