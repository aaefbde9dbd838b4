"""Operators are found by folder and by registration, asked in a fixed order, and bundled whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from accelsim.errors import InputError
from accelsim.legalize import Operator, legalize_module, register
from accelsim.legalize.form import operator_name
from accelsim.legalize.integer_op import Rejection
from accelsim.legalize.operators import operator_named, operators, operators_at
from accelsim.ops.modules import Builder
from accelsim.partition import partition, regions_of
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from tests.legalize.team import CONCAT, RAISED, Raised, SideBySide, network, registered


def run(module: Any, *inputs: np.ndarray) -> np.ndarray:
    """What a module gives on TVM's own CPU code."""
    machine = machine_of(module, UNOPTIMIZED)
    return np.asarray(machine["main"](*map(tvm.runtime.tensor, inputs)).numpy())


def reals(count: int) -> list[np.ndarray]:
    """Inputs of `network` on its levels, some beyond int8."""
    generator = np.random.default_rng(count)
    levels = [generator.integers(-150, 150, (1, 3, 2, 2)) for _ in range(count)]
    return [level.astype(np.float32) * np.float32(0.5) for level in levels]


def test_every_operator_is_found_with_names_of_its_own() -> None:
    names = [op for operator in operators() for op in operator.ops]
    assert len(names) == len(set(names))
    assert {"conv2d", "depthwise_conv2d", "linear", "add", "max_pool2d", "avg_pool2d"} <= {*names}
    assert {"requantize", "clip", "reshape"} <= {*names}


def test_callee_names_are_told_apart_from_other_functions() -> None:
    assert operator_name("accelsim_conv2d") == operator_name("accelsim_conv2d12") == "conv2d"
    assert operator_name("accelsim_add_3") == "add"
    for other in ("accelsim_unknown", "conv2d", "quantize_to_int8", "accelsim_conv2d_fused"):
        assert operator_name(other) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ops": ("add",)}, "'add' exists already"),
        ({"ops": ("shift8",)}, "'shift8' must be letters"),
        ({"ops": ("a-b",)}, "'a-b' must be letters"),
        ({"ops": ("",)}, "'' must be letters"),
        ({"ops": ()}, "at least one name"),
        ({"starts": ()}, "at least one name"),
    ],
)
def test_unusable_names_are_refused(changes: dict[str, Any], message: str) -> None:
    with registered(), pytest.raises(InputError, match=message):
        register(replace(CONCAT, **changes))


def test_operator_is_not_registered_twice() -> None:
    with registered(CONCAT), pytest.raises(InputError, match="'side_by_side' exists already"):
        register(CONCAT)
    assert operator_named("side_by_side") is None


@pytest.mark.parametrize("inputs", [2, 3, 5])
def test_registered_operator_with_any_number_of_inputs_is_one_layer(inputs: int) -> None:
    with registered(CONCAT):
        legalized = legalize_module(network(inputs))
        (region,) = regions_of(partition(legalized).merged, legalized.layers, {})
        (layer,) = region.layers
        assert layer.op == "side_by_side"
        assert layer.compute == SideBySide(tuple(range(0, 3 * inputs, 3)))
        assert layer.inputs == region.inputs and len(set(layer.inputs)) == inputs
        assert region.tensors[layer.output].shape == (1, 2, 2, 3 * inputs)
        values = reals(inputs)
        result = run(legalized.module, *values)
    clipped = [np.clip(value, -66, 61.5) for value in values]
    np.testing.assert_array_equal(result, np.concatenate(clipped, 1))


def test_constant_operand_travels_with_the_operator() -> None:
    constant = np.int8([-9, 4, 40])
    with registered(RAISED):
        legalized = legalize_module(network(1, constant))
        (region,) = regions_of(partition(legalized).merged, legalized.layers, {})
        compute = region.layers[0].compute
        assert isinstance(compute, Raised)
        np.testing.assert_array_equal(compute.constant, [-13, 0, 36])
        (x,) = reals(1)
        result = run(legalized.module, x)
    raised = np.clip(x, -66, 61.5) + (constant - 4).reshape(1, 3, 1, 1) * np.float32(0.5)
    np.testing.assert_array_equal(result, np.clip(raised, -66, 61.5))


