"""Where the regions of the base registers lie in the flat simulated memory.

What comes in: sizes by base register. What goes out: offsets, with a guard gap before, between and
after regions; and whether a run left the gaps alone. This module must not know what regions hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import InputError, RtlError
from accelsim.spec.isa import BASE_REGISTERS
from accelsim.spec.registers import BASE_ALIGN_BYTES

PAGE_BYTES = 4096
# No divisor of a page, so that a copy from one gap to another is seen.
PATTERN_BYTES = 4093
# Bus address of the flat memory: high, so that all 40 address bits matter.
ORIGIN = 0xA5_4000_0000


@dataclass(frozen=True, slots=True)
class Placement:
    """Offsets and sizes in bytes by base register, and the size of the whole."""

    offsets: Mapping[int, int]
    sizes: Mapping[int, int]
    total_bytes: int

    def gaps(self) -> Iterator[tuple[int, int]]:
        """(start, end) offsets of the memory that belongs to no region."""
        end = 0
        for base, offset in sorted(self.offsets.items(), key=lambda item: item[1]):
            yield end, offset
            end = offset + self.sizes[base]
        yield end, self.total_bytes

    def address(self, base: int) -> int:
        """Bus address of a region."""
        return ORIGIN + self.offsets[base]

    def addresses(self) -> dict[int, int]:
        """Bus addresses of all regions by base register."""
        return {base: self.address(base) for base in self.offsets}


def place(sizes: Mapping[int, int], skews: Mapping[int, int] | None = None) -> Placement:
    """Regions in the order of their base registers, a page or more between them.

    Each begins at a page, or `skews` bytes after one. Raises InputError for a skew that is no
    multiple of 64 or not less than a page.
    """
    skews = skews or {}
    for base, skew in skews.items():
        if skew % BASE_ALIGN_BYTES or not 0 <= skew < PAGE_BYTES:
            raise InputError(
                f"base register {base} is skewed by {skew} bytes, use a multiple of "
                f"{BASE_ALIGN_BYTES} below {PAGE_BYTES}"
            )
    offsets: dict[int, int] = {}
    at = PAGE_BYTES
    for base, size in sorted(sizes.items()):
        offsets[base] = at + skews.get(base, 0)
        at = -(-(offsets[base] + size) // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
    return Placement(offsets, dict(sizes), at)


def random_skews(seed: int) -> dict[int, int]:
    """Skews by base register that put no region at a page."""
    steps = np.random.default_rng(seed).integers(1, PAGE_BYTES // BASE_ALIGN_BYTES, BASE_REGISTERS)
    return {base: int(step) * BASE_ALIGN_BYTES for base, step in enumerate(steps)}


def guard_pattern() -> NDArray[np.uint8]:
    """Bytes that no program is likely to write; they repeat through the whole memory."""
    return np.random.default_rng(0x6A5D).integers(1, 256, PATTERN_BYTES).astype(np.uint8)


def _guard(start: int, end: int, pattern: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Expected bytes of offsets [start, end)."""
    first = start % PATTERN_BYTES
    count = -(-(first + end - start) // PATTERN_BYTES)
    return np.tile(pattern, count)[first : first + end - start]


def fill_gaps(memory: NDArray[np.uint8], placement: Placement) -> None:
    """Writes the pattern wherever no region lies."""
    pattern = guard_pattern()
    for start, end in placement.gaps():
        memory[start:end] = _guard(start, end, pattern)


def check_gaps(memory: NDArray[np.uint8], placement: Placement) -> None:
    """Raises RtlError that names the first byte outside all regions that a run changed."""
    pattern = guard_pattern()
    for start, end in placement.gaps():
        wrong = np.flatnonzero(memory[start:end] != _guard(start, end, pattern))
        if len(wrong):
            at = start + int(wrong[0])
            raise RtlError(
                f"the RTL wrote {len(wrong)} bytes outside every region, first at bus address "
                f"{ORIGIN + at:#x} ({_describe(at, placement)})."
            )


def _describe(offset: int, placement: Placement) -> str:
    """Where an offset lies relative to the region before it."""
    before = [base for base, start in placement.offsets.items() if start <= offset]
    if not before:
        return "before all regions"
    base = max(before, key=lambda b: placement.offsets[b])
    beyond = offset - placement.offsets[base] - placement.sizes[base]
    return f"{beyond} bytes beyond the region of base register {base}"
