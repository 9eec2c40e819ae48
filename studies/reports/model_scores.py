"""Scores of models as rows of tables."""

from __future__ import annotations

from collections.abc import Sequence

from collwise.studies.reports.markdown import percent
from collwise.validation.compare.evaluation import Evaluation, Score
from collwise.validation.fitting.recovery import Recovered

SCORE_COLUMNS = (
    *("platform", "collective", "model", "predictions", "mean error", "worst error"),
    *("best picked", "mean slowdown", "worst slowdown", "worst at"),
)


RECOVERED_COLUMNS = ("platform", "model", "procedure", "parameter", "true", "estimated", "worst error", "found")


def score_rows(scores: Sequence[Score]) -> list[tuple[object, ...]]:
    """Rows under SCORE_COLUMNS; none for a model without any formula for the collective."""
    return [
        (
            *(score.platform, score.collective, score.model),
            _predictions(score),
            *(("-", "-") if score.library else (percent(score.mean_error), percent(score.worst_error))),
            f"{score.best_picks} of {score.picks}" if score.picks else "-",
            *(percent(score.mean_slowdown), percent(score.worst_slowdown)),
            score.worst_at if score.worst_slowdown > 0 else "-",
        )
        for score in scores
        if score.predictions or score.unpredicted or score.library
    ]


def _predictions(score: Score) -> str:
    if score.library:
        return "-"
    return f"{score.predictions} ({score.unpredicted} not)" if score.unpredicted else str(score.predictions)


def remarks(result: Evaluation) -> list[str]:
    """For each collective the model with the least mean slowdown, and the algorithms that models, or all, left out."""
    lines = []
    for collective, names in result.covered_by_none.items():
        best, where = result.best(collective), f"{result.platform}, {collective}"
        lines.append(
            f"{where}: no model predicts any of these points"
            if best is None
            else f"{where}: the picks of {best.model} have the least slowdown, "
            f"{percent(best.mean_slowdown)} on average, {percent(best.worst_slowdown)} at worst"
        )
        models: dict[tuple[str, ...], list[str]] = {}
        for score in result.scores:
            if score.collective == collective and score.left_out:
                missing = score.left_out if score.predictions or score.unpredicted else ("any of these",)
                models.setdefault(missing, []).append(score.model)
        lines += [f"{where}: no formula in {', '.join(of)} for {', '.join(missing)}" for missing, of in models.items()]
        if names:
            lines.append(f"{where}: no model here has a formula for {', '.join(names)}; left out")
    return lines


def recovered_cells(row: Recovered) -> tuple[object, ...]:
    """A row under RECOVERED_COLUMNS."""
    model = f"{row.family}{', of each pair' if row.heterogeneous else ''}"
    return (
        *(row.platform, model, row.procedure, row.parameter, f"{row.true:.6g}", f"{row.estimated:.6g}"),
        *(f"{row.worst_error * 100:.4f} %", "yes" if row.ok else "NO"),
    )
