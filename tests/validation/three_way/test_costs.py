from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.validation.three_way.costs import own_costs, selection_costs, summary_of
from collwise.validation.three_way.table import SIMULATED, OwnChoice, Point, Row, Table
from collwise.validation.three_way.verdict import ALL, MEAN_COST, MEDIAN_ERROR, WORST_COST, verdicts

HERE = Point("bed", "bcast", 8, 1024)
THERE = Point("bed", "gather", 8, 1024)


def row(algorithm: str, seconds: float, half_width: float = 0.0, point: Point = HERE, **foretold: float) -> Row:
    return Row(point, algorithm, seconds, half_width, foretold)


TABLE = [
    row("linear", 1.0, 0.05, simulated=2.0),
    row("chain", 1.2, 0.05, simulated=1.0, hockney=1.0),
    row("binary", 1.5, 0.05, simulated=3.0, hockney=1.0),
]


def test_a_pick_costs_what_it_takes_over_the_best_of_all_measured() -> None:
    [of_simulation] = selection_costs(TABLE, SIMULATED)
    assert of_simulation.cost == pytest.approx(0.2)
    assert (of_simulation.pick, of_simulation.best, of_simulation.certain) == ("chain", "linear", True)
    [of_model] = selection_costs(TABLE, "hockney")
    assert (of_model.pick, of_model.candidates, of_model.measured) == ("chain", 2, 3)
    assert selection_costs(TABLE, "lmo") == []


def test_a_cost_within_the_intervals_is_not_certain() -> None:
    [found] = selection_costs([row("a", 1.0, 0.15, simulated=2.0), row("b", 1.2, 0.15, simulated=1.0)], SIMULATED)
    assert found.cost == pytest.approx(0.2)
    assert not found.certain


def test_the_librarys_own_choice_may_beat_ours() -> None:
    found = own_costs(TABLE, [OwnChoice(HERE, 0.9, 0.01), OwnChoice(THERE, 1.0, 0.0)])
    assert [one.cost for one in found] == [pytest.approx(-0.1)]


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)), min_size=1, max_size=8))
def test_costs_by_brute_force(pairs: list[tuple[float, float]]) -> None:
    table = [row(f"a{i}", measured, simulated=simulated) for i, (measured, simulated) in enumerate(pairs)]
    [found] = selection_costs(table, SIMULATED)
    pick = sorted(range(len(pairs)), key=lambda i: (pairs[i][1], i))[0]
    assert found.cost == pytest.approx(pairs[pick][0] / min(measured for measured, _ in pairs) - 1)
    assert found.cost >= 0


def test_a_summary_counts_best_picks() -> None:
    costs = selection_costs([*TABLE, row("linear", 1.0, point=THERE, simulated=1.0)], SIMULATED)
    found = summary_of(costs)
    assert found is not None
    assert (found.points, found.best_picked, found.certain) == (2, 1, 1)
    assert found.mean == pytest.approx(0.1)
    assert found.worst.point == HERE
    assert summary_of([]) is None


def test_verdicts_say_how_far_off() -> None:
    table = Table((*TABLE, row("linear", 1.0, point=THERE, simulated=1.1)))
    found = {(one.collective, one.quantity): one for one in verdicts(table)}
    assert set(found) == {(c, q) for c in (ALL, "bcast", "gather") for q in (MEDIAN_ERROR, MEAN_COST, WORST_COST)}
    assert found["gather", MEDIAN_ERROR].found == pytest.approx(0.1)
    assert found["gather", MEDIAN_ERROR].kept
    assert found["bcast", MEAN_COST].distance == pytest.approx(0.15)
    assert not found["bcast", MEAN_COST].kept
    assert found[ALL, WORST_COST].kept
    assert verdicts(Table((row("linear", 1.0, hockney=1.0),))) == []
