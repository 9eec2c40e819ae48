"""Any program under libcollwise: in Fortran and Python, with other collectives, errors and its own communicators."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from collwise.simulator.execution.interposed import decided_line, no_rule_for, row_taken_for
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from tests.command_line import forked
from tests.interpose.running import arguments_of, counts_of, installation_of, run, uncounted
from tests.needs import each, need, needs

pytestmark = pytest.mark.usefixtures("yielding_mpich")

HERE = Path(__file__).parent
each_library = pytest.mark.parametrize("name", each("openmpi", "mpich"))
OURS = "bcast=binomial;allreduce=ring;gatherv=linear;reduce=binomial;scatter=binomial;allgather=ring;barrier=bruck"
OFTEN = (
    "bcast=binomial;reduce=binomial;allreduce=recursive_doubling;gather=binomial;scatter=binomial;allgather=ring;"
    "alltoall=pairwise;barrier=recursive_doubling"
)
FORTRAN = {"mpif.h": "-DUSE_MPIF", "mpi": "-DUSE_MPI", "mpi_f08": "-DUSE_MPI_F08"}


@needs("fortran")
@each_library
@pytest.mark.parametrize("module", FORTRAN)
def test_fortran(name: str, module: str, tmp_path: Path) -> None:
    """All three kinds of Fortran programs run our algorithms, with Fortran's sentinels, and get the right results."""
    program = tmp_path / "program"
    command = [f"mpifort.{name}", "-cpp", FORTRAN[module], "-fallow-argument-mismatch", str(HERE / "collectives.F90")]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    done = run(name, 3, "--report", "-", "--algorithms", OURS, "--", str(program))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    counted = counts_of(done.stderr)
    for entry in OURS.split(";"):
        collective, algorithm = entry.split("=")
        assert counted[collective, algorithm] > 0, counted
    assert counted["bcast", "binomial"] == 2
    assert counted["allreduce", "ring"] >= 3
    assert counted["ibcast", "MPI's own: non-blocking"] == 1


@needs("openmpi", "mpi4py")
def test_python(tmp_path: Path) -> None:
    python = "/usr/bin/python3"
    script = tmp_path / "program.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "data = world.bcast({'key': [1, 2.5]} if world.rank == 0 else None)\n"
        "assert data == {'key': [1, 2.5]}\n"
        "assert world.allreduce(world.rank) == sum(range(world.size))\n"
        "try:\n"
        "    world.Bcast(bytearray(4), root=world.size)\n"
        "except MPI.Exception:\n"
        "    print('caught' if world.rank == 0 else '', end='')\n"
    )
    done = run("openmpi", 3, "--report", "-", "--algorithms", "bcast=binomial", "--", python, str(script))
    assert (done.returncode, done.stdout) == (0, "caught"), done.stderr
    assert counts_of(done.stderr)["bcast", "binomial"] >= 2  # objects take a call for the size and one for the data


@pytest.mark.parametrize("algorithms", [OFTEN, "bcast=chain,segment_bytes=64;gather=linear;reduce=binary"])
@pytest.mark.parametrize(("name", "procs"), [("openmpi", 2), ("openmpi", 3), ("mpich", 3)])
def test_repeated_calls(name: str, procs: int, algorithms: str, compiled, tmp_path: Path) -> None:
    """Without a report, calls that repeat the last one take a way of their own; any argument may change in between."""
    program = compiled(name, str(HERE / "repeated.c"))
    done = uncounted(name, procs, program, tmp_path, COLLWISE_ALGORITHMS=algorithms)
    assert (done.returncode, done.stdout) == (0, "ok 1494\n"), done.stdout + done.stderr


@each_library
def test_repeated_calls_have_the_default_radix(name: str, compiled, tmp_path: Path) -> None:
    """With radix 4 the root of 6 processes sends both segments to 4 of them, with radix 5 to all."""
    program = compiled(name, str(HERE / "sends.c"))
    done = uncounted(name, 6, program, tmp_path, COLLWISE_ALGORITHMS="bcast=knomial,segment_bytes=16")
    assert (done.returncode, done.stdout) == (0, "8\n" * 3), done.stdout + done.stderr


@each_library
def test_calls_around_the_size_from_which_a_rule_holds(name: str, compiled, tmp_path: Path) -> None:
    """Calls that are too short for a rule are known again by a way of their own, and never taken for longer ones."""
    rules = {"allreduce": "recursive_doubling", "bcast": "scatter_ring_allgather"}
    table = tmp_path / "table"
    table.write_text("".join(f"{what} 2 1 0 default\n{what} 2 1 64 {rule}\n" for what, rule in rules.items()))
    done = uncounted(name, 2, compiled(name, str(HERE / "short.c")), tmp_path, COLLWISE_TABLE=str(table))
    assert (done.returncode, done.stdout) == (0, "ok 440\n"), done.stdout + done.stderr


