"""The cost model of hierarchical collectives from the times of their tasks: equations (3) and (4) of Luo et al. 2020.

The stabilised cost of a full task stands for all full tasks. The cost is that of the slowest node leader:

    bcast      max_i T_i(ib(0)) + (u - 1) T_i(sbib(s)) + T_i(sb(u - 1))                                  (3)
    allreduce  max_i T_i(sr(0)) + T_i(irsr(1)) + T_i(ibirsr(2)) + (u - 3) T_i(sbibirsr(s))
                     + T_i(sbibir(u - 1)) + T_i(sbib(u - 1)) + T_i(sb(u - 1))                            (4)

The equations take the slowest leader for the slowest process. Where the others of its node end later, as down a tree of
messages, the time by which they do is added; it does not depend on u.

With d parts both are: the first d - 1 tasks, u - d + 1 times the stabilised one, the last d - 1 tasks. For fewer than
d - 1 segments, of which (4) says nothing, the tasks of so many segments are timed themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collwise.models.piecewise import Array
from collwise.simulator.schedule.tasks import parts_of
from collwise.validation.hierarchy.tasks import SEGMENTS, TaskTimes


def runs_needed(collective: str, segments: Iterable[int], most: int = SEGMENTS, within: int = 0) -> tuple[int, ...]:
    """The numbers of segments with which tasks must be timed, so that costs for all those numbers follow.

    A pipeline is timed with `most` segments, or as many as the longest one has; numbers below d - 1 each for itself.
    """
    asked = sorted(set(segments))
    least = len(parts_of(collective, within)) - 1
    long = [count for count in asked if count >= least]
    return (*(count for count in asked if count < least), *([min(max(long), most)] if long else ()))


def cost_seconds(runs: Sequence[TaskTimes], segments: int) -> float:
    """The cost of a collective of so many segments, from timed tasks of the numbers of segments of `runs_needed`.

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
