"""The report of a quantization as JSON and as text.

What comes in: a record, finished or not. What goes out: a dict (schema accelsim.quantize/1), and
lines. It must not know networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from accelsim.calibrate.record import QuantizeRecord
from accelsim.calibrate.sensitivity import Sensitivity
from accelsim.calibrate.trials import Trial, described

SCHEMA = "accelsim.quantize/1"
_SHOWN = 10  # rows of the ranking in the text


def document(record: QuantizeRecord) -> dict[str, Any]:
    """Everything that was found."""
    options = record.options
    choice = record.choice
    return {
        "schema": SCHEMA,
        "status": record.status,
        "exit_code": record.exit_code,
        "error": record.error,
        "model": options.model,
        "started": record.started,
        "argv": list(options.argv),
        "calibration": {"origin": record.calibration, "samples": record.calibration_samples},
        "test": {"origin": record.test, "samples": record.test_samples},
        "choice": None
        if choice is None
        else {
            "activations": choice.recipe.activations,
            "percentile": choice.recipe.percentile
            if choice.recipe.activations == "percentile"
            else None,
            "weights": "per-channel" if choice.recipe.per_channel else "per-tensor",
            "equalized": choice.equalized,
            "equalized_pairs": list(record.pairs) if choice.equalized else [],
            "bias_corrected": choice.bias_corrected,
        },
        "trials": [_trial(trial) for trial in record.trials],
        "metric": options.metric or next(iter(record.accuracy_float), None),
        "accuracy": {
            "float": record.accuracy_float or None,
            "int8": record.accuracy_int8 or None,
            "loss": record.loss,
        },
        "output_sqnr_db": record.output_db,
        "layers": [asdict(layer) for layer in record.layers],
        "sensitivity": [asdict(row) for row in ranked(record.sensitivity)],
        "kept_float": list(record.kept_float),
        "host_layers": list(record.host_layers),
        "placement": None if record.placement is None else asdict(record.placement),
        "warnings": record.warnings,
        "notes": record.notes,
        "files": [str(path) for path in record.files],
    }


def ranked(rows: Sequence[Sensitivity]) -> list[Sensitivity]:
    """The most expensive layer first."""
    return sorted(rows, key=lambda row: row.rank)


def text(record: QuantizeRecord) -> list[str]:
    """The report as lines for a person."""
    lines = [f"calibrated on {record.calibration_samples:,} samples: {record.calibration}"]
    if record.trials:
        lines += ["", *_trials(record)]
    if record.layers:
        lines += ["", *_layers(record)]
    if record.sensitivity:
        lines += ["", *_ranking(record)]
    lines += ["", *_outcome(record)]
    lines += [f"warning: {one}" for one in record.warnings]
    lines += [f"note: {one}" for one in record.notes]
    lines += [f"written: {path}" for path in record.files]
    return lines


def _trial(trial: Trial) -> dict[str, Any]:
    recipe = trial.choice.recipe
    return {
        "activations": recipe.activations,
        "equalized": trial.choice.equalized,
        "bias_corrected": trial.choice.bias_corrected,
        "output_sqnr_db": trial.output_db,
    }


def _trials(record: QuantizeRecord) -> list[str]:
    rows = [
        (described(trial.choice), _mark(record, trial), f"{trial.output_db:.1f} dB")
        for trial in record.trials
    ]
    return table(("tried", "", "SQNR of the output"), rows, texts=2)


def _mark(record: QuantizeRecord, trial: Trial) -> str:
    return "chosen" if trial.choice == record.choice else ""


def _layers(record: QuantizeRecord) -> list[str]:
    rows = []
    for layer in record.layers:
        held = "-" if layer.low is None else f"{layer.low:.4g} … {layer.high:.4g}"
        scale = "-" if layer.scale is None else f"{layer.scale:.4g}"
        weights = "-"
        if layer.weight_scales is not None:
            least, most = layer.weight_scales
            weights = f"{least:.3g}" if least == most else f"{least:.3g} … {most:.3g}"
        noise = "-" if layer.sqnr_db is None else f"{layer.sqnr_db:.1f} dB"
        where = "float" if layer.in_float else "int8"
        rows.append((layer.name, where, noise, scale, held, weights))
    return table(("layer", "", "SQNR", "scale", "holds", "weight scales"), rows, texts=2)


def _ranking(record: QuantizeRecord) -> list[str]:
    labelled = bool(record.accuracy_float)
    heads = ["most sensitive", "alone", "weights", "all but it"]
    rows = []
    for row in ranked(record.sensitivity)[:_SHOWN]:
        weights = "-" if row.weights_db is None else f"{row.weights_db:.1f} dB"
        cells = [row.name, f"{row.alone_db:.1f} dB", weights, f"{row.without_db:.1f} dB"]
        if labelled:
            cells += [_signed(row.alone_loss), _signed(row.without_loss)]
        rows.append(tuple(cells))
    if labelled:
        heads += ["loss alone", "loss without"]
    more = len(record.sensitivity) - len(rows)
    return table(heads, rows) + ([f"and {more} more"] if more > 0 else [])


def _outcome(record: QuantizeRecord) -> list[str]:
    lines = []
    if record.choice is not None:
        lines.append(f"quantized with {described(record.choice)}")
    if record.choice is not None and record.choice.equalized:
        lines.append(f"equalised: {', '.join(record.pairs)}")
    if record.kept_float:
        lines.append(f"left in float: {', '.join(record.kept_float)}")
    if record.host_layers:
        lines.append(f"layers on the host: {', '.join(record.host_layers)}")
    if record.placement is not None:
        for step in record.placement.steps:
            lines.append(f"loss with {len(step.kept)} layers in float: {step.loss:+.4f}")
    if record.placement is not None and not record.placement.reached:
        lines.append(
            f"the loss stays above {record.options.max_loss:g} even with every layer that has "
            "weights in float"
        )
    if record.output_db is not None:
        lines.append(f"output: {record.output_db:.1f} dB of signal over quantization noise")
    for name, exact in record.accuracy_float.items():
        found = record.accuracy_int8.get(name)
        after = "" if found is None else f", int8 {found:.4f}, loss {exact - found:+.4f}"
        lines.append(
            f"{name}: float {exact:.4f}{after} on {record.test_samples:,} samples ({record.test})"
        )
    if not record.accuracy_float and not record.error:
        lines.append("accuracy: not measured, for want of labels; give --test")
    return lines


def _signed(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:+.4f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """Columns as wide as their longest cell; the first `texts` to the left."""
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    lines = []
    for cells in (heads, *rows):
        padded = [
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return lines
