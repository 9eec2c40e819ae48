"""Choices by the schedule engine as people read them, with SMPI's times beside them where there are any."""

from __future__ import annotations

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.switch_points import TIE
from collwise.studies.reports.comparison_table import percent
from collwise.validation.select.tuning import EngineChoices
from collwise.validation.times.slowdown import slowdown


def engine_columns(choices: EngineChoices) -> tuple[str, ...]:
    """The heads of `engine_rows`' cells."""
    library = (f"{choices.baseline.title} (%)",) if choices.shipped else ()
    checked = ("time by SMPI (%)", "slowdown by SMPI (%)")
    return ("P", "m", "best", "time", "next algorithm (%)", *library, *checked)


def engine_rows(choices: EngineChoices) -> list[tuple[str, ...]]:
    """Rows: by the engine the best choice, the best one of another algorithm, and what the untuned library picks.

    Where SMPI has times, that of the best algorithm at the common segment size, with its difference from the engine's,
    and the slowdown of this algorithm by SMPI's times.
    """
    grid = choices.grid
    rows: list[tuple[str, ...]] = []
    options = list(grid.candidates.values())
    for i, procs in enumerate(grid.procs):
        for j, size in enumerate(grid.message_bytes):
            times, checked = choices.seconds[:, i, j], choices.smpi_seconds[:, i, j]
            order = np.argsort(times, kind="stable")
            best = options[order[0]]
            slower = np.isfinite(times) & (times > times[order[0]] * (1 + TIE))
            other = next((k for k in order if slower[k] and options[k].algorithm != best.algorithm), None)
            after = "-"
            if other is not None:
                after = f"{options[other].algorithm} ({percent(float(slowdown(times[other], times[order[0]])))})"
            common = options.index(grid.at_common_segment(best.algorithm))
            by_smpi = loss = "-"
            if np.isfinite(checked[common]):
                difference = (checked[common] / times[common] - 1) * 100
                by_smpi = f"{format_seconds(checked[common])} ({difference:+z.0f})"
                loss = percent(float(slowdown(checked[common], np.nanmin(checked))))
            taken = choices.shipped.get((procs, size))
            library = () if taken is None else (f"{taken.choice.algorithm} ({percent(taken.slowdown)})",)
            row = (str(procs), format_size(size), best.label, format_seconds(times[order[0]]), after)
            rows.append((*row, *library, by_smpi, loss))
    return rows


def library_line(choices: EngineChoices) -> str:
    """The slowdowns of the untuned library's picks by the engine's times; empty without any."""
    slower = np.array([pick.slowdown for pick in choices.shipped.values()])
    if not slower.size or np.isnan(slower).all():
        return ""
    mean, worst = np.nanmean(slower) * 100, np.nanmax(slower) * 100
    return f"Slowdown against the best: {choices.baseline.title} {mean:.1f} % on average, {worst:.1f} % at worst"


def agreement_line(choices: EngineChoices) -> str:
    """How far SMPI's times and the engine's are apart, and the slowdown of the engine's picks by SMPI's times."""
    score = choices.score
    return (
        f"Schedule engine against SMPI, {score.predictions} times: {score.mean_error * 100:.1f} % apart on average, "
        f"{score.worst_error * 100:.1f} % at most ({score.worst_error_at}). The engine's picks, by SMPI's times at "
        f"{score.picks} points: {score.mean_slowdown * 100:z.1f} % slower than the best on average, "
        f"{score.worst_slowdown * 100:z.1f} % at worst"
    )
