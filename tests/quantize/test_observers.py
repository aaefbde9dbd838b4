"""Facts about observers and layers that stay in float."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.ao.quantization.observer import HistogramObserver

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError
from accelsim.quantize.fx_graph import quantize_fx
from accelsim.quantize.observers import (
    KINDS,
    PercentileObserver,
    activation_observer,
    divergence,
    least_divergence,
)
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
    assert low == pytest.approx(-1, abs=0.02) and high == pytest.approx(1, abs=0.02)


def test_what_is_cut_off_and_not_seen_diverges_by_nothing() -> None:
    counts = np.zeros(1024)
    counts[:256] = 100.0
    assert divergence(counts, 0, 256) == pytest.approx(0)
    assert divergence(counts, 0, 128) > divergence(counts, 0, 256)
    assert least_divergence(counts, zero=0.0)[1] >= 256


@pytest.mark.parametrize(
    ("percentile", "ends"),
    [(95, (0.5, 3.5)), (75, (2.1875, 2.8125)), (58, (2.4, 2.6)), (100, (0, 4))],
)
def test_a_percentile_lies_between_the_edges_of_bins(
    percentile: float, ends: tuple[float, float]
) -> None:
    observer = PercentileObserver(percentile, bins=4)
    observer.histogram.copy_(torch.tensor([10.0, 0.0, 80.0, 10.0]))
    observer.min_val, observer.max_val = torch.tensor(0.0), torch.tensor(4.0)
    assert [float(one) for one in observer._non_linear_param_search()] == pytest.approx(ends)


def test_all_values_are_all_bins() -> None:
    observer = PercentileObserver(100, bins=4)
    observer.histogram.copy_(torch.tensor([0.0, 1.0, 2.0, 0.0]))
    observer.min_val, observer.max_val = torch.tensor(0.0), torch.tensor(4.0)
    assert [float(one) for one in observer._non_linear_param_search()] == [0, 4]


def test_entropy_cuts_a_far_value_below_zero() -> None:
    torch.manual_seed(0)
    values = torch.cat([-torch.randn(100_000).abs(), torch.tensor([-200.0])])
    low, high = _range("entropy", values)
    assert -60 < low < -2 and high == 0


def test_zeros_do_not_decide_the_range_by_entropy() -> None:  # a ReLU gives any number of them
    counts = np.full(1024, 100.0)
    counts[0] = 1e6
    assert least_divergence(counts, zero=0.0) == (0, 1024)


def test_of_ranges_that_diverge_alike_entropy_takes_the_widest() -> None:
    observer = activation_observer("entropy")(bins=1024)
    observer.histogram[:256] = 100.0
    observer.min_val, observer.max_val = torch.tensor(0.0), torch.tensor(1024.0)
    assert [float(one) for one in observer._non_linear_param_search()] == [0, 1024]


@pytest.mark.parametrize(("first", "last"), [(0, 700), (0, 413), (90, 700), (90, 413), (200, 330)])
def test_divergence_is_that_of_levels_spread_over_bins_in_use(first: int, last: int) -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 40, 700) * (rng.random(700) < 0.7) * 1.0
    bins = last - first
    levels = min(256, bins)
    wanted = [counts[first + place] for place in range(bins)]
    mass, used = [0.0] * levels, [0] * levels
    wanted[0] += counts[:first].sum()
    wanted[-1] += counts[last:].sum()
    for place in range(bins):
        mass[place * levels // bins] += counts[first + place]
        used[place * levels // bins] += wanted[place] > 0
    given = [mass[p * levels // bins] / max(1, used[p * levels // bins]) for p in range(bins)]
    given = [value if wanted[place] > 0 else 0.0 for place, value in enumerate(given)]
    p, q = np.array(wanted) / sum(wanted), np.array(given) / sum(given)
    expected = sum(a * np.log(a / max(b, 1e-12)) for a, b in zip(p, q, strict=True) if a > 0)
    assert divergence(counts, first, last) == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_activations_have_all_256_levels(kind: str) -> None:
    observer = activation_observer(kind)()
    assert (observer.quant_min, observer.quant_max) == (0, 255)


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


class Normed(torch.nn.Module):
    """A residual around a layer normalization, for which PyTorch has observers of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(1, 4, 6) → (1, 4, 6)."""
        return x + self.norm(x)


@pytest.mark.parametrize("kind", ["minmax", "percentile", "mse", "entropy"])
def test_layers_with_observers_of_pytorchs_own_watch_as_all_others_do(kind: str) -> None:
    x = np.random.default_rng(0).normal(size=(1, 4, 6)).astype(np.float32)
    source = SourceModel("normed", Normed().eval(), (x,), ("x",))
    found = quantize_fx(source, Recipe(activations=kind)).names.quantized
    assert [layer.name for layer in found] == ["x", "norm", "add"]
