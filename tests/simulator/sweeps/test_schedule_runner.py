"""The schedule engine's runner: which cases it plays, and that it says the same as each case alone."""

from __future__ import annotations

import ctypes
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError
from collwise.platforms import load, load_description
from collwise.simulator.schedule.library import Played, Schedule, ended_by
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SCHEDULE_LIKE_SMPI, SimulationContext
from collwise.simulator.sweeps.runner import Part, Stop
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.timing import Case, Timing

SEGMENTS = (8192, 16384, 65536)


@pytest.mark.parametrize(
    ("names", "procs", "message_bytes", "distinct"),
    [
        # What is not longer than a segment is not cut, and the ring cuts blocks, of an eighth of the message here.
        ("bcast chain", 6, 8192, 1),
        ("bcast chain", 6, 8193, 2),
        ("bcast chain", 6, 100_000, 3),
        ("allreduce segmented_ring", 8, 65536, 1),
        ("allreduce segmented_ring", 8, 100_000, 2),
        ("alltoall pairwise, alltoallv pairwise", 6, 1000, 1),
        ("allreduce ring, allreduce segmented_ring", 8, 1000, 1),
        ("bcast linear, gather linear", 6, 1000, 2),
    ],
)
def test_cases_in_which_the_same_is_sent_are_played_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, procs: int, message_bytes: int, distinct: int
) -> None:
    platform = load("boba")
    cases = [Case(*name.split(), procs, message_bytes, segment) for name in names.split(", ") for segment in SEGMENTS]
    alone = {}
    for case in cases:
        schedule = Schedule(case)
        alone[case] = schedule.play(network_tables(platform, procs, 1, schedule.sizes)).seconds
    played = []
    play_within = Schedule.play_within

    def counted(self: Schedule, network: NetworkTables, max_seconds: float) -> Played | None:
        played.append(self)
        return play_within(self, network, max_seconds)

    monkeypatch.setattr(Schedule, "play_within", counted)
    with Store(tmp_path / "timings.sqlite") as store:
        timings = SimulationContext(store, engine=SCHEDULE).simulate(platform, cases).complete().timings
    assert {case: timing.seconds for case, timing in timings.items()} == alone
    assert len(played) == distinct


@pytest.mark.parametrize(
    "other",
    [
        Case("bcast", "binomial", 8, 100_001, 8192),
        Case("bcast", "binomial", 8, 100_000, 4096),
        Case("bcast", "binomial", 7, 100_000, 8192),
        Case("bcast", "binomial", 8, 100_000, 8192, root=1),
        Case("bcast", "knomial", 8, 100_000, 8192),
    ],
)
def test_schedules_that_differ_in_anything_are_not_equal(other: Case) -> None:
    case = Case("bcast", "binomial", 8, 100_000, 8192)
    assert Schedule(case).equals(Schedule(case))
    assert not Schedule(case).equals(Schedule(other))


def test_flags_of_another_latency_are_another_configuration() -> None:
    described = load_description("stampede2")
    usual, *others = (
        ScheduleRunner(replace(described, flag_latency_seconds=seconds)).configuration for seconds in (None, 1e-7, 2e-7)
    )
    assert "flag_latency_seconds" not in dict(usual.details)
    assert len({usual.key, *(other.key for other in others)}) == 3


def test_smpis_rules_are_another_configuration(tmp_path: Path) -> None:
    platform, case = load("gros"), Case("bcast", "chain", 4, 100_000, 8192)
    with Store(tmp_path / "timings.sqlite") as store:
        own, like_smpi = (
            SimulationContext(store, engine=engine).simulate(platform, [case]).complete()
            for engine in (SCHEDULE, SCHEDULE_LIKE_SMPI)
        )
    schedule = Schedule(case)
    assert (
        like_smpi.timings[case].seconds == schedule.play(network_tables(platform, 4, 1, schedule.sizes, True)).seconds
    )
    assert like_smpi.timings[case].seconds > own.timings[case].seconds
    assert like_smpi.configuration.key != own.configuration.key


def test_a_play_of_many_seconds_ends_soon_after_it_is_stopped() -> None:
    case = Case("allgather", "neighbor_exchange", 28_672, 65_536, processes_per_node=56)
    kept: list[Timing] = []
    runner, stop = ScheduleRunner(load("marenostrum5")), Stop()
    making = threading.Thread(target=runner.make_part, args=(Part([case]), kept.append, stop))
    making.start()
    time.sleep(1)
    stop.set()
    making.join(timeout=60)
    assert not making.is_alive()
    assert kept == []


def test_recordings_and_plays_of_a_stopped_thread_fail_and_later_ones_do_not() -> None:
    case = Case("bcast", "binomial", 8, 1024)
    schedule = Schedule(case)
    networks = [network_tables(load(name), 8, 1, schedule.sizes) for name in ("boba", "gros")]
    networks.append(NetworkTables.of_model(8, schedule.sizes, latency_seconds=1.0))
    for network in networks:
        with ended_by(ctypes.c_int(1)), pytest.raises(CollwiseError, match="it was stopped"):
            schedule.play(network)
        assert schedule.play(network).seconds > 0
    with ended_by(ctypes.c_int(1)), pytest.raises(CollwiseError, match="it was stopped"):
        Schedule(case)
