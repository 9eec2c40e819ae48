"""Answers to synchronous sends leave a node after what is in its queue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collwise.platforms import Platform, Ports, load_description
from collwise.simulator.schedule.library import ANSWERING, Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case

PROCS = 8
RATE = 5.96e6
LATENCY = 3e-5
PACKETS = 2 * 1448
"""The bytes of a connection that wait in its node's queue."""


def tables_of(schedule: Schedule, burst_bytes: float = 0.0, header_bytes: float = 66.0) -> NetworkTables:
    gros = load_description("gros")
    assert isinstance(gros, Platform)
    ports = Ports(RATE, LATENCY, 7e-5, burst_bytes, header_bytes=header_bytes, acknowledgement_share=0.04)
    return network_tables(replace(gros, ports=ports), PROCS, 1, schedule.sizes)


def reduction(message_bytes: int) -> Schedule:
    return Schedule(Case("reduce", "two_tree", PROCS, message_bytes, 8192))


def test_answers_take_their_latency_where_nothing_is_in_the_queue() -> None:
    schedule = reduction(65536)
    assert tables_of(schedule, header_bytes=0.0).queue_bytes == 0
    spans = schedule.trace(replace(tables_of(schedule), queue_bytes=0.0)).spans
    answers = spans[spans["spent"] == ANSWERING]
    assert len(answers) > PROCS
    assert answers["end_seconds"] - answers["begin_seconds"] == pytest.approx(3.5e-5)


def test_an_answer_waits_for_the_packets_of_every_connection_and_no_longer() -> None:
    """A process of two trees sends to one parent in each."""
    schedule = reduction(65536)
    tables = tables_of(schedule)
    assert tables.queue_bytes == PACKETS
    trace = schedule.trace(tables)
    answers = trace.spans[trace.spans["spent"] == ANSWERING]
    waits = answers["end_seconds"] - answers["begin_seconds"] - 3.5e-5
    most = 2 * 1.04 * PACKETS / RATE
    assert waits.min() >= -1e-12
    assert waits.max() <= most
    assert np.count_nonzero(waits > 1e-9) > PROCS
    assert trace.seconds == schedule.play(tables).seconds


@pytest.mark.parametrize("message_bytes", [2**20, 2**22])
def test_the_queue_keeps_a_two_tree_reduction_in_step(message_bytes: int) -> None:
    """Without it a small change of the burst decides whether two children of a parent send to it at once throughout."""
    schedule = reduction(message_bytes)
    networks = [tables_of(schedule, float(burst)) for burst in range(1500, 3000, 100)]
    least = message_bytes / RATE
    kept = [schedule.play(network).seconds / least for network in networks]
    lost = [schedule.play(replace(network, queue_bytes=0.0)).seconds / least for network in networks]
    assert max(kept) < 1.15
    assert min(lost) < 1.15
    assert max(lost) > 1.5
