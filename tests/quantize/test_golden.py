"""Facts about PyTorch's int8 network as a golden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accelsim.artifacts import QuantizedModel
from accelsim.quantize import qnnpack_engine, quantize, torch_layer_outputs, torch_layers
from tests.quantize.networks import images, residual


@pytest.fixture(scope="module")
def model() -> QuantizedModel:
    return quantize(residual())


@pytest.fixture(scope="module")
def outputs(model: QuantizedModel) -> dict[str, np.ndarray]:
    return torch_layer_outputs(model, (images(8, seed=5),))


def test_every_layer_and_input_has_a_node(model: QuantizedModel) -> None:
    assert set(torch_layers(model)) == {"image", *model.layer_names}


def test_nodes_are_the_modules_of_the_same_name(model: QuantizedModel) -> None:
    nodes = torch_layers(model)
    for name in ("stem.0", "one.conv", "two.project", "pool", "fc"):
        assert nodes[name].target == name


def test_last_layer_is_the_networks_output(
    model: QuantizedModel, outputs: dict[str, np.ndarray]
) -> None:
    with qnnpack_engine(), torch.no_grad():
        scores = model.torch_int8(torch.from_numpy(images(8, seed=5)))
    fc = model.torch_int8.get_submodule("fc")
    expected = torch.round(scores / fc.scale) + fc.zero_point
    assert np.array_equal(outputs["fc"], expected.numpy())


def test_relu6_keeps_elements_in_place(outputs: dict[str, np.ndarray]) -> None:
    before, after = outputs["one.conv"], outputs["one.relu6"]
    low, high = after.min(), after.max()
    assert low < high
    assert np.array_equal(after, np.clip(before, low, high))


def test_max_pool_takes_the_largest_of_four(outputs: dict[str, np.ndarray]) -> None:
    windows = outputs["add"].reshape(8, 12, 4, 2, 4, 2)
    assert np.array_equal(outputs["pool"], windows.max(axis=(3, 5)))


def test_every_layer_follows_the_exported_program(
    model: QuantizedModel, outputs: dict[str, np.ndarray]
) -> None:
    for values in outputs.values():
        assert values.dtype == np.uint8
        assert len(np.unique(values)) > 4


def test_engine_is_restored() -> None:
    before = torch.backends.quantized.engine
    with qnnpack_engine():
        assert torch.backends.quantized.engine == "qnnpack"
    assert torch.backends.quantized.engine == before


def test_engine_is_restored_after_an_error() -> None:
    before = torch.backends.quantized.engine
    with pytest.raises(KeyError), qnnpack_engine():
        raise KeyError
    assert torch.backends.quantized.engine == before


def test_float_module_is_left_as_it_was() -> None:
    source = residual()
    before = {name: value.clone() for name, value in source.float_module.state_dict().items()}
    quantize(source)
    after = source.float_module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("observer", ["histogram", "minmax"])
def test_quantizing_twice_gives_equal_bytes(observer: str) -> None:
    first, second = (quantize(residual(), observer=observer) for _ in range(2))
    one, two = (torch_layer_outputs(model, (images(2),)) for model in (first, second))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_histogram_clips_what_minmax_keeps() -> None:
    by_histogram = quantize(residual(), observer="histogram")
    by_minmax = quantize(residual(), observer="minmax")
    scales = [m.torch_int8.get_submodule("one.conv").scale for m in (by_histogram, by_minmax)]
    assert scales[0] < scales[1]