def test_calls_of_different_lengths_are_all_matched() -> None:
    with registered(CONCAT, RAISED):
        legalized = legalize_module(network(4, np.arange(12).astype(np.int8)))
        (region,) = regions_of(partition(legalized).merged, legalized.layers, {})
    assert [layer.op for layer in region.layers] == ["side_by_side", "raised"]


def test_registered_operators_are_asked_first_and_rejections_yield() -> None:
    def refuse(frame: Any, node: Any) -> Rejection:
        return Rejection("of a whim")

    whim = Operator(("whim",), ("relax.add", "relax.concat"), None, refuse, RAISED.expression)
    with registered(whim, CONCAT):
        assert operators_at("relax.add")[0] is whim
        legalized = legalize_module(network(2, np.arange(6).astype(np.int8)))
    left = {op.op: op.reason for op in legalized.host_ops if not op.boundary}
    assert left == {}


def test_tensor_of_a_rank_without_layout_keeps_its_operator_on_the_host() -> None:
    with registered(CONCAT):
        legalized = legalize_module(network(2, shape=(1, 3, 2, 2, 2)))
    left = {op.op: op.reason for op in legalized.host_ops if not op.boundary}
    assert left == {"concat": "it has a tensor of rank 5, which the NPU lacks"}


def test_island_that_no_operator_knows_names_what_is_in_the_way() -> None:
    build = Builder()
    scale = np.float32(0.1)
    source = build.requantized(build.input("x", (1, 4)), "x", scale, 128)
    ordered = build.emit(relax.op.sort(source), "ordered")
    result = build.requantized(ordered, "ordered", scale, 128)
    legalized = legalize_module(build.module([result]))
    left = {op.op: op.reason for op in legalized.host_ops if not op.boundary}
    assert left == {"sort": "sort has no integer form on the NPU"}


def chain(*operators: Any) -> dict[str, str]:
    """Reasons of the layers of one island, each operator behind the one before."""
    build = Builder()
    scale = np.float32(0.1)
    value = build.requantized(build.input("x", (1, 4, 3, 3)), "x", scale, 128)
    for operator in operators:
        value = operator(build, value)
    legalized = legalize_module(build.module([build.requantized(value, "island", scale, 128)]))
    return {op.name: op.reason for op in legalized.host_ops if not op.boundary}


def plus_mean(build: Builder, value: Any) -> Any:
    """A value and the mean of its pixels."""
    mean = build.emit(relax.op.mean(value, axis=[2, 3], keepdims=True), "island")
    return build.emit(relax.op.add(value, mean), "island")


def sine(build: Builder, value: Any) -> Any:
    """What a table has, of one quantized tensor."""
    return build.emit(relax.op.sin(value), "island")


def softmax(build: Builder, value: Any) -> Any:
    """Over the channels."""
    return build.emit(relax.op.nn.softmax(value, axis=1), "island")


def running_sum(build: Builder, value: Any) -> Any:
    """Which no operator has."""
    return build.emit(relax.op.cumsum(value, axis=1), "island")


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        (
            (plus_mean, sine),
            "no quantize stands between its mean, add and sin; the NPU runs one operator at a time",
        ),
        (
            (softmax, plus_mean),
            "no quantize stands between its softmax, mean and add; the NPU runs one operator at a "
            "time",
        ),
        (
            (softmax, softmax),
            "no quantize stands between its 2 operators softmax; the NPU runs one operator at a "
            "time",
        ),
        ((running_sum, plus_mean, sine), "cumsum has no integer form on the NPU"),
        ((sine, plus_mean, running_sum), "cumsum has no integer form on the NPU"),
    ],
)
def test_reason_of_several_operators_names_what_is_in_the_way(
    operators: tuple[Any, ...], reason: str
) -> None:
    assert chain(*operators) == {"island": reason}


def test_reason_of_what_starts_from_an_input_names_the_input() -> None:
    build = Builder()
    scale = np.float32(0.1)
    tokens, table = build.input("tokens", (1, 4), "int64"), np.ones((5, 8), np.float32)
    chosen = relax.op.take(relax.const(table), tokens, axis=0)
    found = build.emit(relax.op.nn.softmax(build.emit(chosen, "embedding")), "embedding")
    module = build.module([build.requantized(found, "embedding", scale, 128)])
    reasons = {op.name: op.reason for op in legalize_module(module).host_ops if not op.boundary}
    said = "it computes from the model's input 'tokens', which is not quantized"
    assert reasons == {"embedding": said}
