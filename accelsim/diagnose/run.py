"""One run of `accelsim diagnose`: an input down all rungs, and a verdict.

What comes in: options. What goes out: a `DiagnoseRecord`, filled in as far as the run came, and a
run folder that `accelsim replay` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from accelsim.artifacts import I8, LayerReport
from accelsim.diagnose import verdict
from accelsim.diagnose.floats import FloatRun, float_run
from accelsim.diagnose.inputs import chosen_input, input_facts, traps
from accelsim.diagnose.noise import layer_rows
from accelsim.diagnose.record import DiagnoseOptions, DiagnoseRecord
from accelsim.diagnose.rungs import Outputs, classes_of, first_change, real_outputs, rung
from accelsim.errors import InputError
from accelsim.importer import load_model
from accelsim.quantize.pipeline import quantize_forms
from accelsim.reference import TITLES, Reference
from accelsim.verify import folder, new_record
from accelsim.verify.backends import build_rtl, open_backends
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.inputs import classes_of_model
from accelsim.verify.layers import LayerCheck, Whole
from accelsim.verify.library import Library, need_compiler
from accelsim.verify.options import Progress
from accelsim.verify.run import check_layers, compile_network
from accelsim.verify.verification import Verification

_BACKENDS = {"sim": "the simulator", "rtl": "the RTL"}
Tensors = Mapping[str, np.ndarray]


def diagnose(options: DiagnoseOptions, progress: Progress, record: DiagnoseRecord) -> None:
    """Run everything; `record` holds what was found even if this raises.

    Raises AccelsimError for what a user can mend.
    """
    given = options.verify
    verification = Verification(given, progress, new_record(given))
    record.replay = verification.record.replay
    progress(f"loading {given.model}")
    source = load_model(given.model, given.seed)
    progress("quantizing")
    quantized, fx = quantize_forms(source)
    batch = chosen_input(options, source, quantized)
    record.input_origin = batch.origin
    record.label = batch.label if options.label is None else options.label
    classes = classes_of_model(quantized)
    if classes is not None and record.label is not None:
        _refuse_label(record.label, classes)
    verification.record.input_origin = batch.origin
    verification.record.inputs_sha256 = folder.write_inputs(given.out, batch.tensors)
    folder.write_model(given.out, quantized)
    compiled = compile_network(verification, quantized)
    npu = {name for names in compiled.qdq_layers.values() for name in names}
    need_compiler()
    goldens = Goldens.of(quantized, progress, npu)
    verification.record.framework = goldens.about()
    network = goldens.reference.network
    progress("running the float network")
    floats = float_run(source, quantized, fx, network)
    outputs, layers = floats.run(batch.tensors)
    exact = real_outputs(network, outputs)
    record.rungs.append(rung("float", floats.title, outputs, network, None))
    _check_label(record, exact)
    golden = BatchGoldens.of(goldens, batch.tensors)
    _int8_rungs(record, goldens, golden, batch.tensors, exact)
    record.inputs = input_facts(network, batch.tensors, layers)
    known = {**golden.inputs, **golden.tvm.tensors, **golden.framework.tensors}
    real = {
        tensor: np.asarray(batch.tensors[name])
        for name, tensor in network.inputs
        if name not in network.direct
    }
    record.layers = layer_rows(network, {**real, **layers}, known)
    library = Library.of(compiled, given.out / "model.so")
    if "rtl" in given.backends:
        progress("building the RTL, unless it is cached")
        build_rtl(given)
    with open_backends(given, None) as opened:
        backends = {name: verification.bounded(name, one) for name, one in opened.items()}
        check = LayerCheck(compiled, goldens, golden, backends)
        whole = check_layers(verification, check, batch, library, ())
    _backend_rungs(record, network_outputs(whole), goldens.reference, exact, whole)
    verification.record.conclude()
    verification.checkpoint()
    record.first_change = first_change(record.rungs, record.label)
    suspicious = any(one.far or one.faint or one.clipped for one in record.inputs)
    found = verdict.Evidence(
        rungs=record.rungs,
        label=record.label,
        inputs=record.inputs,
        traps=_traps(record, goldens.reference, floats, batch.tensors, suspicious),
        rows=record.layers,
        layers=verification.record.layers,
        drift=_drift(goldens.reference, golden),
        backends=given.backends,
        whole=whole,
    )
    record.faults = verdict.faults(found)
    record.notes += [f"layer {x.name} runs on the host: {x.reason}" for x in _on_host(found)]
    record.complete = True
    record.exit_code = 1 if record.faults or record.first_change else 0


def network_outputs(whole: Whole) -> dict[str, Outputs | None]:
    """What each backend returned; None where it stopped."""
    return {name: whole.outputs.get(name) for name in whole.backends}


def _on_host(found: verdict.Evidence) -> list[LayerReport]:
    return [layer for layer in found.layers if layer.placement == "host"]


def _check_label(record: DiagnoseRecord, exact: Outputs) -> None:
    """Raises InputError for a label that the network has no class for."""
    if record.label is None:
        return
    if classes_of(exact) is None:
        if record.options.label is not None:
            shapes = ", ".join(str(one.shape) for one in exact)
            raise InputError(
                f"--label needs a network with one score a class; its outputs have shape {shapes}"
            )
        record.label = None
        return
    count = exact[0].size // len(exact[0])
    _refuse_label(record.label, count)


def _refuse_label(label: int, count: int) -> None:
    if label >= count:
        raise InputError(f"label is {label}; the network has {count} classes, from 0")


def _int8_rungs(
    record: DiagnoseRecord,
    goldens: Goldens,
    golden: BatchGoldens,
    inputs: Tensors,
    exact: Outputs,
) -> None:
    """Framework, QDQ graph on TVM and integer reference."""
    reference, network = goldens.reference, goldens.reference.network
    own = goldens.framework.outputs(inputs)
    note = "" if own is not None else "it cannot run the whole network"
    title = TITLES[goldens.framework.source]
    record.rungs.append(rung("framework", title, own, network, exact, note))
    for name, title, tensors in (
        ("qdq", "the quantized graph in floats on TVM", golden.tvm.tensors),
        ("integer", "the integer reference", golden.integer.tensors),
    ):
        values: dict[str, I8] = {**golden.inputs, **tensors}
        outputs = reference.dequantize_outputs(values, inputs)
        record.rungs.append(rung(name, title, outputs, network, exact))


def _backend_rungs(
    record: DiagnoseRecord,
    outputs: Mapping[str, Outputs | None],
    reference: Reference,
    exact: Outputs,
    whole: Whole,
) -> None:
    for name, given in outputs.items():
        note = whole.failures.get(name, "")
        record.rungs.append(rung(name, _BACKENDS[name], given, reference.network, exact, note))


def _traps(
    record: DiagnoseRecord,
    reference: Reference,
    floats: FloatRun,
    inputs: Tensors,
    suspicious: bool,
) -> list[str]:
    """Known slips of preprocessing, looked for where float is wrong or the range does not fit."""
    label, classes = record.label, record.rungs[0].classes
    wrong = label is not None and classes is not None and classes[0] != label
    if not wrong and not suspicious:
        return []
    is_right: Callable[[Tensors], bool] | None = None
    if wrong:

        def is_right(changed: Tensors) -> bool:
            found = classes_of(real_outputs(reference.network, floats.run(changed)[0]))
            return found is not None and found[0] == label

    return traps(reference.network, inputs, is_right)


def _drift(reference: Reference, golden: BatchGoldens) -> str:
    """The first layer of the whole network where framework and integer reference differ."""
    own = golden.framework.tensors
    for layer in reference.layers:
        tensor = layer.output
        if tensor in own and not np.array_equal(own[tensor], golden.integer.tensors[tensor]):
            return layer.name
    return ""
