"""Every TensorFlow Lite operator that is read gives LiteRT's integers, on the NPU where it can."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import ModelError
from accelsim.importer.tflite import read_model
from accelsim.importer.tflite.schema import BUILTIN_OPERATORS
from accelsim.legalize import legalize
from accelsim.peers import (
    litert_dense,
    litert_draw,
    litert_moves,
    litert_places,
    litert_pointwise,
)
from accelsim.peers.litert import MAKERS, discover
from accelsim.peers.litert_model import (
    Step,
    TfliteTensor,
    constant,
    tflite_network,
    tflite_outputs,
)
from accelsim.quantize import layer_members, quantize
from accelsim.quantize.layouts import channel_axes
from accelsim.quantize.tflite.operators import converters
from accelsim.reference import build
from tests.importer.tflite_files import changed, plain
from tests.quantize.tflite_models import EXAMPLES, FLOATS

EACH = 2  # of the peers' random models of an operator


def quantized(data: bytes) -> QuantizedModel:
    model = read_model(data, "net")
    return quantize(
        SourceModel("net", model, (), model.input_names, already_quantized=True, framework="tflite")
    )


def outputs(model: QuantizedModel, inputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    reference = build(model, optimization=0)
    named = dict(zip(model.input_names, inputs, strict=True))
    return reference.dequantize_outputs(reference.run(reference.quantize_inputs(named)))


def on_host(model: QuantizedModel) -> list[str]:
    return [one.op for one in legalize(model).host_ops if not one.boundary]


@pytest.mark.parametrize("name", EXAMPLES)
def test_operator_gives_litert_s_integers(name: str) -> None:
    example = EXAMPLES[name]()
    model = quantized(example.model)
    assert on_host(model) == ([example.host] if example.host else [])
    expected = tflite_outputs(example.model, *example.inputs)
    if name == "sum":  # the reference kernel takes int8 for uint8
        real = (example.inputs[0].astype(int) - 3).sum((1, 2)) * 0.05 / 0.37 + 3
        expected = [np.clip(np.rint(real), -128, 127).astype(np.int8)]
    found = outputs(model, example.inputs)
    assert len(found) == len(expected) > 0
    for one, golden in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (golden.dtype, golden.shape)
        assert np.array_equal(one, golden)


@pytest.mark.parametrize("name", FLOATS)
def test_operator_without_integers_stays_on_the_host(name: str) -> None:
    example = FLOATS[name]()
    assert on_host(quantized(example.model)) == [example.host]


def test_places_of_extremes_are_the_host_s_and_have_no_scale() -> None:
    tensors = [
        TfliteTensor((1, 4, 5), (0.05,), 3),
        TfliteTensor((1, 4, 5), (0.05,), 3),
        constant(2),
        TfliteTensor((1, 4), dtype="int32"),
    ]
    steps = [
        Step("RELU", (0,), (1,), version=2),
        Step("ARG_MAX", (1, 2), (3,), "ArgMaxOptions", 2, {"outputType": 2}),
    ]
    data = tflite_network(tensors, steps, (0,), (3,))
    model = quantized(data)
    assert on_host(model) == ["argmax"]
    x = np.random.default_rng(4).integers(-128, 128, (1, 4, 5)).astype(np.int8)
    (found,), (expected,) = outputs(model, (x,)), tflite_outputs(data, x)
    assert found.dtype == expected.dtype == np.int32
    assert np.array_equal(found, expected)


def recorded(operator: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, Any, Any]]:
    """Models of the peers' cases of one operator, with inputs and LiteRT's outputs."""
    found: list[tuple[bytes, Any, Any]] = []

    def record(model: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
        results = tflite_outputs(model, *inputs)
        found.append((model, inputs, results))
        return results

    for module in (litert_draw, litert_dense, litert_moves, litert_places, litert_pointwise):
        if hasattr(module, "tflite_outputs"):
            monkeypatch.setattr(module, "tflite_outputs", record)
    cases = [one for one in discover("litert", Path()) if one.name.rpartition("-")[0] == operator]
    for case in cases[:EACH]:
        case.load()
    return found


@pytest.mark.parametrize("operator", MAKERS)
def test_random_model_of_an_operator_gives_litert_s_integers(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = recorded(operator, monkeypatch)
    assert len(cases) >= EACH
    for data, inputs, expected in cases:
        model = quantized(data)
        assert on_host(model) == []
        for one, golden in zip(outputs(model, inputs), expected, strict=True):
            assert np.array_equal(one, golden)


def test_every_operator_that_is_read_is_of_the_schema() -> None:
    assert set(converters()) <= set(BUILTIN_OPERATORS) and len(converters()) > 50


def test_layers_and_members_have_the_file_s_names() -> None:
    model = quantized(plain())
    assert (model.layer_names, model.input_names, model.output_names) == (("t3",), ("t0",), ("t3",))
    assert layer_members(model.qdq) == {"t3": ("t3",)}
    assert (model.rounding, model.framework, model.input_dtypes) == ("tflite", "tflite", ("int8",))


def test_images_stay_as_they_are() -> None:
    model = quantized(plain())
    assert channel_axes(model.qdq) == {"t3": 3}
    assert "permute_dims" not in str(model.qdq)


def test_name_of_two_tensors_is_made_unique() -> None:
    def same(model: Any) -> None:
        model.subgraphs[0].tensors[0].name = model.subgraphs[0].tensors[3].name = b"image"

    model = quantized(changed(plain(), same))
    assert (model.input_names, model.layer_names) == (("image",), ("image_3",))


def operator_code(number: int) -> Any:
    return lambda model: setattr(model.operatorCodes[0], "builtinCode", number)


def test_operator_without_a_converter_is_refused_by_its_layer() -> None:
    number = BUILTIN_OPERATORS.index("UNIDIRECTIONAL_SEQUENCE_LSTM")
    with pytest.raises(ModelError, match="layer 't3' is a UNIDIRECTIONAL_SEQUENCE_LSTM"):
        quantized(changed(plain(), operator_code(number)))


def test_fused_activation_that_is_unknown_is_refused() -> None:
    with pytest.raises(ModelError, match=r"layer 't3' \(CONV_2D\) has the fused activation TANH"):
        quantized(plain(fused=4))


def test_output_of_another_shape_is_refused() -> None:
    def larger(model: Any) -> None:
        model.subgraphs[0].tensors[3].shape = [1, 6, 6, 4]

    with pytest.raises(ModelError, match=r"gives the shape \(1, 6, 5, 4\)"):
        quantized(changed(plain(), larger))


def test_model_of_floats_is_refused() -> None:
    def floats(model: Any) -> None:
        for one in model.subgraphs[0].tensors:
            one.quantization = None

    with pytest.raises(ModelError, match="floats"):
        quantized(changed(plain(), floats))


def manual() -> dict[str, set[str]]:
    """The manual's table: where an operator runs → operators."""
    text = (Path(__file__).parents[2] / "docs" / "tflite.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    found = {row[0]: set(re.findall(r"[A-Z][A-Z0-9_]+", row[1])) for row in rows if len(row) == 2}
    return {place: names for place, names in found.items() if names & set(BUILTIN_OPERATORS)}


def test_the_manual_has_every_operator_that_is_read_in_one_place() -> None:
    places = manual()
    refused = places.pop("refused")
    listed = [name for names in places.values() for name in names]
    assert set(listed) == set(converters()) and len(listed) == len(set(listed))
    assert refused & set(BUILTIN_OPERATORS) and not refused & set(converters())


def test_operators_that_the_manual_puts_on_the_npu_have_a_model_that_runs_there() -> None:
    examples = {name: make for name, make in EXAMPLES.items() if not make().host}
    run = {one.op for make in examples.values() for one in read_model(make().model, "x").operators}
    named = {"resize_nearest": "RESIZE_NEAREST_NEIGHBOR", "transpose_conv": "TRANSPOSE_CONV"}
    run |= {named.get(name, name.upper()) for name in MAKERS}
    places = manual()
    elsewhere = {"ELU", "DEQUANTIZE"}  # the reference kernels have no ELU: `test_tables` has
    assert places["on the NPU, bit-exact with LiteRT"] - run == elsewhere
    host = {one.op for make in FLOATS.values() for one in read_model(make().model, "x").operators}
    host |= {one.op for m in EXAMPLES.values() for one in read_model(m().model, "x").operators}
    on_the_host = [names for place, names in places.items() if place.startswith("on the host")]
    assert set().union(*on_the_host) - host == {"ARG_MAX", "ARG_MIN"}
