"""Judges the comparison of our algorithms with those of SMPI and Open MPI by the known differences in crosscheck.toml.

Each difference needs an explanation. An explanation without a difference is out of date, and is a finding, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collwise.validation.correctness.crosscheck_openmpi import OpenmpiRow
    from collwise.validation.correctness.crosscheck_smpi import SmpiRow

    CrosscheckRow: TypeAlias = SmpiRow | OpenmpiRow

Key = tuple[str, str]
"""A collective and an algorithm."""


@dataclass(frozen=True)
class Explanation:
    """The reason why a library's algorithm differs from ours, and the allowed range of our time over the library's.

    `by_default` says whether the algorithms differ for the default process counts and sizes.
    """

    why: str
    min_ratio: float = 0.0
    max_ratio: float = float("inf")
    by_default: bool = True


@dataclass(frozen=True)
class CodeDifference:
    """A difference between Open MPI 4.1's code of an algorithm and ours. The root is rank 0.

    `differs` has words that crosscheck.toml explains. `where` says which calls differ; if it is empty, all calls do.
    """

    differs: tuple[str, ...]
    why: str
    where: str = ""

    @property
    def text(self) -> str:
        """The difference as text: for example 'scratch, copies, where P is no power of two: ' and `why`."""
        return f"{', '.join(self.differs)}{', where ' * bool(self.where)}{self.where}: {self.why}"


def _key(name: str) -> Key:
    collective, algorithm = name.split()
    return collective, algorithm


def _code_differences(entries: list[dict[str, Any]]) -> Mapping[Key, Sequence[CodeDifference]]:
    found: dict[Key, list[CodeDifference]] = {}
    for entry in entries:
        names, differs = entry.pop("algorithms"), tuple(entry.pop("differs"))
        for name in names:
            found.setdefault(_key(name), []).append(CodeDifference(differs, **entry))
    return found


def _explanations(entries: list[dict[str, Any]]) -> Mapping[Key, Explanation]:
    return {_key(name): Explanation(**entry) for entry in entries for name in entry.pop("algorithms")}


_DOCUMENT = tomllib.loads(Path(__file__).with_name("crosscheck.toml").read_text(encoding="utf-8"))
SMPI, OPENMPI = _explanations(_DOCUMENT["smpi"]), _explanations(_DOCUMENT["openmpi"])
"""The reasons why algorithms differ from SMPI's and from Open MPI's."""
OPENMPI_CODE = _code_differences(_DOCUMENT["openmpi_code"])
"""The differences of Open MPI's code from our code of the same algorithm."""
PARTS = "parts"
"""The word in `differs` if an algorithm calls other collectives, for which Open MPI itself decides the algorithms."""
NOT_IN_SMPI: Mapping[Key, str] = {_key(name): why for name, why in _DOCUMENT["not_in_smpi"].items()}
"""Algorithms that SMPI seems to have as well, with the reason why they cannot be compared."""
OPENMPI_NAMES: Mapping[Key, str] = {_key(name): theirs for name, theirs in _DOCUMENT["openmpi_names"].items()}
"""Open MPI's names of algorithms, where they differ from ours."""
OPENMPI_PARTS = {_key(name): [_key(part) for part in parts] for name, parts in _DOCUMENT["openmpi_parts"].items()}
"""The collectives that an algorithm of Open MPI calls, each with the algorithm that is forced for it."""


def findings(rows: Sequence[CrosscheckRow], explanations: Mapping[Key, Explanation], complete: bool) -> list[str]:
    """A line for each failed run, each wrong result, each unexplained difference and each unneeded explanation.

    An explanation is unneeded if nothing differs, which is known only if the rows cover every algorithm (`complete`).
    """
    said = [(row, row.problem) for row in rows if row.problem]
    said += [(row, "results differ") for row in rows if not row.problem and not row.results_agree]
    said += [(row, "differs for no known reason") for row in rows if _unexplained(row, explanations)]
    lines = [f"{row.collective} {row.algorithm} on {row.procs} processes: {what}" for row, what in said]
    if complete:
        differing = {(row.collective, row.algorithm) for row in rows if row.differs}
        unneeded = [key for key, why in explanations.items() if why.by_default and key not in differing]
        lines += [f"{' '.join(key)}: explained, but nothing differs" for key in unneeded]
    return lines


def _unexplained(row: CrosscheckRow, explanations: Mapping[Key, Explanation]) -> bool:
    """True if a row differs for no known reason, or by more than the reason explains."""
    if row.problem or not row.differs:
        return False
    known = explanations.get((row.collective, row.algorithm))
    return known is None or not known.min_ratio <= row.ratio <= known.max_ratio


def explained(rows: Iterable[CrosscheckRow], explanations: Mapping[Key, Explanation]) -> list[tuple[str, str]]:
    """The explanations that these rows need, as pairs of 'collective algorithm' and the text."""
    keys = dict.fromkeys((row.collective, row.algorithm) for row in rows if row.differs)
    return [(" ".join(key), explanations[key].why) for key in keys if key in explanations]
