"""The cost model beside whole collectives: figures 4 and 7 of Luo et al. 2020."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from collwise.validation.hierarchy.machine import Machine, Timer
from collwise.validation.hierarchy.space import Input, Point, Space, by_input
from collwise.validation.hierarchy.tasks import SEGMENTS
from collwise.validation.times.slowdown import slowdown


@dataclass(frozen=True)
class ModelCheck:
    """The cost model's and the measured seconds of every configuration, and what either took on the machine."""

    modelled: Mapping[Point, float]
    measured: Mapping[Point, float]
    modelled_cost: float
    measured_cost: float

    @property
    def errors(self) -> dict[Point, float]:
        """(model - measured) / measured of each configuration."""
        return {point: self.modelled[point] / self.measured[point] - 1 for point in self.measured}

    @property
    def median_error(self) -> float:
        """The median of the errors' magnitudes."""
        return float(np.median(np.abs(list(self.errors.values()))))

    @property
    def picks(self) -> dict[Input, tuple[Point, Point, float]]:
        """For each input the model's pick, the best configuration, and the slowdown of the pick."""
        found = {}
        for one, points in by_input(list(self.measured)).items():
            pick = min(points, key=lambda point: self.modelled[point])
            best = min(points, key=lambda point: self.measured[point])
            found[one] = (pick, best, float(slowdown(self.measured[pick], self.measured[best])))
        return found


def check_model(space: Space, timer: Timer, most: int = SEGMENTS) -> ModelCheck:
    """Times the tasks and the whole collective of every configuration. Raises CollwiseError if one fails."""
    points = list(space.points())
    by_tasks, by_whole = Machine(timer), Machine(timer)
    modelled, measured = by_tasks.tasks(points, most), by_whole.whole(points)
    return ModelCheck(modelled, measured, by_tasks.bill.seconds, by_whole.bill.seconds)
