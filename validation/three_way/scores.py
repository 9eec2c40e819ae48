"""Scores of a source against measured times: errors, rank agreement, slowdowns of picks, and whether limits hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from collwise.simulator.timing import Timing
from collwise.validation.compare.scores import Errors, Ranks, ranks_of
from collwise.validation.three_way.table import POINT, SIMULATED, distinguishable, fastest, ours, own, predicted_by
from collwise.validation.times.slowdown import slowdown

ALL = "all"
LARGE_BYTES = 8192
"""Messages of this size and more are not short against a token-bucket burst: they see the rate of a link."""
LARGE = "all, from 8 KiB"
MEDIAN_ERROR = "median absolute error"
MEAN_SLOWDOWN = "mean slowdown of picks"
WORST_SLOWDOWN = "worst slowdown of picks"
LIMITS = {MEDIAN_ERROR: 0.15, MEAN_SLOWDOWN: 0.05, WORST_SLOWDOWN: 0.25}
"""The promised limit of each quantity; 0.15 is 15 %."""
WANTED_REPEATABILITY = 0.9
"""The share of the cases measured twice whose means should agree."""


@dataclass(frozen=True)
class RankAgreement:
    """The ranks of a source against measured times (`compare.scores.Ranks`), each averaged over points that have it.

    `points` counts those with two algorithms or more.
    """

    points: int
    tau: float
    tau_distinguishable: float
    distinguishable: float


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


@dataclass(frozen=True)
class Verdict:
    """One quantity of one collective, or of all: the value found and the limit promised."""

    collective: str
    quantity: str
    found: float
    limit: float

    @property
    def within_limit(self) -> bool:
        """Whether the value is within the limit."""
        return self.found <= self.limit

    @property
    def distance(self) -> float:
        """The distance of the value from the limit, positive above it."""
        return self.found - self.limit


def relative_errors(rows: pd.DataFrame, source: str) -> pd.Series:
    """The relative errors of a source, predicted / measured - 1, where it predicts anything."""
    known = predicted_by(source, rows)
    return known[source] / known.seconds - 1 if len(known) else pd.Series(dtype=float)


def errors_of(rows: pd.DataFrame, source: str) -> Errors | None:
    """A summary of the relative errors of a source; None where it predicts nothing."""
    return Errors.of(relative_errors(rows, source))


def errors_by(rows: pd.DataFrame, source: str, columns: str | list[str]) -> dict[Any, Errors]:
    """Errors of a source by the values of these columns, in the order of the rows, where it predicts anything."""
    summaries = {key: errors_of(group, source) for key, group in rows.groupby(columns, sort=False)}
    return {key: summary for key, summary in summaries.items() if summary is not None}


def rank_agreement(rows: pd.DataFrame, source: str) -> RankAgreement:
    """The rank agreement of a source with measured times at the points of these rows, among what it predicts."""
    points = [here for _, here in predicted_by(source, rows).groupby(POINT, sort=False) if len(here) > 1]
    ranks = [
        ranks_of(*(here[name].to_numpy(dtype=float) for name in ("seconds", "half_width_seconds", source)))
        for here in points
    ]
    return RankAgreement(len(points), *pd.DataFrame(ranks, columns=Ranks._fields, dtype=float).mean().tolist())


def slowdowns_of_picks(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    """At every point where the source predicts anything it picks its fastest, the first of equal ones."""
    known = predicted_by(source, rows)
    candidates = known.groupby(POINT, sort=False).seconds.transform("size")
    return _slowdowns(fastest(known, source).assign(candidates=candidates), rows)


def slowdowns_of_builtin(table: pd.DataFrame) -> pd.DataFrame:
    """The MPI library's own collectives against the best of ours, where both were measured."""
    return _slowdowns(own(table).assign(candidates=0), ours(table))


def _slowdowns(picks: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each pick, with the `best` of all `measured` algorithms at its point and the slowdown against it.

    The source had `candidates` of these to pick from. `certain` says that the two means differ by more than their
    intervals. For the MPI library's own collectives `pick` is empty, and the slowdown may be negative.
    """
    measured = rows.groupby(POINT, sort=False).seconds.transform("size")
    best = fastest(rows, "seconds").assign(measured=measured)
    best = best.rename(columns={"algorithm": "best"})[[*POINT, "best", "seconds", "half_width_seconds", "measured"]]
    both = picks.rename(columns={"algorithm": "pick"}).merge(best, on=POINT, suffixes=("", "_of_best"))
    of_best = both[["seconds_of_best", "half_width_seconds_of_best"]]
    of_best.columns = ["seconds", "half_width_seconds"]
    both = both.assign(slowdown=slowdown(both.seconds, of_best.seconds), certain=distinguishable(both, of_best))
    return both[[*POINT, "pick", "best", "slowdown", "certain", "candidates", "measured"]]


def repeatability(pairs: Iterable[tuple[Timing, Timing]]) -> Repeatability:
    """Compares pairs of timings, each of one case; pairs with a failed one are left out."""
    found = [(first, second) for first, second in pairs if first.ok and second.ok]
    differences = [abs(second.seconds / first.seconds - 1) for first, second in found]
    widths = [timing.half_width_seconds / timing.seconds for pair in found for timing in pair]
    return Repeatability(
        cases=len(found),
        within=sum(not distinguishable(first, second) for first, second in found),
        overlapping=sum(abs(a.seconds - b.seconds) <= a.half_width_seconds + b.half_width_seconds for a, b in found),
        inside=sum(abs(a.seconds - b.seconds) <= a.half_width_seconds for a, b in found),
        median_difference=statistics.median(differences) if differences else math.nan,
        worst_difference=max(differences) if differences else math.nan,
        median_half_width=statistics.median(widths) if widths else math.nan,
    )


def verdicts(table: pd.DataFrame, source: str = SIMULATED) -> list[Verdict]:
    """Three verdicts on all collectives together, on their messages from LARGE_BYTES on, and on each collective.

    Empty where the source has no times.
    """
    rows = ours(table)
    groups = {ALL: rows, LARGE: rows[rows.message_bytes >= LARGE_BYTES]}
    groups |= iter(rows.groupby("collective", sort=False))
    found: list[Verdict] = []
    for name, group in groups.items():
        errors = errors_of(group, source)
        if errors is None:
            continue
        slowdowns = slowdowns_of_picks(group, source).slowdown.to_numpy()
        values = {
            MEDIAN_ERROR: errors.median,
            MEAN_SLOWDOWN: float(slowdowns.mean()),
            WORST_SLOWDOWN: float(slowdowns.max()),
        }
        found += [Verdict(name, quantity, value, LIMITS[quantity]) for quantity, value in values.items()]
    return found
