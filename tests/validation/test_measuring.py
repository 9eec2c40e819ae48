from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError
from collwise.simulator.experiments import Precision
from collwise.simulator.places import ThisMachine
from collwise.simulator.store import Case, Store
from collwise.validation.measuring import Method, half_width, measure


def test_half_width_is_student_t() -> None:
    # Student's t, 95 %, 9 degrees of freedom: 2.262 in every printed table.
    assert half_width(1.0, 10) == pytest.approx(2.262 / math.sqrt(10), rel=1e-3)
    assert math.isinf(half_width(1.0, 1))


@pytest.mark.parametrize("timing", ["root", "maximum"])
def test_times_of_real_open_mpi_are_kept(tmp_path: Path, timing: str) -> None:
    cases = [Case("bcast", name, 3, 65536, 8192, processes_per_node=3) for name in ("binary", "chain")]
    with Store(tmp_path / "store.sqlite") as store:
        timings = measure(ThisMachine("openmpi"), cases, store, method=Method(timing=timing))
        kept = list(store.rows(source="measured"))
    assert {row.case for row in timings} == set(cases)
    assert all(row.ok and 0 < row.seconds < 1 and row.repetitions == 5 for row in timings)
    assert statistics.fmean(row["seconds"] for row in kept) == pytest.approx(
        statistics.fmean(row.seconds for row in timings)
    )
    assert all(row["maker"].startswith("Open MPI ") and timing in row["details"] for row in kept)


def test_a_run_that_hangs_is_ended_and_says_so(tmp_path: Path) -> None:
    cases = [Case("bcast", "chain", 2, 2**26, 64, processes_per_node=2)]
    with (
        Store(tmp_path / "store.sqlite") as store,
        pytest.raises(CollwiseError, match=r"time limit\); 0 of 1 cases"),
    ):
        measure(
            ThisMachine("openmpi"),
            cases,
            store,
            method=Method(precision=Precision(100_000, 100_000)),
            timeout_seconds=2,
        )
