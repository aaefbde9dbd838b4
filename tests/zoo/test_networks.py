"""Facts about every network of the zoo, before it is trained."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from accelsim import zoo
from accelsim.artifacts import SourceModel
from accelsim.codegen.placement import place
from accelsim.emit import compile_region
from accelsim.quantize import layer_members, quantize
from accelsim.spec.config import CONFIGS
from accelsim.zoo import NETWORKS


def untrained(name: str) -> SourceModel:
    """The network with random weights, calibrated with noise."""
    torch.manual_seed(0)
    module, _, function = NETWORKS[name].partition(":")
    network = getattr(importlib.import_module(f"accelsim.zoo.{module}"), function)().eval()
    side = 48 if name == "digits-detector" else 16
    noise = np.random.default_rng(0).normal(size=(4, 1, side, side)).astype(np.float32)
    return SourceModel(name, network, (noise[:1],), ("x",), calibration=(noise,))


def test_every_name_makes_a_network_of_class_scores_or_of_a_grid() -> None:
    for name in zoo.zoo_names():
        source = untrained(name)
        with torch.no_grad():
            shape = source.float_module(torch.from_numpy(source.example_inputs[0])).shape
        assert shape == ((1, 15, 6, 6) if name == "digits-detector" else (1, 10)), name


# The session `subnets` runs all of them, trained; these have what the others have.
@pytest.mark.parametrize("kind", ["squeezenext", "xception", "shufflenet", "transformer"])
def test_every_layer_of_a_network_runs_on_the_smallest_npu(kind: str) -> None:
    model = quantize(untrained(f"digits-{kind}"))
    placed = place(model, CONFIGS["edge8"], layer_members(model.qdq), compile_region)
    layers = set(model.layer_names)
    left = [one for one in placed.legalized.host_ops if one.name in layers]
    assert [f"{one.name}: {one.reason}" for one in left] == []
    assert len(placed.programs) == 1
