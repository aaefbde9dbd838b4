"""Layers without an integer definition: the module's own floats between two quantizes."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.errors import InputError, ModelError
from accelsim.reference import Reference
from accelsim.reference.graph import read_network
from accelsim.reference.integer import build_network
from tests.reference import qnnpack
from tests.reference.qdq import QdqModule, op
from tests.reference.single import Input, layer

ONE = np.float32(1)
ALL = np.arange(256, dtype=np.uint8).reshape(1, 256)


def squares(values: np.ndarray, source: np.float32, target: np.float32) -> np.ndarray:
    """rint(((x - 9)·source)² · (1/target)) + 3, stored, every operation in float32."""
    real = (values.astype(np.float32) - np.float32(9)) * source
    return np.clip(np.rint(real * real * (ONE / target)) + 3, 0, 255).astype(np.uint8)


def test_layer_without_integer_definition_is_its_float_code_between_two_quantizes() -> None:
    """Scales that are powers of two make a tie of every eighth value."""
    source, target = np.float32(0.125), np.float32(8)
    module = QdqModule(x0=(1, 256))
    x = module.dequantize(module.quantize(module.inputs[0], "in0", source, 9))
    out = module.quantize(module.emit(op.multiply(x, x)), "square", target, 3)
    run = build_network(read_network(module.module(module.dequantize(out)), ("square",)))
    (only,) = run.layers
    assert (only.kind, only.op, only.inputs, only.macs) == ("host", "multiply", ("in0",), 0)
    actual = run.run_layer("square", (qnnpack.nhwc(ALL),))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(squares(ALL, source, target)))


def test_layer_after_a_host_layer_keeps_its_integer_definition() -> None:
    module = QdqModule(x=(1, 256))
    q = module.quantize(module.inputs[0], "in", np.float32(0.1), 9)
    real = module.dequantize(q)
    gate = module.quantize(module.emit(op.multiply(real, real)), "gate", np.float32(3), 3)
    clipped = module.emit(op.clip(module.dequantize(gate), 0.0, 6.0))
    out = module.quantize(clipped, "clip", np.float32(3), 3)
    run = build_network(read_network(module.module(module.dequantize(out)), ("gate",)))
    values = run.run({"in": qnnpack.nhwc(ALL)})
    squared = squares(ALL, np.float32(0.1), np.float32(3))
    assert [one.kind for one in run.layers] == ["host", "integer"]
    np.testing.assert_array_equal(values["gate"], qnnpack.nhwc(squared))
    np.testing.assert_array_equal(values["clip"], qnnpack.nhwc(np.clip(squared, 3, 5)))


def test_layer_named_as_the_hosts_is_computed_in_floats() -> None:
    module = QdqModule(x=(1, 256))
    q = module.quantize(module.inputs[0], "in", np.float32(0.25), 9)
    out = module.quantize(module.emit(op.nn.relu(module.dequantize(q))), "relu", np.float32(1), 3)
    built = module.module(module.dequantize(out))
    networks = [read_network(built, host) for host in ((), ("relu",))]
    assert [one.layers[0].kind for one in networks] == ["integer", "host"]
    results = [build_network(one).run({"in": qnnpack.nhwc(ALL)})["relu"] for one in networks]
    np.testing.assert_array_equal(*results)


def test_three_axes_and_several_results_stay_on_the_host() -> None:
    shape, scale = (2, 4, 6), np.float32(0.5)
    run = layer(
        "half",
        [Input(shape, scale, 9)],
        lambda module, x: module.emit(_second(module, module.emit(op.split(x, 2, 1)))),
        scale,
        9,
    )
    values = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    inputs = run.quantize_inputs({"x0": (values.astype(np.float32) - 9) * scale})
    assert inputs["in0"].shape == (2, 1, 4, 6)
    result = run.run(inputs)["half"]
    assert result.shape == (2, 1, 2, 6)
    np.testing.assert_array_equal(result[:, 0].astype(int) + 128, values[:, 2:])


def _second(module: QdqModule, pair: object) -> object:
    from tvm import relax

    return relax.TupleGetItem(pair, 1)


def prepared() -> Reference:
    """A square of the model's input before it is quantized, then one after all quantizes."""
    module = QdqModule(x=(1, 8))
    value = module.inputs[0]
    q = module.quantize(module.emit(op.multiply(value, value)), "in", np.float32(0.5), 0)
    out = module.quantize(module.emit(op.nn.relu(module.dequantize(q))), "relu", np.float32(0.5), 0)
    real = module.dequantize(out)
    return build_network(read_network(module.module(module.emit(op.multiply(real, real)))))


def test_float_operators_at_both_ends_are_part_of_the_reference() -> None:
    run, x = prepared(), np.arange(8, dtype=np.float32).reshape(1, 8)
    inputs = run.quantize_inputs({"x": x})
    (result,) = run.dequantize_outputs(run.run(inputs))
    np.testing.assert_array_equal(inputs["in"].reshape(-1).astype(int) + 128, 2 * x[0] ** 2)
    np.testing.assert_array_equal(result, x**4)


def test_bad_input_of_a_float_operator_is_refused() -> None:
    run = prepared()
    for given in ({}, {"x": np.zeros((1, 9))}, {"x": np.full((1, 8), np.nan)}):
        with pytest.raises(InputError, match="input 'x'"):
            run.quantize_inputs(given)


def gated() -> Reference:
    """A quantized input times the same input in float32, quantized, times the input again."""
    module = QdqModule(x=(1, 4))
    (x,) = module.inputs
    q = module.quantize(x, "in", np.float32(1), 0)
    value = module.emit(op.multiply(module.dequantize(q), x))
    out = module.quantize(value, "gate", np.float32(0.5), 0)
    result = module.emit(op.multiply(module.dequantize(out), x))
    return build_network(read_network(module.module(result)))


def test_float_operators_may_read_the_inputs_of_the_model_beside_quantized_tensors() -> None:
    run, x = gated(), np.array([[0.6, 1.2, 2.9, 4.0]], np.float32)
    values = run.run(run.quantize_inputs({"x": x}), {"x": x})
    stored = np.rint(2 * np.rint(x) * x)
    np.testing.assert_array_equal(values["gate"].reshape(-1).astype(int) + 128, stored[0])
    (result,) = run.dequantize_outputs(values, {"x": x})
    np.testing.assert_array_equal(result, np.float32(0.5) * stored.astype(np.float32) * x)


def test_float_operators_that_lack_an_input_of_the_model_say_so() -> None:
    run = gated()
    with pytest.raises(InputError, match="input 'x' is missing"):
        run.run({"in": np.zeros((1, 1, 1, 4), np.int8)})


def test_a_model_of_constants_alone_has_no_layer_to_verify() -> None:
    module = QdqModule(x=(1, 4))
    value = module.emit(op.sin(module.weight(np.zeros((1, 4)), np.ones(1), np.zeros(1))))
    out = module.quantize(value, "fixed", np.float32(0.1), 0)
    with pytest.raises(ModelError, match=r"no layer of the model is quantized.*: sin"):
        read_network(module.module(module.dequantize(out)))
