"""A campaign: planted bugs drawn by seed, each run until something notices it.

What comes in: sites and a suite of vectors. What goes out: who caught each bug. A bug is caught by
a wrong byte, an error code, an assertion of the RTL, a write outside all regions, or a hang.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelsim.cosim.model import design_files
from accelsim.cosim.session import Cosim
from accelsim.errors import AccelsimError
from accelsim.mutate.instrument import instrument, plusargs
from accelsim.mutate.sites import Site, find_sites
from accelsim.spec.config import Config
from accelsim.vectors import Case, replay

PACKAGE_FILE = "npu_pkg.sv"
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Mutants:
    """The sites of a configuration and the instrumented sources that hold all of them."""

    config: Config
    sites: tuple[Site, ...]
    design: tuple[Path, ...]

    @staticmethod
    def of(config: Config, folder: Path) -> Mutants:
        """Find the sites and write the instrumented copies to `folder`."""
        files = design_files(config)
        sites = find_sites([f for f in files if f.name != PACKAGE_FILE])
        return Mutants(config, sites, instrument(files, sites, folder))

    def cosim(self, site: Site | None) -> Cosim:
        """A co-simulation with one bug switched on, or none."""
        return Cosim(
            self.config,
            design=self.design,
            plusargs=plusargs(site),
            time_limit_seconds=SECONDS,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What noticed a bug; `caught` is empty if nothing did."""

    site: Site
    caught: str


def draw(sites: Sequence[Site], count: int, seed: int) -> list[Site]:
    """`count` sites by seed: first one of each engine and kind there is, then any."""
    order = [sites[i] for i in np.random.default_rng(seed).permutation(len(sites))]
    groups: dict[tuple[str, str], Site] = {}
    for site in order:
        groups.setdefault((site.engine, site.kind), site)
    first = list(groups.values())
    chosen = set(first)
    return [*first, *(s for s in order if s not in chosen)][:count]


def campaign(mutants: Mutants, sites: Sequence[Site], cases: Sequence[Case]) -> Iterator[Verdict]:
    """Run every case until one notices the bug, for each site."""
    for site in sites:
        yield Verdict(site, _caught(mutants, site, cases))


def _caught(mutants: Mutants, site: Site, cases: Sequence[Case]) -> str:
    try:
        with mutants.cosim(site) as cosim:
            for case in cases:
                outcome = replay(case, cosim.launch)
                if not outcome.passed:
                    return f"{case.name}: " + (outcome.first or f"error code {outcome.error_code}")
    except AccelsimError as error:
        return str(error).splitlines()[0]
    return ""
