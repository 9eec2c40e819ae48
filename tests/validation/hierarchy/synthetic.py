"""A synthetic machine whose tasks have known times, so that the best configuration is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from collwise.simulator.schedule.tasks import parts_of
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.space import Space

SPACE = Space(
    "bcast",
    nodes=(4, 16),
    processes_per_node=(2, 8),
    message_bytes=tuple(2**k for k in range(12, 23)),
    segment_bytes=(2**14, 2**16, 2**18),
    algorithms=("chain", "binary", "binomial"),
    between_segment_bytes=(0, 2**14),
)


class SyntheticMachine:
    """Tasks take a start-up time and bytes over a rate, by algorithm; leaders differ in the first tasks.

    `log` has every case that was timed.
    """

    def __init__(self, depth_seconds: float = 5e-6) -> None:
        self.log: list[Case] = []
        self._depth_seconds = depth_seconds

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        self.log += cases
        return {case: self._timing(case) for case in cases}

    def _timing(self, case: Case) -> Timing:
        segment = min(case.segment_bytes, case.message_bytes)
        segments = -(-case.message_bytes // case.segment_bytes)
        each = self.task_seconds(case, segments, segment)
        if case.experiment == "collective":
            return Timing(case, float(each.sum(axis=1).max()))
        ends = np.cumsum(each, axis=1)
        return Timing(case, float(ends[:, -1].max()), samples=tuple(ends.ravel().tolist()))

    def task_seconds(self, case: Case, segments: int, segment: int) -> np.ndarray:
        """Seconds of each leader and task."""
        nodes, depth = case.nodes, len(parts_of(case.collective)) - 1
        pieces = math.ceil(segment / (case.limit_bytes or segment))
        hops, sends = {
            "tasks_chain": (nodes - 1, 1),
            "tasks_binary": (2 * math.log2(nodes), 2),
            "tasks_binomial": (math.log2(nodes), math.log2(nodes)),
        }[case.algorithm]
        rate, start_up = 1e9, self._depth_seconds
        transfer = segment / rate
        first = hops * (start_up + transfer / pieces) + sends * transfer + pieces * 1e-6
        full = start_up + sends * transfer + pieces * 1e-6
        last = start_up + 0.3 * transfer * math.log2(case.processes_per_node)
        leaders = np.linspace(0.5, 1.0, nodes)[:, None]
        steps = segments - depth if segments >= depth else 0
        return np.hstack(
            [
                leaders * np.full((nodes, min(depth, segments)), first),
                np.full((nodes, steps), full),
                np.full((nodes, depth + segments - steps - min(depth, segments)), last),
            ]
        )
