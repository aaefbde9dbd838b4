"""Networks that take and give integers, and whose first, middle or last layers are on the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import Backend, Launch, QuantizedModel, RunResult
from accelsim.errors import InputError
from accelsim.reference.integer import build
from accelsim.report import document
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.verify import RunRecord, VerifyOptions, accuracy, new_record, verify
from accelsim.verify import run as verification
from tests.verify import integer_nets as nets

WAIVED = """
[[waive]]
layer = "{}"
golden = "host"
reason = "no integer form"
expires = "2999-01-01"
"""


def verified(
    quantized: QuantizedModel, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> RunRecord:
    """The record of a verification of a network made by hand."""
    monkeypatch.setattr(verification, "load_model", lambda *_: nets.source(quantized))
    monkeypatch.setattr(verification, "quantize", lambda _: quantized)
    chosen = {"backends": ("sim",), "self_test": False, "stalls": False} | options
    run = VerifyOptions(model="net", config=CONFIGS["edge8"], out=folder, **chosen)
    record = new_record(run)
    verify(run, lambda _: None, record)
    return record


def waive(folder: Path, *layers: str) -> Path:
    path = folder / "host.toml"
    path.write_text("".join(WAIVED.format(layer) for layer in layers))
    return path


NETWORKS = {
    "int8": (nets.image, "int8"),
    "uint8": (nets.image, "uint8"),
    "int64": (nets.tokens, "int64"),
    "int32": (nets.tokens, "int32"),
}
HOST = {"int64": ("embedding", "masked"), "int32": ("embedding", "masked")}


def check(record: RunRecord, backends: set[str], layers: int) -> None:
    """Every layer of the NPU equals the integer reference and PyTorch's kernel, bit for bit."""
    assert record.problems == [] and record.status == "passed"
    npu = [layer for layer in record.layers if layer.placement == "npu"]
    assert len(npu) == layers
    for layer in npu:
        gates = [one for one in layer.compare if one.gate]
        assert {one.actual for one in gates} == backends
        assert {(one.golden, one.mode) for one in gates} == {
            ("integer", "isolated"),
            ("integer", "accumulated"),
            ("framework", "isolated"),
        }
        assert all(one.status == "equal" and one.elements for one in gates), layer


