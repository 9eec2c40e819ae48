"""The tasks of hierarchical collectives, and their times on each node's leader (Luo et al. 2020, section III).

A message of u segments is worked off in steps. In step s the part k of the collective (the broadcast between nodes, ib,
is part 0 of a broadcast; sb, that within nodes, part 1) works on segment s - k, if there is such a segment. What a
leader does in one step is a task: ib(0), sbib(1), ..., sbib(u - 1), sb(u - 1) for a broadcast. Parts are named in the
order of the paper, the last one first. With three levels nb and nr, between the sockets of a node, are parts as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.models.piecewise import Array
from collwise.simulator.schedule.tasks import EXPERIMENT, parts_of
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.space import segments_of


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
    """The seconds that each leader (first axis) took for each task (second axis) of `segments` segments.

    `tail_seconds` is by how much the last process ends after the last leader, as down a tree within a node. `within`
    says how the processes of a node communicate, by socket for instance.
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
        """Each leader's stabilised cost, T_i(sbib(s)) or T_i(sbibirsr(s)): the mean of the later half of the full ones.

        An even number of them, since costs may alternate. 0 where no task is full; equations (3) and (4) then multiply
        it by 0.
        """
        full = self.seconds[:, self.full]
        count = full.shape[1]
        later = min(count, 2 * -(-count // 4))
        return full[:, count - later :].mean(axis=1) if later else np.zeros(len(self.seconds))


def task_case(whole: Case, segments: int, steps: str = "", tasks: range | None = None) -> Case:
    """The case that times the tasks of a whole collective, with this many segments of the same size.

    With `tasks` only these are run, without those before them; with `steps`, such as "sbib", only these parts.
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
