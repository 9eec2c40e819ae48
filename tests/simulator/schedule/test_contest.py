"""Contests among cases: what is left out is slower than the tolerance allows, and what is known is not played."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.schedule.contest import contest_of, hold_contests
from collwise.simulator.timing import Case

CASES = [
    Case("allreduce", one.name, 16, size, cut)
    for one in Catalogue.load().algorithms("allreduce")
    for size in (8, 1024, 65536)
    for cut in ((0, 512) if one.pipelined else (0,))
]
MANY_ON_EVERY_P = {one.name for one in Catalogue.load().algorithms("allreduce") if not one.bound_to_procs}


@given(
    st.lists(st.sampled_from(CASES), min_size=1, unique=True),
    st.randoms(use_true_random=False),
    st.sampled_from((0.0, 0.01, 0.5, 10.0)),
)
def test_all_within_the_tolerance_of_the_fastest_of_their_size_have_times(
    cases: list[Case], chance: object, tolerance: float
) -> None:
    """Also of those that run on every P alone. Some cannot be played, and some are known."""
    fates = {case: chance.choice((None, 1.0, 1.005, 1.3, 2.0, 9.0)) for case in cases}  # type: ignore[attr-defined]
    known = {case: seconds for case, seconds in fates.items() if seconds and chance.random() < 0.3}  # type: ignore[attr-defined]
    by_contest: dict[Case, dict[Case, float]] = {}
    for case, seconds in known.items():
        by_contest.setdefault(contest_of(case), {})[case] = seconds
    played: dict[Case, float] = {}

    def play(case: Case, most: float) -> float | None:
        assert case not in played
        played[case] = most
        seconds = fates[case]
        return None if seconds is None or seconds > most else seconds

    found = hold_contests([case for case in cases if case not in known], play, tolerance, by_contest)
    asked = {case.message_bytes for case in cases if case not in known}
    assert played.keys() == {case for case in cases if case not in known}
    assert found == {case: fates[case] for case in found}
    for size in asked:
        here = {case: seconds for case, seconds in fates.items() if case.message_bytes == size and seconds}
        everywhere = {case: seconds for case, seconds in here.items() if case.algorithm in MANY_ON_EVERY_P}
        for group in (here, everywhere):
            near = {case for case, seconds in group.items() if seconds <= min(group.values()) * (1 + tolerance)}
            assert near <= found.keys()


def test_fast_cases_of_a_size_limit_the_slow_ones_of_the_next() -> None:
    """The fastest is played first, so that no other one is played beyond its time."""
    first, *others = [Case("bcast", name, 8, 8) for name in ("linear", "chain", "binomial", "knomial")]
    seconds = {"linear": 4.0, "chain": 3.0, "binomial": 1.0, "knomial": 2.0}
    most: list[tuple[str, float]] = []

    def play(case: Case, limit: float) -> float:
        most.append((case.algorithm, limit))
        return seconds[case.algorithm]

    larger = [Case(one.collective, one.algorithm, 8, 1024) for one in (first, *others)]
    hold_contests([first, *others, *larger], play, 0.1, {})
    assert [name for name, _ in most[4:]] == sorted(seconds, key=seconds.__getitem__)
    assert [limit for _, limit in most[5:]] == pytest.approx([1.1] * 3)
