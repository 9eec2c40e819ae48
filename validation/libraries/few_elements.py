"""Rules for Open MPI's algorithms that need a number of elements (`least_elements`).

A rule knows bytes only. It names such an algorithm from as many bytes on as these elements have when they are large,
complex doubles.
"""

from __future__ import annotations

from dataclasses import replace

from collwise.validation.libraries.least_elements import NEEDS_ELEMENTS, least_bytes
from collwise.validation.select.decisions import DecisionTable, Row, spans
from collwise.validation.times.choice import Choice


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
