"""What a run has found so far, written out at any moment: an interrupted run stays readable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accelsim.artifacts import LayerReport, Program
from accelsim.compare import Waiver, failing
from accelsim.errors import INTERRUPTED
from accelsim.verify.golden_file import GoldenCount


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What many samples gave.

    `share`, the metric's first number, and the number of `samples` are by source ("float",
    "framework", "integer" and backends), and empty where there are no labels; the rest is by
    backend.
    """

    origin: str
    metric: str  # name of that number: "top1", of right answers, or a user's own
    share: Mapping[str, float]
    samples: Mapping[str, int]
    wrong: Mapping[str, int]  # elements of layers and outputs that differ from the reference
    compared: Mapping[str, int]
    agreement: Mapping[str, tuple[int, int]]  # samples of the framework's class, samples
    varied: frozenset[str]  # layers whose golden has more than one value over all samples
    golden: Mapping[str, GoldenCount]  # the file's, of backends
    places: Mapping[str, str]  # where a backend first differs from the reference


@dataclass(slots=True)
class RunRecord:
    """State of one verification. `problems` fail the run beside layers that differ.

    Until the run ends it is incomplete, with the exit code of an interrupted run: that is what a
    reader finds if the process is killed.
    """

    model: str
    config: str
    seed: int
    replay: str
    versions: Mapping[str, str]
    hardware: Mapping[str, object] = field(default_factory=dict)  # the configuration's fields
    hashes: Mapping[str, str] = field(default_factory=dict)  # of sources
    argv: Sequence[str] = ()
    backends: Sequence[str] = ()
    framework: Mapping[str, str] = field(default_factory=dict)  # its name, its golden and title
    started: str = ""  # UTC
    status: str = "incomplete"
    exit_code: int = INTERRUPTED
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
    waivers: list[Waiver] = field(default_factory=list)  # those that were needed
    notes: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    def mismatched(self) -> list[LayerReport]:
        """Layers with a failing comparison that no waiver covers."""
        return [layer for layer in self.layers if any(map(failing, layer.compare))]

    def host(self) -> list[LayerReport]:
        """Layers on the host that no waiver covers."""
        return [x for x in self.layers if x.placement == "host" and x.waived is None]

    def failed(self) -> bool:
        """Whether anything found so far fails the run."""
        return bool(self.mismatched() or self.host() or self.problems)

    def conclude(self) -> None:
        """Set status and exit code of a run that reached its end."""
        if not any(c.elements for layer in self.layers for c in layer.compare):
            self.problems.append("no element was compared")
        self.status, self.exit_code = ("failed", 1) if self.failed() else ("passed", 0)
