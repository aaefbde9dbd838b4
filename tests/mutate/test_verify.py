"""Bugs planted in the RTL by seed: verification fails and names layer and instruction.

Some mutations change nothing that can be seen, so each group of one engine and one kind is tried in
seeded order until one is caught, a few times at most. Survivors are printed; the long campaign
(`nox -s mutation`) is what counts them.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelsim.artifacts import Comparison
from accelsim.codegen import compile_model
from accelsim.compare import failing
from accelsim.cosim.session import Cosim
from accelsim.importer import load_model
from accelsim.mutate import KINDS, Mutants, Site, select, shuffled
from accelsim.quantize import quantize
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.verify import VerifyOptions, new_record, verification
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.inputs import choose_input
from accelsim.verify.layers import LayerCheck, check_layer, run_whole
from accelsim.verify.library import Library
from accelsim.verify.verification import Verification
from tests.cli.invocation import invoke
from tests.verify import tiny

pytestmark = [pytest.mark.rtl, pytest.mark.timeout(900)]  # the fixture builds the mutants
EDGE = CONFIGS["edge8"]
MODEL = f"{tiny.__file__}:tiny"
ENGINES = ("load", "matrix", "vector", "store", "control")
TRIES = 8
_log = logging.getLogger(__name__)
LOCATED = re.compile(r"layer (\S+), tile \d+, instruction \d+: \w+")


class Bench:
    """A network compiled once, and one co-simulation in which bugs are switched on."""

    def __init__(self, folder: Path) -> None:
        source = load_model(MODEL)
        quantized = quantize(source)
        self.input = choose_input(source, quantized, None, 0)
        self.compiled = compile_model(quantized, EDGE)
        npu = {name for names in self.compiled.qdq_layers.values() for name in names}
        goldens = Goldens.of(quantized, print, npu)
        self.library = Library.of(self.compiled, folder / "model.so")
        options = VerifyOptions("tiny", EDGE, folder)
        self.run = Verification(options, print, new_record(options))
        self.mutants = Mutants.of(EDGE)
        self.rtl: Cosim = self.mutants.cosim()
        batch = BatchGoldens.of(goldens, self.input.tensors)
        backends = {"sim": Simulator(EDGE).run, "rtl": self.rtl.launch}
        bounded = {name: self.run.bounded(name, one) for name, one in backends.items()}
        self.check = LayerCheck(self.compiled, goldens, batch, bounded)

    def failure(self, site: Site | None) -> tuple[str, Comparison] | None:
        """The first layer that fails on the RTL with a bug, and how."""
        select(self.rtl, site)
        inputs = list(self.input.tensors.values())
        whole = run_whole(self.library, self.check.backends, inputs, print)
        for program in self.compiled.programs:
            for number, layer in enumerate(program.layers):
                report = check_layer(self.check, program, number, whole)
                for comparison in filter(failing, report.compare):
                    return layer.name, comparison
        return None


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "SLACK", 3)  # a bug that hangs should not take long
        patch.setattr(verification, "SLACK_CYCLES", 10_000)
        made = Bench(tmp_path_factory.mktemp("mutate"))
        yield made
        made.rtl.close()


def located(layer: str, comparison: Comparison) -> bool:
    """Whether a failing comparison names an instruction, and its layer."""
    assert comparison.actual == "rtl", f"{layer}: {comparison}"
    if comparison.status == "different":
        first = comparison.first
        assert first is not None
        return first.instruction >= 0 and bool(first.text)
    return LOCATED.search(comparison.cause or "") is not None


def test_without_a_planted_bug_every_layer_is_right(bench: Bench) -> None:
    assert bench.failure(None) is None


def test_drawn_bugs_of_every_engine_and_kind_are_caught_and_located(
    bench: Bench, seed: int
) -> None:
    groups: dict[tuple[str, str], list[Site]] = {}
    for site in shuffled(bench.mutants.sites, seed):
        groups.setdefault((site.engine, site.kind), []).append(site)
    caught: list[Site] = []
    survived: list[Site] = []
    for sites in groups.values():
        for site in sites[:TRIES]:
            failure = bench.failure(site)
            if failure is not None:
                _log.info("%s: %s", site, failure)
                assert located(*failure), f"bug {site.number}, {site}: {failure}"
                caught.append(site)
                break
            survived.append(site)
    _log.info("seed %d: %d caught, survived: %s", seed, len(caught), [str(s) for s in survived])
    assert {site.engine for site in caught} == set(ENGINES)
    assert {site.kind for site in caught} == set(KINDS)


def planted(bench: Bench, seed: int) -> Site:
    """A bug of the matrix engine that verification notices."""
    sites = (s for s in shuffled(bench.mutants.sites, seed) if s.kind == "sign")
    return next(site for site in sites if bench.failure(site))


@pytest.mark.parametrize("backend", ["sim", "rtl"])
def test_the_command_line_fails_with_a_planted_bug_and_names_where(
    bench: Bench, seed: int, tmp_path: Path, backend: str
) -> None:
    bug = "vector_rounding" if backend == "sim" else str(planted(bench, seed).number)
    out = tmp_path / "run"
    plant = (f"--{backend}-bug", bug)
    result = invoke(tmp_path, "verify", MODEL, "--config", "edge8", "--out", str(out), *plant)
    assert result.code == 1, result.err
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["status"] == "failed"
    wrong = [
        (layer["name"], comparison["first"])
        for layer in report["layers"]
        for comparison in layer["compare"]
        if comparison["actual"] == backend and comparison["gate"] and comparison["first"]
    ]
    assert wrong and all(name and first["instruction"] >= 0 for name, first in wrong)
    blamed = {c["actual"] for x in report["layers"] for c in x["compare"] if c["first"]}
    assert backend in blamed
