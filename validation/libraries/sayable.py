"""Decision tables in the terms of a consumer's rules. If rules cannot express a choice, the second best replaces it.

Rules of Open MPI know only bytes, but some algorithms of Open MPI need a minimum number of elements (`min_bytes`).
Rules name such an algorithm only for sizes at which a message has enough elements even if these are complex doubles.

Rules leave a call to the MPI library (LIBRARY_DECIDES) if the library's own decision is as fast as the table's choice,
or if P is far from the process counts that the table was decided for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import geometric_mean
from typing import TYPE_CHECKING

from collwise.common.grouping import grouped
from collwise.common.units import counted, format_size
from collwise.validation.compare.deciders import Decider
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.openmpi_untuned import NEEDS_ELEMENTS, min_bytes
from collwise.validation.select.consumers import COLLWISE, can_say, leaves_calls, needs_one_choice, sees_sizes
from collwise.validation.select.decisions import (
    WIDE_STEP,
    DecisionTable,
    Row,
    choice_in,
    merged,
    refined,
    spans,
    without_repeated_rows,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.slowdown import slowdown

if TYPE_CHECKING:
    from collwise.validation.times.times import Times

Steps = Sequence[tuple[int, Choice | None]]
"""Message sizes, each with the choice from there on; None if no choice can be expressed."""
Says = Callable[[Choice], bool]


@dataclass(frozen=True)
class Substitution:
    """A choice that a format cannot express, and what replaces it: another choice, or the library's decision (None).

    `cost` is the largest slowdown of the replacement against the choice at any size with known times; nan if no times
    are known. `too_few` is true if the only reason is that messages may have too few elements for the algorithm.
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
        """The sentence about the substitution, for these process counts."""
        why = f"too few elements for {self.chosen.label}" if self.too_few else f"cannot express {self.chosen.label}"
        what = f"{self.collective} from P = {procs}, {format_size(self.start)}: {why}"
        if self.instead is None or (self.instead == LIBRARY_DECIDES and math.isnan(self.cost)):
            return f"{what}; the library decides"
        if math.isnan(self.cost):
            return f"{what}; {self.instead.label} instead, at a cost that is not known"
        slower = f"at most {self.cost * 100:.1f} % slower" if self.cost > 0 else "no slower"
        instead = "the library decides" if self.instead == LIBRARY_DECIDES else f"{self.instead.label} instead"
        return f"{what}; {instead}, {slower}"


def told(found: Iterable[Substitution], tables: Sequence[DecisionTable]) -> list[str]:
    """A sentence for each substitution. Substitutions that differ only in P share a sentence.

    Too few elements are not told where nothing was decided.
    """
    decided = {(table.collective, procs) for table in tables for procs in table.decided_procs}
    asked = (one for one in found if not one.too_few or (one.collective, one.procs) in decided)
    alike = grouped(asked, lambda substitution: substitution.said("P"))
    ends = [(same[0], same[-1]) for same in alike.values()]
    return [str(one) if one is last else one.said(f"{one.procs} to {last.procs}") for one, last in ends]


def for_consumer(
    tables: Sequence[DecisionTable], consumer: str, by_size: bool = True
) -> tuple[list[DecisionTable], tuple[Substitution, ...]]:
    """Tables that rules for a consumer ('openmpi-4.1', 'mpich', 'collwise') can express, and the substitutions in them.

    A choice that rules cannot express is replaced by the choice with the smallest maximum slowdown over the sizes with
    known times. If rules can express no choice, the library decides. If a message may have too few elements for every
    choice, the choice for smaller sizes stays in force, or the library decides if P has no times. If `by_size` is
    false, a row has only one choice.

    Some calls are left to Open MPI or libcollwise (`left_to_library`). If Open MPI's rules cannot express a table even
    with these calls left out, the choices of the table stay unchanged.
    """
    found = [_sayable(table, consumer, by_size and sees_sizes(consumer, table.collective)) for table in tables]
    return [table for table, _ in found], tuple(substitution for _, replaced in found for substitution in replaced)


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
    """The table with these rows, without repeated rows, and the substitutions in the remaining rows."""
    decided = ((procs, _decided(row)) for procs, row in rows.items())
    rules = without_repeated_rows(decided, table.rules)
    return replace(table, rules=rules), [substitution for substitution in replaced if substitution.procs in rules]


