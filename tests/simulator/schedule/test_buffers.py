"""Finite buffers of switches: losses and time-outs against times computed by hand, and the escalations of gather."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import CollwiseError
from collwise.platforms import Buffers, Platform, Ports, load_description, write_description
from collwise.simulator.schedule.library import Played, Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import EAGER, RENDEZVOUS
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import ALGORITHMS, case_of, flat_network
from tests.studies.cli.model_commands import Capture, run

ALPHA, BETA, TIME_OUT = 1e-5, 1e-9, 0.2
PACKET = 1000
AFTER_LOSS = TIME_OUT + 2 * ALPHA
"""From when a packet is sent that is lost until it is sent again: the time-out and a round trip."""
NOTHING_IS_LOST = Buffers(10**9, TIME_OUT, PACKET, 10**6)


def played(case: Case, buffers: Buffers | None, protocol: int = EAGER, **changes: object) -> Played:
    """The case over ports with latency ALPHA and 1 / BETA bytes per second."""
    schedule = Schedule(case)
    network = flat_network(schedule, ALPHA, BETA, over_ports=True, protocol=protocol)
    return schedule.play(replace(network, buffers=buffers, **changes))  # type: ignore[arg-type]


def gather(procs: int, message_bytes: int) -> Case:
    return Case("gather", "linear", procs, message_bytes)


def test_what_does_not_fit_is_lost_and_sent_again_after_the_time_out() -> None:
    """Two packets at once, and room for one: the second is lost."""
    found = played(gather(3, PACKET), Buffers(PACKET, TIME_OUT, PACKET))
    assert (found.lost_packets, found.time_outs) == (1, 1)
    assert found.seconds == pytest.approx(AFTER_LOSS + ALPHA + PACKET * BETA)
    assert played(gather(3, PACKET), Buffers(2 * PACKET, TIME_OUT, PACKET)).lost_packets == 0


def test_a_sender_continues_when_the_rest_fits_into_its_buffer() -> None:
    """As over ports without packets: when all, or 600 of 1000 bytes, have left, or at once."""
    schedule = Schedule(Case("bcast", "linear", 2, PACKET))
    network = flat_network(schedule, ALPHA, BETA, over_ports=True, protocol=RENDEZVOUS)
    no_latency = np.zeros((1, 1, len(schedule.sizes)))
    for buffer, ends in ((0, PACKET), (400, 600), (5 * PACKET, 0)):
        for buffers in (None, replace(NOTHING_IS_LOST, packet_bytes=10)):
            found = schedule.play(
                replace(network, buffers=buffers, send_buffer_bytes=buffer, latency_seconds=no_latency)
            )
            assert found.ends[0] == pytest.approx(ends * BETA)
            assert found.ends[1] == pytest.approx(PACKET * BETA)


def test_the_time_out_doubles() -> None:
    """Of three packets two are lost, and sent again at the same time: one of them is lost again."""
    found = played(gather(4, PACKET), Buffers(PACKET, TIME_OUT, PACKET))
    assert (found.lost_packets, found.time_outs) == (3, 3)
    assert found.seconds == pytest.approx((1 + 2) * AFTER_LOSS + ALPHA + PACKET * BETA)


def test_three_later_packets_replace_the_time_out() -> None:
    """A link of half the rate behind the port: packets in the middle of a long message are lost, not its end."""
    slow = {
        "switch_of": np.array([0, 1]),
        "link_rate": np.full(4, 0.5 / BETA),
        "route_first": np.array([0, 0, 2, 4, 4]),
        "route_links": np.array([0, 3, 2, 1]),
        "route_seconds": np.zeros(4),
    }
    sent = Case("bcast", "linear", 2, 100 * PACKET)
    found = played(sent, Buffers(4 * PACKET, TIME_OUT, PACKET), **slow)
    assert found.lost_packets > 0
    assert found.time_outs == 0
    alone = played(sent, NOTHING_IS_LOST, **slow).seconds
    assert alone < found.seconds < 2 * alone
    # Of a short one the end is lost.
    assert played(Case("bcast", "linear", 2, 5 * PACKET), Buffers(2 * PACKET, TIME_OUT, PACKET), **slow).time_outs == 1


def test_a_window_passes_in_each_round_trip_and_doubles() -> None:
    """15 packets in windows of 1, 2, 4 and 8, where a round trip takes longer than a window."""
    narrow = replace(NOTHING_IS_LOST, initial_window_packets=1)
    sent = Case("bcast", "linear", 2, 15 * PACKET)
    round_trip = 2 * ALPHA + PACKET * BETA
    assert played(sent, narrow).seconds == pytest.approx(3 * round_trip + ALPHA + 8 * PACKET * BETA)
    assert played(sent, NOTHING_IS_LOST, send_buffer_bytes=PACKET).seconds == pytest.approx(
        14 * round_trip + ALPHA + PACKET * BETA
    )


@given(st.sampled_from(ALGORITHMS), st.integers(2, 24), st.integers(0, 100_000), st.booleans())
def test_without_losses_times_are_those_of_ports(algorithm: object, procs: int, size: int, waits: bool) -> None:
    """Of packets so small that taking turns is nearly sharing; along a chain of packets of any size.

    Messages that share a port end at the same time, those that take turns a packet apart: what follows from the first
    of them starts earlier, which saves up to a latency in each step.
    """
    if algorithm.objection(procs):  # type: ignore[attr-defined]
        return
    case, protocol = case_of(algorithm, procs, size), RENDEZVOUS if waits else EAGER  # type: ignore[arg-type]
    small = replace(NOTHING_IS_LOST, packet_bytes=max(1, size // 100))
    found, expected = played(case, small, protocol), played(case, None, protocol)
    assert (found.lost_packets, found.time_outs) == (0, 0)
    assert found.seconds == pytest.approx(expected.seconds, rel=0.2)
    chain = Case("bcast", "chain", procs, size, PACKET)
    assert played(chain, NOTHING_IS_LOST).seconds == pytest.approx(played(chain, None).seconds)


@given(st.sampled_from(ALGORITHMS), st.integers(2, 16), st.integers(1, 50_000), st.integers(1, 20))
def test_whatever_is_lost_arrives_in_the_end_and_times_repeat(
    algorithm: object, procs: int, size: int, room: int
) -> None:
    if algorithm.objection(procs):  # type: ignore[attr-defined]
        return
    case = case_of(algorithm, procs, size)  # type: ignore[arg-type]
    buffers = Buffers(room * PACKET, 0.01, PACKET, 4)
    found, again = (played(case, buffers, send_buffer_bytes=20 * PACKET) for _ in range(2))
    assert np.array_equal(found.ends, again.ends)
    assert found.lost_packets == again.lost_packets >= (found.time_outs > 0)
    assert found.time_outs == 0 or found.seconds > 0.01


@given(st.integers(3, 64), st.integers(1, 10 * PACKET), st.integers(PACKET, 200_000))
def test_gather_loses_nothing_if_all_blocks_fit_and_something_if_all_but_two_do_not(
    procs: int, block: int, room: int
) -> None:
    """While P - 1 blocks arrive at once, one of them leaves. Blocks are within the initial window."""
    buffers = Buffers(room, TIME_OUT, PACKET)
    found = played(gather(procs, block), buffers)
    if (procs - 1) * block <= room:
        assert found.lost_packets == 0
    if (procs - 2) * block > room:
        assert found.lost_packets > 0
    assert played(gather(procs, block), buffers, RENDEZVOUS).lost_packets == 0


@given(st.sampled_from(ALGORITHMS), st.integers(2, 16), st.integers(1, 50_000))
def test_the_critical_path_is_the_whole_time_without_a_gap(algorithm: object, procs: int, size: int) -> None:
    if algorithm.objection(procs):  # type: ignore[attr-defined]
        return
    schedule = Schedule(case_of(algorithm, procs, size))  # type: ignore[arg-type]
    network = flat_network(schedule, ALPHA, BETA, over_ports=True)
    network = replace(network, buffers=Buffers(2 * PACKET, 0.01, PACKET))
    trace, found = schedule.trace(network), schedule.play(network)
    assert trace.path["begin_seconds"][0] == 0
    assert np.array_equal(trace.path["begin_seconds"][1:], trace.path["end_seconds"][:-1])
    assert trace.path["end_seconds"][-1] == found.seconds
    assert (trace.lost_packets, trace.time_outs) == (found.lost_packets, found.time_outs)


@pytest.mark.parametrize("buffers", [Buffers(999, 0.2, 1000), Buffers(1000, 0.0, 1000), Buffers(1000, 0.2, 1000, 0)])
def test_buffers_that_let_nothing_pass_are_refused(buffers: Buffers) -> None:
    with pytest.raises(CollwiseError, match="let nothing pass"):
        played(gather(3, PACKET), buffers)


def bed(buffers: Buffers | None) -> Platform:
    """Nodes at 100 Mbit/s like those of docs/regions.md, without overheads."""
    ports = Ports(12.5e6 * 1448 / 1514, 6e-5, 1e-4, buffers=buffers)
    gros = load_description("gros")
    assert isinstance(gros, Platform)
    return replace(gros, name="bed", nodes=8, link_bytes_per_second=12.5e6, ports=ports)


def bed_seconds(message_bytes: int, algorithm: str, buffers: Buffers | None, *bounds: int) -> float:
    schedule = Schedule(Case("gather", algorithm, 8, message_bytes, *bounds[:1], limit_bytes=sum(bounds[1:])))
    return schedule.play(network_tables(bed(buffers), 8, 1, schedule.sizes)).root_seconds


def test_linear_gather_escalates_from_m1_to_the_rendezvous_threshold_and_others_do_not() -> None:
    """M1 is near the buffer over P - 2, M2 is 64 KiB, and gathers with few senders at a time have no time-outs.

    LMO gather in pieces below M1 / 2 has none either, as was measured.
    """
    buffers = Buffers(32000)
    escalated = [size for size in range(1024, 97 * 1024, 1024) if bed_seconds(size, "linear", buffers) > 0.2]
    assert escalated == list(range(6 * 1024, 64 * 1024, 1024))
    for algorithm, *bounds in (("linear_sync",), ("binomial",), ("lmo", 3 * 1024, 64 * 1024)):
        for size in range(1024, 64 * 1024, 3 * 1024):
            assert bed_seconds(size, algorithm, buffers, *bounds) < 0.2, (algorithm, size)


def test_packets_that_are_lost_are_shown(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))
    file = tmp_path / "bed.toml"
    file.write_text(write_description(bed(Buffers(32000, 0.3, 1000, 3))))
    asked = f"--platform {file} --collective gather --procs 8 --algorithms linear --sizes 8KiB"
    code, shown, _ = run(f"show schedule {asked}", capsys)
    assert code == 0
    assert "waiting for ports and time-outs" in shown
    assert "lost in buffers of 32000 B: " in shown
    assert "lost in buffers of 32000 B: 0 packets" not in shown
