"""Facts about findings and costs, from hand-made timings and from a network in two parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from accelsim.advise.costs import Placed, costs_of
from accelsim.advise.findings import findings
from accelsim.advise.record import Costs, Finding
from accelsim.advise.replace import traced
from accelsim.advise.training import fine_tune
from accelsim.artifacts import SourceModel, Training
from accelsim.codegen import compile_model
from accelsim.quantize import quantize
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]  # 64 multipliers


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.act = nn.Conv2d(8, 8, 3), nn.SiLU()
        self.point, self.late = nn.Conv2d(8, 4, 1), nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.late(self.point(self.act(self.wide(x))))
        return y


def found(
    cycles: dict[str, int],
    macs: dict[str, int],
    host: dict[str, str] | None = None,
    total: int = 10_000,
) -> list[Finding]:
    members = {"wide": ("wide", "act")}
    operators = dict.fromkeys(cycles, "op")
    counts = {name: macs.get(name, 0) for name in cycles}
    costs = Costs(total, 0, sum(counts.values()), len(host or {}), cycles)
    placed = Placed(costs, operators, counts, host or {}, members)
    return findings(traced(Named(), "named"), placed, EDGE8)


def test_multipliers_that_idle_are_found_by_share() -> None:
    busy, idle = 64 * 36 // 100, 64 * 34 // 100
    rows = found({"a": 1000, "b": 2000, "c": 3000}, {"a": idle * 1000, "b": 2000, "c": busy * 3000})
    assert [(one.layer, one.share) for one in rows] == [("b", 0.2), ("a", 0.1)]
    assert rows[0].problem == "uses 2% of the multipliers"
    assert rows[1].problem == "uses 33% of the multipliers"


def test_small_layers_are_not_worth_a_finding_and_passes_are_sooner() -> None:
    cycles = {"point": 299, "act": 50, "late": 49}
    assert [one.layer for one in found(cycles, {"point": 1})] == ["act"]
    assert [one.layer for one in found({**cycles, "point": 300}, {"point": 1})] == ["point", "act"]


def test_a_layer_has_the_rules_of_all_that_it_holds() -> None:
    (row,) = found({"wide": 1000}, {"wide": 60_000})
    assert set(row.rules) == {"separable", "silu-relu6", "silu-hardswish"}
    assert row.problem == "has 60,000 products"


def test_layers_on_the_host_come_first_with_their_reason() -> None:
    rows = found({"b": 9000}, {"b": 1}, {"late": "why not"})
    assert [one.layer for one in rows] == ["late", "b"]
    assert rows[0].problem == "runs on the host: why not" and rows[0].share == 0
    assert rows[0].rules == ("silu-relu6", "silu-hardswish")


def two_parts() -> SourceModel:
    """Two convolutions with a layer between them that stays in float."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 16, 3)).eval()
    x = np.random.default_rng(0).normal(size=(4, 8, 10, 9)).astype(np.float32)
    return SourceModel("two", net, (x[:1],), ("x",), calibration=(x,), keep_float=("1",))


def test_costs_are_those_of_all_programs_and_none_of_the_host() -> None:
    model = quantize(two_parts())
    placed = costs_of(model, EDGE8)
    programs = compile_model(model, EDGE8).programs
    assert len(programs) == 2
    assert placed.costs.macs == 8 * 7 * 72 * 8 + 6 * 5 * 72 * 16
    assert list(placed.host) == ["1"] and placed.costs.host_layers == 1
    assert set(placed.costs.layer_cycles) == {"0", "2"}
    # The END of each program takes a cycle of its own.
    assert sum(placed.costs.layer_cycles.values()) == placed.costs.cycles - 2
    # At least the weights, inputs and outputs of both are moved once, 8 bytes a beat.
    least = 72 * 8 + 72 * 16 + 8 * 10 * 9 + 8 * 8 * 7 + 8 * 8 * 7 + 16 * 6 * 5
    assert placed.costs.dram_bytes % 8 == 0
    assert least <= placed.costs.dram_bytes <= 3 * least


def test_frozen_parameters_are_trained_and_frozen_again() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    for one in module.parameters():
        one.requires_grad_(False)
    before = [one.clone() for one in module.parameters()]
    x = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)
    data = Training(x, (x[:, 0] > 0).astype(np.int64), functional.cross_entropy)
    fine_tune(module, data, 3, 0, "m")
    after = list(module.parameters())
    assert not any(one.requires_grad for one in after)
    assert not any(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("epochs", [1, 2])
def test_epochs_are_those_that_were_asked_for(epochs: int) -> None:
    seen: list[int] = []

    class Counting(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(len(x))
            return super().forward(x)

    x = np.ones((16, 3), np.float32)
    data = Training(x, np.zeros(16, np.int64), functional.cross_entropy)
    fine_tune(Counting(3, 2), data, epochs, 0, "m")
    assert sum(seen) == 16 * epochs
