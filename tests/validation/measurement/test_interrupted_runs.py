"""Requests for the benchmark program, and the records of a run that ends early, on a target that stands in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError
from collwise.simulator.execution.installations import Installation
from collwise.simulator.execution.processes import ProgramRun
from collwise.simulator.execution.targets import ExecutionTarget, LaunchRequest
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case
from collwise.validation.measurement.irregular_regions import RegionsPlan, find_regions

KIB = 1024
PLAN = RegionsPlan(3, sizes=tuple(range(4 * KIB, 49 * KIB, 4 * KIB)), rounds=2, timeout_seconds=77)


class Prepared(Installation):
    """An installation whose programs are there."""

    def program(self, name: str) -> Path:
        return self.build_directory / name


class StandIn(ExecutionTarget):
    """Says of each case a time in proportion to its bytes, and dies after `most` of a run; `wrong` is an error's id."""

    name = "stand-in"
    eager_limit_bytes = 0
    usual_procs = 3
    facts: Mapping[str, str] = {"hosts": "none"}

    irregular = (0, 0)

    def __init__(self, folder: Path, most: int = 10**6, wrong: int = -1) -> None:
        (folder / "benchmark").touch()
        self.installation = Prepared("openmpi", "9.9", Path("mpirun"), folder, "")
        self.most, self.wrong, self.requests, self.lines = most, wrong, [], []

    def processes_per_node(self, procs: int) -> int:
        return 1

    def late(self, collective: str, size: int) -> float:
        """Further seconds, of a time-out where blocks of a gather are of medium size."""
        return 0.3 * (collective == "gather" and self.irregular[0] <= size < self.irregular[1] and size // KIB % 8 == 0)

    def launch(self, request: LaunchRequest) -> ProgramRun:
        lines = [line.split() for line in Path(request.args[0]).read_text().splitlines()]
        self.requests.append(request)
        self.lines.append(lines)
        assert request.on_line is not None
        for number, (place, _, collective, _, _, _, size, *_) in enumerate(lines):
            if number == self.most:
                return ProgramRun(1, [], "n2 is gone\n")
            record = {
                "seconds": int(size) / 1e7 + self.late(collective, int(size)), "median_seconds": 1.0,
                "least_seconds": 1.0, "greatest_seconds": 1.0, "half_width_seconds": None, "repetitions": 1,
                "late_starts": 0, "clock_resolution_seconds": 1e-8, "precise": True,
            }  # fmt: skip
            said = {"error": "no such thing"} if number == self.wrong else record
            request.on_line(json.dumps({"id": int(place)} | said))
        return ProgramRun(0)


def cases(*procs: int) -> list[Case]:
    return [Case("bcast", "chain", one, size) for one in procs for size in (3000, 1000, 2000)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite")


@pytest.mark.parametrize(
    ("method", "limit"),
    [(Method(), 60 + 6 * 10), (Method(limit_seconds=0), None), (Method(nrep=0.1, limit_seconds=2), 60 + 6 * 13)],
)
def test_one_run_of_all_missing_cases_in_order_within_the_limits(
    tmp_path: Path, store: Store, method: Method, limit: float | None
) -> None:
    target = StandIn(tmp_path)
    timings = measure(target, cases(4, 2), store, method=method)
    assert [timing.seconds for timing in timings] == [3e-4, 1e-4, 2e-4] * 2
    (request,) = target.requests
    assert (request.program, request.procs, request.args[1:], request.timeout_seconds) == (
        "benchmark", 4, method.options(), limit
    )  # fmt: skip
    assert [(line[4], line[6]) for line in target.lines[0]] == [(p, s) for p in "24" for s in ("1000", "2000", "3000")]
    assert not Path(request.args[0]).exists()


def test_what_was_measured_before_the_end_is_not_measured_again(tmp_path: Path, store: Store) -> None:
    target = StandIn(tmp_path, most=2)
    with pytest.raises(CollwiseError, match=r"^Open MPI 9.9: n2 is gone \(exit code 1\); 2 of 3 cases were measured "):
        measure(target, cases(2), store)
    assert [timing.seconds for timing in measure(target, cases(2), store)] == [3e-4, 1e-4, 2e-4]
    assert [line[6] for line in target.lines[1]] == ["3000"]


def test_a_case_with_an_error_is_tried_again(tmp_path: Path, store: Store) -> None:
    target = StandIn(tmp_path, wrong=1)
    assert [timing.error for timing in measure(target, cases(2), store)] == ["", "", "no such thing"]
    target.wrong = -1
    assert all(timing.ok for timing in measure(target, cases(2), store))
    assert [line[6] for line in target.lines[1]] == ["2000"]


def test_single_repetitions_go_in_rounds_over_all_sizes(tmp_path: Path, store: Store) -> None:
    target = StandIn(tmp_path)
    found = find_regions(target, PLAN, store, run="now")
    assert found.scatter.seconds.tolist() == [[size / 1e7 for size in PLAN.sizes]] * 2
    first = target.requests[0]
    once = Method(precision=Precision(1, 1))
    assert (first.procs, first.args[1:], first.timeout_seconds) == (3, once.options(), 77)
    # Two rounds of scatter come first.
    assert [[int(line[6]) for line in lines] for lines in target.lines[:2]] == [list(PLAN.sizes)] * 2


def test_lmo_is_tried_with_the_bound_that_was_found_and_with_half_of_it(tmp_path: Path, store: Store) -> None:
    target = StandIn(tmp_path)
    target.irregular = (8 * KIB, 32 * KIB)
    first = find_regions(target, PLAN, store).thresholds.gather_irregular_from_bytes
    assert first is not None
    bounds = [int(line[7]) for lines in target.lines for line in lines if line[3] == "lmo"]
    assert [*dict.fromkeys(bounds)] == [first, first // 2]


@pytest.mark.parametrize(
    ("most", "wrong", "message", "kept"),
    [
        (5, -1, r"^Open MPI 9.9: n2 is gone \(exit code 1\); 5 of 12 cases were measured and are kept$", 5),
        (99, 5, "1 cases failed; first: .*no such thing$", 12),
    ],
)
def test_single_repetitions_before_the_end_are_kept(
    tmp_path: Path, store: Store, most: int, wrong: int, message: str, kept: int
) -> None:
    with pytest.raises(CollwiseError, match=message):
        find_regions(StandIn(tmp_path, most, wrong), PLAN, store, run="now")
    assert [json.loads(row["details"])["run"] for row in store.rows()] == ["now scatter linear all, round 1"] * kept
