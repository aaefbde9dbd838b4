"""Tables, softmax and layer normalization: pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.artifacts import Layer, LayerNorm, Lookup, Region, Shape4, Softmax, Tensor
from accelsim.errors import ModelError
from accelsim.schedule import schedule
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.normalization import softmax_table
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CONFIGURATIONS = pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
SHAPES = [(1, 1, 1, 2), (2, 9, 7, 21), (1, 1, 40, 7), (1, 25, 25, 33), (1, 3, 5, 16)]


def norm(rng: np.random.Generator, channels: int) -> LayerNorm:
    gain = rng.integers(-(60 << 16), 60 << 16, channels).astype(np.int32)
    offset = rng.integers(-(20 << 16), 20 << 16, channels).astype(np.int32)
    return LayerNorm(gain, offset, 16, 12345, 3, -4, -120, 127)


KEPT = np.arange(-128, 128).astype(np.int8)


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [*SHAPES, (1, 1, 2, 2100)], ids=str)
def test_lookup_equals_oracle(shape: Shape4, config: Config) -> None:
    table = np.random.default_rng(2).permutation(256).astype(np.uint8).view(np.int8)
    program = check(layers.one(Lookup(table), shape, shape), config)
    assert program.layers[0].tiles == 1 or config.name == "edge8"


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [*SHAPES, (1, 2, 3, 1000)], ids=str)
def test_softmax_equals_oracle(shape: Shape4, config: Config) -> None:
    check(layers.one(Softmax(softmax_table(0.05)), shape, shape), config)


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [*SHAPES, (1, 2, 3, 500)], ids=str)
def test_softmax_in_other_levels_equals_oracle(shape: Shape4, config: Config) -> None:
    levels = np.random.default_rng(5).permutation(256).astype(np.uint8).view(np.int8)
    check(layers.one(Softmax(softmax_table(0.05), levels), shape, shape), config)


def masked_network(shape: Shape4, mask: Shape4, levels: np.ndarray | None = None) -> Region:
    """Scores go through a table first; so does the mask, into levels of which one keeps."""
    rng = np.random.default_rng(8)
    table = softmax_table(0.1)
    table[-1] = 0
    softmax = Softmax(table, levels, masked=True)
    keeps = np.where(rng.random(256) < 0.6, 127, rng.integers(-128, 127, 256)).astype(np.int8)
    mixed = rng.permutation(256).astype(np.uint8).view(np.int8)
    chain = (
        Layer("s", "lookup", ("s",), ("x",), "s", Lookup(mixed)),
        Layer("k", "lookup", ("k",), ("m",), "k", Lookup(keeps)),
        Layer("y", "masked_softmax", ("y",), ("s", "k"), "y", softmax),
    )
    shapes = {"x": shape, "m": mask, "s": shape, "k": mask, "y": shape}
    tensors = {name: Tensor(name, size, 0, 0.1) for name, size in shapes.items()}
    return Region("masked", tensors, ("x", "m"), ("y",), chain)


@CONFIGURATIONS
@pytest.mark.parametrize("along", ["same", "row", "image"])
@pytest.mark.parametrize("shape", [(2, 3, 7, 21), (1, 1, 3, 5), (1, 2, 2, 300)], ids=str)
def test_masked_softmax_equals_oracle(shape: Shape4, along: str, config: Config) -> None:
    n, _, w, c = shape
    mask = {"same": shape, "row": (1, 1, w, c), "image": (n, 1, 1, c)}[along]
    levels = np.random.default_rng(5).permutation(256).astype(np.uint8).view(np.int8)
    check(masked_network(shape, mask), config)
    check(masked_network(shape, mask, levels), config)


def test_masked_softmax_of_rows_beyond_the_buffers_is_refused() -> None:
    shape = (1, 1, 1, 8 * 50)
    with pytest.raises(ModelError, match="a row of 400 channels under a mask does not fit"):
        schedule(masked_network(shape, shape), EDGE8)


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [*SHAPES, (1, 2, 3, 64)], ids=str)
def test_layer_norm_equals_oracle(shape: Shape4, config: Config) -> None:
    op = norm(np.random.default_rng(6), shape[3])
    check(layers.one(op, shape, shape), config)


def test_normalization_of_more_channels_than_a_slot_of_parameters_equals_oracle() -> None:
    rng = np.random.default_rng(6)
    shape = (1, 9, 9, 64)
    region = layers.region(
        shape, layers.conv(rng, 64, 64), norm(rng, 64), layers.conv(rng, 64, 64), norm(rng, 64)
    )
    check(region, EDGE8)
    # The first load of a sum is that of its parameters.
    check(layers.region(shape, norm(rng, 64), layers.add(rng), norm(rng, 64)), EDGE8)


def test_tables_of_successive_layers_equal_oracle() -> None:
    rng = np.random.default_rng(7)
    tables = [Lookup(rng.permutation(256).astype(np.uint8).view(np.int8)) for _ in range(4)]
    check(layers.region((1, 20, 20, 9), *tables, Softmax(softmax_table(0.02))), EDGE8)


@pytest.mark.parametrize(
    ("op", "channels", "message"),
    [
        (Softmax(softmax_table(0.1)), 1032, "a row of 1032 channels exceeds 1024"),
        (Softmax(softmax_table(0.1), KEPT), 520, "a row of 520 channels exceeds 512"),
        (norm(np.random.default_rng(1), 72), 72, "gain and offset of 72 channels exceed"),
    ],
)
def test_rows_beyond_the_limits_are_refused_by_name(
    op: LayerNorm | Softmax, channels: int, message: str
) -> None:
    shape = (1, 1, 2, channels)
    with pytest.raises(ModelError, match=f"layer t0: {message}"):
        schedule(layers.one(op, shape, shape), EDGE8)
