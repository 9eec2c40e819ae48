"""Test beds carry what their shape says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.check import Check, Exchange, check, payload_bytes_per_second
from collwise.validation.testbed.throughput import carried, latency_seconds

Make = Callable[..., beds.Bed]


def test_rates_are_the_shaped_ones(make: Make) -> None:
    bed = make(bits_per_second=5e7)
    both = carried(bed, [(1, 2), (2, 1)], 1.0)
    assert both.bytes_per_second == pytest.approx([payload_bytes_per_second(5e7)] * 2, rel=0.1)
    assert 0 < both.busy_share <= 1
    assert 0 < latency_seconds(bed, 1, 2) < 0.01


@pytest.mark.slow
def test_the_link_between_two_switches_is_narrower(make: Make) -> None:
    bed = make(nodes=4, bits_per_second=5e7, switches=2, uplink_bits_per_second=2e7, buffer_bytes=100_000)
    within, across = payload_bytes_per_second(5e7), payload_bytes_per_second(2e7)
    assert carried(bed, [(1, 2), (3, 4)], 1.0).bytes_per_second == pytest.approx([within] * 2, rel=0.1)
    assert carried(bed, [(1, 3)], 3.0).bytes_per_second[0] == pytest.approx(across, rel=0.1)
    assert sum(carried(bed, [(1, 3), (2, 4)], 3.0).bytes_per_second) == pytest.approx(across, rel=0.1)


@pytest.mark.slow
def test_a_check_of_a_real_bed(make: Make, name: str) -> None:
    found = check(make(bits_per_second=2e7))
    assert found.one_way == pytest.approx(found.one_way_expected, rel=0.1)
    assert found.as_json()["ok"] == (not found.problems)
    assert all(exchange.seconds > 0 for exchange in found.exchanges)
    assert [one for one in beds.names() if one.startswith(name)] == [name]


def test_what_is_not_fit_is_said() -> None:
    def found(together: float = 80e6, slower_seconds: float = 0.08) -> Check:
        return Check(10e6, 10e6, together, 80e6, 0.4, 40e-6, (Exchange(70000, 0.04, slower_seconds),))

    assert found().ok
    assert "all streams together" in found(together=60e6).problems[0]
    assert "not the network alone" in found(slower_seconds=0.05).problems[0]
