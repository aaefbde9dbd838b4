"""One ResNet quantized by FX, in eager mode and by PT2E: reports of one shape, exact kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.invocation import invoke, report_of

FORMS = Path(__file__).parents[1] / "quantize" / "resnet_forms.py"
EXACT = {"conv2d", "linear", "add"}


def verified(folder: Path, form: str, *backends: str) -> dict[str, Any]:
    chosen = [word for name in backends for word in ("--backend", name)]
    result = invoke(folder, "verify", f"{FORMS}:{form}", *chosen, "--out", form, "-q")
    assert result.code == 0, result.err + result.out
    return report_of(folder / form)


def shape(value: Any) -> Any:
    """Keys of a report at every depth, without what it says or where the first difference is."""
    if isinstance(value, dict):
        return {key: key == "first" or shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted({str(shape(one)) for one in value})
    return None


def check(report: dict[str, Any], backends: set[str]) -> None:
    for layer in report["layers"]:
        assert layer["placement"] == "npu"
        gates = [one for one in layer["compare"] if one["gate"]]
        assert {one["actual"] for one in gates} == backends
        assert {one["golden"] for one in gates} == {"integer", "framework"}
        exact = [one for one in gates if layer["op"] in EXACT or one["golden"] == "integer"]
        assert exact
        for one in exact:
            assert (one["elements"] > 0, one["mismatches"], one["status"]) == (True, 0, "equal")


def test_forms_of_one_network_give_reports_of_one_shape(tmp_path: Path) -> None:
    reports = {form: verified(tmp_path, form, "sim") for form in ("fx", "eager", "pt2e")}
    for report in reports.values():
        check(report, {"sim"})
    operators = [[one["op"] for one in report["layers"]] for report in reports.values()]
    assert operators[0] == operators[1] == operators[2]
    names = [
        [one["name"] for one in report["layers"] if one["op"] in ("conv2d", "linear")]
        for report in reports.values()
    ]
    assert names[0] == names[1] == names[2]
    layers = [[shape(one) for one in report["layers"]] for report in reports.values()]
    assert layers[0] == layers[1] == layers[2]
    assert len({frozenset(report) for report in reports.values()}) == 1


def test_every_kernel_of_a_converted_module_runs_on_the_npu(tmp_path: Path) -> None:
    report = verified(tmp_path, "kernels", "sim")
    assert {layer["placement"] for layer in report["layers"]} == {"npu"}
    assert any("PyTorch's x86 engine differs from qnnpack" in note for note in report["notes"])


@pytest.mark.rtl
def test_an_eager_network_runs_on_the_rtl_as_its_own_kernels_say(tmp_path: Path) -> None:
    check(verified(tmp_path, "eager", "sim", "rtl"), {"sim", "rtl"})


def test_an_input_in_two_levels_is_two_tensors(tmp_path: Path) -> None:
    model = f"{FORMS.parents[1] / 'verify' / 'two_levels.py'}:make"
    result = invoke(tmp_path, "verify", model, "--backend", "sim", "--out", "two", "-q")
    assert result.code == 0, result.err + result.out
    layers = report_of(tmp_path / "two")["layers"]
    assert [layer["name"] for layer in layers] == ["norm", "fc", "add"]
    compared = [one for layer in layers for one in layer["compare"]]
    assert len(compared) == 3 * 5 and all(one["elements"] == 160 for one in compared)
    assert all(one["mismatches"] == 0 for one in compared)