def _decided(row: Steps) -> Row:
    """The row from its first choice on. At later sizes without a choice, the library decides."""
    return tuple((start, choice or LIBRARY_DECIDES) for start, choice in row if choice is not None or start)


def second_best(
    table: DecisionTable, says: Says, by_size: bool, needs_enough: bool = False
) -> tuple[dict[int, Steps], list[Substitution]]:
    """Rows, from size 0, of the best choices that rules can express (None: no choice), and the substitutions."""
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
    """One choice with enough elements (not `few`) for all steps below `end`, and its cost if it replaces any."""
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
    """The worst slowdown of each choice that has times at all sizes, against the choices of the steps."""
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
    """True if a table chooses an algorithm of Open MPI that needs a minimum number of elements."""
    return any((table.collective, choice.algorithm) in NEEDS_ELEMENTS for choice in table.choices)


def _divided(table: DecisionTable, needs_enough: bool) -> Iterator[tuple[int, int, Row]]:
    """Divides the rows of a table into parts; yields the first P, the largest P and the row of each part.

    A row whose algorithms need a minimum number of elements gets a step at each size from which messages have enough
    elements for one of the algorithms. This size may depend on P, so such a row is divided at powers of two, and at the
    first decided P between two powers.
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
    """A row with further steps at the sizes from which messages have enough elements for these algorithms."""
    sizes = sorted({min_bytes(collective, name, procs) for name in needs})
    steps: list[tuple[int, Choice]] = []
    for start, end, choice in spans(row):
        enough = min_bytes(collective, choice.algorithm, procs)
        cuts = (size for size in sizes if start < size <= enough and (end is None or size < end))
        steps += [(start, choice), *((size, choice) for size in cuts)]
    return tuple(steps)


_FASTER = 1.01
"""The least factor by which the library's own decision must be faster to replace a choice."""


def with_untuned(table: DecisionTable, untuned: Decider | None) -> DecisionTable:
    """The table, with untuned Open MPI's decisions (LIBRARY_DECIDES) added to the times from which it was made.

    A decision of Open MPI gets the time of our version of the same algorithm. Nothing is added to measured times, since
    our version may be faster or slower than Open MPI's; the times of another library's own collective are removed from
    them.
    """
    from collwise.validation.times.times import State, Times

    known = table.times
    if known is None:
        return table
    has_own = LIBRARY_DECIDES in known.grid.timed
    if table.source == "measured" and has_own and not known.maker.startswith("Open MPI"):
        others = tuple(entry for entry in known.grid.besides if entry[2] != LIBRARY_DECIDES)
        return replace(table, times=known.of_grid(replace(known.grid, besides=others)))
    if table.source == "measured" or has_own or untuned is None:
        return table
    own = known.at(known.picks_of(partial(untuned.choice, table.collective))).values[None]
    grid = replace(known.grid, choices=(LIBRARY_DECIDES,), besides=())
    times = Times.of_seconds(grid, own, known.platform, known.source, known.maker, State.NOT_ASKED)
    return replace(table, times=known.with_times(times))


def left_to_library(table: DecisionTable, by_size: bool, decided: DecisionTable | None = None) -> DecisionTable:
    """Replaces choices that may be slower than the MPI library's own collective by LIBRARY_DECIDES.

    If times are measured, a choice stays at the sizes at which it is faster than MPI's own collective
    (`is_faster_than_own`). If times are exact, it stays unless MPI's own collective is more than 1 % faster. If
    `by_size` is false, a row has only one choice, which stays if it is faster at all sizes (measured), or unless MPI's
    own collective is more than 1 % faster on average (exact).

    Calls are also left to the library if P lies between two decided process counts and is more than four times the
    smaller one, unless both counts have the same choice for the message size. `decided` is the table before any of its
    choices were replaced by others.
    """
    known, decided = table.times, decided or table
    if known is not None and LIBRARY_DECIDES in known.grid.timed and table.rules:
        kept = _kept_by_size if by_size else _kept_whole
        counts = {*table.rules, *(item for item in known.procs if item >= min(table.rules))}
        table = _with_rows(table, {procs: kept(known, procs, table.row(procs)) for procs in counts})
    rows = dict(table.rules)
    for low, high in table.wide_steps():
        one, other = decided.row(low), decided.row(high)

        def alike(start: int, chosen: Choice, row: Row = one, other: Row = other) -> Choice:
            return chosen if choice_in(row, start) == choice_in(other, start) else LIBRARY_DECIDES

        starts = [start for start, _ in (*one, *other)] if by_size else []
        begin = WIDE_STEP * low + 1
        between = {begin, *(procs for procs in table.rules if begin < procs < high)}
        rows |= {high: table.row(high)} | {procs: refined(table.row(procs), starts, alike) for procs in between}
    return _with_rows(table, rows)


