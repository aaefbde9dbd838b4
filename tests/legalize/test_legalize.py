"""The legalized module computes what PyTorch's qnnpack kernels compute, and keeps what it must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from torch import nn
from tvm import ir, relax, tirx
from tvm.ir.expr import GenericConst

from accelsim.artifacts import Add, Conv2d
from accelsim.errors import ModelError
from accelsim.legalize import Legalized, legalize, legalize_module
from accelsim.legalize.form import decode, operator_name
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from tests.legalize.networks import (
    CASES,
    ClampWithTwoReaders,
    LogSoftmax,
    Residual,
    inputs,
    legalized_output,
    quantized,
    torch_output,
)
from tests.reference import qnnpack

PER_CHANNEL = (
    *("conv", "depthwise conv", "grouped conv", "flattened map"),
    *("conv over one axis in groups", "transposed conv", "linear of rows"),
)


def operators(legalized: Legalized) -> list[tuple[str, Any]]:
    """(operator, call) of each integer operator in order."""
    found = []
    for block in legalized.module["main"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, ir.Call) and str(value.op.name) == "relax.call_tir":
                op = operator_name(str(value.args[0].name_hint))
                if op is not None:
                    found.append((op, value))
    return found


def constants(call: Any) -> list[np.ndarray]:
    """The constant arguments of an operator's call."""
    fields = call.args[1].fields
    return [np.asarray(f.value.numpy()) for f in fields if isinstance(f, GenericConst)]


@pytest.mark.parametrize(
    ("case", "per_channel"),
    [*((case, False) for case in CASES), *((case, True) for case in PER_CHANNEL)],
)
def test_every_operator_equals_qnnpack_bit_for_bit(case: str, per_channel: bool) -> None:
    make, shape = CASES[case]
    model = quantized(make(), shape, per_channel=per_channel)
    legalized = legalize(model)
    assert [op for op in legalized.host_ops if not op.boundary] == []
    assert operators(legalized)
    x = inputs(shape, 11)
    np.testing.assert_array_equal(legalized_output(legalized.module, x), torch_output(model, x))


def test_weights_and_biases_stay_integers() -> None:
    legalized = legalize(quantized(Residual(), (1, 3, 8, 8)))
    convolutions = [call for op, call in operators(legalized) if op == "conv2d"]
    assert len(convolutions) == 3
    for call in convolutions:
        weight, bias, multiplier, parameters, _ = constants(call)
        assert (weight.dtype, bias.dtype) == (np.int8, np.int32)
        assert (multiplier.dtype, parameters.dtype) == (np.float32, np.int32)


def test_relu6_becomes_the_clamp_of_its_producer() -> None:
    make, shape = CASES["relu6"]
    legalized = legalize(quantized(make(), shape))
    assert [op for op, _ in operators(legalized)] == ["conv2d", "conv2d"]
    assert legalized.layers["1"] == ("0", "1")
    convolution = decode("conv2d", constants(operators(legalized)[0][1])).compute
    assert isinstance(convolution, Conv2d)
    assert convolution.requantize.clamp_min == convolution.requantize.zero_point


def test_clamp_of_a_tensor_with_two_readers_is_a_layer_of_its_own() -> None:
    legalized = legalize(quantized(ClampWithTwoReaders(), (1, 3, 7, 7)))
    assert [op for op, _ in operators(legalized)] == ["conv2d", "clip", "add"]


def test_sums_take_the_rule_of_the_model() -> None:
    model = quantized(Residual(), (1, 3, 8, 8))
    assert model.rounding == "qnnpack"
    for rule in ("qnnpack", "fp32"):
        legalized = legalize(replace(model, rounding=rule))
        (call,) = (call for op, call in operators(legalized) if op == "add")
        add = decode("add", constants(call)).compute
        assert isinstance(add, Add)
        assert (add.fixed is not None) == (rule == "qnnpack")


