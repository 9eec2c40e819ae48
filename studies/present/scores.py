"""Scores: the best choice and the picks of other sources at each point, and averages over the points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collwise.common.units import format_seconds, format_size
from collwise.models.switch_points import TIE
from collwise.studies.present.shown import Shown, Table, drawing, problem_of, said
from collwise.studies.reports.markdown import percent, whole_percent
from collwise.validation.compare.scores import AllScores, Picked, Scores
from collwise.validation.compare.simulated import remarks as remarks_on_others
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.slowdown import summary_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORE_COLUMNS = (
    *("platform", "collective", "model", "predictions", "mean error", "worst error"),
    *("best picked", "mean slowdown", "worst slowdown", "worst at"),
)


def shown(found: AllScores) -> Shown:
    """A table of picks for each collective, a table of the errors and slowdowns of all sources, and figures."""
    every = [of_one(scores) for scores in found.values()]
    records = [record for scores in found.values() for record in score_records(scores)]
    parts: list[Table | str] = [part for item in every for part in item.parts]
    title = "Errors of times, and the slowdown of picks against the best (%)"
    parts.insert(len(every), Table(title, SCORE_COLUMNS, score_rows(records), left=3))
    failed = [timing for scores in found.values() for timing in scores.right.failed]
    rows = [row for item in every for row in item.rows]
    figures = {stem: draw for item in every for stem, draw in item.figures.items()}
    return Shown(parts, rows, {"scores": records}, figures, problem_of(failed))


def of_one(scores: Scores) -> Shown:
    """The table of picks of one collective, sentences on the sources, and figures."""
    parts: list[Table | str] = [points(scores, scores.places()), *remarks(scores), *remarks_on_others(scores)]
    return Shown(parts, [*_rows(scores)], figures=_figures(scores))


def apart(found: AllScores) -> list[str]:
    """A sentence for each collective and source of times, on the errors of times and the slowdown of picks."""
    every = [
        (scores, scores.errors_of(title), scores.summary(title)) for scores in found.values() for title in scores.times
    ]
    return said("apart", every=every)


def score_records(scores: Scores) -> list[dict[str, Any]]:
    """Errors and losses of each model and of the untuned library on a collective, as plain data.

    `picks` counts the points with a timed pick, `best_picks` those where the pick is the best choice; if only one
    choice has a time anywhere, nothing is picked. `left_out` are the algorithms for which a model has no formula.
    `unpredicted` counts the reference times that a model does not predict, although it has a formula for the algorithm.
    """
    return [_score(scores, title) for title in scores.others]


def _score(scores: Scores, title: str) -> dict[str, Any]:
    right, errors = scores.right, scores.errors_of(title)
    summary = summary_of([], TIE) if scores.is_alone else scores.summary(title)
    library = title in scores.deciders
    worst = wrong = ""
    if summary.points:
        i, j = summary.worst_at
        picked = scores.pick(title, i, j)
        worst = _at(picked.name if library else picked.label, right.procs[i], right.message_bytes[j])
    if errors is not None:
        wrong = _at(*scores.worst_error_at(title))
    return {
        "platform": right.platform,
        "collective": right.collective,
        "model": title,
        "predictions": 0 if errors is None else errors.count,
        "mean_error": math.nan if errors is None else errors.mean,
        "worst_error": math.nan if errors is None else abs(errors.worst),
        "worst_error_at": wrong,
        "picks": summary.points,
        "best_picks": summary.best_chosen,
        "mean_slowdown": summary.mean,
        "worst_slowdown": summary.worst,
        "worst_at": worst,
        "left_out": () if library else scores.unknown(title),
        "unpredicted": 0 if library else scores.unpredicted(title),
        "library": library,
    }


def _at(choice: Choice | str, procs: int, size: int) -> str:
    return f"P = {procs}, {format_size(size)}: {choice if isinstance(choice, str) else choice.label}"


def score_rows(records: Iterable[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Rows under SCORE_COLUMNS; a model without any formula for the collective has no row."""
    return [
        (
            *(record["platform"], record["collective"], record["model"]),
            *(("-", "-", "-") if record["library"] else _predicted(record)),
            f"{record['best_picks']} of {record['picks']}" if record["picks"] else "-",
            *(percent(record["mean_slowdown"]), percent(record["worst_slowdown"])),
            record["worst_at"] if record["worst_slowdown"] > 0 else "-",
        )
        for record in records
        if record["predictions"] or record["unpredicted"] or record["library"]
    ]


