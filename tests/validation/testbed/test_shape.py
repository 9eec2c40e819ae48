"""Shapes of test beds, and rates as people write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import Platform, load, write_description
from collwise.validation.testbed.shape import Shape, format_rate, parse_rate, simulated_platform


@pytest.mark.parametrize(
    ("text", "bits_per_second"), [("100Mbit", 1e8), ("1Gbit", 1e9), ("1.5 gbit/s", 1.5e9), ("640kbit", 6.4e5)]
)
def test_rates(text: str, bits_per_second: float) -> None:
    assert parse_rate(text) == bits_per_second


@given(st.integers(1, 9999), st.integers(0, 8))
def test_rates_are_read_as_they_are_written(digits: int, exponent: int) -> None:
    assert parse_rate(format_rate(digits * 10.0**exponent)) == pytest.approx(digits * 10.0**exponent)


@pytest.mark.parametrize("text", ["", "100", "100MB", "-1Mbit", "fast", "1e3Mbit"])
def test_malformed_rates(text: str) -> None:
    with pytest.raises(UsageError, match="100Mbit"):
        parse_rate(text)


TWO = {"switches": 2, "uplink_bits_per_second": 1e7}


@pytest.mark.parametrize(
    ("name", "what", "least", "most", "others"),
    [
        ("nodes", "nodes", 2, 200, {}),
        ("bits_per_second", "rate in bit/s", 100_000, 100_000_000_000, {}),
        ("burst_bytes", "burst in bytes", 1514, 10**7, {}),
        ("buffer_bytes", "buffer in bytes", 1514, 10**9, {}),
        ("host_queue_bytes", "host queue in bytes", 1, 2**31 - 1, {}),
        ("ranks_per_node", "ranks per node", 1, 64, {}),
        ("switches", "switches", 1, 2, TWO),
        ("uplink_bits_per_second", "rate between the switches in bit/s", 100_000, 100_000_000_000, TWO),
    ],
)
def test_limits_of_shapes(name: str, what: str, least: int, most: int, others: dict[str, Any]) -> None:
    for value in (least, most):
        if name != "switches" or value == 2:
            assert getattr(Shape(**{**others, name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(UsageError, match=rf"test bed: {what}: {value} \(valid: {least} to {most}\)"):
            Shape(**{**others, name: value})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"switches": 2}, "rate between the switches in bit/s: 0"),
        ({"uplink_bits_per_second": 1e7}, "needs a test bed with two switches"),
        ({"congestion_control": "no; such"}, "malformed congestion control 'no; such'"),
        ({"transport": "stedy"}, "did you mean steady"),
    ],
)
def test_shapes_that_no_bed_can_have(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Shape(**wrong)


def test_halves_of_two_switches() -> None:
    shape = Shape(nodes=5, switches=2, uplink_bits_per_second=1e7)
    assert [shape.switch_of(node) for node in range(1, 6)] == [1, 1, 1, 2, 2]


def test_the_nominal_platform_has_the_shapes_figures() -> None:
    platform = simulated_platform(Shape(nodes=4, bits_per_second=1e9))
    assert isinstance(platform, Platform)
    assert platform.hosts == ("n1", "n2", "n3", "n4")
    assert platform.link_bytes_per_second == 1.25e8
    assert 2 * platform.link_latency_seconds == pytest.approx(40e-6)
    assert platform.eager_limit_bytes == 65536
    assert not platform.calibration.tcp_window


def test_the_description_of_any_shape_can_be_read_again(tmp_path: Path) -> None:
    for shape in (Shape(bits_per_second=1.5e6), Shape(transport="default")):
        file = tmp_path / "bed.toml"
        file.write_text(write_description(simulated_platform(shape)))
        assert load(str(file)).hosts == simulated_platform(shape).hosts