@pytest.mark.parametrize("rule", ["qnnpack", "fp32"])
@pytest.mark.parametrize(("a_ratio", "b_ratio"), [(0.5, 0.25), (0.5, 0.5), (0.75, 1.5), (0.7, 1.1)])
def test_every_sum_of_two_bytes_rounds_as_its_rule_says(
    a_ratio: float, b_ratio: float, rule: str
) -> None:
    """All pairs of operands; the first three ratios make many ties."""
    module = _sum_network(np.float32([0.3 * a_ratio, 0.3 * b_ratio, 0.3]))
    legalized = legalize_module(module, rounding=rule)
    assert [op for op, _ in operators(legalized)] == ["add"]
    grids = [g.reshape(1, 256, 16, 16) for g in np.meshgrid(range(256), range(256))]
    scales = np.float32([0.3 * a_ratio, 0.3 * b_ratio])
    reals = [(g - 77).astype(np.float32) * s for g, s in zip(grids, scales, strict=True)]
    machine = machine_of(legalized.module, UNOPTIMIZED)
    result = machine["main"](*[tvm.runtime.tensor(x) for x in reals])
    if rule == "qnnpack":
        tensors = [
            qnnpack.tensor(g.astype(np.uint8), s, 77) for g, s in zip(grids, scales, strict=True)
        ]
        expected = qnnpack.add(*tensors, np.float32(0.3), 90)
    else:
        total = (reals[0] + reals[1]) * (np.float32(1) / np.float32(0.3))
        expected = np.clip(np.rint(total) + 90, 0, 255)
    floats = (np.asarray(expected, np.int64) - 90).astype(np.float32) * np.float32(0.3)
    np.testing.assert_array_equal(result.numpy(), floats)


def test_unknown_operator_stays_on_the_host_with_a_reason() -> None:
    model = quantized(LogSoftmax(), (1, 3, 8, 8))
    legalized = legalize(model)
    left = [op for op in legalized.host_ops if not op.boundary]
    assert [(op.name, op.op) for op in left] == [("gate", "log_softmax")]
    assert "no integer form" in left[0].reason
    assert [op for op, _ in operators(legalized)] == ["conv2d", "conv2d"]


def test_user_names_stand_on_the_integer_operators() -> None:
    legalized = legalize(quantized(Residual(), (1, 3, 8, 8)))
    names = [str(call.span.source_name.name) for _, call in operators(legalized)]
    assert names == ["stem", "relu", "left", "relu_1", "right", "add"]


def test_possible_overflow_of_an_accumulator_keeps_the_layer_on_the_host() -> None:
    layer = nn.Linear(140_000, 2, bias=False)
    model = quantized(nn.Sequential(layer), (1, 140_000))
    weights = _fill_weights(model.qdq, 127)
    left = [op for op in legalize_module(weights).host_ops if not op.boundary]
    assert [(op.name, op.op) for op in left] == [("0", "matmul")]
    assert "int32 accumulator" in left[0].reason


def test_narrow_limits_of_an_int8_graph_become_clamp_limits() -> None:
    generator = np.random.default_rng(5)
    weight = generator.integers(-127, 128, (6, 4, 1, 1), dtype=np.int8)
    legalized = legalize_module(_narrow_network(weight))
    ((op, call),) = operators(legalized)
    convolution = decode(op, constants(call)).compute
    assert isinstance(convolution, Conv2d)
    requantize = convolution.requantize
    assert (requantize.clamp_min, requantize.clamp_max) == (-3, 100)
    x = generator.normal(0, 1, (1, 4, 5, 5)).astype(np.float32)
    steps = np.clip(np.rint(x * (np.float32(1) / np.float32(0.02))) + 7, -64, 63)
    sums = np.einsum("nchw,oc->nohw", steps - 7, weight[:, :, 0, 0].astype(np.float64))
    multiplier = (np.float32(0.01) * np.float32(0.02)) * (np.float32(1) / np.float32(0.05))
    levels = np.clip(np.rint(sums.astype(np.float32) * multiplier) - 3, -3, 100)
    expected = (levels + 3).astype(np.float32) * np.float32(0.05)
    np.testing.assert_array_equal(legalized_output(legalized.module, x), expected)


