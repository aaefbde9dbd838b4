"""Report documents of invented runs, one passed and one failed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from accelsim.artifacts import Comparison, Difference, LayerReport
from accelsim.compare import Waiver
from accelsim.report import document

TEXT = "drain take=matrix give=store out_w=8 blocks=3 zero_point=-128"
CAUSE = "rtl is wrong and sim is right: they first differ at instruction 12 of layer b/<add>"


@dataclass
class Run:
    """As much of a run as a report needs."""

    model: str = "net.py:make"
    config: str = "edge8"
    seed: int = 7
    replay: str = "accelsim replay build/runs/x"
    versions: dict = field(default_factory=lambda: {"torch": "2.13.0"})
    hardware: dict = field(default_factory=lambda: {"name": "edge8", "lanes": 8})
    hashes: dict = field(default_factory=lambda: {"rtl_sha256": "aa11", "sources_sha256": "bb22"})
    argv: tuple = ("verify", "net.py:make")
    backends: tuple = ("sim", "rtl")
    framework: dict = field(
        default_factory=lambda: {"name": "tflite", "golden": "litert", "title": "LiteRT's kernels"}
    )
    started: str = "2026-01-01T00:00:00+00:00"
    status: str = "passed"
    exit_code: int = 0
    error: str | None = None
    inputs_sha256: str = "cc33"
    program_sha256: str = "dd44"
    input_origin: str = "test image 3"
    layers: list = field(default_factory=list)
    exercised: dict = field(default_factory=lambda: {"op_conv": 12, "matrix_busy_cycles": 500})
    cycles: dict = field(default_factory=lambda: {"sim": 1000, "rtl": 1000})
    seconds: dict = field(default_factory=lambda: {"compile": 1.5})
    accuracy: Any = None
    self_test: dict = field(default_factory=dict)
    checks: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    waivers: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    not_run: list = field(default_factory=lambda: ["hardware: no board"])


def equal(actual: str, golden: str, mode: str, gate: bool = True) -> Comparison:
    return Comparison(actual, golden, mode, 768, 0, 0, "equal", gate)


def layer(name: str, op: str = "conv2d", cycles: int = 1152, macs: int = 20736) -> LayerReport:
    """A layer that equals every golden but TVM's float run."""
    compare = []
    for actual in ("sim", "rtl"):
        compare += [equal(actual, golden, "isolated") for golden in ("integer", "framework")]
        compare.append(equal(actual, "integer", "accumulated"))
        compare.append(equal(actual, "framework", "accumulated", gate=False))
        compare.append(Comparison(actual, "tvm", "accumulated", 768, 5, 1, "different", False))
    return LayerReport(
        name, op, (name, f"{name}.relu"), "npu", 768, macs, 2, tuple(compare),
        {"sim": cycles, "rtl": cycles + 1},
    )  # fmt: skip


def passed() -> dict[str, Any]:
    """Two layers, all equal."""
    return document(Run(layers=[layer("a"), layer("b/<add>", "add", 798, 0)]))


def failed() -> dict[str, Any]:
    """RTL is wrong in the second layer, the third inherits it, the fourth is waived."""
    first = Difference((0, 1, 2, 3), 5, -6, 1, 12, TEXT)
    wrong = Comparison(
        "rtl", "integer", "isolated", 768, 34, 11, "different", True, None, CAUSE, first
    )
    later = replace(wrong, mode="accumulated", mismatches=300)
    waived = replace(wrong, golden="framework", mismatches=2, waived="known (until 2099-01-01)")
    run = Run(
        status="failed",
        exit_code=1,
        layers=[
            layer("a"),
            replace(layer("b/<add>"), compare=(wrong, later)),
            replace(layer("c"), compare=(later,)),
            replace(layer("d"), compare=(waived,), waived="known (until 2099-01-01)"),
        ],
        waivers=[Waiver("d", "framework", "known", date(2099, 1, 1))],
        problems=["waiver of layer 'z' for golden 'framework' was not needed; remove it"],
    )
    return document(run)


def stopped() -> dict[str, Any]:
    """An error before the first layer."""
    run = Run(status="error", exit_code=2, error="model file m.pt2 does not exist", exercised={})
    run.cycles = {}
    return document(run)
