"""Decision tables as a format can say them: its second best choice, with the cost, where it cannot say the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.validation.select.decisions import DecisionTable, merged, spans
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.slowdown import slowdown

Step = tuple[int, Choice | None]
"""From which message size on, and the choice; None where the library decides."""
CanSay = Callable[[Choice], bool]
TooFew = Callable[[int, int, Choice], bool]
"""Whether a call may have too few elements for a choice, by process count and size from which the choice holds."""


@dataclass(frozen=True)
class Substitution:
    """A choice that a format cannot say, and what it says instead: another choice, or that the library decides (None).

    `cost` is the largest slowdown of that against what was chosen, over the sizes that times are known for; nan where
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
        why = f"too few elements for {self.chosen.label}" if self.too_few else f"cannot express {self.chosen.label}"
        what = f"{self.collective} from P = {self.procs}, {format_size(self.start)}: {why}"
        if self.instead is None or (self.instead == LIBRARY_DECIDES and math.isnan(self.cost)):
            return f"{what}; the library decides"
        if math.isnan(self.cost):
            return f"{what}; {self.instead.label} instead, at a cost that is not known"
        slower = f"at most {self.cost * 100:.1f} % slower" if self.cost > 0 else "no slower"
        instead = "the library decides" if self.instead == LIBRARY_DECIDES else f"{self.instead.label} instead"
        return f"{what}; {instead}, {slower}"


@dataclass(frozen=True)
class Expressed:
    """A table's rows with choices that a format can say, each from message size 0 on, and what was substituted."""

    table: DecisionTable
    rows: Mapping[int, tuple[Step, ...]]
    substitutions: tuple[Substitution, ...]

    def ranges(self) -> Iterator[tuple[int, int | None, tuple[Step, ...]]]:
        """The first and the last process count (None: any) of each row, ascending."""
        for first, end, row in spans(list(self.rows.items())):
            yield first, None if end is None else end - 1, row

    def row(self, procs: int) -> tuple[Step, ...]:
        """The row in force for a process count. Raises UsageError below the first one."""
        below = [row for first, row in self.rows.items() if first <= procs]
        if not below:
            name = self.table.collective
            raise UsageError(f"the {name} decision table starts at P = {min(self.rows)}, not {procs}")
        return below[-1]


def expressed(
    table: DecisionTable, can_say: CanSay, by_size: bool = True, too_few: TooFew = lambda procs, start, choice: False
) -> Expressed:
    """The table as a format can say it; `by_size`: the format sees message sizes, else a row has one choice.

    Where a choice cannot be said, that of those that can be which has the least worst slowdown over the sizes for which
    times are known; where none can, the library decides, or, of too few elements, the choice for smaller sizes stays in
    force. Times of fewer processes do not tell what is best with too few elements: there the library decides
    (LIBRARY_DECIDES). Raises UsageError for an empty table.
    """
    if not any(table.rules.values()):
        raise UsageError(f"the {table.collective} decision table is empty")
    rows: dict[int, tuple[Step, ...]] = {}
    replaced: list[Substitution] = []
    for procs, row in table.rules.items():
        before: Choice | None = None
        steps: list[Step] = [] if row and row[0][0] == 0 else [(0, None)]
        if by_size:
            for start, end, choice in spans(row):
                said, cost = _said(table, procs, {start: choice}, end, can_say, partial(too_few, procs, start))
                if said != choice:
                    said = steps[-1][1] if said is None and can_say(choice) and steps else said
                    one = Substitution(table.collective, procs, start, choice, said, cost, can_say(choice))
                    if steps and (before, steps[-1][1]) == (choice, said):
                        earlier = replaced.pop()
                        one = replace(earlier, cost=max(earlier.cost, cost))
                    replaced.append(one)
                steps.append((start, said))
                before = choice
        elif row:
            said, cost = _said(table, procs, dict(row), None, can_say)
            steps = [(0, said)]
            others = [(start, choice) for start, choice in row if choice != said]
            replaced += [Substitution(table.collective, procs, *step, said, cost) for step in others]
        rows[procs] = merged(steps)
    return Expressed(table, rows, tuple(replaced))


def _said(
    table: DecisionTable,
    procs: int,
    steps: dict[int, Choice],
    end: int | None,
    can_say: CanSay,
    few: CanSay = lambda choice: False,
) -> tuple[Choice | None, float]:
    """One choice for all of these steps, which end below `end`, and its cost where it replaces one of them.

    `few` says whether there are too few elements for a choice.
    """
    tells = table.times is None or procs in table.times.procs

    def can(choice: Choice) -> bool:
        return can_say(choice) and not (tells and few(choice))

    chosen = set(steps.values())
    alone = {only: 0.0 for only in chosen if len(chosen) == 1 and can(only)}
    costs = alone or {choice: cost for choice, cost in _costs(table, procs, steps, end).items() if can(choice)}
    if not costs:
        return next((choice for choice in reversed(steps.values()) if can(choice)), None), math.nan
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
