"""Committed vectors: replayed on simulator and RTL, damaged ones refused, exports complete."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.cosim.session import Cosim
from accelsim.errors import InputError
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.encoding import contract_hash
from accelsim.vectors import case_folders, read_case, replay, write_case
from accelsim.vectors.__main__ import changed
from accelsim.vectors.export import FORMS, export

ROOT = Path(__file__).resolve().parents[2] / "vectors"
FOLDERS = case_folders(ROOT)
FIRST = ROOT / "edge8" / "max_pool"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_vector_is_right_on_the_simulator(folder: Path) -> None:
    case = read_case(folder)
    outcome = replay(case, Simulator(case.config).run)
    assert outcome.passed, outcome


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda c: c.name)
def test_vectors_are_right_on_rtl(config: object) -> None:
    cases = [c for c in map(read_case, FOLDERS) if c.config == config]
    assert cases
    with Cosim(cases[0].config) as cosim:
        outcomes = [replay(case, cosim.launch) for case in cases]
    assert [o for o in outcomes if not o.passed] == []


def test_every_configuration_has_the_same_vectors_and_they_stay_small() -> None:
    names = {config: {f.name for f in FOLDERS if f.parent.name == config} for config in CONFIGS}
    assert len(set(map(frozenset, names.values()))) == 1
    assert sum(p.stat().st_size for p in ROOT.rglob("*") if p.is_file()) < 20 << 20


def test_hashes_match_this_instruction_set() -> None:
    for case in map(read_case, FOLDERS):
        opcodes = [i for i in range(32) if case.opcode_mask >> i & 1]
        assert case.contract_hash == contract_hash(opcodes, case.config)


def test_a_wrong_expectation_is_found() -> None:
    case = read_case(FIRST)
    at = int(np.flatnonzero(case.mask)[-1])
    wrong = case.expected.copy()
    wrong[at] ^= 1
    outcome = replay(replace(case, expected=wrong), Simulator(case.config).run)
    assert outcome.mismatches == 1
    assert "expected" in outcome.first
    assert not outcome.passed


@pytest.mark.parametrize("name", ["program.bin", "memory.bin", "expected.bin", "mask.bin"])
def test_a_damaged_file_is_refused_by_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    shutil.copytree(FIRST, folder)
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 4
    (folder / name).write_bytes(data)
    with pytest.raises(InputError, match=f"{name} does not match its SHA-256"):
        read_case(folder)
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        read_case(folder)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": "other/9"}', "\x00"])
def test_a_damaged_header_is_refused(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    shutil.copytree(FIRST, folder)
    (folder / "case.json").write_text(text)
    with pytest.raises(InputError, match="vector"):
        read_case(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "../up", "the name '../up' is not a word"),
        ("contract_hash", "not hexadecimal", "case.json is malformed"),
        ("opcode_mask", None, "opcode_mask is None"),
        ("cycle_limit", -1, "cycle_limit is -1"),
        ("address", "0", "address is '0'"),
        ("regions", [], "no region holds the program"),
        ("regions", [{"base": 8, "address": 0x1000_0000, "size_bytes": 64}], "use each of 0 to 7"),
        ("regions", [{"base": 0, "address": 0x1000_0001, "size_bytes": 64}], "not aligned to 64"),
        ("regions", [{"base": 0, "address": 0x1000_0000, "size_bytes": 1 << 30}], "beyond the mem"),
        ("regions", [{"base": 0, "address": 0x1000_0000, "size_bytes": 64}], "is not what memory"),
    ],
)
def test_a_header_that_cannot_be_is_refused(
    field: str, value: object, message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "case"
    shutil.copytree(FIRST, folder)
    header = json.loads((folder / "case.json").read_text())
    (folder / "case.json").write_text(json.dumps(header | {field: value}))
    with pytest.raises(InputError, match=message):
        read_case(folder)


def test_a_folder_that_is_no_vector_is_never_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "max_pool" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("keep me")
    with pytest.raises(InputError, match="it exists and is no vector"):
        export(read_case(FIRST), "bin", tmp_path)
    assert mine.read_text() == "keep me"


def test_a_written_case_replaces_the_older_one_and_leaves_nothing_beside(tmp_path: Path) -> None:
    case = read_case(FIRST)
    write_case(replace(case, cycle_limit=5), tmp_path / "case")
    write_case(case, tmp_path / "case")
    assert read_case(tmp_path / "case").cycle_limit == case.cycle_limit
    assert [p.name for p in tmp_path.iterdir()] == ["case"]


def test_a_case_without_a_mask_proves_nothing_and_is_refused(tmp_path: Path) -> None:
    case = read_case(FIRST)
    write_case(replace(case, mask=np.zeros_like(case.mask)), tmp_path / "case")
    with pytest.raises(InputError, match="nothing would be compared"):
        read_case(tmp_path / "case")


def test_changed_absent_and_surplus_cases_are_listed(tmp_path: Path) -> None:
    case = read_case(FIRST)
    assert changed({"edge8/max_pool": case}, tmp_path) == {"edge8/max_pool": "new"}
    write_case(replace(case, cycle_limit=5), tmp_path / "edge8" / "max_pool")
    write_case(case, tmp_path / "edge8" / "old")
    assert changed({"edge8/max_pool": case}, tmp_path) == {
        "edge8/max_pool": "changed: cycle_limit",
        "edge8/old": "no longer built",
    }


@pytest.mark.parametrize("form", FORMS)
def test_exports_hold_program_memory_and_registers(form: str, tmp_path: Path) -> None:
    case = read_case(FIRST)
    written = export(case, form, tmp_path)
    if form == "bin":
        again = read_case(written)
        assert (again.memory == case.memory).all()
    elif form == "memh":
        beats = (written / "memory.memh").read_text().split()
        assert b"".join(bytes.fromhex(b)[::-1] for b in beats)[: len(case.memory)] == (
            case.memory.tobytes()
        )
        assert len((written / "registers.memh").read_text().splitlines()) == len(case.registers)
    elif form == "c":
        text = written.read_text()
        assert text.count("0x") > len(case.memory) + len(case.expected)
        assert f"vector_mask[{len(case.mask)}]" in text
    else:
        with np.load(written) as data:
            assert (data["expected"] == case.expected).all()
            assert data["registers"].shape == (len(case.registers), 2)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown format 'elf': use bin, memh, c, npz"):
        export(read_case(FIRST), "elf", tmp_path)


def test_a_header_states_what_is_compared() -> None:
    header = json.loads((FIRST / "case.json").read_text())
    assert header["bytes_compared"] == np.count_nonzero(read_case(FIRST).mask)
    assert "simulator" not in header["golden"]
