from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from collwise.validation.three_way.scores import errors_by, errors_of, rank_agreement
from collwise.validation.three_way.table import POINT, SIMULATED

COLUMNS = [*POINT, "algorithm", "seconds", "half_width_seconds", SIMULATED]


def rows(
    measured: list[float], predicted: list[float], half_width: float = 0.0, message_bytes: int = 1024
) -> pd.DataFrame:
    times = enumerate(zip(measured, predicted, strict=True))
    here = ("bed", "bcast", 8, message_bytes)
    return pd.DataFrame([(*here, f"a{i}", m, half_width, f) for i, (m, f) in times], columns=COLUMNS)


def test_errors_by_hand() -> None:
    found = errors_of(rows([1.0] * 6, [1.1, 0.7, 1.2, math.nan, 1.0, 0.95]), SIMULATED)
    assert found is not None
    assert found.count == 5
    assert found.median == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.13)
    assert found.bias == pytest.approx(-0.01)
    assert found.ninetieth == pytest.approx(0.26)
    assert found.worst == pytest.approx(-0.3)
    assert errors_of(rows([1.0], [math.nan]), SIMULATED) is None
    assert errors_of(rows([1.0], [1.0]), "lmo") is None


def test_an_error_is_of_the_measured_time() -> None:
    found = errors_by(rows([2.0, 2.0, 2.0], [1.0, 3.0, math.nan]), SIMULATED, "algorithm")
    assert {name: one.worst for name, one in found.items()} == {"a0": -0.5, "a1": 0.5}


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
    unpredicted = rows([1.0, 2.0, 7.0], [1.0, 2.0, math.nan])
    other, lonely = rows([1.0, 2.0], [2.0, 1.0], message_bytes=2048), rows([1.0], [9.0], message_bytes=4096)
    found = rank_agreement(pd.concat([unpredicted, other, lonely], ignore_index=True), SIMULATED)
    assert (found.points, found.tau, found.tau_distinguishable) == (2, 0.0, 0.0)
