"""What a run has found so far, written out at any moment: an interrupted run stays readable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accelsim.artifacts import LayerReport, Program
from accelsim.compare.waivers import failing
from accelsim.verify.accuracy import Accuracy


@dataclass(slots=True)
class RunRecord:
    """State of one verification. `problems` fail the run beside layers that differ."""

    model: str
    config: str
    seed: int
    replay: str
    versions: Mapping[str, str]
    status: str = "incomplete"
    exit_code: int = 3
    error: str | None = None
    inputs_sha256: str = ""
    program_sha256: str = ""
    input_origin: str = ""
    programs: Sequence[Program] = ()
    layers: list[LayerReport] = field(default_factory=list)
    exercised: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    accuracy: Accuracy | None = None
    self_test: dict[str, str] = field(default_factory=dict)
    checks: list[dict[str, object]] = field(default_factory=list)  # beyond layers: stalls, outputs
    problems: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    def mismatched(self) -> list[LayerReport]:
        """Layers with a failing comparison that no waiver covers."""
        return [layer for layer in self.layers if any(map(failing, layer.compare))]

    def mismatches(self) -> int:
        """Wrong elements in failing comparisons, each comparison counted."""
        return sum(c.mismatches for layer in self.layers for c in layer.compare if failing(c))

    def host(self) -> list[LayerReport]:
        """Layers on the host that no waiver covers."""
        return [x for x in self.layers if x.placement == "host" and x.waived is None]

    def conclude(self) -> None:
        """Set status and exit code of a run that reached its end."""
        if not any(c.elements for layer in self.layers for c in layer.compare):
            self.problems.append("no element was compared")
        failed = self.mismatched() or self.host() or self.problems
        self.status, self.exit_code = ("failed", 1) if failed else ("passed", 0)
