"""Planted bugs of the RTL: sites, instrumented text, and a slice of the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelsim.mutate import KINDS, find_sites
from accelsim.mutate.campaign import Mutants, campaign, draw
from accelsim.mutate.instrument import mutated_text
from accelsim.sources import build_root
from accelsim.spec.config import CONFIGS
from accelsim.vectors import case_folders, read_case, replay

SOURCE = """\
module npu_store_x #(parameter int N = 3 + 1) (input logic [N-1:0] a_i, output logic [3:0] o);
  // · a character of two bytes
  localparam int Last = N - 1;
  logic [Last+1:0] beat_q;
  assign o = (a_i + beat_q[3:0]) - {2{beat_q[1:0]}};
  always_comb begin
    if (a_i < beat_q[3:0] && beat_q == '0) o = 4'(beat_q + 1);
  end
  assert property (@(posedge a_i[0]) a_i == o);
endmodule
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "npu_store_x.sv"
    path.write_text(SOURCE)
    return path


def test_sites_are_variable_expressions_only(source: Path) -> None:
    sites = find_sites([source])
    assert [s.original for s in sites] == [
        "(a_i + beat_q[3:0]) - {2{beat_q[1:0]}}",
        "a_i + beat_q[3:0]",
        "a_i < beat_q[3:0] && beat_q == '0",
        "a_i < beat_q[3:0]",
        "beat_q == '0",
        "beat_q + 1",
    ]
    assert {s.engine for s in sites} == {"store"}
    assert [s.line for s in sites] == [5, 5, 7, 7, 7, 7]
    assert {s.kind for s in sites} <= set(KINDS)


def test_nested_sites_each_keep_a_choice(source: Path) -> None:
    text = mutated_text(source.read_bytes(), find_sites([source])).decode()
    assert text.count("npu_mutant_pkg::selected") == 6
    assert "32'd2) ? (a_i - beat_q[3:0]) : (a_i + beat_q[3:0])" in text
    assert text.startswith(SOURCE[: SOURCE.index("(a_i +")])


def test_every_engine_has_sites_of_its_own() -> None:
    config = CONFIGS["edge8"]
    mutants = Mutants.of(config, build_root() / "mutants" / config.name)
    engines = {site.engine for site in mutants.sites}
    assert engines == {"load", "matrix", "vector", "store", "control"}
    assert {site.kind for site in mutants.sites} == set(KINDS)
    assert draw(mutants.sites, 30, 1) == draw(mutants.sites, 30, 1)
    drawn = draw(mutants.sites, 30, 1)
    assert {site.engine for site in drawn} == engines
    assert {site.kind for site in drawn} == set(KINDS)


def test_without_a_bug_all_vectors_pass_and_drawn_bugs_are_caught() -> None:
    config = CONFIGS["edge8"]
    mutants = Mutants.of(config, build_root() / "mutants" / config.name)
    folders = [f for f in case_folders(Path("vectors")) if f.parent.name == config.name]
    cases = [read_case(f) for f in folders]
    with mutants.cosim(None) as cosim:
        assert all(replay(case, cosim.launch).passed for case in cases)
    engines = [s for s in mutants.sites if s.engine != "control"]
    verdicts = list(campaign(mutants, draw(engines, 6, 3), cases))
    assert sum(bool(v.caught) for v in verdicts) >= 5, verdicts
