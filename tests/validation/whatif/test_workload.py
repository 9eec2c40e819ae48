"""Workloads: calls of reports, and what they save by simulated times and by those of decision tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import collwise
from collwise import ProfileResult
from collwise.common.errors import UsageError
from collwise.platforms import load_description
from collwise.simulator.execution.profiles import OWN, read_profile
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Case, Timing
from collwise.validation.libraries.baselines import baseline
from collwise.validation.select.select import select
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import Times
from collwise.validation.whatif.workload import AS_MEASURED, AS_RUN, BEST_BEFORE, Workload, savings
from tests.run_reports import OF_AN_APPLICATION as REPORT, calls_of, report

GROS = load_description("gros")
OPENMPI = baseline("openmpi-4.1")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def workload(text: str) -> Workload:
    file = Path("report.json")
    file.write_text(text)
    return Workload.of(read_profile(file).rows)


def test_calls_of_a_report() -> None:
    found = workload(REPORT)
    assert [(calls.row.collective, *calls.point, calls.row.calls, calls.row.ran) for calls in found.calls] == [
        ("bcast", 8, 196608, 5, "MPI's own: no rule"),
        ("allreduce", 8, 768, 30, "MPI's own: the rule says default"),
        ("barrier", 4, 0, 2, "bruck"),
        ("reduce", 8, 12, 18, "binomial"),
    ]
    assert found.left_out == (
        "1 call of gatherv on 8 processes: their sizes are not known",
        "5 calls of bcast on 1 process: they send nothing",
        "4 calls of iallreduce on 8 processes: non-blocking, which libcollwise passes on",
    )


def test_parameters_of_what_ran_are_those_that_are_timed() -> None:
    ran = [calls_of("bcast", 8, f"knomial segment_bytes=4096 radix={radix}", (8192, 16383), 3) for radix in (8, 4)]
    assert [calls.untuned(OPENMPI) for calls in workload(report(8, *ran)).calls] == [
        (Choice("knomial", 4096, 8), AS_RUN),
        (Choice("knomial", 4096), AS_RUN),  # 4 is its default
    ]
    [plain] = workload(report(8, calls_of("bcast", 8, "knomial", (8192, 16383), 3))).calls
    assert plain.untuned(OPENMPI) == (Choice("knomial"), AS_RUN)


def asked(text: str, library: str = "openmpi-4.1", changes: Any = "bandwidth=x4") -> ProfileResult:
    Path("report.json").write_text(text)
    with collwise.session(store="timings.sqlite", engine="schedule") as context:
        return collwise.profile("report.json", platform=GROS, changes=changes, baseline=library, context=context)


def test_calls_by_default_and_tuned_before_and_after_a_change() -> None:
    found = asked(REPORT)
    pairs = list(found.pairs)
    assert [before.default_is for before, _ in pairs] == ["Open MPI 4.1", "Open MPI 4.1", AS_RUN, AS_RUN]
    assert pairs[0][0].default == OPENMPI.choice("bcast", 8, 196608)
    for before, after in pairs:
        assert after.default == before.default
        assert after.tuned_seconds <= after.default_seconds
        assert after.tuned_seconds <= before.tuned_seconds <= before.default_seconds
    totals = found.totals()
    assert totals["tuned_after"] == pytest.approx(sum(one.row.calls * one.tuned_seconds for _, one in pairs))
    old = list(asked(REPORT, "openmpi-3.1").pairs)[1]
    assert [one.default_is for one in old] == [BEST_BEFORE] * 2
    assert old[0].default == old[0].tuned == old[1].default


def test_times_count_for_each_call() -> None:
    own = "MPI's own: no rule"
    reports = [report(8, calls_of("allgather", 8, own, (1024, 2047), calls)) for calls in (1, 10)]
    one, ten = (asked(text, changes="bandwidth=x1").totals() for text in reports)
    assert ten["default_after"] == pytest.approx(10 * one["default_before"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no report\n", "not JSON; make one with 'collwise program run --report FILE.json'"),
        (REPORT.replace(" 15,", ' "15",'), "report.json: rows[4].max_bytes = '15'; valid: a whole number"),
        (report(8), "none of the report's calls can be timed: it has no calls"),
        (
            report(1, calls_of("bcast", 1, "MPI's own: one process", (8, 15), 3)),
            "none of the report's calls can be timed: 3 calls of bcast on 1 process",
        ),
    ],
)
def test_reports_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        asked(text)
    assert message in str(raised.value)


def test_a_table_of_simulated_times_saves_what_these_times_save() -> None:
    """The best of the times that decide is what the table says where no tolerance is allowed."""
    called = workload(report(8, calls_of("bcast", 8, "MPI's own: no rule", (131072, 262143), 5)))
    with Store(Path("timings.sqlite")) as store:
        times = called.simulated(GROS, SimulationContext(store, SCHEDULE), OPENMPI)
    by_times = savings(called, times, lambda calls, _: calls.untuned(OPENMPI))
    tables = [select(one, one_choice=False, tolerance=0.0) for one in times]
    by_tables = savings(called, tables, lambda calls, _: calls.untuned(OPENMPI))
    assert by_times.rows == by_tables.rows or repr(by_times.rows) == repr(by_tables.rows)
    assert 0 < by_times.saving_seconds(8) < 0.1


def test_measured_times_of_mpis_own_are_the_default() -> None:
    choice = Choice("binomial")
    grid = Grid("bcast", (choice,), (8,), (65536,)).with_besides(lambda p, m: LIBRARY_DECIDES)

    def timing(case: Case, seconds: float) -> Timing:
        return Timing(case, seconds, half_width_seconds=seconds / 10)

    own, ours = (grid.case(one, 8, 65536) for one in (LIBRARY_DECIDES, choice))
    timings = {own: timing(own, 4.0), ours: timing(ours, 1.0)}
    table = select(Times.of_timings(grid, timings, "here", "measured", "Open MPI 4.1"), one_choice=False, tolerance=0.0)
    called = workload(report(8, calls_of("bcast", 8, "MPI's own: no rule", (131072, 262143), 5)))
    found = savings(called, [table], lambda calls, _: calls.untuned(OPENMPI))
    [one] = found.rows
    assert (one.default, one.default_is, one.tuned, found.source) == (Choice(OWN), AS_MEASURED, choice, "measured")
    assert one.saving_seconds == pytest.approx(0.1 * 3 / 4)
    assert one.saving_half_width == pytest.approx(0.1 / 4 * (0.02**0.5))
