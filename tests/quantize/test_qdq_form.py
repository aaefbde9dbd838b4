"""Facts about the QDQ module that compiler and reference rely on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from tvm import relax

from accelsim.artifacts import QuantizedModel
from accelsim.quantize import layer_members, quantize, span_name
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from tests.quantize.networks import CalledTwice, LogSoftmaxTail, images, residual, source_of

LAYERS = (
    "stem.0",
    "one.conv",
    "one.relu6",
    "one.project",
    "one/add",
    "two.conv",
    "two.relu6",
    "two.project",
    "two/add",
    "add",
    "pool",
    "adaptive_avg_pool2d",
    "flatten",
    "fc",
)


@pytest.fixture(scope="module", params=[False, True], ids=["per_tensor", "per_channel"])
def model(request: pytest.FixtureRequest) -> QuantizedModel:
    return quantize(residual(), per_channel=request.param)


def calls(model: QuantizedModel, operator: str = "") -> list[Any]:
    """Calls of `main` in order, all or those of one operator."""
    (block,) = model.qdq["main"].body.blocks
    values = [binding.value for binding in block.bindings]
    found = [value for value in values if isinstance(value, relax.Call)]
    return [call for call in found if not operator or call.op.name == operator]


def array(constant: Any) -> np.ndarray:
    """Value of a Relax constant."""
    return constant.value.numpy()


def is_constant(value: Any) -> bool:
    """Whether a Relax expression is a constant."""
    return isinstance(value, tvm.ir.GenericConst)


def bound(model: QuantizedModel) -> dict[Any, Any]:
    """Variable → what it is bound to."""
    (block,) = model.qdq["main"].body.blocks
    return {binding.var: binding.value for binding in block.bindings}


def test_layers_have_the_users_names_in_execution_order(model: QuantizedModel) -> None:
    assert model.layer_names == LAYERS


def test_every_call_carries_a_layer_name(model: QuantizedModel) -> None:
    known = {*LAYERS, "image", "fc/dequantize"}
    assert {span_name(call) for call in calls(model)} == known


def test_quantize_carries_the_name_of_the_layer_it_ends(model: QuantizedModel) -> None:
    assert tuple(span_name(call) for call in calls(model, "relax.quantize")) == ("image", *LAYERS)


def test_every_dequantize_has_one_use(model: QuantizedModel) -> None:
    uses: Counter[Any] = Counter()
    values = bound(model)
    for value in values.values():
        arguments = value.args if isinstance(value, relax.Call) else [value]
        uses.update(argument for argument in arguments if isinstance(argument, relax.Var))
    found = [
        v
        for v in values
        if getattr(getattr(values[v], "op", None), "name", "") == "relax.dequantize"
    ]
    assert len(found) > len(LAYERS)
    assert all(uses[variable] == 1 for variable in found)


def test_sum_of_a_tensor_with_itself_has_two_dequantizes(model: QuantizedModel) -> None:
    (add,) = [call for call in calls(model, "relax.add") if span_name(call) == "add"]
    first, second = (bound(model)[argument] for argument in add.args)
    assert not add.args[0].same_as(add.args[1])
    assert first.args[0].same_as(second.args[0])


def test_weights_are_int8_constants_behind_a_dequantize(model: QuantizedModel) -> None:
    values = bound(model)
    for call in calls(model, "relax.nn.conv2d"):
        weight = values[call.args[1]]
        assert weight.op.name == "relax.dequantize"
        assert array(weight.args[0]).dtype == np.int8
    (matmul,) = calls(model, "relax.matmul")
    transposed = values[matmul.args[1]]
    assert transposed.op.name == "relax.permute_dims"
    assert array(values[transposed.args[0]].args[0]).dtype == np.int8


def test_weights_equal_those_of_pytorchs_int8_modules(model: QuantizedModel) -> None:
    constants = {
        span_name(call): array(call.args[0])
        for call in calls(model, "relax.dequantize")
        if is_constant(call.args[0])
    }
    for name, values in constants.items():
        packed = model.torch_int8.get_submodule(name).weight()
        assert np.array_equal(values, packed.int_repr().numpy()), name


def test_qparams_are_float32_and_int32_constants(model: QuantizedModel) -> None:
    for call in [*calls(model, "relax.quantize"), *calls(model, "relax.dequantize")]:
        scale, zero_point = array(call.args[1]), array(call.args[2])
        assert scale.dtype == np.float32
        assert zero_point.dtype == np.int32
        assert scale.shape == zero_point.shape
        assert scale.ndim == 0 or is_constant(call.args[0])


def test_activations_are_uint8_per_tensor(model: QuantizedModel) -> None:
    for call in calls(model, "relax.quantize"):
        assert str(call.attrs.out_dtype) == "uint8"
        assert array(call.args[1]).shape == ()


def test_per_channel_weights_have_one_scale_for_each_output_channel() -> None:
    model = quantize(residual(), per_channel=True)
    for call in calls(model, "relax.dequantize"):
        if is_constant(call.args[0]):
            assert array(call.args[1]).shape == (array(call.args[0]).shape[0],)
            assert int(call.attrs.axis) == 0


def test_bias_is_a_float_constant_of_broadcastable_shape(model: QuantizedModel) -> None:
    shapes = {
        span_name(call): array(call.args[1]).shape
        for call in calls(model, "relax.add")
        if is_constant(call.args[1])
    }
    assert shapes["stem.0"] == (1, 12, 1, 1)
    assert shapes["fc"] == (5,)
    assert "one.project" not in shapes  # no bias in the module, and no batch norm to give one


def test_members_list_what_was_fused(model: QuantizedModel) -> None:
    members = layer_members(model.qdq)
    assert tuple(members) and set(members) == set(LAYERS)
    assert members["stem.0"] == ("stem.0", "stem.1", "stem.2")
    assert members["one.conv"] == ("one.conv", "one.bn")
    assert members["add"] == ("add", "relu")
    assert members["one.relu6"] == ("one.relu6",)


def test_relu6_is_a_clip_between_equal_qparams(model: QuantizedModel) -> None:
    clips = calls(model, "relax.clip")
    assert [span_name(call) for call in clips] == ["one.relu6", "two.relu6"]
    for clip in clips:
        assert [float(limit.value) for limit in clip.args[1:]] == [0.0, 6.0]
        before = bound(model)[clip.args[0]]
        (after,) = [c for c in calls(model, "relax.quantize") if span_name(c) == span_name(clip)]
        assert array(before.args[1]) == array(after.args[1])
        assert array(before.args[2]) == array(after.args[2])


def test_module_computes_what_the_exported_program_does(model: QuantizedModel) -> None:
    machine = machine_of(model.qdq, UNOPTIMIZED)
    scale = float(array(calls(model, "relax.quantize")[-1].args[1]))
    for seed in range(4):
        inputs = images(1, seed)
        actual = machine["main"](tvm.runtime.tensor(inputs)).numpy()
        expected = model.exported.module()(torch.from_numpy(inputs)).detach().numpy()
        assert np.abs(actual - expected).max() <= 1.01 * scale


def test_spans_and_members_survive_fusion(model: QuantizedModel) -> None:
    fused = relax.transform.FuseOps()(relax.transform.LegalizeOps()(model.qdq))
    assert layer_members(fused) == layer_members(model.qdq)


def test_second_call_of_a_module_is_a_layer_of_its_own() -> None:
    model = quantize(source_of(CalledTwice(), images(2)))
    assert model.layer_names == ("conv", "conv_1")
    assert layer_members(model.qdq)["conv_1"] == ("conv_1", "relu")
    weights = [
        array(call.args[0])
        for call in calls(model, "relax.dequantize")
        if is_constant(call.args[0])
    ]
    assert np.array_equal(*weights)


def test_float_tail_is_a_layer_without_quantize() -> None:
    inputs = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
    model = quantize(source_of(LogSoftmaxTail(), inputs))
    assert model.layer_names == ("fc", "log_softmax")
    assert [span_name(call) for call in calls(model, "relax.quantize")] == ["x", "fc"]
    assert span_name(calls(model)[-1]) == "log_softmax"


def test_shapes_and_dtypes_of_inputs_are_reported(model: QuantizedModel) -> None:
    assert model.input_names == ("image",)
    assert model.input_shapes == ((1, 3, 8, 8),)
    assert model.input_dtypes == ("float32",)
