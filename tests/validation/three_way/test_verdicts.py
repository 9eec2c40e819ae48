from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from collwise.simulator.timing import Case, Timing
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.three_way.verdicts import (
    ALL,
    LARGE,
    MEAN_SLOWDOWN,
    MEDIAN_ERROR,
    OWN,
    SIMULATED,
    WORST_SLOWDOWN,
    errors_by,
    rank_agreement,
    repeatability,
    verdicts,
    with_all,
)
from tests.validation.three_way.made_up import made_up


def one_point(measured: list[float], predicted: list[float], half_width: float = 0.0) -> Scores:
    """Times of algorithms at one point, and those by simulation."""
    ours, theirs = ({f"a{i}": [one] for i, one in enumerate(each)} for each in (measured, predicted))
    return made_up(ours, {SIMULATED: theirs}, half_width=half_width)


def ranks(*scores: Scores) -> Any:
    """The rank agreement of all of one source."""
    return rank_agreement(AllScores(scores)).iloc[0]


def test_errors_by_hand() -> None:
    rows = one_point([1.0] * 6, [1.1, 0.7, 1.2, math.nan, 1.0, 0.95]).error_rows()
    [found] = errors_by(rows, []).itertuples()
    assert found.count == 5
    assert found.median == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.13)
    assert found.bias == pytest.approx(-0.01)
    assert found.ninetieth == pytest.approx(0.26)
    assert found.worst == pytest.approx(-0.3)
    assert errors_by(one_point([1.0], [math.nan]).error_rows(), []).empty


def test_an_error_is_of_the_measured_time() -> None:
    rows = one_point([2.0, 2.0, 2.0], [1.0, 3.0, math.nan]).error_rows()
    found = errors_by(rows.assign(name=[one.algorithm for one in rows.choice]), ["name"])
    assert dict(zip(found.name, found.worst, strict=True)) == {"a0": -0.5, "a1": 0.5}


def test_all_collectives_come_first_and_large_messages_next() -> None:
    rows = made_up({"chain": [1.0, 1.0]}, {SIMULATED: {"chain": [1.1, 1.3]}}, sizes=(1024, 8192)).error_rows()
    found = errors_by(with_all(rows, large=True), ["group"])
    assert dict(zip(found.group, found["count"], strict=True)) == {ALL: 2, LARGE: 1, "bcast": 2}


# Steps of a millisecond: times closer than rounding errors count as ties.
times = st.lists(st.integers(1, 10_000).map(lambda ms: ms / 1000), min_size=2, max_size=9, unique=True)


@given(st.data())
def test_exact_means_give_scipys_tau_either_way(data: st.DataObject) -> None:
    measured = data.draw(times)
    predicted = data.draw(st.permutations(measured))
    found = ranks(one_point(measured, predicted))
    expected = stats.kendalltau(measured, predicted).statistic
    assert found.tau == pytest.approx(expected)
    assert found.tau_distinguishable == pytest.approx(expected)
    assert found.distinguishable == 1.0


@given(times, st.floats(0, 3))
def test_pairs_within_their_intervals_do_not_count(measured: list[float], half_width: float) -> None:
    predicted = list(reversed(measured))
    found = ranks(one_point(measured, predicted, half_width))
    pairs = list(itertools.combinations(range(len(measured)), 2))
    apart = [(i, j) for i, j in pairs if abs(measured[i] - measured[j]) > math.hypot(half_width, half_width)]
    signs = [np.sign((measured[i] - measured[j]) * (predicted[i] - predicted[j])) for i, j in apart]
    assert found.distinguishable == pytest.approx(len(apart) / len(pairs))
    assert (
        found.tau_distinguishable == pytest.approx(np.mean(signs)) if signs else math.isnan(found.tau_distinguishable)
    )


def test_equal_predictions_count_for_neither_side() -> None:
    assert ranks(one_point([1.0, 2.0, 3.0], [5.0, 5.0, 6.0])).tau_distinguishable == pytest.approx(2 / 3)


