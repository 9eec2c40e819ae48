"""Thresholds of linear gather and scatter as bounds of the lmo algorithms, which cut messages between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError, warn
from collwise.validation.times.choice import Choice

if TYPE_CHECKING:
    from collwise.models.lmo import Thresholds

# The threshold that is the bound of each collective's algorithms.
_BOUNDS = {"gather": "gather_irregular_from_bytes", "scatter": "scatter_leap_bytes"}


def bounds_of(algorithm: Algorithm, thresholds: Thresholds | None) -> tuple[int, int]:
    """Segment size and limit in bytes of an algorithm that is `bounded`, 0 where there is none.

    A line on standard error says where the algorithm runs as linear because its threshold is missing.
    """
    bound_name = _BOUNDS[algorithm.collective]
    bound: int | None = getattr(thresholds, bound_name, None)
    if thresholds is None or bound is None:
        why = f"give {bound_name} by --thresholds FILE" if thresholds is None else f"the file has no {bound_name}"
        warn(f"{algorithm.collective} {algorithm.name} runs as linear: {why}")
        return 0, 0
    return bound, thresholds.last_irregular_bytes if algorithm.collective == "gather" else 0


def with_thresholds(collective: str, choices: Sequence[Choice], thresholds: Thresholds | None) -> tuple[Choice, ...]:
    """The choices; those of algorithms that take a threshold with its bound and limit (see `bounds_of`)."""
    entries = Catalogue.load().collective(collective).algorithms

    def bounded(choice: Choice) -> Choice:
        if not entries[choice.algorithm].bounded:
            return choice
        segment, limit = bounds_of(entries[choice.algorithm], thresholds)
        return replace(choice, segment_bytes=segment, limit_bytes=limit)

    return tuple(map(bounded, choices))


def check_thresholds_matter(algorithms: Sequence[Algorithm], thresholds: Thresholds | None) -> None:
    """Raises UsageError for thresholds that none of the algorithms takes."""
    if thresholds is not None and not any(algorithm.bounded for algorithm in algorithms):
        entries = [one for of in _BOUNDS for one in Catalogue.load().collective(of).algorithms.values() if one.bounded]
        takers = ", ".join(f"{one.collective} {one.name}" for one in entries)
        raise UsageError(f"--thresholds: none of the algorithms asked for uses thresholds; these do: {takers}")


def with_bounds(algorithms: str, thresholds: Thresholds | None) -> str:
    """A valid list such as 'gather=lmo;bcast=chain,segment_bytes=8192' with bounds for the entries that name none."""
    return ";".join(_entry_with_bounds(entry, thresholds) for entry in algorithms.split(";"))


def _entry_with_bounds(entry: str, thresholds: Thresholds | None) -> str:
    collective, _, choice = entry.partition("=")
    name, *parameters = (word.strip() for word in choice.split(","))
    algorithm = Catalogue.load().collectives[collective.strip()].algorithms.get(name) if entry.strip() else None
    if algorithm is None or not algorithm.bounded or parameters:
        return entry
    bound, limit = bounds_of(algorithm, thresholds)
    named = algorithm.named_parameters(bound, limit_bytes=limit)
    return ",".join([entry, *(f"{name}={value}" for name, value in named.items())])
