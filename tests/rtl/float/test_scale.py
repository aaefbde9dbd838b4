"""The integer scaling modules give what Python's integers give, in every mode and for any words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from accelsim.cosim.streams import reset
from accelsim.cosim.unit import rtl, run_unit
from tests.rtl.float.scale_oracle import HALF_UP, INTEGER_MODES, TFLITE, edge_words, scaled

I64 = NDArray[np.int64]
UNITS = 256
BATCHES = 300  # of UNITS random operands a mode
SHIFTS = np.arange(-32, 32)
NAMES = {TFLITE: "tflite", 2: "half_up", 3: "half_even", 4: "half_away"}
TIE_UP, TIE_AWAY = 0, 2
SOURCES = (
    *rtl("gen/edge8/npu_pkg.sv", "npu_vector_pkg.sv", "npu_scale_raise.sv"),
    *rtl("npu_scale_multiply.sv", "npu_scale_round.sv"),
    Path(__file__).parent / "scale_bench.sv",
)


@pytest.mark.rtl
@pytest.mark.parametrize("mode", INTEGER_MODES, ids=NAMES.get)
@pytest.mark.parametrize("check", ["edges", "random", "small"])
def test_scaled_integer_equals_exact_arithmetic(check: str, mode: int, seed: int) -> None:
    run_unit("scale_bench", SOURCES, __name__, seed=seed, only=f"check_{check}",
             parameters={"Units": UNITS}, name=f"scale_bench-{check}-{mode}",
             environment={"SCALE_MODE": str(mode)})  # fmt: skip


def packed(values: I64, bits: int) -> int:
    """Fields of `bits` bits, the first lowest."""
    places = (values[:, None] >> np.arange(bits)) & 1
    return int.from_bytes(np.packbits(places.astype(bool), bitorder="little").tobytes(), "little")


async def compare(dut: Any, values: I64, mantissas: I64, shifts: I64) -> None:
    """Scales all values on the bench and by the oracle."""
    mode = int(os.environ["SCALE_MODE"])
    await reset(dut)
    dut.en_i.value = 1
    dut.high_i.value = mode == TFLITE
    dut.tie_i.value = TIE_AWAY if mode == TFLITE else TIE_UP + mode - HALF_UP
    left = np.maximum(shifts, 0) if mode == TFLITE else np.zeros_like(shifts)
    right = np.maximum(-shifts, 0) if mode == TFLITE else 31 - shifts
    batches = -(-len(values) // UNITS)
    operands = [np.resize(x, batches * UNITS) for x in (values, mantissas, left, right)]
    actual = []
    for batch in range(batches + 1):
        if batch < batches:
            part = slice(batch * UNITS, (batch + 1) * UNITS)
            for port, bits, words in zip("abcd", (32, 32, 5, 6), operands, strict=True):
                name = {"c": "left", "d": "right"}.get(port, port)
                getattr(dut, f"{name}_i").value = packed(words[part], bits)
        await RisingEdge(dut.clk_i)
        if batch:
            actual.append(int(dut.scaled_o.value).to_bytes(4 * UNITS, "little"))
    results = np.frombuffer(b"".join(actual), dtype=np.int32)
    for at, case in enumerate(
        zip(values.tolist(), mantissas.tolist(), shifts.tolist(), strict=True)
    ):
        assert results[at] == scaled(mode, *case), f"value, mantissa, shift {case}"


def generator() -> np.random.Generator:
    return np.random.default_rng(cocotb.RANDOM_SEED)


@cocotb.test()
async def check_edges(dut: Any) -> None:
    """Every edge value with random edge mantissas, and the four corners, at every shift."""
    rng = generator()
    edges = np.array(edge_words(), np.int64)
    values = np.repeat(edges, len(SHIFTS) * 4)
    shifts = np.resize(SHIFTS, len(values))
    mantissas = rng.choice(edges, len(values))
    corners = np.array([-(2**31), 2**31 - 1])
    corner_values = np.repeat(corners, 2 * len(SHIFTS))
    corner_mantissas = np.resize(np.repeat(corners, len(SHIFTS)), 4 * len(SHIFTS))
    await compare(
        dut,
        np.concatenate([values, corner_values]),
        np.concatenate([mantissas, corner_mantissas]),
        np.concatenate([shifts, np.resize(SHIFTS, 4 * len(SHIFTS))]),
    )


@cocotb.test()
async def check_random(dut: Any) -> None:
    """Words of every magnitude; shifts that bring most products near small integers and ties."""
    rng = generator()
    count = BATCHES * UNITS
    values = rng.integers(-(2**31), 2**31, count) >> rng.integers(0, 31, count)
    mantissas = rng.integers(2**30, 2**31, count) * rng.choice([1, 1, 1, -1], count)
    zeros = rng.integers(0, 31, count) * (rng.random(count) < 0.4)  # low bits: ties
    mantissas = mantissas >> zeros << zeros
    magnitude = np.log2(np.abs(values) + 1).astype(np.int64)
    shifts = np.clip(8 - magnitude - rng.integers(0, 9, count), -32, 31)
    wild = rng.random(count) < 0.2
    shifts = np.where(wild, rng.integers(-32, 32, count), shifts)
    await compare(dut, values, mantissas, shifts)


@cocotb.test()
async def check_small(dut: Any) -> None:
    """Every value of 12 bits by powers of two and thirds, rounded to a few places."""
    small = np.arange(-(2**11), 2**11)
    factors = [(2**30, -2), (2**30, 1), (-(2**30), -5), (2**30 + 1, -1), (2**31 // 3 + 1, 0)]
    values = np.tile(small, len(factors))
    mantissas = np.repeat([m for m, _ in factors], len(small))
    await compare(dut, values, mantissas, np.repeat([s for _, s in factors], len(small)))
