"""LiteRT's reference kernels are the golden of a TensorFlow Lite model: alone, and in its file."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import I8, QuantizedModel, SourceModel
from accelsim.errors import InputError, ModelError, ToolError
from accelsim.importer.tflite import read_model
from accelsim.peers.litert_model import tflite_outputs
from accelsim.quantize import quantize
from accelsim.reference import Reference, build, build_framework
from accelsim.reference.litert import LiteRtGolden
from accelsim.reference.litert_cut import Cutter, Kernels
from tests.importer.tflite_files import changed, plain
from tests.quantize.tflite_models import EXAMPLES, integers


def quantized(data: bytes) -> QuantizedModel:
    model = read_model(data, "net")
    return quantize(
        SourceModel("net", model, (), model.input_names, already_quantized=True, framework="tflite")
    )


def pair(data: bytes) -> tuple[Reference, LiteRtGolden]:
    model = quantized(data)
    reference = build(model, optimization=0)
    golden = build_framework(model, reference.network)
    assert isinstance(golden, LiteRtGolden)
    return reference, golden


@pytest.fixture(scope="module")
def plain_pair() -> tuple[Reference, LiteRtGolden]:
    return pair(plain())


IMAGE = integers(1, 6, 5, 3)


def test_layer_alone_is_what_its_kernel_gives(plain_pair: tuple[Reference, LiteRtGolden]) -> None:
    reference, golden = plain_pair
    (expected,) = tflite_outputs(plain(), IMAGE)
    assert golden.source == "litert" and golden.covers("t3") and golden.missing() == {}
    assert np.array_equal(golden.run_layer("t3", (IMAGE,)), expected)
    assert np.array_equal(reference.run_layer("t3", (IMAGE,)), expected)


def test_whole_file_gives_outputs_and_layers(plain_pair: tuple[Reference, LiteRtGolden]) -> None:
    _, golden = plain_pair
    (expected,) = tflite_outputs(plain(), IMAGE)
    found = golden.accumulated({"t0": IMAGE})
    assert (found.source, found.mode, found.gate) == ("litert", "accumulated", False)
    assert np.array_equal(found.tensors["t3"], expected)
    (output,) = golden.outputs({"t0": IMAGE}) or ()
    assert np.array_equal(output, expected)


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_file_that_lacks_its_last_bytes_is_refused_in_one_sentence(missing: int) -> None:
    with pytest.raises(ModelError, match="damaged where only LiteRT reads it") as caught:
        Cutter(plain()[:-missing])
    assert "\n" not in str(caught.value)


def test_other_weights_are_noticed(plain_pair: tuple[Reference, LiteRtGolden]) -> None:
    def other(model: Any) -> None:
        model.buffers[2].data = model.buffers[2].data[::-1].copy()

    _, golden = pair(changed(plain(), other))
    reference, _ = plain_pair
    different = golden.run_layer("t3", (IMAGE,)) != reference.run_layer("t3", (IMAGE,))
    assert different.any()


@pytest.mark.parametrize("name", ["stored add", "split_v", "unpack", "stored convolution", "sum"])
def test_integers_of_a_layer_are_those_of_its_kernels(name: str) -> None:
    example = EXAMPLES[name]()
    reference, golden = pair(example.model)
    names = [model_input for model_input, _ in reference.network.inputs]
    values = reference.quantize_inputs(dict(zip(names, example.inputs, strict=True)))
    for layer in reference.layers:
        inputs: tuple[I8, ...] = tuple(values[one] for one in layer.inputs)
        exact = reference.run_layer(layer.name, inputs)
        assert np.array_equal(golden.run_layer(layer.name, inputs), exact), layer.name
        assert golden.bound(layer.name, inputs, exact, exact) is None


def test_model_without_its_file_is_refused() -> None:
    model = quantized(plain())
    network = build(model, optimization=0).network
    with pytest.raises(ModelError, match="without a TensorFlow Lite file"):
        build_framework(replace(model, original=None), network)


def test_missing_input_is_named(plain_pair: tuple[Reference, LiteRtGolden]) -> None:
    with pytest.raises(InputError, match="'t0'"):
        plain_pair[1].outputs({})


def test_operator_that_needs_a_float_tensor_is_not_cut() -> None:
    with pytest.raises(ModelError, match="'t0', which is not quantized"):
        Cutter(plain()).between([], 3)


def test_absent_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith("ai_edge_litert")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    for start in (Cutter, Kernels):
        with pytest.raises(ToolError, match="extra tflite"):
            start(plain())


def test_file_that_litert_refuses_is_one_sentence() -> None:
    def version(model: Any) -> None:
        model.operatorCodes[0].version = 900

    with pytest.raises(ToolError) as caught:
        Kernels(changed(plain(), version))
    assert str(caught.value).startswith("LiteRT refuses it") and "\n" not in str(caught.value)
