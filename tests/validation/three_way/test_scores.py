from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from collwise.validation.three_way.scores import errors_by, errors_of, rank_agreement
from collwise.validation.three_way.table import SIMULATED, MeasuredPoint, MeasuredRow

HERE = MeasuredPoint("bed", "bcast", 8, 1024)


def row(
    algorithm: str, seconds: float, predicted: float | None, half_width: float = 0.0, point: MeasuredPoint = HERE
) -> MeasuredRow:
    return MeasuredRow(point, algorithm, seconds, half_width, {} if predicted is None else {SIMULATED: predicted})


def rows(
    measured: list[float], predicted: list[float], half_width: float = 0.0, point: MeasuredPoint = HERE
) -> list[MeasuredRow]:
    return [row(f"a{i}", m, f, half_width, point) for i, (m, f) in enumerate(zip(measured, predicted, strict=True))]


def test_errors_by_hand() -> None:
    found = errors_of([0.1, -0.3, 0.2, math.nan, 0.0, -0.05])
    assert found is not None
    assert found.count == 5
    assert found.median == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.13)
    assert found.bias == pytest.approx(-0.01)
    assert found.ninetieth == pytest.approx(0.26)
    assert found.worst == -0.3
    assert errors_of([math.nan]) is None


def test_an_error_is_of_the_measured_time() -> None:
    table = [row("a", 2.0, 1.0), row("b", 2.0, 3.0), row("c", 2.0, None)]
    found = errors_by(table, SIMULATED, lambda one: one.algorithm)
    assert {name: one.worst for name, one in found.items()} == {"a": -0.5, "b": 0.5}


# Steps of a millisecond: times closer than rounding errors count as ties.
times = st.lists(st.integers(1, 10_000).map(lambda ms: ms / 1000), min_size=2, max_size=9, unique=True)


@given(st.data())
def test_exact_means_give_scipys_tau_either_way(data: st.DataObject) -> None:
    measured = data.draw(times)
    predicted = data.draw(st.permutations(measured))
    found = rank_agreement(rows(measured, predicted), SIMULATED)
    expected = stats.kendalltau(measured, predicted).statistic
    assert found.tau == pytest.approx(expected)
    assert found.tau_distinguishable == pytest.approx(expected)
    assert found.distinguishable == 1.0


@given(times, st.floats(0, 3), st.randoms())
def test_pairs_within_their_intervals_do_not_count(measured: list[float], half_width: float, random: object) -> None:
    predicted = list(reversed(measured))
    found = rank_agreement(rows(measured, predicted, half_width), SIMULATED)
    pairs = list(itertools.combinations(range(len(measured)), 2))
    apart = [(i, j) for i, j in pairs if abs(measured[i] - measured[j]) > math.hypot(half_width, half_width)]
    signs = [np.sign((measured[i] - measured[j]) * (predicted[i] - predicted[j])) for i, j in apart]
    assert found.distinguishable == pytest.approx(len(apart) / len(pairs))
    assert (
        found.tau_distinguishable == pytest.approx(np.mean(signs)) if signs else math.isnan(found.tau_distinguishable)
    )


def test_equal_predictions_count_for_neither_side() -> None:
    found = rank_agreement(rows([1.0, 2.0, 3.0], [5.0, 5.0, 6.0]), SIMULATED)
    assert found.tau_distinguishable == pytest.approx(2 / 3)


def test_points_are_averaged_and_lonely_algorithms_left_out() -> None:
    other, lonely = MeasuredPoint("bed", "bcast", 8, 2048), MeasuredPoint("bed", "bcast", 8, 4096)
    table = rows([1.0, 2.0], [1.0, 2.0]) + rows([1.0, 2.0], [2.0, 1.0], point=other)
    table += [*rows([1.0], [9.0], point=lonely), row("z", 7.0, None)]
    found = rank_agreement(table, SIMULATED)
    assert (found.points, found.tau, found.tau_distinguishable) == (2, 0.0, 0.0)
