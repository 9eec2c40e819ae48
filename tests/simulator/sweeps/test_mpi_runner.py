from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision, half_width
from collwise.simulator.sweeps.mpi_runner import in_random_order, measure
from collwise.simulator.timing import Case
from tests.needs import needs


def test_half_width_is_student_t() -> None:
    # Student's t, 95 %, 9 degrees of freedom: 2.262 in every printed table.
    values = [1.0, -1.0] * 5
    assert half_width(values) == pytest.approx(2.262 * statistics.stdev(values) / math.sqrt(10), rel=1e-3)
    assert math.isinf(half_width([1.0]))


@needs("openmpi")
@pytest.mark.parametrize("synchronisation", ["barriers", "rounds"])
@pytest.mark.parametrize("timing", ["root", "maximum", "global"])
def test_times_of_real_open_mpi_are_kept(tmp_path: Path, timing: str, synchronisation: str) -> None:
    cases = [Case("bcast", name, 2, 65536, 8192, processes_per_node=2, root=1) for name in ("binary", "chain")]
    wanted = Precision(5, 30, 0.9, 0.05)
    # A machine that is busy with other things must neither make starts late nor end the measurement early.
    method = Method(
        timing, wanted, synchronisation=synchronisation, keep_samples=True, late_seconds=60, limit_seconds=600
    )
    with Store(tmp_path / "store.sqlite") as store:
        timings = measure(LocalMachine("openmpi"), cases, store, method=method)
        again = measure(LocalMachine("openmpi"), cases, store, method=method, timeout_seconds=0.001)
        kept = list(store.rows(source="measured"))
    assert timings == again
    assert [row.case for row in timings] == cases
    for row in timings:
        assert row.samples is not None
        assert len(row.samples) == row.repetitions
        assert row.seconds == pytest.approx(statistics.fmean(row.samples))
        assert row.median_seconds == pytest.approx(statistics.median(row.samples))
        assert (row.least_seconds, row.greatest_seconds) == (min(row.samples), max(row.samples))
        assert row.half_width_seconds == pytest.approx(half_width(row.samples, 0.9), rel=1e-6)
        assert row.precise == (row.half_width_seconds < 0.05 * row.seconds)
        assert row.precise or row.repetitions == 30
        assert 0 < row.clock_resolution_seconds < 1e-3
        assert row.late_starts == 0
    assert all(row["maker"].startswith("Open MPI ") and timing in row["details"] for row in kept)


@needs("openmpi")
def test_nrep_and_launches(tmp_path: Path) -> None:
    case = Case("bcast", "binary", 2, 2**16, 8192, processes_per_node=2)
    method = Method(nrep=0.5, precision=Precision(7, 7), limit_seconds=600, launches=2, calls=2)
    with Store(tmp_path / "store.sqlite") as store:
        (row,) = measure(LocalMachine("openmpi"), [case], store, method=method)
        means = [kept["seconds"] for kept in store.rows(source="measured")]
    assert row.repetitions >= 14
    assert len(means) == 2
    assert row.seconds == pytest.approx(statistics.fmean(means))
    assert row.half_width_seconds == pytest.approx(half_width(means))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timing": "globl"}, "global"),
        ({"synchronisation": "round"}, "rounds"),
        ({"nrep": 1.0}, "NREP"),
        ({"warmup": 0}, "0 untimed"),
        ({"launches": 0}, "0 launches"),
        ({"calls": 0}, "0 calls"),
        ({"limit_seconds": math.inf}, "limit"),
    ],
)
def test_methods_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Method(**options)


@needs("openmpi")
def test_a_run_that_hangs_is_ended_and_says_so(tmp_path: Path) -> None:
    cases = [Case("bcast", "chain", 2, 2**26, 64, processes_per_node=2)]
    with (
        Store(tmp_path / "store.sqlite") as store,
        pytest.raises(CollwiseError, match=r"time limit\); 0 of 1 cases"),
    ):
        measure(
            LocalMachine("openmpi"),
            cases,
            store,
            method=Method(precision=Precision(100_000, 100_000), limit_seconds=0),
            timeout_seconds=2,
        )


def test_a_random_order_keeps_process_counts_and_sizes_in_order() -> None:
    cases = [Case("bcast", name, p, m) for name in "abcdef" for p in (2, 4) for m in (64, 8)]
    orders = {seed: in_random_order(cases, seed) for seed in ("1", "2")}
    for ordered in orders.values():
        assert sorted(ordered) == sorted(cases)
        assert [case.procs for case in ordered] == [2] * 12 + [4] * 12
        assert [case.message_bytes for case in ordered] == [8, 64] * 12
    assert orders["1"] != orders["2"]
    assert orders["1"] == in_random_order(reversed(cases), "1")
