"""The verification of one network, step by step, with its run folder kept current."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from accelsim.artifacts import Backend, Launch, QuantizedModel, RunResult, SourceModel
from accelsim.codegen import CompiledModel, compile_model
from accelsim.compare import apply_waivers, read_waivers
from accelsim.emit import read_tensor
from accelsim.errors import AccelsimError, InputError, TimeLimitError
from accelsim.importer import load_model
from accelsim.quantize import quantize
from accelsim.verify import folder
from accelsim.verify.accuracy import measure
from accelsim.verify.backends import open_backends, stalling_rtl
from accelsim.verify.exercised import PROMISES, exercised, unexercised
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.inputs import Batch, choose_input
from accelsim.verify.layers import LayerCheck, Runs, check_layer, host_layers, run_whole
from accelsim.verify.library import Library
from accelsim.verify.options import Progress, VerifyOptions
from accelsim.verify.record import RunRecord
from accelsim.verify.self_test import self_test


@dataclass(slots=True)
class Verification:
    """One run: its options, what it found, and the clock that bounds it."""

    options: VerifyOptions
    progress: Progress
    record: RunRecord
    started: float = field(default_factory=time.monotonic)

    def check_time(self) -> None:
        """Raise TimeLimitError once the limit has passed."""
        limit = self.options.time_limit_seconds
        if limit is not None and time.monotonic() - self.started > limit:
            raise TimeLimitError(
                f"the time limit of {limit:g} s has passed; what was finished is in "
                f"{self.options.out}"
            )

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of a step to the record."""
        begin = time.monotonic()
        try:
            yield
        finally:
            seconds = self.record.seconds
            seconds[name] = seconds.get(name, 0.0) + time.monotonic() - begin


def new_record(options: VerifyOptions) -> RunRecord:
    """An empty record for a run."""
    replay = f"accelsim replay {shlex.quote(str(options.out))}"
    return RunRecord(options.model, options.config.name, options.seed, replay, folder.versions())


def verify(options: VerifyOptions, progress: Progress, record: RunRecord) -> None:
    """Run everything; `record` holds what was found even if this raises.

    Raises AccelsimError for what a user can mend, KeyboardInterrupt when interrupted.
    """
    run = Verification(options, progress, record)
    waivers = read_waivers(options.waive, date.today()) if options.waive else ()
    progress(f"loading {options.model}")
    source = load_model(options.model, options.seed)
    progress("quantizing")
    quantized = quantize(source)
    batch = choose_input(source, quantized, options.input, options.seed)
    record.input_origin = batch.origin
    record.inputs_sha256 = folder.write_inputs(options.out, batch.tensors)
    folder.write_model(options.out, quantized)
    progress(f"compiling for {options.config.name}")
    with run.timed("compile"):
        compiled = compile_model(quantized, options.config, options.dump_ir)
    record.programs = compiled.programs
    record.program_sha256 = folder.write_programs(options.out, compiled.programs)
    record.layers += host_layers(compiled)
    run.check_time()
    goldens = Goldens.of(quantized, progress)
    golden_batch = BatchGoldens.of(goldens, batch.tensors)
    library = Library.of(compiled, options.out / "model.so")
    waves = options.out / "waves" if options.waves else None
    with open_backends(options, waves) as backends:
        runs = _layers(run, compiled, goldens, golden_batch, batch, library, backends)
        waived, unused = apply_waivers(record.layers, waivers)
        record.layers = list(waived)
        record.problems += unused
        if options.layer is None:
            _whole_network(run, source, quantized, goldens, golden_batch, library, backends, runs)
    if options.layer is None and options.stalls and "rtl" in options.backends:
        _with_stalls(run, batch, library, golden_batch)
    _note_not_run(run, source)
    record.conclude()


def _layers(
    run: Verification,
    compiled: CompiledModel,
    goldens: Goldens,
    golden_batch: BatchGoldens,
    batch: Batch,
    library: Library,
    backends: dict[str, Backend],
) -> Runs:
    """Accumulated and isolated comparisons of every layer (or of the one asked for)."""
    options, record = run.options, run.record
    _require_layer(compiled, options.layer)
    timed = {name: _timed(run, name, backend) for name, backend in backends.items()}
    runs, _ = run_whole(library, timed, list(batch.tensors.values()), run.progress)
    for by_backend in runs.values():
        for name, result in by_backend.items():
            record.cycles[name] = record.cycles.get(name, 0) + result.cycles
    check = LayerCheck(compiled, goldens, golden_batch, timed)
    for program in compiled.programs:
        for number, layer in enumerate(program.layers):
            if options.layer not in (None, layer.name):
                continue
            run.check_time()
            run.progress(f"layer {layer.name}")
            record.layers.append(check_layer(check, program, number, runs[program.symbol]))
            if golden_batch.constant(layer.output):
                record.problems.append(
                    f"layer {layer.name}: its golden has one value only and proves nothing; "
                    "choose another --input or --seed"
                )
    return runs


