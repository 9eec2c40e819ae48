"""The cost model of hierarchical collectives from the times of their tasks. It is equations (3) and (4) of Luo et al.
2020.

The stabilised cost of a full task stands for all full tasks. The cost is that of the slowest node leader:

    bcast      max_i T_i(ib(0)) + (u - 1) T_i(sbib(s)) + T_i(sb(u - 1))                                  (3)
    allreduce  max_i T_i(sr(0)) + T_i(irsr(1)) + T_i(ibirsr(2)) + (u - 3) T_i(sbibirsr(s))
                     + T_i(sbibir(u - 1)) + T_i(sbib(u - 1)) + T_i(sb(u - 1))                            (4)

The equations take the slowest leader for the slowest process. Where the others of its node end later, as down a tree of
messages, the time by which they do is added; it does not depend on u.

With d parts both are: the first d - 1 tasks, u - d + 1 times the stabilised one, the last d - 1 tasks. For fewer than d
- 1 segments, which (4) does not cover, the tasks of that many segments are timed themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from collwise.models.piecewise import Array
from collwise.simulator.bench import Timer
from collwise.simulator.schedule.tasks import parts_of
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.space import SEGMENTS, segments_of
from collwise.validation.hierarchy.tasks import TaskTimes, task_case, task_times


@dataclass(frozen=True)
class ByTasks:
    """A timer of whole collectives of which another one times only tasks, once for all sizes of messages.

    A pipeline is timed with `max_segments` segments, see `runs_needed`.
    """

    timer: Timer
    max_segments: int = SEGMENTS

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        """The times of whole collectives by the cost model. Raises CollwiseError if the tasks of one fail."""
        alike: dict[Case, list[Case]] = {}
        for case in cases:
            alike.setdefault(task_case(case, 1), []).append(case)
        runs = {}
        for tasks, group in alike.items():
            needed = runs_needed(tasks.collective, map(_segments, group), self.max_segments, tasks.parameter)
            runs[tasks] = [task_case(tasks, count) for count in needed]
        timings = self.timer.time([case for mine in runs.values() for case in mine])
        seconds: dict[Case, float] = {}
        for tasks, group in alike.items():
            times = [task_times(timings[case]) for case in runs[tasks]]
            seconds |= {case: cost_seconds(times, _segments(case)) for case in group}
        return {case: Timing(case, seconds[case]) for case in cases}


def _segments(case: Case) -> int:
    return segments_of(case.message_bytes, case.segment_bytes)


def runs_needed(
    collective: str, segments: Iterable[int], max_segments: int = SEGMENTS, within: int = 0
) -> tuple[int, ...]:
    """The numbers of segments with which tasks must be timed to know the costs for all these numbers.

    A pipeline is timed with `max_segments` segments, or as many as the longest one has. Numbers below d - 1 are timed
    each for itself.
    """
    asked = sorted(set(segments))
    least = len(parts_of(collective, within)) - 1
    long = [count for count in asked if count >= least]
    return (*(count for count in asked if count < least), *([min(max(long), max_segments)] if long else ()))


def cost_seconds(runs: Sequence[TaskTimes], segments: int) -> float:
    """The cost of a collective of this many segments, from timed tasks of the numbers of segments in `runs_needed`.

    Raises ValueError for a number of segments that was not provided for.
    """
    ends = len(runs[0].parts) - 1
    timed = segments if segments < ends else max(one.segments for one in runs)
    times = next((one for one in runs if one.segments == timed), None)
    if times is None or timed < ends <= segments:
        raise ValueError(f"no times of tasks for {segments} segments")
    if segments < ends:
        return times.whole_seconds
    each = times.seconds
    first, last = each[:, :ends].sum(axis=1), each[:, each.shape[1] - ends :].sum(axis=1)
    whole: Array = first + (segments - ends) * times.stable_seconds + last
    return float(whole.max()) + times.tail_seconds
