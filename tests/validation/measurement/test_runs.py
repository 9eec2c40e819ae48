"""Measured runs in files and folders, and those that the project has of machines."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import collwise.studies
from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP, SATURATION
from collwise.platforms import load_description, write_description
from collwise.platforms.allocation import read_node_map
from collwise.simulator.execution.cluster import format_hosts, hosts_in
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports import read_file
from collwise.validation.measurement.imports.reading import NOT_READ, MissingFacts
from collwise.validation.measurement.imports.table import text_of
from collwise.validation.measurement.judging import platform_of
from collwise.validation.measurement.runs import MeasuredRun, runs_in
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import BUILTIN
from collwise.validation.times.times import State
from tests.validation.measurement.test_imported_runs import BCAST, RUN, TIMES, archive, metadata, write

MACHINES = Path(collwise.studies.__file__).parent / "machines"


CASES = st.builds(
    Case, st.sampled_from(("bcast", "reduce")), st.sampled_from(("ours", "theirs")), st.integers(2, 99),
    st.integers(0, 2**30), st.sampled_from((0, 1024)), st.integers(0, 3), processes_per_node=st.integers(1, 2),
) | st.builds(
    Case, st.just("bcast"), st.just("-"), st.just(8), st.integers(0, 99), experiment=st.just(BUILTIN)
) | st.builds(
    Case, st.just("-"), st.just("-"), st.just(2), st.integers(0, 99), experiment=st.just(ROUNDTRIP)
) | st.builds(
    Case, st.just("-"), st.just("-"), st.just(2), st.integers(0, 99), experiment=st.just(SATURATION), count=st.just(64),
    reply_bytes=st.just(4),
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        CASES, st.tuples(st.floats(1e-4, 100), st.floats(0, 1) | st.just(math.inf), st.booleans()), min_size=1
    )
)
def test_a_table_of_a_run_reads_as_the_run(tmp_path: Path, drawn: dict[Case, tuple[float, float, bool]]) -> None:
    """Also of marked cells, and of messages; the configuration is the same, so that a store would keep them once."""
    timings = [
        Timing(case, math.nan if bad else seconds, half_width_seconds=width * seconds, repetitions=3,
               error="marked" * bad, median_seconds=seconds)
        for case, (seconds, width, bad) in drawn.items()
    ]  # fmt: skip
    facts = (("job", "17"), ("notes", "a, b"))
    configuration = Configuration("measured", "hexa", "Some MPI 1", facts)
    file = write(tmp_path, text_of(configuration, timings), "t.csv.gz")
    ((again, reread),) = read_file(file, MissingFacts())
    assert again == configuration
    for one, other in zip(timings, reread, strict=True):
        assert (other.case, other.error, other.repetitions) == (one.case, one.error, 3)
        assert (other.seconds if one.ok else other.median_seconds) == pytest.approx(one.median_seconds, rel=1e-6)
        assert other.half_width_seconds == pytest.approx(one.half_width_seconds, rel=1e-6)
    ((_, unread),) = read_file(file, MissingFacts(), values=False)
    assert [(one.case, one.error) for one in unread] == [(one.case, NOT_READ) for one in timings]


def test_folders_are_searched_for_runs(tmp_path: Path) -> None:
    archive(tmp_path / "all" / "pico", TIMES, metadata(BCAST))
    head = "# machine: other\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,ppn,bytes,us\n"
    write(tmp_path / "all", head + "bcast,binomial,8,4,64,9\nbcast,default,8,4,64,8\n", "mine.times.csv")
    write(tmp_path / "all", "notes of somebody\n", "notes.csv")
    found = {run.machine: run for run in runs_in([tmp_path / "all"])}
    assert sorted(found) == ["hexa", "other"]
    assert (found["hexa"].job, found["hexa"].library) == (RUN, "Open MPI 4.1.5")
    (times,) = found["other"].times
    assert (times.collective, times.processes_per_node, times.procs) == ("bcast", 4, (8,))
    assert times.seconds_of(Choice("binomial"), 8, 64) == pytest.approx(9e-6)
    assert times.seconds_of(LIBRARY_DECIDES, 8, 64) == pytest.approx(8e-6)


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_folders_without_runs(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=f"{name}: (contains )?no "):
        runs_in([tmp_path / name])


@pytest.fixture(scope="module")
def machines() -> list[MeasuredRun]:
    return runs_in([MACHINES])


def test_the_projects_tables_are_small_and_name_their_sources(machines: list[MeasuredRun]) -> None:
    assert sum(file.stat().st_size for file in MACHINES.iterdir()) < 2_000_000
    assert {run.machine for run in machines} == {
        *("mare_nostrum", "leonardo", "lumi", "fugaku", "aws_c5n", "google_compute")
    }
    licences = (MACHINES / "LICENSES.txt").read_text(encoding="utf-8")
    for run in machines:
        assert run.facts["source"] in licences
        assert run.facts["licence"].startswith("MIT License")
        assert run.facts["licence"].partition("; ")[2] in licences
        assert "timing" in run.facts


@pytest.mark.parametrize(
    ("collective", "choice", "size", "microseconds"),
    [
        ("bcast", Choice("binomial"), 1 << 20, 672.6),
        ("bcast", Choice("scatter_allgather"), 1 << 20, 174.2),
        ("allreduce", Choice("rabenseifner"), 1 << 20, 303.0),
        ("allreduce", Choice("ring"), 1 << 20, 776.1),
        ("alltoall", Choice("linear"), 4096, 20.9),
    ],
)
def test_mare_nostrums_medians(
    machines: list[MeasuredRun], collective: str, choice: Choice, size: int, microseconds: float
) -> None:
    (times,) = [
        one for run in machines if run.machine == "mare_nostrum" for one in run.times if one.collective == collective
    ]
    assert times.seconds_of(choice, 32, size) * 1e6 == pytest.approx(microseconds, abs=0.05)


def test_the_projects_tables_have_marked_cells(machines: list[MeasuredRun]) -> None:
    marked = {
        run.job: {timing.error.partition(":")[0] for times in run.times for timing in times.failed}
        for run in machines
        if any(times.failed for times in run.times)
    }
    assert marked["2025_04_07___16_14_21"] == marked["2025_04_07___16_22_51"] == {"the force did not act"}
    assert marked["2025_03_26___19_49_06"] == {"the library refused the name of the algorithm"}
    assert "2025_04_07___16_33_47" not in marked
    (cloud,) = [run for run in machines if run.job.startswith("aws_c5n-open_mpi_3") and "tcp" in run.job]
    (allreduce,) = [times for times in cloud.times if times.collective == "allreduce"]
    assert set(allreduce.state.values[: len(allreduce.choices)].flat) == {State.FAILED}


def test_hosts_of_ranks_in_a_text() -> None:
    assert hosts_in(format_hosts(["n1", "n1", "n2-a.site"])) == ("n1", "n1", "n2-a.site")
    for other in ("", "4x4x4, not counted", "n[1-4]", "n1*2,n2", "n1*2,", "n1*123456"):
        assert hosts_in(other) == ()


@pytest.mark.parametrize("name", ["hexa_nodes.txt", "hexa.nodes.csv", "hexa.topology.conf", "hexa.topology.conf.gz"])
def test_a_map_of_nodes_beside_a_run_comes_before_others(tmp_path: Path, name: str) -> None:
    archive(tmp_path / "runs", TIMES, metadata(BCAST))
    (tmp_path / "maps").mkdir()
    other = write(tmp_path / "maps", "host,switch\n", "hexa.nodes.csv")
    write(tmp_path / "maps", "host,switch\n", "another.nodes.csv")

    def node_map() -> Path | None:
        (run,) = runs_in([tmp_path / "runs"], maps=[tmp_path / "maps"])
        return run.node_map

    assert node_map() == other
    above = write(tmp_path / "runs", "", name)
    assert node_map() == above
    beside = write(tmp_path / "runs" / "hexa", "", name)
    assert node_map() == beside
    (run,) = runs_in([tmp_path / "runs"])
    assert run.node_map == beside


def test_a_description_beside_a_run_is_its_platform(tmp_path: Path) -> None:
    archive(tmp_path / "runs", TIMES, metadata(BCAST))
    (plain,) = runs_in([tmp_path / "runs"])
    assert plain.description is None
    assert platform_of(plain.machine, plain.facts) is None
    text = write_description(load_description("gros")).replace('name = "gros"', 'name = "own"')
    beside = write(tmp_path / "runs", text, "hexa.toml")
    (run,) = runs_in([tmp_path / "runs"])
    assert run.description == beside
    platform = platform_of(run.machine, run.facts, run.description)
    assert platform is not None
    assert platform.name == "own"
    write(tmp_path / "runs", "name = 3\n", "hexa.toml")
    with pytest.raises(UsageError, match=r"hexa\.toml"):
        platform_of(run.machine, run.facts, run.description)


def test_the_projects_maps_have_all_hosts_of_its_jobs(machines: list[MeasuredRun]) -> None:
    for name in ("leonardo", "lumi"):
        some = [run for run in machines if run.machine == name]
        (file,) = {run.node_map for run in some}
        assert file is not None
        node_map = read_node_map(file)
        assert all(host in node_map for run in some for host in hosts_in(run.facts["hosts"]))


def test_the_projects_maps() -> None:
    """Leonardo's as PICO's file has these nodes; LUMI's cabinets as xnames in allocations of PICO have them."""
    leonardo = read_node_map(MACHINES / "leonardo.topology.conf.gz")
    assert len(leonardo) == 4992
    assert len({group for _, group in leonardo.values()}) == 22
    assert [leonardo[f"lrdn{node:04}"] for node in (1, 9, 13)] == [
        *(("10100", "cell1"), ("10104", "cell1"), ("10100", "cell1"))
    ]
    lumi = read_node_map(MACHINES / "lumi.topology.conf.gz")
    assert len(lumi) == 2978
    cabinets = {
        **{5193: "x1101", 5676: "x1105", 6071: "x1202", 6074: "x1202", 6750: "x1302", 6876: "x1303", 7010: "x1304"},
        **{7041: "x1304", 7196: "x1305", 7209: "x1305", 7544: "x1402", 7558: "x1402"},
    }
    assert {node: lumi[f"nid{node:06}"][1] for node in cabinets} == cabinets