def _with_rows(table: DecisionTable, rows: Mapping[int, Row]) -> DecisionTable:
    return replace(table, rules=without_repeated_rows(sorted(rows.items()), table.rules))


def _kept_by_size(known: Times, procs: int, row: Row) -> Row:
    def kept(start: int, chosen: Choice) -> Choice:
        point = known.at_or_below(procs, start)
        if not known.is_exact:
            return chosen if is_faster_than_own(known, chosen, *point) else LIBRARY_DECIDES
        own, ours = (known.seconds_of(choice, *point) for choice in (LIBRARY_DECIDES, chosen))
        return LIBRARY_DECIDES if own * _FASTER < (0.0 if math.isnan(ours) else ours) else chosen

    return refined(row, known.message_bytes, kept)


def _kept_whole(known: Times, procs: int, row: Row) -> Row:
    """The row with its one choice, or with LIBRARY_DECIDES for all sizes if the library is faster."""
    if len(row) != 1:
        return row
    start, chosen = row[0]
    points = [known.at_or_below(procs, size) for size in known.message_bytes]
    if not known.is_exact:
        stays = all(is_faster_than_own(known, chosen, *point) for point in points)
    else:
        at = [known.at_point(*point) for point in points if point[1] >= start]
        ratios = [
            entry[LIBRARY_DECIDES] / entry[chosen] for entry in at if LIBRARY_DECIDES in entry and entry.get(chosen)
        ]
        stays = not ratios or geometric_mean(ratios) * _FASTER >= 1
    return row if stays else ((start, LIBRARY_DECIDES),)


def is_faster_than_own(times: Times, choice: Choice, procs: int, message_bytes: int) -> bool:
    """True if a choice is faster than MPI's own collective at a point, and their confidence intervals do not overlap.

    The result is also true if either has no time. An unknown interval of the choice counts as empty; if the interval of
    MPI's own collective is unknown, no choice counts as faster.
    """
    own, ours = (times.seconds_of(item, procs, message_bytes) for item in (LIBRARY_DECIDES, choice))
    if math.isnan(own) or math.isnan(ours):
        return True
    around, width = (times.half_width_of(item, procs, message_bytes) for item in (LIBRARY_DECIDES, choice))
    return ours + (width if math.isfinite(width) else 0.0) < own - (0.0 if math.isnan(around) else around)


def summary_over_untuned(table: DecisionTable, consumer: str) -> str:
    """A line with the gain of rules over the library's own decisions; empty if the table has no times for it."""
    gains, library = gains_over_untuned(table), BASELINES.get(consumer)
    if not gains or library is None:
        return ""
    slower = sum(gain * _FASTER < 1 for gain in gains)
    found = (
        f"by these times: x {geometric_mean(gains):.2f} on average, x {min(gains):.2f} at least, slower at {slower} of "
        f"{counted(len(gains), 'point')}"
    )
    if library.nodes and table.processes_per_node > 1:
        what = f"{table.collective}: the gain over untuned {library.title} is not known, since {library.nodes}"
        return f"{what}; over this baseline, {found}"
    return f"{table.collective}, over untuned {library.title} {found}"


def gains_over_untuned(table: DecisionTable) -> list[float]:
    """The library's own time divided by the choice's time, at every point that has both."""
    return [
        times[LIBRARY_DECIDES] / times[chosen]
        for chosen, times in table.timed_points()
        if chosen is not None and LIBRARY_DECIDES in times and times.get(chosen)
    ]
