"""Laws of comparing: times against themselves, picks of their own best, orders of choices, and what scipy says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from collwise.common.errors import UsageError
from collwise.models.switch_points import NOBODY
from collwise.validation.compare.deciders import Deciding, Rules
from collwise.validation.compare.scores import AllScores, Errors, compare, distinguishable, ranks_of
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times

PROCS, SIZES = (3, 4, 8), (1024, 65536)
ALGORITHMS = ("linear", "chain", "binomial", "scatter_allgather")


def times_of(seconds: np.ndarray, maker: str = "engine", algorithms: tuple[str, ...] = ALGORITHMS) -> Times:
    grid = Grid.of("bcast", PROCS, SIZES, segments=(8192,), algorithms=algorithms)
    return Times.of_seconds(grid, seconds, "gros", "simulated", maker, State.NOT_ASKED)


def drawn(share_missing: bool = True) -> st.SearchStrategy[np.ndarray]:
    one = st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0, math.nan] if share_missing else [1.0, 1.5, 2.0, 3.0, 7.0])
    shape = (len(ALGORITHMS), len(PROCS), len(SIZES))
    return st.lists(one, min_size=math.prod(shape), max_size=math.prod(shape)).map(lambda v: np.reshape(v, shape))


@settings(max_examples=25)
@given(drawn())
def test_times_have_no_error_and_no_slowdown_by_themselves(seconds: np.ndarray) -> None:
    times = times_of(seconds)
    scores = compare(times, times)
    assert not np.nansum(np.abs(scores.errors["engine"].values))
    assert (np.isnan(scores.slowdown["engine"].values) == np.isnan(times.best_seconds.values)).all()
    assert not np.nansum(scores.slowdown["engine"].values)
    (row,) = scores.table().to_dict("records")
    assert row["cases"] == np.isfinite(seconds).sum()
    assert row["best_picks"] == row["points"] == len(scores.places("engine"))
    assert math.isnan(row["tau"]) or row["tau"] == pytest.approx(1)


@settings(max_examples=25)
@given(drawn())
def test_the_best_of_times_costs_nothing(seconds: np.ndarray) -> None:
    times = times_of(seconds)
    scores = compare(times, times.decider())
    assert not np.nansum(scores.slowdown["best of engine"].values)
    assert (scores.picks["best of engine"] == times.best).all()


@settings(max_examples=25)
@given(drawn(), drawn(), st.permutations(range(len(ALGORITHMS))))
def test_another_order_of_choices_changes_picks_at_ties_only(
    right: np.ndarray, other: np.ndarray, order: list[int]
) -> None:
    names = tuple(ALGORITHMS[index] for index in order)
    scores = compare(times_of(right), times_of(other, "other"))
    again = compare(times_of(right[order], algorithms=names), times_of(other[order], "other", names))
    for i, j in np.ndindex(len(PROCS), len(SIZES)):
        first, second = scores.pick("other", i, j), again.pick("other", i, j)
        assert (first.choice is None) == (second.choice is None)
        if first.choice != second.choice:
            by_other = [scores.times["other"].seconds_of(one, PROCS[i], SIZES[j]) for one in (first[0], second[0])]
            assert by_other[0] == by_other[1]
    assert np.array_equal(scores.errors["other"].values[order], again.errors["other"].values, equal_nan=True)


@settings(max_examples=25)
@given(drawn(), drawn())
def test_picks_are_judged_by_the_right_times(right: np.ndarray, other: np.ndarray) -> None:
    judge = times_of(right)
    scores = compare(judge, times_of(other, "other"))
    for i, j in np.ndindex(len(PROCS), len(SIZES)):
        both = np.isfinite(right[:, i, j]) & np.isfinite(other[:, i, j])
        picked = scores.pick("other", i, j)
        if not both.any():
            assert picked.choice is None
            continue
        chosen = int(np.argmin(np.where(both, other[:, i, j], np.inf)))
        assert picked.choice == judge.choices[chosen]
        assert picked.slowdown == pytest.approx(right[chosen, i, j] / np.nanmin(right[:, i, j]) - 1)


@settings(max_examples=25)
@given(drawn(share_missing=False), drawn())
def test_ranks_are_scipys(right: np.ndarray, other: np.ndarray) -> None:
    ours, theirs = right[:, 0, 0], other[:, 0, 0]
    known = np.isfinite(theirs)
    expected = stats.kendalltau(ours[known], theirs[known]).statistic if known.sum() > 1 else math.nan
    found = ranks_of(ours, np.zeros(len(ours)), theirs)
    assert found.tau == pytest.approx(expected, nan_ok=True)
    # Without intervals all pairs of different right times count.
    assert math.isnan(found.distinguishable) or found.distinguishable == pytest.approx(
        np.mean([a != b for k, a in enumerate(ours[known]) for b in ours[known][k + 1 :]])
    )


def test_pairs_within_their_intervals_do_not_count() -> None:
    seconds, widths = np.array([1.0, 1.1, 2.0]), np.array([0.1, 0.1, math.inf])
    assert not distinguishable(1.0, 0.1, 1.1, 0.1)
    assert math.isnan(ranks_of(seconds, widths, seconds).tau_distinguishable)
    found = ranks_of(seconds, np.array([0.05, 0.05, 0.05]), np.array([1.0, 1.0, 2.0]))
    assert (found.tau_distinguishable, found.distinguishable) == (pytest.approx(2 / 3), 1)


def test_a_decider_may_be_faster_than_all_that_compete_and_may_choose_nothing() -> None:
    times = times_of(np.full((4, 3, 2), 2.0))
    other = Choice("binary", 1024)
    grid = times.grid.with_besides(lambda procs, size: other if procs == 8 else None)
    seconds = np.concatenate(
        [times.seconds.values, np.where(np.arange(3)[:, None] == 2, 1.0, np.nan) * np.ones((1, 1, 2))]
    )
    times = Times.of_seconds(grid, seconds, "gros", "simulated", "engine", State.NOT_ASKED)
    library = Deciding("library", lambda collective, procs, size: other if procs > 3 else None)
    scores = compare(times, library)
    assert scores.slowdown["library"].values[2].tolist() == [-0.5, -0.5]
    assert (scores.picks["library"].values[0] == NOBODY).all()
    assert np.isnan(scores.slowdown["library"].values[:2]).all()
    assert scores.table()["points"].tolist() == [2]
    assert math.isnan(scores.table()["mean_error"][0])


def test_rules_leave_calls_to_the_untuned_library() -> None:
    rules = {3: ((0, Choice("linear")), (65536, LIBRARY_DECIDES))}
    table = DecisionTable("bcast", "gros", 1, "simulated", "engine", rules)
    untuned = Deciding("untuned", lambda collective, procs, size: Choice("binomial"))
    assert Rules([table]).choice("bcast", 8, 65536) == LIBRARY_DECIDES
    assert Rules([table], untuned=untuned).choice("bcast", 8, 65536) == Choice("binomial")
    assert Rules([table], untuned=untuned).choice("bcast", 8, 1) == Choice("linear")
    assert Rules([table]).choice("gather", 8, 1) is None


def test_tables_have_rows_by_any_column_and_trust_the_cheapest_source() -> None:
    right = times_of(np.arange(24.0).reshape(4, 3, 2) + 1)
    good, bad = replace(right, maker="good"), times_of(30 - np.arange(24.0).reshape(4, 3, 2), "bad")
    scores = AllScores([compare(right, bad, good)])
    assert scores.table(["source"])["source"].tolist() == ["bad", "good"]
    assert len(scores.table(["message_bytes", "source"])) == 4
    assert scores.table(["procs"])["cases"].sum() == 2 * np.isfinite(right.array).sum()
    assert scores.trusted()["source"].tolist() == ["good", "good"]
    assert scores.trusted()["good_choices"].tolist() == ["good", "good"]
    assert "<table" in scores._repr_html_()
    assert "<table" in scores["bcast"]._repr_html_()
    with pytest.raises(UsageError, match=r"no rows come from 'algorithm'; valid: .*source"):
        scores.table(["algorithm"])


def test_errors_are_summarised_by_size_and_sign() -> None:
    found = Errors.of([0.1, -0.4, math.nan, 0.2])
    assert found is not None
    assert (found.count, found.median, found.worst) == (3, 0.2, -0.4)
    assert found.bias == pytest.approx(-0.1 / 3)
    assert Errors.of([math.nan]) is None


def test_times_of_another_collective_and_two_of_one_name() -> None:
    right = times_of(np.ones((4, 3, 2)))
    grid = Grid.of("gather", PROCS, SIZES, segments=(8192,), algorithms=("linear",))
    other = Times.of_seconds(grid, np.ones((1, 3, 2)), "gros", "simulated", "engine", State.NOT_ASKED)
    with pytest.raises(UsageError, match="times of gather cannot be compared with those of bcast"):
        compare(right, other)
    assert list(compare(right, right, right).others) == ["engine", "engine (2)"]


def test_only_what_both_know_is_kept() -> None:
    first, second = np.ones((4, 3, 2)), np.ones((4, 3, 2))
    first[0, 0, 0] = second[1, 2, 1] = math.nan
    both = times_of(first).known_to(times_of(second))
    assert np.argwhere(np.isnan(both.array)).tolist() == [[0, 0, 0], [1, 2, 1]]
    assert both.state_of(both.choices[1], 8, 65536) == State.NOT_ASKED
