"""Scores: at each point the best choice and those of the others, and what each of these is worth on the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from collwise.common.units import format_seconds, format_size
from collwise.studies.present.shown import Shown, Table, drawing, problem_of
from collwise.studies.reports.markdown import percent, whole_percent
from collwise.studies.reports.model_scores import SCORE_COLUMNS, remarks, score_records, score_rows
from collwise.validation.compare.scores import AllScores, Picked, Scores
from collwise.validation.compare.simulated import remarks as remarks_on_others
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.choice import Choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def shown(found: AllScores) -> Shown:
    """A table of picks for each collective, one of the errors and slowdowns of all others, and maps of both."""
    every = [of_one(scores) for scores in found.values()]
    records = [record for scores in found.values() for record in score_records(scores)]
    parts: list[Table | str] = [part for one in every for part in one.parts]
    title = "Errors of times, and the slowdown of picks against the best (%)"
    parts.insert(len(every), Table(title, SCORE_COLUMNS, score_rows(records), left=3))
    failed = [timing for scores in found.values() for timing in scores.right.failed]
    rows = [row for one in every for row in one.rows]
    figures = {stem: draw for one in every for stem, draw in one.figures.items()}
    return Shown(parts, rows, {"scores": records}, figures, problem_of(failed))


def of_one(scores: Scores) -> Shown:
    """The table of one collective, sentences on the others, and maps."""
    parts: list[Table | str] = [points(scores, scores.places()), *remarks(scores), *remarks_on_others(scores)]
    return Shown(parts, [*_rows(scores)], figures=_figures(scores))


def apart(found: AllScores) -> Iterator[str]:
    """A sentence for each collective and each other: how far its times are apart, and what its picks lose."""
    for scores in found.values():
        for title in scores.times:
            errors, costs = scores.errors_of(title), scores.summary(title)
            if errors is not None:
                yield (
                    f"{scores.right.collective}, {errors.count} times: {percent(errors.mean)} apart on average, "
                    f"{percent(abs(errors.worst))} at most; picks at {costs.points} points "
                    f"{percent(costs.mean)} slower than the best on average, {percent(costs.worst)} at most"
                )


def _figures(scores: Scores) -> dict[str, Callable[[], Figure]]:
    """Maps of the best choices and of slowdowns, and where there is an untuned library lines over P and m."""
    right = scores.right
    what, stem = f"{right.collective} on {right.platform}", f"{right.platform}-{right.collective}"
    library = next((one for one in scores.others.values() if isinstance(one, Baseline)), None)
    has_messages = min(right.message_bytes) > 0
    found: dict[str, Callable[[], Figure]] = {}
    if has_messages:
        close = {f"Slowdown of the best other algorithm, %: {what}": scores.closeness}
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
            found[f"{stem}-algorithms"] = drawing("times.times_figure", right, max(right.procs), beside)
    return found


def points(scores: Scores, places: Sequence[tuple[int, int]]) -> Table:
    """A row for each place (i, j) of P and m: the best choice, its time, and the picks with their slowdowns."""
    right = scores.right
    rows = [
        (
            *(right.procs[i], format_size(right.message_bytes[j]), scores.pick(None, i, j).label),
            format_seconds(scores.pick(None, i, j).seconds),
            *(f"{pick.label} ({whole_percent(pick.slowdown)})" for pick in _picks(scores, i, j).values()),
        )
        for i, j in places
    ]
    heads = ["P", "m", "best", "time", *(f"{title} (%)" for title in scores.others)]
    title = f"{right.collective} on {right.platform}, {right.source} by {right.maker}"
    return Table(title, heads, rows, left=0, keys=2)


def _picks(scores: Scores, i: int, j: int) -> dict[str, Picked]:
    """The picks of the others at a place of P and m."""
    return {title: scores.pick(title, i, j) for title in scores.others}


def _rows(scores: Scores) -> Iterator[dict[str, Any]]:
    right = scores.right
    for i, j in scores.places():
        yield {
            "collective": right.collective,
            "procs": right.procs[i],
            "message_bytes": right.message_bytes[j],
            "best": _record(scores.pick(None, i, j)),
            "picks": {title: _record(pick) for title, pick in _picks(scores, i, j).items()},
        }


def _record(pick: Picked) -> dict[str, Any]:
    return {**vars(pick.choice or Choice("-")), "seconds": pick.seconds, "slowdown": pick.slowdown}
