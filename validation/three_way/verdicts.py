"""Verdicts on scores against measured times: limits, rank agreement, and repeated measurement."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields

import pandas as pd

from collwise.simulator.timing import Timing
from collwise.validation.compare.scores import AllScores, Errors, Ranks, distinguishable

SIMULATED = "simulated"
"""The source of times simulated by SMPI."""
SCHEDULED = "schedule"
"""The source of times by the schedule engine."""
ENGINES = (SIMULATED, SCHEDULED)
OWN = "MPI's own choice"
"""The decider that leaves every call to the MPI library. All other sources are models, by their names."""
ALL = "all"
LARGE_BYTES = 8192
"""The size from which messages are much longer than a token-bucket burst, so that a link's rate limits them."""
LARGE = "all, from 8 KiB"
MEDIAN_ERROR = "median absolute error"
MEAN_SLOWDOWN = "mean slowdown of picks"
WORST_SLOWDOWN = "worst slowdown of picks"
LIMITS = {MEDIAN_ERROR: 0.15, MEAN_SLOWDOWN: 0.05, WORST_SLOWDOWN: 0.25}
"""The promised limit of each quantity; 0.15 is 15 %."""
WANTED_REPEATABILITY = 0.9
"""The share of cases whose two means should agree if cases are measured twice."""


@dataclass(frozen=True)
class Repeatability:
    """The number of cases that two runs of the MPI program measured, and counts of cases that agree.

    The means have intervals with half-widths h_1 and h_2. `within` counts cases whose means differ by at most
    sqrt(h_1^2 + h_2^2), the half-width for a difference of independent means. `overlapping` counts cases whose
    intervals have a point in common, |difference| <= h_1 + h_2. `inside` counts cases whose second mean lies in the
    first interval, which happens less often. `median_difference` and `worst_difference` are the median and the maximum
    of |second / first - 1|, and `median_half_width` is the median of h / mean over all means.
    """

    cases: int
    within: int
    overlapping: int
    inside: int
    median_difference: float
    worst_difference: float
    median_half_width: float


def with_all(rows: pd.DataFrame, *, large: bool = False) -> pd.DataFrame:
    """The rows of errors or picks with a column `group`: first all rows as ALL, last all rows by collective.

    If `large` is true, the rows of at least LARGE_BYTES stand in between as the group LARGE.
    """
    above = [rows[rows.message_bytes >= LARGE_BYTES].assign(group=LARGE)] if large else []
    return pd.concat([rows.assign(group=ALL), *above, rows.assign(group=rows.collective)], ignore_index=True)


def errors_by(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Summaries (`Errors`) of the errors in `AllScores.error_rows`, by source and by the values of these columns."""
    found = [
        (*key, *astuple(summary))
        for _, mine in rows.groupby("source", sort=False)
        for key, errors in mine.groupby(["source", *columns], sort=False).error
        if (summary := Errors.of(errors)) is not None
    ]
    return pd.DataFrame(found, columns=["source", *columns, *(field.name for field in fields(Errors))])


def verdicts(scores: AllScores, source: str) -> pd.DataFrame:
    """Three verdicts on all collectives together, on their messages of at least LARGE_BYTES, and on each collective.

    A row has the source, the collective, the `quantity`, the value `found`, the promised `limit`, `within_limit`, and
    the `distance` of the value from the limit (positive above the limit). There are no rows if the source has no times.
    """
    errors, picks = (
        with_all(rows[rows.source == source], large=True).groupby("group", sort=False)
        for rows in (scores.error_rows(), scores.pick_rows().dropna(subset="slowdown"))
    )
    slowdowns = picks.slowdown.agg(["mean", "max"])
    values = zip(errors.error.agg(lambda error: error.abs().median()), slowdowns["mean"], slowdowns["max"], strict=True)
    found = pd.DataFrame(
        [
            (source, name, quantity, float(value), limit)
            for name, three in zip(slowdowns.index, values, strict=True)
            for (quantity, limit), value in zip(LIMITS.items(), three, strict=True)
        ],
        columns=["source", "collective", "quantity", "found", "limit"],
    )
    return found.assign(within_limit=found.found <= found.limit, distance=found.found - found.limit)


def rank_agreement(scores: AllScores) -> pd.DataFrame:
    """The mean ranks of each source over the points that have ranks, for all collectives and then by collective.

    The columns are collective, source, `points` (the number of points, each with two or more predicted choices), and
    the fields of `Ranks`.
    """
    known = with_all(scores.pick_rows()).dropna(subset="distinguishable")
    by = known.groupby(["group", "source"], sort=False)
    means = by[[*Ranks._fields]].mean()
    means.insert(0, "points", by.size())
    return means.reset_index(names=["collective", "source"])


def repeatability(pairs: Iterable[tuple[Timing, Timing]]) -> Repeatability:
    """Compares pairs of timings, each of one case. Pairs with a failed timing are left out."""
    found = [(first, second) for first, second in pairs if first.ok and second.ok]
    differences = [abs(second.seconds / first.seconds - 1) for first, second in found]
    widths = [timing.half_width_seconds / timing.seconds for pair in found for timing in pair]

    def apart(one: Timing, other: Timing) -> bool:
        return bool(distinguishable(one.seconds, one.half_width_seconds, other.seconds, other.half_width_seconds))

    return Repeatability(
        cases=len(found),
        within=sum(not apart(first, second) for first, second in found),
        overlapping=sum(abs(a.seconds - b.seconds) <= a.half_width_seconds + b.half_width_seconds for a, b in found),
        inside=sum(abs(a.seconds - b.seconds) <= a.half_width_seconds for a, b in found),
        median_difference=statistics.median(differences) if differences else math.nan,
        worst_difference=max(differences) if differences else math.nan,
        median_half_width=statistics.median(widths) if widths else math.nan,
    )
