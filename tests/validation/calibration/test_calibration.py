"""Calibration against platforms whose parameters are known: simulated points give back the same simulated times."""

from __future__ import annotations

import itertools
import math
import os
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError
from collwise.platforms import Calibration, Platform, load, write_description
from collwise.platforms.description import LEAST_FLAG_SECONDS
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.targets import LaunchRequest
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli.main import main
from collwise.validation.calibration.calibration import (
    CalibrationGrid,
    alone_platform,
    limit_plan,
    measure_points,
    pairs_between_nodes,
    refit,
    simulate_plan,
    size_plan,
)
from collwise.validation.calibration.calibration_points import (
    CalibrationPoint,
    Kind,
    case_of_kind,
    of_kind,
    read_points,
    write_points,
)
from collwise.validation.calibration.smpi_parameters import clock_seconds, fit_platform
from collwise.validation.testbed.bed import Shape, down, up
from collwise.validation.testbed.target import TestBed
from tests.command_line import printed
from tests.needs import need, needs

NOMINAL = Platform(
    name="known",
    title="Known",
    site="site",
    nodes=4,
    host_prefix="n",
    host_suffix="",
    cpus_per_node=1,
    cores_per_node=1,
    core_flops=1e9,
    link_bytes_per_second=12.5e6,
    link_latency_seconds=2e-5,
    loopback_bytes_per_second=2e9,
    loopback_latency_seconds=1e-6,
    calibration=Calibration(tcp_window=False),
)
TRUE = replace(
    NOMINAL,
    link_bytes_per_second=11.9e6,
    link_latency_seconds=7e-6,
    loopback_bytes_per_second=8e8,
    loopback_latency_seconds=9e-7,
    calibration=Calibration(
        latency_factor=((0, 1.0), (1500, 2.5), (32768, 9.0)),
        bandwidth_factor=((0, 0.8), (1500, 0.95), (32768, 1.0)),
        os=((0, 6e-6, 1e-10), (4096, 9e-6, 2e-10)),
        or_=((0, 1.1e-5, 2e-10),),
        ois=((0, 5e-6, 1e-10), (32768, 7e-6, 0.0)),
        eager_limit_bytes=32768,
        crosstraffic=True,
        tcp_window=False,
    ),
)
GRID = CalibrationGrid(70, 50, 12, 24, max_bytes=2**20)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, jobs=1)


def simulated_points(
    platform: Platform, context: SimulationContext, grid: CalibrationGrid = GRID
) -> list[CalibrationPoint]:
    first = simulate_plan(platform, 4, 2, list(limit_plan((0, 2), 2, grid.max_bytes)), context)
    plan = size_plan(grid, first[1].message_bytes, (0, 2), 2, platform)
    return [*first, *simulate_plan(platform, 4, 2, list(plan), context)]


def with_receives(points: list[CalibrationPoint], platform: Platform) -> list[CalibrationPoint]:
    """A message sets out when its receive is posted, in simulation: what a receive takes is put in by hand."""
    (base, per_byte) = platform.calibration.or_[0][1:]
    return [
        replace(point, seconds=(base + per_byte * point.message_bytes,)) if point.kind == "receive" else point
        for point in points
    ]


