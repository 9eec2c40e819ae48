"""Decision tables in the terms of a consumer's rules. Where these cannot say a choice, the second best is taken, with
its cost.

Rules of Open MPI know bytes only, and some of its algorithms need a number of elements (`min_bytes`): rules name these
from the size at which even large elements, complex doubles, are enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from collwise.common.units import format_size
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.left_to_library import left_to_library, with_untuned
from collwise.validation.libraries.openmpi_untuned import NEEDS_ELEMENTS, min_bytes
from collwise.validation.select.consumers import COLLWISE, can_say, leaves_calls, needs_one_choice, sees_sizes
from collwise.validation.select.decisions import DecisionTable, Row, merged, spans, without_repeated_rows
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.slowdown import slowdown

Steps = Sequence[tuple[int, Choice | None]]
"""From which message size on, and the choice; None where none can be said."""
Says = Callable[[Choice], bool]


@dataclass(frozen=True)
class Substitution:
    """A choice that a format cannot say, and what it says instead: another choice, or that the library decides (None).

    `cost` is the largest slowdown of the replacement against the choice, over the sizes with known times; nan where
    none are. `too_few`: only since the library would run another algorithm where a message has few elements.
    """

    collective: str
    procs: int
    start: int
    chosen: Choice
    instead: Choice | None
    cost: float
    too_few: bool = False

    def __str__(self) -> str:
        return self.said(str(self.procs))

    def said(self, procs: str) -> str:
        """The sentence about it, for these process counts."""
        why = f"too few elements for {self.chosen.label}" if self.too_few else f"cannot express {self.chosen.label}"
        what = f"{self.collective} from P = {procs}, {format_size(self.start)}: {why}"
        if self.instead is None or (self.instead == LIBRARY_DECIDES and math.isnan(self.cost)):
            return f"{what}; the library decides"
        if math.isnan(self.cost):
            return f"{what}; {self.instead.label} instead, at a cost that is not known"
        slower = f"at most {self.cost * 100:.1f} % slower" if self.cost > 0 else "no slower"
        instead = "the library decides" if self.instead == LIBRARY_DECIDES else f"{self.instead.label} instead"
        return f"{what}; {instead}, {slower}"


def told(found: Sequence[Substitution]) -> list[str]:
    """A sentence for each substitution. Those that differ by P alone share one."""
    alike: dict[str, list[Substitution]] = {}
    for one in found:
        alike.setdefault(one.said("P"), []).append(one)
    return [
        same[0].said(f"{same[0].procs} to {same[-1].procs}" if len(same) > 1 else str(same[0].procs))
        for same in alike.values()
    ]


def for_consumer(
    tables: Sequence[DecisionTable], consumer: str, by_size: bool = True
) -> tuple[list[DecisionTable], tuple[Substitution, ...]]:
    """Tables as rules for a consumer ('openmpi-4.1', 'mpich', 'collwise') can say them, and what was replaced in them.

    If rules cannot say a choice, they get another one: that with the smallest maximum of slowdowns over the sizes with
    known times. If they can say none, the library decides. With too few elements the choice for smaller sizes stays in
    force; where only fewer processes were timed, the library decides. Without `by_size` a row has one choice, as for
    consumers that do not see message sizes.

    Open MPI and libcollwise also decide some calls themselves (`left_to_library`): for process counts between those
    with times, for counts more than four times those of the choices, and where the library's own decision is known,
    timed and faster. A table that Open MPI's rules cannot say even so stays as it is.
    """
    found = [_sayable(table, consumer, by_size and sees_sizes(consumer, table.collective)) for table in tables]
    return [table for table, _ in found], tuple(one for _, replaced in found for one in replaced)


def _sayable(table: DecisionTable, consumer: str, by_size: bool) -> tuple[DecisionTable, list[Substitution]]:
    def says(choice: Choice) -> bool:
        return can_say(consumer, table.collective, choice)

    if not leaves_calls(consumer):
        return _in_force(table, *second_best(table, says, by_size))
    said, replaced = table, list[Substitution]()
    if consumer != COLLWISE:
        said = with_untuned(table, BASELINES.get(consumer))
        fits = all(map(says, table.choices)) and (by_size or max(map(len, table.rules.values())) == 1)
        if needs_elements(table) if fits else table.times:
            rows, substitutions = second_best(said, says, by_size, needs_enough=by_size)
            if fits or all(choice is not None for row in rows.values() for start, choice in row if start):
                said, replaced = _in_force(said, rows, substitutions)
    return left_to_library(said, not needs_one_choice(table.collective, consumer), table), replaced


def _in_force(
    table: DecisionTable, rows: Mapping[int, Steps], replaced: Sequence[Substitution]
) -> tuple[DecisionTable, list[Substitution]]:
    """The table with these rows, without repeated rows, and what was replaced in them."""
    decided = ((procs, _decided(row)) for procs, row in rows.items())
    rules = without_repeated_rows(decided, table.rules)
    return replace(table, rules=rules), [one for one in replaced if one.procs in rules]


def _decided(row: Steps) -> Row:
    """The row, starting with its first choice; at later sizes without a choice, the library decides."""
    return tuple((start, choice or LIBRARY_DECIDES) for start, choice in row if choice is not None or start)


def second_best(
    table: DecisionTable, says: Says, by_size: bool, needs_enough: bool = False
) -> tuple[dict[int, Steps], list[Substitution]]:
    """Rows from size 0 of the best choices that rules can express (None: there are none), and what each replaces."""
    rows: dict[int, Steps] = {}
    replaced: list[Substitution] = []
    for procs, last, row in _divided(table, needs_enough):
        steps: dict[int, Choice | None] = {0: None}
        before: Choice | None = None
        parts = [(start, end, {start: choice}) for start, end, choice in spans(row)]
        for start, end, held in parts if by_size or not row else [(0, None, dict(row))]:

            def few(choice: Choice, last: int = last, start: int = start) -> bool:
                return needs_enough and start < min_bytes(table.collective, choice.algorithm, last)

            said, cost = _said(table, procs, held, end, says, few)
            stays = steps[max(steps)]
            if by_size and said is None and says(held[start]):
                said = stays
            for at, choice in held.items():
                if said == choice:
                    continue
                one = Substitution(table.collective, procs, at, choice, said, cost, by_size and says(choice))
                if (before, stays) == (choice, said):
                    earlier = replaced.pop()
                    one = replace(earlier, cost=max(earlier.cost, cost))
                replaced.append(one)
            steps[start] = said
            before = held.get(start)
        rows[procs] = merged(steps.items())
    return rows, replaced


def _said(
    table: DecisionTable, procs: int, steps: Mapping[int, Choice], end: int | None, says: Says, few: Says
) -> tuple[Choice | None, float]:
    """One choice for all of the steps, which end below `end`, and its cost where it replaces one of them.

    `few` says whether there are too few elements for a choice.
    """
    tells = table.times is None or procs in table.times.procs

    def can(choice: Choice) -> bool:
        return says(choice) and not (tells and few(choice))

    chosen = set(steps.values())
    alone = {only: 0.0 for only in chosen if len(chosen) == 1 and can(only)}
    costs = alone or {choice: cost for choice, cost in _costs(table, procs, steps, end).items() if can(choice)}
    if not costs:
        return next((choice for choice in reversed([*steps.values()]) if can(choice)), None), math.nan
    said = min(costs, key=lambda choice: costs[choice])
    return (said, costs[said]) if tells or not few(said) else (LIBRARY_DECIDES, math.nan)


def _costs(table: DecisionTable, procs: int, steps: Mapping[int, Choice], end: int | None) -> dict[Choice, float]:
    """The worst slowdown of every candidate that has a time at all sizes of the steps, against what they choose."""
    if table.times is None:
        return {}
    first = min(steps)
    sizes = [size for size in table.times.message_bytes if first <= size and (end is None or size < end)] or [first]
    worst: dict[Choice, float] = {}
    for number, size in enumerate(sizes):
        times = table.seconds_at(procs, size)
        wanted = [choice for start, choice in steps.items() if start <= size][-1]
        against = times.get(wanted, min(times.values(), default=math.nan))
        here = {choice: float(slowdown(seconds, against)) for choice, seconds in times.items()}
        kept = here if number == 0 else {choice: cost for choice, cost in worst.items() if choice in here}
        worst = {choice: max(kept[choice], here[choice]) for choice in kept}
    return worst


def needs_elements(table: DecisionTable) -> bool:
    """True if a table chooses an algorithm of Open MPI that needs a number of elements."""
    return any((table.collective, choice.algorithm) in NEEDS_ELEMENTS for choice in table.choices)


def _divided(table: DecisionTable, needs_enough: bool) -> Iterator[tuple[int, int, Row]]:
    """The first P, the largest P and the row of each part of a table. Parts differ in which algorithms have enough
    elements.

    Rows with such algorithms have a step at each size where one begins to have enough. If that depends on P, rows are
    divided at powers of two. The largest P of a row then needs at most twice the elements of the smallest one. They are
    also divided at the first timed P between two powers.
    """
    needs = [name for collective, name in NEEDS_ELEMENTS if needs_enough and collective == table.collective]
    for first, end, row in spans(sorted(table.rules.items())):
        last = max(first, table.last_procs) if end is None else end - 1
        lows = [first]
        if cut := any(choice.algorithm in needs for _, choice in row):
            powers = {1 << bits for bits in range(first.bit_length(), last.bit_length())}
            decided = sorted((p for p in table.decided_procs if first <= p <= last), reverse=True)
            lows = sorted({first, *powers, *{p.bit_length(): p for p in decided}.values()})
        for low, following, _ in spans([*((low, None) for low in lows)]):
            largest = last if following is None else following - 1
            yield low, largest, _cut(table.collective, row, needs, largest) if cut else row


def _cut(collective: str, row: Row, needs: Sequence[str], procs: int) -> Row:
    """A row with steps at the sizes where these algorithms begin to have enough elements."""
    sizes = sorted({min_bytes(collective, name, procs) for name in needs})
    steps: list[tuple[int, Choice]] = []
    for start, end, choice in spans(row):
        enough = min_bytes(collective, choice.algorithm, procs)
        cuts = (size for size in sizes if start < size <= enough and (end is None or size < end))
        steps += [(start, choice), *((size, choice) for size in cuts)]
    return tuple(steps)
