"""Regions in the flat memory: alignment, gaps, and every byte of a gap is watched."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.cosim.placement import (
    ORIGIN,
    PAGE_BYTES,
    check_gaps,
    fill_gaps,
    place,
    random_skews,
)
from accelsim.errors import InputError, RtlError

SIZES = {0: 64, 1: 5000, 2: 4096, 4: 1}


def test_regions_are_page_aligned_with_a_page_between_them() -> None:
    placement = place(SIZES)
    assert all(offset % PAGE_BYTES == 0 for offset in placement.offsets.values())
    gaps = list(placement.gaps())
    assert len(gaps) == len(SIZES) + 1
    assert all(end - start >= PAGE_BYTES for start, end in gaps)
    covered = sum(end - start for start, end in gaps) + sum(SIZES.values())
    assert covered == placement.total_bytes
    assert placement.address(0) == ORIGIN + PAGE_BYTES


def test_a_skew_moves_a_base_off_its_page_and_keeps_the_gaps() -> None:
    skews = {0: 64, 1: 4032, 2: 0, 4: 128, 7: 64}  # nothing lies at base register 7
    placement = place(SIZES, skews)
    assert {base: at % PAGE_BYTES for base, at in placement.offsets.items()} == {
        base: skews[base] for base in SIZES
    }
    gaps = list(placement.gaps())
    assert all(end - start >= PAGE_BYTES for start, end in gaps)
    covered = sum(end - start for start, end in gaps) + sum(SIZES.values())
    assert covered == placement.total_bytes


@pytest.mark.parametrize("skew", [1, 63, 65, -64, PAGE_BYTES, PAGE_BYTES + 64])
def test_a_skew_that_no_base_register_can_have_is_refused(skew: int) -> None:
    with pytest.raises(InputError, match=f"base register 2 is skewed by {skew} bytes"):
        place(SIZES, {2: skew})


def test_random_skews_are_off_every_page_and_repeat_with_their_seed() -> None:
    found = [random_skews(seed) for seed in range(100)]
    assert all(set(skews) == set(range(8)) for skews in found)
    values = {skew for skews in found for skew in skews.values()}
    assert values == set(range(64, PAGE_BYTES, 64))
    assert found[7] == random_skews(7) != random_skews(8)


@pytest.mark.parametrize(
    ("where", "described"),
    [
        (0, "before all regions"),
        (PAGE_BYTES + 64, "0 bytes beyond the region of base register 0"),
        (3 * PAGE_BYTES + 5000 + 7, "7 bytes beyond the region of base register 1"),
        (-1, "beyond the region of base register 4"),
    ],
)
def test_one_changed_byte_outside_the_regions_is_found(where: int, described: str) -> None:
    placement = place(SIZES)
    memory = np.zeros(placement.total_bytes, np.uint8)
    fill_gaps(memory, placement)
    check_gaps(memory, placement)
    memory[where] ^= 1
    with pytest.raises(RtlError, match=f"wrote 1 bytes outside every region.*{described}"):
        check_gaps(memory, placement)


def test_bytes_of_a_region_are_free() -> None:
    placement = place(SIZES)
    memory = np.zeros(placement.total_bytes, np.uint8)
    fill_gaps(memory, placement)
    for base, offset in placement.offsets.items():
        memory[offset : offset + SIZES[base]] ^= 0xFF
    check_gaps(memory, placement)
