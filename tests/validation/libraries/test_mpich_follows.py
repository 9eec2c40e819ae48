"""The installed MPICH runs what a selection file says, where it would run something else without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.simulator.execution.installations import mpi_installation
from collwise.validation.libraries.formats import exported
from collwise.validation.libraries.mpich_file import SelectionCheck, check_selection, sent, telling_calls
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from tests.needs import needs

CHOSEN = {
    "bcast": "scatter_ring_allgather",
    "allgather": "ring",
    "allreduce": "recursive_doubling",
    "alltoall": "bruck",
    "reduce_scatter_block": "recursive_doubling",
}
PROCS, SIZE = 4, 1024


def test_calls_are_those_in_which_mpich_would_run_something_else() -> None:
    def one(name: str, rules: dict[int, list[tuple[int, str]]]) -> DecisionTable:
        rows = {procs: tuple((start, Choice(choice)) for start, choice in row) for procs, row in rules.items()}
        return DecisionTable(name, "bed", 1, "simulated", "test", rows)

    tables = [
        one("bcast", {2: [(0, "binomial"), (1024, "scatter_ring_allgather")], 64: [(0, "scatter_allgather")]}),
        one("gather", {4: [(0, "binomial")]}),
        one("allreduce", {16: [(0, "recursive_doubling")]}),
    ]
    text = exported(tables, "mpich").text
    assert telling_calls(text, tables) == [("bcast", 3, 1024), ("gather", 4, 1)]


@needs("mpich")
def test_mpich_runs_what_its_selection_file_says(tmp_path: Path) -> None:
    tables = [
        DecisionTable(name, "bed", 1, "simulated", "test", {2: ((0, Choice(one)),)}) for name, one in CHOSEN.items()
    ]
    file = tmp_path / "mpich.json"
    version = "4.0" if mpi_installation("mpich").version.startswith("4.0.") else "4.1"
    file.write_text(exported(tables, "mpich", version=version).text)
    checks = list(check_selection(file, [(name, PROCS, SIZE) for name in CHOSEN]))
    assert [check.collective for check in checks] == list(CHOSEN)
    for check in checks:
        assert check.matches, check.summary
        assert check.changes_something, check.summary
        assert "without it: another algorithm" in check.summary
    # A scatter of halves down a binomial tree, then three parts of a quarter around the ring.
    assert checks[0].observed == (((256, 4), (512, 1)), ((256, 3),), ((256, 4),), ((256, 3),))


@needs("mpich")
def test_another_algorithm_is_not_taken_for_the_one_in_the_file() -> None:
    binomial = sent("bcast", PROCS, SIZE, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"})
    ring = sent("bcast", PROCS, SIZE, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "scatter_ring_allgather"})
    assert binomial == (((1024, 2),), (), ((1024, 1),), ())
    wrong = SelectionCheck("bcast", PROCS, SIZE, "MPICH", binomial, ring, binomial, "scatter_ring_allgather")
    assert not wrong.matches
    assert "did not follow the file" in wrong.summary


@needs("mpich")
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.json"):
        list(check_selection(tmp_path / "missing.json", [("bcast", 4, 8)]))
