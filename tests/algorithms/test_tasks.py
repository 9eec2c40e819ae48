"""Collectives from tasks run the sequences of Luo et al. 2020, and tell an observer of each task."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import compiled

SOURCE = Path(__file__).with_name("task_names.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("smpi", SOURCE, tmp_path_factory.mktemp("tasks") / "task_names")


def names(program: Path, *arguments: object) -> list[list[str]]:
    """The names of the tasks on the leader of a node, and on the other processes there."""
    run = run_program("smpi", str(program), 6, [str(one) for one in arguments], platform=load("gros"))
    assert run.returncode == 0, run.error_text
    lines = sorted(line.split() for line in run.output_lines if line[:1].isdigit())
    assert [line[0] for line in lines] == [str(rank) for rank in range(len(lines))]
    return [line[1:] for line in lines]


# The paper's figures 1 and 5, for five segments. Processes that are no leaders do nothing in some tasks.
BCAST = ("ib sbib sbib sbib sbib sb", "- sb sb sb sb sb")
ALLREDUCE = ("sr irsr ibirsr sbibirsr sbibirsr sbibir sbib sb", "sr sr sr sbsr sbsr sb sb sb")


@pytest.mark.parametrize("between", ["chain", "binary", "binomial"])
@pytest.mark.parametrize(("collective", "expected"), [("bcast", BCAST), ("allreduce", ALLREDUCE)])
def test_tasks_are_those_of_the_paper(program: Path, collective: str, expected: tuple[str, ...], between: str) -> None:
    assert names(program, collective, f"tasks_{between}", 5, 0, 0, "-") == [one.split() for one in expected]


@pytest.mark.parametrize(
    ("collective", "algorithm", "expected"),
    [
        ("reduce", "tasks_chain", ("sr irsr irsr ir", "sr sr sr -")),
        ("allreduce", "tasks_doubling", ("sr iasr sbiasr sbia sb", "sr sr sbsr sb sb")),
        # The root's own node broadcasts first, so that the second leader has its share.
        ("bcast", "multi_leader_chain", ("ibsb ibsb ibsb -", "sb ibsb ibsb ib")),
        ("allreduce", "multi_leader_chain", ("sr irsr ibirsr sbibir sbib sb", "sr irsr ibirsr sbibir sbib sb")),
    ],
)
def test_tasks_of_three_segments(program: Path, collective: str, algorithm: str, expected: tuple[str, ...]) -> None:
    assert names(program, collective, algorithm, 3, 0, 0, "-") == [one.split() for one in expected]


# By leaders of nodes, other processes of their sockets, leaders of other sockets, and other processes of these.
BCAST_BY_SOCKET = ("ib nbib sbnbib sbnb sb", "- - sb sb sb", "- nb sbnb sbnb sb", "- - sb sb sb")
REDUCE_BY_SOCKET = ("sr nrsr irnrsr irnr ir", "sr sr sr - -", "sr nrsr nrsr nr -", "sr sr sr - -")
ALLREDUCE_BY_SOCKET = ("sr nr ir ib nb sb", "sr - - - - sb", "sr nr - - nb sb", "sr - - - - sb")
GATHER_BY_SOCKET = ("sg ngsg igngsg igng ig", "sg sg sg - -", "sg ngsg ngsg ng -", "sg sg sg - -")
SCATTER_BY_SOCKET = ("is nsis ssnsis ssns ss", "- - ss ss ss", "- ns ssns ssns ss", "- - ss ss ss")
ALLGATHER_BY_SOCKET = ("sg ng ig ib nb sb", "sg - - - - sb", "sg ng - - nb sb", "sg - - - - sb")
ALLTOALL_BY_SOCKET = ("sg ng ia ns ss", "sg - - - ss", "sg ng - ns ss", "sg - - - ss")


@pytest.mark.parametrize(
    ("collective", "algorithm", "segments", "expected"),
    [
        ("bcast", "tasks_chain", 3, BCAST_BY_SOCKET),
        ("reduce", "tasks_chain", 3, REDUCE_BY_SOCKET),
        ("allreduce", "tasks_chain", 1, ALLREDUCE_BY_SOCKET),
        ("barrier", "tasks_chain", 1, ALLREDUCE_BY_SOCKET),
        ("gather", "tasks_chain", 3, GATHER_BY_SOCKET),
        ("scatter", "tasks_chain", 3, SCATTER_BY_SOCKET),
        ("allgather", "tasks_chain", 1, ALLGATHER_BY_SOCKET),
        ("alltoall", "tasks_pairwise", 1, ALLTOALL_BY_SOCKET),
    ],
)
def test_tasks_of_three_levels(
    program: Path, collective: str, algorithm: str, segments: int, expected: tuple[str, ...]
) -> None:
    found = names(program, collective, algorithm, segments, 0, 0, "-", "by-socket")
    assert found == [one.split() for one in expected]


def test_a_part_of_the_tasks_and_some_of_their_steps(program: Path) -> None:
    """As the paper's benchmarks need them: tasks after those before, one task alone, and two of its parts."""
    for first, end, steps, leader, other in (
        (0, 1, "-", ["ib"], ["-"]),
        (0, 3, "-", ["ib", "sbib", "sbib"], ["-", "sb", "sb"]),
        (5, 6, "-", ["sb"], ["sb"]),
        (1, 2, "sb", ["sb"], ["sb"]),
    ):
        assert names(program, "bcast", "tasks_binary", 5, first, end, steps) == [leader, other]
    assert names(program, "allreduce", "tasks_binary", 5, 2, 5, "ibir") == [["ibir"] * 3, ["-"] * 3]
