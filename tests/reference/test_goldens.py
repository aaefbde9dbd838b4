"""Golden sets over a whole network: integer reference, PyTorch and TVM floats."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from accelsim import reference
from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import InputError, ModelError, ToolError
from accelsim.quantize import quantize
from accelsim.reference import selfcheck

SHAPE = (2, 3, 9, 8)


class Small(nn.Module):
    """Every operator that the integer reference knows."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 10, 3, padding=1), nn.BatchNorm2d(10), nn.ReLU())
        self.depthwise = nn.Conv2d(10, 10, 3, stride=1, padding=1, groups=10)
        self.relu6 = nn.ReLU6()
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(10, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = torch.relu(x + self.relu6(self.depthwise(x)))
        x = self.pool(x)
        x = self.mean(x + x)
        return self.fc(torch.flatten(x, 1))  # type: ignore[no-any-return]


def batch(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def quantized() -> QuantizedModel:
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    source = SourceModel(
        name="small",
        float_module=Small().eval(),
        example_inputs=(batch(rng),),
        input_names=("x",),
        calibration=tuple(batch(rng) for _ in range(3)),
    )
    return quantize(source, per_channel=True)


@pytest.fixture(scope="module")
def integer(quantized: QuantizedModel) -> reference.Reference:
    return reference.build(quantized)


@pytest.fixture(scope="module")
def pytorch(quantized: QuantizedModel, integer: reference.Reference) -> reference.TorchGolden:
    return reference.build_torch(quantized, integer.network)


@pytest.fixture
def image(seed: int) -> np.ndarray:
    return batch(np.random.default_rng(seed))


def test_layers_carry_the_users_names_and_fused_members(
    quantized: QuantizedModel, integer: reference.Reference
) -> None:
    assert tuple(layer.name for layer in integer.layers) == quantized.layer_names
    assert integer.layers[0].members == ("stem.0", "stem.1", "stem.2")
    assert [layer.op for layer in integer.layers] == [
        "conv2d",
        "depthwise_conv2d",
        "clip",
        "add",
        "max_pool2d",
        "add",
        "avg_pool2d",
        "reshape",
        "linear",
    ]
    assert integer.layers[0].macs == 2 * 9 * 8 * 10 * 27


def test_small_network_is_not_optimized_and_computes_what_an_optimized_one_does(
    quantized: QuantizedModel,
    integer: reference.Reference,
    image: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("accelsim.reference.integer.SMALL", 1)
    optimized = reference.build(quantized)
    assert (integer.optimization, optimized.optimization) == (0, 3)
    inputs = integer.quantize_inputs({"x": image})
    values, others = integer.run(inputs), optimized.run(inputs)
    assert set(values) == set(others) and len(values) > len(integer.layers)
    for name, value in values.items():
        np.testing.assert_array_equal(value, others[name], name)


def test_whole_network_equals_pytorch_in_both_modes(
    integer: reference.Reference, pytorch: reference.TorchGolden, image: np.ndarray
) -> None:
    values = integer.run(integer.quantize_inputs({"x": image}))
    for goldens in (pytorch.isolated(values), pytorch.accumulated({"x": image})):
        assert not goldens.missing and len(goldens.tensors) == len(integer.layers)
        for name, golden in goldens.tensors.items():
            np.testing.assert_array_equal(values[name], golden, err_msg=name)


def test_dequantized_output_is_what_pytorch_returns(
    integer: reference.Reference, quantized: QuantizedModel, image: np.ndarray
) -> None:
    values = integer.run(integer.quantize_inputs({"x": image}))
    network: Callable[..., Any] = quantized.torch_int8  # type: ignore[assignment]
    from accelsim.quantize import qnnpack_engine

    with qnnpack_engine(), torch.no_grad():
        expected = network(torch.from_numpy(image)).numpy()
    np.testing.assert_array_equal(integer.dequantize_outputs(values)[0], expected)


def test_isolated_equals_accumulated_on_the_reference_own_tensors(
    integer: reference.Reference, image: np.ndarray
) -> None:
    inputs = integer.quantize_inputs({"x": image})
    accumulated, isolated = integer.accumulated(inputs), integer.isolated(integer.run(inputs))
    assert accumulated.gate and isolated.gate
    assert list(accumulated.tensors) == [layer.output for layer in integer.layers]
    for name, golden in accumulated.tensors.items():
        np.testing.assert_array_equal(isolated.tensors[name], golden)


def test_tvm_floats_come_within_three_steps_and_gate_nothing(
    quantized: QuantizedModel, integer: reference.Reference, image: np.ndarray
) -> None:
    values = integer.run(integer.quantize_inputs({"x": image}))
    goldens = reference.build_tvm(quantized, integer.network).accumulated({"x": image})
    assert not goldens.gate and list(goldens.tensors) == list(quantized.layer_names)
    for name, golden in goldens.tensors.items():
        assert np.abs(golden.astype(int) - values[name]).max() <= 3, name


def test_kernels_built_from_the_qdq_module_equal_those_of_the_pytorch_network(
    quantized: QuantizedModel, integer: reference.Reference, image: np.ndarray
) -> None:
    from dataclasses import replace

    theirs = reference.build_torch(quantized, integer.network)
    built = reference.build_torch(replace(quantized, torch_int8=None), integer.network)
    values = integer.run(integer.quantize_inputs({"x": image}))
    for mode in ("isolated", "accumulated"):
        given = values if mode == "isolated" else {"x": image}
        expected, goldens = getattr(theirs, mode)(given), getattr(built, mode)(given)
        assert set(expected.tensors) <= set(goldens.tensors) and not goldens.missing
        for name, golden in expected.tensors.items():
            np.testing.assert_array_equal(goldens.tensors[name], golden, err_msg=name)


def test_a_layer_that_no_pytorch_kernel_has_is_missing_with_a_reason(
    quantized: QuantizedModel, integer: reference.Reference
) -> None:
    from dataclasses import replace

    network = integer.network
    layers = [
        replace(layer, core=replace(layer.core, padding=(1, 0, 0, 0)))
        if layer.name == "depthwise"
        else layer
        for layer in network.layers
    ]
    changed = replace(network, layers=tuple(layers))
    golden = reference.build_torch(replace(quantized, torch_int8=None), changed)
    assert list(golden.missing()) == ["depthwise"]
    with pytest.raises(
        ModelError, match="'depthwise' has no PyTorch golden: PyTorch has no single"
    ):
        golden.run_layer("depthwise", ())


def test_changed_weight_of_pytorch_is_seen_isolated_in_that_layer_only(
    quantized: QuantizedModel, integer: reference.Reference, image: np.ndarray
) -> None:
    from dataclasses import replace

    changed = copy.deepcopy(quantized.torch_int8)
    assert changed is not None
    changed.depthwise.zero_point = int(changed.depthwise.zero_point) ^ 1
    golden = reference.build_torch(replace(quantized, torch_int8=changed), integer.network)
    values = integer.run(integer.quantize_inputs({"x": image}))
    tensors = golden.isolated(values).tensors
    wrong = [name for name, value in tensors.items() if np.any(value != values[name])]
    assert wrong == ["depthwise"]


def test_constant_goldens_are_named() -> None:
    ramp, flat = np.arange(4, dtype=np.int8), np.full(4, 7, np.int8)
    goldens = reference.GoldenSet(
        "integer", "isolated", True, {"a": ramp, "b": flat, "c": ramp[:0]}
    )
    assert reference.constant_goldens(goldens) == ("b", "c")


def test_inputs_of_wrong_shape_or_dtype_are_refused(integer: reference.Reference) -> None:
    with pytest.raises(InputError, match="shape"):
        integer.quantize_inputs({"x": np.zeros((1, 3, 9, 8), np.float32)})
    with pytest.raises(InputError, match="missing"):
        integer.quantize_inputs({})
    with pytest.raises(InputError, match=r"'stem\.0' takes int8"):
        integer.run_layer("stem.0", (np.zeros((2, 9, 8, 3), np.uint8),))


def test_qnnpack_self_check_compares_every_kernel_and_restores_the_engine() -> None:
    before = torch.backends.quantized.engine
    assert selfcheck.check_qnnpack(seed=5) > 1000
    assert torch.backends.quantized.engine == before


def test_deviating_engine_is_refused_by_kernel_name(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = selfcheck._linear
    monkeypatch.setattr(selfcheck, "_linear", lambda rng: (honest(rng)[0] ^ 1, honest(rng)[1]))
    with pytest.raises(ToolError, match="qnnpack linear deviates"):
        selfcheck.check_qnnpack()


class Scaled(nn.Module):
    """A convolution behind an operator that PyTorch's int8 network keeps in floats."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x * 0.5)  # type: ignore[no-any-return]


def test_a_layer_behind_a_float_operator_runs_its_own_torch_kernel() -> None:
    torch.manual_seed(5)
    batches = [batch(np.random.default_rng(seed)) for seed in range(3)]
    source = SourceModel("scaled", Scaled().eval(), (batches[0],), ("x",), tuple(batches))
    model = quantize(source)
    built = reference.build(model)
    golden = reference.build_torch(model, built.network)
    layer = next(one for one in built.layers if one.op == "conv2d")
    values = built.run(built.quantize_inputs({model.input_names[0]: batches[1]}))
    inputs = tuple(values[name] for name in layer.inputs)
    np.testing.assert_array_equal(golden.run_layer(layer.name, inputs), values[layer.output])
