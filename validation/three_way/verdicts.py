"""Verdicts on scores against measured times: limits, ranks, repeated measurement, flat and hierarchical algorithms.

A hierarchical algorithm treats the processes of one node differently from processes of other nodes; a flat one treats
all processes in the same way.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from collwise.algorithms.catalogue import Catalogue
from collwise.models.switch_points import picked_seconds
from collwise.simulator.execution.launchers import parameter_variables
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.timing import Timing
from collwise.validation.compare.scores import AllScores, Errors, Ranks, Scores, distinguishable
from collwise.validation.hierarchy import space
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.times import State, Times

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
POINT = ("target", "collective", "procs", "message_bytes")
"""The columns that identify a point. The target is the target of the measurement."""
FLAT, HIERARCHICAL = "flat", "hierarchical"
KINDS = (FLAT, HIERARCHICAL)
COMPONENTS: Mapping[str, Mapping[str, str]] = {"tuned": {"coll": "^han"}, "han": {"coll_han_priority": "100"}}
"""Open MPI's components that are compared on nodes of several processes, each with the parameters that choose it."""


@dataclass(frozen=True)
class Repeatability:
    """The number of cases that two runs of the MPI program measured, and counts of cases that agree.

    The means have intervals with half-widths h_1 and h_2. `within` counts cases whose means differ by at most
    sqrt(h_1^2 + h_2^2), the half-width for a difference of independent means, `overlapping` those with |difference| <=
    h_1 + h_2, and `inside` those whose second mean lies in the first interval. `median_difference` and
    `worst_difference` are of |second / first - 1|, and `median_half_width` is the median of h / mean over all means.
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
    """Three verdicts on all cells, on those with messages of at least LARGE_BYTES, and on those of each collective.

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
    """The mean ranks of each source over its `points` with ranks, for all collectives and then by collective.

    The columns are `collective`, `source`, `points` and the fields of Ranks.
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


def with_component(target: ExecutionTarget, name: str) -> ExecutionTarget:
    """The target with one of COMPONENTS for MPI's own collectives."""
    return target.modified({"component": name}, parameter_variables(COMPONENTS[name]))


def can_be_simulated(collective: str, choice: Choice) -> bool:
    """True if engines can simulate the choice. They simulate neither shared memory nor MPI's own collectives."""
    entry = Catalogue.load().algorithm(collective, choice.algorithm)
    return not entry.real_mpi_only and not (
        entry.count_parameter == "within" and choice.parameter not in space.SIMULATED
    )


def label(choice: Choice) -> str:
    """The algorithm, with what a node's processes use instead of messages ('tasks_chain, shared memory'), if any."""
    if choice == LIBRARY_DECIDES:
        return ""
    return choice.algorithm + (f", {space.WITHIN[choice.parameter]}" if choice.parameter else "")


def point(right: Times, procs: int, message_bytes: int) -> dict[str, Any]:
    """A point of measured times as plain data, with the place where they were measured."""
    return dict(zip(POINT, (right.platform, right.collective, procs, message_bytes), strict=True))


def kind_of(collective: str, choice: Choice) -> str:
    """The kind of a choice, one of KINDS."""
    return KINDS[Catalogue.load().algorithm(collective, choice.algorithm).by_node]


def of_kind(times: Times, kind: str) -> Times:
    """The times of only the algorithms of one kind."""
    wanted = [kind_of(times.collective, choice) == kind for choice in times.choices]
    return times.where(np.array(wanted)[:, None, None])


def best_of_kinds(times: Times) -> Times:
    """The times of the best algorithm of each kind, as two choices with the names of the kinds."""
    alone = [of_kind(times, kind) for kind in KINDS]
    seconds = np.stack([item.best_seconds.values for item in alone])
    widths = np.stack([picked_seconds(item.half_widths.values, item.best.values) for item in alone])
    state = np.where(np.isfinite(seconds), State.TIMED, State.NOT_ASKED).astype(np.int8)
    values = {"seconds": seconds, "half_width_seconds": widths, "state": state}
    grid = replace(times.grid, choices=tuple(map(Choice, KINDS)))
    return Times.of_values(grid, values, times.platform, times.source, times.maker)


def choices_of_kind(every: AllScores, source: str) -> pd.DataFrame:
    """The cost of each choice between the two kinds. Each point at which the source predicts both kinds has a row.

    `chosen` is the kind that the source predicts to be the fastest, and `best` the kind of the fastest measured
    algorithm. `slowdown` compares the measured times of the fastest algorithm of each kind. `certain` is true if these
    times differ by more than their intervals.
    """
    found = []
    for scores in every.values():
        right = scores.right.of_grid(replace(scores.right.grid, besides=()))
        predicted = scores.times[source].of_grid(right.grid).known_to(right)
        found.append(Scores(best_of_kinds(right), {source: best_of_kinds(predicted)}).pick_rows())
    rows = pd.concat(found).rename(columns={"platform": "target", "pick": "chosen"})
    rows = rows[rows.candidates == len(KINDS)]
    named = {name: [choice.algorithm for choice in rows[name]] for name in ("chosen", "best")}
    return rows.assign(**named)[[*POINT, "chosen", "best", "slowdown", "certain"]]


def component_table(every: AllScores, components: Mapping[str, Mapping[str, Times]], source: str) -> pd.DataFrame:
    """The measured seconds of the best algorithm of each kind, of the source's pick, and of components, by point.

    `components` has the times of MPI's own collectives by component and collective. The algorithms' names are in
    columns such as 'flat algorithm'. Points that lack one of the algorithms are left out.
    """
    found = []
    columns = [f"{name}{part}" for name in (*KINDS, "pick") for part in (" algorithm", "")]
    for collective, scores in every.items():
        right = scores.right.of_grid(replace(scores.right.grid, besides=()))
        alone = {kind: of_kind(right, kind) for kind in KINDS}
        for (i, j), at in zip(np.ndindex(*right.best.shape), right.grid.points, strict=True):
            choices = {kind: item.best_choice(*at) for kind, item in alone.items()}
            choices["pick"] = scores.pick(source, i, j).choice
            row = point(right, *at)
            row |= {name: float(times[collective].best_seconds.values[i, j]) for name, times in components.items()}
            for name, choice in choices.items():
                if choice is not None:
                    row |= {f"{name} algorithm": label(choice), name: right.seconds_of(choice, *at)}
            if None not in choices.values():
                found.append(row)
    return pd.DataFrame(found, columns=[*POINT, *components, *columns])


def ways_within(every: AllScores) -> pd.DataFrame:
    """The measured time of each algorithm that shares or reads memory in nodes, divided by its time with messages."""
    columns = ["collective", "algorithm", "way", "message_bytes", "ratio"]
    found = []
    for collective, scores in every.items():
        right = scores.right
        for procs, size in right.grid.points:
            for choice in right.choices:
                by_messages = right.seconds_of(replace(choice, parameter=0), procs, size)
                ratio = right.seconds_of(choice, procs, size) / by_messages
                if choice.parameter and not math.isnan(ratio):
                    found.append((collective, choice.algorithm, space.WITHIN[choice.parameter], size, ratio))
    return pd.DataFrame(found, columns=columns)
