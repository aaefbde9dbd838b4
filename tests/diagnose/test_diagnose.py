"""`accelsim diagnose`: a planted fault on each rung, and the verdict that names it."""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager

import numpy as np
import pytest
import tvm
from tvm import relax

from accelsim.diagnose import run as diagnosis
from accelsim.quantize.pipeline import quantize_forms
from accelsim.quantize.spans import span_name, with_span
from accelsim.reference.flow import constant_value
from accelsim.simulate import Simulator
from tests.cli.invocation import invoke
from tests.diagnose import nets
from tests.verify.fakes import relabelled

SOUND = f"{nets.__file__}:sound"
BROKEN = f"{nets.__file__}:broken_scale"
SIM = ("--backend", "sim")
BOTH = ("--backend", "sim", "--backend", "rtl")
RUNGS = ["float", "framework", "qdq", "integer", "sim"]
IMAGE = 3


def diagnosed(folder, model, *arguments, image=None, label=None):
    """The exit code, JSON and text of one run on an image."""
    values = nets.IMAGES[IMAGE : IMAGE + 1] if image is None else image
    np.save(folder / "x.npy", values)
    label = int(nets.labels()[IMAGE]) if label is None else label
    given = ("diagnose", model, "--input", "x.npy", "--label", str(label), "--out", "run")
    result = invoke(folder, *given, "--json", "d.json", "-q", *(arguments or SIM))
    found = json.loads((folder / "d.json").read_text()) if (folder / "d.json").exists() else {}
    return result, found


def test_a_sound_network_gets_nothing_wrong_and_code_0(tmp_path):
    result, found = diagnosed(tmp_path, SOUND)
    assert result.code == 0, result.err
    assert result.out.splitlines()[-1].startswith("VERDICT: nothing wrong")
    assert found["schema"] == "accelsim.diagnose/1" and found["verdict"] == "nothing wrong"
    label = int(nets.labels()[IMAGE])
    assert [one["name"] for one in found["rungs"]] == RUNGS
    assert all(one["classes"] == [label] for one in found["rungs"])
    assert found["first_change"] is None and found["faults"] == []
    assert [row["name"] for row in found["layers"]] == ["first", "second", "flatten", "fc"]
    assert all(row["sqnr_db"] > 15 for row in found["layers"])


def test_an_input_in_0_to_255_is_preprocessing_with_the_way_back(tmp_path):
    image = nets.IMAGES[IMAGE : IMAGE + 1] * 255
    result, found = diagnosed(tmp_path, SOUND, image=image)
    assert result.code == 1 and found["verdict"] == "preprocessing"
    (facts,) = found["inputs"]
    assert facts["clipped"] > 0.9 and facts["high"] > 200 and facts["range_high"] < 1.1
    assert any("divided by 255" in line for line in found["faults"][0]["details"])


def test_a_label_that_float_misses_is_preprocessing_at_the_first_rung(tmp_path):
    wrong = (int(nets.labels()[IMAGE]) + 1) % 4
    result, found = diagnosed(tmp_path, SOUND, label=wrong)
    assert result.code == 1
    assert (found["verdict"], found["first_change"]) == ("preprocessing", "float")


def test_a_scale_far_too_small_is_quantization_and_names_the_layer(tmp_path):
    result, found = diagnosed(tmp_path, BROKEN)
    assert result.code == 1 and found["verdict"] == "quantization", result.out
    assert found["first_change"] == "framework"
    fault = found["faults"][0]
    assert fault["layer"] == "second" and found["noisiest"][0] == "second"
    row = next(one for one in found["layers"] if one["name"] == "second")
    assert row["clipped"] > 0.3 and row["sqnr_db"] < 1


def test_a_wrong_import_is_the_compiler_and_names_the_layer(tmp_path, monkeypatch):
    def wrong_forms(source):
        model, fx = quantize_forms(source)
        return dataclasses.replace(model, qdq=_other_bias(model.qdq)), fx

    monkeypatch.setattr(diagnosis, "quantize_forms", wrong_forms)
    result, found = diagnosed(tmp_path, SOUND)
    assert result.code == 1 and found["verdict"] == "compiler", result.out
    assert found["faults"][0]["layer"] == "second"
    assert "accelsim replay run" in result.out


