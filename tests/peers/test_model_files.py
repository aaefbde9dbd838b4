"""Model files with goldens: out of scope without an importer, compiled and run with one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accelsim import zoo
from accelsim.peers import model_files
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, PASSED
from accelsim.peers.run import run
from accelsim.peers.scope import judged, read_list
from accelsim.quantize import qnnpack_engine, quantize
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]


def test_every_model_with_a_golden_is_a_case(data: Path) -> None:
    found = [c.name for s in ("tflite", "onnx") for c in model_files.discover(s, data)]
    goldens = [p.name for s in ("tflite", "onnx") for p in (data / s).glob("*.golden.npz")]
    assert sorted(found) == sorted(name.removesuffix(".golden.npz") for name in goldens) != []


def written(folder: Path, **arrays: np.ndarray) -> Path:
    (folder / "tflite").mkdir()
    (folder / "tflite" / "net.tflite").write_bytes(b"TFL3")
    np.savez(folder / "tflite" / "net.golden.npz", **arrays)
    return folder


def test_model_without_an_importer_is_listed_as_out_of_scope(tmp_path: Path) -> None:
    folder = written(tmp_path, x=np.zeros(1), y_ref=np.zeros(1))
    (case,) = model_files.discover("tflite", folder)
    (outcome,) = judged([run(case, EDGE8, [])], read_list())
    assert outcome.status == OUT_OF_SCOPE


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
