"""Test beds carry what their shape says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.check import (
    BedCheck,
    Exchange,
    StreamRates,
    _message_bytes,
    check,
    highest_rate,
    latency_seconds,
    payload_bytes_per_second,
    stream_rates,
)
from collwise.validation.testbed.shape import Shape

Make = Callable[..., beds.Bed]
_ATTEMPTS = 20


def carried_at_best(bed: beds.Bed, pairs: list[tuple[int, int]], seconds: float, together: float) -> StreamRates:
    """The streams when they stream_rates most, `together` or more at once, of some attempts.

    A busy machine makes streams slower and never faster than the shape allows.
    """
    attempts = []
    for _ in range(_ATTEMPTS):
        attempts.append(stream_rates(bed, pairs, seconds))
        if sum(attempts[-1].bytes_per_second) >= 0.95 * together:
            break
    return max(attempts, key=lambda one: sum(one.bytes_per_second))


def test_rates_are_the_shaped_ones(make: Make) -> None:
    bed, rate = make(bits_per_second=2e7), payload_bytes_per_second(2e7)
    both = carried_at_best(bed, [(1, 2), (2, 1)], 1.0, 2 * rate)
    assert both.bytes_per_second == pytest.approx([rate] * 2, rel=0.1)
    assert 0 < both.busy_share <= 1
    assert 0 < latency_seconds(bed, 1, 2) < 1


@pytest.mark.slow
def test_the_link_between_two_switches_is_narrower(make: Make) -> None:
    bed = make(nodes=4, bits_per_second=5e7, switches=2, uplink_bits_per_second=2e7, buffer_bytes=100_000)
    within, across = payload_bytes_per_second(5e7), payload_bytes_per_second(2e7)
    apart = carried_at_best(bed, [(1, 2), (3, 4)], 1.0, 2 * within)
    assert apart.bytes_per_second == pytest.approx([within] * 2, rel=0.1)
    for pairs in ([(1, 3)], [(1, 3), (2, 4)]):
        crossing = carried_at_best(bed, pairs, 3.0, across)
        assert sum(crossing.bytes_per_second) == pytest.approx(across, rel=0.1)


@pytest.mark.slow
def test_a_check_of_a_real_bed(make: Make, name: str) -> None:
    found = check(make(bits_per_second=2e7))
    assert 0 < found.one_way < 1.1 * found.one_way_expected
    assert found.as_json()["ok"] == (not found.problems)
    assert all(exchange.seconds > 0 for exchange in found.exchanges)
    assert [one for one in beds.names() if one.startswith(name)] == [name]


@given(st.integers(2, 9), st.integers(1, 3), st.booleans(), st.sampled_from((1e6, 2e7, 1e9)), st.floats(0.01, 0.2))
def test_an_exchange_keeps_the_narrowest_link_busy_for_as_long_as_asked(
    nodes: int, ranks: int, is_divided: bool, uplink: float, seconds: float
) -> None:
    """By counting all messages through a port, and those from one switch to the other."""
    switches = {"switches": 2, "uplink_bits_per_second": uplink} if is_divided else {}
    shape = Shape(nodes=nodes, ranks_per_node=ranks, bits_per_second=2e7, **switches)  # type: ignore[arg-type]
    places = [node for node in range(1, nodes + 1) for _ in range(ranks)]
    pairs = [(one, other) for one in places for other in places if one != other]
    through = [(sum(one == 1 for one, _ in pairs), 2e7)]
    if is_divided:
        through.append((sum(shape.switch_of(one) < shape.switch_of(other) for one, other in pairs), uplink))
    longest = max(count / payload_bytes_per_second(rate) for count, rate in through)
    size = _message_bytes(shape, seconds)
    assert size == 1 or (size - 0.001) * longest <= seconds < (size + 1.001) * longest


def test_what_is_not_fit_is_said() -> None:
    def found(together: float = 80e6, slower_seconds: float = 0.08) -> BedCheck:
        return BedCheck(10e6, 10e6, together, 80e6, 0.4, 40e-6, (Exchange(70000, 0.04, slower_seconds),))

    assert found().ok
    assert "all streams together" in found(together=60e6).problems[0]
    assert "the network is not the only limit" in found(slower_seconds=0.05).problems[0]
    across = replace(found(), across=5e6, across_expected=10e6)
    assert across.problems == ["a stream between the switches: 5 MB/s, 50% of the 10 MB/s of the shape"]
    assert across.as_json()["across_bytes_per_second"] == 5e6
    assert [one["scaling"] for one in across.as_json()["exchanges"]] == [1.0]


def found_with(scaling: float) -> BedCheck:
    return BedCheck(1.0, 1.0, 1.0, 1.0, 0.2, 1e-5, (Exchange(1000, 0.04, 0.08 * scaling),))


def test_the_highest_rate_is_the_first_whose_check_holds_with_a_margin(make: Make, name: str) -> None:
    """At 30 Mbit/s the processors limit, at 20 the check holds without a margin, at 10 it holds."""
    scaling = {3e7: 0.6, 2e7: 0.92, 1e7: 0.98}
    seen: list[float] = []

    def measured(bed: beds.Bed) -> BedCheck:
        return found_with(scaling[bed.shape.bits_per_second])

    def rate_of(*rates: float) -> float:
        seen.clear()
        return highest_rate(Shape(2), rates, name, lambda rate, _: seen.append(rate), measured)

    assert rate_of(3e7, 2e7, 1e7, 5e6) == 1e7
    assert seen == [3e7, 2e7, 1e7]
    assert rate_of(3e7, 2e7) == 2e7
    assert name not in beds.names()
