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


def stable(full: list[float]) -> float:
    """The mean of the second half of full tasks, of an even number of them, since costs may alternate."""
    later = next(count for count in range(0, 2 * len(full) + 2, 2) if 2 * count >= len(full))
    return float(np.mean(full[-later:])) if full else 0.0


@given(
    collective=st.sampled_from(("bcast", "reduce", "allreduce")), asked=st.sets(st.integers(1, 500), min_size=1),
    most=st.integers(1, 9), leaders=st.integers(1, 4), tail=SECONDS, seed=st.integers(0, 2**32),
)  # fmt: skip
def test_costs_follow_equations_3_and_4_from_the_runs_that_are_needed(
    collective: str, asked: set[int], most: int, leaders: int, tail: float, seed: int
) -> None:
    """Fewer segments than fill the pipeline are timed themselves."""
    random = np.random.default_rng(seed)
    ends = len(task_names(collective, 1)) - 1
    most = max(most, ends)
    runs = runs_needed(collective, asked, most)
    short, long = sorted(one for one in asked if one < ends), [min(max(asked), most)]
    assert runs == (*short, *(long if max(asked) >= ends else []))
    each = {one: random.uniform(1e-7, 1e-2, (leaders, one + ends)) for one in runs}
    times = [TaskTimes(collective, one, seconds, tail) for one, seconds in each.items()]
    for segments in asked:
        if segments < ends:
            expected = max(sum(row) for row in each[segments].tolist())
        else:
            rows = each[runs[-1]].tolist()
            expected = max(
                sum(row[:ends]) + (segments - ends) * stable(row[ends : len(row) - ends]) + sum(row[len(row) - ends :])
                for row in rows
            )
        assert cost_seconds(times, segments) == pytest.approx(expected + tail)
    assert [one.whole_seconds for one in times] == pytest.approx(
        [max(map(sum, each[one.segments].tolist())) + tail for one in times]
    )
    for missing in {*range(1, ends)} - {*runs}:
        with pytest.raises(ValueError, match=f"{missing} segments"):
            cost_seconds(times, missing)


def test_times_of_tasks_come_from_the_instants_at_which_they_end() -> None:
    case = Case("bcast", "tasks_chain", 4, 100, 50, experiment="tasks", processes_per_node=2)
    times = task_times(Timing(case, 7.0, samples=(1.0, 3.0, 4.0, 2.0, 5.0, 6.5)))
    assert times.seconds.tolist() == [[1.0, 2.0, 1.0], [2.0, 3.0, 1.5]]
    assert times.tail_seconds == pytest.approx(0.5)
    with pytest.raises(CollwiseError, match="2 end times; expected 3 for each leader"):
        task_times(Timing(case, 7.0, samples=(1.0, 3.0)))
    with pytest.raises(CollwiseError, match="out of memory"):
        task_times(Timing(case, 7.0, error="out of memory"))
