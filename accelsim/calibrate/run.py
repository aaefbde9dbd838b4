"""The quantization of one network, step by step, with its report kept current on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime

import numpy as np
import torch

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.calibrate import files
from accelsim.calibrate.document import document, text
from accelsim.calibrate.layers import layer_facts
from accelsim.calibrate.noise import decibels_of
from accelsim.calibrate.options import QuantizeOptions
from accelsim.calibrate.placement import place
from accelsim.calibrate.record import QuantizeRecord
from accelsim.calibrate.running import Batch, batch_size, batches, outputs_of
from accelsim.calibrate.samples import Samples, checked, own_samples, read_samples
from accelsim.calibrate.sensitivity import Scale, layer_noise, sensitivities
from accelsim.calibrate.switches import switched_layers
from accelsim.calibrate.traps import check_finite, check_scales
from accelsim.calibrate.trials import Choice, Workshop, choose
from accelsim.errors import InputError, ModelError
from accelsim.importer import load_model
from accelsim.importer.checks import check_parameters
from accelsim.metrics import Metric, load_metric
from accelsim.quantize.fx_graph import FxQuantized, prepare, qnnpack_engine
from accelsim.quantize.pipeline import quantized_model
from accelsim.quantize.recipe import Recipe
from accelsim.zoo.training import one_thread

Progress = Callable[[str], None]

ALL_SAMPLES = 1 << 62
RANKED_SAMPLES = 512  # labelled ones, for the ranking of layers
JUDGED_SAMPLES = 256  # of the calibration data, where no labelled samples are there to judge by


def new_record(options: QuantizeOptions) -> QuantizeRecord:
    """An empty record for a run."""
    return QuantizeRecord(options, started=datetime.now(UTC).isoformat(timespec="seconds"))


def checkpoint(record: QuantizeRecord) -> None:
    """Write the report, if there is something to report: a killed run leaves what it finished."""
    if not record.found:
        return
    files.write_report(record.options.base, document(record), text(record))


def run(options: QuantizeOptions, progress: Progress, record: QuantizeRecord) -> None:
    """Run everything; `record` holds what was found even if this raises.

    Raises AccelsimError for what a user can mend, KeyboardInterrupt when interrupted.
    """
    with one_thread():
        _Run(options, progress, record).all()


class _Run:
    """One run: model, samples and what was made of them so far."""

    def __init__(
        self, options: QuantizeOptions, progress: Progress, record: QuantizeRecord
    ) -> None:
        self.options, self.progress, self.record = options, progress, record
        asked = None if options.metric is None else load_metric(options.metric)
        progress(f"loading {options.model}")
        self.source: SourceModel = load_model(options.model, options.seed)
        _check_float(self.source)
        self.metric = asked or _own_metric(self.source)
        self.kept = (*self.source.keep_float, *options.keep_float)
        if self.kept:  # an unknown name is refused now, and not after the trials
            prepare(self.source, Recipe(keep_float=self.kept))
        self.calibration = self._calibration()
        self.test = self._test()
        self.own = len(self.source.example_inputs[0])
        self.size = batch_size(self.source)

    def all(self) -> None:
        """Choose, place, write, report."""
        options, record = self.options, self.record
        workshop = self._workshop()
        choice = choose(workshop, options, self.kept, self.progress, record.trials)
        record.choice = choice
        record.pairs = [f"{pair.first} and {pair.second}" for pair in workshop.pairs]
        checkpoint(record)
        scale = self._scale()
        exact = outputs_of(self.source.float_module, scale.batches, self.source.name)
        record.accuracy_float = scale.numbers(exact)
        quantized = workshop.quantized(choice)
        if options.sensitivity or options.max_loss is not None:
            for row in sensitivities(quantized, self._ranking_scale(scale), self.progress):
                record.sensitivity.append(row)
        checkpoint(record)
        if options.max_loss is not None:
            choice = self._place(workshop, choice, scale)
            quantized = workshop.quantized(choice)
        self._finish(workshop, choice, quantized, scale, exact)

    def _calibration(self) -> Samples:
        options, source = self.options, self.source
        if options.data is not None:
            found: Samples | None = read_samples(options.data, source, options.samples)
        else:
            found = own_samples(source)
            found = None if found is None else checked(found.spread(options.samples), source)
        if found is None:
            raise InputError(f"model {source.name} brings no calibration data; give --data")
        self.record.calibration, self.record.calibration_samples = found.origin, len(found)
        return found

    def _test(self) -> Samples | None:
        """Labelled samples, from --test, the model, or the calibration data."""
        options, source = self.options, self.source
        found: Samples | None = None
        if options.test is not None:
            found = read_samples(options.test, source, ALL_SAMPLES)
            if found.labels is None:
                raise InputError(f"data {options.test} has no labels to test with")
        elif source.test_inputs is not None and source.test_labels is not None:
            found = Samples((source.test_inputs,), source.test_labels, "the model's test split")
        elif self.calibration.labels is not None:
            origin = "the calibration data itself, so it flatters"
            found = dataclasses.replace(self.calibration, origin=origin)
        if found is None:
            if options.max_loss is not None:
                raise InputError("--max-loss needs labelled samples; give --test")
            return None
        self.record.test, self.record.test_samples = found.origin, len(found)
        return found

    def _few(self) -> list[Batch]:
        """Some calibration samples, to measure layers on."""
        few = self.calibration.spread(max(JUDGED_SAMPLES, self.own))
        return batches(few.inputs, self.size, self.own)

    def _workshop(self) -> Workshop:
        given = batches(self.calibration.inputs, self.size, self.own)
        self.progress("looking for NaN and infinity in float")
        check_finite(prepare(self.source, Recipe()), given)
        return Workshop(self.source, given)

    def _scale(self) -> Scale:
        """What sensitivity and loss are measured with."""
        if self.test is None:
            return Scale(self._few(), None, None, self.source.name)
        given = batches(self.test.inputs, self.size, self.own)
        self.record.test_samples = len(self.test) // self.own * self.own
        return Scale(given, self.test.labels, self.metric, self.source.name)

    def _ranking_scale(self, scale: Scale) -> Scale:
        """What the many runs of a ranking are measured with: no more samples than they need."""
        most = max(RANKED_SAMPLES, self.own)
        if self.test is None or len(self.test) <= most:
            return scale
        few = self.test.spread(most)
        self.record.notes.append(f"sensitivity is measured on {most:,} of the labelled samples")
        given = batches(few.inputs, self.size, self.own)
        return dataclasses.replace(scale, batches=given, labels=few.labels)

    def _place(self, workshop: Workshop, choice: Choice, scale: Scale) -> Choice:
        """The choice with the layers in float that --max-loss asks for."""
        limit = self.options.max_loss
        assert limit is not None
        best = next(iter(self.record.accuracy_float.values()))

        def loss_with(kept: tuple[str, ...]) -> float:
            self.progress(f"measuring with {len(kept)} layers in float")
            network = workshop.quantized(_keeping(choice, kept)).reference
            found = scale.first(outputs_of(network, scale.batches, self.source.name))
            assert found is not None
            return best - found

        self.record.placement = place(self.record.sensitivity, limit, loss_with)
        return _keeping(choice, self.record.placement.kept)

    def _finish(
        self,
        workshop: Workshop,
        choice: Choice,
        quantized: FxQuantized,
        scale: Scale,
        exact: tuple[np.ndarray, ...],
    ) -> None:
        record = self.record
        self.progress("measuring each layer")
        layers = switched_layers(quantized)
        record.warnings += check_scales(layers, self.source.name)
        noise = {row.name: row.sqnr_db for row in layer_noise(quantized, self._few())}
        outputs = outputs_of(quantized.reference, scale.batches, self.source.name)
        record.output_db = decibels_of(exact, outputs)
        self.progress("writing the quantized model")
        record.kept_float = choice.recipe.keep_float
        model = quantized_model(workshop.source_for(choice), quantized, record.kept_float)
        record.host_layers = tuple(model.excluded)
        record.layers = layer_facts(layers, noise, record.host_layers)
        record.accuracy_int8 = scale.numbers(_int8_outputs(model, quantized, scale.batches))
        self._write(model)
        reached = record.placement is None or record.placement.reached
        record.status, record.exit_code = "complete", 0 if reached else 1
        checkpoint(record)

    def _write(self, model: QuantizedModel) -> None:
        record, base = self.record, self.options.base
        split = None
        if self.test is not None and len(self.test.inputs) == 1 and _classes(self.test.labels):
            assert self.test.labels is not None
            split = self.test.inputs[0], self.test.labels
        path, missing = files.write_program(base, model, split)
        record.files.append(path)
        record.notes += [missing] if missing else []
        written = files.write_onnx(base, model)
        if isinstance(written, str):
            record.notes.append(f"not written as ONNX: {written}")
        else:
            record.files.append(written)
        if record.host_layers:
            record.files.append(files.write_waivers(base, record.host_layers, date.today()))


def _check_float(source: SourceModel) -> None:
    if source.already_quantized:
        raise ModelError(
            f"model {source.name} is quantized already; give accelsim verify this file, or give "
            "accelsim quantize the float model"
        )
    if not isinstance(source.float_module, torch.nn.Module):
        raise ModelError(
            f"model {source.name} is a {type(source.float_module).__name__}; a float network in "
            "PyTorch is needed"
        )
    check_parameters(source.float_module, source.name)


def _own_metric(source: SourceModel) -> Metric:
    """The model's own metric, or top-1."""
    return load_metric() if source.metric is None else Metric(source.name, source.metric)


def _keeping(choice: Choice, names: tuple[str, ...]) -> Choice:
    kept = (*choice.recipe.keep_float, *names)
    return dataclasses.replace(choice, recipe=dataclasses.replace(choice.recipe, keep_float=kept))


def _classes(labels: np.ndarray | None) -> bool:
    """Whether labels are one class number each, which a test split of `verify` holds."""
    return labels is not None and labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer)


def _int8_outputs(
    model: QuantizedModel, quantized: FxQuantized, given: Sequence[Batch]
) -> tuple[np.ndarray, ...]:
    """Outputs of PyTorch's own int8 kernels; of the reference graph where it lacks one."""
    if model.torch_int8 is None:
        return outputs_of(quantized.reference, given, model.name)
    with qnnpack_engine():
        return outputs_of(model.torch_int8, given, model.name)
