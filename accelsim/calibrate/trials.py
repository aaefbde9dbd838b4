"""Trying recipes: each quantizes the network and is judged by its outputs on calibration data.

What comes in: a float model, calibration batches, what the user left open. What goes out: the best
trial. It must not know labels: a choice made with the test split would flatter itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accelsim.artifacts import SourceModel
from accelsim.calibrate.bias import BiasCorrection
from accelsim.calibrate.equalize import Pair, equalized
from accelsim.calibrate.noise import decibels_of
from accelsim.calibrate.options import AUTO, ON, QuantizeOptions
from accelsim.calibrate.running import Batch, outputs_of
from accelsim.calibrate.traps import check_observers
from accelsim.quantize.fx_graph import FxQuantized, calibrate, convert, prepare
from accelsim.quantize.observers import KINDS
from accelsim.quantize.recipe import Recipe

Progress = Callable[[str], None]

MARGIN_DB = 0.1  # what equalisation and bias correction must win to be kept
JUDGED_SAMPLES = 128


@dataclass(frozen=True, slots=True)
class Choice:
    """Everything that decides a quantization."""

    recipe: Recipe
    equalized: bool
    bias_corrected: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """A choice and the SQNR of the network's outputs that it gives."""

    choice: Choice
    output_db: float


class Workshop:
    """A float model, its calibration batches, and its equalised copy."""

    def __init__(self, source: SourceModel, batches: Sequence[Batch]) -> None:
        self.source = source
        self._batches = batches
        self._equalized: SourceModel | None = None
        self.pairs: tuple[Pair, ...] = ()
        self._judged: list[Batch] = []
        for batch in batches:
            if sum(len(one[0]) for one in self._judged) < JUDGED_SAMPLES:
                self._judged.append(batch)
        self._exact = outputs_of(source.float_module, self._judged, source.name)

    def equalize(self) -> bool:
        """Make the equalised copy; whether it differs from the model."""
        if self._equalized is None:
            module, self.pairs = equalized(self.source.float_module, self.source.name)
            self._equalized = dataclasses.replace(self.source, float_module=module)
        return bool(self.pairs)

    def source_for(self, choice: Choice) -> SourceModel:
        """The float model that a choice quantizes."""
        if not choice.equalized:
            return self.source
        self.equalize()
        assert self._equalized is not None
        return self._equalized

    def quantized(self, choice: Choice) -> FxQuantized:
        """Prepare, calibrate, correct and convert.

        Raises ModelError naming the layer or the batch at which it fails.
        """
        prepared = prepare(self.source_for(choice), choice.recipe)
        correction = BiasCorrection(prepared.module) if choice.bias_corrected else None
        try:
            calibrate(prepared, self._batches)
        finally:
            if correction is not None:
                correction.close()
        check_observers(prepared)
        if correction is not None:
            correction.apply()
        return convert(prepared)

    def judge(self, choice: Choice) -> Trial:
        """Try a choice."""
        outputs = outputs_of(self.quantized(choice).reference, self._judged, self.source.name)
        return Trial(choice, decibels_of(self._exact, outputs))


def choose(
    workshop: Workshop,
    options: QuantizeOptions,
    kept: tuple[str, ...],
    progress: Progress,
    tried: list[Trial],
) -> Choice:
    """The best of what the options leave open, with `kept` in float; `tried` gets every trial."""
    kinds = KINDS if options.calibration == AUTO else (options.calibration,)
    fixed = Choice(
        Recipe(
            percentile=options.percentile,
            per_channel=options.weights == "per-channel",
            keep_float=kept,
        ),
        equalized=options.equalize == ON and workshop.equalize(),
        bias_corrected=options.bias_correction == ON,
    )

    def judged(choice: Choice) -> Trial:
        progress(f"trying {described(choice)}")
        tried.append(workshop.judge(choice))
        return tried[-1]

    both = options.equalize == AUTO and workshop.equalize()
    trials = [
        judged(_with_observers(_replaced(fixed, equalized=equalized), kind))
        for equalized in ((False, True) if both else (fixed.equalized,))
        for kind in kinds
    ]
    best = max(trials, key=lambda trial: trial.output_db - MARGIN_DB * trial.choice.equalized)
    if options.bias_correction == AUTO:
        best = _better(best, judged(_replaced(best.choice, bias_corrected=True)))
    return best.choice


def described(choice: Choice) -> str:
    """A choice in words: "percentile 99.9, per-channel weights, equalised"."""
    recipe = choice.recipe
    percentile = f" {recipe.percentile:g}" if recipe.activations == "percentile" else ""
    words = [
        f"{recipe.activations}{percentile}",
        f"{'per-channel' if recipe.per_channel else 'per-tensor'} weights",
        *(["equalised"] if choice.equalized else []),
        *(["bias corrected"] if choice.bias_corrected else []),
    ]
    return ", ".join(words)


def _with_observers(choice: Choice, kind: str) -> Choice:
    return _replaced(choice, recipe=dataclasses.replace(choice.recipe, activations=kind))


def _replaced(choice: Choice, **fields: object) -> Choice:
    return dataclasses.replace(choice, **fields)  # type: ignore[arg-type]


def _better(best: Trial, other: Trial) -> Trial:
    return other if other.output_db > best.output_db + MARGIN_DB else best
