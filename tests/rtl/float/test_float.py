"""The float modules give what NumPy's float32 gives, bit for bit, on edges and random operands."""

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

U32 = NDArray[np.uint32]
UNITS = 256
BATCHES = 2000  # of UNITS pairs of random operands for each kind
SOURCES = (
    *rtl("npu_fp_from_int.sv", "npu_fp_mul.sv", "npu_fp_add.sv", "npu_fp_round.sv"),
    Path(__file__).parent / "fp_bench.sv",
)


@pytest.mark.rtl
@pytest.mark.parametrize("check", ["from_int", "mul", "add", "round"])
def test_float_module_equals_numpy(check: str, seed: int) -> None:
    run_unit("fp_bench", SOURCES, __name__, seed=seed, only=f"check_{check}_is_exact",
             parameters={"Units": UNITS}, name=f"fp_bench-{check}")  # fmt: skip


def generator() -> np.random.Generator:
    return np.random.default_rng(int(os.environ.get("COCOTB_RANDOM_SEED", cocotb.RANDOM_SEED)))


def floats(rng: np.random.Generator, count: int, low: int, high: int) -> U32:
    """Random float32 bit patterns with exponents from 2^low to 2^high, some of them special."""
    exponent = rng.integers(low + 127, high + 128, count, dtype=np.uint32)
    fraction = rng.integers(0, 1 << 23, count, dtype=np.uint32)
    shape = rng.integers(0, 8, count)
    few = rng.integers(0, 24, count).astype(np.uint32)
    fraction = np.where(shape == 0, 0, fraction)
    fraction = np.where(shape == 1, (1 << 23) - 1, fraction)
    fraction = np.where(shape == 2, fraction >> few << few & 0x7FFFFF, fraction)  # trailing zeros
    fraction = np.where(shape == 3, np.uint32(1) << np.minimum(few, 22), fraction)
    sign = rng.integers(0, 2, count, dtype=np.uint32)
    return (sign << 31 | exponent << 23 | fraction).astype(np.uint32)


def flushed(bits: U32) -> U32:
    """Subnormal numbers become zeros of the same sign."""
    return np.where(bits & 0x7F800000 == 0, bits & 0x80000000, bits).astype(np.uint32)


def same_within_flush(actual: U32, exact: U32) -> None:
    """Bit for bit, but for results at the edge of the subnormal range, which may be zero."""
    expected = flushed(exact)
    at_edge = exact & 0x7FFFFFFF <= 0x00800000
    wrong = (actual != expected) & ~(at_edge & (actual == exact & 0x80000000))
    assert not wrong.any(), f"{wrong.sum()} of {len(actual)} differ: {np.flatnonzero(wrong)[:4]}"


async def run(dut: Any, output: str, a: U32, b: U32 | None = None) -> U32:
    """Feeds operand pairs through the bench; returns the results in order."""
    assert len(a) % UNITS == 0
    await reset(dut)
    dut.en_i.value = 1
    handle, results = getattr(dut, output), []
    for at in range(0, len(a) + UNITS, UNITS):
        if at < len(a):
            dut.a_i.value = int.from_bytes(a[at : at + UNITS].tobytes(), "little")
            if b is not None:
                dut.b_i.value = int.from_bytes(b[at : at + UNITS].tobytes(), "little")
        await RisingEdge(dut.clk_i)
        if at >= UNITS:
            results.append(int(handle.value).to_bytes(4 * UNITS, "little"))
    return np.frombuffer(b"".join(results), dtype=np.uint32)


