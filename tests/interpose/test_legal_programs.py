"""What MPI allows, and what it forgives, works under libcollwise as it does without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from tests.interpose.running import (
    COMPILERS,
    counts_of,
    installation_of,
    launched,
    one_for_each_collective,
    run,
    uncounted,
)
from tests.needs import each, need

HERE = Path(__file__).parent
each_library = pytest.mark.parametrize("name", each("openmpi", "mpich"))
each_engine = pytest.mark.parametrize("name", each("openmpi", "mpich", "smpi"))
yielding = pytest.mark.usefixtures("yielding_mpich")

MOCK_UPS = [one for one in Catalogue.load().algorithms() if one.guideline]
PROCS = 3
# Of both.c: the ints of its longest messages. Its short ones have room, but for counts and displacements.
MAX_INTS = 700
ROOM = {"COLLWISE_MESSAGE_BUFFER": "512", "COLLWISE_INTEGER_BUFFER": "7"}
AT_BOTTOM = (
    "bcast=binomial;gather=binomial;gatherv=linear;scatter=binomial;allgather=ring;alltoall=pairwise;reduce=binomial;"
    "allreduce=ring;scan=binomial;exscan=binomial;reduce_scatter=ring;reduce_scatter_block=ring"
)
# Runs a plugin of a program that knows nothing of MPI, whose plugins find libcollwise ahead of MPI.
PLUGIN = (
    "import ctypes, sys\n"
    "ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)\n"
    "plugin = ctypes.CDLL(sys.argv[2])\n"
    "plugin.run.argtypes = ctypes.c_int, ctypes.c_void_p\n"
    "sys.exit(plugin.run(0, None))\n"
)


@each_engine
@yielding
def test_mock_ups_without_room_are_left_to_mpi(name: str, compiled) -> None:
    """A mock-up runs the calls that its buffers have room for, and MPI's own algorithm the others."""
    program = str(compiled(name, str(HERE / "both.c")))
    for pick in range(4):
        chosen = one_for_each_collective(MOCK_UPS, pick)
        names = ";".join(f"{one.collective}={one.name}" for one in chosen)
        done = run(name, PROCS, "--report", "-", "--algorithms", names, "--", program, **ROOM)
        assert (done.returncode, done.stdout[:3]) == (0, "ok "), done.stdout + done.stderr
        counted = counts_of(done.stderr)
        for one in chosen:
            needed = one.extra_memory(PROCS, 4 * MAX_INTS, 4)
            is_long = needed.message_bytes > 0 or one.guideline == "GL20"  # in place
            expected = {
                "MPI's own: needs a larger message buffer": is_long,
                "MPI's own: needs a larger integer buffer": needed.integer_bytes > 0,
                one.name: needed.integer_bytes == 0,
            }
            assert {what: counted.get((one.collective, what), 0) > 0 for what in expected} == expected, one.name


@each_engine
@yielding
@pytest.mark.parametrize("report", [True, False])
def test_a_communicator_may_begin_with_a_non_blocking_collective(
    name: str, report: bool, compiled, tmp_path: Path
) -> None:
    """Rules by processes per node are found at the first blocking one, and the others make no process wait."""
    table, written = tmp_path / "table", tmp_path / "report.json"
    table.write_text("bcast 2 1 0 chain\nbcast 2 2 0 binomial\n")
    program = str(compiled(name, str(HERE / "started.c")))
    asked = ["--report", str(written)] if report else []
    done = run(name, PROCS, *asked, "--table", str(table), "--", program)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
    if report:
        rows = json.loads(written.read_text())["rows"]
        by_collective = {row["collective"]: row for row in rows}
        assert by_collective["bcast"]["algorithm"] == ("chain" if name == "smpi" else "binomial")
        assert by_collective["ibarrier"]["mpis_own"] == "non-blocking"
        assert all(row["communicator"] == "started" and row["processes"] == PROCS for row in rows)


@each_engine
def test_data_at_absolute_addresses(name: str, compiled) -> None:
    """Neither MPICH's MPI_Pack nor SimGrid's reductions take MPI_BOTTOM; ours do."""
    program = str(compiled(name, str(HERE / "bottom.c")))
    done = run(name, PROCS, "--report", "-", "--algorithms", AT_BOTTOM, "--", program)
    assert (done.returncode, done.stdout) == (0, "ok 23\n"), done.stdout + done.stderr
    assert {f"{collective}={what}" for collective, what in counts_of(done.stderr)} == set(AT_BOTTOM.split(";"))


@each_library
def test_messages_that_nobody_receives_are_not_the_reports(name: str, compiled) -> None:
    if name == "mpich":
        need("mpich-4.0")  # MPI_Finalize of 4.2 aborts if such a message has arrived, as it has after a report
    done = run(name, 4, "--report", "-", "--", str(compiled(name, str(HERE / "unreceived.c"))))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout.splitlines()  # beside what UCX says of messages that are left
    assert counts_of(done.stderr) == {("barrier", "MPI's own: no rule"): 1}


@each_library
@yielding
def test_threads_that_come_and_go(name: str, compiled, tmp_path: Path) -> None:
    """Each thread stores its calls in memory of its own, which is freed when it ends."""
    program = compiled(name, str(HERE / "threads.c"))
    chosen = "allreduce=recursive_doubling;bcast=binomial"
    done = uncounted(name, 2, program, tmp_path, COLLWISE_ALGORITHMS=chosen)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@each_library
@yielding
def test_a_running_program_can_load_it(name: str, tmp_path: Path) -> None:
    """There is room for its thread-local variables in a program that was started without it."""
    plugin, library = tmp_path / "plugin.so", installation_of(name).program("libcollwise.so")
    command = [COMPILERS[name], "-std=gnu11", "-O1", "-shared", "-fPIC", "-Dmain=run", str(HERE / "repeated.c")]
    built = subprocess.run([*command, "-o", str(plugin)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    chosen = {"COLLWISE_ALGORITHMS": "bcast=binomial;allreduce=ring;reduce=binomial", "COLLWISE_REPORT": "1"}
    done = launched(name, 2, [sys.executable, "-c", PLUGIN, str(library), str(plugin)], chosen)
    assert (done.returncode, done.stdout) == (0, "ok 1494\n"), done.stdout + done.stderr
    assert counts_of(done.stderr)["allreduce", "ring"] > 0


def test_processes_with_other_settings_in_a_communicator_agree(compiled, tmp_path: Path) -> None:
    """A spawned process may have no rules: communicators with processes of two worlds are left to MPI."""
    need("openmpi")
    program = compiled("openmpi", str(HERE / "spawned.c"))
    done = uncounted("openmpi", 2, program, tmp_path, COLLWISE_ALGORITHMS="bcast=chain;allreduce=ring")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