def _predicted(one: Mapping[str, Any]) -> tuple[str, str, str]:
    lacking = f" ({one['unpredicted']} not)" if one["unpredicted"] else ""
    return f"{one['predictions']}{lacking}", percent(one["mean_error"]), percent(one["worst_error"])


def remarks(scores: Scores) -> list[str]:
    """Sentences on the times that are compared with the reference times.

    The sentences name the source of times whose picks are the best on average, the algorithms that each source leaves
    out, and models that were fitted to times other than the reference times.
    """
    costs = {title: found for title in scores.times if (found := scores.summary(title)).points}
    unknown: dict[tuple[str, ...], list[str]] = {}
    for title in scores.times:
        if missing := scores.unknown(title):
            known = scores.errors_of(title) or scores.unpredicted(title)
            unknown.setdefault(missing if known else ("any of these",), []).append(title)
    best = min(costs, key=lambda title: (costs[title].mean, costs[title].worst), default=None)
    own = LIBRARY_DECIDES in scores.right.grid.timed
    return said("scores", scores=scores, costs=costs, best=best, unknown=unknown, own=own)


def _figures(scores: Scores) -> dict[str, Callable[[], Figure]]:
    """Maps of the best choices and of slowdowns; if an untuned library is compared, also lines over P and over m."""
    right = scores.right
    what, stem = f"{right.collective} on {right.platform}", f"{right.platform}-{right.collective}"
    library = next((other for other in scores.others.values() if isinstance(other, Baseline)), None)
    has_messages = min(right.message_bytes) > 0
    found: dict[str, Callable[[], Figure]] = {}
    if has_messages:
        close = {f"Slowdown of the best other algorithm, %: {what}": scores.runner_up_slowdown}
        found[f"{stem}-decisions"] = drawing("maps.decision_figure", scores, f"Best method: {what}")
        found[f"{stem}-slowdowns"] = drawing("maps.slowdown_figure", scores, f"Slowdown of picks: {what}")
        found[f"{stem}-close"] = drawing("maps.closeness_map", close, right.procs, right.message_bytes)
    if library is not None:
        title = f"{what}, {right.source} by {right.maker}"
        if len(right.procs) > 3 or not has_messages:
            found[f"{stem}-by-procs"] = drawing("picks.picks_by_procs", scores, title)
        if has_messages:
            found[f"{stem}-by-size"] = drawing("picks.picks_by_size", scores, title)
            beside = next(iter(scores.times.values()), None)
            found[f"{stem}-algorithms"] = drawing("picks.times_figure", right, max(right.procs), beside)
    return found


def points(scores: Scores, places: Sequence[tuple[int, int]]) -> Table:
    """A row for each place (i, j) of P and m: the best choice, its time, and the picks with their slowdowns.

    If only one choice has a time at each place, the row has the other times of this choice instead, with their errors.
    """
    right = scores.right
    rows = [
        (
            *(right.procs[i], format_size(right.message_bytes[j]), scores.pick(None, i, j).label),
            format_seconds(scores.pick(None, i, j).seconds),
            *(_beside(scores, title, i, j) for title in scores.others),
        )
        for i, j in places
    ]
    heads = ["P", "m", "choice" if scores.is_alone else "best", "time", *(f"{title} (%)" for title in scores.others)]
    title = f"{right.collective} on {right.platform}, {right.source} by {right.maker}"
    return Table(title, heads, rows, left=0, keys=2)


def _beside(scores: Scores, title: str, i: int, j: int) -> str:
    """Another source's pick with its slowdown, or its time of the only choice with the signed error."""
    if not scores.is_alone or title in scores.deciders:
        pick = scores.pick(title, i, j)
        return f"{pick.label} ({whole_percent(pick.slowdown)})"
    place = int(scores.right.best.values[i, j])
    seconds = float(scores.times[title].seconds.values[place, i, j])
    if math.isnan(seconds):
        return "-"
    return f"{format_seconds(seconds)} ({100 * float(scores.errors[title].values[place, i, j]):+.0f})"


def _rows(scores: Scores) -> Iterator[dict[str, Any]]:
    right = scores.right
    for i, j in scores.places():
        yield {
            "collective": right.collective,
            "procs": right.procs[i],
            "message_bytes": right.message_bytes[j],
            "best": _record(scores.pick(None, i, j)),
            "picks": {title: _record(scores.pick(title, i, j)) for title in scores.others},
        }


def _record(pick: Picked) -> dict[str, Any]:
    return {**vars(pick.choice or Choice("-")), "seconds": pick.seconds, "slowdown": pick.slowdown}
