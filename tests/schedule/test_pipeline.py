"""The estimate by which plans are compared waits where the hardware does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accelsim.schedule.pipeline import Work, store_cycles, total_cycles
from accelsim.spec.config import CONFIGS

PRODUCTS = Work((), 100, True, (1000,), (1,), 1, beats=1, others=0)
DRAINS = Work((), 100, True, (1,), (500,), 300, beats=1, others=0)


def test_an_input_waits_until_the_products_of_its_slot_have_ended() -> None:
    # Inputs of 1500 cycles: the third goes to the first one's slot, which is read until 2501.
    works = [replace(PRODUCTS, load=1500)] * 3
    # Loads end at 1500, 3000 and 4500, and no slot is waited for: products of 1001 follow the last.
    assert total_cycles(works, 2) == 4500 + 1001 + 2 + 2
    # Inputs of 900 cycles: 900, 1800, and the third from 1901 on, when the first products end.
    works = [replace(PRODUCTS, load=900)] * 2 + [replace(PRODUCTS, load=5000)]
    assert total_cycles(works, 2) == 1901 + 5000 + 1001 + 2 + 2


def test_an_input_that_shares_its_slot_waits_for_none() -> None:
    works = [replace(PRODUCTS, load=900)] * 2
    works.append(replace(PRODUCTS, load=5000, opens=False))
    assert total_cycles(works, 2) == 1800 + 5000 + 1001 + 2 + 2


@pytest.mark.parametrize(("slots", "cycles"), [(1, 200 + 3 * 802), (2, 200 + 3 * 501 + 301)])
def test_drains_wait_for_the_store_before_where_outputs_have_one_slot(
    slots: int, cycles: int
) -> None:
    # The first drain's parameters come behind the second input, which has arrived at 200.
    assert total_cycles([DRAINS] * 3, slots) == cycles


@pytest.mark.parametrize("beats", [64, 128, 200])
def test_a_store_of_one_burst_is_answered_once_memory_has_all_of_it(beats: int) -> None:
    """Each beat more is one on the bus and one in memory."""
    config = CONFIGS["edge8"]
    first, second = (store_cycles({"count0": n}, config) for n in (beats, beats + 1))
    assert second - first >= 2
