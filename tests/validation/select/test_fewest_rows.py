"""Tables with a tolerance: no choice costs more than it, and no table has fewer rows; made-up and fitted times."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.registry import BY_PARTS
from collwise.models.switch_points import fastest
from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Configuration, Timing
from collwise.validation.fitting.implementation_aware import FitPlan, fit
from collwise.validation.select.collwise_rules import collwise_rules
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.fewest_rows import Chosen, fewest_rows
from collwise.validation.select.select import select_by_model, select_by_simulation
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import predicted_seconds, simulated_seconds
from tests.needs import needs

LEAST, LARGEST = 100, 1200
NAMES = ("linear", "binomial", "scatter_allgather", "knomial", "two_tree")


@dataclass(frozen=True)
class Lines:
    """A model with a piecewise-linear function for each broadcast, and the share by which P makes it slower."""

    times: Mapping[str, tuple[PiecewiseLinear, float]]
    name: str = "lines"
    platform: str = "grisou"

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return tuple(self.times)

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, fanout: int = 0,
    ) -> Array:  # fmt: skip
        line, share = self.times[algorithm]
        return np.asarray(line(message_bytes) * (1 + share * np.asarray(procs, dtype=float)))


@st.composite
def lines(draw: st.DrawFn) -> Lines:
    """Times that are similar, so that they often come within a few percent of each other."""

    def line() -> PiecewiseLinear:
        # Not so close that a time is up and down again within a few bytes.
        sizes = (LEAST, *sorted(draw(st.sets(st.sampled_from(range(200, LARGEST, 100)), max_size=3))), LARGEST)
        return PiecewiseLinear(sizes, tuple(draw(st.floats(0.9, 1.3)) for _ in sizes))

    shares = st.sampled_from((0.0, 0.0, 1e-3)) | st.floats(0, 0.02)
    return Lines({name: (line(), draw(shares)) for name in NAMES[: draw(st.integers(1, len(NAMES)))]})


TOLERANCES = st.sampled_from((0.0, 0.01, 0.05)) | st.floats(1e-4, 0.3)
PROCS = st.lists(st.integers(2, 40), min_size=1, max_size=5, unique=True).map(sorted)
SIZES = st.lists(st.integers(LEAST, LARGEST), min_size=1, max_size=6, unique=True).map(sorted)


def rows(table: DecisionTable) -> int:
    return sum(map(len, table.rules.values()))


def slowest(table: DecisionTable, grid: CaseGrid, seconds: Array) -> float:
    """The worst time of a choice at the grid's points relative to the best there."""
    choices = list(grid.candidates.values())
    points = [(p, size) for p in grid.procs for size in grid.message_bytes]
    picked = np.array([choices.index(table.choose(*point)) for point in points]).reshape(1, *seconds.shape[1:])
    return float(np.max(np.take_along_axis(seconds, picked, axis=0)[0] / np.nanmin(seconds, axis=0)))


def the_fastest_everywhere(grid: CaseGrid, seconds: Array) -> dict[int, tuple[tuple[int, object], ...]]:
    """The rules of a table of the fastest choices, without rows that repeat the one before."""
    choices, found = list(grid.candidates.values()), {}
    for p, winners in zip(grid.procs, fastest(seconds), strict=True):
        each = [(start, choices[winner]) for start, winner in zip(grid.message_bytes, winners, strict=True)]
        row = tuple(one for before, one in itertools.pairwise([(0, None), *each]) if one[1] != before[1])
        if not found or row != list(found.values())[-1]:
            found[p] = row
    return found


@given(model=lines(), procs=PROCS, tolerance=TOLERANCES)
def test_predicted_tables_keep_to_the_tolerance_at_every_size(
    model: Lines, procs: Sequence[int], tolerance: float
) -> None:
    grid = CaseGrid("bcast", tuple(procs), (LEAST, LARGEST), 1, (0,), tuple(model.times))
    every = CaseGrid("bcast", tuple(procs), tuple(range(LEAST, LARGEST + 1)), 1, (0,), tuple(model.times))
    seconds = predicted_seconds(model, every)
    table, plain = (select_by_model(model, grid, tolerance=one) for one in (tolerance, 0.0))
    assert slowest(table, every, seconds) <= 1 + tolerance + 1e-9
    assert rows(table) <= rows(plain)
    assert plain.rules == the_fastest_everywhere(every, seconds)


@given(model=lines(), procs=PROCS, sizes=SIZES, tolerance=TOLERANCES)
def test_sampled_tables_keep_to_the_tolerance_at_the_sizes(
    model: Lines, procs: Sequence[int], sizes: Sequence[int], tolerance: float
) -> None:
    grid = CaseGrid("bcast", tuple(procs), tuple(sizes), 1, (0,), tuple(model.times))
    seconds = predicted_seconds(model, grid)
    timings = {
        case: Timing(case, float(model.predict("bcast", case.algorithm, case.procs, case.message_bytes)))
        for case in grid.cases()
    }
    sweep = RunResult(timings, 0, 1, Configuration("simulated", "grisou", "SimGrid 3.32"))
    assert simulated_seconds(grid, sweep) == pytest.approx(seconds, rel=1e-15)
    tables = {}
    for one in (tolerance, 0.0):
        tables[one] = select_by_simulation(load("grisou"), grid, sweep, tolerance=one)
        assert tables[one].rules == select_by_model(model, grid, sampled=True, tolerance=one).rules
    assert slowest(tables[tolerance], grid, seconds) <= 1 + tolerance + 1e-9
    assert rows(tables[tolerance]) <= rows(tables[0.0])
    assert tables[0.0].rules == the_fastest_everywhere(grid, seconds)


