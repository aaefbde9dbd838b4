"""What a run exercised: opcodes, saturations, stalls, splits and padding, counted from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelsim.artifacts import LayerReport, RunResult

SPLITS = ("row_splits", "in_channel_splits", "out_channel_splits")
# What a model of the zoo must exercise on a configuration, or its run proves less than it says.
PROMISES: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("zoo:digits-resnet", "edge8"): {
        "layers_with_row_splits": 1,
        "layers_with_in_channel_splits": 1,
        "layers_with_out_channel_splits": 1,
        "pad_zero_points": 2,
        "saturated_low": 1,
        "saturated_high": 1,
    }
}


def exercised(
    layers: Sequence[LayerReport], runs: Mapping[str, Mapping[str, RunResult]]
) -> dict[str, int]:
    """Counts over all layers and the simulator's accumulated runs (else those of the RTL)."""
    counts: dict[str, int] = {}
    for by_backend in runs.values():
        result = by_backend.get("sim") or by_backend["rtl"]
        for name, value in result.counters.items():
            counts[name] = counts.get(name, 0) + int(value)
    for split in SPLITS:
        counts[f"layers_with_{split}"] = sum(layer.facts.get(split, 1) > 1 for layer in layers)
    padded = {layer.facts["pad_zero_point"] for layer in layers if layer.facts.get("padded")}
    counts["pad_zero_points"] = len(padded)
    counts["tiles"] = sum(layer.tiles for layer in layers)
    return counts


def unexercised(counts: Mapping[str, int], required: Mapping[str, int]) -> list[str]:
    """A sentence for each count below what the model promises to exercise."""
    return [
        f"{name} is {counts.get(name, 0)}, this model must reach {least}"
        for name, least in required.items()
        if counts.get(name, 0) < least
    ]
