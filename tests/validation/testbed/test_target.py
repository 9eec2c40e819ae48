"""Real MPI on a test bed: hosts of their own, and failures that say what happened and leave nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case
from collwise.validation.testbed.bed import Bed, running
from collwise.validation.testbed.namespaces import command, processes
from collwise.validation.testbed.target import TestBed
from tests.needs import needs
from tests.waiting import wait_for

Make = Callable[..., Bed]
pytestmark = needs("testbed", "openmpi")


def shell(target: TestBed, text: str, procs: int = 3, timeout_seconds: float = 900.0) -> tuple[list[str], str]:
    run = target.run("/bin/sh", procs, ["-c", text], timeout_seconds=timeout_seconds)
    assert not processes(target.bed.namespaces)
    return run.output_lines, "" if run.returncode == 0 else run.problem


def test_nodes_have_names_and_folders_of_their_own(make: Make) -> None:
    target = TestBed(make(), ranks_per_node=2)
    lines, problem = shell(target, 'echo $(hostname) $TMPDIR $(getent hosts n3 | cut -d" " -f1) $WORD', procs=6)
    assert not problem
    assert sorted(lines) == sorted(2 * [f"n{n} {target.bed.directory}/n{n} 10.77.0.3" for n in (1, 2, 3)])


def test_a_rank_that_dies(make: Make) -> None:
    _, problem = shell(TestBed(make()), "[ $OMPI_COMM_WORLD_RANK = 1 ] && kill -9 $$; sleep 1000")
    # Open MPI does not always come to say which.
    assert re.search("(node n2|a process) exited on signal 9", problem)
    assert "\n" not in problem


def test_a_program_that_hangs(make: Make) -> None:
    _, problem = shell(TestBed(make()), "sleep 1000", timeout_seconds=2)
    assert problem == "not done within 2 s (stopped at the time limit)"


def test_a_node_that_does_not_answer(make: Make) -> None:
    target = TestBed(make())
    command("ip", "-n", target.bed.namespace("switch"), "link", "set", "p3", "down")
    _, problem = shell(target, "true")
    assert "no answer from n3 (10.77.0.3)" in problem
    assert shell(target, "true", procs=2) == ([], "")


def test_mpirun_killed_from_outside(make: Make) -> None:
    target = TestBed(make())

    started = [target.bed.directory / f"n{node}" / "started" for node in (1, 2, 3)]

    def kill() -> None:
        wait_for(lambda: all(file.exists() for file in started))
        for process in processes([target.bed.namespace("n1")]):
            with suppress(FileNotFoundError, ProcessLookupError):  # what has ended meanwhile
                if Path(f"/proc/{process}/comm").read_text().startswith("mpirun"):
                    os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert "killed by signal 9" in shell(target, "touch $TMPDIR/started; sleep 1000")[1]
    killer.join()


def test_what_a_killed_run_left_is_ended_by_the_next(make: Make, name: str) -> None:
    bed = make()
    code = (
        "from collwise.validation.testbed.bed import running\n"
        "from collwise.validation.testbed.target import TestBed\n"
        f"TestBed(running('{name}')).run('/bin/sleep', 3, ['100'])"
    )
    other = subprocess.Popen([sys.executable, "-P", "-c", code])
    wait_for(lambda: len(processes([bed.namespace("n3")])) >= 2)
    with pytest.raises(UsageError, match="runs on the test bed"):
        TestBed(running(name)).run("/bin/true", 3)
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert processes(bed.namespaces)
    assert shell(TestBed(bed), "true") == ([], "")


@pytest.mark.slow
def test_finished_cases_are_kept(make: Make, tmp_path: Path) -> None:
    target = TestBed(make(bits_per_second=1e7))
    cases = [Case("alltoall", "pairwise", 3, size, 0) for size in (1, 30_000_000)]
    with Store(tmp_path / "times.sqlite") as store:
        with pytest.raises(CollwiseError, match=r"not done within 40 s .*1 of 2 cases"):
            measure(target, cases, store, timeout_seconds=40)
        assert measure(target, cases[:1], store)[0].ok
    assert not processes(target.bed.namespaces)


def test_messages_between_nodes_go_through_the_network(make: Make, tmp_path: Path) -> None:
    target = TestBed(make(nodes=2, bits_per_second=2e7, ranks_per_node=2))
    case = Case("alltoall", "pairwise", 4, 500_000, 0, processes_per_node=2)
    with Store(tmp_path / "times.sqlite") as store:
        seconds = measure(target, [case], store, method=Method(precision=Precision(1, 1)))[0].seconds
    # Two processes of a node send two messages each to the other node.
    assert seconds > 4 * case.message_bytes * 8 / 2e7


def test_too_many_processes(make: Make) -> None:
    with pytest.raises(UsageError, match="room for 3"):
        TestBed(make()).run("/bin/true", 4)


def test_facts_are_recorded(make: Make) -> None:
    target = TestBed(make(switches=2, uplink_bits_per_second=1e7, ranks_per_node=2))
    expected = {"uplink_bits_per_second": "10000000", "switches": "2", "nodes": "3", "ranks_per_node": "2"}
    assert expected.items() <= target.facts.items()
    assert target.name == "testbed-3x50M-2x10M-2ppn"
