from __future__ import annotations

import math
import statistics
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision, combine, half_width
from collwise.simulator.sweeps.mpi_runner import in_random_order, measure
from collwise.simulator.timing import Case, Timing
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


_AMOUNTS = st.floats(1e-9, 1e3)
_LAUNCHES = st.builds(
    Timing, st.just(Case("bcast", "chain", 2, 8)), _AMOUNTS, _AMOUNTS, _AMOUNTS, st.integers(1, 50),
    median_seconds=_AMOUNTS, least_seconds=_AMOUNTS, greatest_seconds=_AMOUNTS, late_starts=st.integers(0, 3),
    clock_resolution_seconds=_AMOUNTS, precise=st.booleans(),
    samples=st.none() | st.lists(_AMOUNTS, max_size=3).map(tuple),
)  # fmt: skip


@given(st.lists(_LAUNCHES, min_size=2, max_size=5))
def test_launches_are_combined_by_their_means(launches: list[Timing]) -> None:
    def of(name: str) -> np.ndarray:
        return np.array([getattr(launch, name) for launch in launches])

    found, means = combine(launches, 0.9), of("seconds")
    error = np.sqrt(((means - means.mean()) ** 2).sum() / (len(means) - 1) / len(means))
    assert found.seconds == pytest.approx(means.mean())
    assert found.half_width_seconds == pytest.approx(stats.t.ppf(0.95, len(means) - 1) * error)
    assert found.median_seconds == pytest.approx(np.median(of("median_seconds")))
    assert (found.least_seconds, found.greatest_seconds) == (of("least_seconds").min(), of("greatest_seconds").max())
    assert (found.repetitions, found.late_starts) == (of("repetitions").sum(), of("late_starts").sum())
    assert found.clock_resolution_seconds == of("clock_resolution_seconds").max()
    assert found.precise == of("precise").all()
    recorded = [launch.samples for launch in launches if launch.samples is not None]
    assert found.samples == ((*chain(*recorded),) if len(recorded) == len(launches) else None)
    assert combine(launches[:1]) == launches[0]
    failed = replace(launches[-1], error="lost")
    assert combine([*launches, failed]) == failed


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
