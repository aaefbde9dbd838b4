"""Which batch is verified, for every combination of test inputs, labels and number of inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.verify.inputs import choose_input

SAMPLES = np.arange(15, dtype=np.float32).reshape(5, 3)
LABELS = np.array([7, 6, 5, 4, 3])
EXAMPLE = np.full((1, 3), 0.5, np.float32)


def network(batch: int, *names: str) -> tuple[SourceModel, QuantizedModel]:
    example = tuple(np.repeat(EXAMPLE, batch, 0) for _ in names)
    source = SourceModel("net", nn.Identity(), example, names)
    shapes = tuple(one.shape for one in example)
    dtypes = ("float32",) * len(names)
    return source, QuantizedModel("net", None, None, None, (), names, shapes, dtypes)


@pytest.mark.parametrize("seed", range(6))
def test_one_sample_comes_with_its_own_label(seed: int) -> None:
    source, quantized = network(1, "x")
    given = replace(source, test_inputs=SAMPLES, test_labels=LABELS)
    chosen = choose_input(given, quantized, None, seed)
    (value,) = chosen.tensors["x"]
    at = int(value[0]) // 3
    assert np.array_equal(value, SAMPLES[at]) and chosen.label == LABELS[at]
    assert chosen.origin == f"test image {at}"
    assert choose_input(replace(given, test_labels=None), quantized, None, seed).label is None


@pytest.mark.parametrize("batch", [2, 5])
def test_a_batch_is_whole_and_has_no_label(batch: int) -> None:
    source, quantized = network(batch, "x")
    given = replace(source, test_inputs=SAMPLES, test_labels=LABELS)
    for seed in range(6):
        chosen = choose_input(given, quantized, None, seed)
        assert chosen.tensors["x"].shape == (batch, 3) and chosen.label is None


@pytest.mark.parametrize("samples", [None, SAMPLES])
def test_several_inputs_come_from_the_example(samples: np.ndarray | None) -> None:
    source, quantized = network(2, "x", "y")
    chosen = choose_input(replace(source, test_inputs=samples), quantized, None, 0)
    assert chosen.origin == "the model's example input" and chosen.label is None
    assert [value.shape for value in chosen.tensors.values()] == [(2, 3), (2, 3)]
