"""Results of `tune`: the gain by collective, how sure it is, and the file to take."""

from __future__ import annotations

from functools import partial

from collwise.studies.present.shown import Shown, Table, problem_of
from collwise.studies.reports import tuning as report
from collwise.studies.reports.sureness import sure_facts
from collwise.tuning import Tuned
from collwise.validation.libraries.formats import how_to_use


def shown(tuned: Tuned) -> Shown:
    """A row for each collective, sentences on the gain, and the files."""
    parts: list[Table | str] = [report.gain_table(tuned), *report.sentences(tuned)]
    path = tuned.rules.path
    if path is not None:
        parts += [f"take {path}; use it with", f"  {how_to_use(tuned.rules.format_name, path)}"]
        parts.append(f"everything else: {tuned.file('.html')}")
    facts = {
        "rules": None if path is None else str(path),
        "baseline": None if tuned.baseline is None else tuned.baseline.name,
        "checked": report.CHECKED,
        "robust": tuned.decisions.robust,
        "sure": sure_facts(tuned.said, report.gains_of(tuned)),
    }
    figures = {"gains": partial(report.gain_figure, tuned)}
    return Shown(parts, [*report.points(tuned)], facts, figures, problem_of(tuned.decisions.failed))
