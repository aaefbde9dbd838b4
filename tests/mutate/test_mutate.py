"""Planted bugs of the RTL: sites, instrumented text, and known equivalents."""

from __future__ import annotations

import multiprocessing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from accelsim.cosim.build import content_hash
from accelsim.errors import InputError
from accelsim.mutate import KINDS, Mutants, draw, find_sites
from accelsim.mutate.equivalent import equivalents
from accelsim.mutate.instrument import instrument, mutated_text
from accelsim.spec.config import CONFIGS

campaign: Any = import_module("accelsim.mutate.campaign")  # the package has a function of that name
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


def test_every_engine_has_sites_of_its_own(tmp_path: Path) -> None:
    config = CONFIGS["edge8"]
    mutants = Mutants.of(config, tmp_path)
    engines = {site.engine for site in mutants.sites}
    assert engines == {"load", "matrix", "vector", "store", "control"}
    assert {site.kind for site in mutants.sites} == set(KINDS)
    assert draw(mutants.sites, 30, 1) == draw(mutants.sites, 30, 1)
    drawn = draw(mutants.sites, 30, 1)
    assert {site.engine for site in drawn} == engines
    assert {site.kind for site in drawn} == set(KINDS)


def _write_mutants(cache: Path, together: Any, hashes: Any) -> None:
    campaign.cache_root = lambda: cache  # type: ignore[assignment]
    together.wait()
    hashes.put(content_hash(Mutants.of(CONFIGS["edge8"]).design))


def test_processes_that_write_the_mutants_at_once_have_the_same(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    together, hashes = context.Barrier(2), context.Queue()
    arguments = (tmp_path, together, hashes)
    workers = [context.Process(target=_write_mutants, args=arguments) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = {hashes.get(timeout=120) for _ in workers}
    for worker in workers:
        worker.join()
    (folder,) = (tmp_path / "mutants").iterdir()
    assert len(found) == 1 and not list(folder.glob("*.sv.*"))


def test_mutants_of_other_sources_leave_those_there_are(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "design_files", lambda config: (source,))
    monkeypatch.setattr(campaign, "cache_root", lambda: tmp_path)
    first = Mutants.of(CONFIGS["edge8"]).design
    before = content_hash(first)
    source.write_text(SOURCE.replace("a_i + beat_q", "a_i - beat_q"))
    second = Mutants.of(CONFIGS["edge8"]).design
    assert second[1].parent != first[1].parent
    assert content_hash(first) == before != content_hash(second)


def test_sources_edited_while_they_are_read_are_read_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited(files: Any, sites: Any, folder: Path) -> Any:
        made = instrument(files, sites, folder)
        source.write_text(SOURCE.replace("a_i + beat_q", "a_i - beat_q"))
        return made

    monkeypatch.setattr(campaign, "design_files", lambda config: (source,))
    monkeypatch.setattr(campaign, "instrument", edited)
    mutants = Mutants.of(CONFIGS["edge8"], tmp_path / "copies")
    assert mutants.sites[1].original == "a_i - beat_q[3:0]"


def test_a_widened_signed_value_is_a_sign_site_and_stays_signed(tmp_path: Path) -> None:
    path = tmp_path / "npu_matrix_x.sv"
    path.write_text(
        "module npu_matrix_x (input logic [7:0] a, output logic signed [15:0] o);\n"
        "  always_comb begin\n"
        "    o = '0;\n"
        "    for (int i = 0; i < 4; i++) o = o + 16'(signed'(a[1:0]));\n"
        "  end\n"
        "endmodule\n"
    )
    found = find_sites([path])
    assert [(s.kind, s.mutated) for s in found] == [
        ("count", "o - 16'(signed'(a[1:0]))"),
        ("sign", "signed'(16'(unsigned'(a[1:0])))"),
    ]


def test_known_equivalents_name_sites_that_exist(tmp_path: Path) -> None:
    sites = Mutants.of(CONFIGS["edge8"], tmp_path).sites
    assert all(equivalents(sites).values())
    with pytest.raises(InputError, match="no site any more"):
        equivalents(sites, (("a.sv", "a + b", "nothing is read"),))


def test_an_interrupted_write_leaves_no_half_source(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def broken(path: Path, text: str, encoding: str) -> None:
        write(path, text[: len(text) // 2], encoding)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", broken)
    with pytest.raises(KeyboardInterrupt):
        instrument([source], (), tmp_path / "copies")
    assert not list((tmp_path / "copies").glob("*.sv"))