def _other_bias(module):
    """The module with the bias of the second convolution shifted."""
    function = module["main"]
    bindings = []
    for binding in (one for block in function.body.blocks for one in block.bindings):
        value = binding.value
        if (
            getattr(getattr(value, "op", None), "name", "") == "relax.add"
            and span_name(value) == "second"
        ):
            bias = relax.const(constant_value(value.args[1]) + np.float32(0.3), "float32")
            value = with_span(relax.op.add(value.args[0], bias), "second")
            value = relax.BlockBuilder().normalize(value)
        bindings.append(relax.VarBinding(binding.var, value))
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], function.body.body)
    main = relax.Function(function.params, body, ret_ty=function.ret_ty, attrs=function.attrs)
    return tvm.IRModule({"main": main}, attrs=module.attrs)


def test_a_bug_of_the_simulator_is_the_simulator_with_its_place_and_replay(tmp_path):
    result, found = diagnosed(tmp_path, SOUND, *SIM, "--sim-bug", "conv_sign")
    assert result.code == 1 and found["verdict"] == "simulator", result.out
    fault = found["faults"][0]
    assert fault["layer"] and "instruction" in fault["details"][0]
    assert result.out.splitlines()[-1].strip() == found["replay"] == "accelsim replay run"


@pytest.fixture
def fake_rtl(monkeypatch):
    """A simulator with a bug in the place of the RTL; returns how to choose both bugs."""
    bugs = {"sim": None, "rtl": None}

    @contextmanager
    def backends(options, waves):
        yield {
            name: relabelled(Simulator(options.config, bug=bug), name) for name, bug in bugs.items()
        }

    monkeypatch.setattr(diagnosis, "open_backends", backends)
    monkeypatch.setattr(diagnosis, "build_rtl", lambda options: None)
    return bugs


def test_a_bug_of_the_rtl_alone_is_the_rtl(tmp_path, fake_rtl):
    fake_rtl["rtl"] = "conv_sign"
    result, found = diagnosed(tmp_path, SOUND, *BOTH)
    assert result.code == 1 and found["verdict"] == "rtl", result.out
    assert [one["name"] for one in found["rungs"]] == [*RUNGS, "rtl"]


def test_what_simulator_and_rtl_get_wrong_alike_is_the_compiler(tmp_path, fake_rtl):
    fake_rtl.update(sim="conv_sign", rtl="conv_sign")
    _, found = diagnosed(tmp_path, SOUND, *BOTH)
    assert found["verdict"] == "compiler" and "program" in found["faults"][0]["sentence"]


@pytest.mark.parametrize(
    ("image", "label", "sentence"),
    [
        (nets.IMAGES[:1].transpose(0, 2, 3, 1), 0, "this is NHWC, and the model takes NCHW"),
        (nets.IMAGES[0], 0, "the batch axis is missing"),
        ((nets.IMAGES[:1] * 255).astype(np.uint8), 0, "integers were given for real numbers"),
        (nets.IMAGES[:1], 4, "label is 4; the network has 4 classes, from 0"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_with_the_likely_slip(
    tmp_path, image, label, sentence
):
    result, _ = diagnosed(tmp_path, SOUND, image=image, label=label)
    assert result.code == 2 and sentence in result.last


def test_a_label_out_of_range_is_refused_before_anything_is_compiled(tmp_path):
    np.save(tmp_path / "x.npy", nets.IMAGES[:1])
    model = f"{nets.__file__}:sound"
    result = invoke(tmp_path, "diagnose", model, "--input", "x.npy", "--label", "99", *SIM)
    assert result.code == 2 and "label is 99; the network has 4 classes, from 0" in result.last
    assert "quantizing" in result.err and "compiling" not in result.err


def test_labels_out_of_range_are_refused_before_anything_is_compiled(tmp_path):
    np.savez(tmp_path / "x.npz", x=nets.IMAGES[:2], labels=np.array([0, 99]))
    model = f"{nets.__file__}:sound"
    result = invoke(tmp_path, "verify", model, "--input", "x.npz", "--backend", "sim")
    assert (
        result.code == 2 and "labels go from 0 to 99, and the network has 4 classes" in result.err
    )
    assert "quantizing" in result.err and "compiling" not in result.err


def test_a_sample_is_chosen_from_a_file(tmp_path):
    model = f"{nets.__file__}:sound"
    np.save(tmp_path / "x.npy", nets.IMAGES[:3])
    result = invoke(tmp_path, "diagnose", model, "--input", "x.npy", "--sample", "3", *SIM)
    assert result.code == 2 and "x.npy has 3 samples, and --sample is 3" in result.last
    given = ("diagnose", model, "--input", "x.npy", "--sample", "2", "--out", "run", "-q", *SIM)
    assert invoke(tmp_path, *given).code == 0
    with np.load(tmp_path / "run/inputs.npz") as stored:
        (chosen,) = stored.values()
    assert np.array_equal(chosen, nets.IMAGES[2:3])
