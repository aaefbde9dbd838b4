"""Sites whose mutation changes nothing that any program can see, and why.

A site is named by its file, its original text with single spaces, and the reason. An entry that
names no site is an error, so that the list follows the RTL.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelsim.errors import InputError
from accelsim.mutate.sites import Site

# (file, original text, why no program can tell the difference)
EQUIVALENT: tuple[tuple[str, str, str], ...] = ()


def equivalents(
    sites: Sequence[Site], entries: Sequence[tuple[str, str, str]] = EQUIVALENT
) -> dict[int, str]:
    """Site number → reason. Raises InputError for an entry that names no site."""
    known = {(file, text): reason for file, text, reason in entries}
    found: dict[int, str] = {}
    for site in sites:
        reason = known.get((site.file, " ".join(site.original.split())))
        if reason is not None:
            found[site.number] = reason
    present = {(site.file, " ".join(site.original.split())) for site in sites}
    for file, text in known:
        if (file, text) not in present:
            raise InputError(f"equivalent mutant {file}: {text!r} is no site any more; remove it")
    return found
