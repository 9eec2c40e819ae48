"""Choices by the schedule engine as people read them, with SMPI's times beside them where there are any."""

from __future__ import annotations

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.switch_points import TIE
from collwise.studies.reports.comparison_table import library_pick, percent
from collwise.validation.compare.scores import Scores, compare
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.slowdown import slowdown
from collwise.validation.times.times import Times


def checked_times(scores: Scores) -> Times:
    """SMPI's times, which the engine's are compared with."""
    return next(iter(scores.times.values()))


def engine_columns(scores: Scores) -> tuple[str, ...]:
    """The heads of `engine_rows`' cells."""
    library = (f"{title} (%)" for title in scores.deciders)
    return ("P", "m", "best", "time", "next algorithm (%)", *library, "time by SMPI (%)", "slowdown by SMPI (%)")


def engine_rows(scores: Scores, baseline: Baseline) -> list[tuple[str, ...]]:
    """Rows: by the engine the best choice, the best one of another algorithm, and what the untuned library picks.

    Where SMPI has times, that of the best algorithm at the common segment size, with its difference from the engine's,
    and the slowdown of this algorithm by SMPI's times.
    """
    played, grid, choices = scores.right, scores.right.grid, scores.right.choices
    rows: list[tuple[str, ...]] = []
    for i, j in scores.places():
        times, checked = played.array[:, i, j], checked_times(scores).array[:, i, j]
        order = np.argsort(times, kind="stable")
        best = choices[order[0]]
        slower = np.isfinite(times) & (times > times[order[0]] * (1 + TIE))
        other = next((k for k in order if slower[k] and choices[k].algorithm != best.algorithm), None)
        after = "-"
        if other is not None:
            after = f"{choices[other].algorithm} ({percent(float(slowdown(times[other], times[order[0]])))})"
        common = choices.index(grid.at_common_segment(best.algorithm))
        by_smpi = loss = "-"
        if np.isfinite(checked[common]):
            difference = (checked[common] / times[common] - 1) * 100
            by_smpi = f"{format_seconds(checked[common])} ({difference:+z.0f})"
            loss = percent(float(slowdown(checked[common], np.nanmin(checked))))
        row = (str(grid.procs[i]), format_size(grid.message_bytes[j]), best.label, format_seconds(times[order[0]]))
        taken = [library_pick(scores, baseline, i, j) for _ in scores.deciders]
        library = (f"{one.name} ({percent(one.slowdown)})" for one in taken)
        rows.append((*row, after, *library, by_smpi, loss))
    return rows


def library_line(scores: Scores) -> str:
    """The slowdowns of the untuned library's picks by the engine's times; empty without any."""
    lines = [
        f"Slowdown against the best: {title} {found.mean * 100:.1f} % on average, {found.worst * 100:.1f} % at worst"
        for title in scores.deciders
        if (found := scores.summary(title)).points
    ]
    return "".join(lines)


def agreement_line(scores: Scores) -> str:
    """How far SMPI's times and the engine's are apart, and the slowdown of the engine's picks by SMPI's times."""
    by_smpi = compare(checked_times(scores).by_algorithm(), scores.right)
    (title,) = by_smpi.others
    errors, costs = by_smpi.errors_of(title), by_smpi.summary(title)
    if errors is None:
        return "Schedule engine against SMPI: no times of both"
    choice, procs, size = by_smpi.worst_error_at(title)
    return (
        f"Schedule engine against SMPI, {errors.count} times: {errors.mean * 100:.1f} % apart on average, "
        f"{abs(errors.worst) * 100:.1f} % at most (P = {procs}, {format_size(size)}: {choice.label}). The engine's "
        f"picks, by SMPI's times at {costs.points} points: {costs.mean * 100:z.1f} % slower than the best on average, "
        f"{costs.worst * 100:z.1f} % at worst"
    )
