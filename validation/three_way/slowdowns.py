"""The slowdown in measured time of a source's picks, and of the MPI library's own collectives.

A row is a pick at a point, with the `best` of all `measured` algorithms there and the slowdown against it. The source
had `candidates` of these to pick from. `certain` says that the two means differ by more than their intervals. For the
MPI library's own collectives `pick` is empty, and the slowdown may be negative.
"""

from __future__ import annotations

import pandas as pd

from collwise.validation.selection.slowdown import slowdown
from collwise.validation.three_way.table import POINT, distinguishable, ours, own, predicted_by


def slowdowns_of_picks(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    """At every point where the source predicts anything it picks its fastest, the first of equal ones."""
    known = predicted_by(source, rows)
    points = known.groupby(POINT, sort=False)
    picks = known.loc[points[source].idxmin()] if len(known) else known
    return _slowdowns(picks.assign(candidates=points.seconds.transform("size")), rows)


def slowdowns_of_builtin(table: pd.DataFrame) -> pd.DataFrame:
    """The MPI library's own collectives against the best of ours, where both were measured."""
    return _slowdowns(own(table).assign(candidates=0), ours(table))


def _slowdowns(picks: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    points = rows.groupby(POINT, sort=False)
    best = rows.assign(measured=points.seconds.transform("size")).loc[points.seconds.idxmin()]
    best = best.rename(columns={"algorithm": "best"})[[*POINT, "best", "seconds", "half_width_seconds", "measured"]]
    both = picks.rename(columns={"algorithm": "pick"}).merge(best, on=POINT, suffixes=("", "_of_best"))
    of_best = both[["seconds_of_best", "half_width_seconds_of_best"]]
    of_best.columns = ["seconds", "half_width_seconds"]
    both = both.assign(slowdown=slowdown(both.seconds, of_best.seconds), certain=distinguishable(both, of_best))
    return both[[*POINT, "pick", "best", "slowdown", "certain", "candidates", "measured"]]