def _require_layer(compiled: CompiledModel, name: str | None) -> None:
    names = [layer.name for program in compiled.programs for layer in program.layers]
    if name is not None and name not in names:
        raise InputError(f"the network has no layer {name!r}; it has {', '.join(names)}")


def _timed(run: Verification, name: str, backend: Backend) -> Backend:
    def timed(launch: Launch) -> RunResult:
        with run.timed(name):
            return backend(launch)

    return timed


def _whole_network(
    run: Verification,
    source: SourceModel,
    quantized: QuantizedModel,
    goldens: Goldens,
    golden_batch: BatchGoldens,
    library: Library,
    backends: dict[str, Backend],
    runs: Runs,
) -> None:
    """What is exercised, accuracy over the test split, and the self-test."""
    options, record = run.options, run.record
    record.exercised = exercised(record.layers, runs)
    promised = PROMISES.get((options.model, options.config.name), {})
    record.problems += unexercised(record.exercised, promised)
    limits = {"sim": options.test_images, "rtl": options.rtl_images}
    timed = {name: _timed(run, name, backend) for name, backend in backends.items()}
    record.accuracy = measure(
        source,
        quantized,
        goldens.reference,
        library,
        timed,
        limits,
        options.seed,
        run.progress,
        run.check_time,
    )
    if record.accuracy is not None:
        for name, wrong in record.accuracy.wrong_outputs.items():
            elements = record.accuracy.compared[name]
            _check(record, f"outputs of the test split on {name}", elements, wrong)
    if options.self_test and "sim" in backends and not options.sim_bug:
        run.progress("self-test: one planted bug")
        program = record.programs[0] if record.programs else None
        if program is not None:
            honest = runs[program.symbol].get("sim")
            record.self_test = self_test(program, golden_batch, honest, options.seed)
            if not record.self_test["caught"]:
                record.problems.append("the self-test's planted bug was not caught")


def _with_stalls(
    run: Verification, batch: Batch, library: Library, golden_batch: BatchGoldens
) -> None:
    """The same image on RTL behind a memory that stalls at random."""
    with stalling_rtl(run.options) as backend:
        timed = {"rtl": _timed(run, "rtl", backend)}
        inputs = list(batch.tensors.values())
        runs, _ = run_whole(library, timed, inputs, lambda _: run.progress("random AXI stalls"))
    elements = wrong = 0
    for program in run.record.programs:
        result = runs[program.symbol]["rtl"]
        for layer in program.layers:
            actual = read_tensor(program, result.dram, layer.output)
            elements += actual.size
            wrong += int(np.count_nonzero(actual != golden_batch.values[layer.output]))
    _check(run.record, "all layers on rtl with random AXI stalls", elements, wrong)


def _check(record: RunRecord, name: str, elements: int, mismatches: int) -> None:
    record.checks.append({"name": name, "elements": elements, "mismatches": mismatches})
    if mismatches or not elements:
        record.problems.append(f"{name}: {mismatches} of {elements} elements differ")


def _note_not_run(run: Verification, source: SourceModel) -> None:
    options, notes = run.options, run.record.not_run
    for backend in ("sim", "rtl"):
        if backend not in options.backends:
            notes.append(f"backend {backend}: not chosen")
    if options.layer is not None:
        notes.append("all layers but one, accuracy, stalls, self-test: --layer was given")
    elif source.test_labels is None:
        notes.append("accuracy: the model has no labelled test split")
    else:
        total = len(source.test_labels)
        for name, limit in (("sim", options.test_images), ("rtl", options.rtl_images)):
            if name in options.backends and limit < total:
                notes.append(f"{total - limit} of {total} test images on {name}")
    notes.append("hardware: no board or netlist is part of this run")


def fail(record: RunRecord, error: BaseException) -> None:
    """Put an error into the record: its message, its exit code, and what the status becomes."""
    record.error = str(error) or type(error).__name__
    if isinstance(error, KeyboardInterrupt):
        record.status, record.exit_code, record.error = "incomplete", 130, "interrupted"
    elif isinstance(error, TimeLimitError):
        record.status, record.exit_code = "incomplete", error.exit_code
    elif isinstance(error, AccelsimError):
        record.status, record.exit_code = "error", error.exit_code
    else:
        record.status, record.exit_code = "error", 3
