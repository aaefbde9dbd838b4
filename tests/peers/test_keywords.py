"""A network that others trained, quantized by PT2E: it knows ten spoken words of ten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from accelsim.importer import load_model
from accelsim.quantize import quantize
from tests.cli.invocation import invoke, report_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "keyword_spotting.py"


def verified(folder: Path, data: Path, patch: pytest.MonkeyPatch, *backends: str) -> dict[str, Any]:
    patch.setenv("ACCELSIM_PEER_DATA", str(data))
    chosen = [word for name in backends for word in ("--backend", name)]
    result = invoke(folder, "verify", f"{EXAMPLE}:pt2e", *chosen, "--no-stalls", "--out", "r", "-q")
    assert result.code == 0, result.err + result.out
    return report_of(folder / "r")


@pytest.mark.parametrize(
    "backends",
    [("sim",), pytest.param(("sim", "rtl"), marks=pytest.mark.rtl)],
    ids=["sim", "rtl"],
)
def test_ten_words_of_ten_are_known(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, backends: tuple[str, ...]
) -> None:
    report = verified(tmp_path, data, monkeypatch, *backends)
    accuracy = report["accuracy"]
    for source in ("float", "framework", *backends):
        assert (accuracy[source], accuracy["samples"][source]) == (1.0, 10)
    assert [one["placement"] for one in report["layers"]] == ["npu"] * 11
    assert report["layers"][0]["name"] == "feature_extractor.0"
    gates = [one for layer in report["layers"] for one in layer["compare"] if one["gate"]]
    assert {one["actual"] for one in gates} == set(backends)
    assert all(one["elements"] > 0 and one["mismatches"] == 0 for one in gates)


def test_scores_are_those_of_torchao(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELSIM_PEER_DATA", str(data))
    model = quantize(load_model(f"{EXAMPLE}:pt2e"))
    with np.load(data / "torch" / "executorch_kws_10mfcc.npz") as stored:
        inputs, scores, expected = stored["x"], stored["pt2e_int8"], stored["y"]
    own = np.concatenate(
        [model.exported.module()(torch.from_numpy(row[None])).detach().numpy() for row in inputs]
    )
    step = float(np.diff(np.unique(own)).min())
    assert np.array_equal(own.argmax(1), expected)
    # Given were the scores of another calibration; ours differ by less than four of our steps.
    assert np.abs(own - scores).max() < 4 * step
