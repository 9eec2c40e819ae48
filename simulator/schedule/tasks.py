"""Experiments with tasks on the schedule engine, which show when each node's leader is done with each task.

Schedules have no marks at the ends of tasks. Instead the sequence is played once for each task, only up to the task's
end; the time at which a leader ends in that play is the time at which it is done with the task. Such a play lacks later
tasks that other processes would have begun by then. The last play, of the whole sequence, lacks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from collwise.common.errors import unknown_name
from collwise.platforms.hosts import Places
from collwise.simulator.timing import Case, Timing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from collwise.simulator.schedule.shared import TablesOf

EXPERIMENT = "tasks"
"""The experiment in which a collective runs and each leader notes when it is done with each task."""

PARTS: Mapping[str, tuple[str, ...]] = {
    "bcast": ("ib", "sb"),
    "reduce": ("sr", "ir"),
    "allreduce": ("sr", "ir", "ib", "sb"),
}
"""The parts of each collective made of tasks, in the order in which a segment passes them (algorithms/tasks.c)."""

BY_SOCKET = 3
"""The value of a case's parameter `within` for which a collective has three levels."""


def parts_of(collective: str, within: int = 0) -> tuple[str, ...]:
    """The parts of a collective. If it has three levels, these include the parts between sockets. Raises UsageError if
    the collective has no parts.
    """
    if collective not in PARTS:
        raise unknown_name("collective with tasks", collective, PARTS)
    if within != BY_SOCKET:
        return PARTS[collective]
    between_sockets = {"sr": ("sr", "nr"), "sb": ("nb", "sb")}
    return tuple(part for name in PARTS[collective] for part in between_sockets.get(name, (name,)))


def is_of_tasks(case: Case) -> bool:
    """True if the case is an experiment with tasks."""
    return case.experiment.partition(":")[0] == EXPERIMENT


def time_tasks(case: Case, tables_of: TablesOf, places: Places) -> Timing:
    """The timing of a case; its samples say when each leader is done with each task."""
    import numpy as np

    from collwise.simulator.schedule.library import Schedule

    Schedule(case, places)  # raises UsageError for an invalid experiment
    _, first, end, steps = [*case.experiment.split(":"), "", "", ""][:4]
    begin, last = int(first or 0), task_count(case)
    leaders = _leaders(np.array(places)[:, 0], case.root)
    plays = []
    for task in range(begin + 1, min(int(end or last), last) + 1):
        window = replace(case, experiment=f"{EXPERIMENT}:{begin}:{task}:{steps}")
        schedule = Schedule(window, places)
        plays.append(schedule.play(tables_of(schedule.sizes)))
    ends = np.array([played.ends[leaders] for played in plays])
    return Timing(case, plays[-1].seconds, plays[-1].root_seconds, samples=tuple(ends.T.ravel().tolist()))


def task_count(case: Case) -> int:
    """The number of tasks of the whole collective. Raises UsageError if the collective has no tasks."""
    parts = parts_of(case.collective, case.parameter)
    segments = max(1, -(-case.message_bytes // (case.segment_bytes or case.message_bytes)))
    return segments + len(parts) - 1


def _leaders(node_of: npt.NDArray[np.int64], root: int) -> list[int]:
    """The leader of each node, in the order of the nodes' first ranks. A leader has the same place in its node as the
    root has in the root's node. If the node has too few processes, its last process is the leader.
    """
    import numpy as np

    nodes = dict.fromkeys(node_of.tolist())
    members = [np.flatnonzero(node_of == node) for node in nodes]
    place = next(int(np.flatnonzero(member == root)[0]) for member in members if root in member)
    return [int(member[min(place, len(member) - 1)]) for member in members]
