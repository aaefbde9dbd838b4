"""Requantization against exact rational arithmetic, at edges and at random."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from accelsim.spec import arithmetic as a

RNG = np.random.default_rng(5)
EDGES = np.array(
    [0, 1, -1, 2, -2, 127, -128, (1 << 24) + 1, -(1 << 24) - 1, a.INT32_MAX, a.INT32_MIN],
    dtype=np.int64,
)
ACCUMULATORS = np.concatenate([EDGES, RNG.integers(a.INT32_MIN, a.INT32_MAX + 1, 200)])


def round_half_even(x: Fraction) -> int:
    return round(x)


def nearest_float32(x: Fraction) -> Fraction:
    """float32 nearest to a rational, half to even, for normal results."""
    if x == 0:
        return x
    exponent = 0
    magnitude = abs(x)
    while magnitude >= 2:
        magnitude, exponent = magnitude / 2, exponent + 1
    while magnitude < 1:
        magnitude, exponent = magnitude * 2, exponent - 1
    step = Fraction(2) ** (exponent - 23)
    return round(x / step) * step


def saturate(x: int) -> int:
    return min(max(x, a.INT32_MIN), a.INT32_MAX)


@pytest.mark.parametrize("multiplier", [2.0**-100, 3e-6, 0.0017, 0.5, 0.99999994, 1.0, 16.0])
def test_fp32_rounds_after_each_operation(multiplier: float) -> None:
    m = np.float32(multiplier)
    expected = [
        saturate(
            round_half_even(nearest_float32(nearest_float32(Fraction(int(x))) * Fraction(float(m))))
        )
        for x in ACCUMULATORS
    ]
    assert a.scale_fp32(ACCUMULATORS, np.full(len(expected), m)).tolist() == expected


def test_add_rounds_both_products_their_sum_and_the_result() -> None:
    x, y = np.meshgrid(np.arange(-255, 256, 7), np.arange(-255, 256, 11))
    sa, sb, inv = np.float32(0.037), np.float32(0.0211), np.float32(1 / 0.05)
    got = a.add_fp32(x.ravel(), y.ravel(), sa, sb, inv)

    def exact(p: int, q: int) -> int:
        left = nearest_float32(p * Fraction(float(sa)))
        right = nearest_float32(q * Fraction(float(sb)))
        return round_half_even(
            nearest_float32(nearest_float32(left + right) * Fraction(float(inv)))
        )

    assert got.tolist() == [
        exact(int(p), int(q)) for p, q in zip(x.ravel(), y.ravel(), strict=True)
    ]


def away(x: Fraction) -> int:
    magnitude = (abs(x) + Fraction(1, 2)).__floor__()
    return magnitude if x >= 0 else -magnitude


@pytest.mark.parametrize("shift", [0, 1, 2, 13, 21, 22, 30, 31])
@pytest.mark.parametrize("b_multiplier", [0, 1, (1 << 21) + 12345, 1 << 22])
def test_fixed_sum_is_the_exact_quotient_with_ties_away(shift: int, b_multiplier: int) -> None:
    x, y = np.meshgrid(np.arange(-255, 256, 6), np.arange(-255, 256, 5))
    x, y = np.append(x, [255, -255]), np.append(y, [255, -255])
    ma, mb = np.int32(1 << 22), np.int32(b_multiplier)
    expected = [
        away(Fraction(int(p) * int(ma) + int(q) * int(mb), 1 << shift))
        for p, q in zip(x, y, strict=True)
    ]
    assert a.add_fixed(x, y, ma, mb, np.int32(shift)).tolist() == expected


def test_multipliers_up_to_their_limit_cannot_leave_int32() -> None:
    assert 2 * 255 * a.FIXED_MULTIPLIER_MAX <= a.INT32_MAX
    assert a.FIXED_MULTIPLIER_MAX < 1 << a.FIXED_MULTIPLIER_BITS
    assert a.FIXED_SHIFT_MAX == (1 << a.FIXED_SHIFT_BITS) - 1


@pytest.mark.parametrize("shift", range(1, 31))
def test_every_tie_of_a_fixed_sum_and_its_neighbours_round_away_from_zero(shift: int) -> None:
    """The first operand makes an odd number of halves, the second is what is beside them."""
    steps = max(0, shift - 23)  # what a multiplier of 2^22 leaves to the operand
    ma, mb = np.int32(1 << (shift - 1 - steps)), np.int32(1)
    odd = np.arange(-255, 256, 2)
    x, y = np.meshgrid(odd[np.abs(odd) << steps <= 255] << steps, [-1, 0, 1])
    pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    expected = [away(Fraction(p * int(ma) + q, 1 << shift)) for p, q in pairs]
    assert a.add_fixed(x.ravel(), y.ravel(), ma, mb, np.int32(shift)).tolist() == expected


def test_fixed_sum_is_defined_for_every_parameter_word() -> None:
    x, y = RNG.integers(-255, 256, (2, 5000))
    ma, mb, shift = RNG.integers(a.INT32_MIN, a.INT32_MAX + 1, (3, 5000))

    def exact(p: int, q: int, left: int, right: int, places: int) -> int:
        total = p * (left % (1 << 23)) + q * (right % (1 << 23))
        wrapped = (total + (1 << 31)) % (1 << 32) - (1 << 31)
        return away(Fraction(wrapped, 1 << places % 32))

    rows = zip(*(v.tolist() for v in (x, y, ma, mb, shift)), strict=True)
    words = (ma.astype(np.int32), mb.astype(np.int32), shift.astype(np.int32))
    assert a.add_fixed(x, y, *words).tolist() == [exact(*row) for row in rows]


@pytest.mark.parametrize("shift", [-31, -7, -1, 0, 3, 30])
@pytest.mark.parametrize("mantissa", [1 << 30, (1 << 31) - 1, 1518500250])
def test_single_rounding_modes_equal_the_rounded_real_product(mantissa: int, shift: int) -> None:
    values = ACCUMULATORS
    m, s = np.int64(mantissa), np.int64(shift)
    exact = [Fraction(int(v) * mantissa) * Fraction(2) ** (shift - 31) for v in values]
    assert a.scale_half_even(values, m, s).tolist() == [saturate(round(x)) for x in exact]
    half_up = [saturate((x + Fraction(1, 2)).__floor__()) for x in exact]
    assert a.scale_half_up(values, m, s).tolist() == half_up
    assert a.scale_half_away(values, m, s).tolist() == [saturate(away(x)) for x in exact]


def test_integer_modes_are_defined_for_every_parameter_word() -> None:
    words = np.concatenate([EDGES, RNG.integers(a.INT32_MIN, a.INT32_MAX + 1, 500)])
    mantissas, accumulators = RNG.permutation(words), RNG.permutation(words)
    mantissas[:2] = accumulators[:2] = a.INT32_MIN
    exact = {
        "half_even": round,
        "half_up": lambda x: (x + Fraction(1, 2)).__floor__(),
        "half_away": away,
    }
    for shift in range(-32, 32):
        for mode, rounded in exact.items():
            got = a.scale(mode, accumulators, mantissas, np.full(len(words), shift | 1 << 20))
            pairs = zip(accumulators.tolist(), mantissas.tolist(), strict=True)
            factor = Fraction(2) ** (shift - 31)
            assert got.tolist() == [saturate(rounded(p * q * factor)) for p, q in pairs]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9, 49, 961, 4095, 65535, 1 << 24])
def test_a_reciprocal_divides_exactly(count: int) -> None:
    mantissa, shift = a.reciprocal(count)
    reach = (1 << 29) - 1
    ties = [(2 * k + 1) * count // 2 + d for k in range(-50, 50) for d in (-1, 0, 1)]
    values = np.array([-reach, reach, *ties, *RNG.integers(-reach, reach + 1, 20000)])
    values = values[np.abs(values) <= reach]
    got = a.scale_half_away(values, np.int64(mantissa), np.int64(shift))
    assert got.tolist() == [away(Fraction(int(v), count)) for v in values]


def test_a_reciprocal_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="count is 0"):
        a.reciprocal(0)


@pytest.mark.parametrize("subtract", [False, True])
def test_tflite_sum_scales_both_operands_and_their_sum(subtract: bool) -> None:
    x, y = RNG.integers(-255, 256, (2, 3000))
    words = [RNG.integers(1 << 30, 1 << 31, 3000) for _ in range(3)]
    words += [RNG.integers(-6, 2, 3000), RNG.integers(-6, 2, 3000), RNG.integers(-20, -8, 3000)]

    def twice(v: int, mantissa: int, shift: int) -> int:
        raised = saturate(v << max(shift, 0)) * mantissa
        high = (raised + (1 << 30)) >> 31 if raised >= 0 else -((-raised + (1 << 30) - 1) >> 31)
        return away(Fraction(high, 1 << max(-shift, 0)))

    def exact(p: int, q: int, w: tuple[int, ...]) -> int:
        left, right = twice(p << 20, w[0], w[3]), twice(q << 20, w[1], w[4])
        total = left - right if subtract else left + right
        return twice((total + (1 << 31)) % (1 << 32) - (1 << 31), w[2], w[5])

    rows = zip(x.tolist(), y.tolist(), zip(*(w.tolist() for w in words), strict=True), strict=True)
    expected = [exact(*row) for row in rows]
    assert len(set(expected)) > 16
    assert a.add_tflite(x, y, tuple(words), subtract).tolist() == expected


@pytest.mark.parametrize("shift", [-31, -12, -1, 0, 2])
def test_tflite_rounds_twice_each_time_half_away(shift: int) -> None:
    mantissa = 1518500250

    def half_up_except_ties_down(x: Fraction) -> int:
        """The high multiply rounds negative ties towards zero's other side: floor(x + ½) of |x|."""
        return away(x)

    def expected(v: int) -> int:
        raised = saturate(v << max(shift, 0))
        high = Fraction(raised * mantissa, 1 << 31)
        nudged = (
            (raised * mantissa + (1 << 30)) // (1 << 31)
            if raised * mantissa >= 0
            else -((-(raised * mantissa) - 1 + (1 << 30)) // (1 << 31))
        )
        assert abs(Fraction(nudged) - high) <= Fraction(1, 2)
        return half_up_except_ties_down(Fraction(nudged, 1 << max(-shift, 0)))

    got = a.scale_tflite(ACCUMULATORS, np.int64(mantissa), np.int64(shift))
    assert got.tolist() == [expected(int(v)) for v in ACCUMULATORS]


def test_tflite_saturates_its_one_overflow() -> None:
    low = np.array([a.INT32_MIN])
    assert a.doubling_high_multiply(low, low).tolist() == [a.INT32_MAX]


def test_division_by_a_count_rounds_ties_away() -> None:
    values = np.arange(-50, 51)
    for count in (1, 2, 3, 4, 9):
        exact = [Fraction(int(v), count) for v in values]
        expected = [
            int((abs(x) + Fraction(1, 2)).__floor__()) * (1 if x >= 0 else -1) for x in exact
        ]
        assert a.divide_half_away(values, np.int64(count)).tolist() == expected


def test_finish_adds_then_clamps_low_then_high() -> None:
    values = np.array([-(1 << 31), -5, 0, 5, (1 << 31) - 1])
    assert a.finish(values, 10, -3, 12).tolist() == [-3, 5, 10, 12, 12]
    assert a.finish(values, 0, 5, -5).tolist() == [-5] * 5


@pytest.mark.parametrize(
    ("value", "legal"),
    [(2.0**-100, True), (2.0**-101, False), (0.0, False), (-1.0, False), (np.nan, False)],
)
def test_multipliers_are_positive_and_bounded(value: float, legal: bool) -> None:
    assert a.legal_multiplier(np.float32(value)) is legal
