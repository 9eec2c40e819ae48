"""Criteria and checks on made-up times whose violations are known."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.validation.guidelines.checks import MONOTONY, PATTERN, SPLIT, Call, Launches, RankTest, Share, check


def exact(**seconds: float) -> dict[Call, Launches]:
    """Times of a broadcast on 4 processes, by size ('m8')."""
    return {Call("bcast", 4, int(name[1:])): Launches((value,)) for name, value in seconds.items()}


def test_the_rule_of_the_paper_takes_the_median_of_medians() -> None:
    slow, fast = Launches((100.0, 10.0, 10.0, 1.0, 10.0)), Launches((9.0, 8.9, 8.9, 0.1, 50.0))
    assert (slow.seconds, fast.seconds) == (10, 8.9)
    assert [one.slower for one in Share(0.1).judge([(slow, fast), (fast, slow), (slow, Launches((9.0,)))])] == [
        True,
        False,
        False,
    ]


def test_shares_and_levels_that_make_no_sense_are_refused() -> None:
    makers = (lambda: Share(1.0), lambda: Share(-0.1), lambda: RankTest(alpha=0.0), lambda: RankTest(correction="b"))
    for make in makers:
        with pytest.raises(UsageError):
            make()


def test_the_exact_rank_test_of_five_against_five() -> None:
    """All of five above all of five: one of C(10, 5) orders."""
    (verdict,) = RankTest().judge([(Launches((6.0, 7.0, 8.0, 9.0, 10.0)), Launches((1.0, 2.0, 3.0, 4.0, 5.0)))])
    assert verdict.slower
    assert verdict.p_value == pytest.approx(1 / math.comb(10, 5))


def test_the_correction_counts_all_comparisons() -> None:
    """Of many comparisons one that stands alone needs more launches: min_launches says how many."""
    criterion, alike = RankTest(), [(Launches((1.0, 3.0, 5.0)), Launches((2.0, 4.0, 6.0)))]
    apart = (Launches((4.0, 5.0, 6.0)), Launches((1.0, 2.0, 3.0)))
    assert criterion.judge([apart])[0].slower
    assert not criterion.judge([apart, *alike * 10])[0].slower
    assert criterion.min_launches(1) == 3
    assert criterion.min_launches(11) == 5
    assert math.comb(10, 5) * 0.05 > 11 > math.comb(8, 4) * 0.05


def test_equal_distributions_are_seldom_violations() -> None:
    """The share of false discoveries among comparisons of equal distributions stays below the level."""
    random.seed(1)
    found = 0
    for _ in range(20):
        pairs = [
            (
                Launches(tuple(random.gauss(1, 0.1) for _ in range(8))),
                Launches(tuple(random.gauss(1, 0.1) for _ in range(8))),
            )
            for _ in range(50)
        ]
        found += any(one.slower for one in RankTest().judge(pairs))
    assert found <= 4


def test_failed_calls_do_not_count() -> None:
    apart = (Launches((4.0, 5.0, 6.0)), Launches((1.0, 2.0, 3.0)))
    verdicts = RankTest().judge([(Launches((), "failed"), Launches((1.0,))), apart])
    assert [one.slower for one in verdicts] == [False, True]


def test_each_kind_is_found() -> None:
    own = exact(m8=10.0, m16=5.0, m64=30.0)
    mockups = {("GL9", Call("bcast", 4, 16)): Launches((4.0,)), ("GL10", Call("bcast", 4, 16)): Launches((6.0,))}
    found = check(own, mockups, Share(0.01))
    assert [(one.guideline, one.call.message_bytes, one.other_bytes, one.calls) for one in found.violations] == [
        (MONOTONY, 8, 16, 1),
        ("GL9", 16, 16, 1),
        (SPLIT, 64, 16, 4),
    ]
    assert found.counts() == {PATTERN: 1, MONOTONY: 1, SPLIT: 1}
    assert found.checked() == {PATTERN: 2, MONOTONY: 2, SPLIT: 2}


def test_calls_of_other_process_counts_and_collectives_are_not_compared() -> None:
    slow, quick = Launches((9.0,)), Launches((1.0,))
    own = {Call("bcast", 4, 8): slow, Call("bcast", 8, 16): quick, Call("gather", 4, 16): quick}
    assert not check(own, {}, Share(0.0)).comparisons


@given(st.lists(st.floats(0.001, 1000), min_size=2, max_size=8))
def test_times_that_grow_less_than_the_size_keep_both(seconds: list[float]) -> None:
    """Ascending times violate no monotony; monotony and splitting agree with their definitions on any times."""
    sizes = [2**number for number in range(len(seconds))]
    own = {Call("scan", 4, size): Launches((one,)) for size, one in zip(sizes, seconds, strict=True)}
    found = check(own, {}, Share(0.0)).comparisons
    expected = {
        (MONOTONY, small, large)
        for (small, left), (large, right) in itertools.combinations(zip(sizes, seconds, strict=True), 2)
        if right < left
    } | {
        (SPLIT, large, small)
        for (small, left), (large, right) in itertools.combinations(zip(sizes, seconds, strict=True), 2)
        if large // small * left < right
    }
    assert {(one.guideline, one.call.message_bytes, one.other_bytes) for one in found if one.violated} == expected
