"""Slowdowns by hand, with zeros, nan and infinities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from collwise.validation.times.slowdown import slowdown, summary_of

SECONDS = st.sampled_from((0.0, 1.0, 2.0, math.inf, math.nan)) | st.floats(1e-9, 1e3)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1), st.sampled_from((0.0, 1e-12, 0.5)))
def test_slowdowns_and_their_summary_are_those_of_the_definition(pairs: list[tuple[float, float]], good: float) -> None:
    """Also of zeros, infinities and missing times."""

    def of(seconds: float, best: float) -> float:
        if seconds == best:
            return 0.0
        if math.isnan(seconds + best):
            return math.nan
        return math.inf if best == 0 else seconds / best - 1

    expected = [of(*pair) for pair in pairs]
    found = slowdown([[one for one, _ in pairs]] * 2, [best for _, best in pairs])
    for row in found:
        assert row.tolist() == pytest.approx(expected, nan_ok=True)
    summary, known = summary_of(found, good), [one for one in expected if not math.isnan(one)]
    assert summary.points == 2 * len(known)
    if known:
        assert summary.best_chosen == 2 * sum(one <= good for one in known)
        assert (summary.mean, summary.worst) == (pytest.approx(sum(known) / len(known)), max(known))
        assert summary.worst_at == (0, next(k for k, one in enumerate(expected) if one == max(known)))
        assert summary.best_share == summary.best_chosen / summary.points
    else:
        assert math.isnan(summary.mean + summary.worst + summary.best_share)
