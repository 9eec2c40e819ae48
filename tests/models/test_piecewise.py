"""Functions of the message size: straight between and beyond their knots."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import HockneyBySize, PLogP

SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=6, unique=True).map(sorted)


@st.composite
def functions(draw: st.DrawFn) -> PiecewiseLinear:
    sizes = draw(SIZES)
    return PiecewiseLinear(tuple(map(float, sizes)), tuple(draw(st.floats(1e-3, 1)) for _ in sizes))


def value(function: PiecewiseLinear, size: float) -> float:
    """On the line through the knots on both sides, or through the two nearest knots."""
    knots = [*zip(function.message_bytes, function.seconds, strict=True)]
    if len(knots) == 1:
        return knots[0][1]
    above = next((place for place, (knot, _) in enumerate(knots) if knot > size), len(knots) - 1)
    (low, first), (high, second) = knots[max(above, 1) - 1], knots[max(above, 1)]
    return first + (second - first) * (size - low) / (high - low)


@given(st.lists(functions(), min_size=1, max_size=3), st.lists(st.floats(0, 1500), min_size=1))
def test_functions_and_their_means_are_straight_between_and_beyond_their_knots(
    some: list[PiecewiseLinear], sizes: list[float]
) -> None:
    sizes = [*sizes, *(knot for one in some for knot in one.message_bytes)]
    each = np.array([[value(one, size) for size in sizes] for one in some])
    for function, expected in zip(some, each, strict=True):
        assert function(sizes) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        intercept, slope = function.line(sizes)
        assert intercept + slope * np.array(sizes) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        by_size = HockneyBySize(function)
        assert by_size.alpha(sizes) + np.array(sizes) * by_size.beta(sizes) == pytest.approx(expected, abs=1e-9)
        assert PLogP(0.5, function, function, function).predict(sizes) == pytest.approx(0.5 + expected, abs=1e-9)
    within = [size for size in sizes if all(one.message_bytes[0] <= size <= one.message_bytes[-1] for one in some)]
    mean = np.mean([[value(one, size) for size in within] for one in some], axis=0)
    assert PiecewiseLinear.mean(some)(within) == pytest.approx(mean, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("knots", "seconds"), [((), ()), ((1.0,), (1.0, 2.0)), ((2.0, 1.0), (1.0, 1.0))])
def test_knots_ascend_and_each_has_a_time(knots: tuple[float, ...], seconds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="knots: give at least one number, ascending, and as many seconds"):
        PiecewiseLinear(knots, seconds)
