"""Which forms of instructions programs hold: every opcode with every mode, kind and flag.

What comes in: instruction words. What goes out: counts by form, such as `binary half_up maximum`,
and the forms that there are. It must not know how programs are made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ProgramError
from accelsim.simulate.transfer import LOCAL
from accelsim.spec.arithmetic import ADD_MODES, BINARY_KINDS, MODES
from accelsim.spec.encoding import decode
from accelsim.spec.isa import BY_NAME, INSTRUCTIONS

# Names of the values of a field, "" for what needs no word.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "memory": LOCAL,
    "accumulate": ("", "accumulate"),
    "transposed": ("", "transposed"),
    "wide": ("", "wide"),
    "sum": ("maximum", "sum"),
    "mode": MODES,
    "kind": BINARY_KINDS,
    "subtract": ("", "subtract"),
    "a_scalar": ("", "a_scalar"),
    "b_scalar": ("", "b_scalar"),
    "lut": ("table 0", "table 1"),
}


def _choices(name: str) -> dict[str, tuple[str, ...]]:
    """Fields of an instruction that choose between forms, and the names of their values."""
    fields = [field.name for field in BY_NAME[name].fields if field.name in CHOICES]
    named = {field: CHOICES[field] for field in fields}
    return {**named, "mode": ADD_MODES} if name == "add" else named


def _form(name: str, words: Iterable[str]) -> str:
    return " ".join([name, *(word for word in words if word)])


def forms() -> list[str]:
    """All forms that there are, in the order of the instruction table."""
    return [
        _form(row.name, words)
        for row in INSTRUCTIONS
        for words in product(*_choices(row.name).values())
    ]


def form_of(name: str, values: Mapping[str, int]) -> str:
    """The form of one instruction."""
    return _form(name, (names[values[field]] for field, names in _choices(name).items()))


def drawn(words: NDArray[np.uint32]) -> Counter[str]:
    """How often each form occurs in a program; what dispatch would refuse counts for nothing."""
    found: Counter[str] = Counter()
    for instruction in words:
        try:
            row, values = decode(instruction)
            found[form_of(row.name, values)] += 1
        except (ProgramError, IndexError):
            continue
    return found


def summary(counts: Counter[str]) -> list[str]:
    """A line for each instruction: how many, of how many forms, and the forms that are missing."""
    lines = []
    for row in INSTRUCTIONS:
        own = [form for form in forms() if form.split()[0] == row.name]
        missing = [form for form in own if not counts[form]]
        line = f"{row.name:10}{sum(counts[form] for form in own):8} in "
        line += f"{len(own) - len(missing)} of {len(own)} forms"
        lines.append(line + (f", never {', '.join(missing)}" if missing else ""))
    return lines
