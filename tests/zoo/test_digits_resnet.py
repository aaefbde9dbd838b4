"""Facts about the trained digits network, float and int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from accelsim import zoo
from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import InputError
from accelsim.quantize import qnnpack_engine, quantize, torch_layer_outputs, torch_layers
from accelsim.zoo import classifier
from accelsim.zoo.digits import load_digits, resize_bilinear
from accelsim.zoo.digits_resnet import DigitsResNet


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def source(cache: Path) -> SourceModel:
    return zoo.load("zoo:digits-resnet", seed=0, cache=cache)


@pytest.fixture(scope="module")
def quantized(source: SourceModel) -> QuantizedModel:
    return quantize(source)


def _accuracy(scores: torch.Tensor, labels: np.ndarray) -> float:
    return float((scores.argmax(1).numpy() == labels).mean())


def _float_accuracy(source: SourceModel) -> float:
    with torch.no_grad():
        return _accuracy(
            source.float_module(torch.from_numpy(source.test_inputs)), source.test_labels
        )


def test_float_accuracy_is_at_least_97_percent(source: SourceModel) -> None:
    assert _float_accuracy(source) >= 0.97


@pytest.mark.parametrize("per_channel", [False, True])
def test_int8_accuracy_is_within_one_point(source: SourceModel, per_channel: bool) -> None:
    model = quantize(source, per_channel=per_channel)
    with qnnpack_engine(), torch.no_grad():
        scores = model.torch_int8(torch.from_numpy(source.test_inputs))
    assert abs(_accuracy(scores, source.test_labels) - _float_accuracy(source)) <= 0.01


def test_cached_weights_give_the_same_outputs(source: SourceModel, cache: Path) -> None:
    again = zoo.load("digits-resnet", seed=0, cache=cache)
    inputs = torch.from_numpy(source.test_inputs[:8])
    with torch.no_grad():
        assert torch.equal(again.float_module(inputs), source.float_module(inputs))


@pytest.mark.parametrize("epochs", [1, pytest.param(classifier.EPOCHS, marks=pytest.mark.campaign)])
def test_corrupt_cache_is_trained_anew_to_the_same_weights(epochs: int, tmp_path: Path) -> None:
    """One epoch tells it as well as all of them, which the campaign runs."""
    recipe = classifier.Recipe("digits-resnet", DigitsResNet, epochs)
    classifier.build(recipe, 0, tmp_path)
    (path,) = (tmp_path / "zoo").iterdir()
    intact = path.read_bytes()
    path.write_bytes(intact[:-100] + bytes(100))
    classifier.build(recipe, 0, tmp_path)
    assert path.read_bytes() == intact


def test_first_hundred_test_images_are_balanced(source: SourceModel) -> None:
    assert source.test_labels is not None
    assert np.array_equal(np.bincount(source.test_labels[:100]), np.full(10, 10))


def test_train_and_test_share_no_image_and_use_all() -> None:
    digits = load_digits(seed=3)
    assert len(digits.train_labels) + len(digits.test_labels) == 1797
    train = {image.tobytes() for image in digits.train_images}
    assert not train & {image.tobytes() for image in digits.test_images}


def test_seed_changes_the_split() -> None:
    assert not np.array_equal(load_digits(0).test_images, load_digits(1).test_images)


def test_resize_agrees_with_torch() -> None:
    images = np.random.default_rng(0).normal(size=(3, 8, 8)).astype(np.float32)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(images)[:, None], size=(16, 16), mode="bilinear", align_corners=False
    )
    np.testing.assert_allclose(resize_bilinear(images, 16), expected[:, 0].numpy(), atol=1e-5)


def test_layers_saturate_at_both_ends(source: SourceModel, quantized: QuantizedModel) -> None:
    outputs = torch_layer_outputs(quantized, (source.test_inputs,))
    for name in ("block1.pointwise", "block1/add", "block2.conv1", "block3/add", "fc"):
        assert (outputs[name] == 0).any()
        assert (outputs[name] == 255).any()


def test_padding_uses_several_zero_points(source: SourceModel, quantized: QuantizedModel) -> None:
    graph = quantized.torch_int8.graph
    padded = {"stem", "block1.depthwise", "block2.conv1", "block2.conv2", "block3.conv1"}
    nodes = torch_layers(quantized)
    zero_points = set()
    with qnnpack_engine(), torch.no_grad():
        values: dict[str, torch.Tensor] = {}

        class Recorder(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> object:
                values[n.name] = super().run_node(n)
                return values[n.name]

        Recorder(quantized.torch_int8).run(torch.from_numpy(source.test_inputs[:1]))
    for name in padded:
        (feeding,) = [node for node in graph.nodes if node is nodes[name].args[0]]
        zero_points.add(values[feeding.name].q_zero_point())
    assert 0 in zero_points
    assert len(zero_points) >= 3


def test_unknown_name_lists_the_zoo() -> None:
    with pytest.raises(InputError, match="zoo:digits-resnet"):
        zoo.load("zoo:digit-resnet")


def test_negative_seed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="seed -1"):
        zoo.load("zoo:digits-resnet", seed=-1, cache=tmp_path)
