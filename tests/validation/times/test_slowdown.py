"""Slowdowns by hand, with zeros, nan and infinities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.validation.times.slowdown import slowdown, summary_of


@pytest.mark.parametrize(
    ("seconds", "best", "expected"),
    [
        (3.0, 2.0, 0.5),
        (2.0, 2.0, 0.0),
        (1.0, 2.0, -0.5),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, math.inf),
        (0.0, 2.0, -1.0),
        (math.nan, 2.0, math.nan),
        (2.0, math.nan, math.nan),
        (math.inf, 2.0, math.inf),
    ],
)
def test_slowdowns_by_hand(seconds: float, best: float, expected: float) -> None:
    assert float(slowdown(seconds, best)) == pytest.approx(expected, nan_ok=True)


def test_arrays_are_compared_element_by_element() -> None:
    assert slowdown([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0]).tolist() == [[0.0, 0.0], [2.0, 1.0]]


@given(st.lists(st.floats(1e-9, 1e3), min_size=1))
def test_only_the_best_have_no_slowdown(seconds: list[float]) -> None:
    found = slowdown(seconds, min(seconds))
    assert (found >= 0).all()
    assert found[np.argmin(seconds)] == 0


def test_a_summary_leaves_nan_out() -> None:
    found = summary_of([[0.0, math.nan, 0.5], [1e-13, 0.1, math.nan]], 1e-12)
    assert found is not None
    assert (found.points, found.best_chosen, found.worst, found.worst_at) == (4, 2, 0.5, (0, 2))
    assert found.mean == pytest.approx(0.15)
    assert summary_of([math.nan], 0.0).points == 0
