"""The machine on which a search measures, and the bill of what it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from collwise.common.errors import CollwiseError
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.cost_model import cost_seconds, runs_needed
from collwise.validation.hierarchy.space import Point
from collwise.validation.hierarchy.tasks import SEGMENTS, task_case, task_times

Timer = Callable[[Sequence[Case]], Mapping[Case, Timing]]
"""Times cases: SMPI, the schedule engine, or a real MPI, each through the store."""


@dataclass
class Bill:
    """The benchmarks that a search made; each is paid for once, however often its time is asked for."""

    timings: dict[Case, Timing] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The machine time of all benchmarks, repetitions included."""
        return sum(one.seconds * one.repetitions for one in self.timings.values())

    @property
    def repetitions(self) -> float:
        """The mean number of repetitions, weighted by the time of a single one."""
        once = sum(one.seconds for one in self.timings.values())
        return self.seconds / once if once > 0 else 1.0

    @property
    def benchmarks(self) -> int:
        """The number of benchmarks."""
        return len(self.timings)


class Machine:
    """Times whole collectives and tasks for one search, with a bill of its own."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.bill = Bill()

    def whole(self, points: Sequence[Point]) -> dict[Point, float]:
        """The seconds of whole collectives. Raises CollwiseError if one fails."""
        found = self._timed([point.case for point in points])
        return {point: found[point.case].seconds for point in points}

    def tasks(self, points: Sequence[Point], most: int = SEGMENTS) -> dict[Point, float]:
        """The seconds of whole collectives by the cost model: only tasks are timed, once for all sizes of messages.

        Raises CollwiseError if one fails.
        """
        alike: dict[tuple[object, ...], list[Point]] = {}
        for point in points:
            alike.setdefault(_tasks_key(point), []).append(point)
        runs = {}
        for key, group in alike.items():
            segments = {point.segments for point in group}
            needed = runs_needed(group[0].collective, segments, most, group[0].choice.fanout)
            runs[key] = [task_case(group[0], count) for count in needed]
        found = self._timed([case for cases in runs.values() for case in cases])
        seconds: dict[Point, float] = {}
        for key, group in alike.items():
            times = [task_times(found[case]) for case in runs[key]]
            seconds |= {point: cost_seconds(times, point.segments) for point in group}
        return {point: seconds[point] for point in points}

    def _timed(self, cases: Sequence[Case]) -> Mapping[Case, Timing]:
        found = self._timer(cases)
        for case in cases:
            if not found[case].ok:
                raise CollwiseError(
                    f"{case.collective} {case.algorithm} on {case.procs} processes failed: {found[case].error}"
                )
        self.bill.timings.update((case, found[case]) for case in cases)
        return found


def _tasks_key(point: Point) -> tuple[object, ...]:
    """What the tasks of a point depend on: all but the number of segments."""
    size = min(point.choice.segment_bytes, point.input.message_bytes)
    return point.collective, point.input.place, replace(point.choice, segment_bytes=size)


Predictor = Callable[[Sequence[Point]], dict[Point, float]]
"""Predicts whole collectives without the machine, as `Machine.whole` of another timer does."""
