"""Laws of Times: what they keep, what they fill, and what is saved of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import Hockney
from collwise.models.switch_points import NOBODY
from collwise.simulator.timing import Case, Timing
from collwise.validation.select.select import select
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted
from collwise.validation.times.times import State, Times, joined, running
from tests.validation.times_of import times_of

COLLECTIVES = ("bcast", "allreduce", "allgather", "reduce_scatter", "alltoall", "barrier")


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Small grids, some of whose choices run on some P only, with choices that are timed besides at some points."""
    collective = draw(st.sampled_from(COLLECTIVES))
    procs = sorted(draw(st.sets(st.integers(2, 17), min_size=1, max_size=4)))
    sizes = [0] if collective == "barrier" else sorted(draw(st.sets(st.integers(0, 2**20), min_size=1, max_size=4)))
    grid = Grid.of(collective, procs, sizes, segments=draw(st.sampled_from([(0,), (1024,), (8192, 65536)])))
    competing = draw(st.lists(st.sampled_from(grid.choices), min_size=1, max_size=6, unique=True))
    besides = draw(st.sets(st.sampled_from(grid.points))) if draw(st.booleans()) else set()
    kept = grid.only(lambda choice: choice in competing)
    return kept.with_besides(lambda p, m: LIBRARY_DECIDES if (p, m) in besides else None)


@st.composite
def timed(draw: st.DrawFn, source: str = "measured") -> Times:
    """Times of such grids in which some cases failed and some were never timed."""
    grid = draw(grids())
    seconds, error = st.floats(1e-7, 10.0), st.sampled_from(["", "", "", "it failed"])
    timings = {}
    for case in grid.cases():
        if draw(st.integers(0, 5)):
            width = draw(st.sampled_from([0.0, 1e-8, math.inf])) if source == "measured" else 0.0
            why = draw(error)
            timings[case] = Timing(case, math.nan if why else draw(seconds), half_width_seconds=width, error=why)
    return Times.of_timings(grid, timings, "somewhere", source, "Open MPI 4.1", facts={"configurations": ["3fa2"]})


def same(one: Times, other: Times) -> bool:
    fields = (
        "grid",
        "platform",
        "source",
        "maker",
        "margin",
        "max_procs",
        "filled_by",
        "notes",
        "facts",
    )
    return one.data.equals(other.data) and all(getattr(one, name) == getattr(other, name) for name in fields)


@given(timed())
def test_every_case_of_the_grid_has_a_state_that_says_what_is_known(times: Times) -> None:
    entry = Catalogue.load().find
    for a, choice in enumerate(times.grid.timed):
        algorithm = entry(times.collective, choice.algorithm)
        for i, procs in enumerate(times.procs):
            for j, size in enumerate(times.message_bytes):
                state, seconds = int(times.state.values[a, i, j]), times.seconds.values[a, i, j]
                assert math.isnan(seconds) == (state != State.TIMED)
                if algorithm is not None and algorithm.objection(procs, size):
                    assert state == State.DOES_NOT_RUN
    assert len(times.failed) == int((times.state == State.FAILED).sum())


@given(timed())
def test_the_best_is_the_least_and_only_competing_choices_are_best(times: Times) -> None:
    competing = times.seconds.values[: len(times.choices)]
    least = np.where(np.isnan(competing).all(0), np.nan, np.nanmin(np.where(np.isnan(competing), np.inf, competing), 0))
    np.testing.assert_array_equal(times.best_seconds.values, np.where(np.isinf(least), np.nan, least))
    assert ((times.best.values == NOBODY) == np.isnan(times.best_seconds.values)).all()
    assert times.best.values.max() < len(times.choices)
    slower = times.slowdown(times.best).values
    assert (np.isnan(slower) | (slower <= 1e-12)).all()


@given(timed())
def test_saved_times_are_read_as_they_were(tmp_path_factory: pytest.TempPathFactory, times: Times) -> None:
    file = tmp_path_factory.mktemp("times") / "some.times"
    AllTimes.of([times]).save(file)
    (read,) = AllTimes.load(file).values()
    assert same(read, times)
    assert [(one.case, one.error) for one in read.failed] == [(one.case, one.error) for one in times.failed]
    assert read.frame().equals(times.frame())


@given(timed(), st.data())
def test_a_grid_of_part_of_the_choices_and_points_has_their_times(times: Times, data: st.DataObject) -> None:
    procs = data.draw(st.sets(st.sampled_from(times.procs), min_size=1))
    choices = data.draw(st.sets(st.sampled_from(times.choices)))
    part = times.only(lambda one: one in choices, procs=procs)
    assert running(part.grid).shape == part.seconds.shape == (len(part.grid.timed), len(procs), len(part.message_bytes))
    for choice in part.grid.timed:
        for point in part.grid.points:
            one, other = part.seconds_of(choice, *point), times.seconds_of(choice, *point)
            assert one == other or (math.isnan(one) and math.isnan(other))
    wide = part.of_grid(times.grid)
    assert (wide.data.sizes, wide.grid) == (times.data.sizes, times.grid)
    for choice in choices:
        assert (
            wide.seconds.sel(choice=choice)
            .sel(procs=sorted(procs))
            .equals(times.seconds.sel(choice=choice).sel(procs=sorted(procs)))
        )


def beside(values: Sequence[int], here: int, known: Iterable[int], most: float) -> list[int]:
    """The places, among those that are known, of the next smaller and the next larger value within a factor."""
    below = [place for place in known if values[here] / most <= values[place] < values[here]]
    above = [place for place in known if values[here] < values[place] <= values[here] * most]
    return [*sorted(below)[-1:], *sorted(above)[:1]]