def test_points_are_averaged_and_lonely_algorithms_left_out() -> None:
    measured = {"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, math.nan], "c": [7.0, math.nan, math.nan]}
    predicted = {"a": [1.0, 2.0, 9.0], "b": [2.0, 1.0, math.nan]}
    found = ranks(made_up(measured, {SIMULATED: predicted}, sizes=(1024, 2048, 4096)))
    assert (found.points, found.tau, found.tau_distinguishable) == (2, 0.0, 0.0)


MEASURED = {"linear": [1.0], "chain": [1.2], "binary": [1.5]}
OTHERS = {
    SIMULATED: {"linear": [2.0], "chain": [1.0], "binary": [3.0]},
    "hockney": {"chain": [1.0], "binary": [1.0]},
    "lmo": {},
}


def picks(scores: Scores) -> dict[str, Any]:
    """The picks of each source at one point."""
    return {row.source: row for row in scores.pick_rows().dropna(subset="slowdown").itertuples()}


def test_a_pick_is_compared_with_the_best_of_all_measured() -> None:
    found = picks(made_up(MEASURED, OTHERS, half_width=0.05))
    of_simulation, of_model = found[SIMULATED], found["hockney"]
    assert of_simulation.slowdown == pytest.approx(0.2)
    assert (of_simulation.pick.algorithm, of_simulation.best.algorithm, of_simulation.certain) == (
        "chain",
        "linear",
        True,
    )
    assert (of_model.pick.algorithm, of_model.candidates, of_model.measured) == ("chain", 2, 3)
    assert "lmo" not in found


def test_a_slowdown_within_the_intervals_is_not_certain() -> None:
    found = picks(one_point([1.0, 1.2], [2.0, 1.0], 0.15))[SIMULATED]
    assert found.slowdown == pytest.approx(0.2)
    assert not found.certain


def test_the_librarys_own_choice_may_beat_ours() -> None:
    found = picks(made_up(MEASURED, OTHERS, own=[0.9]))[OWN]
    assert (found.slowdown, found.candidates) == (pytest.approx(-0.1), 0)
    assert OWN not in picks(made_up({"chain": [math.nan]}, {}, own=[1.0]))


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)), min_size=1, max_size=8))
def test_slowdowns_by_brute_force(pairs: list[tuple[float, float]]) -> None:
    found = picks(one_point([one for one, _ in pairs], [other for _, other in pairs]))[SIMULATED]
    least = min(simulated for _, simulated in pairs)
    # Of times that are equal but for rounding the first one is the pick.
    pick = next(i for i, (_, simulated) in enumerate(pairs) if simulated <= least * (1 + 1e-9))
    assert found.slowdown == pytest.approx(pairs[pick][0] / min(measured for measured, _ in pairs) - 1)
    assert found.slowdown >= 0


def test_verdicts_say_how_far_off() -> None:
    gather = made_up({"linear": [1.0]}, {SIMULATED: {"linear": [1.1]}}, collective="gather")
    every = AllScores([made_up(MEASURED, OTHERS), gather])
    found = {(one.collective, one.quantity): one for one in verdicts(every, SIMULATED).itertuples()}
    assert set(found) == {
        (c, q) for c in (ALL, "bcast", "gather") for q in (MEDIAN_ERROR, MEAN_SLOWDOWN, WORST_SLOWDOWN)
    }
    assert found["gather", MEDIAN_ERROR].found == pytest.approx(0.1)
    assert found["gather", MEDIAN_ERROR].within_limit
    assert found["bcast", MEAN_SLOWDOWN].distance == pytest.approx(0.15)
    assert not found["bcast", MEAN_SLOWDOWN].within_limit
    assert found[ALL, WORST_SLOWDOWN].within_limit
    assert verdicts(every, "lmo").empty


def test_repeated_means_agree_within_the_interval_of_their_difference() -> None:
    case = Case("bcast", "chain", 8, 1)

    def timing(seconds: float, half_width: float, error: str = "") -> Timing:
        return Timing(case, seconds, half_width_seconds=half_width, repetitions=5, error=error)

    found = repeatability(
        [
            (timing(1.0, 0.1), timing(1.09, 0.1)),
            (timing(1.0, 0.1), timing(1.15, 0.1)),
            (timing(1.0, 0.1), timing(1.3, 0.1)),
            (timing(1.0, 0.1), timing(math.nan, 0.1, "failed")),
        ]
    )
    assert (found.cases, found.within, found.overlapping, found.inside) == (3, 1, 2, 1)
    assert found.median_difference == pytest.approx(0.15)
    assert found.worst_difference == pytest.approx(0.3)