@cocotb.test()
async def check_from_int_is_exact(dut: Any) -> None:
    rng = generator()
    count = BATCHES * UNITS
    near_powers = [(1 << k) + d for k in range(32) for d in range(-300, 301)]
    edges = np.array([s * v for v in near_powers for s in (1, -1)], dtype=np.int64)
    small = np.arange(-(1 << 17), 1 << 17)  # every 18-bit integer
    ties = (rng.integers(1 << 23, 1 << 24, count) * 2 + 1) << rng.integers(0, 7, count)
    wide = rng.integers(-(1 << 31), 1 << 31, count) >> rng.integers(0, 31, count)
    values = np.concatenate([edges, small, ties, -ties, wide]).astype(np.uint64).astype(np.uint32)
    values = np.resize(values, -(-len(values) // UNITS) * UNITS)
    actual = await run(dut, "from_int_o", values)
    assert len(actual) == len(values)
    assert (actual == values.view(np.int32).astype(np.float32).view(np.uint32)).all()


@cocotb.test()
async def check_mul_is_exact(dut: Any) -> None:
    rng = generator()
    count = BATCHES * UNITS
    wide = (floats(rng, count, -126, 127), floats(rng, count, -126, 127))
    usual = (floats(rng, count, 0, 31), floats(rng, count, -100, 100))
    zeros = np.array([0, 0x80000000], dtype=np.uint32)
    b = np.concatenate([usual[1], wide[1], floats(rng, UNITS, -100, 100)])
    a = np.concatenate([usual[0], wide[0], np.resize(zeros, UNITS)])
    actual = await run(dut, "mul_o", a, b)
    with np.errstate(over="ignore", under="ignore"):
        exact = (a.view(np.float32) * b.view(np.float32)).view(np.uint32)
    same_within_flush(actual, exact)
    assert (actual[:count] == exact[:count]).all(), "legal multipliers never meet the flush"
    assert (exact & 0x7FFFFFFF == 0x7F800000).any(), "no overflow was tried"


@cocotb.test()
async def check_add_is_exact(dut: Any) -> None:
    rng = generator()
    count = BATCHES * UNITS
    a = floats(rng, count, -100, 126)
    distance = rng.integers(-30, 31, count)
    exponent = np.clip((a >> 23 & 0xFF).astype(np.int64) + distance, 1, 254).astype(np.uint32)
    b = floats(rng, count, 0, 0) & np.uint32(0x807FFFFF) | exponent << 23
    close = a ^ (np.uint32(1) << rng.integers(0, 24, count, dtype=np.uint32)) ^ np.uint32(1 << 31)
    zeros = np.array([0, 0x80000000, 0x3F800000, 0xBF800000], dtype=np.uint32)
    far = floats(rng, count, -126, 127)
    a = np.concatenate([a, a, a, a, np.repeat(zeros, UNITS // 4)])
    b = np.concatenate([b, close, a[:count] ^ np.uint32(1 << 31), far, np.resize(zeros, UNITS)])
    actual = await run(dut, "add_o", a, b)
    with np.errstate(over="ignore", under="ignore"):
        exact = (a.view(np.float32) + b.view(np.float32)).view(np.uint32)
    same_within_flush(actual, exact)
    assert (exact & 0x7FFFFFFF == 0x7F800000).any(), "no overflow was tried"


@cocotb.test()
async def check_round_is_exact(dut: Any) -> None:
    rng = generator()
    count = BATCHES * UNITS
    halves = (np.arange(-(1 << 17), 1 << 17) / 4).astype(np.float32).view(np.uint32)
    near_ties = (rng.integers(-(1 << 21), 1 << 21, count) + 0.5).astype(np.float32).view(np.uint32)
    near_ties = near_ties + rng.integers(-1, 2, count).astype(np.uint32)
    every_exponent = np.arange(1 << 9, dtype=np.uint32) << 23
    infinite = every_exponent[every_exponent & 0x7F800000 == 0x7F800000]
    edges = (every_exponent[:, None] + np.arange(-64, 64).astype(np.uint32)).ravel()
    edges = edges[(edges & 0x7F800000 != 0x7F800000)]
    parts = [halves, near_ties, edges, infinite, floats(rng, count, -126, 127)]
    parts.append(floats(rng, count, -2, 31))
    bits = np.concatenate(parts).astype(np.uint32)
    bits = np.resize(bits, -(-len(bits) // UNITS) * UNITS)
    actual = await run(dut, "round_o", bits)
    exact = np.rint(bits.view(np.float32)).astype(np.float64)
    expected = np.clip(exact, -(1 << 31), (1 << 31) - 1).astype(np.int64)
    assert (actual.view(np.int32) == expected).all()
