"""Facts about observers and layers that stay in float."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.ao.quantization.observer import HistogramObserver

from accelsim.errors import InputError
from accelsim.quantize.fx_graph import quantize_fx
from accelsim.quantize.observers import KINDS, activation_observer, divergence, least_divergence
from accelsim.quantize.recipe import Recipe
from tests.quantize.networks import residual

SCALES = torch.linspace(0, 1, 10_001)


def _range(kind: str, values: torch.Tensor, percentile: float = 99.99) -> tuple[float, float]:
    """Least and greatest number that the observer's scale and zero point can hold."""
    observer = activation_observer(kind, percentile)()
    for part in values.split(1000):
        observer(part)
    scale, zero = observer.calculate_qparams()
    return float(scale * (0 - zero)), float(scale * (255 - zero))


def test_minmax_holds_everything() -> None:
    low, high = _range("minmax", torch.cat([SCALES, torch.tensor([-3.0, 9.0])]))
    assert low == pytest.approx(-3, abs=0.03) and high == pytest.approx(9, abs=0.03)


@pytest.mark.parametrize(("percentile", "expected"), [(100, 1.0), (99, 0.99), (90, 0.9)])
def test_a_percentile_of_even_values_is_that_share_of_them(
    percentile: float, expected: float
) -> None:
    low, high = _range("percentile", SCALES, percentile)
    assert low == 0 and high == pytest.approx(expected, abs=2e-3)


def test_a_percentile_cuts_both_ends() -> None:
    low, high = _range("percentile", 2 * SCALES - 1, 95)
    assert low == pytest.approx(-0.9, abs=0.01) and high == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("kind", ["percentile", "mse", "entropy"])
def test_one_far_value_among_many_does_not_take_the_levels(kind: str) -> None:
    torch.manual_seed(0)
    values = torch.cat([torch.randn(100_000).abs(), torch.tensor([200.0])])
    assert _range(kind, values)[1] < 60 < _range("minmax", values)[1]


@pytest.mark.parametrize("kind", ["normal", "uniform", "standard_t", "integers", "far"])
def test_the_range_of_least_squared_error_is_pytorchs(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    draw = {
        "normal": lambda size: np.maximum(rng.normal(size=size), -0.5),
        "uniform": lambda size: rng.uniform(-1, 3, size),
        "standard_t": lambda size: rng.standard_t(2, size),
        "integers": lambda size: rng.integers(-3, 4, size),
        "far": lambda size: np.append(rng.normal(size=size), 50),
    }[kind]
    cut = 0
    for _ in range(8):
        ours, theirs = activation_observer("mse")(), HistogramObserver(reduce_range=False)
        for _ in range(int(rng.integers(1, 4))):
            values = np.float32(draw(int(rng.integers(1, 3000)))) * 2 ** rng.uniform(-9, 9)
            for observer in (ours, theirs):
                observer(torch.from_numpy(values.astype(np.float32)))
        found, wanted = ours._non_linear_param_search(), theirs._non_linear_param_search()
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
        cut += bool(found[0] > ours.min_val) or bool(found[1] < ours.max_val)
    assert cut or kind in ("uniform", "integers")


def test_entropy_keeps_all_of_an_even_distribution() -> None:
    low, high = _range("entropy", 2 * SCALES - 1)
    assert low < -0.9 and high > 0.9


def test_what_is_cut_off_and_not_seen_diverges_by_nothing() -> None:
    counts = np.zeros(1024)
    counts[:256] = 100.0
    assert divergence(counts, 0, 256) == pytest.approx(0)
    assert divergence(counts, 0, 128) > divergence(counts, 0, 256)
    assert least_divergence(counts, zero=0.0)[1] >= 256


@pytest.mark.parametrize("kind", ["percentile", "entropy"])
@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_a_constant_gets_a_scale_all_the_same(kind: str, value: float) -> None:
    low, high = _range(kind, torch.full((100,), value))
    assert low <= min(value, 0) + 0.03 and high >= max(value, 0) - 0.03


@pytest.mark.parametrize("percentile", [50, 100.1, float("nan")])
def test_a_percentile_out_of_range_is_refused(percentile: float) -> None:
    with pytest.raises(InputError, match="use more than 50, up to 100"):
        activation_observer("percentile", percentile)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_quantizes_a_network(kind: str) -> None:
    source = residual()
    network = quantize_fx(source, Recipe(activations=kind))
    x = torch.from_numpy(source.example_inputs[0])
    with torch.no_grad():
        exact, found = source.float_module(x), network.reference(x)
    assert float((exact - found).norm() / exact.norm()) < 0.25


def _float_layers(*names: str) -> set[str]:
    """Paths of modules that kept float weights."""
    reference = quantize_fx(residual(), Recipe(keep_float=names)).reference
    return {
        path
        for path, module in reference.named_modules()
        if type(module) in (torch.nn.Conv2d, torch.nn.Linear)
    }


def test_a_layer_is_kept_in_float_by_its_name() -> None:
    assert _float_layers("one.conv") == {"one.conv"}
    assert _float_layers("fc", "two.project") == {"fc", "two.project"}


def test_a_module_is_kept_in_float_with_all_that_it_holds() -> None:
    assert _float_layers("one") == {"one.conv", "one.project"}


def test_an_unknown_layer_to_keep_is_refused_with_its_neighbour() -> None:
    with pytest.raises(InputError, match=r"no layer 'one.cnv' to keep .* did you mean one.conv\?"):
        _float_layers("one.cnv")


def test_a_layer_without_weights_cannot_be_kept_alone() -> None:
    with pytest.raises(InputError, match=r"pool of .* cannot be kept in float: without weights"):
        _float_layers("pool")
