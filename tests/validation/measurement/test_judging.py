"""Predictions judged by measured runs: which cells count, the oracle, regrets, and predictions before times."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from collwise.checks import machines
from collwise.common.errors import UsageError
from collwise.platforms import Platform, Torus
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.present.machines import shown
from collwise.validation.measurement.imports import pico
from collwise.validation.measurement.judging import (
    FIXED,
    POSSIBLE,
    PREDICTED,
    UNTUNED,
    Cell,
    candidates,
    cells_of,
    grids,
    platform_of,
    regrets_of,
    with_best_fixed,
)
from collwise.validation.measurement.runs import MeasuredRun, runs_in
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from collwise.validation.times.measured import times_of_run
from collwise.validation.times.times import Times
from tests.validation.measurement.test_imported_runs import archive, iterations, metadata, ranks, write

DEFAULT = "default"


def run_of(
    columns: Mapping[str, Mapping[int, float]],
    *,
    collective: str = "bcast",
    job: str = "1",
    procs: int = 8,
    width: float = 0.0,
    iterations: int = 100,
    marked: tuple[str, ...] = (),
) -> MeasuredRun:
    """A run with these microseconds by algorithm and size."""
    timings = []
    for name, column in columns.items():
        choice = LIBRARY_DECIDES if name == DEFAULT else Choice(name)
        for size, microseconds in column.items():
            case: Case = case_of(collective, choice, procs, size)
            error = "marked" if name in marked else ""
            seconds = math.nan if error else microseconds * 1e-6
            timings.append(Timing(case, seconds, half_width_seconds=width * 1e-6, repetitions=iterations, error=error))
    configuration = Configuration("measured", "hexa", "Open MPI 4.1.5", (("job", job),))
    return MeasuredRun("hexa", job, "Open MPI 4.1.5", {"job": job}, tuple(times_of_run(configuration, timings)))


def judged(run: MeasuredRun, predicted: Mapping[str, float]) -> list[Cell]:
    """The cells of a run, where the predicted microseconds of an algorithm are the same for all sizes."""
    found = {}
    for place, grid in grids(run):
        seconds = {grid.case(one, place.procs, size): predicted[one.algorithm] * 1e-6
                   for one in grid.choices for size in grid.message_bytes}  # fmt: skip
        timings = {case: Timing(case, value) for case, value in seconds.items()}
        found[place] = Times.of_timings(grid, timings, "hexa", "simulated", "engine")
    return with_best_fixed(list(cells_of(run, found)))


def test_regret_is_against_the_fastest_of_the_library() -> None:
    columns = {DEFAULT: {64: 8.0}, "binomial": {64: 12.0}, "chain": {64: 10.0}}
    (cell,) = judged(run_of(columns), {"binomial": 5.0, "chain": 6.0})
    assert (cell.chosen, cell.oracle) == ("binomial", "library decides")
    assert cell.regrets == pytest.approx({PREDICTED: 0.5, UNTUNED: 0.0, POSSIBLE: 0.25, FIXED: 0.25})
    assert sorted(cell.errors) == pytest.approx(sorted([1 - 5 / 12, 1 - 6 / 10]))


def test_algorithms_of_the_library_that_the_catalogue_lacks_count_for_the_oracle_alone() -> None:
    columns = {"binomial": {64: 12.0}, "chain": {64: 10.0}, "default-trix3": {64: 5.0}, "bine_lat_over": {64: 1.0}}
    (cell,) = judged(run_of(columns), {"binomial": 5.0, "chain": 6.0})
    assert cell.oracle == "default-trix3"
    assert cell.regrets[PREDICTED] == pytest.approx(12 / 5 - 1)
    assert UNTUNED not in cell.regrets


def test_marked_cells_do_not_count_and_one_candidate_is_no_choice() -> None:
    columns = {DEFAULT: {64: 8.0}, "binomial": {64: 12.0}, "chain": {64: 2.0}}
    assert not judged(run_of(columns, marked=("chain",)), {"binomial": 5.0, "chain": 6.0})
    more = columns | {"binary": {64: 9.0}}
    (cell,) = judged(run_of(more, marked=("chain",)), {"binomial": 5.0, "chain": 1.0, "binary": 6.0})
    assert (cell.chosen, cell.oracle) == ("binomial", "library decides")


def test_names_of_one_code_count_once() -> None:
    columns = {"linear": {64: 12.0}, "linear_sync": {64: 11.0}, DEFAULT: {64: 12.0}}
    assert not judged(run_of(columns, collective="alltoall"), {"linear": 5.0, "linear_sync": 6.0})


@pytest.mark.parametrize(("chains", "left"), [(1, ["chain"]), (0, ["chain", "k_chain"])])
def test_one_chain_is_the_algorithm_of_that_name(tmp_path: Path, chains: int, left: list[str]) -> None:
    head = "# machine: hexa\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,bytes,fanout,us\n"
    rows = f"bcast,chain,8,64,,9\nbcast,k_chain,8,64,{chains or ''},8\n"
    (run,) = runs_in([write(tmp_path, head + rows, "hexa.times.csv")])
    (times,) = run.times
    assert [one.algorithm for one in candidates(times)] == left


def test_several_processes_on_a_node_are_left_out(tmp_path: Path) -> None:
    head = "# machine: hexa\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,ppn,bytes,us\n"
    rows = "bcast,binomial,8,4,64,9\nbcast,chain,8,4,64,8\n"
    (run,) = runs_in([write(tmp_path, head + rows, "hexa.times.csv")])
    assert not list(grids(run))


def test_regret_within_the_intervals_is_none() -> None:
    columns = {"binomial": {64: 10.4}, "chain": {64: 10.0}}
    (cell,) = judged(run_of(columns, width=0.25), {"binomial": 5.0, "chain": 6.0})
    assert cell.regrets[PREDICTED] == 0
    (cell,) = judged(run_of(columns, width=0.15), {"binomial": 5.0, "chain": 6.0})
    assert cell.regrets[PREDICTED] == pytest.approx(0.04)
    assert cell.floor == pytest.approx(0.15 * (1 / 10 + 1 / 10.4) / 2)


def test_few_iterations_are_left_out_of_the_worst() -> None:
    few = judged(run_of({"binomial": {64: 90.0}, "chain": {64: 10.0}}, iterations=4), {"binomial": 5.0, "chain": 6.0})
    many = judged(run_of({"binomial": {64: 15.0}, "chain": {64: 10.0}}), {"binomial": 5.0, "chain": 6.0})
    found = regrets_of([*few, *many], PREDICTED)
    assert found is not None
    assert (found.cells, found.worst, found.worst_cell) == (2, pytest.approx(0.5), many[0])
    assert found.mean == pytest.approx((8 + 0.5) / 2)


def test_the_mean_is_of_collectives_and_the_others_of_cells() -> None:
    """bcast loses 100 % in each of three cells, reduce nothing in one."""
    sizes = {64: 20.0, 4096: 20.0, 1 << 21: 20.0}
    lost = judged(run_of({"binomial": sizes, "chain": dict.fromkeys(sizes, 10.0)}), {"binomial": 5.0, "chain": 6.0})
    columns = {"binomial": {64: 10.0}, "chain": {64: 20.0}}
    kept = judged(run_of(columns, collective="reduce", job="2"), {"binomial": 5.0, "chain": 6.0})
    found = regrets_of([*lost, *kept], PREDICTED)
    assert found is not None
    assert (found.jobs, found.mean, found.median) == (2, pytest.approx(0.5), pytest.approx(1.0))
    assert found.geometric_mean == pytest.approx(2 ** (3 / 4) - 1)
    assert found.by_seconds == pytest.approx(70 / 40 - 1)
    assert (found.low, found.high) == (pytest.approx(0.0), pytest.approx(1.0))
    assert [cell.size_class for cell in lost] == ["to 2 KiB", "to 1 MiB", "above"]
    alone = regrets_of(lost, PREDICTED)
    assert alone is not None
    assert math.isnan(alone.low)


def test_the_best_fixed_algorithm_is_one_for_a_collective_and_size_class() -> None:
    columns = {"binomial": {8: 10.0, 64: 10.0, 512: 30.0}, "chain": {8: 12.0, 64: 12.0, 512: 10.0}}
    cells = judged(run_of(columns), {"binomial": 5.0, "chain": 6.0})
    assert [cell.regrets[FIXED] for cell in cells] == pytest.approx([0.2, 0.2, 0.0])
    assert [cell.regrets[POSSIBLE] for cell in cells] == [0, 0, 0]


@pytest.mark.parametrize(
    ("machine", "hosts", "expected", "nodes"),
    [
        ("mare_nostrum", "", "marenostrum5", 1120),
        ("Leonardo", "", "leonardo", 3456),
        ("fugaku", "4x4x2, not counted", "fugaku", 32),
        ("aws_c5n", "", None, 0),
    ],
)
def test_platforms_are_found_by_the_names_of_machines(
    machine: str, hosts: str, expected: str | None, nodes: int
) -> None:
    found = platform_of(machine, {"hosts": hosts})
    if expected is None:
        assert found is None
        return
    assert isinstance(found, Platform)
    assert (found.name, found.nodes) == (expected, nodes)
    if hosts:
        assert isinstance(found.topology, Torus)
        assert tuple(found.topology.dimensions) == (4, 4, 2)


def measured(folder: Path, microseconds: float = 20.0) -> Path:
    """The runs of a machine that has a description: the binomial tree takes half of these microseconds."""
    files = {"alloc.csv": ranks(4)} | {
        f"0/{count}_{name}_ompi_int32.csv": iterations(*[microseconds * 1000 * factor] * 20)
        for count in (64, 65536)
        for name, factor in (("default", 0.75), ("binomial", 0.5), ("binary", 1.0))
    }
    path = archive(folder, files, metadata(("4", "1", "BCAST", "OMPI,4.1.5")))
    (folder / "mare_nostrum").mkdir(exist_ok=True)
    (folder / "hexa_metadata.csv").rename(folder / "mare_nostrum_metadata.csv")
    path.rename(folder / "mare_nostrum" / path.name)
    return folder


def test_predictions_are_written_before_times_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[bool] = []
    read_values = pico._values

    def watched(*arguments: object) -> list[float]:
        seen.append(Path("predictions.csv").exists())
        return read_values(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pico, "_values", watched)
    found = machines(measured(tmp_path / "runs"), predictions=Path("predictions.csv"))
    assert seen == [True] * 6
    text = Path("predictions.csv").read_text()
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert found.sha256 in capsys.readouterr().err
    assert [line.split(",")[:4] for line in text.splitlines()[1:3]] == [
        ["mare_nostrum", "2025_01_02___03_04_05", "bcast", "binary"],
        ["mare_nostrum", "2025_01_02___03_04_05", "bcast", "binomial"],
    ]
    assert [cell.regrets[UNTUNED] for cell in found.cells] == pytest.approx([0.5, 0.5])
    assert list(found.frame().columns[:4]) == ["machine", "job", "collective", "procs"]


def test_other_times_have_the_same_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = (
        machines(measured(tmp_path / name, time), predictions=Path(f"{name}.csv"))
        for name, time in (("one", 20.0), ("other", 70.0))
    )
    assert one.sha256 == other.sha256
    assert one.cells[0].oracle_seconds < other.cells[0].oracle_seconds


def test_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = measured(tmp_path / "runs")
    head = "# machine: unknown\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,bytes,us\n"
    write(folder, head + "bcast,binomial,8,64,9\nbcast,chain,8,64,8\n", "unknown.times.csv")
    output = shown(machines(folder))
    rows = [row for row in output.rows if not row["collective"] and not row["sizes"]]
    assert [(row["machine"], row["decider"], row["cells"]) for row in rows] == [
        ("mare_nostrum", name, 2) for name in (PREDICTED, UNTUNED, FIXED, POSSIBLE)
    ]
    assert rows[1]["mean"] == pytest.approx(0.5)
    assert "no platform is called like unknown: its runs are left out" in output.parts
    assert Path("results/machines-predictions.csv").exists()
    assert not output.problem


def test_a_wrong_archive_among_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = measured(tmp_path / "runs")
    (path,) = folder.glob("mare_nostrum/*.tar.gz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UsageError, match="truncated or damaged archive"):
        machines(folder)