def test_a_known_platform_is_found_again_and_simulates_alike(context: SimulationContext) -> None:
    points = with_receives(simulated_points(TRUE, context), TRUE)
    early = replace(points[1], message_bytes=100)
    result = refit([early, *points], NOMINAL, context)
    found, true = result.platform, TRUE.calibration
    assert found.calibration.eager_limit_bytes == true.eager_limit_bytes
    assert found.calibration.crosstraffic
    assert found.link_bytes_per_second == pytest.approx(TRUE.link_bytes_per_second, rel=0.005)
    assert found.link_latency_seconds == pytest.approx(TRUE.link_latency_seconds, rel=0.02)
    assert found.loopback_latency_seconds == pytest.approx(TRUE.loopback_latency_seconds, rel=0.05)
    assert found.calibration.os[0][1:] == pytest.approx((6e-6, 1e-10), rel=0.05)
    assert found.calibration.or_[0][1:] == pytest.approx((1.1e-5, 2e-10), rel=0.05)
    for kind, within in itertools.product(Kind, (True, False)):
        of_it = [one for one in result.residuals.itertuples() if (one.kind, one.within_node) == (kind, within)]
        off = [abs(one.simulated_seconds / one.measured_seconds - 1) for one in of_it if one.simulated_seconds > 0]
        expected = statistics.median(off) if off else math.nan
        assert result.median_error(kind, within_node=within) == pytest.approx(expected, nan_ok=True)
    for one in result.residuals.itertuples():
        near_a_place = any(abs(one.message_bytes / place - 1) < 0.3 for place in (1500, 4096, 32768))
        assert near_a_place or abs(one.relative_error) < 0.01, one


def behind_a_token_bucket(
    free_bytes: float, context: SimulationContext, grid: CalibrationGrid = GRID
) -> list[CalibrationPoint]:
    """Points of a network that lets some bytes after a pause through at once: alone messages are quicker."""
    saved = free_bytes / TRUE.link_bytes_per_second
    return [
        replace(point, seconds=tuple(max(one - 2 * saved, 1e-4) for one in point.seconds))
        if point.kind == "ping_pong" and not point.within_node and point.message_bytes < 32768
        else point
        for point in with_receives(simulated_points(TRUE, context, grid), TRUE)
    ]


def test_messages_alone_do_not_pass_for_faster_than_the_link(context: SimulationContext) -> None:
    points = [point for point in behind_a_token_bucket(3000, context) if point.kind != "row"]
    found = refit(points, NOMINAL, context).platform
    rates = [factor * found.link_bytes_per_second for _, factor in found.calibration.bandwidth_factor]
    assert max(rates) <= 1.0001 * NOMINAL.link_bytes_per_second


def test_messages_alone_can_be_had_as_they_are(context: SimulationContext) -> None:
    points = behind_a_token_bucket(1500, context)
    found = refit(points, NOMINAL, context).platform, alone_platform(points, NOMINAL)
    sizes = [point.message_bytes for point in points if point.kind == "ping_pong" and not point.within_node]
    cases = [case_of_kind(Kind.PING_PONG, (0, 2), 2, size) for size in sizes if 2000 < size < 32768]
    measured = {point.message_bytes: point.median_seconds for point in points if point.kind == "ping_pong"}
    held, free = (
        [one.median_seconds / measured[one.message_bytes] - 1 for one in simulate_plan(platform, 4, 2, cases, context)]
        for platform in found
    )
    assert statistics.median(map(abs, free)) < 0.02
    assert statistics.median(held) > 0.1


def test_rows_hold_but_where_single_messages_are_far_quicker(context: SimulationContext) -> None:
    result = refit(behind_a_token_bucket(1500, context, replace(GRID, rows=40)), NOMINAL, context)
    alone, rows = (dict(result.errors_of(kind)) for kind in ("ping_pong", "row"))
    apart = [size for size in rows if 1000 < size < 4000]
    near = [size for size in rows if 5000 < size < 32768]
    assert len(apart) > 2
    assert len(near) > 2
    for size in apart:
        nearest = min(alone, key=lambda other: abs(other / size - 1))
        assert alone[nearest] > 0.1
        assert rows[size] < -0.1
        assert (1 + alone[nearest]) * (1 + rows[size]) == pytest.approx(1, abs=0.3), size
    for size in near:
        assert rows[size] == pytest.approx(0, abs=0.03), size


