from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from collwise.platforms import Ports
from collwise.validation.calibration.network_parameters import MessageTime, fit_ports, with_loopback

LIMIT = 65536
SIZES = [1, 8, 50, 300, 900, 1500, 2500, 4000, 9000, 20000, 40000, 60000, 70000, 200000, 10**6, 4 * 10**6]


def overheads(message_bytes: float) -> float:
    """The processors' share of the time of an eager message."""
    return 2e-5 + 1e-10 * message_bytes if message_bytes < LIMIT else 0.0


def load(message_bytes: float) -> float:
    """The bytes of full packets of TCP that take as long, 66 of 1514 bytes of which are headers."""
    packets = max(1, math.ceil(message_bytes / 1448))
    return (message_bytes + 66 * packets) * 1448 / 1514


def times(rate: float, latency: float, burst: float, handshake: float) -> list[MessageTime]:
    """Half roundtrips; a token bucket passes no more than its rate over a roundtrip."""
    return [
        MessageTime(
            m,
            max(
                overheads(m) + latency + max(0.0, load(m) - burst) / rate + (handshake if m >= LIMIT else 0.0),
                load(m) / rate / 2,
            ),
            0.01,
        )
        for m in SIZES
    ]


def sends(rate: float, burst: float, handshake: float, buffered: float) -> list[MessageTime]:
    """Times of MPI_Send, which waits until what is left fits into the buffer."""
    return [
        MessageTime(
            m, overheads(m) + (handshake + max(0.0, load(m) - burst - buffered) / rate if m >= LIMIT else 0.0), 0.01
        )
        for m in SIZES
    ]


@given(st.floats(1e6, 1e9), st.floats(1e-6, 1e-3), st.floats(0, 3000), st.floats(0, 1e-3), st.floats(0, 40000))
def test_parameters_of_exact_times_are_found(
    rate: float, latency: float, burst: float, handshake: float, buffered: float
) -> None:
    measured = times(rate, latency, burst, handshake)
    calls = sends(rate, burst, handshake, buffered)
    found = fit_ports(measured, calls, [1.03, 1.04, 1.05], overheads, LIMIT, 1e10)
    assert found is not None
    assert found.bytes_per_second == pytest.approx(rate, rel=1e-3)
    assert found.acknowledgement_share == pytest.approx(0.04)
    for one in measured:
        m = one.message_bytes
        predicted = found.latency_seconds + max(0.0, load(m) - found.burst_bytes) / found.bytes_per_second
        predicted += overheads(m) + (found.handshake_seconds if m >= LIMIT else 0.0)
        predicted = max(predicted, load(m) / found.bytes_per_second / 2)
        assert predicted == pytest.approx(one.seconds, rel=0.02), m
    # What remains of the fit's errors in times is worth a few bytes at this rate.
    uncertain = 0.02 * max(one.seconds for one in measured if one.message_bytes < 10 * LIMIT) * rate
    assert found.send_buffer_bytes == pytest.approx(buffered, abs=uncertain)


def test_no_port_is_faster_than_its_link_and_few_points_are_no_ports() -> None:
    measured = times(1e9, 1e-5, 0, 0)
    found = fit_ports(measured, [], [], overheads, LIMIT, 1e8)
    assert found is not None
    assert found.bytes_per_second == 1e8
    assert found.acknowledgement_share == 0
    assert found.send_buffer_bytes == 0
    assert fit_ports(measured[:3], [], [], overheads, LIMIT, 1e8) is None


@given(st.floats(1e8, 1e11), st.floats(1e-7, 1e-4))
def test_the_path_within_a_node_is_fitted_to_messages_there(rate: float, latency: float) -> None:
    ports = Ports(1e7, 1e-5)
    inside = [MessageTime(m, latency + m / rate, 0.01) for m in SIZES]
    found = with_loopback(ports, inside)
    assert found is not None
    for one in inside:
        seconds = found.loopback_latency_seconds + one.message_bytes / found.loopback_bytes_per_second
        assert seconds == pytest.approx(one.seconds, rel=0.02)
    assert replace(found, loopback_latency_seconds=0.0, loopback_bytes_per_second=0.0) == ports
    assert with_loopback(ports, inside[:3]) == ports
    assert with_loopback(None, inside) is None
