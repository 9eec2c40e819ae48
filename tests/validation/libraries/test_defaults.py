"""The decisions of today's libraries: their thresholds, against the installed libraries, and what is then sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.folders import SOURCES
from collwise.validation.correctness.crosscheck_openmpi import _preparation, _without
from collwise.validation.libraries import openmpi_untuned
from collwise.validation.libraries.baselines import BASELINES, PAPERS, baseline
from collwise.validation.libraries.installed import check
from collwise.validation.libraries.openmpi_check import monitored
from collwise.validation.times.choice import Choice
from tests.needs import MPICH_ARCHIVE, needs

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


# Each sends the same messages, to the byte: at least one point for each algorithm that four or five processes can show.
MONITORED = [
    *(("bcast", 4, size) for size in (8, 64, 8192, 2**20)),
    *(("gather", 5, size) for size in (8, 1024)),
    *(("scatter", 4, size) for size in (8, 2048, 32768)),
    *(("allgather", 4, 8), ("allgather", 5, 1024), ("allgatherv", 5, 16384), ("allgatherv", 4, 256)),
    *(("alltoall", 5, 64), ("alltoall", 4, 524288), ("barrier", 4, 0), ("barrier", 5, 0)),
    *(("reduce", 4, size) for size in (8, 4096, 65536, 262144)),
    *(("allreduce", 4, size) for size in (64, 8192)),
    *(("reduce_scatter", 4, 4096), ("reduce_scatter", 5, 262144), ("reduce_scatter_block", 5, 256)),
    *(("scan", 5, 64), ("exscan", 5, 64), ("gatherv", 5, 64), ("scatterv", 5, 64)),
]


@needs("openmpi", "openmpi-known")
@pytest.mark.parametrize("point", MONITORED, ids=lambda point: " ".join(map(str, point)))
def test_open_mpi_untuned_sends_what_the_choice_sends(point: tuple[str, int, int]) -> None:
    """One program calls MPI's own collective and our algorithm; Open MPI's monitoring counts the messages of both."""
    collective, procs, size = point
    choice = OPENMPI.choice(*point)
    assert choice is not None
    words = (collective, choice.algorithm, choice.segment_bytes, choice.parameter, size)
    seen = monitored("agree", procs, list(map(str, words)), {})
    assert seen.run.returncode == 0
    assert seen.counted == procs
    assert seen.by_program == _without(seen.by_collectives, _preparation(procs))


WRAPPED = """
void *__real_{name}(void);
void *__wrap_{name}(void) {{
    fputs("{name}\\n", stdout);
    __builtin_return(__builtin_apply((void (*)())__real_{name}, __builtin_apply_args(), 160));
}}
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `call`, linked with MPICH's archive so that each algorithm says its name when it is called."""
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
    (folder / "tracer.c").write_text(f"#include <stdio.h>\n{wrapped}")
    programs = SOURCES / "simulator/programs"
    sources = [folder / "tracer.c", programs / "call.c", programs / "workload.c", SOURCES / "algorithms/names.c"]
    made = folder / "call"
    others = [str(next(iter(sorted(libraries.glob(f"lib{name}.so*"))))) for name in ("ucp", "ucs", "hwloc")]
    command = ["gcc", "-w", "-std=gnu11", f"-I{headers}", f"-I{SOURCES / 'algorithms'}", *map(str, sources)]
    command += [f"-Wl,--wrap={name}" for name in names] + [
        str(MPICH_ARCHIVE),
        *others,
        "-lm",
        "-lpthread",
        "-lrt",
        "-ldl",
    ]
    done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


TRACED = [
    ("bcast", 3, 65536), ("bcast", 8, 12288), ("bcast", 8, 16384), ("bcast", 9, 16384), ("bcast", 8, 2**20),
    ("gather", 4, 1024), ("gatherv", 4, 1024), ("scatter", 4, 1024), ("scatterv", 4, 1024),
    ("allgather", 4, 1024), ("allgather", 3, 1024), ("allgather", 3, 32768), ("allgather", 4, 2**17),
    ("allgatherv", 4, 1024), ("allgatherv", 3, 1024), ("allgatherv", 3, 32768),
    ("alltoall", 4, 256), ("alltoall", 4, 65536), ("alltoall", 8, 256), ("alltoall", 9, 256), ("alltoall", 9, 264),
    ("alltoallv", 4, 64),
    ("barrier", 4, 0), ("reduce", 4, 2048), ("reduce", 4, 4096), ("reduce", 3, 4096),
    ("allreduce", 4, 8), ("allreduce", 4, 24), ("allreduce", 4, 32), ("allreduce", 3, 4096),
    ("reduce_scatter", 4, 4096), ("reduce_scatter", 4, 2**19), ("reduce_scatter_block", 4, 65536),
    ("reduce_scatter_block", 4, 2**17), ("scan", 4, 64), ("exscan", 4, 64),
]  # fmt: skip


@needs("mpich", "mpich-archive")
@pytest.mark.parametrize("point", TRACED, ids=lambda point: " ".join(map(str, point)))
def test_mpich_untuned_runs_the_algorithm(point: tuple[str, int, int], traced: Path) -> None:
    """MPICH calls its algorithm, as if each process were on a node of its own."""
    collective, procs, size = point
    command = ["mpirun.mpich", "-genv", "MPIR_CVAR_NOLOCAL", "1", "-n", str(procs), str(traced), collective, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    mine = [line for line in done.stdout.splitlines() if line.startswith(f"MPIR_{collective.capitalize()}_")]
    assert done.returncode == 0, done.stderr
    ends = tuple(f"_{kind}_{MPICH.decide(*point).algorithm}" for kind in ("intra", "allcomm"))
    # A scan is called for nodes first, of which each has one process here.
    assert all(line.endswith((*ends, "_intra_smp")) for line in mine)
    assert any(line.endswith(ends) for line in mine)


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
