"""libcollwise.so under every engine: it is what programs call, its results are MPI's, and it says what it did."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.algorithms.catalogue_check import MAX_COUNTS, MIN_COUNTS
from collwise.common.errors import UsageError
from collwise.common.folders import SOURCES
from collwise.platforms import load
from collwise.simulator.execution.interposed import LibraryOptions, check_program
from collwise.simulator.execution.smpirun import smpi_files
from tests.interpose.running import ENGINES, counts_of, installation_of, linked, one_for_each_collective, run
from tests.needs import each, needs
from tests.waiting import wait_for

ALGORITHMS = [
    algorithm for collective in Catalogue.load().collectives.values() for algorithm in collective.algorithms.values()
]
REQUIRES = {"power_of_two": lambda procs: procs & (procs - 1) == 0, "even": lambda procs: procs % 2 == 0}
HERE = Path(__file__).parent
HEADERS = [SOURCES / "algorithms" / name for name in ("collwise.h", "collwise_decisions.h")]


def each_engine(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a test under every engine."""
    return pytest.mark.parametrize("name", each(*ENGINES))(pytest.mark.usefixtures("yielding_mpich")(test))


FUNCTIONS = (
    "Init Init_thread Finalize Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Barrier "
    "Reduce Allreduce Reduce_scatter Reduce_scatter_block Scan Exscan"
)


def as_list(algorithms: Sequence[Algorithm]) -> str:
    return ";".join(
        f"{a.collective}={a.name}" + (f",{a.part_parameter}=1024" if a.part_parameter else "") for a in algorithms
    )