@given(model=lines(), procs=PROCS, sizes=SIZES, tolerance=TOLERANCES)
def test_one_choice_for_all_sizes_keeps_to_the_tolerance_of_the_least_worst(
    model: Lines, procs: Sequence[int], sizes: Sequence[int], tolerance: float
) -> None:
    grid = CaseGrid("bcast", tuple(procs), tuple(sizes), 1, (0,), tuple(model.times))
    table, plain = (select_by_model(model, grid, one_choice=True, tolerance=one) for one in (tolerance, 0.0))
    seconds = predicted_seconds(model, grid)
    worst = np.max(seconds / np.min(seconds, axis=0), axis=-1)
    choices = list(grid.candidates.values())
    for index, p in enumerate(procs):
        chosen = worst[choices.index(table.choose(p, 0)), index]
        assert chosen <= np.min(worst[:, index]) * (1 + tolerance + 1e-9)
    assert len(table.rules) <= len(plain.rules)


def every_table(good: Sequence[Sequence[frozenset[int]]]) -> Iterable[Sequence[Chosen]]:
    """Rows of every table that chooses one of the candidates for each P and size."""
    for picks in itertools.product(*(itertools.product(*row) for row in good)):
        yield [
            tuple((size, pick) for size, pick in enumerate(row) if size == 0 or row[size - 1] != pick) for row in picks
        ]


@given(
    st.integers(1, 3).flatmap(
        lambda sizes: st.lists(
            st.lists(st.frozensets(st.integers(0, 3), min_size=1, max_size=2), min_size=sizes, max_size=sizes),
            min_size=1, max_size=3,
        )
    )
)  # fmt: skip
def test_no_table_has_fewer_rows(good: Sequence[Sequence[frozenset[int]]]) -> None:
    found = fewest_rows({p: list(enumerate(row)) for p, row in enumerate(good)})
    for p, row in enumerate(good):
        in_force = found[max(start for start in found if start <= p)]
        for size, among in enumerate(row):
            assert [pick for start, pick in in_force if start <= size][-1] in among
    least = min(
        sum(len(row) for before, row in itertools.pairwise([(), *table]) if row != before)
        for table in every_table(good)
    )
    assert sum(map(len, found.values())) == least


def test_a_row_takes_what_stays_good_enough_the_longest() -> None:
    steps = [(1, {0, 1, 2}), (10, {1, 2}), (20, {2}), (30, {0, 1}), (40, {0, 1, 3})]
    assert fewest_rows({4: [(start, frozenset(good)) for start, good in steps]}) == {4: ((1, 2), (30, 0))}


def test_process_counts_share_a_row_where_that_saves_one() -> None:
    a, b, both = frozenset({0}), frozenset({1}), frozenset({0, 1})
    assert fewest_rows({2: [(1, both)], 3: [(1, a), (50, both)], 4: [(1, both), (60, b)], 5: [(1, b)]}) == {
        2: ((1, 0),), 4: ((1, 1),),
    }  # fmt: skip
    # What begins elsewhere is not shared: below there is nothing to choose.
    assert fewest_rows({2: [(1, a)], 3: [(5, a)]}) == {2: ((1, 0),), 3: ((5, 0),)}


@needs("smpi")
def test_a_fitted_model_no_longer_flips_between_segment_sizes(tmp_path: Path) -> None:
    """By parts on Grisou, segments in steps of 4 KiB: for one P the fastest changes at more than a hundred sizes."""
    with Store(tmp_path / "timings.sqlite") as store:
        plan = FitPlan((4, 8), 2, broadcasts=("chain", "binary", "split_binary", "binomial"), collectives=("bcast",))
        model = ImplementationAware(fit(load("grisou"), plan, SimulationContext(store, jobs=1)), BY_PARTS)
    least, largest = 8192, 2**23
    segments = tuple(range(4096, 131073, 4096))
    grid = CaseGrid("bcast", (32,), (least, largest), 2, segments)
    plain, table = (select_by_model(model, grid, tolerance=one) for one in (0.0, 0.01))
    assert rows(plain) > 110
    assert rows(table) < 30
    assert len(collwise_rules([table])) < len(collwise_rules([plain])) / 3
    starts = [start for one in (plain, table) for start, _ in one.rules[32]]
    asked = {min(max(start + by, least), largest) for start in starts for by in (-1, 0, 1)}
    asked |= set(np.random.default_rng(7).integers(least, largest + 1, 2000).tolist())
    every = CaseGrid("bcast", (32,), tuple(sorted(asked)), 2, segments)
    seconds = predicted_seconds(model, every)
    assert 1 < slowest(table, every, seconds) <= 1.01 + 1e-9
    assert slowest(plain, every, seconds) == pytest.approx(1, abs=1e-9)
