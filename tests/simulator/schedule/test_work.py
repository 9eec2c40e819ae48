"""Lower bounds of times from what processes and ports have to do altogether."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.platforms.changes import changed, parse_change
from collwise.simulator.schedule.bounds import Work
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case
from tests.free import free

GROS = free()
ALGORITHMS = [
    algorithm
    for collective in Catalogue.load().collectives
    for algorithm in Catalogue.load().algorithms(collective)
    if not algorithm.guideline and algorithm.name != "tasks_library"
]
CHANGES = (
    "bandwidth=x0.1",
    "latency=x0.01",
    "overheads=3us",
    "reduction=x20",
    "eager_limit=1KiB",
    "degraded_link=1:x0.2",
)


def least_of(schedule: Schedule, tables: NetworkTables) -> float:
    columns = np.arange(len(schedule.sizes), dtype=np.uint32)
    return float(Work([(schedule, None)], [columns], len(schedule.sizes)).min_seconds(tables)[0])


@settings(max_examples=80)
@given(
    st.sampled_from(ALGORITHMS),
    st.integers(2, 24),
    st.sampled_from((1, 1, 2)),
    st.integers(1, 100_000),
    st.lists(st.sampled_from(CHANGES), max_size=3, unique=True),
)
def test_no_play_takes_less(
    algorithm: Algorithm, procs: int, per_node: int, message_bytes: int, texts: list[str]
) -> None:
    case = Case(algorithm.collective, algorithm.name, procs, message_bytes, 8192, processes_per_node=per_node)
    if algorithm.objection(procs):
        return
    schedule = Schedule(case)
    platform = changed(GROS, [parse_change(text) for text in sorted(texts, key=CHANGES.index)]).platform
    tables = network_tables(platform, procs, per_node, schedule.sizes)
    assert least_of(schedule, tables) <= schedule.play(tables).seconds * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        # The root receives seven messages of 1 MiB through its port, and combines them.
        ("latency=x1e-6 reduction=x1e-6", lambda tables: 7 * tables.load_bytes[-1] / tables.in_rate[0]),
        ("reduction=x1000", lambda tables: 7 * tables.reduce_seconds[-1]),
    ],
)
def test_the_root_of_a_linear_reduction_is_the_busiest(text: str, seconds: object) -> None:
    schedule = Schedule(Case("reduce", "linear", 8, 2**20))
    tables = network_tables(changed(GROS, [parse_change(one) for one in text.split()]).platform, 8, 1, schedule.sizes)
    least = least_of(schedule, tables)
    assert least == pytest.approx(seconds(tables))  # type: ignore[operator]
    assert least == pytest.approx(schedule.play(tables).seconds, rel=0.15)


def test_several_plays_share_tables() -> None:
    schedules = [Schedule(Case("bcast", "binomial", 8, size, 8192)) for size in (8, 2**16)] + [
        Schedule(Case("bcast", "binomial", 1, 8))
    ]
    sizes = np.unique(np.concatenate([one.sizes for one in schedules]))
    columns = [np.searchsorted(sizes, one.sizes).astype(np.uint32) for one in schedules]
    tables = network_tables(GROS, 8, 1, sizes)
    found = Work([(one, None) for one in schedules], columns, len(sizes)).min_seconds(tables)
    alone = [least_of(one, network_tables(GROS, 8, 1, one.sizes)) for one in schedules[:2]]
    assert found == pytest.approx([*alone, 0.0])


def test_messages_within_nodes_pass_no_ports() -> None:
    schedule = Schedule(Case("bcast", "binomial", 8, 2**16, processes_per_node=8))
    tables = network_tables(GROS, 8, 8, schedule.sizes)
    assert least_of(schedule, tables) == 0


def test_further_segments_add_the_work_of_the_busiest_process() -> None:
    shorter, longer = (Schedule(Case("reduce", "binary", 15, segments * 8192, 8192)) for segments in (16, 24))
    tables = network_tables(GROS, 15, 1, longer.sizes)
    columns = [np.arange(len(longer.sizes), dtype=np.uint32)]
    found = Work([(longer, shorter)], columns, len(longer.sizes)).min_seconds(tables)
    assert found[0] == pytest.approx(8 * 2 * tables.load_bytes[-1] / tables.in_rate[0])  # type: ignore[index]
