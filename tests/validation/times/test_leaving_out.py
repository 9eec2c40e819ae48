"""Decision tables by the schedule engine, which leaves out what cannot be chosen, against tables by all times."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import FatTree, Ports, load
from collwise.simulator.schedule import pipelines
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.pipelines import begins_longer, min_seconds, play_case
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.select.consumers import algorithms_for
from collwise.validation.select.select import select
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import State, Times

PLATFORM = load("dahu")
GRIDS = [
    Grid.of(collective, (2, 7, 16), (1, 1000, 65536, 2**20), segments=(8192, 65536))
    for collective in ("bcast", "reduce", "allreduce", "alltoall")
]


def check(some: Times, whole: Times, tolerance: float) -> int:
    """Checks that what is left out changes no table, and returns how much is."""
    one_choice = some.margin is None
    assert select(some, one_choice, tolerance).rules == select(whole, one_choice, tolerance).rules
    timed = (some.state == State.TIMED).values
    assert (some.seconds.values[timed] == whole.seconds.values[timed]).all()
    return int((some.state == State.LEFT_OUT).sum())


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.3])
def test_what_is_left_out_changes_no_table(tmp_path: Path, tolerance: float) -> None:
    margins = {grid.collective: tolerance for grid in GRIDS if grid.collective != "alltoall"}
    with Store(tmp_path / "all.sqlite") as store, Store(tmp_path / "some.sqlite") as other:
        whole = simulate(PLATFORM, GRIDS, SimulationContext(store, SCHEDULE))
        context = SimulationContext(other, SCHEDULE)
        some = simulate(PLATFORM, GRIDS, context, margins)
        left_out = [check(*both, tolerance) for both in zip(some, whole, strict=True)]
        assert sum(left_out) > sum(times.state.size for times in whole) / 4
        assert left_out[-1] == 0
        # Stored times limit the others as well, and all that were left out are made if they are asked for.
        again = simulate(PLATFORM, GRIDS, context, margins)
        assert all(one.data.equals(two.data) for one, two in zip(again, some, strict=True))
        complete = simulate(PLATFORM, GRIDS, context)
        assert all(one.data.equals(two.data) for one, two in zip(complete, whole, strict=True))


def test_stored_times_of_choices_that_do_not_compete_leave_nothing_out(tmp_path: Path) -> None:
    (grid, *_) = GRIDS
    few = grid.of_algorithms(("linear", "chain"))
    with Store(tmp_path / "empty.sqlite") as store, Store(tmp_path / "filled.sqlite") as other:
        alone = simulate(PLATFORM, [few], SimulationContext(store, SCHEDULE), {"bcast": 0.01})
        simulate(PLATFORM, [grid], SimulationContext(other, SCHEDULE))
        after = simulate(PLATFORM, [few], SimulationContext(other, SCHEDULE), {"bcast": 0.01})
    assert select(after[0], tolerance=0.01).rules == select(alone[0], tolerance=0.01).rules


def test_what_is_not_even_recorded_changes_no_table(tmp_path: Path) -> None:
    # A cluster whose messages cost processors time, of nodes at several switches.
    platform = replace(load("fat-tree-1024"), nodes=12, topology=FatTree(4, 1.3e-7, 2.0))
    grids = [
        Grid.of(one, (96,), (8, 4096, 2**16), 8, (65536,), algorithms_for(one, "collwise", by_node=True))
        for one in ("bcast", "allreduce", "alltoall")
    ]
    margins = {grid.collective: 0.01 for grid in grids}
    with Store(tmp_path / "all.sqlite") as store:
        whole = simulate(platform, grids, SimulationContext(store, SCHEDULE))
    for jobs in (1, 3):
        with Store(tmp_path / f"{jobs}.sqlite") as other:
            some = simulate(platform, grids, SimulationContext(other, SCHEDULE, jobs=jobs), margins)
        for both in zip(some, whole, strict=True):
            check(*both, 0.01)
        assert some[1].state_of(Choice("ring"), 96, 8) == State.LEFT_OUT


def test_no_case_is_shorter_than_its_bound() -> None:
    bounded = by_node = 0
    for collective in Catalogue.load().collectives.values():
        for algorithm in collective.algorithms.values():
            procs = 24 if algorithm.objection(24) is None else 16
            for size in (8, 1000, 2**17):
                if algorithm.real_mpi_only or algorithm.guideline:
                    continue
                case = Case(collective.name, algorithm.name, procs, size, 8192 if algorithm.pipelined else 0, 0, 4)
                tables = partial(network_tables, PLATFORM, procs, 4)
                bound, seconds = min_seconds(case, tables), play_case(case, tables).seconds
                assert bound <= seconds * (1 + 1e-12)
                bounded += bound > seconds / 2
                by_node += algorithm.by_node and bound > 0
    assert bounded > 20
    assert by_node > 20


def test_between_process_counts_the_best_algorithm_that_always_runs_is_known(tmp_path: Path) -> None:
    """The fastest allgather of 32 KiB blocks among 32 needs an even P; from P = 33 on one for every P follows."""
    grid = Grid.of("allgather", (32,), tuple(8 << bits for bits in range(14)), 16)
    with Store(tmp_path / "all.sqlite") as store, Store(tmp_path / "some.sqlite") as other:
        (whole,) = simulate(PLATFORM, [grid], SimulationContext(store, SCHEDULE))
        (some,) = simulate(PLATFORM, [grid], SimulationContext(other, SCHEDULE), {"allgather": 0.01})
    assert list(select(whole, tolerance=0.01).rules) == [32, 33]
    assert check(some, whole, 0.01)


@pytest.mark.parametrize(("collective", "processes_per_node"), [("bcast", 1), ("gather", 1), ("bcast", 4)])
def test_what_passes_the_port_of_the_root_is_a_bound(collective: str, processes_per_node: int) -> None:
    platform = replace(load("gros"), nodes=32)  # without overheads
    case = Case(collective, "linear", 32, 2**20, 0, 0, processes_per_node)
    tables = partial(network_tables, platform, 32, processes_per_node)
    seconds = play_case(case, tables).seconds
    assert 0.8 * seconds < min_seconds(case, tables) <= seconds


def test_overheads_within_a_node_are_not_in_a_bound_where_its_latency_includes_them() -> None:
    ports = Ports(1e9, 1e-5, loopback_bytes_per_second=1e10, loopback_latency_seconds=1e-7)
    platform = replace(load("fat-tree-1024"), nodes=4, topology=None, ports=ports)
    for name in ("ring", "linear", "hierarchical", "tasks_ring"):
        case = Case("allreduce", name, 32, 1000, 0, 0, 8)
        tables = partial(network_tables, platform, 32, 8)
        assert tables(Schedule(case).sizes).without_local_overheads
        assert 0 < min_seconds(case, tables) <= play_case(case, tables).seconds


@pytest.mark.parametrize("collective", ["allreduce", "bcast", "reduce", "gather", "alltoall"])
def test_what_takes_longer_is_seen_at_the_beginning(collective: str) -> None:
    seen = 0
    platform = replace(load("gros"), nodes=8)  # without overheads
    for name, algorithm in Catalogue.load().collective(collective).algorithms.items():
        if algorithm.real_mpi_only or algorithm.guideline:
            continue
        case = Case(collective, name, 64, 2**18, 4096 if algorithm.pipelined else 0, 3, 8)
        tables = partial(network_tables, platform, 64, 8)
        whole = play_case(case, tables).seconds
        messages = Schedule(case).messages
        for share in (1 / 40, 1 / 10, 1 / 2):
            seen += begins_longer(case, tables, share * whole, messages)
        assert not begins_longer(case, tables, whole * (1 + 1e-9), messages)
    # The leaves of reductions and gathers send all that they have at once there.
    assert seen >= (3 if collective in ("allreduce", "bcast", "alltoall") else 0)


def test_what_is_recorded_first_follows_from_messages_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = replace(load("gros"), nodes=8)
    tables = partial(network_tables, platform, 64, 8)
    recorded: list[int] = []

    def record(*arguments: Any, **options: Any) -> Schedule:
        recorded.append(options.get("max_words", 0))
        return Schedule(*arguments, **options)

    monkeypatch.setattr(pipelines, "Schedule", record)

    def words_for(size: int, paces: dict[Case, float]) -> list[int]:
        case = Case("allreduce", "tasks_binary", 64, size, 4096, 0, 8)
        whole, messages = play_case(case, tables).seconds, Schedule(case).messages
        recorded.clear()
        assert begins_longer(case, tables, whole / 12, messages, paces=paces)
        return recorded.copy()

    paces: dict[Case, float] = {}
    assert len(words_for(2**20, paces)) > 1
    alone, after = words_for(2**22, {}), words_for(2**22, paces)
    assert len(after) == 1 < len(alone)
    assert sum(after) < sum(alone)
