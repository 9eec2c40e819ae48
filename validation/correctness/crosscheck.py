"""Judges the comparison of our algorithms with those of SMPI and Open MPI: what differs, and why.

Each difference needs an explanation (crosscheck.toml). An explanation without a difference is out of date, and is a
finding, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from collwise.validation.correctness.crosscheck_openmpi import OpenmpiRow
from collwise.validation.correctness.crosscheck_smpi import SmpiRow
from collwise.validation.correctness.explanations import Explanation, Key

CrosscheckRow = SmpiRow | OpenmpiRow
"""A row of the comparison with SMPI or with Open MPI."""
Explanations = Mapping[Key, Explanation]


def findings(rows: Sequence[CrosscheckRow], explanations: Explanations, complete: bool) -> list[str]:
    """A line for each failed run, each wrong result, each unexplained difference and each unneeded explanation.

    An explanation is unneeded if nothing differs, which is known only if the rows cover every algorithm (`complete`).
    """
    said = [(row, row.problem) for row in rows if row.problem]
    said += [(row, "results differ") for row in rows if not row.problem and not row.results_agree]
    said += [(row, "differs for no known reason") for row in rows if _unexplained(row, explanations)]
    lines = [f"{row.collective} {row.algorithm} on {row.procs} processes: {what}" for row, what in said]
    if complete:
        differing = {_key(row) for row in rows if row.differs}
        unneeded = [key for key, why in explanations.items() if why.by_default and key not in differing]
        lines += [f"{' '.join(key)}: explained, but nothing differs" for key in unneeded]
    return lines


def _unexplained(row: CrosscheckRow, explanations: Explanations) -> bool:
    """True if a row differs for no known reason, or by more than the reason explains."""
    if row.problem or not row.differs:
        return False
    explanation = explanations.get(_key(row))
    return explanation is None or not explanation.min_ratio <= row.ratio <= explanation.max_ratio


def explained(rows: Iterable[CrosscheckRow], explanations: Explanations) -> list[tuple[str, str]]:
    """The explanations that these rows need, as pairs of 'collective algorithm' and the text."""
    keys = dict.fromkeys(_key(row) for row in rows if row.differs)
    return [(" ".join(key), explanations[key].why) for key in keys if key in explanations]


def _key(row: CrosscheckRow) -> Key:
    return row.collective, row.algorithm
