"""Yosys' reading of the design: what it accepts, and that each kind of fault is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import rtl_synth

HEAD = "module m (input logic clk_i, input logic en_i, input logic d_i, output logic q_o);\n"
CLEAN = "  always_ff @(posedge clk_i) if (en_i) q_o <= d_i;\nendmodule\n"
FAULTS = {
    "latch": ("  always_latch if (en_i) q_o = d_i;\nendmodule\n", "select"),
    "loop": ("  logic a;\n  assign a = q_o & en_i;\n  assign q_o = a | d_i;\nendmodule\n", "check"),
    "two_drivers": ("  assign q_o = d_i;\n  assign q_o = en_i;\nendmodule\n", "driver"),
    "syntax": ("  assign q_o = ;\nendmodule\n", "expression"),
    "missing": ("  absent u_absent (.*);\nendmodule\n", "absent"),
}


def log(folder: Path, body: str) -> str:
    source = folder / "m.sv"
    source.write_text(HEAD + body, encoding="utf-8")
    return rtl_synth.read([source], folder, "m")


def test_a_clean_module_is_accepted(tmp_path: Path) -> None:
    assert rtl_synth.finding(log(tmp_path, CLEAN)) == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refused(fault: str, tmp_path: Path) -> None:
    body, word = FAULTS[fault]
    assert word in rtl_synth.finding(log(tmp_path, body)).lower()


def test_unknown_configuration_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert rtl_synth.main(["huge"]) == 2
    assert "base16, edge8, wide32" in capsys.readouterr().out
