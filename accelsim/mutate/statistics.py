"""Counting verdicts: who was caught, by engine, kind and file, as text and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from accelsim.mutate.campaign import Verdict

SCHEMA = "accelsim.mutation/1"
BY: dict[str, Callable[[Verdict], str]] = {
    "engine": lambda v: v.site.engine,
    "kind": lambda v: v.site.kind,
    "file": lambda v: v.site.file,
}


def tally(
    verdicts: Sequence[Verdict], equivalent: Mapping[int, str], by: str
) -> dict[str, tuple[int, int, int]]:
    """Caught, survived and equivalent bugs by engine, kind or file."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for verdict in verdicts:
        state = 0 if verdict.caught else 2 if verdict.site.number in equivalent else 1
        counts[BY[by](verdict)][state] += 1
    return {name: (c[0], c[1], c[2]) for name, c in sorted(counts.items())}


def share(verdicts: Sequence[Verdict], equivalent: Mapping[int, str]) -> float:
    """Percent caught of the bugs that are not known to be equivalent; 0 without any."""
    caught = sum(bool(v.caught) for v in verdicts)
    alive = len(survivors(verdicts, equivalent))
    return 100 * caught / (caught + alive) if caught + alive else 0.0


def survivors(verdicts: Sequence[Verdict], equivalent: Mapping[int, str]) -> list[Verdict]:
    """Bugs that nothing noticed and nobody explained."""
    return [v for v in verdicts if not v.caught and v.site.number not in equivalent]


def summary(verdicts: Sequence[Verdict], equivalent: Mapping[int, str]) -> Iterator[str]:
    """Lines of text: tables, then the survivors."""
    for by in BY:
        yield f"{by:28} caught  survived  equivalent"
        for name, (caught, alive, same) in tally(verdicts, equivalent, by).items():
            yield f"  {name:26} {caught:6}  {alive:8}  {same:10}"
    for verdict in survivors(verdicts, equivalent):
        site = verdict.site
        yield f"SURVIVED {site.number} {site.engine} {site.kind} {site}"


def document(
    verdicts: Sequence[Verdict], equivalent: Mapping[int, str], **about: object
) -> dict[str, object]:
    """All verdicts with their sites, and the counts, as JSON."""
    return {
        "schema": SCHEMA,
        **about,
        "percent_caught": round(share(verdicts, equivalent), 2),
        "counts": {by: tally(verdicts, equivalent, by) for by in BY},
        "bugs": [
            {
                **asdict(v.site),
                "caught": v.caught,
                "equivalent": equivalent.get(v.site.number, ""),
            }
            for v in verdicts
        ],
    }
