"""The comparison on hosts and in batch jobs: plans, the report, and, under a real MPI, the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import Platform, load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case, Timing
from collwise.studies.cli import check
from collwise.studies.cli.main import main
from collwise.studies.reports.validation_report import document, write_validation
from collwise.targets import TargetOptions
from collwise.validation.three_way import pipeline
from collwise.validation.three_way.pipeline import ThreeWayComparison
from collwise.validation.three_way.plan import cluster_plan
from collwise.validation.three_way.verdicts import POINT, SIMULATED
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import Times
from tests.command_line import printed
from tests.needs import needs


class Hosts:
    """Eight hosts with room for two processes each, of which small runs use one."""

    name, usual_procs = "n1,n2", 8
    installation = SimpleNamespace(label="Open MPI 4.1.4")

    def processes_per_node(self, procs: int) -> int:
        if procs > 16:
            raise UsageError(f"{procs} processes; there is room for 16")
        return 2 if procs > 8 else 1


HOSTS: Any = Hosts()


def test_the_largest_process_count_is_the_main_one() -> None:
    plan = cluster_plan(HOSTS, (4, 16), collectives=("bcast", "alltoall"))
    assert [one.procs for one in plan.scenarios] == [16, 4]
    assert {case.processes_per_node for case in plan.main.cases()} == {2}
    assert {grid.processes_per_node for grid in plan.scenarios[1].grids()} == {1}
    assert len(plan.main.sizes["bcast"]) > len(plan.scenarios[1].sizes["bcast"]) == 3
    assert not plan.models, "models know one process on each node"
    assert cluster_plan(HOSTS).models
    assert [one.procs for one in cluster_plan(HOSTS, quick=True).scenarios] == [8]


@pytest.mark.parametrize(
    ("procs", "how", "said"),
    [
        ((32,), {}, "there is room for 16"),
        ((1, 4), {}, "P = 1: at least 2 are needed"),
        ((4,), {"collectives": ("barrier",)}, "no comparison of barrier"),
        ((4,), {"sizes": (0,)}, "the smallest size is 1 B"),
    ],
)
def test_what_cannot_be_compared_is_refused(procs: Sequence[int], how: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cluster_plan(HOSTS, procs, **how)


def _seconds(case: Case, factor: float = 1.0) -> Timing:
    seconds = factor * case.procs * (1e-5 + 1e-8 * case.message_bytes) * (1 + len(case.algorithm) / 10)
    return Timing(case, seconds, half_width_seconds=seconds / 100, repetitions=3, median_seconds=seconds)


class Bench:
    """In place of a real MPI."""

    def __init__(self, *_: object) -> None:
        pass

    def time(self, cases: Sequence[Case]) -> dict[Case, Timing]:
        return {case: _seconds(case) for case in cases}


def simulated(platform: Platform, grids: Sequence[Grid], _: object) -> list[Times]:
    """In place of engines: 10 % above what is measured, but for one algorithm, at half of that."""
    made = {case: _seconds(case, 0.5 if case.algorithm == "chain" else 1.1) for grid in grids for case in grid.cases()}
    return [Times.of_timings(grid, made, platform.name, "simulated", "SMPI") for grid in grids]


def test_the_report_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "Measured", Bench)
    monkeypatch.setattr(pipeline, "simulate", simulated)
    monkeypatch.setattr(pipeline, "measured_models", lambda *_, **__: [])
    plan = cluster_plan(HOSTS, (4, 8), collectives=("bcast",), quick=True)
    with Store(tmp_path / "store.sqlite") as store:
        result = ThreeWayComparison(plan, SimulationContext(store), tmp_path, target=HOSTS, platform=load("gros")).run()
    assert list(result.scores) == ["n1,n2, P = 8", "n1,n2, P = 4"]
    assert {one.right.procs for one in result.main.values()} == {(8,)}
    assert {one.case.algorithm for one in result.disagreements} == {"chain"}
    _, text = write_validation(result, tmp_path)
    report = text.read_text()
    assert "Real Open MPI 4.1.4 on n1,n2, P = 8" in report
    assert "test bed" not in report
    assert "| bcast | median absolute error | 10.0 % |" in report.replace("**", "")
    assert "n1,n2, P = 4" in report
    found = document(result)
    assert found["checked"] is None
    assert found["causes"] == []
    assert found["verdicts"][0]["found"] == pytest.approx(0.1)


def test_a_platform_is_calibrated_on_as_many_nodes_as_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(pipeline, "measure_points", lambda target, nominal, *_: seen.append(nominal.nodes) or [])
    monkeypatch.setattr(
        pipeline, "refit", lambda points, nominal, _: SimpleNamespace(platform=replace(nominal, title="calibrated"))
    )
    monkeypatch.setattr(pipeline, "alone_platform", lambda points, nominal: seen.append(nominal.nodes) or nominal)
    plan = cluster_plan(HOSTS, (4,), quick=True)
    with Store(tmp_path / "store.sqlite") as store:
        comparison = ThreeWayComparison(
            plan, SimulationContext(store), tmp_path, target=HOSTS, platform=load("gros"), calibrate=True
        )
        found, alone = comparison._platforms(HOSTS, plan.main)
    assert seen == [4, 4]
    assert alone is not None
    assert isinstance(found, Platform)
    assert found.nodes == load("gros").max_procs(1)
    assert "calibrated" in (tmp_path / "gros.toml").read_text()


# The command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--testbed", "--hosts", "localhost"], "--testbed and another target; give one"),
        (["--testbed", "--platform", "gros"], "--platform is for --hosts or --launcher"),
        (["--testbed", "--procs", "4"], "--procs is for --hosts or --launcher"),
        (["--testbed", "--transport", "tcp"], "unknown transport of a test bed 'tcp'"),
        (["--hosts", "localhost", "--nodes", "4"], "--nodes is for --testbed"),
        (["--hosts", "localhost"], "name what to simulate: --platform"),
        (["--hosts", "localhost", "--platform", "gros", "--nominal", "gros"], "name what to simulate: --platform"),
        (
            ["--hosts", "localhost", "--platform", "gros", "--transport", "steady"],
            "unknown transport of hosts 'steady'",
        ),
    ],
)
def test_options_that_do_not_go_together(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "three-way", *words])
    err = capsys.readouterr().err
    assert (ended.value.code, err.count("\n")) == (2, 1)
    assert said in err


@pytest.mark.parametrize("launcher", [["--launcher", "srun"], ["--launcher", "oar"], ["--hosts", "n1,n2"]])
def test_each_launcher_reaches_the_comparison(
    launcher: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That launchers run programs is tested with their stand-ins."""
    seen: list[tuple[TargetOptions, ThreeWayComparison]] = []
    named: list[TargetOptions] = []
    monkeypatch.setattr(check, "target_from", lambda where: named.append(where) or HOSTS)

    def run(comparison: ThreeWayComparison) -> None:
        seen.append((named[0], comparison))
        raise UsageError("far enough")

    monkeypatch.setattr(ThreeWayComparison, "run", run)
    words = ["--ppn", "1", "--procs", "2,4", "--nominal", "gros", "--quick", "--store", str(tmp_path / "s.sqlite")]
    with pytest.raises(SystemExit):
        main(["check", "three-way", *launcher, *words, "--output", str(tmp_path)])
    [(where, comparison)] = seen
    assert (where.launcher, where.hosts, where.ppn) == (
        launcher[1] if launcher[0] == "--launcher" else None,
        launcher[1] if launcher[0] == "--hosts" else None,
        1,
    )
    assert comparison.calibrate
    assert [one.procs for one in comparison.plan.scenarios] == [4, 2]


@needs("openmpi", "smpi")
@pytest.mark.slow
def test_hosts_from_nothing_to_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2\n")
    words = ["--hosts", str(hosts), "--host-timeout", "900", "--platform", "gros", "--collective", "bcast", "--quick"]
    files = ["--store", str(tmp_path / "s.sqlite"), "--output", str(tmp_path / "report")]
    with pytest.raises(SystemExit) as ended:
        main(["check", "three-way", *words, "--sizes", "8KiB", "--no-models", *files, "--json"])
    assert not ended.value.code
    found = printed(capsys.readouterr().out)
    assert {row["point"]["procs"] for row in found.rows} == {2}
    assert all(row["predicted"][SIMULATED] > 0 for row in found.rows)
    assert found.facts["builtin"][0]["seconds"] > 0
    assert set(POINT) == set(found.rows[0]["point"])
    assert (tmp_path / "report" / "validation.html").stat().st_size > 10_000
