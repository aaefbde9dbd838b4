"""Dispatch pushes legal instructions to their engine and reports the first violation, in time."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import Pattern, StreamDriver, reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.encoding import check, positions
from accelsim.spec.isa import DISPATCH_CYCLES, INSTRUCTIONS, Instruction
from accelsim.spec.registers import ErrorCode

PROGRAMS = {"edge8": 150, "base16": 60, "wide32": 30}


def run(config: str, seed: int, only: str, expect_failure: str | None = None) -> None:
    sources = rtl(f"gen/{config}/npu_pkg.sv", "npu_dispatch.sv")
    run_unit("npu_dispatch", sources, __name__, seed=seed, only=only, expect_failure=expect_failure,
             environment={"NPU_CONFIG": config}, name=f"dispatch-{config}-{only}")  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_legal_instructions_are_pushed_and_others_reported(config: str, seed: int) -> None:
    run(config, seed, "check_programs")


@pytest.mark.rtl
def test_changed_instruction_while_waiting_is_seen_by_the_assertion(seed: int) -> None:
    message = "npu_dispatch: instruction changed while valid and not ready"
    run("edge8", seed, "check_unstable", message)


def encode(row: Instruction, values: dict[str, int]) -> int:
    at = positions(row.name)
    return sum((values[f.name] & ((1 << f.width) - 1)) << at[f.name] for f in row.fields)


def legal_values(rng: random.Random, row: Instruction, config: Config) -> dict[str, int]:
    """Small values, so that extents hold often; legal fields always."""
    values = {}
    for f in row.fields:
        low, high = f.bounds(config)
        top = min(high, max(low, 0) + rng.choice([0, 0, 1, 3, 17]))
        values[f.name] = rng.choice([max(low, 0), rng.randint(max(low, 0), top)])
    values["opcode"] = row.opcode
    own = 0xF if row.engine is None else 1 << row.engine
    values["take"] = rng.getrandbits(4) & ~own
    values["give"] = rng.getrandbits(4) & ~own
    return values


def instruction(rng: random.Random, config: Config) -> int:
    """Mostly legal; else one field anywhere in its width, a reserved bit, or an opcode."""
    row = rng.choice(INSTRUCTIONS[1:])
    values = legal_values(rng, row, config)
    kind = rng.random()
    if kind < 0.2:
        f = rng.choice(row.fields[1:])
        values[f.name] = rng.choice([0, (1 << f.width) - 1, rng.getrandbits(f.width)])
    word = encode(row, values)
    if kind > 0.97:
        word |= 1 << rng.randrange(sum(f.width for f in row.fields), 512)
    elif kind > 0.94:
        word = word & ~0xFF | rng.choice([0, 9, 31, 32, 33, 36, 255, rng.getrandbits(8)])
    return word


def words(instruction_bits: int) -> list[int]:
    return [instruction_bits >> 32 * i & 0xFFFFFFFF for i in range(16)]


class Watch:
    """Ready for pushes at random; notes what is pushed and reported, and when."""

    def __init__(self, dut: Any, pattern: Pattern) -> None:
        self.dut, self.cycle, self.stalled = dut, 0, 0
        self.pushes: list[tuple[int, int, int]] = []  # cycle, engine mask, command
        self.errors: list[tuple[int, int, int]] = []  # cycle, code, index
        self.takes: list[int] = []
        self.pattern, self.rng = pattern, seeded_rng(f"watch {pattern}")
        self.early = 0
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut = self.dut
        while True:
            ready = 0 if self.pattern.stalls and self.rng.random() < 0.6 else 15
            dut.push_ready_i.value = ready
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            valid = int(dut.push_valid_o.value)
            if valid & ready:
                self.pushes.append((self.cycle, valid, int(dut.push_cmd_o.value)))
            self.stalled += valid != 0 and not ready
            if dut.error_valid_o.value == 1:
                self.errors.append(
                    (self.cycle, int(dut.error_code_o.value), int(dut.index_o.value))
                )
            if dut.instr_valid_i.value == 1 and dut.instr_ready_o.value == 1:
                self.takes.append(self.cycle)


async def begin(dut: Any, watch: Watch, length: int) -> None:
    dut.run_i.value, dut.clear_i.value = 0, 1
    dut.length_i.value = length
    await RisingEdge(dut.clk_i)
    dut.clear_i.value = 0
    watch.pushes.clear()
    watch.errors.clear()
    watch.takes.clear()
    dut.run_i.value = 1


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_programs(dut: Any, pattern: Pattern) -> None:
    config = CONFIGS[os.environ["NPU_CONFIG"]]
    rng = seeded_rng(f"programs {pattern}")
    await reset(dut)
    watch = Watch(dut, pattern)
    source = StreamDriver(dut, "instr_valid_i", "instr_ready_o",
                          ["instr_i", "instr_error_i"], pattern)  # fmt: skip
    sizes = [rng.randrange(1 << rng.randrange(6, 32)) for _ in range(8)]
    dut.size_i.value = sum(size << 32 * i for i, size in enumerate(sizes))
    dut.opcodes_i.value = opcodes = sum(1 << row.opcode for row in INSTRUCTIONS)
    seen = dict.fromkeys(("END", *(c.name for c in ErrorCode if 1 <= c <= 4 or c in (7, 9))), 0)
    for _ in range(PROGRAMS[config.name]):
        length = rng.randint(1, 6)
        await begin(dut, watch, length)
        code, pushed, last = ErrorCode.NO_END, list[tuple[int, int]](), length
        for index in range(length):
            word, bad = instruction(rng, config), rng.random() < 0.03
            if index == length - 1 and rng.random() < 0.6:
                word = 1
            await source.send({"instr_i": word, "instr_error_i": int(bad)})
            violation = check(words(word), config, opcodes, sizes)
            if bad or violation is not None:
                code, last = ErrorCode.BUS_FETCH, index
                if not bad and violation is not None:
                    code = violation.code
                break
            if word == 1:
                code, last = ErrorCode.NONE, index
                break
            row = next(r for r in INSTRUCTIONS if r.opcode == word & 0xFF)
            assert row.engine is not None
            pushed.append((1 << row.engine, index << 512 | word))
        ended = False
        for _ in range(60):
            await RisingEdge(dut.clk_i)
            ended = ended or dut.end_o.value == 1
            if watch.errors or ended:
                break
        await RisingEdge(dut.clk_i)
        assert [(m, c) for _, m, c in watch.pushes] == pushed
        for (at, _, _), taken in zip(watch.pushes, watch.takes, strict=False):
            assert at - taken >= DISPATCH_CYCLES
            assert pattern.stalls or at - taken == DISPATCH_CYCLES
        assert ended == (code is ErrorCode.NONE)
        seen["END" if ended else code.name] += 1
        if not ended:
            assert [(c, i) for _, c, i in watch.errors] == [(code, last)]
            before = watch.takes[-1] + DISPATCH_CYCLES
            if code is ErrorCode.NO_END:
                before = watch.pushes[-1][0] + 1
            assert watch.errors[0][0] == before
    assert all(seen.values()) or config.name != "edge8", seen
    source.finish(expect_stalls=True)
    assert (watch.stalled > 0) == pattern.stalls


@cocotb.test()
async def check_unstable(dut: Any) -> None:
    await reset(dut)
    dut.run_i.value, dut.length_i.value, dut.instr_valid_i.value = 1, 5, 1
    for cycle in range(6):
        dut.instr_i.value = cycle << 100
        await RisingEdge(dut.clk_i)
