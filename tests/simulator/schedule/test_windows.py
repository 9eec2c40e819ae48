"""Memory that the processes of a node share, or read from one another: `within` 1 and 2 on the schedule engine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.platforms import Platform, load_description
from collwise.simulator.schedule.critical_path import path_parts
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.pipelines import play_case
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case

SHARED, ONE_SIDED = 1, 2
CHUNK_BYTES, SLOTS = 32 << 10, 2
COPY, REDUCE, FLAG = 1e-10, 2e-10, 3e-7
STAMPEDE2 = load_description("stampede2")


def one_node(schedule: Schedule, copy: float = COPY, flag: float = FLAG, reduce: float = REDUCE) -> NetworkTables:
    """A model of one node on which nothing but copies, flags and reductions takes time."""
    sizes = schedule.sizes.astype(float)
    return replace(
        NetworkTables.of_model(schedule.procs, schedule.sizes),
        node_of=np.zeros(schedule.procs, np.int32),
        class_of=np.zeros(1, np.int32),
        move_seconds=sizes * copy,
        reduce_seconds=sizes * reduce,
        flag_seconds=np.array([flag]),
    )


def of_node(collective: str, procs: int, size: int, within: int, segment: int = 0) -> Case:
    """A case on one node."""
    return Case(collective, "tasks_chain", procs, size, segment, within, processes_per_node=procs)


def seconds_of(case: Case, **costs: float) -> float:
    """The seconds of a case on `one_node`."""
    schedule = Schedule(case)
    return schedule.play(one_node(schedule, **costs)).seconds


def chunks(size: int) -> list[int]:
    return [min(CHUNK_BYTES, size - done) for done in range(0, size, CHUNK_BYTES)]


def two_stages(first: list[float], second: list[float], flag: float) -> float:
    """The end of a pipeline of two processes. The first one waits for a slot until the second one is done with it."""
    ends: list[float] = []
    one = other = 0.0
    for number, (here, there) in enumerate(zip(first, second, strict=True)):
        if number >= SLOTS:
            one = max(one, ends[number - SLOTS] + flag)
        one += here
        other = max(other, one + flag) + there
        ends.append(other)
    return other


sizes = st.integers(1, 40).map(lambda number: number * 8 * 1003)


@given(size=sizes, within=st.sampled_from((SHARED, ONE_SIDED)), flag=st.sampled_from((0.0, 1e-7, 1e-5)))
def test_a_broadcast_is_copied_in_and_out(size: int, within: int, flag: float) -> None:
    copies = [bytes_ * COPY for bytes_ in chunks(size)]
    found = seconds_of(of_node("bcast", 2, size, within), flag=flag)
    assert found == pytest.approx(two_stages(copies, copies, flag))


@given(size=sizes, flag=st.sampled_from((0.0, 1e-7, 1e-5)), reduce=st.sampled_from((0.0, 1e-10, 1e-9)))
def test_a_reduction_reads_where_contributions_lie(size: int, flag: float, reduce: float) -> None:
    copies = [bytes_ * COPY for bytes_ in chunks(size)]
    sums = [bytes_ * reduce for bytes_ in chunks(size)]
    found = {
        within: seconds_of(of_node("reduce", 2, size, within), flag=flag, reduce=reduce)
        for within in (SHARED, ONE_SIDED)
    }
    # The root first copies its own contribution to where the sum is made.
    assert found[SHARED] == pytest.approx(two_stages(copies, sums, flag), rel=1e-9)
    fetched = [copy + combined for copy, combined in zip(copies, sums, strict=True)]
    assert found[ONE_SIDED] == pytest.approx(two_stages(copies, fetched, flag), rel=1e-9)


@pytest.mark.parametrize("collective", ["bcast", "reduce", "allreduce"])
@pytest.mark.parametrize("within", [SHARED, ONE_SIDED])
def test_more_processes_are_never_faster(collective: str, within: int) -> None:
    for size in (8, 80_000, 1 << 20):
        seconds = [seconds_of(of_node(collective, procs, size, within, 1 << 16)) for procs in range(2, 10)]
        assert seconds == sorted(seconds)


def test_the_writer_waits_for_readers() -> None:
    """Up to two chunks, one for each slot, wait for no flag but the one that says that a chunk is there."""
    long_flag = 1.0
    for number, flags in ((1, 1), (2, 1), (3, 3), (4, 3), (5, 5)):
        found = seconds_of(of_node("bcast", 4, number * CHUNK_BYTES, SHARED), flag=long_flag)
        assert found == pytest.approx(flags * long_flag, rel=1e-3)


@pytest.mark.parametrize("collective", ["bcast", "reduce", "allreduce"])
def test_segments_follow_one_another_in_the_slots(collective: str) -> None:
    """A segment's first chunk waits for the slot that the segment before has used."""
    whole = seconds_of(of_node(collective, 3, 1 << 20, SHARED))
    cut = seconds_of(of_node(collective, 3, 1 << 20, SHARED, CHUNK_BYTES))
    assert cut == pytest.approx(whole, rel=1e-9) if collective != "allreduce" else cut < whole


def on(platform: Platform, case: Case, **changes: object) -> tuple[Schedule, NetworkTables]:
    """The schedule and the tables of a case on a platform."""
    schedule = Schedule(case, platform.places(case.procs, case.processes_per_node))
    tables = network_tables(platform, case.procs, case.processes_per_node, schedule.sizes)
    return schedule, replace(tables, **changes)  # type: ignore[arg-type]


