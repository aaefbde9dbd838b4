"""The verification of one network, step by step, with its run folder kept current."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, date, datetime

import numpy as np

from accelsim.artifacts import LayerReport, QuantizedModel, SourceModel
from accelsim.codegen import CompiledModel, compile_model
from accelsim.compare import Waiver, apply_waivers, not_needed, read_waivers
from accelsim.errors import InputError, TimeLimitError, ending
from accelsim.importer import load_model
from accelsim.metrics import load_metric
from accelsim.quantize import quantize
from accelsim.reference.torch_engines import engine_notes
from accelsim.verify import folder
from accelsim.verify.backends import build_rtl, open_backends
from accelsim.verify.golden_file import check_golden
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.inputs import Batch, check_labels, choose_input
from accelsim.verify.layers import LayerCheck, Whole, check_layer, host_layers, run_whole
from accelsim.verify.library import Library, need_compiler
from accelsim.verify.network import check_network, check_stalls, note_not_run
from accelsim.verify.options import Progress, VerifyOptions
from accelsim.verify.record import RunRecord
from accelsim.verify.verification import Verification

STORED = (
    "the original model is not to be had, so the quantized model of the run folder is used: "
    "the test split and accuracy are not part of this run"
)


def new_record(options: VerifyOptions) -> RunRecord:
    """An empty record for a run."""
    return RunRecord(
        model=options.model,
        config=options.config.name,
        seed=options.seed,
        replay=f"accelsim replay {shlex.quote(str(options.out))}",
        versions=folder.versions(),
        hardware=asdict(options.config),
        argv=options.argv,
        backends=options.backends,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def verify(options: VerifyOptions, progress: Progress, record: RunRecord) -> None:
    """Run everything; `record` holds what was found even if this raises.

    report.json in the run folder is written at the start and while layers go on, as incomplete.
    Raises AccelsimError for what a user can mend, KeyboardInterrupt when interrupted.
    """
    run = Verification(options, progress, record)
    run.checkpoint()
    record.hashes = {
        "rtl_sha256": folder.rtl_hash(options.config),
        "sources_sha256": folder.source_hash(options.config),
    }
    waivers = _waivers(options)
    if options.metric is not None:
        load_metric(options.metric)  # refused now, and not after an hour
    source, quantized = _model(run)
    batch = choose_input(source, quantized, options.input, options.seed)
    check_golden(batch.samples, quantized)
    if options.layer is None and (options.metric or source.metric) in (None, "top1", "top5"):
        check_labels(batch.samples, quantized)
    record.input_origin = batch.origin
    given = batch.samples if batch.own_samples and batch.samples is not None else None
    record.inputs_sha256 = folder.write_inputs(
        options.out, batch.tensors if given is None else given.arrays()
    )
    folder.write_model(options.out, quantized)
    compiled = compile_network(run, quantized)
    npu = {name for names in compiled.qdq_layers.values() for name in names}
    need_compiler()
    goldens = Goldens.of(quantized, progress, npu)
    record.framework = goldens.about()
    record.notes += engine_notes(source, quantized, batch.tensors)
    golden_batch = BatchGoldens.of(goldens, batch.tensors)
    library = Library.of(compiled, options.out / "model.so")
    run.check_time()
    if "rtl" in options.backends:
        progress("building the RTL, unless it is cached")
        with run.timed("build"):
            build_rtl(options)
    waves = options.out / "waves" if options.waves else None
    with open_backends(options, waves) as opened:
        backends = {name: run.bounded(name, backend) for name, backend in opened.items()}
        check = LayerCheck(compiled, goldens, golden_batch, backends)
        whole = check_layers(run, check, batch, library, waivers)
        if options.layer is None:
            on_network = check if options.rtl_runs_network else check.without_rtl()
            check_network(run, source, quantized, on_network, library, whole, batch.samples)
        _note_constant(run, check)
    if options.layer is None:
        check_stalls(run, batch, library, golden_batch)
    record.problems += [not_needed(w) for w in waivers if w not in record.waivers]
    note_not_run(run, source, batch)
    record.conclude()


def _waivers(options: VerifyOptions) -> tuple[Waiver, ...]:
    """The waivers that concern this run."""
    if options.waive is None:
        return ()
    waivers = read_waivers(options.waive, date.today())
    return tuple(w for w in waivers if options.layer in (None, w.layer))


def _model(run: Verification) -> tuple[SourceModel, QuantizedModel]:
    options = run.options
    run.progress(f"loading {options.model}")
    if options.stored is not None:
        run.record.notes.append(STORED)
    where = options.source or options.model
    source = load_model(str(options.stored or where), options.seed)
    run.check_time()
    run.progress("quantizing")
    return source, quantize(source)


def compile_network(run: Verification, quantized: QuantizedModel) -> CompiledModel:
    """Compile, and put the programs into the record and the run folder.

    Raises ModelError for what cannot be compiled, InputError where --layer names none of it.
    """
    options, record = run.options, run.record
    run.progress(f"compiling for {options.config.name}")
    with run.timed("compile"):
        compiled = compile_model(quantized, options.config, options.dump_ir)
    record.programs = compiled.programs
    record.program_sha256 = folder.write_programs(options.out, compiled.programs)
    if options.expected_program not in (None, record.program_sha256):
        record.notes.append(
            "this is not the program of the run that is repeated: model or compiler have changed"
        )
    run.check_time()
    names = [layer.name for program in compiled.programs for layer in program.layers]
    if options.layer is not None and options.layer not in names:
        raise InputError(f"the network has no layer {options.layer!r}; it has {', '.join(names)}")
    return compiled


def check_layers(
    run: Verification,
    check: LayerCheck,
    batch: Batch,
    library: Library,
    waivers: tuple[Waiver, ...],
) -> Whole:
    """Accumulated and isolated comparisons of every layer (or of the one asked for)."""
    options, record = run.options, run.record
    on_whole = check.backends if options.rtl_runs_network else check.without_rtl().backends
    on_rtl = _layers_on_rtl(options, check.compiled)
    whole = run_whole(library, on_whole, list(batch.tensors.values()), run.progress)
    for by_backend in whole.runs.values():
        for name, result in by_backend.items():
            record.cycles[name] = record.cycles.get(name, 0) + result.cycles
    if options.layer is None:
        _add(run, host_layers(check.compiled), waivers)
    for program in check.compiled.programs:
        for number, layer in enumerate(program.layers):
            if options.layer not in (None, layer.name):
                continue
            run.check_time()
            run.progress(f"layer {layer.name}")
            chosen = check if layer.name in on_rtl else check.without_rtl()
            if chosen.backends:
                _add(run, [check_layer(chosen, program, number, whole)], waivers)
    record.layers.sort(key=_order(check))
    return whole


def _layers_on_rtl(options: VerifyOptions, compiled: CompiledModel) -> frozenset[str]:
    """Names of the layers that RTL runs: all, or as many as asked for of as many operators."""
    layers = [layer for program in compiled.programs for layer in program.layers]
    if options.rtl_layers is None or options.layer is not None:
        return frozenset(layer.name for layer in layers)
    rng = np.random.default_rng(options.seed)
    groups: dict[str, list[str]] = {}
    for place in rng.permutation(len(layers)):
        groups.setdefault(layers[place].op, []).append(layers[place].name)
    turns = itertools.zip_longest(*(groups[op] for op in sorted(groups)))
    names = [name for turn in turns for name in turn if name is not None]
    return frozenset(names[: options.rtl_layers])


def _order(check: LayerCheck) -> Callable[[LayerReport], int]:
    """Layers as the network runs them, those on the host among the others."""
    names = [layer.name for layer in check.goldens.reference.layers]
    places = {name: place for place, name in enumerate(names)}
    return lambda layer: places.get(layer.name, len(places))


def _note_constant(run: Verification, check: LayerCheck) -> None:
    """Layers whose golden has one value in the batch, and over the samples where there are some."""
    accuracy = run.record.accuracy
    varied = frozenset() if accuracy is None else accuracy.varied
    for program in check.compiled.programs:
        for layer in program.layers:
            chosen = run.options.layer in (None, layer.name)
            if chosen and check.batch.constant(layer.output) and layer.output not in varied:
                one = check.batch.values[layer.output].size == 1
                way = (
                    "give an --input of several samples"
                    if one
                    else "choose another --input or --seed"
                )
                run.record.problems.append(
                    f"layer {layer.name}: its golden has one value only and proves nothing; {way}"
                )


def _add(run: Verification, layers: list[LayerReport], waivers: tuple[Waiver, ...]) -> None:
    """Record layers with their waivers, and write the report from time to time."""
    waived, used = apply_waivers(layers, waivers)
    run.record.layers += waived
    run.record.waivers += used
    run.checkpoint_if_due()


def fail(record: RunRecord, error: BaseException) -> None:
    """Put an error into the record: its message, its exit code, and what the status becomes."""
    record.error, record.exit_code = ending(error)
    unfinished = isinstance(error, (KeyboardInterrupt, TimeLimitError))
    record.status = "incomplete" if unfinished else "error"
