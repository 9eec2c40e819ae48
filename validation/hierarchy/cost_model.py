"""The tasks of hierarchical collectives, their times on each node's leader, and the cost model that adds them up.

A message of u segments is processed in steps. In step s, part k of the collective works on segment s - k, if there is
such a segment. In a broadcast, part 0 is the broadcast between nodes, ib, and part 1 is the broadcast within nodes, sb.
What a leader does in one step is a task: ib(0), sbib(1), ..., sbib(u - 1), sb(u - 1) for a broadcast. As in the paper,
the name of a task lists its parts with the last one first. With three levels, there are two more parts between the
sockets of a node, nb and nr.

The model is equations (3) and (4) of Luo et al. 2020, section III. A task is full if every part works in it. All full
tasks are assumed to take the same time, the stabilised cost. The cost of the collective is that of the slowest node
leader:

    bcast      max_i T_i(ib(0)) + (u - 1) T_i(sbib(s)) + T_i(sb(u - 1))                                  (3)
    allreduce  max_i T_i(sr(0)) + T_i(irsr(1)) + T_i(ibirsr(2)) + (u - 3) T_i(sbibirsr(s))
                     + T_i(sbibir(u - 1)) + T_i(sbib(u - 1)) + T_i(sb(u - 1))                            (4)

The equations assume that the slowest leader is the slowest process. If other processes of its node end later, for
example in a tree of messages, their delay is added; it does not depend on u.

With d parts, both equations add the first d - 1 tasks, u - d + 1 times the stabilised task, and the last d - 1 tasks.
For fewer than d - 1 segments, which (4) does not cover, the tasks are timed with exactly that many segments.

`study_tasks` times the tasks for figures 2 and 6 of the paper (the overlap of parts) and figure 3 (the trend of tasks).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.common.grouping import grouped
from collwise.models.piecewise import Array
from collwise.simulator.bench import Timer
from collwise.simulator.schedule.tasks import BY_SOCKET, EXPERIMENT, parts_of
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.space import SEGMENTS, segments_of


def task_names(collective: str, segments: int, within: int = 0) -> list[str]:
    """The tasks of a leader in their order: ['ib(0)', 'sbib(1)', 'sb(1)'] for a broadcast of two segments."""
    parts = parts_of(collective, within)
    names = []
    for step in range(segments + len(parts) - 1):
        present = [part for number, part in enumerate(parts) if 0 <= step - number < segments]
        names.append(f"{''.join(reversed(present))}({min(step, segments - 1)})")
    return names


@dataclass(frozen=True)
class TaskTimes:
    """The seconds that each leader (first axis) took for each task (second axis) of a message of `segments` segments.

    `tail_seconds` is the time from the end of the last leader to the end of the last process, for example in a tree
    within a node. `within` says how the processes of a node communicate, for example by socket.
    """

    collective: str
    segments: int
    seconds: Array
    tail_seconds: float = 0.0
    within: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the collective."""
        return parts_of(self.collective, self.within)

    @property
    def names(self) -> list[str]:
        """The tasks in their order."""
        return task_names(self.collective, self.segments, self.within)

    @property
    def whole_seconds(self) -> float:
        """The time of the slowest process."""
        return float(self.seconds.sum(axis=1).max()) + self.tail_seconds

    @property
    def full(self) -> slice:
        """The tasks in which every part works on a segment; none if there are fewer segments than parts."""
        depth = len(self.parts)
        return slice(depth - 1, max(self.segments, depth - 1))

    @property
    def stable_seconds(self) -> Array:
        """Each leader's stabilised cost, T_i(sbib(s)) or T_i(sbibirsr(s)): the mean over later full tasks.

        The later full tasks are the second half of the full tasks, rounded up to an even number, since costs may
        alternate. If no task is full, the cost is 0; equations (3) and (4) then multiply it by 0.
        """
        full = self.seconds[:, self.full]
        count = full.shape[1]
        later = min(count, 2 * -(-count // 4))
        return full[:, count - later :].mean(axis=1) if later else np.zeros(len(self.seconds))


def task_case(whole: Case, segments: int, steps: str = "", tasks: range | None = None) -> Case:
    """The case that times the tasks of a whole collective, with this many segments of unchanged size.

    If `tasks` is given, only these tasks are run, without the ones before them, and of these tasks only the parts in
    `steps`, such as "sbib".
    """
    size = min(whole.segment_bytes, whole.message_bytes)
    window = f"{EXPERIMENT}:{tasks.start}:{tasks.stop}:{steps}" if tasks is not None else EXPERIMENT
    return replace(whole, experiment=window, message_bytes=segments * size, segment_bytes=size)


def leader_seconds(timing: Timing, count: int) -> Array:
    """The seconds of each leader (first axis) for each of `count` tasks that were run (second axis).

    Raises CollwiseError if the timing failed or has no times of tasks.
    """
    what = f"tasks of {timing.case.collective} {timing.case.algorithm}"
    if not timing.ok:
        raise CollwiseError(f"{what}: {timing.error}")
    ends = np.array(timing.samples or (), dtype=float)
    if ends.size == 0 or ends.size % count:
        raise CollwiseError(f"{what}: {ends.size} end times; expected {count} for each leader")
    return np.diff(ends.reshape(-1, count), axis=1, prepend=0.0)


def task_times(timing: Timing) -> TaskTimes:
    """The times of all tasks in a timing of `task_case`. Raises the errors of `leader_seconds`."""
    case = timing.case
    segments = segments_of(case.message_bytes, case.segment_bytes)
    count = segments + len(parts_of(case.collective, case.parameter)) - 1
    seconds = leader_seconds(timing, count)
    tail = max(timing.seconds - float(seconds.sum(axis=1).max()), 0.0)
    return TaskTimes(case.collective, segments, seconds, tail, case.parameter)


@dataclass(frozen=True)
class ByTasks:
    """A timer of whole collectives; its `timer` times only their tasks, once for all message sizes.

    A pipeline is timed with at most `max_segments` segments, see `runs_needed`.
    """

    timer: Timer
    max_segments: int = SEGMENTS

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        """The times of whole collectives according to the cost model. Raises CollwiseError if a run of tasks fails."""
        alike = grouped(cases, lambda case: task_case(case, 1))
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
    """The numbers of segments with which tasks must be timed, so that the costs for all `segments` are known.

    With d parts, each number below d - 1 needs a run of its own. All other numbers share one run, with `max_segments`
    segments, or with the largest of these numbers if that is smaller.
    """
    asked = sorted(set(segments))
    least = len(parts_of(collective, within)) - 1
    long = [count for count in asked if count >= least]
    return (*(count for count in asked if count < least), *([min(max(long), max_segments)] if long else ()))


def cost_seconds(runs: Sequence[TaskTimes], segments: int) -> float:
    """The cost of a collective with this many segments, from the task times of the runs that `runs_needed` lists.

    Raises ValueError if the runs do not suffice for this number of segments.
    """
    ends = len(runs[0].parts) - 1
    timed = segments if segments < ends else max(run.segments for run in runs)
    times = next((run for run in runs if run.segments == timed), None)
    if times is None or timed < ends <= segments:
        raise ValueError(f"no times of tasks for {segments} segments")
    if segments < ends:
        return times.whole_seconds
    each = times.seconds
    first, last = each[:, :ends].sum(axis=1), each[:, each.shape[1] - ends :].sum(axis=1)
    whole: Array = first + (segments - ends) * times.stable_seconds + last
    return float(whole.max()) + times.tail_seconds


_STABLE = 0.05
"""The share by which tasks may differ from the stabilised cost."""


@dataclass(frozen=True)
class Probe:
    """A run of only a few `tasks`, with only the parts in `steps`; the time of the last task counts."""

    title: str
    steps: str
    tasks: range


_SINGLE_AND_BOTH: Mapping[str, tuple[Probe, ...]] = MappingProxyType(
    {
        "bcast": (
            Probe("ib(0)", "ib", range(0, 1)),
            Probe("sb(0)", "sb", range(1, 2)),
            Probe("sb(0) and ib(1) at once", "sbib", range(1, 2)),
            Probe("sbib(1) after ib(0)", "sbib", range(0, 2)),
        ),
        "allreduce": (
            Probe("ib(0)", "ib", range(2, 3)),
            Probe("ir(0)", "ir", range(1, 2)),
            Probe("ib(0) and ir(1) at once", "ibir", range(2, 3)),
        ),
    }
)
"""The bars of figures 2 and 6: each of two parts alone, both at once, and both with a staggered start."""


@dataclass(frozen=True)
class TaskStudy:
    """The seconds that each node's leader takes for the tasks of a collective: alone, at once, and in a pipeline."""

    case: Case
    probes: Mapping[str, Array]
    times: TaskTimes

    @property
    def overlap(self) -> float:
        """The share of the shorter part that the longer one hides if both run at once: 1 is all of it, 0 is nothing.

        The share is computed from the times of the slowest leader; it is nan for a collective without probes.
        """
        slowest = [float(seconds.max()) for seconds in self.probes.values()]
        if len(slowest) < 3 or min(slowest[:2]) <= 0:
            return float("nan")
        one, other, both = slowest[:3]
        return (one + other - both) / min(one, other)

    @property
    def stable_seconds(self) -> Array:
        """The stabilised cost of each leader's full task."""
        return self.times.stable_seconds

    def stable_from(self, leader: int) -> int | None:
        """The first full task that, like all later ones, differs from the stabilised cost by at most 5 %.

        The result is the index s of the task, as in figure 3; None if there is no such task.
        """
        full = self.times.seconds[leader, self.times.full]
        near = np.abs(full - self.stable_seconds[leader]) <= _STABLE * self.stable_seconds[leader]
        first = self.times.full.start
        return next((first + number for number in range(len(full)) if near[number:].all()), None)


def study_tasks(wholes: Sequence[Case], timer: Timer, segments: int = SEGMENTS) -> list[TaskStudy]:
    """Times the tasks of whole collectives. Raises CollwiseError if a run of tasks fails."""
    probes = {whole: _probe_cases(whole) for whole in wholes}
    cases = [case for whole in wholes for case in (task_case(whole, segments), *probes[whole].values())]
    timings = timer.time(list(dict.fromkeys(cases)))
    if failed := [timing for timing in timings.values() if not timing.ok]:
        raise CollwiseError(f"{len(failed)} runs of tasks failed; first: {failed[0].case}: {failed[0].error}")
    return [
        TaskStudy(
            whole,
            {
                probe.title: leader_seconds(timings[case], len(probe.tasks))[:, -1]
                for probe, case in probes[whole].items()
            },
            task_times(timings[task_case(whole, segments)]),
        )
        for whole in wholes
    ]


def _probe_cases(whole: Case) -> dict[Probe, Case]:
    """The probes of a configuration. With three levels, nb takes the place of sb, and ib may start in a later task."""
    parts = parts_of(whole.collective, whole.parameter)
    probes = _SINGLE_AND_BOTH.get(whole.collective, ())
    if probes and whole.parameter == BY_SOCKET:
        later = parts.index("ib") - parts_of(whole.collective).index("ib")
        probes = tuple(
            Probe(
                probe.title.replace("sb", "nb"),
                probe.steps.replace("sb", "nb"),
                range(probe.tasks.start + later, probe.tasks.stop + later),
            )
            for probe in probes
        )
    return {probe: task_case(whole, len(parts), probe.steps, probe.tasks) for probe in probes}
