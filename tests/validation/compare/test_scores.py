"""Laws of comparing: times against themselves, picks of their own best, orders of choices, and what scipy says."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from collwise.common.errors import UsageError
from collwise.models.switch_points import NOBODY, TIE
from collwise.validation.compare.deciders import Deciding, Rules
from collwise.validation.compare.scores import AllScores, compare, distinguishable, ranks_of
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


@settings(max_examples=15)
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


@settings(max_examples=15)
@given(drawn())
def test_the_best_of_times_costs_nothing(seconds: np.ndarray) -> None:
    times = times_of(seconds)
    scores = compare(times, times.decider())
    assert not np.nansum(scores.slowdown["best of engine"].values)
    assert (scores.picks["best of engine"] == times.best).all()


@settings(max_examples=15)
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


@settings(max_examples=15)
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


SOME = st.sampled_from([1.0, 1.0 + 1e-13, 1.5, 2.0, 3.0, 7.0, math.nan])


@given(st.lists(st.tuples(SOME, SOME, st.sampled_from([0.0, 0.3, 1.0, math.inf])), min_size=1, max_size=8))
def test_ranks_are_scipys_and_pairs_within_their_intervals_do_not_count(
    times: list[tuple[float, float, float]],
) -> None:
    seconds, others, widths = map(np.array, zip(*times, strict=True))
    found = ranks_of(seconds, widths, others)
    pairs = list(itertools.combinations([one for one in times if not math.isnan(one[0] + one[1])], 2))
    known = np.isfinite(seconds + others)
    expected = stats.kendalltau(seconds[known], others[known]).statistic if pairs else math.nan
    assert found.tau == pytest.approx(expected, nan_ok=True)
    clear = [(one, other) for one, other in pairs if abs(one[0] - other[0]) > math.hypot(one[2], other[2])]
    share = len(clear) / len(pairs) if pairs else math.nan
    assert found.distinguishable == pytest.approx(share, nan_ok=True)
    # Other times that differ by rounding are equal, and count for neither side.
    signs = [np.sign(a[0] - b[0]) * np.sign(round(a[1] - b[1], 9)) for a, b in clear]
    assert found.tau_distinguishable == pytest.approx(np.mean(signs) if signs else math.nan, nan_ok=True)
    assert all(distinguishable(a[0], a[2], b[0], b[2]) == ((a, b) in clear) for a, b in pairs)


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


@settings(max_examples=8)
@given(drawn(), drawn())
def test_rows_of_tables_are_statistics_of_their_cells_and_points(right: np.ndarray, other: np.ndarray) -> None:
    judge = times_of(right)
    scores = compare(judge, times_of(other, "other"), replace(judge, maker="itself"))
    for by in (["source"], ["procs"], ["message_bytes", "source"]):
        cells: dict[tuple[object, ...], list[float]] = {}
        costs: dict[tuple[object, ...], list[float]] = {}
        for title, theirs in (("other", other), ("itself", right)):
            for i, j in np.ndindex(len(PROCS), len(SIZES)):
                place = {"source": title, "procs": PROCS[i], "message_bytes": SIZES[j]}
                key = tuple(place[name] for name in by)
                cells.setdefault(key, []).extend((theirs[:, i, j] / right[:, i, j] - 1).tolist())
                costs.setdefault(key, []).append(scores.pick(title, i, j).slowdown)
        rows = {tuple(row[name] for name in by): row for row in AllScores([scores]).table(by).to_dict("records")}
        assert [*rows] == [*costs]
        for key, row in rows.items():
            errors = np.array(cells[key])[~np.isnan(cells[key])]
            lost = np.array(costs[key])[~np.isnan(costs[key])]
            assert (row["cases"], row["points"]) == (len(errors), len(lost))
            assert row["best_picks"] == np.count_nonzero(lost <= TIE)
            if len(errors):
                sizes = np.abs(errors)
                found = [row[f"{name}_error"] for name in ("median", "mean", "ninetieth", "worst")]
                wanted = [np.median(sizes), np.mean(sizes), np.percentile(sizes, 90), np.max(sizes)]
                assert [*found, row["bias"]] == pytest.approx([*wanted, np.mean(errors)])
            if len(lost):
                assert [row["mean_slowdown"], row["worst_slowdown"]] == pytest.approx([np.mean(lost), np.max(lost)])


def test_tables_trust_the_cheapest_source() -> None:
    right = times_of(np.arange(24.0).reshape(4, 3, 2) + 1)
    good, bad = replace(right, maker="good"), times_of(30 - np.arange(24.0).reshape(4, 3, 2), "bad")
    scores = AllScores([compare(right, bad, good)])
    assert scores.trusted()["source"].tolist() == ["good", "good"]
    assert scores.trusted()["good_choices"].tolist() == ["good", "good"]
    assert "<table" in scores._repr_html_()
    assert "<table" in scores["bcast"]._repr_html_()
    with pytest.raises(UsageError, match=r"no rows come from 'algorithm'; valid: .*source"):
        scores.table(["algorithm"])


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
