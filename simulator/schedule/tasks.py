"""Experiments with tasks on the schedule engine, which show when each node's leader is done with each task.

Schedules do not mark the ends of tasks. The sequence is therefore played once for each task, up to the end of this
task, without later tasks that other processes would have begun by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from collwise.common.errors import unknown_name
from collwise.platforms.hosts import Places
from collwise.simulator.timing import Case, Timing

if TYPE_CHECKING:
    from collwise.simulator.schedule.shared import TablesOf

EXPERIMENT = "tasks"  # the experiment in which a collective runs and each leader notes when it is done with each task
PARTS: Mapping[str, tuple[str, ...]] = {
    "bcast": ("ib", "sb"),
    "reduce": ("sr", "ir"),
    "allreduce": ("sr", "ir", "ib", "sb"),
}
"""The parts of each collective made of tasks, in the order in which a segment passes them (algorithms/tasks.c)."""

BY_SOCKET = 3  # the value of a case's parameter `within` for which a collective has three levels


def parts_of(collective: str, within: int = 0) -> tuple[str, ...]:
    """The parts of a collective with tasks, those between sockets included if it has three levels."""
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
    leaders = _leaders([node for node, _ in places], case.root)
    plays = []
    for task in range(begin + 1, min(int(end or last), last) + 1):
        window = replace(case, experiment=f"{EXPERIMENT}:{begin}:{task}:{steps}")
        schedule = Schedule(window, places)
        plays.append(schedule.play(tables_of(schedule.sizes)))
    ends = np.array([played.ends[leaders] for played in plays])
    return Timing(case, plays[-1].seconds, plays[-1].root_seconds, samples=tuple(ends.T.ravel().tolist()))


def task_count(case: Case) -> int:
    """The number of tasks of the whole collective."""
    parts = parts_of(case.collective, case.parameter)
    segments = max(1, -(-case.message_bytes // (case.segment_bytes or case.message_bytes)))
    return segments + len(parts) - 1


def _leaders(node_of: Sequence[int], root: int) -> list[int]:
    """The leader of each node: the process at the same place as the root in its node, or the node's last one."""
    members: dict[int, list[int]] = {}
    for rank, node in enumerate(node_of):
        members.setdefault(node, []).append(rank)
    place = members[node_of[root]].index(root)
    return [ranks[min(place, len(ranks) - 1)] for ranks in members.values()]
