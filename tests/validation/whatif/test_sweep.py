"""Sweeps over a change: their factors, and cross-over points that separate two winners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_equal

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.models.switch_points import fastest
from collwise.platforms import load_description
from collwise.platforms.changes import Change, changed
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import simulated_seconds
from collwise.validation.whatif.sweep import _cross_overs, parse_factors, sweep_over

GROS = load_description("gros")
GRID = CaseGrid("allreduce", (31, 32), (1024, 2**20), 1, (8192,))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, SCHEDULE)


def test_factors() -> None:
    found = parse_factors("bandwidth=x0.25:x8")
    assert (found.name, len(found.values), found.values[0], found.values[-1]) == ("bandwidth", 21, 0.25, 8)
    assert 1.0 in found.values
    assert parse_factors("latency=x0.9:x1.1").values == (0.9, 1.0, 1.1)
    assert found.change(0.1) == Change("bandwidth", "x0.1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bandwith=x1:x2", "unknown change to sweep over 'bandwith'; did you mean bandwidth?"),
        ("nodes=x1:x2", "unknown change to sweep over 'nodes'"),
        ("bandwidth=x2", "malformed sweep 'bandwidth=x2' (valid: bandwidth=x0.25:x8)"),
        ("bandwidth=x8:x0.25", "has no factors"),
        ("bandwidth=x1e-30:x1e30", "more than 200"),
        ("bandwidth=1:2", "'1' is no factor (valid: x0.5, x2)"),
        ("bandwidth=25Gbit:x2", "'25Gbit' is no factor (valid: x0.5, x2); a sweep goes from factor to factor"),
    ],
)
def test_bad_sweeps(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_factors(text)
    assert message in str(raised.value)


def test_another_choice_wins_on_either_side_of_a_cross_over_point(context: SimulationContext) -> None:
    others = [Change("latency", "x1.5")]
    sweep = sweep_over(GROS, others, parse_factors("bandwidth=x0.125:x4"), GRID, context)
    assert sweep.crossovers
    for one in sweep.crossovers:
        point = replace(GRID, procs=(one.procs,), message_bytes=(one.message_bytes,))
        for factor, winner in ((one.factor / 1.003, one.below), (one.factor, one.above)):
            platform = changed(GROS, [*others, sweep.factors.change(factor)]).platform
            seconds = simulated_seconds(point, context.simulate(platform, point.cases()))
            assert sweep.choices[fastest(seconds)[0, 0]] == winner


def test_the_winner_of_each_factor_follows_from_the_cross_over_points(context: SimulationContext) -> None:
    sweep = sweep_over(GROS, [], parse_factors("bandwidth=x0.25:x4"), GRID, context)
    for i, procs in enumerate(GRID.procs):
        for j, size in enumerate(GRID.message_bytes):
            mine = [one for one in sweep.crossovers if (one.procs, one.message_bytes) == (procs, size)]
            winner = sweep.choices[sweep.best[0, i, j]]
            for factor, best in zip(sweep.factors.values, sweep.best[:, i, j], strict=True):
                for one in mine:
                    if one.factor <= factor:
                        winner = one.above
                assert sweep.choices[best] == winner


def test_choices_that_are_nearly_as_fast_do_not_take_turns() -> None:
    """The candidates' times over the factor f are 1, 1 + 0.1 log2(f) from 4 on, and waves of 0.5 % about 1."""

    def seconds_at(factor: float) -> Array:
        octaves = np.log2(factor)
        times = [1 + 0.1 * max(octaves - 2, 0), 1 + 0.005 * np.sin(10 * octaves), 1.2 - 0.05 * octaves]
        return np.array(times)[:, None, None]

    swept = {2 ** (step / 4): seconds_at(2 ** (step / 4))[:, 0, 0] for step in range(25)}
    assert len(list(_cross_overs(swept, seconds_at, 0.0))) > 5
    first, second = _cross_overs(swept, seconds_at, 0.01)
    # The wave is above 1 for the last time before 2**2.2, where the first candidate's times begin to grow.
    assert first[1:] == (0, 1)
    assert 4 < first[0] < 4.6
    assert second[1:] == (1, 2)
    assert second[0] == pytest.approx(16, rel=0.08)


def test_a_cross_over_point_lies_where_times_cross_although_the_tolerance_ends_later(
    context: SimulationContext,
) -> None:
    grid = replace(GRID, procs=(31,), message_bytes=(2**20,))
    exact, tolerant = (sweep_over(GROS, [], parse_factors("bandwidth=x0.5:x2"), grid, context, t) for t in (0.0, 0.02))
    assert tolerant.tolerance == 0.02
    [one], [other] = exact.crossovers, tolerant.crossovers
    assert (one.below, one.above) == (other.below, other.above)
    assert one.factor == pytest.approx(other.factor, rel=0.003)


def test_what_was_left_out_is_slower_and_timed_on_demand(context: SimulationContext) -> None:
    grid = replace(GRID, procs=(31,), message_bytes=(2**20,))
    sweep = sweep_over(GROS, [], parse_factors("bandwidth=x0.5:x2"), grid, context)
    assert np.isnan(sweep.seconds).any()
    every = sweep.every_second(31, 2**20)
    for found, factor in zip(every, sweep.factors.values, strict=True):
        timed = context.simulate(sweep.platform_at(factor), grid.cases())
        assert_equal(found, simulated_seconds(grid, timed)[:, 0, 0])
    assert_equal(fastest(every.T[:, :, None])[:, 0], sweep.best[:, 0, 0])


def test_the_ring_loses_to_rabenseifner_on_31_processes_of_gros(context: SimulationContext) -> None:
    sweep = sweep_over(GROS, [], parse_factors("bandwidth=x0.5:x2"), replace(GRID, message_bytes=(2**20,)), context)
    [one] = sweep.crossovers
    assert (one.procs, one.below, one.above) == (31, Choice("ring"), Choice("rabenseifner"))
    assert 0.8 < one.factor < 0.9


def test_processes_per_node_of_a_sweep(context: SimulationContext) -> None:
    grid = replace(GRID, procs=(8,), message_bytes=(1024,), algorithms=("ring",))
    sweep = sweep_over(GROS, [Change("ppn", "2")], parse_factors("latency=x1:x2"), grid, context)
    assert sweep.grid.processes_per_node == 2
