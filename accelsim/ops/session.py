"""A run of operator regressions: which cases in which stages, their backends, their outcomes.

What comes in: a selection. What goes out: items to run and a table of what was compared. It must
not know pytest: `regression` and `__main__` connect the two.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from accelsim.artifacts import Backend
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.session import Cosim
from accelsim.ops.batch import Batch, Kernels
from accelsim.ops.case import Case, Spec
from accelsim.ops.operators import operator_of
from accelsim.ops.outcome import ARITHMETIC, DEFAULT_CONFIG, STAGES, Outcome, Stage
from accelsim.ops.results import Results, merge_results
from accelsim.ops.shrink import TRIES, shrink
from accelsim.ops.specs import specs_of, to_json
from accelsim.ops.stages import arithmetic, run
from accelsim.ops.values import make_case
from accelsim.simulate import Simulator
from accelsim.spec.config import Config


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run. Empty `cases` means all; `random` cases are drawn beside the edge cases.

    `specs` take the place of the operators' own cases. `bug` is planted in the simulator.
    `claimed` leaves out what the support matrix does not claim: arithmetic beyond edge8.
    """

    operators: tuple[str, ...]
    configs: tuple[Config, ...]
    seed: int = 1
    random: int = 4
    stages: tuple[Stage, ...] = STAGES
    cases: tuple[str, ...] = ()
    specs: tuple[Spec, ...] = ()
    bug: str | None = None
    extensions: tuple[str, ...] = ()  # files that were loaded, for the commands that replay
    claimed: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One case of one operator in one stage on one configuration."""

    operator: str
    case: str
    stage: Stage
    config: str

    def __str__(self) -> str:
        return f"{self.operator}-{self.case}-{self.config}-{self.stage}"


@dataclass(slots=True)
class Session:
    """Batches and simulations of one selection, made when first needed.

    Outcomes go to the file `results` whenever an operator is done on a configuration, and when the
    session closes. `finished` items, of an earlier run, are not run again.
    """

    selection: Selection
    results: Path | None = None
    origin: str = ""  # what the results say where they come from
    outcomes: list[tuple[Item, Outcome]] = field(default_factory=list)
    finished: dict[Item, Outcome] = field(default_factory=dict)
    interrupted: bool = False
    _written: int = 0
    _turn: tuple[str, str] | None = None
    _drawn: dict[tuple[str, str], dict[str, Spec]] = field(default_factory=dict)
    _batches: dict[str, Batch] = field(default_factory=dict)  # of this turn, by rounding
    _cosims: dict[str, Cosim] = field(default_factory=dict)
    _tries: int = 3 * TRIES

    def items(self) -> Iterator[Item]:
        """In the order operator, configuration, stage, case."""
        for operator in self.selection.operators:
            for config in self.selection.configs:
                for stage in self._stages(operator, config.name):
                    for name in self._specs(operator, config):
                        yield Item(operator, name, stage, config.name)

    def run(self, item: Item) -> Outcome:
        """Run one item and keep its outcome. Raises what stopped it where it cannot be run."""
        if self._turn != (item.operator, item.config):
            self.write()
            self._batches.clear()
            self._turn = (item.operator, item.config)
        try:
            outcome = self._together_or_alone(item)
        except Exception as error:  # kept as the item's outcome, and raised again
            name = f"{item.operator}/{item.case}"
            config = "" if item.stage in ARITHMETIC else item.config
            self.outcomes.append((item, Outcome(name, item.stage, config, 0, 1, _said(error))))
            raise
        self.outcomes.append((item, outcome))
        return outcome

    def _together_or_alone(self, item: Item) -> Outcome:
        """Where the cases do not compile together, each is compiled alone, as its replay is."""
        spec = self._spec(item)
        try:
            return self._run(item, spec, self._batch(item, spec))
        except Exception:  # of any case of the batch: alone, each has its own
            if self.interrupted:
                raise
            return self._run(item, spec, Batch([self._case(item, spec)]))

    def resume(self, results: Results, origin: str | None) -> None:
        """Take what passed before for done: of this origin, or of any where it is None."""
        for item in self.items():
            cell = (item.operator, str(item.stage), item.config)
            outcome = results.outcomes(cell, origin).get(item.case)
            if outcome is not None and not outcome.failed:
                self.finished[item] = outcome

    def left(self) -> list[Item]:
        """Items that an earlier run did not finish."""
        return [item for item in self.items() if item not in self.finished]

    def shrunk(self, item: Item, error: Exception | None = None) -> tuple[Spec, str]:
        """A small spec that fails as a drawn case does, and what it says; `error` if it raised."""
        said = "" if error is None else _said(error)

        def fails(spec: Spec) -> bool:
            self._tries -= 1
            nonlocal said
            try:
                outcome = self._run(item, spec, Batch([self._case(item, spec)]))
            except Exception as other:  # what the operator's own code raised, or another fault
                same = error is not None and _kind(other) == _kind(error)
                said = _said(other) if same else said
                return same
            said = _what(outcome) if error is None and outcome.failed else said
            return error is None and outcome.failed

        spec = shrink(self._spec(item), fails, min(self._tries, TRIES))
        return spec, said

    def replay(self, item: Item, spec: Spec | None = None) -> str:
        """The command that runs this item and nothing else, or `spec` in its place."""
        case = item.case if spec is None else shlex.quote(to_json(spec))
        more = "".join(f" --extend {shlex.quote(path)}" for path in self.selection.extensions)
        more += f" --bug {self.selection.bug}" if self.selection.bug else ""
        return (
            f"nox -s ops -- {item.operator} --case {case} --stage {item.stage} "
            f"--config {item.config} --seed {self.selection.seed}{more}"
        )

    def failure(self, item: Item, failed: Outcome | Exception) -> str:
        """What is wrong, and the one command that shows it again; a drawn case is made small."""
        error = failed if isinstance(failed, Exception) else None
        said = _what(failed) if isinstance(failed, Outcome) else _said(failed)
        named = bool(self.selection.specs) or not item.case.startswith("random")
        if named or self._tries <= 0:
            own = self._spec(item) if self.selection.specs else None
            return f"{item}: {said}\nreplay: {self.replay(item, own)}"
        spec, small = self.shrunk(item, error)
        made = "" if spec == self._spec(item) else f"\nmade smaller: {small or said}"
        return f"{item}: {said}{made}\nreplay: {self.replay(item, spec)}"

    def close(self) -> None:
        """End the simulations and write the results."""
        for cosim in self._cosims.values():
            cosim.close()
        self._cosims.clear()
        self.write()

    def write(self) -> None:
        """Write the results that are not in the file yet."""
        new = self.outcomes[self._written :]
        if self.results is not None and new and self.selection.bug is None:
            rows = [(item.operator, item.case, item.config, one) for item, one in new]
            merge_results(self.results, rows, self.origin)
        self._written = len(self.outcomes)

    def _config(self, name: str) -> Config:
        return next(config for config in self.selection.configs if config.name == name)

    def _stages(self, operator: str, config: str) -> tuple[Stage, ...]:
        known = operator_of(operator).stages
        left_out = ARITHMETIC if self.selection.claimed and config != DEFAULT_CONFIG else ()
        return tuple(s for s in self.selection.stages if s in known and s not in left_out)

    def _compared(self) -> Iterator[tuple[Item, Outcome]]:
        yield from self.finished.items()
        yield from self.outcomes

    def _specs(self, operator: str, config: Config) -> dict[str, Spec]:
        """The selected specs of an operator on a configuration, by name; drawn once."""
        if self.selection.specs:
            return {spec.name: spec for spec in self.selection.specs}
        key = (operator, config.name)
        if key not in self._drawn:
            chosen = self.selection.cases
            numbers = [int(c.removeprefix("random")) for c in chosen if c[6:].isdigit()]
            random = max(self.selection.random, *[n + 1 for n in numbers], 0)
            specs = specs_of(operator_of(operator), config, self.selection.seed, random)
            kept = (spec for spec in specs if not chosen or spec.name in chosen)
            self._drawn[key] = {spec.name: spec for spec in kept}
        return self._drawn[key]

    def _spec(self, item: Item) -> Spec:
        return self._specs(item.operator, self._config(item.config))[item.case]

    def _case(self, item: Item, spec: Spec) -> Case:
        return make_case(item.operator, spec, self.selection.seed)

    def _run(self, item: Item, spec: Spec, batch: Batch) -> Outcome:
        case = batch.cases[f"{item.operator}/{spec.name}"]
        if item.stage in ARITHMETIC:
            return arithmetic(batch, case, item.stage)
        config = self._config(item.config)
        return run(batch, case, item.stage, config, self._backends(item, config))

    def _batch(self, item: Item, spec: Spec) -> Batch:
        """The cases that round as one does, made with all others of its operator."""
        if spec.rounding not in self._batches:
            specs = self._specs(item.operator, self._config(item.config)).values()
            cases = [self._case(item, one) for one in specs]
            kernels = Kernels(cases)
            for rounding in {case.spec.rounding for case in cases}:
                alike = [case for case in cases if case.spec.rounding == rounding]
                self._batches[rounding] = Batch(alike, kernels)
        return self._batches[spec.rounding]

    def _backends(self, item: Item, config: Config) -> list[Backend]:
        backends: list[Backend] = [Simulator(config, bug=self.selection.bug).run]
        if item.stage is not Stage.SIM:
            if config.name not in self._cosims:
                self._cosims[config.name] = Cosim(config, seed=self.selection.seed)
            cosim = self._cosims[config.name]
            stalls = random_stalls(1 + self.selection.seed + crc32(item.case.encode()) % 1000)
            cosim.memory = stalls if item.stage is Stage.STALLS else MemoryOptions()
            backends.append(cosim.launch)
        return backends

    def table(self) -> list[str]:
        """Compared elements by operator × stage × configuration, and the mismatches."""
        compared: Counter[tuple[str, str, Stage]] = Counter()
        wrong: Counter[tuple[str, str, Stage]] = Counter()
        for item, outcome in self._compared():
            key = (item.operator, item.config, item.stage)
            compared[key] += outcome.elements
            wrong[key] += outcome.mismatches
        stages = [stage for stage in STAGES if stage in self.selection.stages]
        lines = ["elements compared" + "".join(f"{stage:>16}" for stage in ("", *stages))[8:]]
        for operator in self.selection.operators:
            for config in self.selection.configs:
                cells = []
                for stage in stages:
                    key = (operator, config.name, stage)
                    absent = stage not in self._stages(operator, config.name)
                    cells.append("-" if absent else _cell(compared[key], wrong[key]))
                lines.append(f"{operator:18}{config.name:7}" + "".join(f"{c:>16}" for c in cells))
        return lines + [f"attributed: {note}" for note in self._causes()]

    def _causes(self) -> list[str]:
        differ: Counter[str] = Counter()
        of: Counter[str] = Counter()
        for _, outcome in self._compared():
            if outcome.cause:
                differ[outcome.cause] += outcome.attributed
                of[outcome.cause] += outcome.elements
        return [f"{differ[cause]} of {of[cause]}: {cause}" for cause in sorted(differ)]

    def empty(self) -> list[str]:
        """Operators, stages and configurations in which nothing was compared."""
        compared: Counter[tuple[str, str, Stage]] = Counter()
        for item, outcome in self._compared():
            compared[(item.operator, item.config, item.stage)] += outcome.elements
        return [
            f"{operator}, {stage} on {config.name}"
            for operator in self.selection.operators
            for config in self.selection.configs
            for stage in self._stages(operator, config.name)
            if not compared[(operator, config.name, stage)]
        ]


def _cell(compared: int, wrong: int) -> str:
    if not compared:
        return "none!"
    return f"{compared}" if not wrong else f"{compared} ({wrong} differ)"


def _what(outcome: Outcome) -> str:
    if not outcome.elements:
        return "nothing was compared"
    detail = f"; {outcome.detail}" if outcome.detail else ""
    return f"{outcome.mismatches} of {outcome.elements} elements differ{detail}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _kind(error: Exception) -> tuple[str, str]:
    """What an error has in common with that of a smaller case: its type and first words."""
    letters = "".join(c for c in str(error) if not c.isdigit())
    return type(error).__name__, " ".join(letters.split()[:4])
