"""Headers of packets on ports: short messages take more of a port's time than their bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.platforms import Platform, Ports, load_description
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import load_of, network_tables
from collwise.simulator.timing import Case

RATE = 1e7


@given(st.integers(0, 10**7), st.floats(0, 200))
def test_only_full_packets_load_a_port_by_their_bytes(message_bytes: int, header_bytes: float) -> None:
    load = load_of(np.array([message_bytes, message_bytes + 1]), header_bytes)
    packets = max(1, -(-message_bytes // 1448))
    assert load[0] >= message_bytes * (1 - 1e-12)
    assert load[0] == pytest.approx((message_bytes + packets * header_bytes) / (1448 + header_bytes) * 1448)
    assert load[0] == pytest.approx(message_bytes) or header_bytes > 0
    assert load[0] < load[1]
    full = np.array([1448.0, 14480.0])
    assert load_of(full, header_bytes) == pytest.approx(full)


@pytest.mark.parametrize("message_bytes", [1, 512, 1448, 100_000])
def test_a_port_passes_messages_in_a_row_with_their_headers(message_bytes: int) -> None:
    gros = load_description("gros")
    assert isinstance(gros, Platform)
    found = []
    for header_bytes in (0.0, 66.0):
        platform = replace(gros, ports=Ports(RATE, 1e-5, header_bytes=header_bytes))
        schedule = Schedule(Case("gather", "linear", 9, message_bytes))
        found.append(schedule.play(network_tables(platform, 9, 1, schedule.sizes)).seconds)
    packets = max(1, -(-message_bytes // 1448))
    more = (message_bytes + 66 * packets) * 1448 / 1514 - message_bytes
    assert found[1] - found[0] == pytest.approx(8 * more / RATE, abs=1e-9)
