"""Decision tables of models and of simulated times: what a table says at its points and between them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Algorithm, Catalogue, Collective
from collwise.common.errors import UsageError
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import AlgorithmFit, ModelParameters
from collwise.models.piecewise import Array
from collwise.models.registry import BY_PARTS, MODELS
from collwise.models.single_messages import Hockney
from collwise.models.switch_points import fastest
from collwise.simulator.timing import Case, Timing
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.select import select
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predict_choice, predicted
from collwise.validation.times.times import Times

SEGMENT = 8192
GATHERS = ("linear", "linear_sync", "binomial")


def parameters(**alphas: float) -> ImplementationAware:
    """Gather models whose alphas are given; beta is 1e-9 for all."""
    pairs = {name: Hockney(alpha, 1e-9) for name, alpha in alphas.items()}
    fits = {name: AlgorithmFit({"main/eager": pair, "main/rendezvous": pair}, (0.0,)) for name, pair in pairs.items()}
    made_up = ModelParameters(
        "grisou", "made up", 1, 65536, SEGMENT, Gamma((8192.0,), ((1.0, 1.1),)), Hockney(1e-5, 1e-9),
        {BY_PARTS: {"gather": fits}},
    )  # fmt: skip
    return ImplementationAware(made_up, BY_PARTS)


# Few processes: linear; many or small: binomial.
MODEL = parameters(linear=1e-5, linear_sync=1e-2, binomial=4e-5)


def test_equal_neighbours_are_merged() -> None:
    plan = Grid.of("gather", (2, 3, 16, 17, 100), (1000, 2000, 10**5, 10**6, 10**7), 1, (SEGMENT,))
    table = select(predicted(MODEL, plan), exact=True)
    assert (table.collective, table.platform, table.made_by) == ("gather", "grisou", "model by_parts")
    for row in table.rules.values():
        assert [start for start, _ in row] == sorted({start for start, _ in row})
        assert all(before[1] != after[1] for before, after in itertools.pairwise(row))
    rows = list(table.rules.values())
    assert all(before != after for before, after in itertools.pairwise(rows))
    for procs in plan.procs:
        for size in plan.message_bytes:
            times = {name: float(MODEL.predict("gather", name, procs, size, 0)) for name in GATHERS}
            assert table.choose(procs, size) == Choice(min(times, key=times.__getitem__))


@given(
    linear=st.floats(1e-7, 1e-2), linear_sync=st.floats(1e-7, 1e-2), binomial=st.floats(1e-7, 1e-2),
    procs=st.lists(st.integers(2, 200), min_size=1, max_size=6, unique=True),
    sizes=st.lists(st.integers(1, 10**8), min_size=1, max_size=6, unique=True),
)  # fmt: skip
def test_a_table_says_at_its_points_what_the_model_says(
    linear: float, linear_sync: float, binomial: float, procs: list[int], sizes: list[int]
) -> None:
    model = parameters(linear=linear, linear_sync=linear_sync, binomial=binomial)
    plan = Grid.of("gather", tuple(sorted(procs)), tuple(sorted(sizes)), 1, (SEGMENT,))
    table = select(predicted(model, plan), exact=True)
    single = select(predicted(model, plan), one_choice=True)
    for p in procs:
        worst = dict.fromkeys(GATHERS, 0.0)
        for m in sizes:
            times = {name: float(model.predict("gather", name, p, m, 0)) for name in GATHERS}
            least = min(times.values())
            assert times[table.choose(p, m).algorithm] == pytest.approx(least, rel=1e-9)
            worst = {name: max(worst[name], times[name] / least) for name in GATHERS}
        chosen = {single.choose(p, m) for m in (0, *sizes, 10**9)}
        assert len(chosen) == 1
        assert worst[chosen.pop().algorithm] == pytest.approx(min(worst.values()), rel=1e-9)


def broadcasts() -> ImplementationAware:
    """Broadcast models with parameters of their own for each part, protocol and, in part, segment size."""
    rng = np.random.default_rng(5)
    parts = ("main", "fill", "steady", "exchange", "scatter", "ring")

    def drawn() -> dict[str, Hockney]:
        return {
            f"{part}/{protocol}": Hockney(rng.uniform(1e-5, 4e-5), rng.uniform(1e-9, 2e-9))
            for part in parts
            for protocol in ("eager", "rendezvous")
        }

    fits = {name: AlgorithmFit(drawn(), (), {SEGMENT: drawn()}) for name in MODELS[BY_PARTS].formulas["bcast"]}
    gamma = Gamma((1024.0, 65536.0), ((1.0, 1.1, 1.2, 1.35), (1.0, 1.3, 1.6, 1.9)))
    hockney = Hockney(1e-5, 1e-9)
    made_up = ModelParameters("grisou", "made up", 1, 60000, SEGMENT, gamma, hockney, {BY_PARTS: {"bcast": fits}})
    return ImplementationAware(made_up, BY_PARTS)


@pytest.mark.parametrize("more_segments", [(), (1024, 65536)])
def test_looking_up_decides_as_the_formulas_do(more_segments: tuple[int, ...]) -> None:
    """At random points, and on both sides of every switch point."""
    model, (least, largest) = broadcasts(), (100, 2**21)
    procs = tuple(range(2, 34))
    plan = Grid.of("bcast", procs, (least, 4096, largest), 1, (SEGMENT, *more_segments))
    table = select(predicted(model, plan), exact=True)
    assert any(start not in (least, 4096, largest) for row in table.rules.values() for start, _ in row)
    rng = np.random.default_rng(6)
    points = [*zip(rng.integers(2, 34, 4000), rng.integers(least, largest + 1, 4000), strict=True)]
    points += [(p, min(max(start + by, least), largest)) for p in procs for start, _ in table.row(p) for by in (-1, 0)]
    p, m = np.array(points).T
    choices = list(plan.choices)
    times = [predict_choice(model, "bcast", choice, p, m) for choice in choices]
    expected = [choices[index] for index in fastest(np.stack(times))]
    assert [table.choose(*point) for point in points] == expected
    sampled = select(predicted(model, plan))
    assert [sampled.choose(count, 4096) for count in procs] == [table.choose(count, 4096) for count in procs]


@settings(max_examples=10)
@given(st.lists(st.integers(100, 2**21), min_size=3, max_size=6, unique=True), st.sampled_from((0.0, 0.01, 0.1)))
def test_sampled_tables_say_what_they_lose_between_the_sizes(sizes: list[int], tolerance: float) -> None:
    """Their choices at the sizes are within the tolerance, and the loss is that of looking up at sizes between."""
    model, procs, ordered = broadcasts(), (2, 5, 16), tuple(sorted(sizes))
    plan = Grid.of("bcast", procs, ordered, 1, (SEGMENT, 1024))
    table = select(predicted(model, plan), tolerance=tolerance)
    between = {
        size
        for first, end in itertools.pairwise(ordered)
        for size in (*np.geomspace(first, end, 9).astype(int).tolist(), end - 1)
        if size not in ordered
    }

    def losses(some: Iterable[int]) -> list[float]:
        found = []
        for p in procs:
            for m in some:
                times = {choice: float(predict_choice(model, "bcast", choice, np.array([p]), np.array([m]))[0])
                         for choice in plan.choices}  # fmt: skip
                found.append(times[table.choose(p, m)] / min(times.values()) - 1)
        return found

    assert max(losses(ordered)) <= tolerance + 1e-9
    if between:
        lost = losses(sorted(between))
        assert table.between is not None
        assert (table.between.points, table.between.worst) == (len(lost), pytest.approx(max(lost), abs=1e-12))
        assert table.between.mean == pytest.approx(sum(lost) / len(lost), abs=1e-12)
    for p, row in table.rules.items():
        for (_, before), (start, after) in itertools.pairwise(row):
            at = np.array([start - 1, start])
            earlier, later = (predict_choice(model, "bcast", one, np.array([p]), at) for one in (before, after))
            # The later choice begins where it becomes the faster one, or at a size of the grid.
            assert (later[1] < earlier[1] and not later[0] < earlier[0]) or start in ordered or start - 1 in ordered


def test_between_two_entries_the_lower_one_holds() -> None:
    chain, binary, linear = Choice("chain", SEGMENT), Choice("binary", SEGMENT), Choice("linear")
    table = DecisionTable(
        "bcast", "grisou", 1, "simulated", "hand", {4: ((0, linear), (1000, chain)), 10: ((500, binary),)}
    )
    assert [table.choose(4, size) for size in (0, 999, 1000, 10**9)] == [linear, linear, chain, chain]
    assert table.choose(9, 999) == linear
    assert table.choose(10, 500) == table.choose(10**6, 10**9) == binary
    with pytest.raises(UsageError, match="starts at P = 4, not 3"):
        table.choose(3, 1000)
    with pytest.raises(UsageError, match="no entry for 499 bytes"):
        table.choose(10, 499)


def test_a_table_from_simulation() -> None:
    plan = Grid.of("gather", (8, 16, 32), (10, 20, 40), 1, (SEGMENT,))

    def seconds(case: Case) -> float | None:
        if case.procs == 32 and case.message_bytes == 20:
            return None
        best = "linear" if case.procs < 32 and case.message_bytes < 40 else "binomial"
        return {best: 1.0, "linear_sync": 1.5}.get(case.algorithm, 3.0)

    linear, binomial = Choice("linear"), Choice("binomial")
    times = timed(plan, seconds)
    table = select(times)
    assert table.rules == {8: ((10, linear), (40, binomial)), 32: ((10, binomial),)}
    assert (table.platform, table.made_by) == ("grisou", "SimGrid 3.32")
    # One algorithm for all sizes: the one that is never far off, even if it is never the best.
    single = select(times, one_choice=True)
    assert single.rules == {8: ((0, Choice("linear_sync")),), 32: ((0, binomial),)}


def test_a_model_that_covers_nothing() -> None:
    plan = Grid.of("gather", (4,), (10,), 1, (SEGMENT,), ("binomial",))
    with pytest.raises(UsageError, match="model 'by_parts' covers none of the gather algorithms asked for"):
        select(predicted(parameters(linear=1e-5), plan), exact=True)
    with pytest.raises(UsageError, match="model 'by_parts' covers none of the bcast algorithms"):
        predicted(MODEL, Grid.of("bcast", (4,), (10,), 1, (SEGMENT,)))


@pytest.fixture
def allgather(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue that has an allgather, two of whose algorithms do not run on every P."""
    known = Catalogue.load()

    def algorithm(name: str, *requires: str) -> Algorithm:
        return Algorithm("allgather", name, name, "f", "ring", (), requires, True, {"4.1": 1}, "-")

    algorithms = (algorithm("ring"), algorithm("doubling", "power_of_two"), algorithm("neighbor", "even"))
    entry = Collective("allgather", "Allgather", "-", 0, "times_procs", {one.name: one for one in algorithms})
    made = Catalogue({**known.collectives, "allgather": entry})
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: made))


