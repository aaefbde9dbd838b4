"""Model files with goldens are compiled and run, and compared with what their peers computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim import zoo
from accelsim.peers import model_files
from accelsim.peers.litert_model import tflite_outputs
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, PASSED
from accelsim.peers.run import run
from accelsim.peers.scope import judged, read_list
from accelsim.quantize import qnnpack_engine, quantize
from accelsim.reference import GoldenSet
from accelsim.reference.litert import LiteRtGolden
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from tests.verify.tflite_nets import network

EDGE8 = CONFIGS["edge8"]


def test_every_model_with_a_golden_is_a_case(data: Path) -> None:
    found = [c.name for s in ("tflite", "onnx") for c in model_files.discover(s, data)]
    goldens = [p.name for s in ("tflite", "onnx") for p in (data / s).glob("*.golden.npz")]
    assert sorted(found) == sorted(name.removesuffix(".golden.npz") for name in goldens) != []


def written(folder: Path, model: bytes = b"TFL3", **arrays: np.ndarray) -> Path:
    (folder / "tflite").mkdir()
    (folder / "tflite" / "net.tflite").write_bytes(model)
    np.savez(folder / "tflite" / "net.golden.npz", **arrays)
    return folder


def test_model_that_cannot_be_read_is_out_of_scope_and_not_listed(tmp_path: Path) -> None:
    folder = written(tmp_path, x=np.zeros(1), y_ref=np.zeros(1))
    (case,) = model_files.discover("tflite", folder)
    found = run(case, EDGE8, [])
    assert found.status == OUT_OF_SCOPE and "not a TensorFlow Lite model" in found.detail
    assert [one.status for one in judged([found], read_list())] == [FAILED]


@pytest.mark.parametrize(("output", "status"), [(0, PASSED), (1, FAILED)])
def test_network_of_a_file_equals_its_golden(output: int, status: str, tmp_path: Path) -> None:
    x = np.random.default_rng(4).integers(-128, 128, (2, 8, 8, 3)).astype(np.int8)
    golden = np.concatenate([tflite_outputs(network(), x[i : i + 1])[0] for i in range(2)])
    golden[1, 3] ^= output
    folder = written(tmp_path, network(), x=x, y_ref=golden)
    (case,) = model_files.discover("tflite", folder)
    outcome = run(case, EDGE8, [Simulator(EDGE8).run])
    assert outcome.status == status, outcome.detail
    assert outcome.elements > 2 * (3 * 8 * 8 * 8)


def test_layer_that_differs_from_the_file_s_tensor_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(golden: LiteRtGolden, inputs: Any) -> GoldenSet:
        found = right(golden, inputs)
        changed = {**found.tensors, "block/add": found.tensors["block/add"] ^ 1}
        return replace(found, tensors=changed)

    right = LiteRtGolden.accumulated
    monkeypatch.setattr(LiteRtGolden, "accumulated", shifted)
    x = np.zeros((1, 8, 8, 3), np.int8)
    folder = written(tmp_path, network(), x=x, y_ref=tflite_outputs(network(), x)[0])
    (case,) = model_files.discover("tflite", folder)
    outcome = run(case, EDGE8, [Simulator(EDGE8).run])
    assert (outcome.status, outcome.detail) == (
        FAILED,
        "layer block/add: 512 of 512 elements differ, by 1 at most",
    )


def test_golden_without_outputs_fails(tmp_path: Path) -> None:
    (case,) = model_files.discover("tflite", written(tmp_path, x=np.zeros(1)))
    outcome = run(case, EDGE8, [])
    assert outcome.status == FAILED and "no y_ref" in outcome.detail


@pytest.mark.parametrize(("wrong", "status"), [(0, PASSED), (1, FAILED)])
def test_model_is_run_as_soon_as_there_is_an_importer(
    wrong: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = zoo.load("zoo:digits-resnet")
    x = source.example_inputs[0][:1]
    with qnnpack_engine():
        golden = quantize(source).torch_int8(*map(_tensor, (x,))).numpy()
    folder = written(tmp_path, x=x, y_ref=golden + np.float32(wrong))
    monkeypatch.setattr(model_files, "load_model", lambda _path: source)
    (case,) = model_files.discover("tflite", folder)
    outcome = run(case, EDGE8, [Simulator(EDGE8).run])
    assert (outcome.status, outcome.elements) == (status, golden.size), outcome.detail


def _tensor(values: np.ndarray) -> object:
    import torch

    return torch.from_numpy(values)