def test_copies_at_once_share_the_memory() -> None:
    """A chunk is written by one process and read by all others together."""
    readers, rate = 7, 2e10
    schedule, tables = on(STAMPEDE2, of_node("bcast", readers + 1, CHUNK_BYTES, SHARED), memory_rate=rate)
    alone = float(tables.move_seconds.max())
    flag = float(tables.flag_seconds[0])
    written = max(alone, CHUNK_BYTES / rate)
    read = max(alone, readers * CHUNK_BYTES / rate)
    assert schedule.play(tables).seconds == pytest.approx(written + flag + read)
    assert read > alone


@pytest.mark.parametrize("within", [0, SHARED, ONE_SIDED])
@pytest.mark.parametrize("collective", ["bcast", "reduce", "allreduce"])
def test_faster_memory_makes_nothing_slower(collective: str, within: int) -> None:
    """The memory is as fast as the port, then faster until it no longer matters to the port, then unlimited."""
    case = Case(collective, "tasks_chain", 36, 1 << 20, 1 << 16, within, 12)
    rates = [*(STAMPEDE2.link_bytes_per_second * factor for factor in (1, 2, 4, 8, 100)), None]
    seconds, shares = [], []
    for rate in rates:
        schedule, tables = on(replace(STAMPEDE2, memory_bytes_per_second=rate), case)
        seconds.append(schedule.play(tables).seconds)
        shares.append(tables.memory_share_of_ports > 0)
        like_smpi = network_tables(STAMPEDE2, case.procs, 12, schedule.sizes, like_smpi=True)
        assert like_smpi.memory_share_of_ports == 0
    assert shares == [True, True, True, False, False, False]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] > seconds[-1]


@pytest.mark.parametrize("within", [SHARED, ONE_SIDED])
def test_ports_that_share_the_memory_make_nothing_faster(within: int) -> None:
    for collective, between, size in (("bcast", "binary", 300_000), ("allreduce", "binomial", 1 << 20)):
        schedule, tables = on(STAMPEDE2, Case(collective, f"tasks_{between}", 36, size, 1 << 16, within, 12))
        apart = schedule.play(replace(tables, memory_share_of_ports=0.0)).seconds
        assert schedule.play(tables).seconds > apart


CASES = [
    Case(collective, f"tasks_{between}", nodes * per_node, size, 1 << 16, within, per_node, root=root)
    for collective in ("bcast", "reduce", "allreduce")
    for between, nodes, per_node, root in (("chain", 3, 4, 0), ("binomial", 4, 2, 0), ("binary", 2, 5, 0))
    for size in (1000, 300_000)
    for within in (SHARED, ONE_SIDED)
] + [Case("bcast", "tasks_chain", 12, 300_000, 1 << 16, SHARED, 4, root=7)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_played_agrees(case: Case) -> None:
    """Plays agree with and without traces, a limit of memory that is never reached, and a time that may stop them.

    Bounds are bounds.
    """
    schedule, tables = on(STAMPEDE2, case, memory_rate=0.0)
    seconds = schedule.play(tables).seconds
    endless = replace(tables, memory_rate=1e18)
    assert schedule.play(endless).seconds == pytest.approx(seconds, rel=1e-9)
    for rate in (0.0, 8e9):
        each = replace(tables, memory_rate=rate)
        played = schedule.play(each)
        assert played.seconds >= seconds
        trace, parts = path_parts(schedule, each)
        assert trace.seconds == pytest.approx(played.seconds)
        assert parts.seconds.sum() == pytest.approx(played.seconds)
        assert parts.seconds["flags"] > 0
        assert schedule.own_seconds(each) <= played.seconds
        within = schedule.play_within(each, played.seconds)
        assert within is not None
        assert within.seconds == played.seconds


def test_long_pipelines_are_played_in_part() -> None:
    """The times of the whole follow from short ones, exactly."""
    case = Case("bcast", "tasks_chain", 6, 1 << 28, 1 << 16, SHARED, 2)
    schedule, tables = on(STAMPEDE2, case)
    whole = schedule.play(tables).seconds
    found = play_case(case, lambda sizes: network_tables(STAMPEDE2, 6, 2, sizes))
    assert found.seconds == pytest.approx(whole, rel=1e-9)


def test_a_beginning_shows_that_a_case_takes_long() -> None:
    case = Case("allreduce", "tasks_chain", 32, 1 << 24, 1 << 16, SHARED, 8)
    schedule, tables = on(STAMPEDE2, case)
    seconds = schedule.play(tables).seconds
    longer = 0
    for words in (50, 500, 5000):
        begin = Schedule(case, max_words=words)
        each = network_tables(STAMPEDE2, case.procs, case.processes_per_node, begin.sizes)
        assert begin.begins_longer(each, seconds) <= seconds
        longer += math.isinf(begin.begins_longer(each, seconds / 10))
    assert longer >= 1


def test_platforms_that_say_nothing_have_flags_and_copies_that_take_time() -> None:
    plain = replace(STAMPEDE2, calibration=replace(STAMPEDE2.calibration, copy_seconds_per_byte=None))
    _, tables = on(plain, of_node("bcast", 4, 1 << 16, SHARED))
    assert tables.flag_seconds[0] > 0
    assert tables.move_seconds.max() > 0
    assert tables.copy_seconds.max() == 0
    slow = replace(plain, flag_latency_seconds=2e-6)
    assert on(slow, of_node("bcast", 4, 1 << 16, SHARED))[1].flag_seconds[0] == 2e-6


def test_others_of_the_catalogue_send_messages() -> None:
    """A gather takes no window, whatever `within` says."""
    for collective in ("gather", "scatter", "allgather"):
        case = Case(collective, "tasks_chain", 8, 4096, 0, 0, 4)
        assert Schedule(case).equals(Schedule(replace(case, parameter=SHARED)))
