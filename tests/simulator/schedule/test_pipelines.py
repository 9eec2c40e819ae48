"""Times of long pipelines by extrapolation, against those of whole schedules."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule import pipelines
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.pipelines import KnownPlay, play_case, play_case_within, sizes_after
from collwise.simulator.schedule.tables import ACKNOWLEDGED, EAGER, RENDEZVOUS, NetworkTables
from collwise.simulator.timing import Case
from tests.simulator.schedule.test_recording import ALGORITHMS

SEGMENTED = [algorithm for algorithm in ALGORITHMS if algorithm.pipelined and not algorithm.real_mpi_only]
SEGMENT_BYTES = 1024
RATE = 1e9


def network(
    procs: int,
    sizes: np.ndarray,
    *,
    over_ports: bool,
    protocol: int,
    overhead: float,
    latency: float,
    burst: float = 0.0,
    queue: float = 0.0,
    memory: float = 0.0,
) -> NetworkTables:
    """Two processes on each node, which may share its memory with its ports, and reductions that take time."""
    tables = NetworkTables.of_model(procs, sizes, latency, 1 / RATE, overhead, protocol)
    tables = replace(
        tables,
        node_of=np.arange(procs) // 2,
        class_of=np.zeros(-(-procs // 2), dtype=np.int32),
        reduce_seconds=sizes * 2e-10,
        handshake_seconds=np.full((1, 1, len(sizes)), 3e-6),
        answer_seconds=np.full((1, 1, len(sizes)), 2e-6),
        local_latency_seconds=np.full((1, len(sizes)), 3e-7),
        local_transfer_seconds=sizes[None] * 1.5e-10,
    )
    if not over_ports:
        return tables
    rate = np.array([RATE])
    return replace(
        tables,
        out_rate=rate,
        in_rate=rate,
        burst_bytes=np.array([burst]),
        load_bytes=sizes.astype(np.float64),
        acknowledgement_share=0.05,
        send_buffer_bytes=300.0,
        queue_bytes=queue,
        memory_rate=memory,
        memory_share_of_ports=1 / 3,
    )


def whole(case: Case, **kind: object) -> np.ndarray:
    schedule = Schedule(case)
    return schedule.play(network(case.procs, schedule.sizes, **kind)).ends  # type: ignore[arg-type]


def steps_bytes(algorithm: Algorithm, procs: int) -> int:
    """The bytes that one more segment, or one in each block, takes."""
    return SEGMENT_BYTES * (procs if algorithm.name == "segmented_ring" else 1)


@settings(max_examples=60)
@given(
    st.sampled_from(SEGMENTED),
    st.integers(2, 24),
    st.integers(720, 1000),
    st.integers(0, SEGMENT_BYTES - 1),
    st.booleans(),
    st.sampled_from((EAGER, RENDEZVOUS, ACKNOWLEDGED)),
    st.sampled_from((0.0, 1e-7, 2.5e-6)),
    st.sampled_from((1e-6, 2e-5)),
    st.sampled_from((0.0, 4e4)),
    st.sampled_from((0.0, 500.0)),
    st.sampled_from((0.0, 4e9, 7e9)),
    st.randoms(use_true_random=False),
)
def test_extrapolated_times_are_those_of_the_whole_schedule(
    algorithm: Algorithm,
    procs: int,
    segments: int,
    remainder: int,
    over_ports: bool,
    protocol: int,
    overhead: float,
    latency: float,
    burst: float,
    queue: float,
    memory: float,
    chance: object,
) -> None:
    over_ports |= protocol == ACKNOWLEDGED
    procs = min(procs, 5) if algorithm.name == "segmented_ring" else procs
    root = chance.randrange(procs) if algorithm.collective in ("bcast", "reduce") else 0  # type: ignore[attr-defined]
    message_bytes = segments * steps_bytes(algorithm, procs) + remainder
    case = Case(algorithm.collective, algorithm.name, procs, message_bytes, SEGMENT_BYTES, root=root)
    kind: dict[str, Any] = {"over_ports": over_ports, "protocol": protocol, "overhead": overhead, "latency": latency}
    kind |= {"burst": burst, "queue": queue, "memory": memory}
    found = play_case(case, lambda sizes: network(procs, sizes, **kind))
    expected = whole(case, **kind)
    assert found.ends == pytest.approx(expected, rel=1e-9)
    assert (found.seconds, found.root_seconds) == (found.ends.max(), found.ends[root])


@pytest.mark.parametrize("protocol", [EAGER, RENDEZVOUS])
@pytest.mark.parametrize("over_ports", [False, True])
@pytest.mark.parametrize("remainder", [0, 500])
def test_a_chain_is_played_in_short(
    monkeypatch: pytest.MonkeyPatch, protocol: int, over_ports: bool, remainder: int
) -> None:
    """64 MiB in segments of 1 KiB: the schedules that are recorded have less than a fiftieth of the messages."""
    recorded = []

    class Counted(Schedule):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            recorded.append(self.messages)

    monkeypatch.setattr(pipelines, "Schedule", Counted)
    kind = {"over_ports": over_ports, "protocol": protocol, "overhead": 1e-7, "latency": 1e-6}
    case = Case("bcast", "chain", 16, 2**26 + remainder, SEGMENT_BYTES)
    found = play_case(case, lambda sizes: network(16, sizes, **kind))  # type: ignore[arg-type]
    assert 0 < 50 * sum(recorded) < 15 * 65536
    assert found.ends == pytest.approx(whole(case, **kind), rel=1e-9)


@pytest.mark.parametrize("algorithm", SEGMENTED, ids=lambda one: f"{one.collective} {one.name}")
def test_the_algorithm_has_a_repetition_under_a_model(monkeypatch: pytest.MonkeyPatch, algorithm: Algorithm) -> None:
    """For all segmented algorithms but a few.

    The repetitions of synchronous sends may be longer than the message. The allreduces by node wait for all their sends
    at the end, and the allgather by node broadcasts what it gathered: their ends grow with the message. The segments of
    gathers and scatters from tasks are those of blocks, and several leaders have unequal shares of the last one.
    """
    played = []
    monkeypatch.setattr(Schedule, "play_within", lambda self, network, most: played.append(network) or played)
    procs = 6
    message_bytes = 1000 * steps_bytes(algorithm, procs) + 504
    case = Case(algorithm.collective, algorithm.name, procs, message_bytes, SEGMENT_BYTES)
    play_case(case, lambda sizes: NetworkTables.of_model(procs, sizes, 1e-5, 1 / RATE, overhead_seconds=1e-7))
    exempt = algorithm.name == "two_tree" or (algorithm.by_node and algorithm.collective in ("allreduce", "allgather"))
    assert not played or exempt


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from((0.5, 0.99, 1.0, 2.0))), max_size=8))
def test_known_plays_answer_all_that_they_can(asked: list[tuple[int, float]]) -> None:
    """A whole play answers for any limit, one that was given up for no later one; two of the cases send the same."""
    cases = [Case("bcast", "chain", 6, 8000, cut) for cut in (8192, 16384, 4000)]

    def tables_of(sizes: np.ndarray) -> NetworkTables:
        return network(6, sizes, over_ports=True, protocol=EAGER, overhead=1e-7, latency=1e-6)

    whole = [play_case(case, tables_of).seconds for case in cases]
    known: list[KnownPlay] = []
    plays: list[tuple[bool, float, bool]] = []
    for number, share in asked:
        limit = share * whole[number]
        found = play_case_within(cases[number], tables_of, limit, known)
        assert found.seconds == whole[number] if found else whole[number] > limit
        if not any(cut == (number == 2) and (is_whole or limit <= most) for cut, most, is_whole in plays):
            plays.append((number == 2, limit, found is not None))
        assert len(known) == len(plays)


def test_a_slower_path_that_overtakes_later_is_seen() -> None:
    """A token bucket lets more segments pass at once than the short pipelines have; then a port slows all down."""
    kind = {"over_ports": True, "protocol": EAGER, "overhead": 2e-6, "latency": 1e-6}
    case = Case("bcast", "linear_nonblocking", 8, 2000 * SEGMENT_BYTES, SEGMENT_BYTES)
    for burst in (0.0, 3e5, 1e6):
        found = play_case(case, lambda sizes, burst=burst: network(8, sizes, burst=burst, **kind))  # type: ignore[misc]
        assert found.ends == pytest.approx(whole(case, burst=burst, **kind), rel=1e-9)


def test_sizes_are_known_only_where_sizes_and_messages_grow_evenly() -> None:
    def after(sizes: list[tuple[int, ...]], messages: tuple[int, int, int]) -> list[int] | None:
        schedules = [
            SimpleNamespace(sizes=np.array(own, dtype=np.uint64), messages=count)
            for own, count in zip(sizes, messages, strict=True)
        ]
        found = sizes_after(cast("list[Schedule]", schedules), range(3), 10)
        return None if found is None else found.tolist()

    even = [(8, 100), (8, 120), (8, 140)]
    assert after(even, (4, 6, 8)) == [8, 300]
    assert after([(8, 100), (8, 120), (8, 141)], (4, 6, 8)) is None
    assert after([(8, 100), (8, 120), (8, 140, 1)], (4, 6, 8)) is None
    assert after(even, (4, 6, 9)) is None
    assert after(even, (4, 4, 4)) is None
    assert after([(8, 100), (8, 80), (8, 60)], (4, 6, 8)) is None
