"""One run of `accelsim advise`: look, replace, train, measure.

What comes in: options. What goes out: an `AdviseRecord`, filled in as far as the run came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from accelsim.advise.costs import Placed, costs_of
from accelsim.advise.findings import findings
from accelsim.advise.record import AdviseOptions, AdviseRecord, Change
from accelsim.advise.replace import Traced, apply, known_rule, traced
from accelsim.advise.training import fine_tune, trainable
from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.calibrate.noise import decibels_of
from accelsim.calibrate.running import batch_size, batches, outputs_of
from accelsim.calibrate.samples import Samples, own_samples, read_samples
from accelsim.errors import InputError, ModelError
from accelsim.files import check_writable, whole_file, writing
from accelsim.importer import load_model
from accelsim.importer.checks import check_parameters
from accelsim.importer.reasons import reason
from accelsim.metrics import Metric, load_metric
from accelsim.quantize import qnnpack_engine, quantize

Progress = Callable[[str], None]
_CALIBRATION_SAMPLES = 512
_MANY = 1 << 62
FILE = "model.pt2"  # in the folder of --out
_ELSEWHERE = "choose another --out"


def run(options: AdviseOptions, progress: Progress, record: AdviseRecord) -> None:
    """Run everything; `record` holds what was found even if this raises.

    Raises AccelsimError for what a user can mend.
    """
    _checked(options)
    progress(f"loading {options.model}")
    source = load_model(options.model, options.seed)
    if source.already_quantized or source.framework != "torch":
        raise InputError(
            f"model {options.model} is quantized already; advise changes float models, so give the "
            "one that it was made from"
        )
    source = _calibrated(source, options)
    check_parameters(source.float_module, source.name)
    network = traced(source.float_module, source.name)
    progress("quantizing and timing the network")
    quantized = quantize(source)
    placed = costs_of(quantized, options.config)
    record.costs = placed.costs
    record.findings = findings(network, placed, options.config)
    if options.apply:
        _change(options, progress, record, source, network, quantized, placed)


def _checked(options: AdviseOptions) -> None:
    """Refuse before the work what could not be done after it."""
    for entry in options.apply:
        known_rule(entry)
    if options.out is None:
        return
    if not options.apply:
        raise InputError("--out is for the changed network; give --apply NAME with it")
    path = options.out / FILE
    if path.resolve() == Path(options.model).resolve():
        raise InputError(f"--out would overwrite the model {options.model} itself; choose another")
    with writing(path, _ELSEWHERE):
        check_writable(path)


def _calibrated(source: SourceModel, options: AdviseOptions) -> SourceModel:
    """The model with the calibration data of --data, or its own."""
    if options.data is None:
        if own_samples(source) is None:
            raise InputError(f"model {source.name} brings no calibration data; give --data")
        return source
    found = read_samples(options.data, source, _CALIBRATION_SAMPLES)
    if len(found.inputs) > 1:
        return dataclasses.replace(source, example_inputs=found.inputs, drawn_examples=False)
    return dataclasses.replace(source, calibration=found.inputs)


def _change(
    options: AdviseOptions,
    progress: Progress,
    record: AdviseRecord,
    source: SourceModel,
    network: Traced,
    quantized: QuantizedModel,
    placed: Placed,
) -> None:
    judge = _Judge.of(source, options)
    exact = outputs_of(source.float_module, judge.batches, source.name)
    change = Change(apply(network, options.apply), before=placed.costs)
    record.change = change
    judge.note(change, "float before", exact)
    judge.note(change, "int8 before", judge.int8(quantized))
    replaced = outputs_of(network.graph, judge.batches, source.name)
    change.snr_db = decibels_of(exact, replaced)
    judge.note(change, "float replaced", replaced)
    if source.training is not None and options.epochs and trainable(network.graph):
        progress(f"training the changed network for {options.epochs} epochs")
        fine_tune(network.graph, source.training, options.epochs, options.seed, source.name)
        change.trained_epochs = options.epochs
        judge.note(change, "float trained", outputs_of(network.graph, judge.batches, source.name))
    progress("quantizing and timing the changed network")
    changed = dataclasses.replace(source, float_module=network.graph)
    after = quantize(changed)
    change.after = costs_of(after, options.config).costs
    judge.note(change, "int8 after", judge.int8(after))
    if options.out is not None:
        change.written = str(_write(changed, options.out))


@dataclasses.dataclass(frozen=True, slots=True)
class _Judge:
    """Samples, their labels, and the metric."""

    source: SourceModel
    batches: list[tuple[np.ndarray, ...]]
    labels: np.ndarray | None
    metric: Metric

    @staticmethod
    def of(source: SourceModel, options: AdviseOptions) -> _Judge:
        found: Samples | None = None
        if options.test is not None:
            found = read_samples(options.test, source, _MANY)
        elif source.test_inputs is not None:
            found = Samples((source.test_inputs,), source.test_labels, "the model's test split")
        else:
            found = own_samples(source)
        assert found is not None  # there is calibration data at least
        own = len(source.example_inputs[0])
        given = batches(found.inputs, batch_size(source), own)
        count = sum(len(one[0]) for one in given)
        labels = None if found.labels is None else found.labels[:count]
        if options.metric is None and source.metric is not None:
            metric = Metric("the task's metric", source.metric)
        else:
            metric = load_metric(options.metric or "top1")
        return _Judge(source, given, labels, metric)

    def int8(self, model: QuantizedModel) -> tuple[np.ndarray, ...] | None:
        """Outputs of PyTorch's int8 network."""
        if model.torch_int8 is None:
            return None
        with qnnpack_engine():
            return outputs_of(model.torch_int8, self.batches, model.name)

    def note(self, change: Change, name: str, outputs: tuple[np.ndarray, ...] | None) -> None:
        """Measure, where there are labels."""
        if self.labels is not None and outputs is not None:
            change.accuracy[name] = self.metric.measure(outputs, self.labels)


def _write(source: SourceModel, folder: Path) -> Path:
    """The changed float network as FOLDER/model.pt2, whole or not at all."""
    examples = tuple(torch.from_numpy(array) for array in source.example_inputs)
    try:
        with torch.no_grad():
            program = torch.export.export(source.float_module.eval(), examples)
    except Exception as error:  # torch raises many kinds here
        raise ModelError(f"model {source.name} cannot be exported: {reason(error)}") from error
    path = folder / FILE
    with writing(path, _ELSEWHERE), whole_file(path) as partial:
        torch.export.save(program, partial)
    return path
