"""Scheduled and emitted layers, run on the simulator, equal an untiled NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelsim.artifacts import Launch, Program, Region
from accelsim.emit import compile_region, isolate, launch_memory, pack, read_tensor
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.encoding import decode
from tests.schedule import layers, oracle

EDGE8, BASE16, WIDE32 = CONFIGS.values()


def run(program: Program, tensors: dict[str, np.ndarray], presets: tuple[int, ...] = ()) -> dict:
    result = Simulator(program.config).run(
        Launch(program, launch_memory(program, tensors), presets)
    )
    assert result.error_code == 0
    return dict(result.dram)


def assert_stored(program: Program, memory: dict, name: str, golden: np.ndarray) -> None:
    """A tensor in DRAM equals the golden one, and its pad lanes are 0."""
    np.testing.assert_array_equal(read_tensor(program, memory, name), golden)
    extent, wanted = program.tensors[name], pack(golden, program.config.lanes)
    start = extent.offset_bytes
    np.testing.assert_array_equal(memory[extent.base][start : start + wanted.size], wanted)


def check(
    region: Region,
    config: Config,
    seed: int = 1,
    few: bool = False,
    inputs: dict[str, np.ndarray] | None = None,
) -> Program:
    """Every tensor equals the oracle, in the whole program and layer by layer.

    Outputs that are all the same prove little; `few` allows them where there is one element.
    """
    rng = np.random.default_rng(seed)
    if inputs is None:
        inputs = {n: layers.random_input(rng, region.tensors[n].shape) for n in region.inputs}
    expected = oracle.run(region, inputs)
    program = compile_region(region, config)
    memory = run(program, inputs)
    for index, layer in enumerate(region.layers):
        golden = expected[layer.output]
        assert_stored(program, memory, layer.output, golden)
        cut, presets = isolate(program, index)
        alone = run(cut, {name: expected[name] for name in layer.inputs}, presets)
        assert_stored(cut, alone, layer.output, golden)
        assert few or len(np.unique(golden)) > 1
    return program


CONVS = {
    "plain": ((1, 9, 11, 20), 12, (3, 3), {"padding": (1, 1, 1, 1)}),
    "one_pixel": ((1, 1, 1, 8), 8, (1, 1), {}),
    "one_channel": ((1, 7, 5, 1), 1, (3, 3), {"padding": (1, 1, 1, 1)}),
    "lanes_plus_one": ((1, 5, 5, 33), 17, (1, 1), {}),
    "stride_and_uneven_padding": (
        (2, 13, 10, 9),
        24,
        (5, 3),
        {"stride": (2, 3), "padding": (2, 0, 1, 2)},
    ),
    "dilated": ((1, 12, 12, 6), 10, (3, 3), {"dilation": (2, 3), "padding": (2, 3, 2, 3)}),
    "large_kernel": ((1, 20, 20, 5), 7, (16, 16), {"padding": (8, 8, 7, 7)}),
    "kernel_wider_than_a_field": ((1, 40, 40, 2), 3, (1, 37), {}),
    "wide_image": ((1, 3, 150, 16), 8, (3, 3), {"padding": (1, 1, 1, 1)}),
    "largest_input_zero_point": ((1, 6, 6, 19), 9, (3, 3), {"zero_points": (127, -3)}),
    "largest_weight_zero_point": ((1, 6, 6, 19), 9, (3, 3), {"zero_points": (2, 127)}),
    "smallest_zero_points": ((1, 6, 6, 3), 9, (1, 1), {"zero_points": (-128, -128)}),
    "linear": ((3, 1, 1, 300), 70, (1, 1), {}),
    "many_channels": ((1, 6, 6, 64), 72, (3, 3), {"padding": (1, 1, 1, 1)}),
    "padding_beyond_kernel": ((1, 3, 3, 8), 8, (2, 2), {"padding": (4, 4, 4, 4)}),
}


@pytest.mark.parametrize("config", [EDGE8, BASE16, WIDE32], ids=lambda c: c.name)
@pytest.mark.parametrize("case", CONVS)
def test_convolution_equals_oracle(case: str, config: Config) -> None:
    shape, out, kernel, options = CONVS[case]
    rng = np.random.default_rng(7)
    check(layers.region(shape, layers.conv(rng, shape[3], out, kernel, **options)), config)


DEPTHWISE = {
    "plain": ((1, 9, 11, 20), (3, 3), {"padding": (1, 1, 1, 1)}),
    "stride": ((2, 11, 12, 9), (3, 3), {"padding": (1, 1, 1, 1), "stride": (2, 2)}),
    "five_columns": ((1, 10, 10, 8), (5, 5), {"padding": (2, 2, 2, 2)}),
    "dilated": ((1, 12, 12, 40), (3, 3), {"dilation": (2, 2), "padding": (2, 2, 2, 2)}),
    "one_column": ((1, 9, 6, 17), (4, 1), {"zero_points": (127, -128)}),
    "row": ((1, 1, 64, 8), (1, 7), {"padding": (0, 3, 0, 3)}),
}


@pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_equals_oracle(case: str, config: Config) -> None:
    shape, kernel, options = DEPTHWISE[case]
    rng = np.random.default_rng(8)
    op = layers.conv(rng, shape[3], shape[3], kernel, depthwise=True, **options)
    check(layers.region(shape, op), config)


POOLS = {
    "max": ((1, 9, 9, 20), layers.pool("max", (3, 3), (2, 2), (1, 1, 1, 1))),
    "max_window_in_padding": ((1, 4, 4, 8), layers.pool("max", (2, 2), (3, 3), (3, 3, 3, 3))),
    "global_sum": ((2, 8, 8, 30), layers.pool("sum", (8, 8), (1, 1))),
    "sum_beyond_the_buffer": ((1, 24, 24, 12), layers.pool("sum", (24, 24), (1, 1))),
    "requantize_only": ((1, 6, 7, 9), layers.pool("sum", (1, 1), (1, 1))),
    "average": ((1, 10, 9, 16), layers.pool("sum", (3, 2), (2, 2), (1, 0, 1, 1))),
}


@pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
@pytest.mark.parametrize("case", POOLS)
def test_pooling_equals_oracle(case: str, config: Config) -> None:
    check(layers.region(POOLS[case][0], POOLS[case][1]), config)


@pytest.mark.parametrize("config", [EDGE8, BASE16, WIDE32], ids=lambda c: c.name)
@pytest.mark.parametrize("shape", [(1, 8, 8, 20), (2, 5, 7, 8), (1, 1, 1, 700)], ids=str)
@pytest.mark.parametrize("fixed", [False, True], ids=["fp32", "fixed"])
def test_addition_equals_oracle(
    shape: tuple[int, int, int, int], config: Config, fixed: bool
) -> None:
    check(layers.region(shape, layers.add(np.random.default_rng(3), fixed)), config)


@pytest.mark.parametrize("config", [EDGE8, BASE16, WIDE32], ids=lambda c: c.name)
def test_residual_chain_equals_oracle(config: Config) -> None:
    rng = np.random.default_rng(11)
    pad = {"padding": (1, 1, 1, 1)}
    region = layers.region(
        (1, 12, 12, 20),
        layers.conv(rng, 20, 28, **pad),
        layers.conv(rng, 28, 28, depthwise=True, **pad),
        layers.conv(rng, 28, 20, (1, 1)),
        layers.add(rng),
        layers.pool("max", (2, 2), (2, 2)),
        layers.conv(rng, 20, 44, stride=(2, 2), **pad),
        layers.pool("sum", (3, 3), (1, 1)),
        layers.conv(rng, 44, 10, (1, 1)),
    )
    check(region, config)


@pytest.mark.parametrize("config", [EDGE8, BASE16, WIDE32], ids=lambda c: c.name)
def test_a_first_layer_of_few_channels_is_packed(config: Config) -> None:
    rng = np.random.default_rng(12)
    options = {"stride": (2, 1), "padding": (3, 2, 1, 3), "dilation": (1, 2)}
    first = layers.conv(rng, 3, 20, (5, 3), zero_points=(-17, 4), **options)
    region = layers.region((2, 17, 15, 3), first, layers.conv(rng, 20, 9))
    program = check(region, config)
    assert program.layers[0].facts["packed"] == 1
    assert program.layers[1].facts["packed"] == 0
    assert program.layers[0].macs == 2 * 9 * 16 * 20 * 45


def test_small_memories_split_rows_and_channels_both_ways() -> None:
    rng = np.random.default_rng(2)
    op = layers.conv(rng, 32, 48, padding=(1, 1, 1, 1))
    facts = check(layers.region((1, 16, 16, 32), op), EDGE8).layers[0].facts
    assert facts["row_splits"] > 1
    assert facts["in_channel_splits"] > 1
    assert facts["out_channel_splits"] > 1


def test_weights_that_are_loaded_again_lie_in_memory_once() -> None:
    rng = np.random.default_rng(6)
    op = layers.conv(rng, 64, 64, padding=(1, 1, 1, 1))
    program = check(layers.region((1, 14, 14, 64), op), EDGE8)
    loaded = [v["count0"] for row, v in map(decode, program.words) if v.get("memory") == 1]
    assert sum(loaded) * EDGE8.lanes > 5 * op.weight.size
    parameters, alignment = 64 * 8, 64 * len(loaded)
    assert len(program.constants) <= op.weight.size + parameters + alignment


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_convolutions_equal_oracle(data: st.DataObject) -> None:
    draw = data.draw
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = draw(st.tuples(*[st.integers(0, 3)] * 4))
    least = [
        max(1, (k - 1) * d + 1 - sum(p))
        for k, d, p in zip(kernel, dilation, (padding[::2], padding[1::2]), strict=True)
    ]
    shape = (
        draw(st.integers(1, 2)),
        draw(st.integers(least[0], 14)),
        draw(st.integers(least[1], 14)),
        draw(st.integers(1, 40)),
    )
    depthwise = draw(st.booleans())
    out = shape[3] if depthwise else draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    op = layers.conv(
        rng,
        shape[3],
        out,
        kernel,
        depthwise=depthwise,
        zero_points=draw(st.tuples(st.integers(-128, 127), st.integers(-128, 127))),
        stride=draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        padding=padding,
        dilation=dilation,
    )
    region = layers.region(shape, op)
    inputs = {"x": layers.random_input(rng, shape)}
    expected = oracle.run(region, inputs)["t0"]
    program = compile_region(region, draw(st.sampled_from([EDGE8, BASE16])))
    assert_stored(program, run(program, inputs), "t0", expected)
