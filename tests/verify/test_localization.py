"""Every planted bug makes a verification fail and name layer, tile, instruction and culprit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from accelsim.codegen import compile_model
from accelsim.importer import load_model
from accelsim.quantize import quantize
from accelsim.report import document, summary
from accelsim.simulate import BUGS, Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.encoding import decode
from accelsim.verify import VerifyOptions, new_record
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.inputs import choose_input
from accelsim.verify.layers import LayerCheck
from accelsim.verify.library import Library
from accelsim.verify.run import check_layers
from accelsim.verify.verification import Verification
from tests.verify import tiny
from tests.verify.fakes import relabelled

EDGE = CONFIGS["edge8"]
OPCODES = {"load", "store", "conv", "dwconv", "drain", "pool", "add"}  # of the tiny network
MODEL = f"{tiny.__file__}:tiny"


class Bench:
    """The tiny network compiled once, to be checked on backends with and without bugs."""

    def __init__(self, folder: Path) -> None:
        source = load_model(MODEL)
        quantized = quantize(source)
        self.folder = folder
        self.compiled = compile_model(quantized, EDGE)
        npu = {name for names in self.compiled.qdq_layers.values() for name in names}
        self.goldens = Goldens.of(quantized, print, npu)
        self.input = choose_input(source, quantized, None, 0)
        self.batch = BatchGoldens.of(self.goldens, self.input.tensors)
        self.library = Library.of(self.compiled, folder / "model.so")
        (self.program,) = self.compiled.programs

    def check(self, **bugs: str | None):
        """A report after all layers ran on the backends named, each with its bug."""
        options = VerifyOptions("tiny", EDGE, self.folder, backends=tuple(bugs))
        run = Verification(options, print, new_record(options))
        backends = {
            name: run.bounded(name, relabelled(Simulator(EDGE, bug=bug), name))
            for name, bug in bugs.items()
        }
        check = LayerCheck(self.compiled, self.goldens, self.batch, backends)
        check_layers(run, check, self.input, self.library, ())
        run.record.conclude()
        return document(run.record)

    def opcode(self, index: int) -> str:
        """Name of an instruction of the network's program."""
        return decode(self.program.words[index])[0].name


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("tiny"))


def first_failure(report):
    """The failing comparison that a report shows first."""
    failing = [c for layer in report["layers"] for c in layer["compare"] if summary.fails(c)]
    return next(c for c in failing if c["first"] is not None)


def test_the_honest_network_passes(bench):
    report = bench.check(sim=None, rtl=None)
    assert (report["status"], report["exit_code"]) == ("passed", 0)
    assert {bench.opcode(i) for i in range(len(bench.program.words))} == {*OPCODES, "end"}


@pytest.mark.parametrize("bug", [name for name in BUGS if OPCODES & set(BUGS[name].opcodes)])
def test_a_bug_fails_and_its_layer_tile_and_instruction_are_named(bench, bug):
    report = bench.check(sim=bug, rtl=None)
    assert (report["status"], report["exit_code"]) == ("failed", 1)
    shown = summary.failures(report)[0]
    assert shown.layer in {layer["name"] for layer in report["layers"]}
    if bug == "matrix_give":  # nothing is wrong but everything waits
        assert "(WATCHDOG)" in shown.details[0] and f"layer {shown.layer}" in shown.details[0]
        giver = int(shown.details[0].rpartition("(instruction ")[2].rstrip(")"))
        assert bench.opcode(giver) in BUGS[bug].opcodes
        return
    first = first_failure(report)["first"]
    assert bench.opcode(first["instruction"]) in BUGS[bug].opcodes
    assert first["text"].split()[0] == bench.opcode(first["instruction"])
    assert first["tile"] == bench.program.tile_of[first["instruction"]]
    assert "sim is wrong and rtl is right" in first_failure(report)["cause"]


@pytest.mark.parametrize("bug", ["conv_sign", "store_address", "vector_rounding"])
def test_a_bug_of_the_rtl_is_blamed_on_the_rtl(bench, bug):
    report = bench.check(sim=None, rtl=bug)
    found = first_failure(report)
    assert found["actual"] == "rtl" and "rtl is wrong and sim is right" in found["cause"]
    assert bench.opcode(found["first"]["instruction"]) in BUGS[bug].opcodes


