"""Times of tasks: the benchmark program under SMPI and on real MPI, and the schedule engine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from collwise.platforms import Platform, load
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.schedule.tasks import BY_SOCKET
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing
from tests.needs import needs

SEGMENT = 32768
ALLREDUCE_LAG, BCAST_LAG = 3, 1


def tasks_of(collective: str, algorithm: str, segments: int, nodes: int = 4, per_node: int = 2) -> Case:
    return Case(
        *(collective, f"tasks_{algorithm}", nodes * per_node, segments * SEGMENT, SEGMENT),
        processes_per_node=per_node,
        experiment="tasks",
    )


BOTH = [tasks_of("bcast", "binary", 5), tasks_of("allreduce", "chain", 4)]
LAGS = {"bcast": BCAST_LAG, "allreduce": ALLREDUCE_LAG}
ENGINE = pytest.param("schedule")
ENGINES_HERE = [ENGINE, pytest.param("smpi", marks=needs("smpi"))]


def simulated(engine: str, cases: list[Case], folder: Path) -> list[Timing]:
    with Store(folder / "store.sqlite") as store:
        result = SimulationContext(store, ENGINES[engine], jobs=1).simulate(load("stampede2"), cases).complete()
    return [result.timings[case] for case in cases]


def ends_of(timing: Timing, tasks: int) -> np.ndarray:
    assert timing.samples is not None
    return np.array(timing.samples).reshape(-1, tasks)


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_ends_of_tasks_lead_to_the_end_of_the_whole(engine: str, tmp_path: Path) -> None:
    wholes = [replace(case, experiment="collective") for case in BOTH]
    timings = simulated(engine, [*BOTH, *wholes], tmp_path)
    for case, timing, whole in zip(BOTH, timings, timings[len(BOTH) :], strict=False):
        segments = case.message_bytes // SEGMENT
        ends = ends_of(timing, segments + LAGS[case.collective])
        assert len(ends) == case.nodes
        assert (np.diff(ends, axis=1) >= 0).all()
        assert ends[:, 0].min() > 0
        assert timing.seconds == pytest.approx(whole.seconds, rel=1e-12)
        # Others of a node may end after its leader, by no more than a broadcast within the node.
        assert 0 <= timing.seconds - ends[:, -1].max() < 0.2 * timing.seconds


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_a_third_level_is_between_the_sockets_that_the_platform_describes(engine: str, tmp_path: Path) -> None:
    """A task more in each direction; the step between two sockets takes a leader as long as one message."""
    whole = replace(tasks_of("allreduce", "chain", 2, per_node=4), parameter=BY_SOCKET)
    bcast = replace(tasks_of("bcast", "chain", 2, per_node=4), parameter=BY_SOCKET)
    alone = replace(bcast, experiment="tasks:1:2:nb")
    three, two, between = simulated(engine, [whole, replace(whole, parameter=0), alone], tmp_path)
    assert len(ends_of(three, 2 + 5)) == len(ends_of(two, 2 + 3)) == whole.nodes
    platform = load("stampede2")
    assert isinstance(platform, Platform)
    message = platform.loopback_latency_seconds + SEGMENT / platform.loopback_bytes_per_second
    assert ends_of(between, 1) == pytest.approx(message, rel=0.5)


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_some_tasks_and_steps_alone(engine: str, tmp_path: Path) -> None:
    whole = tasks_of("bcast", "chain", 2)
    windows = ("tasks:0:1:", "tasks:0:2:", "tasks:0:1:ib", "tasks:1:2:sb", "tasks:1:2:sbib", "tasks:1:2:ib")
    cases = [whole, *(replace(whole, experiment=window) for window in windows)]
    full, first, two, ib, sb, both, second_ib = (
        ends_of(timing, tasks)
        for timing, tasks in zip(simulated(engine, cases, tmp_path), (3, 1, 2, 1, 1, 1, 1), strict=True)
    )
    # In the whole, those that are done go on with tasks whose messages share links with what others still wait for.
    assert first == pytest.approx(full[:, :1], rel=0.02)
    assert two[:, 0] == pytest.approx(full[:, 0], rel=0.02)
    assert ib == pytest.approx(first, rel=1e-9)
    assert second_ib == pytest.approx(ib, rel=1e-9)  # the same on another segment
    assert np.ptp(sb) < 1e-9  # all nodes are alike
    assert (both >= np.maximum(sb, ib) * (1 - 1e-9)).all()
    assert (both <= (sb + ib) * (1 + 1e-9)).all()
    # Down a chain each leader has the segment later than the one before.
    assert all(one < other for one, other in pairwise(first[:-1, 0]))


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_uneven_nodes_and_one_process_a_node(engine: str, tmp_path: Path) -> None:
    uneven = replace(tasks_of("allreduce", "binomial", 3), procs=7)
    single = tasks_of("bcast", "binary", 2, nodes=4, per_node=1)
    [first, second] = simulated(engine, [uneven, single], tmp_path)
    assert ends_of(first, 3 + ALLREDUCE_LAG).shape == (4, 6)
    assert ends_of(second, 2 + BCAST_LAG).shape == (4, 3)


@pytest.mark.parametrize("engine", ENGINES_HERE)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "chain"}, "the algorithm is not made of tasks"),
        ({"experiment": "tasks:2:1:"}, "unknown experiment"),
        ({"experiment": "tasks:0:1:SB"}, "unknown experiment"),
        ({"experiment": "tasked"}, "unknown experiment"),
    ],
)
def test_wrong_cases(engine: str, change: dict[str, str], message: str, tmp_path: Path) -> None:
    case = replace(tasks_of("bcast", "chain", 2), **change)
    with Store(tmp_path / "store.sqlite") as store:
        result = SimulationContext(store, ENGINES[engine], jobs=1).simulate(load("stampede2"), [case])
    assert message in result.timings[case].error


@needs("smpi")
def test_both_engines_agree_where_messages_wait_for_nothing(tmp_path: Path) -> None:
    """The schedule engine's chain has no arbitrary order: every leader has one message in and one out."""
    case = tasks_of("bcast", "chain", 6)
    [one], [other] = (simulated(engine, [case], tmp_path) for engine in ("schedule", "smpi"))
    assert ends_of(one, 7) == pytest.approx(ends_of(other, 7), rel=0.25)


@needs("openmpi")
def test_real_mpi_reports_medians_of_leaders(tmp_path: Path) -> None:
    cases = [
        replace(case, procs=4, processes_per_node=4)
        for case in (tasks_of("bcast", "binary", 3), tasks_of("allreduce", "chain", 2))
    ]
    method = Method(precision=Precision(3, 3))
    with Store(tmp_path / "store.sqlite") as store:
        timings = measure(LocalMachine("openmpi"), cases, store, method)
    for timing, tasks in zip(timings, (4, 5), strict=True):
        ends = ends_of(timing, tasks)
        assert ends.shape == (1, tasks)  # all processes of this machine are on one node
        assert (ends > 0).all()
        assert timing.repetitions == 3
