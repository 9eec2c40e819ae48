"""Verdicts: whether simulation stays within the limits promised for its errors and picks, by collective and in all."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from collwise.validation.three_way.scores import errors_of, slowdowns_of_picks
from collwise.validation.three_way.table import SIMULATED, ours

ALL = "all"
LARGE_BYTES = 8192
"""Messages of this size and more are not short against a token-bucket burst: they see the rate of a link."""
LARGE = "all, from 8 KiB"
MEDIAN_ERROR = "median absolute error"
MEAN_SLOWDOWN = "mean slowdown of picks"
WORST_SLOWDOWN = "worst slowdown of picks"
LIMITS = {MEDIAN_ERROR: 0.15, MEAN_SLOWDOWN: 0.05, WORST_SLOWDOWN: 0.25}
"""The promised limit of each quantity; 0.15 is 15 %."""


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