def test_dynamic_shape_is_an_error_that_names_the_tensor() -> None:
    builder = relax.BlockBuilder()
    batch = tirx.Var("n", "int64")
    x = relax.Var("image", relax.TensorType([batch, 3], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.relu(x))
        builder.emit_func_output(y)
    with pytest.raises(ModelError, match="'image' has the dynamic shape"):
        legalize_module(builder.get())


def test_sixteen_bit_activations_are_an_error_that_names_the_layer() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 3], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            scale, zero = relax.const(0.1, "float32"), relax.const(0, "int8")
            q = builder.emit(relax.op.quantize(x, scale, zero, 0, "int16"), "wide")
            y = builder.emit_output(relax.op.dequantize(q, scale, zero, 0))
        builder.emit_func_output(y)
    with pytest.raises(ModelError, match="'wide' is quantized to int16"):
        legalize_module(builder.get())


def _sum_network(scales: np.ndarray) -> Any:
    """quantize twice with zero point 77, add, quantize with zero point 90, all uint8."""
    builder = relax.BlockBuilder()
    parameters = [relax.Var(n, relax.TensorType([1, 256, 16, 16], "float32")) for n in "ab"]
    with builder.function("main", parameters):
        with builder.dataflow():
            reals = []
            for parameter, scale in zip(parameters, scales[:2], strict=True):
                level = relax.const(scale, "float32"), relax.const(77, "int32")
                q = builder.emit(relax.op.quantize(parameter, *level, 0, "uint8"))
                reals.append(builder.emit(relax.op.dequantize(q, *level, 0)))
            level = relax.const(scales[2], "float32"), relax.const(90, "int32")
            total = builder.emit(relax.op.add(*reals))
            q = builder.emit(relax.op.quantize(total, *level, 0, "uint8"))
            result = builder.emit_output(relax.op.dequantize(q, *level, 0))
        builder.emit_func_output(result)
    return builder.get()


def _narrow_network(weight: np.ndarray) -> Any:
    """quantize to -64 … 63, 1×1 convolution, ReLU, quantize to -128 … 100, all int8."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 4, 5, 5], "float32"))

    def parameters(scale: float, zero_point: int) -> tuple[Any, Any]:
        return relax.const(scale, "float32"), relax.const(zero_point, "int32")

    with builder.function("main", [x]):
        with builder.dataflow():
            q = builder.emit(relax.op.quantize(x, *parameters(0.02, 7), 0, "int8"))
            q = builder.emit(relax.op.clip(q, -64, 63))
            d = builder.emit(relax.op.dequantize(q, *parameters(0.02, 7), 0))
            w = builder.emit(relax.op.dequantize(relax.const(weight), *parameters(0.01, 0), 0))
            y = builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(d, w))))
            q = builder.emit(relax.op.quantize(y, *parameters(0.05, -3), 0, "int8"))
            q = builder.emit(relax.op.clip(q, -128, 100))
            result = builder.emit_output(relax.op.dequantize(q, *parameters(0.05, -3), 0))
        builder.emit_func_output(result)
    return builder.get()


def _fill_weights(module: Any, value: int) -> Any:
    """`module` with every int8 matrix replaced by one of `value`."""
    main = module["main"]
    bindings = []
    for binding in main.body.blocks[0].bindings:
        call = binding.value
        if isinstance(call, ir.Call):
            args = [
                relax.const(np.full_like(argument.value.numpy(), value))
                if isinstance(argument, GenericConst) and argument.value.numpy().ndim == 2
                else argument
                for argument in call.args
            ]
            call = ir.Call(call.op, args, call.attrs, call.ty_args, call.span)
        bindings.append(relax.VarBinding(binding.var, call))
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], main.body.body)
    function = relax.Function(main.params, body, main.ty.ret, True, main.attrs)
    return relax.transform.Normalize()(ir.IRModule({"main": function}))
