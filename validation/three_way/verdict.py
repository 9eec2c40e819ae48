"""Whether simulation keeps what it promises of measured times, by collective and in all, and how far from it it is."""

from __future__ import annotations

from dataclasses import dataclass

from collwise.validation.three_way.costs import selection_costs, summary_of
from collwise.validation.three_way.scores import errors_of
from collwise.validation.three_way.table import SIMULATED, Table

ALL = "all"
LARGE_BYTES = 8192
"""Some times what a token bucket lets through after a pause: messages of this size and more see the rate of a link."""
LARGE = "all, from 8 KiB"
MEDIAN_ERROR = "median absolute error"
MEAN_COST = "mean cost of selection"
WORST_COST = "worst cost of selection"
LIMITS = {MEDIAN_ERROR: 0.15, MEAN_COST: 0.05, WORST_COST: 0.25}
"""By quantity, what is promised at most; 0.15 is 15 %."""


@dataclass(frozen=True)
class Verdict:
    """One quantity of one collective, or of all: what was found and what was promised at most."""

    collective: str
    quantity: str
    found: float
    limit: float

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.found <= self.limit

    @property
    def distance(self) -> float:
        """How far above the limit (positive) or below it, in the same unit."""
        return self.found - self.limit


def verdicts(table: Table) -> list[Verdict]:
    """Three of all collectives together, of their messages from LARGE_BYTES on, and of each.

    Empty where nothing was simulated.
    """
    found: list[Verdict] = []
    groups = {ALL: list(table.rows), LARGE: [row for row in table.rows if row.point.message_bytes >= LARGE_BYTES]}
    groups |= {name: [row for row in table.rows if row.point.collective == name] for name in table.collectives}
    for name, rows in groups.items():
        errors, costs = errors_of(row.error(SIMULATED) for row in rows), summary_of(selection_costs(rows, SIMULATED))
        if errors is None or costs is None:
            continue
        values = {MEDIAN_ERROR: errors.median, MEAN_COST: costs.mean, WORST_COST: costs.worst.cost}
        found += [Verdict(name, quantity, value, LIMITS[quantity]) for quantity, value in values.items()]
    return found
