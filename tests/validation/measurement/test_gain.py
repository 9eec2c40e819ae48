from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.execution.cluster import LaunchOptions
from collwise.simulator.execution.launchers import LocalMachine, Mpirun, parameter_variables
from collwise.simulator.execution.profiles import read_profile
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Timing
from collwise.studies.present.programs import gain, gain_cells
from collwise.studies.present.shown import markdown_of
from collwise.validation.libraries.openmpi_rules import openmpi_rules, parse_rules, settings_of_rules
from collwise.validation.measurement import gain as gain_of
from collwise.validation.measurement.gain import (
    LIBCOLLWISE,
    RULES,
    GainRow,
    MeasuredGain,
    choice_for,
    measure_gain,
    missing_calls,
)
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.testbed.bed import Shape, down, up
from collwise.validation.testbed.target import TestBed
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from tests.needs import need, needs
from tests.run_reports import calls_of, report
from tests.simulator.execution.stand_ins import OARSH, stand_in

REPORT = report(
    4,
    calls_of("bcast", 4, "MPI's own: the rule says default", (8, 15), 2),
    calls_of("bcast", 4, "two_tree segment_bytes=8192", (65536, 131071), 4),
    calls_of("barrier", 4, "bruck", (0, 0), 1),
)


def decided(collective: str, *row: tuple[int, Choice]) -> DecisionTable:
    return DecisionTable(collective, "made up", 1, "simulated", "hand", {2: row})


TABLES = {
    "bcast": decided("bcast", (1024, Choice("chain", 8192)), (65536, Choice("two_tree", 8192))),
    "gather": decided("gather", (1024, Choice("binomial"))),
}


def own_cases(collective: str, procs: int, *sizes: int) -> list[Case]:
    """The cases that call MPI's own collective."""
    return Grid(collective, (LIBRARY_DECIDES,), (procs,), sizes).cases()


def row(default: float, rules: float | None, ours: float, width: float = 0.1) -> GainRow:
    def time(seconds: float) -> Timing:
        return Timing(Case("bcast", "chain", 4, 65536), seconds, half_width_seconds=width)

    by_rules = None if rules is None else time(rules)
    note = "not by rules: no such algorithm" if rules is None else ""
    choice = Choice("two_tree", 8192)
    return GainRow("bcast", 4, 65536, choice, time(default), by_rules, time(ours), note)


def test_what_the_library_did_not_run_is_found(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(REPORT)
    read = read_profile(file)
    large, small = (Case("bcast", "-", 4, size, experiment="builtin") for size in (65536, 8))
    assert missing_calls(read, {large: Choice("two_tree")}) == []
    missing = missing_calls(read, {large: Choice("chain"), small: Choice("two_tree")})
    assert missing == ["chain for bcast of 64 KiB on 4 processes", "two_tree for bcast of 8 B on 4 processes"]
    assert missing_calls(replace(read, rows=()), {large: Choice("two_tree")})


def test_gains_count_where_intervals_lie_apart() -> None:
    fast = row(2.0, 1.0, 1.9)
    assert fast.speedup(RULES) == 2
    assert fast.significant(RULES)
    assert not fast.significant(LIBCOLLWISE)
    silent = row(2.0, None, 4.0)
    assert math.isnan(silent.speedup(RULES))
    assert not silent.significant(RULES)
    found = MeasuredGain((fast, silent))
    assert gain_cells(fast)[-2:] == ("x 2.00", "(x 1.05)")
    assert gain_cells(silent)[-2:] == ("not by rules", "x 0.50")
    assert gain_cells(replace(fast, instead=Choice("chain", 8192)))[-2:] == ("x 2.00 by chain, 8 KiB", "(x 1.05)")
    lines = [part for part in gain(found).parts if isinstance(part, str)]
    assert lines[0] == "rules: x 2.00 on average over 1 calls; beyond the confidence intervals, 1 faster and 0 slower"
    assert lines[1].endswith("over 2 calls; beyond the confidence intervals, 0 faster and 1 slower")
    assert lines[2] == "not by rules: no such algorithm (1 calls)"
    assert markdown_of(gain(found)).count("\n|") == 3


def test_what_rules_cannot_ask_for_is_left_to_open_mpi() -> None:
    with pytest.raises(UsageError, match="no bcast algorithm 'two_tree'"):
        openmpi_rules([TABLES["bcast"]], "4.1")
    rules = parse_rules(openmpi_rules([TABLES["bcast"]], "4.1", skip_inexpressible=True))
    chain = rules.lookup(7, 4, 4096)
    assert chain is not None
    assert chain.segment_bytes == 8192
    assert rules.lookup(7, 4, 65536) is None


def test_calls_without_a_decision_are_named() -> None:
    with pytest.raises(UsageError, match="no decisions for reduce; there are some for bcast, gather"):
        choice_for(TABLES, Case("reduce", "-", 4, 1024))
    with pytest.raises(UsageError, match=r"bcast on 4 processes: .*no entry for 8 bytes"):
        choice_for(TABLES, Case("bcast", "-", 4, 8))


def test_one_call_of_each_algorithm_that_rules_can_say_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gain_of, "check_rules", lambda *call: call)
    cases = own_cases("bcast", 4, 1024, 8192, 65536)
    choices = dict(zip(cases, (Choice("chain", 8192), Choice("chain"), Choice("two_tree")), strict=True))
    choices |= dict.fromkeys(own_cases("gather", 8, 64), Choice("chain"))
    notes = {case: "not by rules" if choice.algorithm == "two_tree" else "" for case, choice in choices.items()}
    checked = gain_of._rules_checks(Path("file"), choices, notes)
    assert checked == [(Path("file"), "bcast", 4, 1024), (Path("file"), "gather", 8, 64)]


