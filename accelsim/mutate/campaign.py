"""A campaign: planted bugs of the RTL, each run until something notices it.

What comes in: sites and trials. What goes out: who caught each bug. A bug is caught by a difference
from what a trial expects, by an assertion of the RTL, a write outside all regions, or a hang.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.cosim.build import cache_root, content_hash
from accelsim.cosim.model import design_files
from accelsim.cosim.session import Cosim
from accelsim.errors import AccelsimError, InputError
from accelsim.mutate.instrument import SETTER, instrument
from accelsim.mutate.sites import Site, find_sites
from accelsim.mutate.trials import Check
from accelsim.sources import PACKAGE_FILE
from accelsim.spec.config import Config

SECONDS = 30.0
GRACE_CYCLES = 20_000


@dataclass(frozen=True, slots=True)
class Mutants:
    """The sites of a configuration and the instrumented sources that hold all of them."""

    config: Config
    sites: tuple[Site, ...]
    design: tuple[Path, ...]

    @staticmethod
    def of(config: Config, folder: Path | None = None) -> Mutants:
        """Find the sites and write the instrumented copies to `folder`.

        By default that folder belongs to these sources alone, so that a process beside this one
        that has others leaves them as they are. Sources that change meanwhile are read again.
        """
        files = design_files(config)
        while True:
            found = content_hash(files)
            sites = find_sites([f for f in files if f.name != PACKAGE_FILE])
            target = folder or cache_root() / "mutants" / f"{config.name}-{found}"
            copies = instrument(files, sites, target)
            if content_hash(files) == found:
                return Mutants(config, sites, copies)

    def site(self, number: int) -> Site:
        """The site with a number. Raises InputError where there is none."""
        if not 1 <= number <= len(self.sites):
            raise InputError(f"planted bug {number} of the RTL: use 1 to {len(self.sites)}")
        return self.sites[number - 1]

    def cosim(self, site: Site | None = None, **options: Any) -> Cosim:
        """A co-simulation with one bug switched on, or none; `select` switches between launches.

        `options` are those of `Cosim`; a launch has `SECONDS` where nothing else is said.
        """
        given = {key: value for key, value in options.items() if value is not None}
        cosim = Cosim(
            self.config,
            design=self.design,
            optimize="quick",
            grace_cycles=GRACE_CYCLES,
            **{"time_limit_seconds": SECONDS, **given},
        )
        select(cosim, site)
        return cosim


def select(cosim: Cosim, site: Site | None) -> None:
    """Switch one bug on, or all off; the next launch begins with a reset."""
    cosim.call(SETTER, 0 if site is None else site.number)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What noticed a bug; `caught` is empty if nothing did."""

    site: Site
    caught: str


def draw(sites: Sequence[Site], count: int, seed: int) -> list[Site]:
    """`count` sites by seed: first one of each engine and kind there is, then any."""
    order = shuffled(sites, seed)
    groups: dict[tuple[str, str], Site] = {}
    for site in order:
        groups.setdefault((site.engine, site.kind), site)
    first = list(groups.values())
    chosen = set(first)
    return [*first, *(s for s in order if s not in chosen)][:count]


def shuffled(sites: Sequence[Site], seed: int) -> list[Site]:
    """All sites in an order given by a seed."""
    return [sites[i] for i in np.random.default_rng(seed).permutation(len(sites))]


def campaign(mutants: Mutants, sites: Sequence[Site], trials: Sequence[Check]) -> Iterator[Verdict]:
    """Run trials until one notices the bug, for each site, in one process while it lives.

    Raises AccelsimError where a trial fails without a bug: the suite itself is wrong then.
    """
    with mutants.cosim() as cosim:
        for trial in trials:
            wrong = trial.run(cosim)
            if wrong:
                raise InputError(f"without a planted bug, {trial.name} fails: {wrong}")
        for site in sites:
            select(cosim, site)
            yield Verdict(site, _caught(cosim, trials))


def _caught(cosim: Cosim, trials: Sequence[Check]) -> str:
    for trial in trials:
        try:
            wrong = trial.run(cosim)
        except AccelsimError as error:
            wrong = str(error).splitlines()[0].partition(" (log")[0]
        if wrong:
            return f"{trial.name}: {wrong}"
    return ""
