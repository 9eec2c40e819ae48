"""The decisions of today's libraries: their thresholds, against the installed libraries, and what is then sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.folders import SOURCES
from collwise.validation.correctness.crosscheck import OPENMPI_PARTS
from collwise.validation.libraries import openmpi_untuned
from collwise.validation.libraries.baselines import BASELINES, PAPERS, baseline
from collwise.validation.libraries.installed import check
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of
from tests.needs import MPICH_ARCHIVE, needs
from tests.validation.traces import Call, edges, traced

OPENMPI, MPICH = BASELINES["openmpi-4.1"], BASELINES["mpich-4"]
COLLECTIVES = tuple(Catalogue.load().collectives)
# On both sides of every number of processes at which a decision changes.
PROCS = sorted({2, 3, 5, 6, 7, 9, 12, 100, *(2**k + by for k in range(2, 13) for by in (-1, 0, 1))} | {16384})


def sizes(collective: str) -> list[int]:
    if collective == "barrier":
        return [0]
    return sorted({*range(1, 10), *(2**k + by for k in range(3, 23) for by in (-1, 0, 1, 8))} | {12288, 12289, 81920})


POINTS = [(name, procs, size) for name in COLLECTIVES for procs in PROCS for size in sizes(name)]


@needs("openmpi", "openmpi-known")
def test_the_installed_open_mpi_decides_the_same() -> None:
    """It is asked for communicators of up to 16384 processes, at every threshold and beside it."""
    found = check(baseline(), POINTS)
    assert len(found) == sum(point[0] not in openmpi_untuned.BASIC for point in POINTS)
    assert [one for one in found if not one.agrees] == []


@needs("mpich")
def test_the_tables_of_the_installed_mpich_say_the_same() -> None:
    assert [one for one in check(MPICH, POINTS) if not one.agrees] == []


@given(st.sampled_from(COLLECTIVES), st.integers(2, 5000), st.integers(0, 2**24))
def test_every_choice_runs(collective: str, procs: int, message_bytes: int) -> None:
    for one in (OPENMPI, MPICH):
        decision = one.decide(collective, procs, message_bytes)
        if decision.choice is None:
            assert (one, collective, decision.algorithm) in {
                (MPICH, "allgatherv", "recursive_doubling"),
                (MPICH, "alltoallv", "scattered"),
                (MPICH, "reduce_scatter", "pairwise"),
                (MPICH, "reduce_scatter_block", "pairwise"),
            }
            continue
        entry = Catalogue.load().algorithm(collective, decision.choice.algorithm)
        assert entry.selectable
        assert not entry.objection(procs)
        assert entry.part_parameter or decision.choice.segment_bytes == 0
        assert entry.count_parameter or decision.choice.parameter == 0


@settings(max_examples=30)
@given(st.sampled_from(sorted(openmpi_untuned.table())), st.integers(2, 5000))
def test_a_line_holds_up_to_the_next_one(collective: str, procs: int) -> None:
    rows = openmpi_untuned.table()[collective]
    steps = rows[max(first for first in rows if first <= procs)]
    assert [start for start, _ in steps] == sorted({start for start, _ in steps})
    assert steps[0][0] == 0
    for (start, name), (end, after) in zip(steps, [*steps[1:], (2**30, "")], strict=True):
        assert name != after
        assert {openmpi_untuned.decided_name(collective, procs, size) for size in (start, end - 1)} == {name}


@pytest.mark.parametrize(
    ("point", "openmpis", "mpichs"),
    [
        (("bcast", 7, 2**20), Choice("k_chain", parameter=1), Choice("binomial")),
        (("bcast", 16, 12288), Choice("binomial"), Choice("binomial")),
        (("bcast", 16, 12289), Choice("binomial"), Choice("scatter_allgather")),
        (("bcast", 17, 12289), Choice("binomial"), Choice("scatter_ring_allgather")),
        (("allgather", 32, 1024), Choice("neighbor_exchange"), Choice("recursive_doubling")),
        (("allgather", 33, 1024), Choice("ring"), Choice("bruck")),  # an odd number has no neighbours in pairs
        (("allgather", 6, 1024), Choice("bruck"), Choice("bruck")),  # no power of two: no recursive doubling
        (("allreduce", 6, 8), Choice("recursive_doubling"), Choice("recursive_doubling")),  # a ring needs more elements
        (("allreduce", 4, 8192), Choice("rabenseifner"), Choice("rabenseifner")),
        (
            ("allreduce", 40, 128),
            Choice("linear"),
            Choice("recursive_doubling"),
        ),  # too few to be halved 32 times
        (("alltoall", 5, 64), Choice("linear_sync", parameter=4), Choice("linear")),
        (("alltoall", 200, 4096), Choice("linear"), Choice("linear_sync", parameter=32)),
        (("gather", 4, 2**18), Choice("linear_sync", 2**18), Choice("binomial")),
        (("gatherv", 4, 1024), Choice("linear"), Choice("linear_nonblocking")),
    ],
)
def test_choices(point: tuple[str, int, int], openmpis: Choice, mpichs: Choice) -> None:
    assert (OPENMPI.choice(*point), MPICH.choice(*point)) == (openmpis, mpichs)


@needs("openmpi-4.1")
@pytest.mark.parametrize("procs", [4, 5, 8])
def test_open_mpi_untuned_sends_what_the_choice_sends(procs: int, tmp_path: Path) -> None:
    """At every size at which a decision changes up to 1 MiB, one byte below, and with few elements."""
    asked = []
    for collective in COLLECTIVES:
        rows = openmpi_untuned.table().get(collective, {0: [(64, "")]})
        steps = [start for start, _ in rows[max(first for first in rows if first <= procs)] if start <= 2**20]
        some = {0} if collective == "barrier" else {8 * few for few in range(1, procs + 2)} | {64, *steps}
        for size in sorted(some | {start - 1 for start in steps if start > 1}):
            choice = OPENMPI.choice(collective, procs, size)
            assert choice is not None
            asked.append(Call(0, case_of(collective, choice, procs, size), parts=False))
    assert len(asked) > 100
    different = {*OPENMPI_PARTS, ("reduce_scatter_block", "butterfly")}  # as crosscheck.toml explains
    different |= {("allreduce", "recursive_doubling")} if procs & (procs - 1) else set()
    for one in traced(asked, tmp_path):
        assert edges(one.theirs) == edges(one.ours) or one.call.key in different, one.call.case


WRAPPED = """
void *__real_{name}(void);
void *__wrap_{name}(void) {{
    if (is_on) puts("{name}");
    __builtin_return(__builtin_apply((void (*)())__real_{name}, __builtin_apply_args(), 160));
}}
"""
# Makes calls given as NAME BYTES..., and writes after each one of process 0 a line 'done'.
MAKES_CALLS = """
#include "workload.h"
#include <stdio.h>
#include <stdlib.h>
static int is_on;
static void *zeros(size_t bytes) {{ return calloc(bytes, 1); }}
{wrapped}
int main(int argc, char **argv) {{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i + 1 < argc; i += 2) {{
        workload work;
        program_workload_make(&work, program_workload_kind(argv[i]), strtoul(argv[i + 1], NULL, 10), 0, MPI_COMM_WORLD,
                              (workload_memory){{zeros, free}});
        is_on = rank == 0;
        program_workload_call_mpi(work.kind, &work.call, NULL);
        is_on = 0;
        program_workload_free(&work);
        if (rank == 0) puts("done");
    }}
    MPI_Finalize();
}}
"""


@pytest.fixture(scope="module")
def traced_mpich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with MPICH's archive in which each algorithm says its name when it is called."""
    libraries = MPICH_ARCHIVE.parent
    headers = Path("/usr/include", libraries.name, "mpich")
    listed = subprocess.run(["nm", "-P", str(MPICH_ARCHIVE)], capture_output=True, text=True, check=False).stdout
    names = sorted(
        {
            line.split()[0]
            for line in listed.splitlines()
            if " T " in line and line.startswith("MPIR_") and ("_intra_" in line or "_allcomm_linear " in line)
            and "_sched_" not in line and ".cold" not in line and not line.startswith(("MPIR_I", "MPIR_Neigh"))
        }
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("traced")
    wrapped = "".join(WRAPPED.format(name=name) for name in names)
    (folder / "calls.c").write_text(MAKES_CALLS.format(wrapped=wrapped))
    programs = SOURCES / "simulator/programs"
    sources = [folder / "calls.c", programs / "workload.c", SOURCES / "algorithms/names.c"]
    others = [str(next(iter(sorted(libraries.glob(f"lib{name}.so*"))))) for name in ("ucp", "ucs", "hwloc")]
    includes = [f"-I{one}" for one in (headers, SOURCES / "algorithms", programs)]
    command = ["gcc", "-w", "-std=gnu11", *includes, *map(str, sources), *(f"-Wl,--wrap={name}" for name in names)]
    command += [str(MPICH_ARCHIVE), *others, "-lm", "-lpthread", "-lrt", "-ldl", "-o", str(folder / "calls")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "calls"


@needs("mpich", "mpich-archive")
@pytest.mark.parametrize("procs", [3, 4, 8, 9])
def test_mpich_untuned_runs_the_algorithm(procs: int, traced_mpich: Path) -> None:
    """MPICH calls its algorithm, as if each process were on a node of its own."""
    few = procs < 8
    sizes = (8, 24, 32, 1024, 2048, 4096, 32768, 65536, 2**17, 2**19) if few else (256, 264, 12288, 16384)
    points = [(name, size) for name in (COLLECTIVES if few else ("bcast", "alltoall")) for size in sizes]
    words = [word for collective, size in points for word in (collective, str(size))]
    command = ["mpirun.mpich", "-genv", "MPIR_CVAR_NOLOCAL", "1", "-n", str(procs), str(traced_mpich), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    *told, rest = done.stdout.split("done\n")
    assert (len(told), rest) == (len(points), "")
    for (collective, size), text in zip(points, told, strict=True):
        mine = [line for line in text.splitlines() if line.startswith(f"MPIR_{collective.capitalize()}_")]
        ends = tuple(f"_{kind}_{MPICH.decide(collective, procs, size).algorithm}" for kind in ("intra", "allcomm"))
        # A scan is called for nodes first, of which each has one process here.
        assert all(line.endswith((*ends, "_intra_smp")) for line in mine), (collective, size)
        assert any(line.endswith(ends) for line in mine), (collective, size)


def test_what_a_baseline_does_not_decide() -> None:
    with pytest.raises(UsageError, match=r"no fixed decision of Open MPI 3.1 for collective 'scan'.*openmpi-4.1"):
        PAPERS.decide("scan", 4, 8)
    with pytest.raises(UsageError, match=r"unknown baseline 'openmpi-4'; did you mean openmpi-4.1"):
        baseline("openmpi-4")


def test_the_default_is_that_of_the_installed_open_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        version = "5.0.9"

    where = "collwise.simulator.execution.installations.mpi_installation"
    monkeypatch.setattr(where, lambda library: Installed)
    assert baseline().name == "openmpi-5.0"
    Installed.version = "6.0.0"
    assert baseline().name == "openmpi-4.1"

    def missing(library: str) -> object:
        raise UsageError("not here")

    monkeypatch.setattr(where, missing)
    assert baseline().name == "openmpi-4.1"
