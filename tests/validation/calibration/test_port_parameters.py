from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.validation.calibration.latency_and_bandwidth import MessageTime
from collwise.validation.calibration.port_parameters import fit_ports

LIMIT = 65536
SIZES = [1, 8, 50, 300, 900, 1500, 2500, 4000, 9000, 20000, 40000, 60000, 70000, 200000, 10**6, 4 * 10**6]


def overheads(message_bytes: float) -> float:
    """What the processors take of an eager message."""
    return 2e-5 + 1e-10 * message_bytes if message_bytes < LIMIT else 0.0


def times(rate: float, latency: float, burst: float, handshake: float) -> list[MessageTime]:
    return [
        MessageTime(m, overheads(m) + latency + max(0.0, m - burst) / rate + (handshake if m >= LIMIT else 0.0), 0.01)
        for m in SIZES
    ]


@given(st.floats(1e6, 1e9), st.floats(1e-6, 1e-3), st.floats(0, 3000), st.floats(0, 1e-3))
def test_parameters_of_exact_times_are_found(rate: float, latency: float, burst: float, handshake: float) -> None:
    found = fit_ports(times(rate, latency, burst, handshake), [1.03, 1.04, 1.05], overheads, LIMIT, 1e10)
    assert found is not None
    assert found.bytes_per_second == pytest.approx(rate, rel=1e-3)
    assert found.acknowledgement_share == pytest.approx(0.04)
    for m in SIZES:
        expected = latency + max(0.0, m - burst) / rate + (handshake if m >= LIMIT else 0.0)
        predicted = found.latency_seconds + max(0.0, m - found.burst_bytes) / found.bytes_per_second
        predicted += found.handshake_seconds if m >= LIMIT else 0.0
        assert predicted == pytest.approx(expected, rel=0.02), m


def test_no_port_is_faster_than_its_link_and_few_points_are_no_ports() -> None:
    measured = times(1e9, 1e-5, 0, 0)
    found = fit_ports(measured, [], overheads, LIMIT, 1e8)
    assert found is not None
    assert found.bytes_per_second == 1e8
    assert found.acknowledgement_share == 0
    assert fit_ports(measured[:3], [], overheads, LIMIT, 1e8) is None
