"""The one enumeration of cases, and the defaults that commands share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import parse_sizes
from collwise.simulator.sweeps.context import ENGINES, Engine
from collwise.simulator.timing import Case
from collwise.studies.cli.main import main
from collwise.validation.libraries.openmpi_3 import decide, decide_as_listed
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import MIN_DECIDED, PAPER_SIZES, SEGMENTS, SEGMENTS_TEXT, SIZES, sizes_of
from collwise.validation.times.grid import Grid, candidates, case_of, choice_of
from tests.runners import FunctionRunner

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_candidates_at_the_common_segment_size_come_first() -> None:
    assert candidates("bcast", (8192, 1024), ("linear", "chain", "binary")) == (
        Choice("linear"), Choice("chain", 8192), Choice("binary", 8192), Choice("chain", 1024), Choice("binary", 1024),
    )  # fmt: skip
    assert {choice.algorithm for choice in candidates("bcast")} == set(Catalogue.load().collective("bcast").selectable)
    assert candidates("bcast", (0, 1024), ("chain",)) == (Choice("chain"), Choice("chain", 1024))


def test_counts_go_to_the_algorithms_that_take_them() -> None:
    found = candidates("bcast", (0,), ("k_chain", "knomial", "chain"), {"chains": (2, 3)})
    assert found == (Choice("k_chain", parameter=2), Choice("k_chain", parameter=3), Choice("knomial"), Choice("chain"))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown bcast algorithm 'chian'; did you mean chain"):
        candidates("bcast", (8192,), ("chian",))
    with pytest.raises(UsageError, match="unknown collective 'bcst'; did you mean bcast"):
        Grid.of("bcst", (4,), (1024,)).cases()


def test_cases_leave_out_process_counts_that_an_algorithm_does_not_run_on() -> None:
    choices = [Choice("recursive_doubling"), Choice("ring"), Choice("neighbor_exchange"), Choice("ring")]
    found = Grid("allgather", tuple(choices), (3, 4, 6), (10, 20), processes_per_node=2, root=1).cases()
    assert [(case.procs, case.message_bytes, case.algorithm) for case in found] == [
        *((3, size, "ring") for size in (10, 20)),
        *((4, size, name) for size in (10, 20) for name in ("recursive_doubling", "ring", "neighbor_exchange")),
        *((6, size, name) for size in (10, 20) for name in ("ring", "neighbor_exchange")),
    ]
    assert {(case.processes_per_node, case.root) for case in found} == {(2, 1)}


def test_choices_may_depend_on_the_point() -> None:
    found = Grid("bcast", (), (4, 50), (1024, 2**22)).with_besides(partial(decide, "bcast")).cases()
    assert [(case.algorithm, case.segment_bytes) for case in found] == [
        (choice.algorithm, choice.segment_bytes)
        for choice in (decide("bcast", procs, size) for procs in (4, 50) for size in (1024, 2**22))
    ]
    limited = Choice("lmo", 5000, limit_bytes=65536)
    assert Grid("gather", (limited,), (4,), (10,)).cases() == [Case("gather", "lmo", 4, 10, 5000, limit_bytes=65536)]
    assert Grid("bcast", (LIBRARY_DECIDES,), (2,), (8,), 2).cases() == [
        Case("bcast", "-", 2, 8, processes_per_node=2, experiment="builtin"),
    ]


@given(st.sampled_from(candidates("bcast", (0, 1024, 8192))), st.integers(2, 99), st.integers(0, 2**30))
def test_a_case_says_which_choice_it_times(choice: Choice, procs: int, size: int) -> None:
    """By default with one process on each node, and rank 0 as the root."""
    named = {"segment_bytes": choice.segment_bytes, "parameter": choice.parameter, "limit_bytes": choice.limit_bytes}
    plain = Case("bcast", choice.algorithm, procs, size, **named)
    assert case_of("bcast", choice, procs, size) == Grid("bcast", (choice,), (procs,), (size,)).cases()[0] == plain
    assert (plain.processes_per_node, plain.root) == (1, 0)
    assert choice_of(plain) == choice
    assert case_of("bcast", choice, procs, size, 4, 1) == replace(plain, processes_per_node=4, root=1)


def test_a_grid_labels_its_choices() -> None:
    grid = Grid.of("bcast", (4,), (1024,), 1, (8192, 32768), ("linear", "chain"))
    assert grid.labels == {
        Choice("linear"): "linear", Choice("chain", 8192): "chain", Choice("chain", 32768): "chain, 32 KiB"
    }  # fmt: skip
    assert grid.names == ("linear", "chain")
    assert len(grid.cases()) == 3


def test_choices_besides_are_timed_at_their_points_only() -> None:
    grid = Grid.of("bcast", (4, 8), (1024, 2048), 1, (0,), ("linear",))
    both = grid.with_besides(lambda procs, size: Choice("binomial") if procs == 8 and size == 2048 else None)
    assert both.choices == (Choice("linear"),)
    assert both.timed == (Choice("linear"), Choice("binomial"))
    assert [*both.cases()] == [*grid.cases(), Case("bcast", "binomial", 8, 2048)]


def test_defaults_fit_each_other() -> None:
    assert tuple(parse_sizes(SEGMENTS_TEXT)) == SEGMENTS
    assert set(SIZES) == set(Catalogue.load().collectives)
    for name, sizes in SIZES.items():
        assert set(PAPER_SIZES.get(name, ())) <= set(sizes)
        assert MIN_DECIDED[name] in sizes
    assert sizes_of("bcast", (7,)) == (7,)
    assert sizes_of("barrier", (7,)) == (0,)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FunctionRunner:
    """Takes SMPI's place in the commands; the working directory is empty."""
    made = FunctionRunner(lambda case: case.procs * (case.message_bytes + 1.0) + case.segment_bytes)
    monkeypatch.setitem(ENGINES, "smpi", Engine("smpi", lambda *_: made))  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    return made


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def test_select_and_compare_use_what_simulate_filled_with_its_defaults(runner: FunctionRunner) -> None:
    """Beside it only Open MPI's choices at segment sizes of its own are simulated, for `compare` and `report`."""
    point: Sequence[str] = ("--platform", "grisou", "--procs", "4,6")
    run("simulate", "--collective", "all", *point, "-o", "all.times")
    assert runner.processes_started == 1
    run("select", "all.times", "-o", "decisions.json")
    run("simulate", "--collective", "bcast", *point)
    assert runner.processes_started == 1
    filled = {case for name in SIZES for case in Grid(name, candidates(name), (4, 6), SIZES[name], 2).cases()}
    for name in ("bcast", "gather"):
        grid = Grid.of(name, (4, 6), SIZES[name], 2)
        assert set(grid.cases()) <= filled
        listed = replace(grid, choices=()).with_besides(
            lambda p, m, grid=grid: grid.of_algorithms([decide_as_listed(grid.collective, p, m)]).choices[0]
        )
        assert set(listed.cases()) <= filled
