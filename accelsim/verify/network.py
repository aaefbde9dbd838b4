"""Beyond single layers: what was exercised, accuracy, stalls, the self-test, what is missing.

What comes in: a verification whose layers are compared. What goes out: more of its record.
"""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.emit import read_tensor
from accelsim.verify.accuracy import measure
from accelsim.verify.backends import stalling_rtl
from accelsim.verify.exercised import PROMISES, exercised, unexercised
from accelsim.verify.goldens import BatchGoldens
from accelsim.verify.input_files import Samples
from accelsim.verify.inputs import Batch
from accelsim.verify.layers import BROKEN, LayerCheck, Whole, run_whole
from accelsim.verify.library import Library
from accelsim.verify.options import BACKENDS
from accelsim.verify.record import RunRecord
from accelsim.verify.self_test import self_test
from accelsim.verify.verification import Verification

LATER = "test split, random stalls and self-test: layers differ, so the run ends with them"


def check_network(
    run: Verification,
    source: SourceModel,
    quantized: QuantizedModel,
    check: LayerCheck,
    library: Library,
    whole: Whole,
    samples: Samples | None,
) -> None:
    """What is exercised, many samples where there are some, and the self-test."""
    record = run.record
    record.exercised = exercised(record.layers, whole.runs)
    promised = PROMISES.get((run.options.model, run.options.config.name), {})
    if record.mismatched():
        record.not_run.append(LATER)
        return
    record.problems += unexercised(record.exercised, promised)
    run.checkpoint()
    if samples is not None:
        _accuracy(run, source, quantized, check, library, samples)
        run.checkpoint()
    if run.options.self_test and not run.options.sim_bug:
        _self_test(run, check, whole)


def _accuracy(
    run: Verification,
    source: SourceModel,
    quantized: QuantizedModel,
    check: LayerCheck,
    library: Library,
    samples: Samples,
) -> None:
    record = run.record
    try:
        found = record.accuracy = measure(source, quantized, check, library, run, samples)
    except BROKEN as error:
        record.problems.append(f"{samples.origin}: {error}")
        return
    for name, wrong in found.wrong.items():
        title = f"layers and outputs of {samples.origin} on {name}"
        _check(record, title, found.compared[name], wrong)
        if name in found.places:
            record.problems.append(f"{name} first differs in {found.places[name]}")
    for name, golden in found.golden.items():
        where = f"{samples.origin} on {name}"
        title = f"golden of {where}, differences of at most {golden.furthest:g}"
        problems = golden.problems(where)
        record.problems += problems
        record.checks.append(
            {
                "name": title,
                "elements": golden.elements,
                "mismatches": golden.different,
                "gate": bool(problems),
            }
        )


def _self_test(run: Verification, check: LayerCheck, whole: Whole) -> None:
    record = run.record
    if not record.programs:
        record.not_run.append("self-test: no layer runs on the NPU")
        return
    run.progress("self-test: one planted bug")
    program = max(record.programs, key=lambda p: len(p.words))
    honest = whole.result(program, BACKENDS)
    record.self_test = self_test(program, check.batch, honest, run.options.seed)
    if not record.self_test["caught"]:
        record.problems.append("the self-test's planted bug was not caught")


def check_stalls(
    run: Verification, batch: Batch, library: Library, golden_batch: BatchGoldens
) -> None:
    """The same image on RTL behind a memory that stalls at random."""
    options, record = run.options, run.record
    if not options.stalls or not options.rtl_runs_network or record.mismatched():
        return
    with stalling_rtl(options) as backend:
        timed = {"rtl": run.bounded("rtl", backend)}
        inputs = list(batch.tensors.values())
        whole = run_whole(library, timed, inputs, lambda _: run.progress("random AXI stalls"))
    elements = wrong = 0
    for program in record.programs:
        result = whole.outcome(program, "rtl")
        if isinstance(result, str):
            record.problems.append(f"with random AXI stalls: {result}")
            continue
        for layer in program.layers:
            actual = read_tensor(program, result.dram, layer.output)
            elements += actual.size
            wrong += int(np.count_nonzero(actual != golden_batch.values[layer.output]))
    _check(record, "all layers on rtl with random AXI stalls", elements, wrong)


def _check(record: RunRecord, name: str, elements: int, mismatches: int) -> None:
    record.checks.append({"name": name, "elements": elements, "mismatches": mismatches})
    if mismatches or not elements:
        record.problems.append(f"{name}: {mismatches:,} of {elements:,} elements differ")


def note_not_run(run: Verification, source: SourceModel, batch: Batch) -> None:
    """Say what this run did not show."""
    options, notes, samples = run.options, run.record.not_run, batch.samples
    for backend in BACKENDS:
        if backend not in options.backends:
            notes.append(f"backend {backend}: not chosen")
    if options.layer is not None:
        notes.append("all layers but one, test split, stalls, self-test: --layer was given")
    elif samples is None and source.test_inputs is not None:
        notes.append("accuracy: the model has more than one input")
    elif samples is None:
        notes.append("accuracy: the model has no labelled test split, and --input gave one batch")
    elif LATER not in notes:
        if samples.labels is None:
            notes.append(f"accuracy: {samples.origin} has no labels")
        total = len(next(iter(samples.inputs.values())))
        for name, limit in (("sim", options.test_images), ("rtl", options.rtl_images)):
            runs = name in options.backends and (name != "rtl" or options.rtl_runs_network)
            if runs and limit < total:
                notes.append(f"{total - limit} of {total} samples on {name}")
        if samples.passed_over:
            notes.append(f"{', '.join(samples.passed_over)} of {samples.origin}: not compared")
        if source.test_inputs is not None and batch.own_samples:
            notes.append("the model's own test split: --input gave samples")
    if options.rtl_layers is not None and options.layer is None:
        notes.append(
            f"on rtl: all layers but {options.rtl_layers}, the whole network, samples and stalls: "
            "--rtl-layers was given"
        )
    if not options.stalls and options.rtl_runs_network:
        notes.append("random AXI stalls: switched off")
    if not options.self_test:
        notes.append("self-test: switched off")
    notes.append("hardware: no board or netlist is part of this run")