def timed(plan: Grid, seconds: Callable[[Case], float | None]) -> Times:
    """Simulated times from a function of the case; None means that the case fails."""
    found = {case: seconds(case) for case in plan.cases()}
    timings = {
        case: Timing(case, math.nan, error="failed") if one is None else Timing(case, one)
        for case, one in found.items()
    }
    return Times.of_timings(plan, timings, "grisou", "simulated", "SimGrid 3.32")


ORDER = {"doubling": 1.0, "neighbor": 2.0, "ring": 3.0}


@pytest.mark.usefixtures("allgather")
def test_what_does_not_run_on_every_p_holds_only_where_it_was_decided() -> None:
    ring, doubling, neighbor = Choice("ring"), Choice("doubling"), Choice("neighbor")
    plan = Grid.of("allgather", (4, 6, 16, 17, 18), (10, 20), 1, (SEGMENT,))
    assert {case.procs for case in plan.cases() if case.algorithm == "doubling"} == {4, 16}
    assert {case.procs for case in plan.cases() if case.algorithm == "neighbor"} == {4, 6, 16, 18}
    rows = select(timed(plan, lambda case: ORDER[case.algorithm])).rules
    assert rows == {
        4: ((10, doubling),), 5: ((10, ring),),
        6: ((10, neighbor),), 7: ((10, ring),),
        16: ((10, doubling),), 17: ((10, ring),),
        18: ((10, neighbor),), 19: ((10, ring),),
    }  # fmt: skip


