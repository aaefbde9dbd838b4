"""`accelsim quantize`: what it writes, what it says, and how it ends."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tvm_ffi import structural_equal

from accelsim.calibrate.options import QuantizeOptions
from accelsim.calibrate.run import new_record, run
from accelsim.importer import load_model
from accelsim.quantize import layer_members, quantize
from tests.calibrate import networks
from tests.cli.invocation import Result, invoke

MODEL = f"{networks.__file__}:make"
FAST = ("--calibration", "minmax", "--equalize", "off", "--bias-correction", "off")


def quantized(folder: Path, *arguments: str) -> tuple[Result, dict[str, Any]]:
    """Run the command into `folder/q`; its result and its report."""
    result = invoke(folder, "quantize", MODEL, "--out", "q", *arguments)
    return result, json.loads((folder / "q/model.json").read_text())


def test_everything_is_tried_measured_and_written(tmp_path: Path) -> None:
    result, report = quantized(tmp_path, "--json", "r.json")
    assert result.code == 0 and json.loads((tmp_path / "r.json").read_text()) == report
    assert (report["schema"], report["status"]) == ("accelsim.quantize/1", "complete")
    tried = [(one["activations"], one["equalized"]) for one in report["trials"]]
    kinds = ("minmax", "percentile", "mse", "entropy")
    assert tried[:8] == [(kind, equal) for equal in (False, True) for kind in kinds]
    best = max(one["output_sqnr_db"] for one in report["trials"])
    chosen = report["choice"]
    (own,) = [one for one in report["trials"] if all(one[key] == chosen[key] for key in tried_by)]
    assert own["output_sqnr_db"] >= best - 0.2
    assert report["accuracy"]["float"] == {"top1": 1.0}
    assert report["accuracy"]["loss"] == 1.0 - report["accuracy"]["int8"]["top1"]
    assert report["test"] == {"origin": "the model's test split", "samples": 40}
    names = [layer["name"] for layer in report["layers"]]
    assert names == ["x", "first", "depthwise", "grouped", "pool", "flatten", "fc"]
    assert {row["name"] for row in report["sensitivity"]} == set(names)
    assert result.out.splitlines() == (tmp_path / "q/model.txt").read_text().splitlines()
    assert "top1: float 1.0000, int8" in result.out
    assert not list(tmp_path.rglob("*.partial*"))


tried_by = ("activations", "equalized", "bias_corrected")


def test_the_file_gives_the_same_integers_names_and_test_split(tmp_path: Path) -> None:
    out = tmp_path / "net.pt2"
    options = QuantizeOptions(MODEL, out, calibration="mse", sensitivity=False)
    record = new_record(options)
    run(options, lambda _: None, record)
    read = load_model(str(out))
    model = quantize(read)
    source = networks.make()
    assert np.array_equal(read.test_inputs, source.test_inputs)
    assert np.array_equal(read.test_labels, source.test_labels)
    assert model.layer_names == tuple(row.name for row in record.layers if row.members)
    assert layer_members(model.qdq)["first"] == ("first", "bn", "relu")
    again = quantize(load_model(str(out)))
    assert structural_equal(model.qdq, again.qdq)
    x = torch.from_numpy(source.test_inputs[:1])
    assert float((read.float_module.module()(x) - source.float_module(x)).abs().max()) < 0.2
    assert torch.export.load(out).graph_signature.user_inputs


def test_layers_kept_in_float_come_with_their_waivers(tmp_path: Path) -> None:
    result, report = quantized(tmp_path, *FAST, "--keep-float", "depthwise", "--no-sensitivity")
    assert result.code == 0 and report["kept_float"] == ["depthwise"]
    assert report["host_layers"] == ["depthwise"] and report["sensitivity"] == []
    waived = tomllib.loads((tmp_path / "q/model.waivers.toml").read_text())["waive"]
    assert [(one["layer"], one["golden"]) for one in waived] == [("depthwise", "host")]
    from accelsim.codegen import compile_model
    from accelsim.spec.config import CONFIGS

    model = quantize(load_model(str(tmp_path / "q/model.pt2")))
    compiled = compile_model(model, CONFIGS["edge8"])
    assert "depthwise" in [op.name for op in compiled.host_ops]


def test_sensitive_layers_stay_in_float_until_the_loss_is_within_the_limit(tmp_path: Path) -> None:
    model = f"{networks.__file__}:make_planted"
    command = ("quantize", model, "--out", "q", *FAST, "--weights", "per-tensor")
    assert invoke(tmp_path, *command, "--no-sensitivity").code == 0
    before = json.loads((tmp_path / "q/model.json").read_text())
    assert before["accuracy"]["loss"] > 0.2
    assert invoke(tmp_path, *command, "--max-loss", "0.1").code == 0
    report = json.loads((tmp_path / "q/model.json").read_text())
    assert report["placement"]["reached"] and report["accuracy"]["loss"] <= 0.1
    assert report["kept_float"] == ["grouped"] == report["host_layers"]
    assert report["placement"]["steps"][0]["loss"] == pytest.approx(before["accuracy"]["loss"])


def test_a_limit_that_cannot_be_reached_is_code_1(tmp_path: Path) -> None:
    (tmp_path / "metric.py").write_text(
        "import numpy as np\n"
        "def exact(outputs, labels):\n"
        "    return -float(np.abs(outputs - np.round(outputs, 6)).max() == 0)\n"
        "def falling(outputs, labels, calls=[]):\n"
        "    calls.append(1)\n"
        "    return -float(len(calls) > 1)\n"
    )
    metric = ("--metric", "metric.py:falling")
    result, report = quantized(tmp_path, *FAST, *metric, "--max-loss", "0.5")
    assert result.code == 1 and not report["placement"]["reached"]
    assert "the loss is above --max-loss 0.5" in result.last
    assert (tmp_path / "q/model.pt2").is_file() and report["status"] == "complete"


def test_an_own_metric_and_own_data_are_used(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def data():\n"
        "    return np.random.default_rng(3).normal(size=(20, 2, 6, 6)).astype(np.float32)\n"
        "def worst(outputs, labels):\n"
        "    shares = [(outputs.argmax(1) == labels)[labels == c].mean() for c in set(labels)]\n"
        "    return {'worst class': min(shares), 'samples': len(labels)}\n"
    )
    own = ("--data", "own.py:data", "--metric", "own.py:worst", "--samples", "16")
    result, report = quantized(tmp_path, *FAST, *own, "--no-sensitivity")
    assert result.code == 0, result.err
    assert report["calibration"] == {"origin": "data own.py:data", "samples": 16}
    assert report["accuracy"]["float"] == {"worst class": 1.0, "samples": 40.0}


def test_labels_of_the_calibration_data_serve_where_there_are_no_others(tmp_path: Path) -> None:
    source = networks.make()
    np.savez(tmp_path / "x.npz", x=source.test_inputs, labels=source.test_labels)
    program = torch.export.export(source.float_module, (torch.from_numpy(networks.images(1)),))
    torch.export.save(program, tmp_path / "float.pt2")
    arguments = ("quantize", "float.pt2", "--data", "x.npz", "--out", "q", *FAST)
    result = invoke(tmp_path, *arguments, "--no-sensitivity")
    report = json.loads((tmp_path / "q/model.json").read_text())
    assert result.code == 0 and "so it flatters" in report["test"]["origin"]
    assert report["accuracy"]["float"] == {"top1": 1.0}


def test_an_interrupt_leaves_a_readable_report(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import os, signal, time\n"
        "def stop(outputs, labels):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(10)\n"
    )
    result, report = quantized(tmp_path, *FAST, "--metric", "own.py:stop")
    assert result.code == 130 and "interrupted" in result.last
    assert (report["status"], report["error"]) == ("incomplete", "interrupted")
    assert len(report["trials"]) == 1 and not (tmp_path / "q/model.pt2").exists()
    assert not list(tmp_path.rglob("*.partial*"))


def test_a_later_run_removes_what_an_earlier_one_wrote(tmp_path: Path) -> None:
    quantized(tmp_path, *FAST, "--keep-float", "fc", "--no-sensitivity")
    assert (tmp_path / "q/model.waivers.toml").is_file()
    result = invoke(tmp_path, "quantize", MODEL, "--out", "q", *FAST, "--metric", "none.py:f")
    assert result.code == 2 and not list((tmp_path / "q").iterdir())


BAD = [
    (("zoo:nothing",), "the zoo has no model"),
    ((MODEL, "--calibration", "median"), "--calibration 'median' is not one of auto, minmax"),
    ((MODEL, "--weights", "int4"), "--weights 'int4' is not one of per-channel, per-tensor"),
    ((MODEL, "--equalize", "maybe"), "--equalize 'maybe' is not one of auto, on, off"),
    ((MODEL, "--percentile", "40"), "use more than 50, up to 100"),
    ((MODEL, "--samples", "0"), "--samples is 0; use 1 or more"),
    ((MODEL, "--max-loss", "-1"), "--max-loss is -1; use 0 or more"),
    ((MODEL, "--metric", "f1"), "not one of top1, top5 and FILE.py:FUNCTION"),
    ((MODEL, "--data", "none.npz"), "data file none.npz does not exist"),
    ((MODEL, "--data", "none.py:f"), "file none.py does not exist"),
    ((MODEL, "--test", "unlabelled.npz"), "has no labels to test with"),
    (
        (MODEL, "--keep-float", "groupd"),
        "no layer 'groupd' to keep in float; did you mean gr",
    ),
    ((MODEL, "--keep-float", "pool"), "without weights"),
    ((f"{networks.__file__}:none",), "has no function 'none'"),
    (("own/model.pt2", "--out", "own"), "would overwrite the model own/model.pt2 itself"),
    ((MODEL, "--out", "own"), "own/model.pt2 exists and was not written by accelsim quantize"),
    ((MODEL, "--out", "file/q"), "cannot write file/q/model.pt2"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=lambda x: str(x)[-40:])
def test_bad_input_is_one_sentence_and_code_2(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/model.pt2").write_text("precious")
    (tmp_path / "file").write_text("")
    np.savez(tmp_path / "unlabelled.npz", x=networks.images(4))
    out = () if "--out" in arguments else ("--out", "q")
    result = invoke(tmp_path, "quantize", *arguments, *out)
    lines = [line for line in result.err.splitlines() if line.startswith("accelsim: ")]
    assert result.code == 2 and len(lines) == 1 and sentence in lines[0], result.err
    assert "Traceback" not in result.err
    assert (tmp_path / "own/model.pt2").read_text() == "precious"
    assert not list(tmp_path.rglob("*.partial*"))


def test_a_quantized_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    quantized(tmp_path, *FAST, "--no-sensitivity")
    result = invoke(tmp_path, "quantize", "q/model.pt2", "--out", "again")
    assert result.code == 2 and "is quantized already" in result.last
