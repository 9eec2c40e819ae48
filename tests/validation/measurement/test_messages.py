"""Collectives predicted from messages between two nodes alone: what these tell, and what everything else may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.checks import MACHINES, check_machines
from collwise.common.files import read_text
from collwise.platforms import Platform, load_description
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.present.machines import shown
from collwise.studies.present.shown import Table
from collwise.validation.calibration.figures import multiplied, with_eager_limit
from collwise.validation.calibration.from_times import TimedCases
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.measurement.training import from_messages
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.grid import case_of
from collwise.validation.times.measured import times_of_run
from tests.validation.calibration.test_from_times import LATENCIES, STREAMS

GOOGLE = MACHINES / "google_compute-64.csv.gz"
SIZES = (64, 4096, 65536)
LIBRARY = "Open MPI 4.1.5"


def run_on(platform: Platform, messages: Platform | None = None) -> MeasuredRun:
    """A run of 4 x 8 processes on a platform, with messages as they are there or on another one."""
    decided = {case_of("allreduce", LIBRARY_DECIDES, 32, size, 8): _case(size) for size in SIZES}
    cases = TimedCases(platform, dict.fromkeys(decided.values(), 1.0), processes_per_node=8)
    seconds = dict(zip(cases.cases, cases.on(platform).tolist(), strict=True))
    timings = [Timing(asked, seconds[case]) for asked, case in decided.items()]
    times = times_of_run(Configuration("measured", "lumi", LIBRARY), timings)
    return MeasuredRun("lumi", "1", LIBRARY, {}, tuple(times), messages=_messages(messages or platform))


def _case(size: int) -> Case:
    choice = BASELINES["openmpi-4.1"].choice("allreduce", 32, size)
    assert choice is not None
    return case_of("allreduce", choice, 32, size, 8)


def _messages(platform: Platform) -> Mapping[Case, float]:
    cases = TimedCases(platform, dict.fromkeys([*LATENCIES, *STREAMS], 1.0))
    return dict(zip(cases.cases, cases.on(platform).tolist(), strict=True))


def test_messages_of_a_machine_predict_its_collectives() -> None:
    (found,) = from_messages([run_on(multiplied(load_description("lumi"), {"latency": 3.0, "rate": 0.7}))])
    assert (found.collective, found.procs, found.processes_per_node, found.times) == ("allreduce", 32, 8, 3)
    assert found.error < 0.1 < 0.3 < found.described
    assert found.told["latency of the links"] == pytest.approx(3.0, rel=0.2)
    assert found.told["bandwidth factor"] == pytest.approx(0.7, rel=0.1)


def test_messages_tell_the_eager_limit() -> None:
    """Times that were made with another limit than the described one follow from the messages.

    At the described limit the longer handshake would fall on other sizes.
    """
    lumi = load_description("lumi")
    limit = lumi.calibration.eager_limit_bytes // 4
    (found,) = from_messages([run_on(multiplied(with_eager_limit(lumi, limit), {"handshake": 4.0}))])
    assert found.error < 1e-3
    assert found.told["further latency from the eager limit on"] == pytest.approx(4.0, rel=0.05)


def test_what_messages_do_not_tell_is_named_with_its_prior() -> None:
    (found,) = from_messages([run_on(load_description("lumi"))])
    others = {one.title: one for one in found.others}
    assert {"reduce_seconds_per_byte", "copy_seconds_per_byte", "loopback_latency_seconds"} <= set(others)
    assert not set(others) & set(found.told)
    low, high = others["loopback_latency_seconds"].factors
    assert low == pytest.approx(1 / high) == pytest.approx(0.316, abs=0.001)
    assert max(others["loopback_latency_seconds"].errors) > found.error


def test_runs_without_messages_or_a_known_library_have_no_predictions() -> None:
    plain = run_on(load_description("lumi"))
    for other in ({"messages": {}}, {"library": "Cray MPICH 8"}, {"machine": "nowhere"}):
        assert not list(from_messages([replace(plain, **other)])), other


def test_googles_cloud_is_predicted_from_its_messages_which_training_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every fourth of its sizes, of which each takes a while on so many processes."""
    monkeypatch.chdir(tmp_path)
    lines = read_text(GOOGLE).splitlines()
    calls = [line for line in lines if line.startswith("allreduce,")]
    kept = [line for line in lines if line not in calls] + sorted(calls, key=lambda line: int(line.split(",")[3]))[::4]
    Path("google_compute.times.csv").write_text("\n".join(kept) + "\n")
    judged = check_machines(Path("google_compute.times.csv"), predictions=Path("p.csv"), models=False, train=True)
    (found,) = judged.messages
    assert (found.platform, found.procs, found.times) == ("google-compute", 3584, 5)
    assert found.error < 0.25 < found.described
    output = shown(judged)
    tables = {part.title: part for part in output.parts if isinstance(part, Table)}
    (row,) = tables.pop("Predicted from messages between two nodes alone").rows
    assert row[:3] == ("google_compute", "cluster of 64 nodes", "allreduce")
    (others,) = tables.values()
    assert "memory_bytes_per_second" in {one[4] for one in others.rows}
    assert not output.problem
