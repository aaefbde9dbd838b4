"""A run of operator regressions: which cases in which stages, their backends, their outcomes.

What comes in: a selection. What goes out: items to run and a table of what was compared. It must
not know pytest: `regression` and `__main__` connect the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from zlib import crc32

from accelsim.artifacts import Backend
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.session import Cosim
from accelsim.ops.batch import Batch
from accelsim.ops.registry import OPERATORS, specs_of
from accelsim.ops.stages import ARITHMETIC, STAGES, Outcome, Stage, arithmetic, run
from accelsim.ops.values import make_case
from accelsim.simulate import Simulator
from accelsim.spec.config import Config


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run. Empty `cases` means all; `random` cases are drawn beside the edge cases."""

    operators: tuple[str, ...]
    configs: tuple[Config, ...]
    seed: int = 1
    random: int = 4
    stages: tuple[Stage, ...] = STAGES
    cases: tuple[str, ...] = ()


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
    """Batches and simulations of one selection, made when first needed."""

    selection: Selection
    outcomes: list[tuple[Item, Outcome]] = field(default_factory=list)
    _batches: dict[tuple[str, str], Batch] = field(default_factory=dict)
    _cosims: dict[str, Cosim] = field(default_factory=dict)

    def items(self) -> Iterator[Item]:
        """In the order operator, configuration, stage, case."""
        for operator in self.selection.operators:
            for config in self.selection.configs:
                for stage in self.selection.stages:
                    for name in self._names(operator, config):
                        yield Item(operator, name, stage, config.name)

    def run(self, item: Item) -> Outcome:
        """Run one item and keep its outcome. Raises AccelsimError where it cannot be run."""
        batch = self._batch(item)
        case = batch.cases[f"{item.operator}/{item.case}"]
        if item.stage in ARITHMETIC:
            outcome = arithmetic(batch, case, item.stage)
        else:
            config = self._config(item.config)
            outcome = run(batch, case, item.stage, config, self._backends(item, config))
        self.outcomes.append((item, outcome))
        return outcome

    def replay(self, item: Item) -> str:
        """The command that runs this item and nothing else."""
        return (
            f"nox -s ops -- {item.operator} --case {item.case} --stage {item.stage} "
            f"--config {item.config} --seed {self.selection.seed}"
        )

    def failure(self, item: Item, outcome: Outcome) -> str:
        """What is wrong with an outcome, and how to see it again."""
        what = f"{outcome.mismatches} of {outcome.elements} elements differ"
        if not outcome.elements:
            what = "nothing was compared"
        detail = f"; {outcome.detail}" if outcome.detail else ""
        return f"{item}: {what}{detail}\nreplay: {self.replay(item)}"

    def close(self) -> None:
        """End the simulations."""
        for cosim in self._cosims.values():
            cosim.close()
        self._cosims.clear()

    def _config(self, name: str) -> Config:
        return next(config for config in self.selection.configs if config.name == name)

    def _names(self, operator: str, config: Config) -> list[str]:
        chosen = self.selection.cases
        numbers = [int(c.removeprefix("random")) for c in chosen if c[6:].isdigit()]
        random = max(self.selection.random, *[n + 1 for n in numbers], 0)
        specs = specs_of(OPERATORS[operator], config, self.selection.seed, random)
        return [spec.name for spec in specs if not chosen or spec.name in chosen]

    def _batch(self, item: Item) -> Batch:
        key = (item.operator, item.config)
        if key not in self._batches:
            config, seed = self._config(item.config), self.selection.seed
            names = set(self._names(item.operator, config))
            random = sum(1 for name in names if name.startswith("random"))
            random = max([random, *[int(n[6:]) + 1 for n in names if n.startswith("random")]])
            specs = specs_of(OPERATORS[item.operator], config, seed, random)
            self._batches[key] = Batch(
                [make_case(item.operator, spec, seed) for spec in specs if spec.name in names]
            )
        return self._batches[key]

    def _backends(self, item: Item, config: Config) -> list[Backend]:
        backends: list[Backend] = [Simulator(config).run]
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
        for item, outcome in self.outcomes:
            key = (item.operator, item.config, item.stage)
            compared[key] += outcome.elements
            wrong[key] += outcome.mismatches
        stages = [stage for stage in STAGES if stage in self.selection.stages]
        lines = ["elements compared" + "".join(f"{stage:>16}" for stage in ("", *stages))[8:]]
        for operator in self.selection.operators:
            for config in self.selection.configs:
                keys = [(operator, config.name, stage) for stage in stages]
                cells = (_cell(compared[key], wrong[key]) for key in keys)
                lines.append(f"{operator:18}{config.name:7}" + "".join(f"{c:>16}" for c in cells))
        notes = sorted({o.cause.split(": ", 1)[1] for _, o in self.outcomes if o.cause})
        return lines + [f"attributed: {note}" for note in notes]

    def empty(self) -> list[str]:
        """Operators, stages and configurations in which nothing was compared."""
        compared: Counter[tuple[str, str, Stage]] = Counter()
        for item, outcome in self.outcomes:
            compared[(item.operator, item.config, item.stage)] += outcome.elements
        return [
            f"{operator}, {stage} on {config.name}"
            for operator in self.selection.operators
            for config in self.selection.configs
            for stage in self.selection.stages
            if not compared[(operator, config.name, stage)]
        ]


def _cell(compared: int, wrong: int) -> str:
    if not compared:
        return "none!"
    return f"{compared}" if not wrong else f"{compared} ({wrong} differ)"
