"""Times of many cases on one network after another, against those of each case alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import HostPlatform
from collwise.platforms.changes import changed, parse_change
from collwise.simulator.schedule import live_groups
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.live import LiveCases
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.pipelines import play_case
from collwise.simulator.schedule.shared import Sizes
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case
from collwise.validation.times.grid import Grid
from tests.free import free

GROS = free()
CHANGES = (
    (),
    ("bandwidth=x0.2", "latency=x3"),
    ("overheads=1us", "eager_limit=8KiB"),
    ("overheads=4us", "latency=x0.1", "reduction=x8"),
)
DIFFERENT = (
    ("overheads=1us", "slow_node=2:x5", "degraded_link=4:x0.3"),
    ("topology=fat-tree:nodes_per_switch=4:oversubscription=3", "eager_limit=8KiB"),
)


def schedules_of(live: LiveCases) -> list[Schedule]:
    """The schedules that are played for each network."""
    return [schedule for group in live._groups.values() for schedule in group.schedules]


def messages_of(live: LiveCases) -> int:
    return sum(schedule.messages for schedule in schedules_of(live))


def cases_of(collective: str, procs: tuple[int, ...], sizes: tuple[int, ...]) -> list[Case]:
    return Grid.of(collective, procs, sizes, 1, (4096,)).cases()


def platforms_of(changes: Sequence[Sequence[str]]) -> list[HostPlatform]:
    return [changed(GROS, [parse_change(text) for text in texts]).platform for texts in changes]


def compare(cases: Sequence[Case], platforms: Sequence[HostPlatform], exact: bool = False) -> np.ndarray:
    """The relative errors of the times that are not exact; all others must be exact, and none worse than it says."""
    live = LiveCases(cases, lambda procs: None, exact=exact)
    errors = []
    for platform in platforms:

        def tables_for(procs: int, sizes: Sizes, where: HostPlatform = platform) -> NetworkTables:
            return network_tables(where, procs, 1, sizes)

        found = live.times(tables_for, every=True)
        for case, seconds, error in zip(cases, found.seconds, found.errors, strict=True):
            exact = play_case(case, partial(tables_for, case.procs)).seconds
            assert abs(seconds - exact) <= error + 1e-9 * exact, case
            if error:
                errors.append(abs(seconds - exact) / exact)
    return np.array(errors)


@pytest.mark.parametrize("collective", [name for name in Catalogue.load().collectives if name != "barrier"])
def test_times_are_those_of_each_case_alone(collective: str) -> None:
    cases = cases_of(collective, (5, 8, 16), (8, 1000, 65536, 2**20))
    compare(cases, platforms_of(CHANGES))
    assert len(compare(cases[::3], platforms_of(DIFFERENT), exact=True)) == 0


def test_a_barrier() -> None:
    assert len(compare(cases_of("barrier", (5, 8), (0,)), [GROS])) == 0


def test_one_process_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_groups, "LITTLE_WORK", 0)
    live = LiveCases(cases_of("allreduce", (1, 2), (8, 2**20)), lambda procs: None)

    def tables_for(procs: int, sizes: Sizes) -> NetworkTables:
        return network_tables(GROS, procs, 1, sizes)

    first = live.times(tables_for)
    live.find_parts()
    again = live.times(tables_for)
    timed = ~np.isnan(again.seconds)
    assert (again.seconds[timed] == first.seconds[timed]).all()
    assert first.seconds.min() == 0


def test_uneven_blocks_of_a_ring_are_not_played() -> None:
    cases = [case for case in cases_of("allreduce", (24, 60), (8, 100, 2**12, 2**20)) if "ring" in case.algorithm]
    live = LiveCases(cases, lambda procs: None)
    platforms = platforms_of([(f"bandwidth=x{factor}",) for factor in (0.1, 1, 10)])
    errors = compare(cases, platforms)
    assert len(errors) == len(cases) * len(platforms)
    assert errors.max() < 0.002
    assert messages_of(live) > 0


def test_of_long_pipelines_a_few_segments_are_played() -> None:
    cases = [case for case in cases_of("bcast", (13, 24), (2**20, 2**21, 2**22)) if case.segment_bytes]
    live = LiveCases(cases, lambda procs: None)
    every = sum(-(-case.message_bytes // case.segment_bytes) * (case.procs - 1) for case in cases)
    assert messages_of(live) < every / 3
    errors = compare(cases, platforms_of(CHANGES))
    assert len(errors) == len(cases) * len(CHANGES)
    assert errors.max() < 0.01


LATE = ("latency=x8", "bandwidth=x8", "reduction=x0.125")


def test_pipelines_of_reductions_change_their_rate_late() -> None:
    # From about 100 segments on each further one takes two and a half times as long, or later still.
    cases = [Case("reduce", "binomial", 28, segments * 8192, 8192) for segments in (64, 256, 512)]
    errors = compare(cases, platforms_of([("latency=x8",), LATE]))
    assert errors.size == 0 or errors.max() < 0.01


@pytest.mark.parametrize("algorithm", ["chain", "binary", "in_order_binary", "knomial", "two_tree"])
def test_pipelines_of_reductions_are_played_whole_where_their_rate_may_change(algorithm: str) -> None:
    cases = [Case("reduce", algorithm, 28, size, 8192) for size in (2**20, 2**21, 2**22 + 5000)]
    live = LiveCases(cases, lambda procs: None)
    played_whole = []
    for platform in platforms_of([(), ("overheads=2us",), ("eager_limit=4KiB",), LATE]):
        found = live.times(lambda procs, sizes, to=platform: network_tables(to, procs, 1, sizes), every=True)
        for case, seconds, error in zip(cases, found.seconds, found.errors, strict=True):
            exact = play_case(case, partial(network_tables, platform, case.procs, 1)).seconds
            assert abs(seconds - exact) <= error + 1e-9 * exact, case
        played_whole.append(found.errors == 0)
    assert all(one[0] for one in played_whole)  # too short
    is_extrapolated = algorithm != "two_tree"
    assert all(list(one[1:]) == [not is_extrapolated] * 2 for one in played_whole[:3])
    assert played_whole[3].all() or algorithm != "knomial"


def test_very_long_pipelines_of_reductions_are_never_played_whole() -> None:
    cases = [Case("reduce", "binomial", 5, 2048 * 1024, 1024)]
    live = LiveCases(cases, lambda procs: None)
    assert messages_of(live) < 2048 * 4
    assert len(compare(cases, platforms_of([(), ("latency=x4",)]))) == 2


def test_a_single_size_of_uneven_blocks_knows_its_error() -> None:
    errors = compare([Case("bcast", "scatter_ring_allgather", 52, 2**16)], platforms_of(CHANGES))
    assert len(errors) == len(CHANGES)


def test_equal_schedules_are_played_once() -> None:
    grid = Grid.of("bcast", (16,), (1024,), 1, (4096, 8192, 16384), ("chain", "binary"))
    live = LiveCases(grid.cases(), lambda procs: None)
    assert (len(grid.cases()), len(schedules_of(live))) == (6, 2)
