"""The C unit tests, and the verification of every algorithm on real data under every engine."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from collwise.common.folders import SOURCES, cache_folder
from collwise.simulator.execution.launchers import LocalMachine
from collwise.validation.correctness import verification
from collwise.validation.correctness.verification import VerificationResult, verify, verify_hierarchical
from tests.algorithms.compiling import built_from, mistaken_sources
from tests.needs import each, need, needs

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = tomllib.loads((ROOT / "algorithms" / "catalogue.toml").read_text(encoding="utf-8"))
ALGORITHMS = {(collective, entry["name"]) for collective, about in CATALOGUE.items() for entry in about["algorithm"]}
ISOLATION = {
    "wildcard_receive",
    "pending_message",
    "overlapping_communicators",
    "freed_communicator",
    "two_threads",
}
LAUNCHERS = {"smpi": "smpirun", "openmpi": "mpirun.openmpi", "mpich": "mpirun.mpich"}

each_engine = pytest.mark.parametrize("library", each(*LAUNCHERS))


def test_simulated_process_counts_have_powers_of_two_and_their_neighbours() -> None:
    procs = verification.PROCS["smpi"]
    assert sorted(set(procs)) == list(procs)
    assert {2**k for k in range(7)} <= {*procs}
    assert {2**k + 1 for k in range(6)} <= {*procs}


def build_sanitized(directory: Path, mpi: str) -> None:
    configure = ["cmake", "-S", str(ROOT), "-B", str(directory), "-G", "Ninja"]
    configure += [f"-DCOLLWISE_MPI={mpi}", "-DCOLLWISE_SANITIZE=ON"]
    for command in (configure, ["cmake", "--build", str(directory)]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr


def assert_all_right(results: list[VerificationResult]) -> None:
    assert [result for result in results if not result.ok] == []
    assert {(result.collective, result.algorithm) for result in results} == ALGORITHMS | {
        ("isolation", name) for name in ISOLATION
    }


def test_parts_in_c_without_mpi_pass_their_tests_under_sanitizers() -> None:
    """Topologies, recordings and plays; all other tests run these as they are optimized."""
    directory = ROOT / "build/schedule-sanitized"
    build_sanitized(directory, "none")
    done = subprocess.run(
        ["ctest", "--test-dir", str(directory), "--output-on-failure"], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed" in done.stdout


@each_engine
def test_every_algorithm_is_right(library: str, yielding_mpich: None) -> None:
    progress: list[str] = []
    assert_all_right(verify([library], quick=True, on_progress=progress.append))
    assert any("bcast split_binary, P = 3" in line for line in progress)


@pytest.mark.slow
@each_engine
def test_every_algorithm_is_right_for_many_sizes(library: str, yielding_mpich: None) -> None:
    assert_all_right(verify([library]))


@pytest.mark.slow
@needs("smpi-built")
def test_every_algorithm_is_right_under_a_newer_simgrid() -> None:
    versions = [path.parent.name.removeprefix("simgrid-") for path in cache_folder().glob("*/.complete")]
    for version in versions:
        assert_all_right(verify(["smpi"], smpi_version=version))


@needs("smpi")
def test_one_algorithm_can_be_chosen() -> None:
    (result,) = verify(["smpi"], collective="gather", algorithm="linear", quick=True)
    assert (result.collective, result.algorithm) == ("gather", "linear")
    assert result.ok
    assert result.procs == verification.QUICK_PROCS["smpi"]


@needs("openmpi")
def test_hierarchical_algorithms_alone_on_a_target() -> None:
    machine = LocalMachine("openmpi")
    machine.usual_procs = 3
    results = verify_hierarchical(machine, "barrier")
    entries = CATALOGUE["barrier"]["algorithm"]
    assert [result.algorithm for result in results] == [one["name"] for one in entries if one.get("by_node")]
    assert all(result.ok and result.procs == (3,) for result in results)


@pytest.mark.slow
@needs("openmpi")
def test_no_memory_error_under_openmpi(tmp_path: Path) -> None:
    build_sanitized(tmp_path, "openmpi")
    program = tmp_path / "verify"
    root_rights = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-np", "5", str(program), "--quick"],
        env=os.environ | root_rights | {"ASAN_OPTIONS": "detect_leaks=0"},  # Open MPI itself leaks
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines() if '"cases"' in line]
    assert len(reports) == len(ALGORITHMS) + len(ISOLATION)
    assert all(report["failures"] == 0 for report in reports)


@each_engine
def test_missing_engine_is_a_failed_result(library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (result,) = verify([library], quick=True)
    assert not result.ok
    assert result.first_failure is not None
    assert f"{LAUNCHERS[library]} not found" in result.first_failure


# The deliberate errors: file, text, its replacement; the algorithm that must fail, and a word of the complaint.
MISTAKES = {
    "segment lost": ("algorithms/parts.c", "collwise_min(segment->size, segment->end - segment->first)",
                     "segment->end - segment->first < segment->size ? 0 : segment->size", "bcast chain", "wrong byte"),
    "segment cut short": ("algorithms/bcast/tree_bcast.c", "segment.count, collwise_tree_child",
                          "segment.count - (segment.first > 0), collwise_tree_child", "bcast binary", "wrong byte"),
    "wrong partner": ("algorithms/topology/tree.c", "v % 2 == 1 ? v + 1 : v - 1", "v % 2 == 1 ? v - 1 : v + 1",
                      "bcast split_binary", "MPI_ERR_TRUNCATE"),
    "blocks in the wrong order": ("algorithms/gather/binomial.c",
                                  "collwise_copy(all, by_virtual_rank + until_last_rank",
                                  "collwise_copy(all, by_virtual_rank", "gather binomial", "wrong byte"),
    "layout ignored": ("algorithms/bytes.c", "view.bytes > 0 && !collwise_is_contiguous(type)", "0", "bcast linear",
                       "wrong byte"),
    "adjacent blocks taken to start at 0": ("algorithms/types.c", "low != 0 || extent", "extent", "bcast linear",
                                            "adjacent"),
    "stride ignored": ("algorithms/worlds/simulated/layout.c", "(MPI_Aint)index * of->integers[2] * extent",
                       "(MPI_Aint)index * of->integers[1] * extent", "alltoall linear", "wrong byte"),
    "own block in place forgotten": ("algorithms/collwise.c", "collwise_blocks_pack(receive, rank);", "(void)rank;",
                                     "gather linear", "wrong byte"),
    "displacement off": ("algorithms/blocks.c", "blocks->displacements[rank] :",
                         "blocks->displacements[rank] + (rank == 1) :", "allgatherv ring", "wrong byte"),
    "gaps overlooked": ("algorithms/blocks.c", "start_of(blocks, rank) != next", "0", "allgatherv ring",
                        "wrong byte"),
    "piece in the wrong place": ("algorithms/gather/linear.c", "(size_t)rank * block_bytes + part.first",
                                 "(size_t)rank * block_bytes", "gather lmo", "wrong byte"),
    "piece sent twice": ("algorithms/scatter/linear.c", "(size_t)rank * block_bytes + part.first",
                         "(size_t)rank * block_bytes", "scatter lmo", "wrong byte"),
    "operands swapped": ("algorithms/operation.c", "if (op->commutative) {", "if (1) {",
                         "scan recursive_doubling", "non-commutative"),
    "operands with holes swapped": ("algorithms/worlds/reduction.c", "MPI_Reduce_local(left_layout, right_layout,",
                                    "MPI_Reduce_local(right_layout, left_layout,", "allreduce recursive_doubling",
                                    "wrong byte"),
    "one round missing": ("algorithms/barrier/bruck.c", "distance < procs", "2 * distance < procs", "barrier bruck",
                          "left the barrier"),
    "the program's own communicator": ("algorithms/communicator.c", "return *private;", "return comm;",
                                       "isolation wildcard_receive", "Deadlock"),
    "private communicator never freed": ("algorithms/communicator.c", "status = MPI_Comm_free(private)", "status = 0",
                                         "isolation freed_communicator", "not freed"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_in_the_present_code(mistake: str) -> None:
    file, text, *_ = MISTAKES[mistake]
    assert (SOURCES / file).read_text(encoding="utf-8").count(text) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_algorithm_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("smpi")
    file, text, replacement, algorithm, word = MISTAKES[mistake]
    mistaken_sources(tmp_path, file, text, replacement)
    built_from(tmp_path, monkeypatch)

    results = verify(["smpi"], quick=True)
    failed = {f"{r.collective} {r.algorithm}": r.first_failure or "" for r in results if not r.ok}
    assert word in failed[algorithm]