def test_times_are_means_over_launches_and_a_failed_one_ends_it() -> None:
    first, second = own_cases("bcast", 4, 1024, 8192)
    launches = [[Timing(first, 1.0), Timing(second, 5.0)], [Timing(first, 3.0), Timing(second, 5.0)]]
    found = gain_of._mean_times([first, second], launches)
    assert [found[case].seconds for case in (first, second)] == [2.0, 5.0]
    # With two launches, half of the interval is t(0.975, 1) times the standard error: 12.706.
    assert found[first].half_width_seconds == pytest.approx(12.706, rel=1e-3)
    launches[1][1] = Timing(second, math.nan, error="gone")
    with pytest.raises(CollwiseError, match="bcast of 8192 bytes: gone"):
        gain_of._mean_times([first, second], launches)


@pytest.mark.parametrize(
    ("library", "launches", "message"),
    [
        pytest.param("mpich", 2, "rules files are for Open MPI", marks=needs("mpich")),
        pytest.param("openmpi", 1, "at least 2", marks=needs("openmpi")),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path: Path, library: str, launches: int, message: str) -> None:
    target = LocalMachine(library)
    [case] = own_cases("bcast", 2, 1024)
    with Store(tmp_path / "store.sqlite") as store, pytest.raises(UsageError, match=message):
        measure_gain(target, TABLES, [case], store, launches=launches)


@needs("openmpi")
def test_a_file_that_a_host_cannot_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI and the loader pass over what is missing, and one way would be measured as another."""
    here = LocalMachine("openmpi")
    monkeypatch.setattr(
        "collwise.simulator.execution.interposed.preloadable", lambda library, folder: "/nowhere/libcollwise.so"
    )
    with (
        Store(tmp_path / "store.sqlite") as store,
        pytest.raises(
            CollwiseError, match=r"host \S+ cannot read /nowhere/libcollwise.so; .* where all hosts see them"
        ),
    ):
        measure_gain(here, TABLES, own_cases("bcast", 2, 1024), store, launches=2, timeout_seconds=900)


@needs("openmpi")
def test_rules_are_in_force_on_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the messages that Open MPI sends there: of a chain each rank sends to the next, without rules they differ."""
    stand_in(tmp_path, "far-shell", OARSH, monkeypatch)
    far = Mpirun({"far1": 4}, LaunchOptions(reach_seconds=900), remote_shell="far-shell")
    rules = tmp_path / "rules"
    rules.write_text(openmpi_rules([TABLES["bcast"]], "4.1", skip_inexpressible=True))
    monitoring = {"pml_monitoring_enable": "2", "pml_monitoring_enable_output": "3"}
    sent: dict[str, set[tuple[str, str]]] = {}
    for way, variables in (("default", {}), ("rules", parameter_variables(settings_of_rules(str(rules))))):
        counts = tmp_path / way
        watched = {f"OMPI_MCA_{name}": value for name, value in monitoring.items()}
        watched["OMPI_MCA_pml_monitoring_filename"] = str(counts)
        run = far.run("call", 4, ["bcast", "4096"], environment={**variables, **watched}, timeout_seconds=900)
        assert run.returncode == 0, run.problem
        lines = [line.split() for file in tmp_path.glob(f"{way}.*.prof") for line in file.read_text().splitlines()]
        sent[way] = {(words[1], words[2]) for words in lines if words[0] == "I" and words[5] != "0"}
    assert sent["rules"] == {("0", "1"), ("1", "2"), ("2", "3")}
    assert sent["default"] != sent["rules"]


@pytest.fixture
def target() -> Iterator[TestBed]:
    need("testbed", "openmpi")
    name = f"runtime{os.getpid()}"
    try:
        yield TestBed(up(Shape(4), name))
    finally:
        down(name)


@pytest.mark.slow
def test_choices_are_in_force_on_a_test_bed(tmp_path: Path, target: TestBed) -> None:
    """The library's report is checked within; the rules by the messages that Open MPI sends."""
    cases = [*own_cases("bcast", 4, 4096, 65536), *own_cases("gather", 4, 4096)]
    with Store(tmp_path / "store.sqlite") as store:
        found = measure_gain(target, TABLES, cases, store, launches=2, repetitions=2, timeout_seconds=900)
        kept = list(store.rows(experiment="builtin"))
    assert [(one.collective, one.message_bytes) for one in found.rows] == [
        ("bcast", 4096), ("bcast", 65536), ("gather", 4096),
    ]  # fmt: skip
    assert [one.rules is None for one in found.rows] == [False, True, False]
    assert "two_tree" in found.rows[1].note
    assert len(found.checks) == 2
    assert all(one.matches and one.changes_something for one in found.checks)
    assert all(0 < one.libcollwise.seconds < 10 for one in found.rows)
    assert len(kept) == 3 * 2 * 3


@pytest.mark.slow
def test_a_library_that_runs_something_else_is_no_proof(
    tmp_path: Path, target: TestBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collwise.validation.measurement.gain.collwise_rules", lambda tables: "gather 2 1 0 linear\n")
    [case] = own_cases("gather", 4, 8192)
    with Store(tmp_path / "store.sqlite") as store:
        with pytest.raises(CollwiseError, match="did not run binomial for gather of 8 KiB on 4 processes"):
            measure_gain(target, TABLES, [case], store, launches=2, repetitions=1, check=False, timeout_seconds=900)
        assert not list(store.rows())
