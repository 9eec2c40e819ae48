"""Sweeps over a change: their factors, and cross-over points that separate two winners."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_equal

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.platforms import HostPlatform, load_description
from collwise.platforms.changes import Change, changed
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import BYTES, State, Times, joined
from collwise.validation.whatif.sweep import (
    FACTOR,
    CrossOver,
    Factors,
    crossovers,
    parse_factors,
    sweep_over,
    with_left_out,
)
from tests.free import free

GROS = free()
GRID = Grid.of("allreduce", (31, 32), (1024, 2**20), 1, (8192,))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, SCHEDULE)


def test_factors() -> None:
    found = parse_factors("bandwidth=x0.25:x8")
    assert (found.name, len(found.values), found.values[0], found.values[-1]) == ("bandwidth", 21, 0.25, 8)
    assert 1.0 in found.values
    assert parse_factors("latency=x0.9:x1.1").values == (0.9, 1.0, 1.1)
    assert found.on(GROS, 0.1).name == changed(GROS, [Change("bandwidth", "x0.1")]).platform.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bandwith=x1:x2", "unknown change to sweep over 'bandwith'; did you mean bandwidth?"),
        ("nodes=x1:x2", "unknown change to sweep over 'nodes'"),
        ("bandwidth=x2", "malformed sweep 'bandwidth=x2'; write for example bandwidth=x0.25:x8"),
        ("bandwidth=x8:x0.25", "has no factors"),
        ("bandwidth=x1e-30:x1e30", "more than 200"),
        ("bandwidth=1:2", "'1' is not a factor; write for example x0.5 or x2"),
        (
            "bandwidth=25Gbit:x2",
            "'25Gbit' is not a factor; write for example x0.5 or x2 (a range of factors: bandwidth=",
        ),
    ],
)
def test_bad_sweeps(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_factors(text)
    assert message in str(raised.value)


def at(found: Sequence[CrossOver], procs: int, size: int) -> list[CrossOver]:
    return [one for one in found if one.point == (procs, size)]


def test_another_choice_wins_on_either_side_of_a_cross_over_point(context: SimulationContext) -> None:
    factors = replace(parse_factors("bandwidth=x0.125:x4"), others=(Change("latency", "x1.5"),))
    times, found = sweep_over(GROS, factors, GRID, context)
    assert found
    for one in found:
        procs, size = map(int, one.point)
        point = replace(GRID, procs=(procs,), message_bytes=(size,))
        for factor, winner in ((one.value / 1.003, one.below), (one.value, one.above)):
            [there] = simulate(factors.on(GROS, factor), [point], context)
            assert there.best_choice(procs, size) == winner
    for procs, size in GRID.points:
        best = map(times.choice, times.best.sel(procs=procs, message_bytes=size).values)
        winner = None
        for factor, choice in zip(factors.values, best, strict=True):
            winner = next(
                (one.above for one in reversed(at(found, procs, size)) if one.value <= factor), winner or choice
            )
            assert choice == winner


class Asked(Factors):
    """Factors that remember at which of them a platform was asked for."""

    def on(self, platform: HostPlatform, factor: float) -> HostPlatform:
        ASKED.add(factor)
        return super().on(platform, factor)


ASKED: set[float] = set()


@settings(max_examples=4)
@given(
    gbytes=st.floats(0.5, 16),
    low=st.floats(0.2, 1),
    per_node=st.sampled_from((2, 4, 8)),
    nodes=st.integers(2, 8),
    collective=st.sampled_from(("allreduce", "bcast", "reduce_scatter", "allgather")),
    size=st.sampled_from((2**14, 2**16, 2**18)),
)
def test_choices_beside_cross_overs_of_memory_are_the_fastest_of_all(
    gbytes: float, low: float, per_node: int, nodes: int, collective: str, size: int
) -> None:
    """Times of shared memory jump, so that both sides of a cross-over are checked, by plays that nothing cuts short."""
    where = replace(load_description("gros"), memory_bytes_per_second=gbytes * 1e9)
    factors = Asked("memory", parse_factors(f"memory=x{low}:x{low * 8}").values)
    grid = Grid.of(collective, (nodes * per_node,), (size,), per_node, (8192, 2**17))
    ASKED.clear()
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "timings.sqlite") as store:
        _, found = sweep_over(where, factors, grid, SimulationContext(store, SCHEDULE))
    for one in found:
        below = max(factor for factor in ASKED if factor < one.value)
        assert one.value / below < 1.0021
        for factor, winner in ((below, one.below), (one.value, one.above)):
            runner = ScheduleRunner(factors.on(where, factor))
            played = {choice: runner.timing(grid.case(choice, *grid.points[0])) for choice in grid.choices}
            every = {choice: timing.seconds for choice, timing in played.items() if timing.ok}
            assert every[winner] == pytest.approx(min(every.values()), rel=1e-9)


CHOICES = tuple(Choice(name) for name in ("linear", "binomial", "chain"))
FACTORS = tuple(2 ** (step / 4) for step in range(25))


def of_functions(seconds_at: Callable[[float], Array]) -> Times:
    """Times at one point of choices whose seconds are functions of the factor."""
    grid = Grid("bcast", CHOICES, (8,), (1024,))
    sides = [
        Times.of_seconds(grid, seconds_at(one)[:, None, None], "a", "simulated", "b", State.FAILED) for one in FACTORS
    ]
    return joined(sides, FACTOR, FACTORS)


@settings(max_examples=20)
@given(st.lists(st.tuples(*[st.floats(1e-3, 1.0)] * 2), min_size=3, max_size=3), st.sampled_from([0.0, 0.01, 0.1]))
def test_at_a_cross_over_point_both_times_agree(parts: list[tuple[float, float]], tolerance: float) -> None:
    def seconds_at(factor: float) -> Array:
        return np.array([latency + transfer / factor for latency, transfer in parts])

    found = list(crossovers(of_functions(seconds_at), FACTOR, lambda at: seconds_at(at[FACTOR]), tolerance))
    for one in found:
        below, above = (seconds_at(one.value)[CHOICES.index(choice)] for choice in (one.below, one.above))
        assert 1 - 1e-9 <= below / above <= 1.0021
    assert [one.above for one in found[:-1]] == [one.below for one in found[1:]]


@dataclass(frozen=True)
class Lines:
    """A model whose times are lines over the message size."""

    parts: Mapping[str, tuple[int, int]]

    def predict(self, collective: str, algorithm: str, procs: Any, size: Any, segment: int, parameter: int) -> Array:
        latency, per_byte = self.parts[algorithm]
        return np.asarray(latency + per_byte * np.asarray(size, dtype=float))


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 99)), min_size=3, max_size=3))
def test_cross_over_points_over_the_size_are_exact_to_the_byte(parts: list[tuple[int, int]]) -> None:
    lines = Lines({choice.algorithm: one for choice, one in zip(CHOICES, parts, strict=True)})
    sizes = tuple(4**k for k in range(13))
    grid = Grid("bcast", CHOICES, (8, 16), sizes)

    def seconds_at(size: Any) -> Array:
        return np.array([lines.predict("", one.algorithm, 0, size, 0, 0) for one in CHOICES])

    known = np.repeat(seconds_at(np.array(sizes))[:, None], 2, axis=1)
    times = Times.of_seconds(grid, known, "a", "predicted", "b", State.NO_FORMULA, between=lines)
    for one in crossovers(times, BYTES):
        for size, choice, other in ((one.value, one.above, one.below), (one.value - 1, one.below, one.above)):
            seconds = seconds_at(size)
            assert seconds[CHOICES.index(choice)] == seconds.min()
            assert size < one.value or seconds[CHOICES.index(other)] > seconds.min()


def test_without_a_model_nothing_is_known_between_sizes() -> None:
    seconds = np.array([[[1.0, 3.0]], [[2.0, 2.0]]])
    times = Times.of_seconds(Grid("bcast", CHOICES[:2], (8,), (8, 64)), seconds, "a", "measured", "b", State.NOT_ASKED)
    with pytest.raises(UsageError, match="no model predicted them"):
        list(crossovers(times, BYTES))


def test_choices_that_are_nearly_as_fast_do_not_take_turns() -> None:
    """The choices' times over the factor f are 1, 1 + 0.1 log2(f) from 4 on, and waves of 0.5 % about 1."""

    def seconds_at(factor: float) -> Array:
        octaves = np.log2(factor)
        return np.array([1 + 0.1 * max(octaves - 2, 0), 1 + 0.005 * np.sin(10 * octaves), 1.2 - 0.05 * octaves])

    times = of_functions(seconds_at)
    assert len(list(crossovers(times, FACTOR, lambda at: seconds_at(at[FACTOR])))) > 5
    first, second = crossovers(times, FACTOR, lambda at: seconds_at(at[FACTOR]), 0.01)
    # The wave is above 1 for the last time before 2**2.2, where the first choice's times begin to grow.
    assert (first.below, first.above) == CHOICES[:2]
    assert 4 < first.value < 4.6
    assert (second.below, second.above) == CHOICES[1:]
    assert second.value == pytest.approx(16, rel=0.08)


def test_what_was_left_out_is_slower_and_timed_on_demand(context: SimulationContext) -> None:
    grid, factors = replace(GRID, procs=(31,), message_bytes=(2**20,)), parse_factors("bandwidth=x0.5:x2")
    times, _ = sweep_over(GROS, factors, grid, context)
    assert np.isnan(times.seconds).any()
    every = with_left_out(times, GROS, factors)
    for k, factor in enumerate(factors.values):
        [timed] = simulate(factors.on(GROS, factor), [grid], context)
        assert_equal(every.array[..., k], timed.array)
    assert_equal(every.best.values, times.best.values)


def test_processes_per_node_of_a_sweep(context: SimulationContext) -> None:
    grid = Grid.of("allreduce", (8,), (1024,), 1, (8192,), ("ring",))
    factors = replace(parse_factors("latency=x1:x2"), others=(Change("ppn", "2"),))
    assert sweep_over(GROS, factors, grid, context)[0].processes_per_node == 2