@each_library
@pytest.mark.parametrize("algorithms", ["bcast=linear;barrier=bruck;allgather=ring;alltoall=pairwise", "bcast=default"])
def test_errors_reach_the_programs_handlers(name: str, algorithms: str, compiled) -> None:
    if name == "mpich":
        need("mpich-4.0")  # 4.2 itself reports no error for some of these calls
    program = compiled(name, str(HERE / "errors.c"))
    ours = ["ours"] if "linear" in algorithms else []
    done = run(name, 3, "--report", "-", "--algorithms", algorithms, "--", str(program), *ours)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    counts = counts_of(done.stderr)
    assert counts.get(("bcast", "linear"), 0) == (3 if ours else 0)
    assert counts.get(("ibarrier", "MPI's own: non-blocking"), 0) == len(ours)


@pytest.mark.parametrize("name", each("openmpi", "mpich", "smpi"))
def test_other_collectives_are_passed_on_and_counted(name: str, compiled, tmp_path: Path) -> None:
    program, report = compiled(name, str(HERE / "others.c")), tmp_path / "report.json"
    done = run(name, 3, "--report", str(report), "--algorithms", "allreduce=ring", "--", str(program))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    found = json.loads(report.read_text())
    assert found["processes"] == 3
    rows = {row["collective"]: row for row in found["rows"]}
    expected = {"reduce": "no rule", "iallreduce": "non-blocking"}
    if name != "smpi":
        expected["allreduce_init"] = "persistent"
    if name == "mpich":
        expected["bcast_c"] = "a large count"
        assert rows.pop("allreduce")["algorithm"] == "ring"  # MPI_Allreduce_c with a small count
    assert {collective: row["mpis_own"] for collective, row in rows.items()} == expected
    assert all(row["communicator"] == 'all, "the" processes' and row["ranks"] == "0-2" for row in rows.values())
    assert rows["iallreduce"]["mean_bytes"] == 4
    assert found["seconds"] > 0
    for row in rows.values():
        assert row["shortest_seconds"] <= row["seconds"] <= row["longest_seconds"] <= found["seconds"]


@each_library
def test_a_report_by_communicator(name: str, tmp_path: Path, compiled) -> None:
    source = tmp_path / "parts.c"
    source.write_text(
        "#include <mpi.h>\n#include <unistd.h>\n"
        "int main(void) {\n"
        "    int rank; double x = 0; MPI_Comm part;\n"
        "    MPI_Init(NULL, NULL);\n"
        "    MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);\n"
        "    MPI_Barrier(MPI_COMM_WORLD);\n"
        "    if (rank == 0) usleep(100000);\n"
        "    for (int i = 0; i < 3; i++) MPI_Bcast(&x, 1, MPI_DOUBLE, 0, part);\n"
        "    MPI_Comm_free(&part);\n"
        "    MPI_Finalize();\n"
        "    return 0;\n"
        "}\n"
    )
    program = compiled(name, str(source))
    table = tmp_path / "report.csv"
    assert run(name, 4, "--report", str(table), "--", str(program)).returncode == 0
    rows = [row for row in csv.DictReader(table.read_text().splitlines()) if row["collective"] == "bcast"]
    assert {row["ranks"]: row["calls"] for row in rows} == {"0,2": "3", "1,3": "3"}
    [late] = [row for row in rows if row["ranks"] == "0,2"]
    # Rank 2 waits for rank 0, which comes late; the mean of both is half of that.
    shortest, mean, longest = (float(late[f"{name}seconds"]) for name in ("shortest_", "", "longest_"))
    assert longest > 0.08
    assert mean == pytest.approx((shortest + longest) / 2, rel=1e-3)
    ours = ("--algorithms", "bcast=knomial,segment_bytes=64", "--", str(program))
    named = tmp_path / "ours.csv"
    assert run(name, 4, "--report", str(named), *ours).returncode == 0
    rows = [row for row in csv.DictReader(named.read_text().splitlines()) if row["collective"] == "bcast"]
    assert {(row["algorithm"], row["parameters"]) for row in rows} == {("knomial", "segment_bytes=64 radix=4")}
    assert "  knomial segment_bytes=64 radix=4  " in run(name, 4, "--report", "-", *ours).stderr
    text = run(name, 4, "--report", "-", "--", str(program)).stderr
    assert re.search(r"^bcast +2  MPI's own: no rule +8 to 15 +6 +0\.\d+  unnamed \(2 of them\)$", text, re.MULTILINE)
    assert re.search(r"^collwise: the mean process spent 0\.\d+ of \d\.\d+ s within these calls", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("# nothing", "the table has no rules"),
        ("bcast 2 1 0 default", "all its rules say default"),
        ("bcast 8 1 0 chain", "its rules begin at 8 processes, and the run has 4"),
        ("bcast 2 8 0 chain\nbcast 8 1 0 ring", "its rules for up to 4 processes are for 8 and more per node"),
        ("bcast 2 1 0 chain", ""),
    ],
)
def test_tables_without_a_rule_for_a_run(rules: str, said: str, tmp_path: Path) -> None:
    table = tmp_path / "rules"
    table.write_text(rules + "\n")
    assert no_rule_for(table, 4, 4).startswith(said)
    assert bool(no_rule_for(table, 4, 4)) == bool(said)


