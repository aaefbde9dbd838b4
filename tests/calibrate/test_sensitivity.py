"""Facts about which layer costs the accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.calibrate.noise import LOUDEST_DB, Noise, decibels_of
from accelsim.calibrate.sensitivity import Scale, layer_noise, sensitivities
from accelsim.metrics import load_metric
from accelsim.quantize.recipe import Recipe
from tests.calibrate.networks import planted, quantized


def _rows(source, labelled: bool):
    network = quantized(source, Recipe(per_channel=False))
    labels = source.test_labels if labelled else None
    metric = load_metric() if labelled else None
    scale = Scale([(source.test_inputs,)], labels, metric, "chain")
    return sorted(sensitivities(network, scale, lambda _: None), key=lambda row: row.rank)


@pytest.mark.parametrize("layer", ["depthwise", "grouped"])
def test_the_layer_with_the_planted_outlier_ranks_first(layer: str) -> None:
    first, second, *_ = _rows(planted(layer), labelled=False)
    assert first.name == layer and first.alone_db < second.alone_db - 6
    assert first.without_db > second.without_db
    assert first.weights_db is not None and first.weights_db < second.alone_db
    assert first.alone_loss is None and first.without_loss is None


def test_losses_are_of_the_metric_with_labels() -> None:
    rows = _rows(planted("grouped"), labelled=True)
    assert rows[0].name == "grouped" and rows[0].alone_loss > 0.2
    assert rows[0].without_loss < rows[0].alone_loss
    assert all(row.alone_loss <= 0.1 for row in rows[1:])


def test_noise_begins_at_the_layer_that_makes_it() -> None:
    source = planted("depthwise")
    network = quantized(source, Recipe(per_channel=False))
    noise = {row.name: row.sqnr_db for row in layer_noise(network, [(source.test_inputs,)])}
    assert list(noise) == ["x", "first", "depthwise", "grouped", "pool", "flatten", "fc"]
    assert noise["depthwise"] < min(noise["x"], noise["first"]) - 10


def test_decibels_are_ten_per_power_of_ten() -> None:
    exact = np.array([3.0, 4.0])
    assert decibels_of((exact,), (exact + np.array([0.3, 0.4]),)) == pytest.approx(20)
    assert decibels_of((exact,), (exact,)) == LOUDEST_DB
    noise = Noise()
    noise.add(np.zeros(2), np.ones(2))
    assert noise.decibels == -LOUDEST_DB
