"""The recipe of quantization-aware training in `examples/`, in a short form of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from accelsim.quantize import quantize

EXAMPLE = Path(__file__).parents[2] / "examples/qat_digits.py"


@pytest.fixture(scope="module")
def example() -> Any:
    specification = importlib.util.spec_from_file_location("qat_digits", EXAMPLE)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_training_wins_back_what_quantization_lost(example: Any) -> None:
    digits = example.load_digits(example.SEED)
    source = example.trained(digits, epochs=10)
    exact = example.accuracy(source.float_module, digits)
    lost = example.accuracy(example.post_training(source, equal=False), digits)
    equal, _ = example.equalized(source.float_module, source.name)
    prepared = example.quantization_aware(equal, digits, epochs=2)
    trained = example.accuracy(example.converted(prepared), digits)
    assert exact > 0.9 and lost < exact - 0.3
    assert trained > exact - 0.02
    model = quantize(example.source_of(prepared, digits))
    assert "blocks.0.depthwise" in model.layer_names