@pytest.mark.usefixtures("allgather")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    procs=st.lists(st.integers(1, 70), min_size=1, max_size=8, unique=True),
    order=st.permutations(list(ORDER)),
    threshold=st.integers(0, 40),
    one_choice=st.booleans(),
)
def test_a_choice_runs_wherever_its_row_holds(
    procs: list[int], order: list[str], threshold: int, one_choice: bool
) -> None:
    plan = Grid.of("allgather", tuple(sorted(procs)), (10, 20, 40), 1, (SEGMENT,))

    def seconds(case: Case) -> float:
        rank = order.index(case.algorithm)
        return float(rank if case.message_bytes < threshold else 3 - rank)

    table = select(timed(plan, seconds), one_choice)
    for p in range(min(procs), 80):
        for size in plan.message_bytes:
            chosen = Catalogue.load().algorithm("allgather", table.choose(p, size).algorithm)
            assert not chosen.objection(p)
            if p in procs and not one_choice:
                runs = [case for case in plan.cases() if (case.procs, case.message_bytes) == (p, size)]
                assert seconds(plan.case(Choice(chosen.name), p, size)) == min(map(seconds, runs))


@pytest.mark.usefixtures("allgather")
def test_where_nothing_runs_on_every_p_nothing_is_decided_behind_it() -> None:
    plan = Grid.of("allgather", (4, 8), (10,), 1, (SEGMENT,), ("doubling",))
    table = select(timed(plan, lambda case: 1.0))
    assert table.rules == {4: ((10, Choice("doubling")),), 5: (), 8: ((10, Choice("doubling")),), 9: ()}
    with pytest.raises(UsageError, match="no entry for 10 bytes"):
        table.choose(5, 10)


