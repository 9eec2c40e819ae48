"""What-if for an application: reports of runs, and their collectives by default and tuned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import load_description
from collwise.platforms.changes import Change
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.library_defaults.baselines import baseline
from collwise.validation.times.choice import Choice
from collwise.validation.whatif.application import (
    AS_RUN,
    BEST_BEFORE,
    Calls,
    reported_calls,
    what_if_application,
)
from tests.run_reports import OF_AN_APPLICATION as REPORT
from tests.run_reports import calls_of, report

GROS = load_description("gros")
OPENMPI, OLD = baseline("openmpi-4.1"), baseline("openmpi-3.1")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, SCHEDULE)


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "report.json"
    file.write_text(text)
    return file


def test_lines_of_a_report(tmp_path: Path) -> None:
    found = reported_calls(write(tmp_path, REPORT))
    assert len(found) == 7
    assert found[0] == Calls("bcast", 8, 196608, 5, "MPI's own: no rule")
    assert found[1].message_bytes == 768
    assert found[2] == Calls("barrier", 4, 0, 2, "bruck")
    assert found[3].message_bytes == 12
    assert found[6].message_bytes is None


def test_parameters_of_what_ran_are_those_that_are_timed(tmp_path: Path, context: SimulationContext) -> None:
    ran = [calls_of("scatterv", 8, f"knomial segment_bytes=4096 radix={radix}", (8192, 16383), 3) for radix in (8, 4)]
    lines = reported_calls(write(tmp_path, report(8, *ran)))
    assert [(line.algorithm, line.parameters) for line in lines] == [
        ("knomial", "segment_bytes=4096 radix=8"),
        ("knomial", "segment_bytes=4096 radix=4"),
    ]
    tree = replace(lines[0], collective="bcast", parameters="segment_bytes=4096 radix=8")
    plain = replace(tree, parameters="")
    found = what_if_application(GROS, [], [tree, plain], 1, context, OPENMPI).lines
    assert [line.default for line in found] == [Choice("knomial", 4096, 8), Choice("knomial")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no report\n", "no JSON; make one with: collwise run --report-to FILE.json"),
        (REPORT.replace(" 15,", ' "15",'), "report.json: row 4: most_bytes is '15'; it is a whole number"),
        (report(8), "the report counts no call"),
    ],
)
def test_files_that_are_no_report(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        reported_calls(write(tmp_path, text))
    assert message in str(raised.value)


def test_calls_by_default_and_tuned(tmp_path: Path, context: SimulationContext) -> None:
    lines = reported_calls(write(tmp_path, REPORT))
    found = what_if_application(GROS, [Change("bandwidth", "x4")], lines, 1, context, OPENMPI)
    assert [line.default_is for line in found.lines] == ["Open MPI 4.1", "Open MPI 4.1", AS_RUN, AS_RUN]
    assert found.lines[0].default == OPENMPI.choice("bcast", 8, 196608)
    assert found.left_out == (
        "1 call of gatherv on 8 processes: their sizes are not known",
        "5 calls of bcast on 1 process: they send nothing",
        "4 calls of iallreduce on 8 processes: non-blocking, which libcollwise passes on",
    )
    for line in found.lines:
        assert line.tuned_before <= line.default_before
        assert line.tuned_after <= line.default_after
        assert line.tuned_after <= line.tuned_before
    assert found.total("tuned_after") == pytest.approx(sum(line.tuned_after for line in found.lines))
    [allreduce] = what_if_application(GROS, [], [lines[1]], 1, context, OLD).lines
    assert allreduce.default_is == BEST_BEFORE
    assert allreduce.default_before == allreduce.tuned_before
    [again] = what_if_application(GROS, [Change("bandwidth", "x4")], [lines[0]], 1, context, OPENMPI).lines
    assert again == found.lines[0]


def test_times_count_for_each_call(context: SimulationContext) -> None:
    one, ten = (
        what_if_application(GROS, [], [Calls("allgather", 8, 1024, calls, "MPI's own: no rule")], 1, context, OPENMPI)
        for calls in (1, 10)
    )
    assert ten.total("default_after") == pytest.approx(10 * one.total("default_before"))


def test_a_report_without_calls_that_can_be_timed(context: SimulationContext) -> None:
    with pytest.raises(UsageError, match="no call of the report can be timed: 3 calls of bcast on 1 process"):
        what_if_application(GROS, [], [Calls("bcast", 1, 8, 3, "MPI's own: one process")], 1, context, OPENMPI)
