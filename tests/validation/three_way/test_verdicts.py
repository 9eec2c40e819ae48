from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

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


LONG = (1024, 8191, 8192, 65536)


@settings(max_examples=6)
@given(st.lists(st.floats(0.5, 2), min_size=16, max_size=16))
def test_verdicts_are_of_all_cells_of_long_messages_and_of_each_collective(factors: list[float]) -> None:
    """Times of two broadcasts and two gathers, the second of which takes 1.2 times as long, and those by simulation."""
    drawn, measured = iter(factors), {"linear": [1.0] * 4, "binomial": [1.2] * 4}
    every, cells, points = [], [], []
    for collective in ("bcast", "gather"):
        simulated = {name: [one * next(drawn) for one in times] for name, times in measured.items()}
        every.append(made_up(measured, {SIMULATED: simulated, "lmo": {}}, sizes=LONG, collective=collective))
        for place, size in enumerate(LONG):
            first, second = (simulated[name][place] for name in measured)
            cells += [(collective, size, abs(first - 1)), (collective, size, abs(second / 1.2 - 1))]
            points.append((collective, size, 0.0 if first <= second * (1 + 1e-12) else 0.2))
    found = verdicts(AllScores(every), SIMULATED)
    groups = {ALL: lambda *_: True, LARGE: lambda _, size: size >= 8192}
    groups |= {name: lambda collective, _, name=name: collective == name for name in ("bcast", "gather")}
    assert found.collective.tolist() == [name for name in groups for _ in range(3)]
    limits = {MEDIAN_ERROR: 0.15, MEAN_SLOWDOWN: 0.05, WORST_SLOWDOWN: 0.25}
    for row in found.itertuples():
        errors, lost = ([one[2] for one in rows if groups[row.collective](*one[:2])] for rows in (cells, points))
        wanted = {MEDIAN_ERROR: np.median(errors), MEAN_SLOWDOWN: np.mean(lost), WORST_SLOWDOWN: max(lost)}
        assert row.found == pytest.approx(wanted[row.quantity])
        assert (row.limit, row.distance) == (limits[row.quantity], pytest.approx(row.found - row.limit))
        assert row.within_limit == (row.found <= row.limit)
    assert verdicts(AllScores(every), "lmo").empty
    rows = with_all(AllScores(every).error_rows(), large=True)
    for one in errors_by(rows, ["group"]).itertuples():
        assert one.count == len([cell for cell in cells if groups[one.group](*cell[:2])])
        assert one.median == pytest.approx(np.median([cell[2] for cell in cells if groups[one.group](*cell[:2])]))


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
