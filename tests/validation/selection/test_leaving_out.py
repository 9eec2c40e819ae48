"""Decision tables by the schedule engine, which leaves out what cannot be chosen, against tables by all times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.platforms import load
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.decisions import select_by_simulation, simulate_and_select

PLATFORM = load("dahu")
GRIDS = [
    CaseGrid(collective, (2, 7, 16), (1, 1000, 65536, 2**20), segments=(8192, 65536))
    for collective in ("bcast", "reduce", "allreduce", "alltoall")
]
CASES = [case for grid in GRIDS for case in grid.cases()]


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.3])
def test_what_is_left_out_changes_no_table(tmp_path: Path, tolerance: float) -> None:
    with Store(tmp_path / "all.sqlite") as store, Store(tmp_path / "some.sqlite") as other:
        whole = SimulationContext(store, SCHEDULE).simulate(PLATFORM, CASES).complete()
        context = SimulationContext(other, SCHEDULE)
        tables, sweep = simulate_and_select(PLATFORM, GRIDS, context, lambda name: name == "alltoall", tolerance)
        for grid, table in zip(GRIDS, tables, strict=True):
            one_choice = grid.collective == "alltoall"
            assert table.rules == select_by_simulation(PLATFORM, grid, whole, one_choice, tolerance).rules
        assert all(timing.seconds == whole.timings[case].seconds for case, timing in sweep.timings.items())
        left_out = [case for case in CASES if case not in sweep.timings]
        assert len(left_out) > len(CASES) / 4
        assert not any(case.collective == "alltoall" for case in left_out)
        # Stored times limit the others as well, and all that were left out are made if they are asked for.
        again = simulate_and_select(PLATFORM, GRIDS, context, lambda name: name == "alltoall", tolerance)
        assert again[0] == tables
        assert again[1].timings == sweep.timings
        complete = context.simulate(PLATFORM, CASES).complete()
        assert {case: timing.seconds for case, timing in complete.timings.items()} == {
            case: timing.seconds for case, timing in whole.timings.items()
        }


def test_a_play_stops_only_when_it_takes_longer() -> None:
    for case in (Case("bcast", "binomial", 24, 2**18, 8192), Case("allreduce", "ring", 24, 2**16)):
        schedule = Schedule(case)
        tables = network_tables(PLATFORM, case.procs, 1, schedule.sizes)
        expected = schedule.play(tables)
        for share in (1.0, 1.5):
            found = schedule.play_within(tables, share * expected.seconds)
            assert found is not None
            assert (found.ends == expected.ends).all()
        for share in (0.0, 0.5):
            assert schedule.play_within(tables, share * expected.seconds) is None
        model = replace(tables, out_rate=None)
        assert schedule.play_within(model, 0.0) is not None