@each_engine
@pytest.mark.parametrize("procs", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_results_are_those_of_mpi_for_every_algorithm(name: str, procs: int, compiled) -> None:
    program = compiled(name, str(HERE / "both.c"))
    for pick in range(max(len(known.algorithms) for known in Catalogue.load().collectives.values())):
        algorithms = one_for_each_collective(ALGORITHMS, pick)
        done = run(name, procs, "--report", "-", "--algorithms", as_list(algorithms), str(program))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("ok "), done.stdout
        counted = counts_of(done.stderr)
        for algorithm in algorithms:
            if all(REQUIRES[need](procs) for need in algorithm.requires if need in REQUIRES):
                assert counted.get((algorithm.collective, algorithm.name), 0) > 0, (algorithm.name, counted)


@each_engine
def test_latency_runs_with_and_without_the_library(name: str) -> None:
    arguments = ["latency", "--sizes", "64:256", "--iterations", "2", "--warmup", "1"]
    plain = run(name, 3, "--plain", *arguments)
    ours = run(name, 3, "--report", "-", "--algorithms", "bcast=binomial", *arguments)
    for done in (plain, ours):
        assert done.returncode == 0, done.stderr
        assert len(re.findall(r"^# [a-z_]+, 3 processes$", done.stdout, re.MULTILINE)) == 16
    assert "collwise" not in plain.stderr
    counted = counts_of(ours.stderr)
    assert counted["bcast", "binomial"] == 9
    assert counted["alltoall", "MPI's own: no rule"] == 9


@needs("openmpi")
def test_latency_separates_calls_or_not() -> None:
    arguments = (
        "--report",
        "-",
        "latency",
        "--collectives",
        "scatter",
        "--sizes",
        "8:8",
        "--iterations",
        "5",
        "--barriers",
    )
    for barriers, count in (("each", 7), ("once", 2)):
        assert counts_of(run("openmpi", 3, *arguments, barriers).stderr)["barrier", "MPI's own: no rule"] == count
    assert run("openmpi", 3, *arguments, "never").returncode == 2


@each_engine
def test_every_reason_to_fall_back_is_reported(name: str, compiled) -> None:
    program = compiled(name, str(HERE / "both.c"))
    done = run(name, 3, "--report", "-", "--algorithms", "bcast=binomial;barrier=default", str(program), "threads")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok \d+, threads [0-3]$", done.stdout, re.MULTILINE)
    reasons = {what for collective, what in counts_of(done.stderr)}
    expected = {"binomial", "MPI's own: no rule", "MPI's own: one process", "MPI's own: the rule says default"}
    if not name.startswith("smpi"):
        expected |= {"MPI's own: an intercommunicator", "MPI's own: invalid arguments"}
    assert expected <= reasons


@pytest.mark.parametrize("requirement", sorted({one for algorithm in ALGORITHMS for one in algorithm.requires}))
def test_requirements_that_do_not_hold(requirement: str, compiled) -> None:
    demanding = [algorithm for algorithm in ALGORITHMS if requirement in algorithm.requires]
    program = compiled("openmpi", str(HERE / "both.c"))
    for algorithm in {algorithm.collective: algorithm for algorithm in demanding}.values():
        done = run("openmpi", 3, "--report", "-", "--algorithms", as_list([algorithm]), str(program))
        assert done.returncode == 0, done.stdout + done.stderr
        whats = {what for collective, what in counts_of(done.stderr) if collective == algorithm.collective}
        assert any(what.startswith("MPI's own: needs") for what in whats), whats


@each_engine
def test_a_table_decides_by_procs_and_size(name: str, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text(
        "# ours from 1 KiB on\nbcast 2 1 0 default\nbcast 2 1 1024 split_binary segment_bytes=256\n"
        "bcast 4 1 0 chain\ngather 9 1 0 binomial\n"
    )
    arguments = [
        "--report",
        "-",
        "--table",
        str(table),
        "latency",
        "--collectives",
        "bcast,gather",
        "--sizes",
        "512:1KiB",
    ]
    few, more = run(name, 3, *arguments), run(name, 4, *arguments)
    counted = counts_of(few.stderr)
    assert (counted["bcast", "split_binary"], counted["bcast", "MPI's own: the rule says default"]) == (22, 22)
    assert counted["gather", "MPI's own: no rule"] == 44
    assert counts_of(more.stderr)["bcast", "chain"] == 44
    assert re.search(r"^bcast +3  split_binary ", few.stderr, re.MULTILINE)
    assert re.search(r"^bcast +4  chain ", more.stderr, re.MULTILINE)


def test_processes_per_node_decide(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("bcast 2 1 0 chain\nbcast 2 3 0 binomial\n")
    arguments = ["--report", "-", "--table", str(table), "latency", "--collectives", "bcast", "--sizes", "8:8"]
    assert counts_of(run("openmpi", 3, *arguments).stderr)["bcast", "binomial"] == 22
    for ppn, expected in (("1", "chain"), ("2", "chain"), ("3", "binomial")):
        assert counts_of(run("smpi", 4, "--ppn", ppn, *arguments).stderr)["bcast", expected] == 22


# One library reads tables under every engine.
MALFORMED = [
    ("bcst 2 1 0 default", r"unknown collective 'bcst'; did you mean bcast\?"),
    ("bcast 2 1 0 binomal", r"unknown bcast algorithm 'binomal'; did you mean binomial\?"),
    ("bcast 2 1 default", r"4 of 5 columns"),
    ("bcast 2 one 0 default", r"processes_per_node is 'one'"),
    ("bcast 2 1 0 binomial segment=1", r"binomial has no parameter 'segment'; valid: segment_bytes"),
    ("gather 2 1 0 lmo limit_bytes=no", r"limit_bytes is 'no'"),
    ("bcast 2 1 0 knomial radix=1", r"radix is '1'"),
]


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [pytest.param(name, *MALFORMED[0], marks=needs(name)) for name in ENGINES]
    + [pytest.param("openmpi", *one, marks=needs("openmpi")) for one in MALFORMED[1:]],
)
def test_a_malformed_table_is_one_warning(name: str, line: str, said: str, tmp_path: Path) -> None:
    """The command refuses the table before the run; a table that the library itself finds is worth one warning."""
    table = tmp_path / "table"
    table.write_text(f"bcast 1 1 0 binomial\n{line}\n")
    refused = run(name, 2, "--table", str(table), "latency")
    assert refused.returncode == 2
    assert re.search(rf"^collwise: --table: {re.escape(str(table))}:2: ", refused.stderr)
    arguments = ["--report", "-", "latency", "--collectives", "bcast", "--sizes", "8:8"]
    done = run(name, 2, *arguments, COLLWISE_TABLE=str(table))
    assert done.returncode == 0
    assert len(re.findall("collwise: warning", done.stderr)) == 1
    assert re.search(rf"^collwise: warning: {re.escape(str(table))}:2: .*{said}.*MPI's own", done.stderr, re.MULTILINE)
    assert counts_of(done.stderr)["bcast", "MPI's own: no rule"] == 22


def test_a_compressed_table_is_refused_as_the_library_does_not_read_it(tmp_path: Path) -> None:
    table = tmp_path / "table.gz"
    table.write_bytes(gzip.compress(b"bcast 1 1 0 binomial\n"))
    with pytest.raises(UsageError, match=r"^--table: .*table\.gz is compressed, .*; unpack it$"):
        LibraryOptions(table).check()


@each_engine
def test_a_table_that_cannot_be_read_is_one_warning(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    done = run(name, 2, "latency", "--collectives", "barrier", COLLWISE_TABLE=str(missing))
    assert done.returncode == 0
    assert done.stderr.count(f"collwise: warning: {missing}: No such file or directory; using MPI's own") == 1


@each_engine
def test_a_list_goes_before_the_table(name: str, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("bcast 1 1 0 chain\ngather 1 1 0 binomial\n")
    choices = ["--table", str(table), "--algorithms", "bcast=linear", "--report", "-"]
    done = run(name, 2, *choices, "latency", "--collectives", "bcast,gather", "--sizes", "8:8")
    counted = counts_of(done.stderr)
    assert (counted["bcast", "linear"], counted["gather", "binomial"]) == (22, 22)


def test_a_report_goes_to_a_file(tmp_path: Path) -> None:
    report = tmp_path / "report"
    done = run("openmpi", 2, "latency", "--collectives", "scan", "--sizes", "8:8", COLLWISE_REPORT=str(report))
    assert done.returncode == 0
    assert counts_of(report.read_text())["scan", "MPI's own: no rule"] == 22
    assert "collectives of this run" not in done.stderr


# --- Asked for, and not the one called -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_program_that_does_not_call_it_fails(name: str) -> None:
    done = run(name, 2, shutil.which("true") or "true")
    assert done.returncode == 1
    assert "libcollwise was asked for, but" in done.stderr


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_linked_behind_mpi_is_an_error(name: str, tmp_path: Path) -> None:
    target = linked(name, HERE / "both.c", tmp_path / "program", "-lmpi" if name == "openmpi" else "-lmpich")
    silent = subprocess.run([str(target)], capture_output=True, text=True, timeout=900)
    assert (silent.returncode, silent.stdout[:3]) == (0, "ok "), silent.stderr
    environment = os.environ | {"COLLWISE_ALGORITHMS": "bcast=binomial"}
    done = subprocess.run([str(target)], capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 1
    assert "libcollwise was asked for but is not what this program calls: MPI_Init is that of" in done.stderr


@pytest.mark.parametrize(
    ("name", "options", "is_called"),
    [
        pytest.param("smpi", (), True, marks=needs("smpi-linked")),
        ("smpi", ("-no-privatize",), False),
        ("smpi-4.1", (), False),
    ],
)
def test_linked_in_simulation(name: str, options: Sequence[str], is_called: bool, tmp_path: Path) -> None:
    """Right in SimGrid 3.32 as it loads programs unless told otherwise, and an error elsewhere."""
    target, report = linked(name, HERE / "both.c", tmp_path / "program"), tmp_path / "report"
    environment = os.environ | {"COLLWISE_ALGORITHMS": "bcast=binomial", "COLLWISE_REPORT": str(report)}
    with smpi_files(load("gros"), 3, 1) as (platform, hosts):
        run_options = [*options, "-platform", str(platform), "-hostfile", str(hosts), "-np", "3", str(target)]
        launcher = str(installation_of(name).launcher)
        done = subprocess.run([launcher, *run_options], capture_output=True, text=True, env=environment)
    assert "ok " in done.stdout
    if is_called:
        assert done.returncode == 0
        assert counts_of(report.read_text())["bcast", "binomial"] > 0
    else:
        assert done.returncode == 1
        assert "is not what this program calls" in done.stderr


@pytest.mark.parametrize("name", ["openmpi", "mpich", "smpi"])
def test_it_shows_only_what_it_has_to(name: str) -> None:
    library = installation_of(name).program("libcollwise.so")
    done = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    shown = {line.split()[-1] for line in done.stdout.splitlines()}
    replaced = {f"MPI_{function}" for function in FUNCTIONS.split()}
    counted = {f"MPI_I{function.lower()}" for function in FUNCTIONS.split()[3:]} | {"MPI_Ialltoallw", "MPI_Alltoallw"}
    declared = [
        name for one in HEADERS for name in re.findall(r"^\w.*?\b(collwise_\w+)[([]", one.read_text(), re.MULTILINE)
    ]
    ours = {one for one in declared if not one.endswith("_function")}
    assert {"collwise_run", "collwise_place", "collwise_registry"} <= ours
    loader = {"dlopen"} if name == "smpi" else set()
    assert replaced | counted | ours | loader <= shown
    others = shown - replaced - counted - ours - loader
    if name == "openmpi":  # persistent ones, and Fortran's by each name that compilers give them
        assert {"MPIX_Bcast_init", "mpi_bcast_", "mpi_bcast__", "MPI_BCAST", "ompi_bcast_f", "ompi_init_f"} <= others
        assert all(re.match(r"MPIX?_\w+_init$|mpix?_|MPIX?_[A-Z]|ompix?_\w+_f$", one) for one in others)
    elif name == "mpich":
        assert {"MPI_Bcast_init", "MPI_Bcast_c", "MPI_Ibcast_c", "mpi_barrier_f08_", "mpi_init_f08_"} <= others
        assert all(re.match(r"MPI_\w+_(init|c|init_c)$|mpi_\w+_f08_$", one) for one in others)
    else:
        assert not others


# --- The command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithms",
    [
        "",
        "bcast=default",
        " bcast = binomial ,segment_bytes=64; gather=linear;",
        "bcast=k_chain,chains=3",
        "gather=lmo,bound_bytes=5120,limit_bytes=65536",
        "bcast=tasks_chain,segment_bytes=65536,between_segment_bytes=16384,within=2",
        "allreduce=multi_leader_binary,leaders=3",
    ],
)
def test_lists_that_are_right(algorithms: str) -> None:
    LibraryOptions(algorithms=algorithms).check()


def test_numbers_of_parameters_are_right_within_their_bounds_only() -> None:
    for algorithm in ALGORITHMS:
        for name in algorithm.parameters:
            least, most = MIN_COUNTS.get(name, 0), MAX_COUNTS.get(name)
            right = [least, 10**9 if most is None else most]
            for value in (*right, least - 1, "", "1.0", "x", *([] if most is None else [most + 1])):
                options = LibraryOptions(algorithms=f"{algorithm.collective}={algorithm.name},{name}={value}")
                said = rf"^--algorithms: entry 1: {name} is '{value}'; it must be a whole number "
                with contextlib.nullcontext() if value in right else pytest.raises(UsageError, match=said):
                    options.check()


@each_engine
def test_the_exit_code_is_the_programs(name: str) -> None:
    done = run(name, 2, "latency", "--sizes", "no")
    assert done.returncode != 0
    assert "usage: latency" in done.stderr


def test_a_program_of_another_mpi_is_refused() -> None:
    openmpi, mpich = (installation_of(name).program("latency") for name in ("openmpi", "mpich"))
    for library, program, told in (
        ("openmpi", mpich, "is built for mpich, not for openmpi"),
        ("mpich", openmpi, "is built for openmpi, not for mpich"),
        ("openmpi", Path(__file__).resolve(), "is not an executable program"),
    ):
        done = run(library, 2, "--", str(program))
        assert done.returncode == 2
        assert told in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("built_for", "needed", "library"),
    [
        ("mpich", "libmpichfort.so.12", "openmpi"),
        ("openmpi", "libmpi_mpifh.so.40", "mpich"),
        ("openmpi", "libmpi_usempif08.so.40", "smpi"),
    ],
)
def test_a_program_in_fortran_of_another_mpi_is_refused(
    built_for: str, needed: str, library: str, tmp_path: Path
) -> None:
    """Linked with --as-needed, it depends on the library of its Fortran interface alone."""
    (tmp_path / "interface.c").write_text("int start(void) { return 0; }\n")
    (tmp_path / "program.c").write_text("int start(void);\nint main(void) { return start(); }\n")
    shared = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{needed}", "interface.c", "-o", "libinterface.so"]
    for command in (shared, ["cc", "program.c", "-L.", "-linterface", "-o", "program"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    program = tmp_path / "program"
    with pytest.raises(UsageError, match=rf"{re.escape(str(program))} is built for {built_for}, not for {library}$"):
        check_program(program, library)


def test_smpi_refuses_what_smpicc_did_not_build(tmp_path: Path) -> None:
    """An interpreter, a script and a program that uses no MPI: one line each, before anything starts."""
    source, script = tmp_path / "plain.c", tmp_path / "script.py"
    source.write_text("int main(void) { return 0; }\n")
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    for flags in ((), ("-static",), ("-no-pie",)):
        plain = tmp_path / ("plain" + "".join(flags))
        subprocess.run(["cc", *flags, str(source), "-o", str(plain)], check=True)
    programs = [str(path) for path in (*tmp_path.glob("plain*"), script) if path.suffix != ".c"]
    for program in (sys.executable, *programs):
        for option in ([], ["--plain"]):
            done = run("smpi", 2, *option, "--", program, "p.py")
            assert (done.returncode, done.stdout) == (2, ""), done.stderr
            assert re.fullmatch(rf"collwise: {re.escape(program)} was not built by smpicc: .*\n", done.stderr)


def test_smpi_takes_what_smpicc_built(tmp_path: Path) -> None:
    """Also what the linker has left without a dependency on SimGrid, since a library of the program's own calls MPI."""
    (tmp_path / "program.c").write_text("int work(void);\nint main(void) { return work(); }\n")
    (tmp_path / "work.c").write_text(
        "#include <mpi.h>\n"
        "int work(void) {\n"
        "    MPI_Init(NULL, NULL);\n"
        "    MPI_Barrier(MPI_COMM_WORLD);\n"
        "    return MPI_Finalize();\n"
        "}\n"
    )
    smpicc = str(installation_of("smpi").launcher.with_name("smpicc"))
    for command in (
        [smpicc, "-o", "libwork.so", "work.c"],
        [smpicc, "-o", "program", "program.c", "-Wl,--as-needed", "-L.", "-lwork", f"-Wl,-rpath,{tmp_path}"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    done = run("smpi", 2, "--report", "-", "--", str(tmp_path / "program"))
    assert done.returncode == 0, done.stderr
    assert counts_of(done.stderr)["barrier", "MPI's own: no rule"] == 1


def test_waiting_for_the_clock_ends_in_simulation(tmp_path: Path) -> None:
    source = tmp_path / "wait.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int main(int argc, char **argv) {\n"
        "    MPI_Init(&argc, &argv);\n"
        "    double start = MPI_Wtime();\n"
        "    while (MPI_Wtime() - start < 1e-5) {\n"
        "    }\n"
        "    MPI_Finalize();\n"
        "    return 0;\n"
        "}\n"
    )
    smpicc = installation_of("smpi").launcher.with_name("smpicc")
    subprocess.run([str(smpicc), "-o", "wait", "wait.c"], cwd=tmp_path, check=True)
    done = run("smpi", 2, "--", str(tmp_path / "wait"))
    assert done.returncode == 0, done.stderr


@needs("openmpi")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_behind_when_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    marker = f"{tmp_path}/sleeper"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", marker)
    where = ["--library", "openmpi", "--procs", "2", "--plain"]
    command = [sys.executable, "-P", "-m", "collwise.studies", "program", "run", *where]
    child = subprocess.Popen([*command, "--", marker, "10000"], stderr=subprocess.DEVNULL)

    def sleepers() -> str:
        return subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True, check=False).stdout

    wait_for(lambda: sleepers().count("\n") >= 4)  # ours, mpirun and two processes
    child.send_signal(number)
    assert child.wait(900) == 130
    wait_for(lambda: not sleepers())
