"""Comparisons as people read them: rows like those of tables 2, 3 and 8 of Nuriyev & Lastovetsky 2021."""

from __future__ import annotations

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.validation.compare.scores import Picked, Scores
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.choice import Choice


def heads(scores: Scores, baseline: Baseline) -> dict[str, str]:
    """The heads of the columns of a comparison by titles: of the model, if any, and of the library's deciders.

    The paper compares the library's choice at the common segment size; with several sizes there is no such column.
    """
    found = dict.fromkeys([*scores.times][:1], "model")
    listed = next((name for name in scores.deciders if name != baseline.title), None)
    if listed is None or chooses_segments(scores):
        return found | {baseline.title: baseline.title}
    return found | {listed: baseline.title, baseline.title: "with its segments"}


def compared_places(scores: Scores) -> list[tuple[int, int]]:
    """The places (i, j) of P and m that are shown: those with a simulated time, and with a prediction, if any is."""
    return scores.places(*scores.times)


def table_columns(scores: Scores, baseline: Baseline) -> tuple[str, ...]:
    """The heads of `table_row`'s cells."""
    return ("P", "m", "best", "time", *(f"{head} (%)" for head in heads(scores, baseline).values()))


def chooses_segments(scores: Scores) -> bool:
    """Whether candidates have several segment sizes. The paper's comparison has one, also for Open MPI's algorithm."""
    grid = scores.right.grid
    return any("," in grid.labels[choice] for choice in grid.choices)


def library_pick(scores: Scores, baseline: Baseline, i: int, j: int) -> Picked:
    """The untuned library's pick at a place; where the catalogue does not have its algorithm, just the name of that."""
    right = scores.right
    decision = baseline.decide(right.collective, right.procs[i], right.message_bytes[j])
    return scores.pick(baseline.title, i, j)._replace(choice=decision.choice or Choice(decision.algorithm))


def table_row(scores: Scores, baseline: Baseline, i: int, j: int) -> tuple[str, ...]:
    """The best choice with its time, and each pick with its slowdown in percent."""
    right, wide = scores.right, chooses_segments(scores)

    def cell(title: str) -> str:
        if title == baseline.title:
            taken = library_pick(scores, baseline, i, j)
            return f"{taken.label} ({percent(taken.slowdown)})"
        picked = scores.pick(title, i, j)
        return f"{picked.label if wide else picked.name} ({percent(picked.slowdown)})"

    best = scores.pick(None, i, j)
    return (
        str(right.procs[i]),
        format_size(right.message_bytes[j]),
        best.label if wide else best.name,
        format_seconds(best.seconds),
        *map(cell, heads(scores, baseline)),
    )


def percent(slowdown: float) -> str:
    """'3', '160': whole percent, without a minus sign for nothing; '-' where there is no time."""
    return "-" if np.isnan(slowdown) else f"{slowdown * 100:z.0f}"