class ByOrder:
    """A model of the allgathers: those that are earlier in ORDER are faster, the last one above 1000 bytes; with a gap.

    From 500 to 700 bytes the ring has no time, as in a region that is not deterministic.
    """

    name = "by order"
    platform = "grisou"
    plays = False

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return tuple(ORDER) if collective == "allgather" else ()

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, parameter: int = 0,
    ) -> Array:  # fmt: skip
        p, m = np.broadcast_arrays(procs, message_bytes)
        seconds = np.where((m > 1000) & (algorithm == "ring"), 0.5, ORDER[algorithm]) + 0.0 * p
        return np.where((m >= 500) & (m <= 700) & (algorithm == "ring"), np.nan, seconds)


@pytest.mark.usefixtures("allgather")
def test_exact_tables_of_what_does_not_run_on_every_p() -> None:
    ring, doubling, neighbor = Choice("ring"), Choice("doubling"), Choice("neighbor")
    plan = Grid.of("allgather", (3, 4, 5, 6, 8), (10, 600, 4000), 1, (SEGMENT,))
    assert select(predicted(ByOrder(), plan), exact=True).rules == {
        # Where nothing has a time, what was chosen below stays.
        3: ((10, ring),), 4: ((10, doubling), (1001, ring)), 5: ((10, ring),),
        6: ((10, neighbor), (1001, ring)), 7: ((10, ring),), 8: ((10, doubling), (1001, ring)), 9: ((10, ring),),
    }  # fmt: skip
    assert predicted(ByOrder(), plan).notes == (
        "allgather: never chosen where model by order has no prediction for them: ring",
    )
    elsewhere = Grid.of("allgather", (3,), (10, 4000), 1, (SEGMENT,))
    assert predicted(ByOrder(), elsewhere).notes == ()
