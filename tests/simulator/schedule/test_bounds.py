"""Lower bounds of times on a network from those on another one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collwise.platforms import HostPlatform
from collwise.platforms.changes import changed, parse_change
from collwise.simulator.schedule.bounds import BYTES, LATENCY, OVERHEAD, Anchor, Columns
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import ACKNOWLEDGED, NetworkTables
from collwise.simulator.timing import Case
from tests.free import free

GROS = free()
CASES = [
    Case("bcast", "binomial", 12, 2**18, 8192),
    Case("bcast", "chain", 12, 2**18, 8192),
    Case("reduce", "binary", 12, 2**18, 8192),
    Case("allreduce", "ring", 12, 12 * 2**13),
    Case("alltoall", "pairwise", 12, 2**10),
]


def on(text: str) -> HostPlatform:
    return changed(GROS, [parse_change(one) for one in text.split()]).platform if text else GROS


def tables_on(text: str, case: Case, schedule: Schedule) -> NetworkTables:
    return network_tables(on(text), case.procs, 1, schedule.sizes)


def anchor_of(case: Case, schedule: Schedule) -> Anchor:
    anchor = Anchor.without_parts(
        tables_on("", case, schedule), np.array([schedule.play(tables_on("", case, schedule)).seconds])
    )
    slower = [
        np.array([schedule.play(anchor.a_little_slower(kind)).seconds]) if anchor.has(kind) else None
        for kind in range(BYTES)
    ]
    return anchor.with_parts(anchor.seconds, slower)


def bound(anchor: Anchor, text: str, case: Case, schedule: Schedule) -> float:
    columns = Columns.of([np.arange(len(schedule.sizes), dtype=np.uint32)], len(schedule.sizes))
    return float(anchor.min_seconds(tables_on(text, case, schedule), columns)[0])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.collective}-{case.algorithm}")
def test_bounds_are_below_times_and_not_far(case: Case) -> None:
    schedule = Schedule(case)
    anchor = anchor_of(case, schedule)
    assert anchor.parts[:, 0][[LATENCY, BYTES]].min() > 0
    assert np.delete(anchor.parts[:, 0], OVERHEAD).sum() == pytest.approx(anchor.seconds[0])  # there are no overheads
    for text in ("", "bandwidth=x0.5", "bandwidth=x2", "latency=x2", "latency=x0.5 reduction=x2", "overheads=0.2us"):
        seconds = schedule.play(tables_on(text, case, schedule)).seconds
        found = bound(anchor, text, case, schedule)
        assert 0.6 * seconds <= found <= seconds, text


def test_times_without_parts_grow_by_the_least_factor() -> None:
    schedule = Schedule(CASES[0])
    anchor = Anchor.without_parts(tables_on("", CASES[0], schedule), np.array([1.0]))
    assert bound(anchor, "bandwidth=x0.5 latency=x4 reduction=x3", CASES[0], schedule) == pytest.approx(2 / 1.25)
    assert bound(anchor, "bandwidth=x4", CASES[0], schedule) == pytest.approx(0.25 / 1.25)
    assert bound(anchor, "overheads=1us", CASES[0], schedule) == pytest.approx(1 / 1.5)


@pytest.mark.parametrize(
    "text", ["eager_limit=1MiB", "overheads=1us slow_node=2:x5", "topology=fat-tree:nodes_per_switch=4"]
)
def test_other_networks_have_no_bounds(text: str) -> None:
    case = Case("bcast", "binomial", 12, 2**18)
    schedule = Schedule(case)
    anchor = Anchor.without_parts(tables_on("", case, schedule), np.array([1.0]))
    assert bound(anchor, text, case, schedule) == 0


def test_senders_that_no_longer_wait_have_no_bounds() -> None:
    case = Case("bcast", "binomial", 12, 1024)
    schedule = Schedule(case)
    eager = tables_on("", case, schedule)
    waiting = replace(eager, protocol=np.full(len(schedule.sizes), ACKNOWLEDGED))
    columns = Columns.of([np.arange(len(schedule.sizes), dtype=np.uint32)], len(schedule.sizes))
    assert Anchor.without_parts(waiting, np.array([1.0])).min_seconds(eager, columns).tolist() == [0]
    assert Anchor.without_parts(eager, np.array([1.0])).min_seconds(waiting, columns)[0] > 0
