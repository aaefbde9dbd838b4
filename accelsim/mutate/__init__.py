"""Mutate: planted bugs in the RTL, all in one build, one switched on at a time.

What comes in: the RTL sources. What goes out: `Site`s found in their syntax trees, instrumented
copies in which every site chooses between the original and the mutated expression, and campaigns
that count which bugs random and broken programs notice. It must not know networks.
"""

from __future__ import annotations

from accelsim.mutate.campaign import Mutants, Verdict, campaign, draw, select, shuffled
from accelsim.mutate.instrument import instrument
from accelsim.mutate.sites import KINDS, Site, find_sites
from accelsim.mutate.trials import Check, Trial, trials

__all__ = [
    "KINDS",
    "Check",
    "Mutants",
    "Site",
    "Trial",
    "Verdict",
    "campaign",
    "draw",
    "find_sites",
    "instrument",
    "select",
    "shuffled",
    "trials",
]
