"""The cost of fitting: O'Flynn 2009, table 5.1, and the effort that a laboratory counted.

The table has n processors and C(n, 2) pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import TypeVar

from collwise.common.experiments import Effort, Laboratory

Result = TypeVar("Result")


def with_effort(lab: Laboratory, procedure: Callable[[], Result]) -> tuple[Result, Effort]:
    """The procedure's result, and the measurements and seconds that it took in that laboratory."""
    measurements, seconds = lab.effort.measurements, lab.effort.seconds
    result = procedure()
    return result, Effort(lab.effort.measurements - measurements, lab.effort.seconds - seconds)


def hockney_measurements(procs: int, sizes: int) -> int:
    """k C(n, 2): roundtrips of k sizes."""
    return sizes * comb(procs, 2)


def lmo_measurements(procs: int, empty: int, one_to_one: int, one_to_two: int) -> int:
    """k0 C(n, 2) + k1 C(n, 2) + 3 k2 C(n, 3): repetitions of empty roundtrips, of others, and of triplets."""
    return (empty + one_to_one) * comb(procs, 2) + 3 * one_to_two * comb(procs, 3)
