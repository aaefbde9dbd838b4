"""The RTL lint finds a planted fault of each kind, and passes a clean design."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from accelsim.cosim.tools import find_toolchain
from tools import rtl_lint

ROOT = Path(__file__).parents[2]
PACKAGE = "package npu_pkg;\n  parameter int unsigned Lanes = 8;\nendpackage : npu_pkg\n"
INNER = """\
// Passes a row through a register. Latency 1, no backpressure.
module inner (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic [npu_pkg::Lanes*8-1:0] row_i,
  output logic [npu_pkg::Lanes*8-1:0] row_o
);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) row_o <= '0;
    else row_o <= row_i;
  end
endmodule : inner
"""
OUTER = """\
// Wires one inner.
module outer (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic [npu_pkg::Lanes*8-1:0] row_i,
  output logic [npu_pkg::Lanes*8-1:0] row_o
);
  inner u_inner (
    .clk_i,
    .rst_ni,
    .row_i,
    .row_o
  );
endmodule : outer
"""


def plant(folder: Path, inner: str = INNER) -> Path:
    """A design of two modules in two configurations, with the repository's style rules."""
    root = folder / "rtl"
    for config in ("narrow", "wide"):
        (root / "gen" / config).mkdir(parents=True)
        text = PACKAGE.replace("8", "16") if config == "wide" else PACKAGE
        (root / "gen" / config / "npu_pkg.sv").write_text(text)
    (root / "inner.sv").write_text(inner)
    (root / "outer.sv").write_text(OUTER)
    (root / "files.f").write_text("// compile order\ninner.sv\nouter.sv\n")
    (root / "verible.rules").write_text((ROOT / "rtl/verible.rules").read_text())
    return root


def failing(root: Path) -> list[str]:
    """Names of the programs that found something."""
    environment = find_toolchain().environment(dict(os.environ))
    found = []
    for command in rtl_lint.commands(root, (), write=False):
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        if done.returncode:
            found.append(next(Path(word).name for word in command if "ver" in Path(word).name))
    return found


def test_clean_design_passes_in_every_configuration(tmp_path: Path) -> None:
    root = plant(tmp_path)
    assert failing(root) == []
    linted = [c for c in rtl_lint.commands(root, (), write=False) if "--lint-only" in c]
    assert len(linted) == 2 and all("outer" in command for command in linted)


@pytest.mark.parametrize(
    ("right", "wrong", "program"),
    [
        ("row_o <= row_i", "row_o <= row_i[7:0]", "verilator"),
        ("'0;", "unknown;", "verilator"),
        ("module inner", "module  inner", "verible-verilog-format"),
        ("row_i;", "row_i; // " + "x" * 80, "verible-verilog-lint"),
    ],
)
def test_planted_fault_is_found(right: str, wrong: str, program: str, tmp_path: Path) -> None:
    root = plant(tmp_path, INNER.replace(right, wrong))
    assert any(program in name for name in failing(root))


def test_format_repairs_what_the_check_refuses(tmp_path: Path) -> None:
    root = plant(tmp_path, INNER.replace("module inner", "module  inner"))
    (command,) = rtl_lint.commands(root, (), write=True)
    subprocess.run(command, check=True, capture_output=True)
    assert (root / "inner.sv").read_text() == INNER


def test_named_file_is_linted_as_its_own_top(tmp_path: Path) -> None:
    root = plant(tmp_path)
    plan = rtl_lint.commands(root, (root / "inner.sv",), write=False)
    assert [c[c.index("--top-module") + 1] for c in plan if "--top-module" in c] == ["inner"] * 2
