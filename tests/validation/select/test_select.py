"""Laws of select: it keeps to the tolerance in the fewest rows, and to the byte where a model says it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.switch_points import TIE, good_enough
from collwise.validation.libraries.openmpi_untuned import min_bytes
from collwise.validation.select.consumers import ALL_CONSUMERS, can_choose
from collwise.validation.select.decisions import DecisionTable, undecided_points
from collwise.validation.select.select import select, tied_seconds
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid, candidates
from collwise.validation.times.sources import predicted
from collwise.validation.times.times import State, Times, running
from tests.validation.select.test_fewest_rows import every_table
from tests.validation.times_of import times_of

TOLERANCES = st.sampled_from((0.0, 0.01, 0.05)) | st.floats(1e-4, 0.3)
PROCS = st.lists(st.integers(2, 40), min_size=1, max_size=4, unique=True).map(sorted)
SECONDS = st.sampled_from((1.0, 1.005, 1.02, 1.1, 2.0)) | st.floats(0.5, 2) | st.just(math.nan)


@st.composite
def made_up(
    draw: st.DrawFn, collectives: Sequence[str] = ("bcast", "allreduce", "allgather"), source: str = "simulated"
) -> Times:
    """Times of up to four choices, of which some run on some P only and some have no time at some points."""
    collective = draw(st.sampled_from(collectives))
    among = st.lists(st.sampled_from(candidates(collective, (0,))), min_size=1, max_size=4, unique=True)
    choices, procs = draw(among), draw(PROCS)
    sizes = sorted(draw(st.sets(st.integers(0, 2000), min_size=1, max_size=4)))
    shape = (len(choices), len(procs), len(sizes))
    runs = running(Grid(collective, tuple(choices), tuple(procs), tuple(sizes)))
    seconds = np.where(runs, draw(arrays(float, shape, elements=SECONDS)), math.nan)
    widths = draw(arrays(float, shape, elements=st.sampled_from((0.0, 0.02, 0.5)))) if source == "measured" else 0.0
    return times_of(collective, choices, procs, sizes, seconds, source, widths)


def points(times: Times) -> list[tuple[int, int]]:
    """The points at which something has a time."""
    return [point for point in times.grid.points if times.at_point(*point)]


def rows(table: DecisionTable) -> int:
    return sum(map(len, table.rules.values()))


@given(times=made_up(), tolerance=TOLERANCES, doubled=st.integers(-20, 20))
def test_every_choice_is_within_the_tolerance_and_runs_wherever_its_row_holds(
    times: Times, tolerance: float, doubled: int
) -> None:
    """In seconds of any length."""
    table = select(times, tolerance=tolerance)
    for procs in range(1, 50):
        for _, choice in table.row(procs):
            assert not Catalogue.load().algorithm(times.collective, choice.algorithm).objection(procs)
    for procs, size in points(times):
        known = times.at_point(procs, size)
        chosen = table.choose(procs, size)
        assert known[chosen] <= min(known.values()) * (1 + tolerance) * (1 + 1e-12)
    longer = replace(times, data=times.data.assign(seconds=times.seconds * 2.0**doubled))
    assert select(longer, tolerance=tolerance).rules == table.rules


# Few drawn times have so few tables that all of them can be tried.
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(
    times=made_up(("bcast",)) | made_up(("bcast",), "measured"),
    tolerance=TOLERANCES,
    limit=st.sampled_from((0.02, 1.0)),
)
def test_no_table_is_shorter(times: Times, tolerance: float, limit: float) -> None:
    """Every algorithm of these runs on every P; measured times that are tied are equally good."""
    assume(not np.isnan(times.array).any())
    seconds, within = times.array, tolerance
    if not times.is_exact:
        seconds, within = tied_seconds(times, limit), max(tolerance, TIE)
    good = [[frozenset(np.flatnonzero(good_enough(seconds[:, i], within)[:, j]).tolist())
             for j in range(len(times.message_bytes))] for i in range(len(times.procs))]  # fmt: skip
    assume(math.prod(len(among) for row in good for among in row) <= 5000)
    table = select(times, tolerance=tolerance, tie_limit=limit)
    assert rows(table) == min(
        sum(len(row) for before, row in itertools.pairwise([(), *rules]) if row != before)
        for rules in every_table(good)
    )


@given(times=made_up(("bcast", "allreduce")), tolerance=TOLERANCES)
def test_one_choice_is_about_the_least_worst_for_all_sizes(times: Times, tolerance: float) -> None:
    assume(not np.isnan(times.array).any())
    table = select(times, one_choice=True, tolerance=tolerance)
    for i, procs in enumerate(times.procs):
        worst = np.max(times.array[:, i] / np.min(times.array[:, i], axis=0), axis=-1)
        (chosen,) = {table.choose(procs, size) for size in (0, *times.message_bytes, 10**9)}
        assert worst[times.index_of(chosen)] <= np.min(worst) * (1 + tolerance + 1e-9)


@given(times=made_up(source="measured"), tolerance=TOLERANCES, limit=st.floats(0, 1))
def test_a_measured_choice_is_within_the_tolerance_or_tied_within_the_limit(
    times: Times, tolerance: float, limit: float
) -> None:
    table = select(times, tolerance=tolerance, tie_limit=limit)
    for point in points(times):
        known = times.at_point(*point)
        best = min(known, key=lambda choice: known[choice])
        chosen = table.choose(*point)
        reach = known[best] + times.half_width_of(best, *point)
        tied = known[chosen] - times.half_width_of(chosen, *point) <= reach
        limits = [tolerance, *([limit] if tied else [])]
        assert known[chosen] <= known[best] * (1 + max(limits)) * (1 + 1e-9)
    undecided, decided = undecided_points(table)
    assert 0 <= undecided <= decided == len(points(times))


@st.composite
def contested(draw: st.DrawFn) -> tuple[Times, Times]:
    """All times, and those that a contest within a margin may leave of them."""
    times, margin = draw(made_up()), draw(TOLERANCES)
    entries = [Catalogue.load().algorithm(times.collective, choice.algorithm) for choice in times.choices]
    always = np.array([not entry.bound_to_procs for entry in entries])[:, None, None]
    of_always = np.min(np.where(always & ~np.isnan(times.array), times.array, math.inf), axis=0, initial=math.inf)
    limit = np.where(always, of_always, times.best_seconds.values) * (1 + margin + 1e-9)
    left_out = (times.array > limit) & draw(arrays(bool, times.array.shape))
    state = times.state.where(~left_out, State.LEFT_OUT)
    seconds = times.seconds.where(~left_out)
    return times, replace(times, data=times.data.assign(seconds=seconds, state=state), margin=margin)


@given(both=contested(), share=st.floats(0, 1))
def test_a_contest_changes_no_decision_within_its_margin(both: tuple[Times, Times], share: float) -> None:
    whole, some = both
    assert some.margin is not None
    within = some.margin * share
    assert select(some, tolerance=within).rules == select(whole, tolerance=within).rules
    with pytest.raises(UsageError, match=r"a tolerance of .* needs times of all choices, and those over"):
        select(some, tolerance=some.margin * 1.01 + 1e-3)
    with pytest.raises(UsageError, match="one choice for all sizes needs times of all choices"):
        select(some, one_choice=True)


@given(both=contested(), consumer=st.sampled_from(ALL_CONSUMERS))
def test_a_consumer_gets_what_it_can_be_asked_for_or_a_refusal(both: tuple[Times, Times], consumer: str) -> None:
    """The decisions are those of times without the others; where a contest left these out, they are refused."""
    whole, some = both
    collective = whole.collective
    if not any(can_choose(consumer, collective, choice) for choice in whole.choices):
        with pytest.raises(UsageError, match=f"{consumer} cannot express any of the timed {collective} algorithms"):
            select(whole, consumer=consumer)
        return
    table = select(whole, consumer=consumer)
    kept = whole.only(lambda choice: can_choose(consumer, collective, choice))
    if consumer.startswith("openmpi"):
        kept = replace(kept, data=kept.data.where(_enough(kept)))
    assert table.rules == select(kept).rules
    with suppress(UsageError):
        assert select(some, consumer=consumer).rules == table.rules


def _enough(times: Times) -> Any:
    """Whether every choice has enough complex doubles for Open MPI at each point."""
    enough = [
        [[size >= min_bytes(times.collective, one.algorithm, procs) for size in times.message_bytes]
         for procs in times.procs]
        for one in times.grid.timed
    ]  # fmt: skip
    return times.seconds.copy(data=np.array(enough))


def test_what_cannot_be_chosen_is_compared_only() -> None:
    """Algorithms of others, MPI's own collective, and by a model what has too few elements: exporting sees to that."""
    few = (Choice("split_binary"), Choice("linear"))
    fastest = (Choice("vendor's own"), LIBRARY_DECIDES, *few)
    times = times_of("bcast", fastest, (16,), (8, 64), [[[0.1] * 2], [[0.2] * 2], [[1.0] * 2], [[2.0] * 2]])
    assert select(times).rules == {16: ((8, few[0]),)}
    assert select(times, consumer="openmpi-4.1").rules == {16: ((8, few[1]), (64, few[0]))}
    measured = times_of("bcast", few, (16,), (8, 64), [[[1.0] * 2], [[2.0] * 2]], "measured", 0.1)
    assert select(measured, consumer="openmpi-4.1").rules == {16: ((8, few[0]),)}
    with pytest.raises(UsageError, match="decisions cannot express any of the timed bcast algorithms: vendor's own"):
        select(times.only(lambda choice: choice == fastest[0]))
    one = times_of("bcast", (Choice("two_tree"), Choice("binomial")), (4,), (8,), [[[1.0]], [[math.nan]]])
    state = one.state.where(one.seconds == 1.0, State.LEFT_OUT)
    with pytest.raises(UsageError, match="decisions for mpich need times of all choices, and those over 1 % slower"):
        select(replace(one, margin=0.01, data=one.data.assign(state=state)), consumer="mpich")
    with pytest.raises(UsageError, match="nothing is decided"):
        select(times_of("bcast", few, (4,), (8,), math.nan)).choose(4, 8)