@pytest.mark.parametrize(
    ("decided", "procs", "said"),
    [
        ((4, 16), 16, ""),
        (
            (4, 16),
            8,
            "was not decided for P = 8, so that calls on all processes use rows for another P (bcast: P = 4)",
        ),
        ((4, 16), 32, "(bcast: P = 16)"),
        ((4, 16), 2, ""),
        (range(2, 65), 33, ""),
    ],
)
def test_rows_of_other_process_counts_are_named(decided: Sequence[int], procs: int, said: str, tmp_path: Path) -> None:
    table = tmp_path / "rules"
    table.write_text(f"{decided_line('bcast', decided)}\n# decided: alltoall by hand\n")
    line = row_taken_for(table, procs)
    assert bool(line) == bool(said)
    assert said in line


def test_an_exported_table_says_what_it_was_decided_for(tmp_path: Path) -> None:
    made = DecisionTable(
        "bcast", "gros", 1, "simulated", "hand", {4: ((0, Choice("chain")),), 16: ((0, Choice("binary")),)}
    )
    (tmp_path / "rules").write_text(collwise_rules([made]))
    assert row_taken_for(tmp_path / "rules", 16) == ""
    assert "(bcast: P = 4)" in row_taken_for(tmp_path / "rules", 8)


@needs("openmpi")
def test_a_table_that_no_call_uses_is_told_of(tmp_path: Path) -> None:
    table = tmp_path / "rules"
    program = ("--", "latency", "--collectives", "barrier", "--iterations", "2", "--warmup", "1")
    table.write_text("bcast 2 1 0 chain\n")
    done = run("openmpi", 2, "--table", str(table), *program)
    assert done.returncode == 0
    assert re.search(rf"^collwise: no call of the program used a rule of {table}: .*no rule", done.stderr, re.MULTILINE)
    table.write_text("barrier 2 1 0 bruck\n")
    assert "no call" not in run("openmpi", 2, "--table", str(table), *program).stderr


@needs("openmpi")
def test_a_profile_of_a_program_and_what_its_table_saves(tmp_path: Path) -> None:
    """Nothing is changed in the run; the table that the profile writes is what libcollwise then runs."""
    installation_of("openmpi")
    rules, report, tuned = tmp_path / "rules", tmp_path / "report.json", tmp_path / "tuned.json"
    where = ["--platform", "gros", "--store", str(tmp_path / "store.sqlite")]
    program = ["--", "latency", "--collectives", "bcast", "--sizes", "1MiB:1MiB", "--iterations", "2", "--warmup", "1"]
    asked = [*arguments_of("openmpi"), "--procs", "4"]
    words = (*asked, "--repetitions", "2", "--report", str(report), *program)
    assert forked("program", "run", *words).returncode == 0
    done = forked("program", "profile", str(report), *where, "--ppn", "1", "-o", str(rules))
    assert done.returncode == 0, done.stderr
    assert "a tuned table would save" in " ".join(done.stdout.split())
    assert "Times are medians of 2 runs, which spent " in done.stdout
    runs = json.loads(report.read_text())
    assert len(runs["run_seconds"]) == 2
    assert all("algorithm" not in row for row in runs["rows"])
    saved = re.search(r"^bcast 4 \d+ 1048576 (\w+)", rules.read_text(), re.MULTILINE)
    assert saved is not None, rules.read_text()
    words = (*asked, "--table", str(rules), "--report", str(tuned), *program)
    assert forked("program", "run", *words).returncode == 0
    assert saved.group(1) in {row.get("algorithm") for row in json.loads(tuned.read_text())["rows"]}
    done = forked("program", "profile", str(report), "--after", str(tuned), *where)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Saved by the mean process in calls whose algorithm changed: ", done.stdout)
