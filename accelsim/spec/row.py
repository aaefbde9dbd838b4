"""What a row of the instruction table consists of: fields, extents, engine, duration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accelsim.spec.config import Config

Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Select:
    """A number that a field chooses: `numbers[value of the field]`."""

    field: str
    numbers: tuple[int, ...]

    def of(self, values: Values) -> int:
        """The number for given field values; the last one for an illegal value."""
        return self.numbers[min(values[self.field], len(self.numbers) - 1)]


Terms = tuple[tuple[tuple[str | int | Select, ...], str | int], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an instruction. `maximum` may name a configuration field."""

    name: str
    width: int
    doc: str
    signed: bool = False
    minimum: int | None = None  # smaller values are illegal encodings
    maximum: int | str | None = None  # larger values are illegal encodings

    def bounds(self, config: Config) -> tuple[int, int]:
        """Smallest and largest legal value."""
        low = -(1 << (self.width - 1)) if self.signed else 0
        high = (1 << (self.width - (1 if self.signed else 0))) - 1
        if self.minimum is not None:
            low = self.minimum
        if isinstance(self.maximum, str):
            high = int(getattr(config, self.maximum))
        elif self.maximum is not None:
            high = self.maximum
        return low, high

    @property
    def default(self) -> int:
        """What the assembler takes for a field that is not written: 0, or the minimum."""
        return self.minimum if self.minimum is not None and self.minimum > 0 else 0


@dataclass(frozen=True, slots=True)
class Extent:
    """The rows that an instruction may touch: base ≤ row < base + Σ (N-1)·S + 1 ≤ size.

    `terms` are (counts, stride): N is the product of the counts (field names, `Select`s of one,
    configuration fields or constants), S a field name or a constant. `memory` is "act", "wgt",
    "par" (in rows), "acc", "dram" (in beats, against the size register of `base_reg`) or "local",
    which the field `memory` selects (parameter and table memory then count in beats).
    """

    memory: str
    access: str  # "read" or "write"
    base: str
    terms: Terms


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row of the table."""

    name: str
    opcode: int
    engine: int | None  # None: handled by dispatch
    doc: str
    fields: tuple[Field, ...]
    extents: tuple[Extent, ...]
    duration_doc: str
    duration: Callable[[Values, Config], int] | None  # None: depends on AXI
    uses: tuple[str, ...] = ("lanes",)  # configuration fields that give it its meaning
    revision: int = 1  # raised when the meaning changes without a change of fields
