"""Facts about bias correction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from accelsim.calibrate.bias import BiasCorrection
from accelsim.quantize.fx_graph import calibrate, prepare
from accelsim.quantize.recipe import Recipe
from tests.calibrate.networks import chain, images


def _folded(source) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight and bias of the first layer with batch norm folded, by hand."""
    module = source.float_module
    factor = module.bn.weight / torch.sqrt(module.bn.running_var + module.bn.eps)
    weight = module.first.weight * factor[:, None, None, None]
    return weight.detach(), (module.bn.bias - module.bn.running_mean * factor).detach()


def test_the_mean_of_each_channel_is_that_of_the_float_layer() -> None:
    source = chain(spread=3.0)
    prepared = prepare(source, Recipe(per_channel=False))
    correction = BiasCorrection(prepared.module)
    calibrate(prepared, [(batch,) for batch in source.calibration])
    shifts = correction.apply()
    assert set(shifts) == {"first", "depthwise", "grouped", "fc"}

    weight, bias = _folded(source)
    scale = float(weight.abs().max()) / 127.5  # PyTorch's: 255 levels over twice the maximum
    rounded = (weight / scale).round().clamp(-128, 127) * scale
    x = torch.from_numpy(np.concatenate(source.calibration))
    exact = functional.conv2d(x, weight, bias, padding=1).mean((0, 2, 3))
    before = functional.conv2d(x, rounded, bias, padding=1).mean((0, 2, 3))
    corrected = prepared.module.get_submodule("first")[0].bias
    after = functional.conv2d(x, rounded, corrected, padding=1).mean((0, 2, 3))
    assert float((before - exact).abs().max()) > 1e-4
    assert float((after - exact).abs().max()) < 1e-5


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_linear_layer_gets_back_the_mean_of_each_output(per_channel: bool) -> None:
    source = chain(spread=3.0)
    with torch.no_grad():  # the largest of each row is positive: none is a tie at -127.5
        for row in source.float_module.fc.weight:
            row[row.abs().argmax()] = row.abs().max()
    seen: list[torch.Tensor] = []
    source.float_module.fc.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    x = torch.from_numpy(np.concatenate(source.calibration))
    with torch.no_grad():
        source.float_module(x)
    prepared = prepare(source, Recipe(per_channel=per_channel))
    correction = BiasCorrection(prepared.module)
    calibrate(prepared, [(batch,) for batch in source.calibration])
    correction.apply()
    weight, bias = source.float_module.fc.weight.detach(), source.float_module.fc.bias.detach()
    largest = weight.abs().amax(1, keepdim=True) if per_channel else weight.abs().max()
    scale = largest / 127.5
    rounded = (weight / scale).round().clamp(-128, 127) * scale
    exact = (seen[0] @ weight.T + bias).mean(0)
    after = (seen[0] @ rounded.T + prepared.module.get_submodule("fc").bias).mean(0)
    before = (seen[0] @ rounded.T + bias).mean(0)
    assert float((before - exact).abs().max()) > 1e-4
    assert float((after - exact).abs().max()) < 1e-5


def test_a_layer_that_stays_in_float_is_not_corrected() -> None:
    prepared = prepare(chain(), Recipe(keep_float=("depthwise",)))
    correction = BiasCorrection(prepared.module)
    calibrate(prepared, [(images(4),)])
    assert "depthwise" not in correction.apply()


def test_a_layer_without_bias_gets_one() -> None:
    source = chain()
    source.float_module.grouped.bias = None
    prepared = prepare(source, Recipe())
    correction = BiasCorrection(prepared.module)
    calibrate(prepared, [(images(4),)])
    correction.apply()
    assert prepared.module.get_submodule("grouped")[0].bias.shape == (6,)