# Models


@dataclass(frozen=True)
class Lines:
    """A model with a piecewise-linear function for each algorithm, and the share by which P makes it slower.

    Within the gap the last algorithm has no time, as in a region that is not deterministic.
    """

    times: Mapping[str, tuple[PiecewiseLinear, float]]
    collective: str = "bcast"
    gap: tuple[int, int] = (0, 0)
    name: str = "lines"
    platform: str = "grisou"
    plays: bool = False

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return tuple(self.times)

    def document(self) -> dict[str, Any]:
        return {}

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, parameter: int = 0,
    ) -> Array:  # fmt: skip
        line, share = self.times[algorithm]
        p, m = np.broadcast_arrays(np.asarray(procs, dtype=float), message_bytes)
        is_missing = (m >= self.gap[0]) & (m < self.gap[1]) & (algorithm == [*self.times][-1])
        return np.where(is_missing, np.nan, line(m) * (1 + share * p))


LEAST, LARGEST = 100, 1200
NAMES = {
    "bcast": ("linear", "binomial", "scatter_allgather", "knomial", "two_tree"),
    "allgather": ("recursive_doubling", "ring", "neighbor_exchange", "bruck"),
}


@st.composite
def lines(draw: st.DrawFn, bends: int, gaps: bool = False) -> Lines:
    """Times that are similar, so that they often come within a few percent of each other."""

    def line() -> PiecewiseLinear:
        # Not so close that a time is up and down again within a few bytes.
        between = draw(st.sets(st.sampled_from(range(200, LARGEST, 100)), max_size=bends))
        sizes = (LEAST, *sorted(between), LARGEST)
        return PiecewiseLinear(sizes, tuple(draw(st.floats(0.9, 1.3)) for _ in sizes))

    shares = st.sampled_from((0.0, 0.0, 1e-3)) | st.floats(0, 0.02)
    collective = draw(st.sampled_from(sorted(NAMES)))
    names = NAMES[collective][: draw(st.integers(1, len(NAMES[collective])))]
    gap = (500, 700) if gaps and draw(st.booleans()) else (0, 0)
    return Lines({name: (line(), draw(shares)) for name in names}, collective, gap)