@pytest.mark.parametrize("dtype", NETWORKS)
def test_integers_go_in_and_come_out_as_the_model_has_them(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, argument = NETWORKS[dtype]
    waivers = waive(tmp_path, *HOST[dtype]) if dtype in HOST else None
    record = verified(make(argument), tmp_path, monkeypatch, waive=waivers)
    check(record, {"sim"}, 2)
    with np.load(tmp_path / "inputs.npz") as stored:
        assert {str(stored[name].dtype) for name in stored.files} == {dtype}
        assert max(len(np.unique(stored[name])) for name in stored.files) > 4
    assert record.input_origin == "random values of seed 0"


@pytest.mark.rtl
@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_integers_go_through_the_rtl(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, argument = NETWORKS[dtype]
    waivers = waive(tmp_path, *HOST[dtype]) if dtype in HOST else None
    both = ("sim", "rtl")
    record = verified(make(argument), tmp_path, monkeypatch, waive=waivers, backends=both)
    check(record, set(both), 2)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_the_rest_verifies_where_a_layer_on_the_host_is_waived_by_its_name(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{place}/sine"
    quantized = nets.image("uint8", place)
    record = verified(quantized, tmp_path, monkeypatch)
    assert record.status == "failed" and [layer.name for layer in record.host()] == [name]
    waivers = waive(tmp_path, name)
    record = verified(quantized, tmp_path, monkeypatch, waive=waivers)
    check(record, {"sim"}, 2)
    assert len(record.programs) == (2 if place == "middle" else 1)
    (layer,) = [layer for layer in record.layers if layer.placement == "host"]
    assert layer.name == name and "the NPU runs one operator at a time" in str(layer.reason)


def saved(folder: Path, quantized: QuantizedModel, count: int, **more: np.ndarray) -> Path:
    """A file of several batches."""
    rng = np.random.default_rng(3)
    arrays = {
        name: rng.integers(0, 2 if name == "mask" else 11, (count, *shape[1:])).astype(dtype)
        for name, shape, dtype in zip(
            quantized.input_names, quantized.input_shapes, quantized.input_dtypes, strict=True
        )
    }
    np.savez(folder / "x.npz", **(arrays | more))
    return folder / "x.npz"


def test_a_file_of_several_batches_is_verified_whole_and_compared_with_the_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantized = nets.tokens()
    waivers = waive(tmp_path, "embedding", "masked")
    path = saved(tmp_path, quantized, 4)
    record = verified(quantized, tmp_path, monkeypatch, waive=waivers, input=path)
    check(record, {"sim"}, 2)
    (found,) = record.checks
    assert found["elements"] == 4 * (9 * 8 + 9 * 5 + 9 * 5) and found["mismatches"] == 0
    assert "accuracy: the samples of x.npz has no labels" in record.not_run
    report = document(record)
    assert report["framework"]["name"] == "torch" and report["accuracy"]["samples"] == {}


def test_labels_and_golden_of_a_file_are_compared_with_every_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantized = nets.image("int8")
    golden = np.zeros((3, 7, 5, 5), np.int8)
    golden[:, 0, 0, 0] = 1
    path = saved(tmp_path, quantized, 3, labels=np.array([0, 1, 2]), golden=golden, y_other=golden)
    metric = tmp_path / "metric.py"
    metric.write_text("def half(outputs, labels):\n    return 0.5\n")
    record = verified(quantized, tmp_path, monkeypatch, input=path, metric=f"{metric}:half")
    assert record.accuracy is not None and record.accuracy.samples == {"integer": 3, "sim": 3}
    found = record.accuracy.golden["sim"]
    assert found.elements == golden.size and found.different > 0 and found.furthest > 1
    where = "the samples of x.npz on sim"
    assert record.problems[0] == f"{where}: the class of {found.classes} is not the golden's"
    assert record.problems[1].startswith(f"{where}: {found.strange} of 525 elements are not the ")
    assert "y_other of the samples of x.npz: not compared" in record.not_run
    with np.load(tmp_path / "inputs.npz") as stored:
        assert sorted(stored.files) == ["golden", "image", "labels"]


@pytest.mark.parametrize("step", [0, 1])
def test_one_element_beside_the_golden_of_a_file_fails_the_run(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantized = nets.image("int8")
    path = saved(tmp_path, quantized, 2)
    values, reference = np.load(path)["image"], build(quantized)
    given = [{"image": values[i : i + 1]} for i in range(2)]
    right = [reference.run(reference.quantize_inputs(one), one) for one in given]
    outputs = [reference.dequantize_outputs(*pair) for pair in zip(right, given, strict=True)]
    golden = np.concatenate([first for first, *_ in outputs])
    low = np.unravel_index(golden.argmin(), golden.shape)  # the class stays what it was
    golden[low] += step
    path = saved(tmp_path, quantized, 2, golden=golden)
    record = verified(quantized, tmp_path, monkeypatch, input=path)
    assert record.status == ("failed" if step else "passed")
    assert [one[:60] for one in record.problems] == (
        ["the samples of x.npz on sim: 1 of 350 elements are not the go"[:60]] if step else []
    )


BAD = {
    "rows": ({"tokens": np.full((1, 9), 11)}, "values from 11 to 11; the model's table has rows 0"),
    "negative": ({"tokens": np.full((1, 9), -1)}, "values from -1 to -1"),
    "uneven": ({"tokens": np.zeros((2, 9), np.int64)}, "different numbers of batches"),
    "dtype": ({"tokens": np.zeros((1, 9), np.int32)}, "is int32 of shape .* expected int64"),
    "shape": ({"tokens": np.zeros((1, 8), np.int64)}, "or several of them one after another"),
    "labels": (
        {"labels": np.zeros(2, np.int64)},
        r"labels are of shape \(2,\), expected 1 samples",
    ),
    "golden": ({"golden": np.zeros((2, 5))}, "expected 1 samples"),
    "golden's shape": ({"golden": np.zeros((1, 7))}, r"shape \(1, 7\); the model's first output"),
    "golden's numbers": ({"golden": np.full((1, 9, 5), "a")}, "which are no numbers"),
    "golden's infinity": ({"golden": np.full((1, 9, 5), np.inf)}, "not finite"),
}


def test_a_sample_that_is_wrong_names_the_first_layer_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, seen = accuracy.read_tensor, []

    def damaged(program: Any, dram: Any, name: str) -> Any:
        seen.append(name)
        values = read(program, dram, name)
        if len(seen) in (4, 6):  # the second layer of the second and of the third sample
            values = values.copy()
            values.flat[0] ^= 1
        return values

    monkeypatch.setattr(accuracy, "read_tensor", damaged)
    quantized = nets.image("int8")
    path = saved(tmp_path, quantized, 3)
    record = verified(quantized, tmp_path, monkeypatch, input=path)
    assert record.status == "failed" and len(seen) == 6
    assert record.problems[1:] == [
        "sim first differs in layer head/conv in sample 1: 1 of 175 elements",
    ]


def test_an_unknown_metric_is_refused_before_the_model_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress: list[str] = []
    options = VerifyOptions(model="net", config=CONFIGS["edge8"], out=tmp_path, metric="top9")
    with pytest.raises(InputError, match="metric 'top9' is not one of"):
        verify(options, progress.append, new_record(options))
    assert progress == []


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_does_not_fit_is_one_sentence(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, message = BAD[kind]
    path = saved(tmp_path, nets.tokens(), 1, **arrays)
    with pytest.raises(InputError, match=message) as caught:
        verified(nets.tokens(), tmp_path, monkeypatch, input=path)
    assert "\n" not in str(caught.value)


def test_only_the_layers_asked_for_run_on_the_rtl_where_their_number_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[str] = []

    @contextmanager
    def opened(*_: Any) -> Iterator[dict[str, Backend]]:
        simulator = Simulator(CONFIGS["edge8"])

        def rtl(given: Launch) -> RunResult:
            launched.extend(layer.name for layer in given.program.layers)
            return replace(simulator.run(given), backend="rtl")

        yield {"sim": simulator.run, "rtl": rtl}

    monkeypatch.setattr(verification, "open_backends", opened)
    monkeypatch.setattr(verification, "build_rtl", lambda _: None)
    both = {"backends": ("sim", "rtl"), "rtl_layers": 1, "stalls": True}
    record = verified(nets.image("int8"), tmp_path, monkeypatch, **both)
    assert record.status == "passed" and len(launched) == 1
    on_rtl = [layer.name for layer in record.layers if "rtl" in layer.cycles]
    assert on_rtl == launched and len(record.layers) == 2
    modes = {one.mode for layer in record.layers for one in layer.compare if one.actual == "rtl"}
    assert modes == {"isolated"} and record.cycles.keys() == {"sim"}
    assert any("--rtl-layers was given" in note for note in record.not_run)
