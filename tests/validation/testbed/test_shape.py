"""Shapes of test beds, and rates as people write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import Platform, load, write_description
from collwise.validation.testbed.shape import Shape, format_rate, parse_rate, simulated_platform


@pytest.mark.parametrize(
    ("text", "bits_per_second"), [("100Mbit", 1e8), ("1Gbit", 1e9), ("1.5 gbit/s", 1.5e9), ("640kbit", 6.4e5)]
)
def test_rates(text: str, bits_per_second: float) -> None:
    assert parse_rate(text) == bits_per_second
    assert parse_rate(format_rate(bits_per_second).replace("bit/s", "bit")) == bits_per_second


@pytest.mark.parametrize("text", ["", "100", "100MB", "-1Mbit", "fast", "1e3Mbit"])
def test_malformed_rates(text: str) -> None:
    with pytest.raises(UsageError, match="100Mbit"):
        parse_rate(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 1},
        {"nodes": 201},
        {"bits_per_second": 10.0},
        {"burst_bytes": 1500},
        {"buffer_bytes": 0},
        {"host_queue_bytes": 0},
        {"ranks_per_node": 0},
        {"switches": 2},
        {"uplink_bits_per_second": 1e7},
        {"congestion_control": "no; such"},
    ],
)
def test_shapes_that_no_bed_can_have(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
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
