"""Open MPI's algorithms that need a number of elements, and run as another algorithm where a message has fewer.

A rule knows bytes only. It names such an algorithm from as many bytes on as these elements have when they are large,
complex doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from collwise.validation.select.decisions import DecisionTable, Row, spans
from collwise.validation.times.choice import Choice

ELEMENT_BYTES = 16
"""The bytes of the largest elements that rules allow for, complex doubles."""


@dataclass(frozen=True)
class Least:
    """The least number of elements by process count, and the algorithm that runs with fewer."""

    elements: Callable[[int], int]
    otherwise: str


def _power_of_two(procs: int) -> int:
    """The largest power of two of processes: they halve the message as often."""
    return 1 << (procs.bit_length() - 1)


def _one_each(procs: int) -> int:
    return procs


NEEDS_ELEMENTS: Mapping[tuple[str, str], Least] = {
    ("bcast", "split_binary"): Least(lambda _: 2, "chain"),
    ("bcast", "scatter_allgather"): Least(_one_each, "linear"),
    ("bcast", "scatter_ring_allgather"): Least(_one_each, "linear"),
    ("reduce", "rabenseifner"): Least(_power_of_two, "linear"),
    ("allreduce", "rabenseifner"): Least(_power_of_two, "linear"),
    ("allreduce", "ring"): Least(_one_each, "recursive_doubling"),
    ("allreduce", "segmented_ring"): Least(_one_each, "recursive_doubling"),
}
"""The conditions by collective and algorithm of the catalogue, as messages of 4.1.4 show; others have none."""


def least_elements(collective: str, algorithm: str, procs: int) -> int:
    """The number of elements from which on Open MPI runs the algorithm itself."""
    condition = NEEDS_ELEMENTS.get((collective, algorithm))
    return condition.elements(procs) if condition else 1


def least_bytes(collective: str, algorithm: str, procs: int) -> int:
    """The bytes from which on a rule may name the algorithm, 0 if it may always."""
    needed = least_elements(collective, algorithm, procs)
    return needed * ELEMENT_BYTES if needed > 1 else 0


def needs_elements(table: DecisionTable) -> bool:
    """Whether a table chooses an algorithm that needs a number of elements."""
    return any((table.collective, choice.algorithm) in NEEDS_ELEMENTS for choice in table.choices)


def divided(table: DecisionTable) -> tuple[DecisionTable, dict[int, int]]:
    """The table with a step at each size where an algorithm begins to have enough elements, and each row's largest P.

    Where that depends on P, rows are divided at powers of two, so that what the largest P of a row needs is at most
    twice what the least one does, and at the first P between two of these for which there are times.
    """
    rules: dict[int, Row] = {}
    largest: dict[int, int] = {}
    for first, end, row in spans(sorted(table.rules.items())):
        last = max(first, table.last_procs) if end is None else end - 1
        cut = any((table.collective, choice.algorithm) in NEEDS_ELEMENTS for _, choice in row)
        lows = _divisions(table, first, last) if cut else [first]
        for low, following in zip(lows, [*lows[1:], last + 1], strict=True):
            rules[low] = _cut(table.collective, row, following - 1) if cut else row
            largest[low] = following - 1
    return replace(table, rules=rules), largest


def _divisions(table: DecisionTable, first: int, last: int) -> list[int]:
    """The P at which a row from `first` to `last` is divided, from `first` on."""
    powers = {1 << bits for bits in range(first.bit_length(), last.bit_length())}
    decided = sorted((p for p in table.decided_procs if first <= p <= last), reverse=True)
    return sorted({first, *powers, *{p.bit_length(): p for p in decided}.values()})


def _cut(collective: str, row: Row, procs: int) -> Row:
    """A row with steps at the sizes where the algorithms of a collective begin to have enough elements."""
    needs = {least_bytes(collective, name, procs) for of, name in NEEDS_ELEMENTS if of == collective}
    steps: list[tuple[int, Choice]] = []
    for start, end, choice in spans(row):
        enough = least_bytes(collective, choice.algorithm, procs)
        cuts = (size for size in needs if start < size <= enough and (end is None or size < end))
        steps += [(start, choice), *((size, choice) for size in sorted(cuts))]
    return tuple(steps)
