"""Mutate: planted bugs in the RTL, all in one build, one switched on at a time.

What comes in: the RTL sources. What goes out: `Site`s found in their syntax trees, instrumented
copies in which every site chooses between the original and the mutated expression, and the plusarg
that switches one on. It must not know how a bug is found.
"""

from __future__ import annotations

from accelsim.mutate.instrument import instrument, plusargs
from accelsim.mutate.sites import KINDS, Site, find_sites

__all__ = ["KINDS", "Site", "find_sites", "instrument", "plusargs"]
