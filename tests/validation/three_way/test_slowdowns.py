from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.validation.three_way.scores import (
    ALL,
    MEAN_SLOWDOWN,
    MEDIAN_ERROR,
    WORST_SLOWDOWN,
    slowdowns_of_builtin,
    slowdowns_of_picks,
    verdicts,
)
from collwise.validation.three_way.table import POINT, SIMULATED

HERE, THERE = ("bed", "bcast", 8, 1024), ("bed", "gather", 8, 1024)


def row(
    algorithm: str, seconds: float, half_width: float = 0.0, point: tuple[str, str, int, int] = HERE, **predicted: float
) -> dict[str, object]:
    measured = {"algorithm": algorithm, "seconds": seconds, "half_width_seconds": half_width}
    return {**dict(zip(POINT, point, strict=True)), **measured, **predicted}


TABLE = [
    row("linear", 1.0, 0.05, simulated=2.0),
    row("chain", 1.2, 0.05, simulated=1.0, hockney=1.0),
    row("binary", 1.5, 0.05, simulated=3.0, hockney=1.0),
]


def test_a_pick_is_compared_with_the_best_of_all_measured() -> None:
    [of_simulation] = slowdowns_of_picks(pd.DataFrame(TABLE), SIMULATED).itertuples()
    assert of_simulation.slowdown == pytest.approx(0.2)
    assert (of_simulation.pick, of_simulation.best, of_simulation.certain) == ("chain", "linear", True)
    [of_model] = slowdowns_of_picks(pd.DataFrame(TABLE), "hockney").itertuples()
    assert (of_model.pick, of_model.candidates, of_model.measured) == ("chain", 2, 3)
    assert slowdowns_of_picks(pd.DataFrame(TABLE), "lmo").empty


def test_a_slowdown_within_the_intervals_is_not_certain() -> None:
    table = pd.DataFrame([row("a", 1.0, 0.15, simulated=2.0), row("b", 1.2, 0.15, simulated=1.0)])
    [found] = slowdowns_of_picks(table, SIMULATED).itertuples()
    assert found.slowdown == pytest.approx(0.2)
    assert not found.certain


def test_the_librarys_own_choice_may_beat_ours() -> None:
    found = slowdowns_of_builtin(pd.DataFrame([*TABLE, row("", 0.9, 0.01), row("", 1.0, point=THERE)]))
    assert list(found.slowdown) == [pytest.approx(-0.1)]


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)), min_size=1, max_size=8))
def test_slowdowns_by_brute_force(pairs: list[tuple[float, float]]) -> None:
    table = [row(f"a{i}", measured, simulated=simulated) for i, (measured, simulated) in enumerate(pairs)]
    [found] = slowdowns_of_picks(pd.DataFrame(table), SIMULATED).itertuples()
    pick = sorted(range(len(pairs)), key=lambda i: (pairs[i][1], i))[0]
    assert found.slowdown == pytest.approx(pairs[pick][0] / min(measured for measured, _ in pairs) - 1)
    assert found.slowdown >= 0


def test_every_point_has_a_pick() -> None:
    picks = slowdowns_of_picks(pd.DataFrame([*TABLE, row("linear", 1.0, point=THERE, simulated=1.0)]), SIMULATED)
    assert [tuple(point) for point in picks[POINT].to_numpy()] == [HERE, THERE]
    assert list(picks.slowdown) == [pytest.approx(0.2), 0.0]
    assert (list(picks.pick == picks.best), list(picks.certain)) == ([False, True], [True, False])


def test_verdicts_say_how_far_off() -> None:
    table = pd.DataFrame([*TABLE, row("linear", 1.0, point=THERE, simulated=1.1)])
    found = {(one.collective, one.quantity): one for one in verdicts(table)}
    assert set(found) == {
        (c, q) for c in (ALL, "bcast", "gather") for q in (MEDIAN_ERROR, MEAN_SLOWDOWN, WORST_SLOWDOWN)
    }
    assert found["gather", MEDIAN_ERROR].found == pytest.approx(0.1)
    assert found["gather", MEDIAN_ERROR].within_limit
    assert found["bcast", MEAN_SLOWDOWN].distance == pytest.approx(0.15)
    assert not found["bcast", MEAN_SLOWDOWN].within_limit
    assert found[ALL, WORST_SLOWDOWN].within_limit
    assert verdicts(pd.DataFrame([row("linear", 1.0, hockney=1.0)])) == []