def test_a_flag_is_fitted_where_it_was_measured(context: SimulationContext, tmp_path: Path) -> None:
    points = with_receives(simulated_points(TRUE, context), TRUE)
    described = replace(NOMINAL, flag_latency_seconds=7e-7)
    assert fit_platform(points, described)[0].flag_latency_seconds == 7e-7
    clock = clock_seconds(points)
    flag = CalibrationPoint(Kind.FLAG, 0, 1, 1, True, 1, 1, (clock + 1e-6, clock + 2e-6, clock + 9e-6))
    write_points(tmp_path / "points.csv", [*points, flag])
    result = refit(read_points(tmp_path / "points.csv"), described, context)
    assert result.platform.flag_latency_seconds == pytest.approx(2e-6, rel=1e-4)
    assert "flag" not in set(result.residuals.kind)
    none = replace(flag, seconds=(0.0,))
    assert fit_platform([*points, none], described)[0].flag_latency_seconds == LEAST_FLAG_SECONDS


def test_what_cannot_be_calibrated_is_refused(context: SimulationContext) -> None:
    with pytest.raises(UsageError, match="two nodes"):
        pairs_between_nodes(4, 4)
    with pytest.raises(UsageError, match="kind 'eager'"):
        refit([], NOMINAL, context)
    with pytest.raises(UsageError, match="measurements of kind 'ping_pong'"):
        refit([CalibrationPoint(Kind.EAGER, 0, 1, 1, False, 100, 1, (0.0,))], NOMINAL, context)
    with pytest.raises(UsageError, match="ascending"):
        CalibrationGrid(min_bytes=10, max_bytes=5)


def test_dahu_simulates_a_large_ping_pong_as_published(context: SimulationContext) -> None:
    dahu = load("dahu")
    assert isinstance(dahu, Platform)
    size = 2**20
    (point,) = simulate_plan(dahu, 4, 2, [case_of_kind(Kind.PING_PONG, (0, 2), 2, size)], context)
    # Intercept and coefficient of one way, of SimGrid's network calibration tutorial.
    assert point.median_seconds / 2 == pytest.approx(1.31058e-5 + 8.04963e-11 * size, rel=0.003)


@pytest.fixture
def bed() -> Iterator[TestBed]:
    need("testbed", "openmpi")
    name = f"calibt{os.getpid()}"
    try:
        yield TestBed(up(Shape(2, 100e6, transport="default"), name))
    finally:
        down(name)


@pytest.mark.slow
def test_a_test_bed_is_calibrated(bed: TestBed, context: SimulationContext) -> None:
    small = CalibrationGrid(16, 12, 8, 8, max_bytes=2**18, seconds_each=0.01, max_repetitions=8)
    nominal = replace(NOMINAL, nodes=2)
    points = measure_points(bed, nominal, small, context.store)
    assert measure_points(bed, nominal, small, context.store) == points
    result = refit(points, nominal, context)
    assert 60_000 < result.platform.calibration.eager_limit_bytes < 65_537
    assert 10e6 < result.platform.link_bytes_per_second < 12.6e6
    assert result.median_error("ping_pong") < 0.2


class TwoNodes(LocalMachine):
    """This machine as if it had two processes on each node; the user gives up after `patience` measurements."""

    def __init__(self, patience: int) -> None:
        super().__init__("openmpi")
        self.patience = patience

    def processes_per_node(self, procs: int) -> int:
        return 2

    def launch(self, request: LaunchRequest) -> ProgramRun:
        def take(line: str) -> None:
            assert request.on_line is not None
            if self.patience == 0:
                raise KeyboardInterrupt
            self.patience -= line.startswith('{"id"')
            request.on_line(line)

        return super().launch(replace(request, on_line=take))


