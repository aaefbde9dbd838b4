"""The unit bench builds a module, drives its streams in all patterns and sees planted bugs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cocotb
import pytest

from accelsim.cosim.streams import Pattern, StreamDriver, StreamMonitor, reset, seeded_rng
from accelsim.cosim.unit import run_unit

pytestmark = pytest.mark.rtl

FIFO = (Path(__file__).parent / "rtl" / "small_fifo.sv",)


def test_fifo_keeps_order_under_every_pattern() -> None:
    result = run_unit("small_fifo", FIFO, __name__, only="check_order", seed=7)
    assert result.tests == len(Pattern)


def test_parameters_reach_the_module() -> None:
    wide = {"Width": 19, "Depth": 8}
    run_unit("small_fifo", FIFO, __name__, only="check_order", parameters=wide)


def test_a_corrupted_word_fails_the_run() -> None:
    broken = {"Break": 1}
    result = run_unit("small_fifo", FIFO, __name__, only="check_order", seed=3, parameters=broken,
                      expect_failure="assert .* == ")  # fmt: skip
    assert result.failed == result.tests == len(Pattern)


def test_another_failure_than_the_planted_one_is_no_success() -> None:
    with pytest.raises(AssertionError, match="small_fifo failed without 'output changed'"):
        run_unit("small_fifo", FIFO, __name__, only="check_order", parameters={"Break": 1},
                 expect_failure="output changed")  # fmt: skip


def test_planted_failure_that_passes_is_no_success() -> None:
    with pytest.raises(AssertionError, match="expected a failure, every test passed"):
        run_unit("small_fifo", FIFO, __name__, only="check_order", expect_failure="anything")


def test_assertion_in_the_rtl_is_seen_firing() -> None:
    message = "small_fifo: output changed while stalled"
    broken = {"Break": 2}
    run_unit("small_fifo", FIFO, __name__, only="check_stall", parameters=broken,
             expect_failure=message)  # fmt: skip


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_order(dut: Any, pattern: Pattern) -> None:
    await reset(dut)
    rng = seeded_rng("words")
    words = [rng.getrandbits(len(dut.in_data_i)) for _ in range(200)]
    source = StreamDriver(dut, "in_valid_i", "in_ready_o", ["in_data_i"], pattern)
    sink = StreamMonitor(dut, "out_valid_o", "out_ready_i", ["out_data_o"], pattern)
    await source.send_all(words)
    assert await sink.receive(len(words)) == words
    source.finish()
    sink.finish()


@cocotb.test()
async def check_stall(dut: Any) -> None:
    await reset(dut)
    dut.out_ready_i.value = 0
    source = StreamDriver(dut, "in_valid_i", "in_ready_o", ["in_data_i"])
    await source.send(5)
    for word in range(3):
        await source.send(word)