def test_one_instruction_with_a_bug_is_named_itself_in_the_whole_network(bench):
    last = max(i for i in range(len(bench.program.words)) if bench.opcode(i) == "drain")
    report = bench.check(sim=f"drain_clamp@{last}", rtl=None)
    alike = bench.check(sim=f"vector_rounding@{last}", rtl=None)
    found = [
        c
        for one in (report, alike)
        for layer in one["layers"]
        for c in layer["compare"]
        if c["mode"] == "accumulated" and summary.fails(c)
    ]
    assert found and {c["first"]["instruction"] for c in found} == {last}


def test_a_single_backend_names_the_store_and_says_that_it_is_no_more_than_that(bench):
    found = first_failure(bench.check(sim="conv_sign"))
    assert bench.opcode(found["first"]["instruction"]) == "store"
    assert "only sim ran" in found["cause"] and "run both backends" in found["cause"]


def test_two_backends_wrong_alike_put_the_blame_elsewhere(bench):
    found = first_failure(bench.check(sim="conv_sign", rtl="conv_sign"))
    assert "wrote the same everywhere" in found["cause"]


@pytest.mark.parametrize("silent", [("sim",), ("rtl",), ("sim", "rtl")])
def test_runs_without_records_are_not_said_to_have_written_the_same(bench, silent, monkeypatch):
    honest = Simulator.run

    def run(simulator, launch):
        result = honest(simulator, launch)
        name = "sim" if simulator.bug else "rtl"
        return replace(result, records=()) if name in silent else result

    monkeypatch.setattr(Simulator, "run", run)
    found = first_failure(bench.check(sim="conv_sign", rtl=None))
    assert f"no records of {' and '.join(silent)}" in found["cause"]
    assert "the same everywhere" not in found["cause"] and "is wrong" not in found["cause"]
    assert bench.opcode(found["first"]["instruction"]) == "store"


def test_two_backends_wrong_differently_are_both_blamed(bench):
    found = first_failure(bench.check(sim="conv_sign", rtl="conv_count"))
    assert "both wrong" in found["cause"] or "both differ" in found["cause"]


def test_a_backend_that_deadlocks_does_not_stop_the_other(bench):
    report = bench.check(sim="matrix_give", rtl=None)
    compared = [c for layer in report["layers"] for c in layer["compare"] if c["actual"] == "rtl"]
    assert all(c["status"] == "equal" for c in compared if c["gate"])


def test_an_assertion_of_the_rtl_is_a_failure_of_its_layers(bench):
    from accelsim.errors import RtlError

    def firing(launch):
        raise RtlError("an assertion of the RTL fired in npu_load: data moved")

    options = VerifyOptions("tiny", EDGE, bench.folder, backends=("rtl",))
    run = Verification(options, print, new_record(options))
    check = LayerCheck(bench.compiled, bench.goldens, bench.batch, {"rtl": firing})
    check_layers(run, check, bench.input, bench.library, ())
    run.record.conclude()
    assert run.record.exit_code == 1
    assert "npu_load: data moved" in run.record.layers[0].compare[0].cause
    assert replace(run.record.layers[0].compare[0], cause="").status == "missing"


def test_a_layer_that_cannot_be_cut_out_fails_and_the_others_are_still_compared(bench, monkeypatch):
    from accelsim.errors import ProgramError
    from accelsim.verify import layers

    honest = layers.isolate

    def isolate(program, number):
        if number == 1:
            raise ProgramError("layer depthwise cannot run alone")
        return honest(program, number)

    monkeypatch.setattr(layers, "isolate", isolate)
    report = bench.check(sim=None)
    failing = [layer["name"] for layer in report["layers"] if summary.state_of(layer) == "failing"]
    assert (report["exit_code"], failing) == (1, ["depthwise"])
    assert "cannot run alone" in summary.failures(report)[0].details[0]