@given(
    numbers=st.tuples(*[st.integers(2, 20)] * 4), most=st.integers(2000, 2**22), limit=st.integers(500, 2**22),
    nodes=st.integers(1, 4), per_node=st.integers(1, 4), repetitions=st.integers(2, 25),
)  # fmt: skip
def test_plans_have_distinct_sizes_from_the_least_to_the_largest_of_each_kind(
    numbers: tuple[int, ...], most: int, limit: int, nodes: int, per_node: int, repetitions: int
) -> None:
    """Eager kinds stay below the limit, others go up to four times that; neighbours on all nodes exchange messages."""
    grid = CalibrationGrid(*numbers, max_bytes=most, max_repetitions=repetitions)
    processes = tuple(range(0, 2 * nodes * per_node, per_node))
    plan = size_plan(grid, limit, processes, per_node, NOMINAL)
    pings, calls, rows, exchanges = numbers
    eager = min(most, limit - 1)
    below, apart = min(most, 4 * eager), ",".join(map(str, processes))
    wanted = {
        "roundtrip": (pings, most), "send": (calls, below), "isend": (calls, below), "unexpected_receive":
        (calls, eager), "saturation": (rows, eager), "sendrecv": (exchanges, below),
    }  # fmt: skip
    for experiment, (number, largest) in wanted.items():
        sizes = [case.message_bytes for case in plan if case.experiment == experiment and case.peers == apart]
        assert len(set(sizes)) == len(sizes) == number
        assert (min(sizes), max(sizes)) == (1, largest)
    reduced = [case.message_bytes for case in plan if case.experiment == "reduce"]
    assert len(reduced) == 8
    assert (min(reduced), max(reduced)) == (1024, 2**20)
    assert not any(size % 8 for size in reduced)
    measuring = processes if nodes > 1 else processes[:1]
    within = [case for case in plan if case.experiment == "roundtrip" and case.peers != apart]
    neighbours = ",".join(f"{rank},{rank + 1}" for rank in measuring)
    assert {case.peers for case in within} == ({neighbours} if per_node > 1 else set())
    assert len(within) == (calls if per_node > 1 else 0)
    assert all(2 <= number <= repetitions for number in plan.values())


@needs("openmpi")
def test_a_stopped_calibration_resumes(context: SimulationContext) -> None:
    grid = CalibrationGrid(6, 4, 4, 4, max_bytes=1000, seconds_each=1e-4, max_repetitions=3)
    nominal = replace(NOMINAL, nodes=2)
    with pytest.raises(KeyboardInterrupt):
        measure_points(TwoNodes(10), nominal, grid, context.store)
    before = len(list(context.store.rows()))
    assert before == 10
    whole = 2 + 6 + 4 + 4 + 4 + 4 + 4 + 4 + 8 + 1
    points = measure_points(TwoNodes(whole - before), nominal, grid, context.store)
    assert len(points) == len(list(context.store.rows())) == whole
    assert {point.within_node for point in points if point.kind == Kind.PING_PONG} == {True, False}
    assert all(2 <= len(point.seconds) <= 15 for point in points if point.kind not in (Kind.EAGER, Kind.FLAG))
    (flag,) = of_kind(points, Kind.FLAG, within_node=True)
    assert 0 < flag.median_seconds < 0.1
    assert measure_points(TwoNodes(0), nominal, grid, context.store) == points


@needs("smpi")
def test_points_of_a_file_are_fitted_again(
    tmp_path: Path, context: SimulationContext, capsys: pytest.CaptureFixture[str]
) -> None:
    points = with_receives(simulated_points(TRUE, context), TRUE)
    write_points(tmp_path / "known.csv", points)
    (tmp_path / "nominal.toml").write_text(write_description(NOMINAL))
    arguments = ["--nominal", str(tmp_path / "nominal.toml"), "--points", str(tmp_path / "known.csv")]
    arguments += ["-o", str(tmp_path / "fitted.toml"), "--store", str(tmp_path / "cli.sqlite"), "--json"]
    arguments += ["--nodes", "2"]
    with pytest.raises(SystemExit) as ended:
        main(["platforms", "calibrate", *arguments])
    assert ended.value.code == 0
    document = printed(capsys.readouterr().out)
    assert document.facts["points"] == str(tmp_path / "known.csv")
    result = refit(points, replace(NOMINAL, nodes=2), context)
    whole = replace(result.platform, nodes=NOMINAL.nodes)
    assert (tmp_path / "fitted.toml").read_text() == write_description(whole)
    assert [one["simulated_seconds"] for one in document.rows] == list(result.residuals.simulated_seconds)
    with Store(tmp_path / "cli.sqlite") as store:
        assert len(list(store.rows(source="simulated"))) == len(result.residuals)
