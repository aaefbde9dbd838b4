"""What a model brings beside its example must fit to it, or is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError
from accelsim.importer.checks import check_source


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


# Batches of two; the second model has two inputs.
ONE = SourceModel("net", nn.Identity(), (floats(2, 3),), ("x",))
TWO = replace(ONE, example_inputs=(floats(2, 3), floats(2, 4)), input_names=("x", "y"))

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"test_inputs": floats(1, 3)}, "has 1 test inputs.* batch is 2"),
    ({"test_inputs": floats(0, 3)}, "has 0 test inputs.* batch is 2"),
    ({"test_inputs": floats(4, 9)}, r"test inputs .* \(4, 9\); they must be finite float32"),
    ({"test_inputs": np.float32(1)}, "test inputs .* must be"),
    ({"test_inputs": floats(4, 3) * np.nan}, "test inputs .* finite"),
    ({"test_inputs": floats(4, 3).astype(np.float64)}, "float64"),
    ({"test_inputs": [[1.0, 2.0, 3.0]] * 4}, "test inputs .* list"),
    ({"test_inputs": torch.ones(4, 3)}, "test inputs .* Tensor"),
    ({"test_inputs": floats(4, 3), "test_labels": np.zeros(3, np.int64)}, r"\(3,\) for 4"),
    ({"test_inputs": floats(4, 3), "test_labels": np.zeros((4, 1), np.int64)}, r"\(4, 1\) for 4"),
    ({"test_inputs": floats(4, 3), "test_labels": floats(4)}, "test labels .* float32"),
    ({"test_inputs": floats(4, 3), "test_labels": [0, 1, 2, 3]}, "test labels .* list"),
    ({"test_labels": np.zeros(3, np.int64)}, "test labels and no test inputs"),
    ({"calibration": ([[1.0, 2.0, 3.0]],)}, "calibration batch 0 .* list"),
    ({"calibration": (floats(2, 3), floats(2, 9))}, "calibration batch 1"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
@pytest.mark.parametrize("source", [ONE, TWO])
def test_data_that_does_not_fit_is_refused(
    source: SourceModel, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_source(replace(source, **given))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", [ONE, TWO])
@pytest.mark.parametrize("labels", [None, np.zeros(2, np.uint8)])
def test_a_test_split_of_one_batch_is_enough(
    source: SourceModel, labels: np.ndarray | None
) -> None:
    check_source(replace(source, test_inputs=floats(2, 3), test_labels=labels))
