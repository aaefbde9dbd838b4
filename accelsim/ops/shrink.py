"""A failing case made small: simpler specs, tried greedily as long as they still fail.

What comes in: a spec and a function that says whether one fails. What goes out: a spec that fails
and of which no simpler neighbour was found failing. It must not know operators: it goes by the
types of the fields, and by `sized` for values whose simplest one is not the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, fields, replace
from typing import Any, TypeVar

from accelsim.ops.case import Spec

S = TypeVar("S", bound=Spec)
TRIES = 80


def shrink(spec: S, fails: Callable[[S], bool], tries: int = TRIES) -> S:
    """The smallest failing spec that `tries` calls of `fails` find; `spec` itself if none."""
    seen = {spec}
    current, left, progress = spec, tries, True
    while progress and left > 0:
        progress = False
        for simpler in simplified(current):
            if simpler in seen or left <= 0:
                continue
            seen.add(simpler)
            left -= 1
            if fails(simpler):
                current, progress = simpler, True
                break
    return current


def simplified(spec: S) -> Iterator[S]:
    """Specs that are simpler in one field: at its simplest value, half way there, one step on."""
    for one in fields(spec):
        if one.name != "name":
            value = getattr(spec, one.name)
            for candidate in _values(value, _simplest(one)):
                yield replace(spec, **{one.name: candidate})


def _simplest(one: Field[Any]) -> Any:
    return one.metadata.get("simplest", one.default)


def _values(value: Any, simplest: Any) -> Iterator[Any]:
    if value == simplest:
        return
    if isinstance(value, tuple):
        yield from _tuples(value, simplest)
    elif isinstance(value, int) and isinstance(simplest, int) and not isinstance(value, bool):
        distance = value - simplest
        for rest in dict.fromkeys((0, int(distance / 4), int(distance / 2))):
            yield simplest + rest
        if abs(distance) > 1:
            yield value - (1 if distance > 0 else -1)
    else:
        yield simplest


def _tuples(value: tuple[Any, ...], simplest: Any) -> Iterator[tuple[Any, ...]]:
    """All elements at once, then one after the other; a tuple keeps its length."""
    each = simplest if isinstance(simplest, tuple) else (simplest,) * len(value)
    if len(each) != len(value):
        yield each
        return
    if len(value) > 1:
        yield each
    for i, one in enumerate(value):
        for candidate in _values(one, each[i]):
            yield (*value[:i], candidate, *value[i + 1 :])