@given(timed(), st.integers(0, 2**32), st.floats(0.0, 0.3))
def test_gaps_are_filled_exactly_where_the_source_agrees_nearby(times: Times, seed: int, agreement: float) -> None:
    own, state = times.seconds.values, times.state.values
    factors = np.random.default_rng(seed).choice([1.0, 1.05, 0.9, 1.25, math.nan], own.shape)
    theirs = np.where(np.isnan(own), 0.01, own) * factors
    source = Times.of_seconds(times.grid, theirs, "somewhere", "simulated", "engine", State.NOT_ASKED)
    filled = times.filled(source, agreement)
    for a, i, j in np.ndindex(own.shape):
        known = np.argwhere(state[a] == State.TIMED).tolist()
        near = [(i, n) for n in beside(times.message_bytes, j, {n for k, n in known if k == i}, 4)]
        near += [(k, j) for k in beside(times.procs, i, {k for k, n in known if n == j}, 2)]
        differences = [abs(theirs[a, k, n] / own[a, k, n] - 1) for k, n in near if not math.isnan(theirs[a, k, n])]
        gap = state[a, i, j] in (State.NOT_ASKED, State.FAILED)
        if gap and differences and max(differences) <= agreement and not math.isnan(theirs[a, i, j]):
            wanted = (State.FILLED, theirs[a, i, j], max(differences) * theirs[a, i, j])
        else:
            wanted = (state[a, i, j], own[a, i, j], times.half_widths.values[a, i, j])
        found = [values.values[a, i, j] for values in (filled.state, filled.seconds, filled.half_widths)]
        assert found == pytest.approx(wanted, nan_ok=True)
    assert (filled.filled_by, filled.facts["filled_from"]) == ("engine", "simulated")
    assert filled.made_by.endswith("gaps filled by engine") == bool((filled.state == State.FILLED).any())


def test_rows_that_rest_on_gaps_are_known() -> None:
    """The ring is the fastest of 4 KiB, where it was not measured."""
    seconds = [[[1.0, 1.0, 1.0]], [[1.5, math.nan, 1.5]]]
    times = times_of("allreduce", (Choice("linear"), Choice("ring")), (4,), (1024, 4096, 16384), seconds, "measured")
    simulated = times_of("allreduce", times.choices, (4,), times.message_bytes, [[[9.0] * 3], [[1.5, 0.5, 1.5]]])
    table = select(times.filled(simulated))
    assert table.rules == {4: ((1024, Choice("linear")), (4096, Choice("ring")), (16384, Choice("linear")))}
    assert [table.rests_on_gaps(4, start, end) for start, end in ((1024, 4096), (4096, 16384), (16384, None))] == [
        False, True, False,
    ]  # fmt: skip


@given(st.lists(timed(), min_size=1, max_size=1), st.integers(2, 3))
def test_joined_times_have_one_more_dimension(each: list[Times], number: int) -> None:
    labels = [float(k) for k in range(number)]
    both = joined(each * number, "factor", labels)
    assert both.seconds.dims == ("choice", "procs", "message_bytes", "factor")
    for label in labels:
        assert both.data.sel(factor=label, drop=True).equals(each[0].data)
    assert (both.best.sel(factor=labels[-1], drop=True) == each[0].best).all()


def test_times_of_other_points_cannot_be_joined() -> None:
    model = PointToPointModel("hockney", "somewhere", Hockney(1e-6, 1e-9))
    one, other = (predicted(model, Grid.of("bcast", procs, (8192,))) for procs in ((4,), (8,)))
    with pytest.raises(UsageError, match="can be joined over 'factor' only if"):
        joined([one, other], "factor", [1.0, 2.0])


def test_a_model_stays_with_its_predictions_in_a_file(tmp_path: Path) -> None:
    model = PointToPointModel("hockney", "somewhere", Hockney(1e-6, 1e-9))
    times = predicted(model, Grid.of("bcast", (4, 8), (1024, 8192)))
    assert (times.state == State.NO_FORMULA).any() or times.notes
    AllTimes.of([times]).save(tmp_path / "some.times")
    assert AllTimes.load(tmp_path / "some.times")["bcast"].between == model


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "not a file of times, or one of another version"),
        ("no", "since it is not JSON"),
        ('{"format": "collwise times 1"}', "'times'"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "some.times"
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        AllTimes.load(file)


def test_a_contest_leaves_out_what_is_missing() -> None:
    grid = Grid("bcast", (Choice("linear"), Choice("binomial")), (4,), (8192,))
    case = Case("bcast", "linear", 4, 8192)
    times = Times.of_timings(grid, {case: Timing(case, 1.0)}, "here", "simulated", "engine", margin=0.01)
    assert times.state.values.ravel().tolist() == [State.TIMED, State.LEFT_OUT]


@pytest.mark.parametrize("width", [math.inf, math.nan])
def test_an_interval_that_is_not_known_is_infinite(width: float) -> None:
    grid = Grid("bcast", (Choice("chain"),), (4,), (1024,))
    timings = {case: Timing(case, 1e-3, half_width_seconds=width) for case in grid.cases()}
    times = Times.of_timings(grid, timings, "somewhere", "measured", "Open MPI 4.1")
    assert times.half_width_of(Choice("chain"), 4, 1024) == math.inf
    assert not times.has_intervals
