"""The repeatability of measurements: agreement of two measurements' means within the stated intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from collwise.simulator.timing import Timing

WANTED = 0.9
"""Share of the cases whose means should agree."""


@dataclass(frozen=True)
class Repeatability:
    """The number of cases measured by two runs of the MPI program, and of those in which the two agree.

    `within` counts differences of the means of at most sqrt(h_1^2 + h_2^2), the interval of a difference of independent
    means; `overlapping` counts intervals that have a point in common, |difference| <= h_1 + h_2; `inside` counts second
    means that lie in the first interval, which happens less often. `median_difference` and `worst_difference` are those
    of |second / first - 1|, and `median_half_width` is that of h / mean over all means.
    """

    cases: int
    within: int
    overlapping: int
    inside: int
    median_difference: float
    worst_difference: float
    median_half_width: float


def repeatability(pairs: Iterable[tuple[Timing, Timing]]) -> Repeatability:
    """Compares pairs of timings, each of one case; pairs with a failed one are left out."""
    found = [(first, second) for first, second in pairs if first.ok and second.ok]
    differences = [abs(second.seconds / first.seconds - 1) for first, second in found]
    widths = [timing.half_width_seconds / timing.seconds for pair in found for timing in pair]
    return Repeatability(
        cases=len(found),
        within=sum(
            abs(a.seconds - b.seconds) <= math.hypot(a.half_width_seconds, b.half_width_seconds) for a, b in found
        ),
        overlapping=sum(abs(a.seconds - b.seconds) <= a.half_width_seconds + b.half_width_seconds for a, b in found),
        inside=sum(abs(a.seconds - b.seconds) <= a.half_width_seconds for a, b in found),
        median_difference=statistics.median(differences) if differences else math.nan,
        worst_difference=max(differences) if differences else math.nan,
        median_half_width=statistics.median(widths) if widths else math.nan,
    )
