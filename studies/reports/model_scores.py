"""Scores of models as rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from collwise.common.units import format_size
from collwise.studies.reports.markdown import percent
from collwise.validation.compare.scores import Scores

SCORE_COLUMNS = (
    *("platform", "collective", "model", "predictions", "mean error", "worst error"),
    *("best picked", "mean slowdown", "worst slowdown", "worst at"),
)


def score_records(scores: Scores) -> list[dict[str, Any]]:
    """What each model, and then the untuned library, is worth on a collective, as plain data.

    `picks` are the points where it picks anything that was timed, `best_picks` those where it picks the best.
    `left_out` are algorithms that a model has no formula for, `unpredicted` choices at points without a prediction.
    """
    return [_record(scores, title) for title in scores.others]


def _record(scores: Scores, title: str) -> dict[str, Any]:
    right, summary, errors = scores.right, scores.summary(title), scores.errors_of(title)
    library = title in scores.deciders

    def at(choice: str, procs: int, size: int) -> str:
        return f"P = {procs}, {format_size(size)}: {choice}"

    worst = wrong = ""
    if summary.points:
        i, j = summary.worst_at
        picked = scores.pick(title, i, j)
        worst = at(picked.name if library else picked.label, right.procs[i], right.message_bytes[j])
    if errors is not None:
        choice, *point = scores.worst_error_at(title)
        wrong = at(choice.label, *point)
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


def score_rows(records: Iterable[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Rows under SCORE_COLUMNS; none for a model without any formula for the collective."""
    return [
        (
            *(one["platform"], one["collective"], one["model"]),
            _predictions(one),
            *(("-", "-") if one["library"] else (percent(one["mean_error"]), percent(one["worst_error"]))),
            f"{one['best_picks']} of {one['picks']}" if one["picks"] else "-",
            *(percent(one["mean_slowdown"]), percent(one["worst_slowdown"])),
            one["worst_at"] if one["worst_slowdown"] > 0 else "-",
        )
        for one in records
        if one["predictions"] or one["unpredicted"] or one["library"]
    ]


def _predictions(one: Mapping[str, Any]) -> str:
    if one["library"]:
        return "-"
    return f"{one['predictions']} ({one['unpredicted']} not)" if one["unpredicted"] else str(one["predictions"])


def remarks(scores: Scores) -> list[str]:
    """Sentences on times beside the right ones.

    They name the times whose picks have the least mean slowdown, the algorithms that each leaves out, and models that
    were fitted to other times than those that judge.
    """
    where = f"{scores.right.platform}, {scores.right.collective}"
    costs = {title: found for title in scores.times if (found := scores.summary(title)).points}
    best = min(costs, key=lambda title: (costs[title].mean, costs[title].worst), default=None)
    lines = []
    if scores.times and best is None:
        lines.append(f"{where}: none of {', '.join(scores.times)} has a time at any of these points")
    if best is not None and len(costs) > 1:
        lines.append(
            f"{where}: the picks of {best} have the least slowdown, "
            f"{percent(costs[best].mean)} on average, {percent(costs[best].worst)} at worst"
        )
    models: dict[tuple[str, ...], list[str]] = {}
    for title in scores.times:
        if unknown := scores.unknown(title):
            missing = unknown if scores.errors_of(title) or scores.unpredicted(title) else ("any of these",)
            models.setdefault(missing, []).append(title)
    lines += [f"{where}: no times in {', '.join(of)} of {', '.join(missing)}" for missing, of in models.items()]
    maker = scores.right.maker
    lines += [
        f"{where}: {title} was fitted to times by {one.fitted_to}, but is judged by times by {maker}, which differ"
        for title, one in scores.times.items()
        if one.fitted_to not in ("", maker)
    ]
    return lines
