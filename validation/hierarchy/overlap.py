"""The overlap of the parts of tasks, and the trend of tasks.

In Luo et al. 2020, figures 2 and 6 show the overlap, and figure 3 shows the trend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.models.piecewise import Array
from collwise.simulator.bench import Timer
from collwise.simulator.schedule.tasks import BY_SOCKET, parts_of
from collwise.simulator.timing import Case
from collwise.validation.hierarchy.cost_model import TaskTimes, leader_seconds, task_case, task_times
from collwise.validation.hierarchy.space import SEGMENTS

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
