"""The recorded messages of the algorithms: checks that no run on a cluster can give."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.folders import SOURCES
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.tables import EAGER, RENDEZVOUS, NetworkTables
from collwise.simulator.timing import Case
from collwise.validation.libraries.baselines import library_decisions

RECORDED = [one for one in Catalogue.load().algorithms() if not one.real_mpi_only]
ALGORITHMS = [one for one in RECORDED if not one.guideline]
"""Those whose messages do not depend on an MPI library."""


def case_of(algorithm: Algorithm, procs: int, message_bytes: int, root: int = 0) -> Case:
    part_bytes = max(2, message_bytes // 5) if algorithm.part_parameter else 0
    return Case(algorithm.collective, algorithm.name, procs, message_bytes, part_bytes, root=root)


def flat_network(
    schedule: Schedule,
    latency_seconds: float = 0.0,
    seconds_per_byte: float = 0.0,
    *,
    protocol: int = EAGER,
    over_ports: bool = False,
) -> NetworkTables:
    """A network of equal nodes, one process on each, without overheads."""
    tables = NetworkTables.of_model(
        schedule.procs, schedule.sizes, latency_seconds, seconds_per_byte, protocol=protocol
    )
    if not over_ports:
        return tables
    rate = np.array([1 / seconds_per_byte])
    return replace(tables, out_rate=rate, in_rate=rate, burst_bytes=np.zeros(1), load_bytes=schedule.sizes)


@given(st.sampled_from(RECORDED), st.integers(1, 257), st.integers(0, 5000), st.randoms(use_true_random=False))
def test_every_send_meets_a_receive_of_its_size_whatever_the_protocol(
    algorithm: Algorithm, procs: int, message_bytes: int, chance: object
) -> None:
    if algorithm.objection(procs):
        return
    root = chance.randrange(procs)  # type: ignore[attr-defined]
    schedule = Schedule(case_of(algorithm, procs, message_bytes, root), library=library_decisions())
    for protocol in (EAGER, RENDEZVOUS):
        seconds = schedule.play(flat_network(schedule, 1e-5, 1e-9, protocol=protocol)).seconds
        assert (seconds > 0) == (schedule.messages > 0)


@pytest.mark.parametrize("procs", [4096, 16384])
@pytest.mark.parametrize(
    ("collective", "name"),
    [("bcast", "binomial"), ("gather", "binomial"), ("barrier", "bruck"), ("allreduce", "rabenseifner")],
)
def test_large_process_counts_do_not_deadlock_with_synchronous_sends(collective: str, name: str, procs: int) -> None:
    schedule = Schedule(case_of(Catalogue.load().algorithm(collective, name), procs, 8 * procs))
    assert schedule.play(flat_network(schedule, 1e-5, 1e-9, protocol=RENDEZVOUS)).seconds > 0


@given(st.integers(2, 257))
def test_trees_send_one_message_to_each_process_but_the_root(procs: int) -> None:
    for name in ("linear", "chain", "k_chain", "binary", "binomial", "knomial"):
        schedule = Schedule(Case("bcast", name, procs, 1000))
        assert (schedule.messages, schedule.message_bytes) == (procs - 1, 1000 * (procs - 1)), name


@given(st.integers(2, 257))
def test_messages_and_rounds_of_the_literature(procs: int) -> None:
    """Thakur, Rabenseifner & Gropp 2005, section 2, and Bruck et al. 1997: rounds and volumes of each process."""
    steps = (procs - 1).bit_length()
    assert Schedule(Case("bcast", "chain", procs, 8)).rounds() == procs - 1
    assert Schedule(Case("bcast", "binomial", procs, 8)).rounds() == procs.bit_length() - 1
    for collective, name, depth, sent in (
        ("allgather", "ring", procs - 1, procs - 1),
        ("allgather", "bruck", steps, procs - 1),
        ("alltoall", "pairwise", procs - 1, procs - 1),
        ("alltoall", "bruck", steps, sum(bin(i).count("1") for i in range(procs))),
        ("barrier", "bruck", steps, 0),
    ):
        schedule = Schedule(Case(collective, name, procs, 8 if collective != "barrier" else 0))
        assert schedule.rounds() == depth, name
        assert schedule.message_bytes == 8 * sent * procs, name


@pytest.mark.parametrize("procs", [2, 4, 8, 64, 128])
def test_allreduces_of_a_power_of_two(procs: int) -> None:
    """Thakur, Rabenseifner & Gropp 2005, section 2.4: log2 P rounds of m, and 2 log2 P rounds of 2 (P - 1) / P m."""
    steps, message_bytes = procs.bit_length() - 1, 8 * procs
    doubling = Schedule(Case("allreduce", "recursive_doubling", procs, message_bytes))
    assert (doubling.rounds(), doubling.message_bytes) == (steps, steps * procs * message_bytes)
    halving = Schedule(Case("allreduce", "rabenseifner", procs, message_bytes))
    assert (halving.rounds(), halving.message_bytes) == (2 * steps, 2 * (procs - 1) * message_bytes)


def test_processes_that_do_the_same_share_a_program() -> None:
    ring = Schedule(Case("allreduce", "ring", 1024, 2**20))
    assert ring.programs == 1
    assert ring.messages == 2 * 1023 * 1024
    assert ring.memory_bytes < 2**17
    # 16.8 million messages.
    assert Schedule(Case("alltoall", "pairwise", 4096, 8)).memory_bytes < 2**18


def test_sizes_that_processes_tell_one_another_arrive_in_the_recording() -> None:
    """The chains and binomial trees of gatherv and scatterv send the sizes of blocks before these."""
    # Of the children below other processes than the root, and of the subtrees with several processes and their ends.
    in_trees = {"gatherv": 4, "scatterv": 3 + 5 + 3}
    for collective in ("gatherv", "scatterv"):
        for root in (0, 5):
            schedule = Schedule(Case(collective, "chain", 9, 1000, root=root))
            assert schedule.message_bytes == sum(range(1, 9)) * 1000 + sum(range(1, 8)) * 8
            tree = Schedule(Case(collective, "binomial", 9, 1000, root=root))
            assert tree.message_bytes == 13 * 1000 + in_trees[collective] * 8


def test_a_placement_gives_each_process_a_node() -> None:
    """Algorithms that split no communicator do not depend on it; tests/c/test_splits.c has some that do."""
    case = Case("allreduce", "ring", 12, 8 * 12)
    for node_of in (None, np.arange(12) % 3, [0] * 12):
        placed = Schedule(case, node_of)
        assert (placed.programs, placed.messages) == (1, 2 * 11 * 12)
    with pytest.raises(UsageError, match="node_of places 11 processes, not 12"):
        Schedule(case, [0] * 11)
    with pytest.raises(UsageError, match="a process is on a node with a negative number"):
        Schedule(case, [*range(11), -1])


def test_errors_name_what_is_wrong() -> None:
    for case, expected in (
        (Case("bcast", "none", 4, 8), "unknown algorithm"),
        (Case("allgather", "neighbor_exchange", 5, 8), "needs an even number of processes"),
        (Case("bcast", "chain", 4, 8, experiment="builtin"), "unknown experiment"),
    ):
        with pytest.raises(UsageError, match=expected):
            Schedule(case)
    assert issubclass(UsageError, CollwiseError)


@pytest.mark.parametrize(
    ("statement", "compiles"),
    [
        ("MPI_Send(data, 1, MPI_BYTE, 0, 1, comm)", True),
        ("MPI_Bcast(data, 1, MPI_BYTE, 0, comm)", False),
        ("MPI_Comm_split(comm, 0, 0, &comm); MPI_Comm_free(&comm)", True),
        ("MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm)", True),
        ("MPI_Comm_dup(comm, &comm)", False),
        ("MPI_Comm_create_group(comm, 0, 0, &comm)", False),
    ],
)
def test_calls_that_cannot_be_recorded_do_not_compile(tmp_path: Path, statement: str, compiles: bool) -> None:
    source = tmp_path / "algorithm.c"
    text = '#include "internal.h"\nvoid run(char *data, MPI_Comm comm);\n'
    source.write_text(f"{text}void run(char *data, MPI_Comm comm) {{ {statement}; }}\n")
    include = [
        f"-I{SOURCES / folder}"
        for folder in ("simulator/schedule/recording", "algorithms", "algorithms/worlds/recorded")
    ]
    command = ["gcc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", *include, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == compiles, done.stderr


def test_the_memory_of_a_process_may_be_longer_than_a_machine_has() -> None:
    """All messages to another node pass through one process of the own one, which holds 16 TiB."""
    case = Case("alltoall", "tasks_pairwise", 128, 2**30, processes_per_node=64)
    long, short = Schedule(case), Schedule(replace(case, message_bytes=2**20))
    assert long.message_bytes == 2**10 * short.message_bytes
