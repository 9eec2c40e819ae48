"""The cost model: equations (3) and (4) of Luo et al. 2020, and which runs of tasks they need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.schedule.tasks import BY_SOCKET
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.cost_model import TaskTimes, cost_seconds, runs_needed, task_names, task_times

SECONDS = st.floats(1e-7, 1e-2)


def test_tasks_have_the_papers_names() -> None:
    assert task_names("bcast", 3) == ["ib(0)", "sbib(1)", "sbib(2)", "sb(2)"]
    assert task_names("allreduce", 4) == [
        *("sr(0)", "irsr(1)", "ibirsr(2)", "sbibirsr(3)"),
        *("sbibir(3)", "sbib(3)", "sb(3)"),
    ]
    assert task_names("allreduce", 1) == ["sr(0)", "ir(0)", "ib(0)", "sb(0)"]
    assert task_names("reduce", 2) == ["sr(0)", "irsr(1)", "ir(1)"]
    assert task_names("bcast", 2, BY_SOCKET) == ["ib(0)", "nbib(1)", "sbnb(1)", "sb(1)"]
    assert task_names("allreduce", 1, BY_SOCKET) == ["sr(0)", "nr(0)", "ir(0)", "ib(0)", "nb(0)", "sb(0)"]
    with pytest.raises(UsageError, match="collective with tasks 'gather'; valid: bcast, reduce, allreduce"):
        task_names("gather", 2)


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=1, max_size=6), st.integers(1, 8), st.integers(1, 500))
def test_equation_3(leaders: list[tuple[float, float, float]], timed: int, segments: int) -> None:
    ib, sbib, sb = (np.array(values)[:, None] for values in zip(*leaders, strict=True))
    times = TaskTimes("bcast", timed, np.hstack([ib, np.repeat(sbib, timed - 1, axis=1), sb]))
    if timed == 1 and segments > 1:
        return  # without sbib nothing is known about it
    expected = max(one + (segments - 1) * full + last for one, full, last in leaders)
    assert cost_seconds([times], segments) == pytest.approx(expected)


@given(
    st.lists(st.tuples(*[SECONDS] * 7), min_size=1, max_size=6),
    st.integers(4, 9),
    st.integers(3, 500),
)
def test_equation_4(leaders: list[tuple[float, ...]], timed: int, segments: int) -> None:
    columns = [np.array(values)[:, None] for values in zip(*leaders, strict=True)]
    each = np.hstack([*columns[:3], np.repeat(columns[3], timed - 3, axis=1), *columns[4:]])
    expected = max(sum(one[:3]) + (segments - 3) * one[3] + sum(one[4:]) for one in leaders)
    assert cost_seconds([TaskTimes("allreduce", timed, each)], segments) == pytest.approx(expected)


def test_the_model_is_exact_for_what_was_timed() -> None:
    each = np.random.default_rng(3).uniform(1e-6, 1e-4, (5, 9))
    times = TaskTimes("bcast", 8, each, tail_seconds=2e-6)
    assert cost_seconds([times], 2) == pytest.approx((each[:, 0] + times.stable_seconds + each[:, -1]).max() + 2e-6)
    assert times.whole_seconds == pytest.approx(each.sum(axis=1).max() + 2e-6)


def test_alternating_costs_are_averaged_over_pairs() -> None:
    full = [9.0, 2.0, 4.0, 2.0, 4.0, 2.0, 4.0]
    assert TaskTimes("bcast", 8, np.array([[1.0, *full, 1.0]])).stable_seconds == pytest.approx([3.0])
    # Of three full tasks the last two count, and a single one is all there is.
    assert TaskTimes("bcast", 4, np.array([[1.0, 9.0, 2.0, 4.0, 1.0]])).stable_seconds == pytest.approx([3.0])
    assert TaskTimes("bcast", 2, np.array([[1.0, 5.0, 1.0]])).stable_seconds == pytest.approx([5.0])
    assert TaskTimes("bcast", 1, np.array([[1.0, 1.0]])).stable_seconds == pytest.approx([0.0])


@pytest.mark.parametrize(
    ("collective", "segments", "runs"),
    [
        ("bcast", (1, 2, 256), (8,)),
        ("bcast", (1, 4), (4,)),
        ("bcast", (1,), (1,)),
        ("allreduce", (1, 2, 3, 4, 64), (1, 2, 8)),
        ("allreduce", (1, 2), (1, 2)),
        ("allreduce", (3,), (3,)),
    ],
)
def test_runs_that_are_needed(collective: str, segments: tuple[int, ...], runs: tuple[int, ...]) -> None:
    assert runs_needed(collective, segments) == runs


def test_few_segments_of_an_allreduce_are_timed_themselves() -> None:
    pipeline = TaskTimes("allreduce", 5, np.ones((2, 8)))
    single = TaskTimes("allreduce", 1, np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 8.0]]), tail_seconds=0.5)
    runs = [single, pipeline]
    assert cost_seconds(runs, 1) == pytest.approx(11.5)
    assert cost_seconds(runs, 10) == pytest.approx(13.0)
    with pytest.raises(ValueError, match="2 segments"):
        cost_seconds(runs, 2)


def test_times_of_tasks_come_from_the_instants_at_which_they_end() -> None:
    case = Case("bcast", "tasks_chain", 4, 100, 50, experiment="tasks", processes_per_node=2)
    times = task_times(Timing(case, 7.0, samples=(1.0, 3.0, 4.0, 2.0, 5.0, 6.5)))
    assert times.seconds.tolist() == [[1.0, 2.0, 1.0], [2.0, 3.0, 1.5]]
    assert times.tail_seconds == pytest.approx(0.5)
    with pytest.raises(CollwiseError, match="2 end times; expected 3 for each leader"):
        task_times(Timing(case, 7.0, samples=(1.0, 3.0)))
    with pytest.raises(CollwiseError, match="out of memory"):
        task_times(Timing(case, 7.0, error="out of memory"))