def on(model: Lines, procs: Sequence[int], sizes: Sequence[int]) -> Times:
    return predicted(model, Grid.of(model.collective, procs, sizes, 1, (0,), tuple(model.times)))


def worst_slowdown(table: DecisionTable, times: Times) -> float:
    return float(np.nanmax(times.slowdown(times.picks_of(table.choice_at)).values, initial=0.0))


@settings(max_examples=40)
@given(model=lines(3, gaps=True), procs=PROCS, tolerance=TOLERANCES)
def test_exact_tables_keep_to_the_tolerance_at_every_size(model: Lines, procs: list[int], tolerance: float) -> None:
    ends, every = on(model, procs, (LEAST, LARGEST)), on(model, procs, range(LEAST, LARGEST + 1))
    table, plain = (select(ends, tolerance=one, exact=True) for one in (tolerance, 0.0))
    assert worst_slowdown(table, every) <= tolerance + 1e-9
    assert rows(table) <= rows(plain)
    assert plain.rules == select(replace(every, between=None)).rules
    last = [*model.times][-1]
    runs = any(not Catalogue.load().algorithm(model.collective, last).objection(p) for p in procs)
    why = f"{model.collective}: never chosen where model lines has no prediction for them: {last}"
    assert every.notes == ((why,) if model.gap[1] and runs else ())


@given(model=lines(0), procs=PROCS, sizes=st.sets(st.integers(LEAST, LARGEST), min_size=1, max_size=4))
def test_rows_switch_at_the_byte_where_two_lines_cross(model: Lines, procs: list[int], sizes: set[int]) -> None:
    """Between two sizes with other choices the later one begins where it is the faster one of the two."""
    known, every = on(model, procs, sorted(sizes)), on(model, procs, range(LEAST, LARGEST + 1))
    table, points_only = select(known), select(replace(known, between=None))
    for p, row in table.rules.items():
        assert [choice for _, choice in row] == [choice for _, choice in points_only.row(p)]
        for (_, before), (start, after), (size, _) in zip(row, row[1:], points_only.row(p)[1:], strict=False):
            earlier, later = (every.seconds.values[every.index_of(one), procs.index(p)] for one in (before, after))
            last = max(one for one in sizes if one < size)
            faster = [m for m in range(last + 1, size + 1) if later[m - LEAST] < earlier[m - LEAST]]
            assert start == min(faster)


def test_times_that_cannot_decide_are_refused() -> None:
    times = times_of("bcast", (Choice("linear"),), (4,), (8,), 1.0)
    with pytest.raises(UsageError, match="exact is for predicted times; simulated ones are known at single sizes only"):
        select(times, exact=True)
    over = times.data.expand_dims({"factor": [1.0, 2.0]}, axis=3)
    with pytest.raises(UsageError, match="times of bcast differ by factor; select by one of its values"):
        select(replace(times, data=over))
