"""Decision tables: which algorithm to run for each process count and from which message size; and their JSON form."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeVar

from collwise.common.errors import UsageError
from collwise.common.files import read_text
from collwise.common.units import format_size
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

_Held = TypeVar("_Held")
Row = tuple[tuple[int, Choice], ...]
"""The decisions for one process count: from how many message bytes on, and the choice; ascending."""

_FORMAT = "collwise decisions 3"
_MAKE_ONE = "make one with: collwise select -o FILE"


@dataclass(frozen=True)
class Evidence:
    """The seconds of every candidate at the points that a table was made from: by candidate, process count and size.

    They are nan where a candidate does not run or has no time. `filled` marks points of candidates (indices) whose time
    is not measured but `filled_by` another source. `half_widths` of the seconds' confidence intervals have the same
    form; empty where they are exact or not known. `own` has the seconds of the MPI library's own collective, where that
    was measured beside the candidates, and the half-widths of their intervals, each by process count and size.
    """

    choices: tuple[Choice, ...]
    procs: tuple[int, ...]
    message_bytes: tuple[int, ...]
    seconds: tuple[tuple[tuple[float, ...], ...], ...]
    filled: frozenset[tuple[int, int, int]] = frozenset()
    filled_by: str = ""
    half_widths: tuple[tuple[tuple[float, ...], ...], ...] = ()
    own: tuple[tuple[tuple[float, ...], ...], ...] = ()

    def at(self, procs: int, message_bytes: int) -> dict[Choice, float]:
        """The candidates' seconds at the point that a row from P and m on starts at; those that have a time there.

        Where P or m is not among the points, the next lower one counts, else the first one.
        """
        i, j = _at_or_below(self.procs, procs), _at_or_below(self.message_bytes, message_bytes)
        found = {choice: times[i][j] for choice, times in zip(self.choices, self.seconds, strict=True)}
        return {choice: seconds for choice, seconds in found.items() if not math.isnan(seconds)}

    def half_width(self, choice: Choice, procs: int, message_bytes: int) -> float:
        """The half-width of the interval of the choice's seconds there; nan where it is not known."""
        if not self.half_widths:
            return math.nan
        i, j = _at_or_below(self.procs, procs), _at_or_below(self.message_bytes, message_bytes)
        return self.half_widths[self.choices.index(choice)][i][j]

    def own_at(self, procs: int, message_bytes: int) -> tuple[float, float]:
        """The seconds of MPI's own collective at the point, and the half-width of their interval; nan without any."""
        if not self.own:
            return math.nan, math.nan
        i, j = _at_or_below(self.procs, procs), _at_or_below(self.message_bytes, message_bytes)
        return self.own[0][i][j], self.own[1][i][j]

    def beats_own(self, choice: Choice, procs: int, message_bytes: int) -> bool:
        """Whether the choice is faster than MPI's own collective beyond both intervals, or that was not measured."""
        own, around = self.own_at(procs, message_bytes)
        ours, width = self.at(procs, message_bytes).get(choice), self.half_width(choice, procs, message_bytes)
        if math.isnan(own) or ours is None:
            return True
        return ours + (0.0 if math.isnan(width) else width) < own - (0.0 if math.isnan(around) else around)

    def is_filled(self, choice: Choice, procs: int, message_bytes: int) -> bool:
        """Whether a choice's time at a point comes from another source."""
        if choice not in self.choices or procs not in self.procs or message_bytes not in self.message_bytes:
            return False
        place = (self.choices.index(choice), self.procs.index(procs), self.message_bytes.index(message_bytes))
        return place in self.filled


MEASURED_UNDER = "times measured under"
"""The beginning of `made_by` for measured times; the MPI library follows."""

FASTER = 1.01
"""The least factor by which the library's own decision is faster where it takes the place of a choice."""

WIDE_STEP = 4
"""Choices are not expected to suit more than this many times the processes or the size that they were decided for."""


def wide_steps_texts(tables: Sequence[DecisionTable], are_left: bool = False) -> list[str]:
    """Sentences on the process counts and the sizes between which the tables' choices are not supported by times.

    `are_left`: the tables' rules leave process counts in wide steps to the library (`left_to_library`).
    """
    found = []
    if steps := sorted({step for table in tables for step in table.wide_steps()}):
        between = " and ".join(f"from P = {low + 1} to {high - 1}" for low, high in steps)
        added = ",".join(map(str, _added(steps)))
        text = _LEFT if are_left else _UNDECIDED
        option = f"--procs with {added}"
        found.append(text.format(between=between, smaller="fewer processes", times=WIDE_STEP, option=option))
    if steps := sorted({step for table in tables for step in table.wide_size_steps()}):
        between = " and ".join(f"between {format_size(low)} and {format_size(high)}" for low, high in steps)
        added = ",".join(format_size(size).replace(" ", "") for size in _added(steps))
        found.append(_UNDECIDED.format(between=between, smaller="smaller messages", option=f"--sizes with {added}"))
    return found


_UNDECIDED = "nothing was decided {between}, where the choices for {smaller} hold; {option} as well decides there, too"

_LEFT = (
    "nothing was decided {between}: the choices for {smaller} hold for up to {times} times as many, and for more if "
    "the next larger number has the same; otherwise the library decides. {option} as well decides there, too"
)


def _added(steps: Iterable[tuple[int, int]]) -> list[int]:
    """The values that have to be decided as well so that no step exceeds WIDE_STEP."""
    return sorted({low * WIDE_STEP**k for low, high in steps for k in range(1, 32) if low * WIDE_STEP**k < high})


_ALL_AT_ONCE = {("alltoall", "linear"), ("alltoallv", "linear")}
_MANY_PROCS = 64


def all_at_once_text(tables: Sequence[DecisionTable]) -> str:
    """A sentence on choices in which very many messages are under way at once, which no engine limits; or nothing."""
    found: dict[str, set[int]] = {}
    for table in tables:
        if table.made_by.startswith("times measured"):
            continue
        for procs in {*table.rules, *(table.evidence.procs if table.evidence is not None else ())}:
            for _, choice in table.row(procs):
                if procs >= _MANY_PROCS and (table.collective, choice.algorithm) in _ALL_AT_ONCE:
                    found.setdefault(f"{table.collective} {choice.algorithm}", set()).add(procs)
    if not found:
        return ""
    names = ", ".join(f"{name} at P = {_listed(sorted(counts))}" for name, counts in sorted(found.items()))
    return (
        f"{names}: every process has P - 1 messages under way at once, for which real networks and "
        "libraries need buffers that are not simulated; measure these choices before you use them"
    )


@dataclass(frozen=True)
class Loss:
    """The slowdown of a table's choices against the best, on average and at most (0.01: 1 %), over `points`."""

    points: int
    mean: float
    worst: float

    def __str__(self) -> str:
        return f"{self.mean * 100:.2f} % on average, at most {self.worst * 100:.1f} % (at {self.points} points)"


def spans(row: Sequence[tuple[int, _Held]]) -> Iterator[tuple[int, int | None, _Held]]:
    """The entries of a row, ascending, each with where it begins and where the next one does (None: nowhere)."""
    for (start, held), following in zip_longest(row, row[1:]):
        yield start, following and following[0], held


def choice_in(row: Row, message_bytes: int) -> Choice | None:
    """The choice of a row for a message size; None below the first one that it decides."""
    below = [choice for start, choice in row if start <= message_bytes]
    return below[-1] if below else None


def refined(
    row: Row, message_bytes: Iterable[int], choose: Callable[[int, Choice], _Held]
) -> tuple[tuple[int, _Held], ...]:
    """A row of what `choose` makes of the row's choices, asked where these begin and at the sizes after the first one.

    Neighbours that are equal are one step.
    """
    starts = {start for start, _ in row}
    starts |= {size for size in message_bytes if row and size > row[0][0]}
    chosen = ((start, choice_in(row, start)) for start in sorted(starts))
    return merged((start, choose(start, choice)) for start, choice in chosen if choice is not None)


def merged(steps: Iterable[tuple[int, _Held]]) -> tuple[tuple[int, _Held], ...]:
    """The steps without those that repeat what the step before them holds."""
    return tuple(next(equal) for _, equal in groupby(steps, key=lambda step: step[1]))


def without_repeated_rows(rows: Iterable[tuple[int, Row]], kept: Container[int]) -> dict[int, Row]:
    """Rows by process count, ascending, without those that equal the one before and are not among the `kept` counts."""
    found: dict[int, Row] = {}
    for procs, row in rows:
        if procs in kept or row != next(reversed(found.values()), None):
            found[procs] = row
    return found


def left_to_library(table: DecisionTable, by_size: bool, decided: DecisionTable | None = None) -> DecisionTable:
    """The table that leaves calls to the MPI library (LIBRARY_DECIDES) where its choices may be slower.

    That is where the library's own decision is known to be no slower, and where the choices are for too few processes.
    Without `by_size` a row has one choice. `decided` is the table as it was before others took the place of choices.
    """
    return _left_in_wide_steps(_left_where_faster(table, by_size), by_size, decided or table)


def _left_where_faster(table: DecisionTable, by_size: bool) -> DecisionTable:
    """The table that leaves calls to the MPI library where that is known to be no slower.

    With measured times of MPI's own collective (`Evidence.own`) these are all that a choice does not beat beyond both
    intervals; with exact times of LIBRARY_DECIDES among those of the choices, all at which it is over 1 % faster.
    Without `by_size` a row has one choice: it stays if it beats MPI's own at all measured sizes, or if the library is
    not over 1 % faster on average.
    """
    known = table.evidence
    if known is None or not (known.own or LIBRARY_DECIDES in known.choices) or not table.rules:
        return table
    counts = sorted({*table.rules, *(one for one in known.procs if one >= min(table.rules))})
    kept = _kept_by_size if by_size else _kept_whole
    rows = ((procs, kept(known, procs, table.row(procs))) for procs in counts)
    return replace(table, rules=without_repeated_rows(rows, table.rules))


def _left_in_wide_steps(table: DecisionTable, by_size: bool, decided: DecisionTable) -> DecisionTable:
    """The table that leaves calls to the MPI library where choices would be for less than a quarter of the processes.

    That is in wide steps, up to the next process count that was decided for. A choice stays there if it is also that
    for the latter.
    """
    rows = dict(table.rules)
    for low, high in table.wide_steps():
        ends = decided.row(low), decided.row(high)
        starts = [start for row in ends for start, _ in row] if by_size else []

        def kept(start: int, chosen: Choice, ends: tuple[Row, Row] = ends) -> Choice:
            return chosen if choice_in(ends[0], start) == choice_in(ends[1], start) else LIBRARY_DECIDES

        begin = WIDE_STEP * low + 1
        between = {begin, *(procs for procs in table.rules if begin < procs < high)}
        rows |= {high: table.row(high)} | {procs: refined(table.row(procs), starts, kept) for procs in between}
    return replace(table, rules=without_repeated_rows(sorted(rows.items()), table.rules))


def _kept_by_size(known: Evidence, procs: int, row: Row) -> Row:
    def kept(start: int, chosen: Choice) -> Choice:
        if known.own:
            return chosen if known.beats_own(chosen, procs, start) else LIBRARY_DECIDES
        times = known.at(procs, start)
        return LIBRARY_DECIDES if times.get(LIBRARY_DECIDES, math.inf) * FASTER < times.get(chosen, 0.0) else chosen

    return refined(row, known.message_bytes, kept)


def _kept_whole(known: Evidence, procs: int, row: Row) -> Row:
    if len(row) != 1:
        return row
    start, chosen = row[0]
    if known.own:
        stays = all(known.beats_own(chosen, procs, size) for size in known.message_bytes)
    else:
        at = [known.at(procs, size) for size in known.message_bytes if size >= start]
        ratios = [one[LIBRARY_DECIDES] / one[chosen] for one in at if LIBRARY_DECIDES in one and one.get(chosen)]
        stays = not ratios or geometric_mean(ratios) * FASTER >= 1
    return row if stays else ((start, LIBRARY_DECIDES),)


def _at_or_below(values: Sequence[int], wanted: int) -> int:
    return max(bisect.bisect_right(values, wanted) - 1, 0)


_MOST_LISTED = 12
"""Process counts that are listed in full."""


def _listed(procs: Sequence[int]) -> str:
    shown = procs if len(procs) <= _MOST_LISTED else [*procs[:2], "...", procs[-1]]
    return ", ".join(map(str, shown))


@dataclass(frozen=True)
class DecisionTable:
    """The choices to run: for each process count, ascending, its row. `made_by` is a model or what simulated.

    A point between two entries takes the lower one, in P and in m. Nothing is decided below the first entries and where
    a row is empty. `evidence` has the times that decided, if they are known, and `between` the loss at sizes between
    those that it was decided at, where a model says it. `platform_procs` is the platform's largest process count, if it
    is known.
    """

    collective: str
    platform: str
    processes_per_node: int
    made_by: str
    rules: Mapping[int, Row]
    evidence: Evidence | None = field(default=None, compare=False)
    between: Loss | None = field(default=None, compare=False)
    platform_procs: int | None = field(default=None, compare=False)

    @property
    def last_procs(self) -> int:
        """The largest process count that is used: the platform's, else the largest one decided for."""
        decided = self.evidence.procs if self.evidence is not None else ()
        return self.platform_procs or max((*self.rules, *decided))

    @property
    def decided_procs(self) -> tuple[int, ...]:
        """The process counts that were decided, as far as it is known: those of the times, else those of the rows."""
        return self.evidence.procs if self.evidence is not None else tuple(sorted(self.rules))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices of all rows, each once."""
        return tuple(dict.fromkeys(choice for row in self.rules.values() for _, choice in row))

    @property
    def between_procs(self) -> str:
        """A sentence on the process counts that were decided; others take the choices of the next smaller one."""
        known = sorted(self.decided_procs)
        others = "others take the row of the next smaller one"
        if any(procs - 1 in known and procs not in known for procs in self.rules):
            others += ", or one after it where the choices do not run on every P"
        return f"{self.collective}: decided for P = {_listed(known)}; {others}"

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self.rules)

    def row(self, procs: int) -> Row:
        """The row in force for P; empty below the first one."""
        position = bisect.bisect_right(self._starts, procs)
        return self.rules[self._starts[position - 1]] if position else ()

    def choose(self, procs: int, message_bytes: int) -> Choice:
        """The choice for a point. Raises UsageError where nothing is decided."""
        if procs < min(self.rules):
            raise UsageError(f"the decision table starts at P = {min(self.rules)}, not {procs}")
        choice = self.choice_at(procs, message_bytes)
        if choice is None:
            raise UsageError(f"the decision table has no entry for {message_bytes} bytes")
        return choice

    def choice_at(self, procs: int, message_bytes: int) -> Choice | None:
        """The choice for a point; None where nothing is decided."""
        return choice_in(self.row(procs), message_bytes)

    def timed_points(self) -> Iterator[tuple[Choice | None, dict[Choice, float]]]:
        """The choice and the candidates' seconds at every point that times decided; nothing where none are known."""
        if self.evidence is not None:
            for procs in self.evidence.procs:
                for size in self.evidence.message_bytes:
                    yield self.choice_at(procs, size), self.evidence.at(procs, size)

    def wide_steps(self) -> list[tuple[int, int]]:
        """Neighbouring process counts that times decided for, the larger one over WIDE_STEP times the smaller one.

        Tables by formulas have none: they can decide for every P.
        """
        return [] if self.evidence is None else self._wide(self.evidence.procs)

    def wide_size_steps(self) -> list[tuple[int, int]]:
        """The pairs of decided message sizes, in bytes, that are as far apart, as `wide_steps` has them for P."""
        return [] if self.evidence is None else self._wide(size for size in self.evidence.message_bytes if size > 0)

    def _wide(self, decided: Iterable[int]) -> list[tuple[int, int]]:
        if self.made_by.startswith("model "):
            return []
        return [(low, high) for low, high in pairwise(sorted(decided)) if high > WIDE_STEP * low]

    def rests_on_gaps(self, procs: int, start: int, end: int | None) -> bool:
        """Whether the choice for P from one size up to another has times there that fill gaps."""
        known = self.evidence
        return known is not None and any(
            known.is_filled(self.choose(procs, size), procs, size)
            for size in known.message_bytes
            if start <= size and (end is None or size < end)
        )


def check_one_choice(table: DecisionTable, procs: int, whose: str) -> None:
    """Raises UsageError if the row of a process count depends on the message size, from 0 on."""
    row = table.rules[procs]
    if len(row) > 1 or (row and row[0][0] > 0):
        name = table.collective
        raise UsageError(
            f"{whose} cannot choose for {name} by message size, which P = {procs} needs; make the table with "
            f"'collwise select --one-choice' or leave {name} out"
        )


def check_one_table_each(tables: Sequence[DecisionTable]) -> None:
    """Raises UsageError for no tables to write rules from, and for two of one collective."""
    if not tables:
        raise UsageError("no decision table to write rules from")
    names = [table.collective for table in tables]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two decision tables for {twice}: a rules file holds one a collective")


def decisions_text(tables: Sequence[DecisionTable]) -> str:
    """Tables as the text of a file, which `decisions_from` reads."""
    return json.dumps(decisions_document(tables), indent=2) + "\n"


def decisions_document(tables: Sequence[DecisionTable]) -> list[dict[str, Any]]:
    """Tables as plain data."""
    return [
        {
            "format": _FORMAT,
            "collective": table.collective,
            "platform": table.platform,
            "processes_per_node": table.processes_per_node,
            "made_by": table.made_by,
            **({} if table.platform_procs is None else {"platform_procs": table.platform_procs}),
            "rules": {
                str(p): [{"from_bytes": start, **vars(choice)} for start, choice in row]
                for p, row in table.rules.items()
            },
            **({} if table.between is None else {"loss_between_sizes": vars(table.between)}),
            **({} if table.evidence is None else {"times": _evidence_document(table.evidence)}),
        }
        for table in tables
    ]


def _evidence_document(evidence: Evidence) -> dict[str, Any]:
    """Seconds to four digits, and null where there is none; gaps that were filled as [choice, P, m]."""
    procs, sizes = list(evidence.procs), list(evidence.message_bytes)
    choices = [vars(choice) for choice in evidence.choices]
    document: dict[str, Any] = {
        "choices": choices,
        "procs": procs,
        "message_bytes": sizes,
        "seconds": _digits(evidence.seconds),
    }
    if evidence.half_widths:
        document["half_widths"] = _digits(evidence.half_widths)
    if evidence.own:
        document["own"] = _digits(evidence.own)
    if evidence.filled:
        document["gaps_filled_by"] = evidence.filled_by
        document["gaps_filled"] = [[choice, procs[i], sizes[j]] for choice, i, j in sorted(evidence.filled)]
    return document


def _digits(values: Sequence[Sequence[Sequence[float]]]) -> list[list[list[float | None]]]:
    return [[[None if math.isnan(one) else float(f"{one:.4g}") for one in row] for row in each] for each in values]


def _evidence_from(document: Mapping[str, Any]) -> Evidence:
    procs, sizes = tuple(map(int, document["procs"])), tuple(map(int, document["message_bytes"]))
    choices = tuple(_choice(one) for one in document["choices"])
    seconds, half_widths = _read_digits(document["seconds"]), _read_digits(document.get("half_widths", ()))
    for values in (seconds, half_widths) if half_widths else (seconds,):
        shapes = [len(values) == len(choices), all(len(times) == len(procs) for times in values)]
        if not (all(shapes) and procs and sizes and all(len(row) == len(sizes) for times in values for row in times)):
            raise ValueError("its times do not fit its process counts and sizes")
    own = _read_digits(document.get("own", ()))
    if own and [[len(row) for row in each] for each in own] != [[len(sizes)] * len(procs)] * 2:
        raise ValueError("the times of MPI's own collective do not fit its process counts and sizes")
    filled = frozenset((index, procs.index(p), sizes.index(m)) for index, p, m in document.get("gaps_filled", ()))
    return Evidence(choices, procs, sizes, seconds, filled, document.get("gaps_filled_by", ""), half_widths, own)


def _read_digits(values: Sequence[Any]) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(
        tuple(tuple(math.nan if one is None else float(one) for one in row) for row in each) for each in values
    )


def _choice(step: Mapping[str, Any]) -> Choice:
    return Choice(*(step[name] for name in ("algorithm", "segment_bytes", "fanout", "limit_bytes")))


def decisions_from(path: Path) -> list[DecisionTable]:
    """Reads a file that `collwise select -o` wrote: its tables. Raises UsageError naming it."""
    try:
        document = json.loads(read_text(path))
        if not isinstance(document, list) or any(entry.get("format") != _FORMAT for entry in document):
            raise UsageError(f"{path}: not a decision table of this version; {_MAKE_ONE}")
        return [_table(entry) for entry in document]
    except (json.JSONDecodeError, RecursionError):
        raise UsageError(f"{path}: not a decision table, since it is no JSON; {_MAKE_ONE}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise UsageError(f"{path}: not a decision table ({problem}); {_MAKE_ONE}") from None


def _table(entry: Mapping[str, Any]) -> DecisionTable:
    rules = {int(p): tuple((step["from_bytes"], _choice(step)) for step in row) for p, row in entry["rules"].items()}
    if not rules:
        raise ValueError("no process counts")
    evidence = _evidence_from(entry["times"]) if "times" in entry else None
    between = Loss(**entry["loss_between_sizes"]) if "loss_between_sizes" in entry else None
    most = None if entry.get("platform_procs") is None else int(entry["platform_procs"])
    return DecisionTable(
        *(entry["collective"], entry["platform"], int(entry["processes_per_node"]), entry["made_by"]),
        *(rules, evidence, between, most),
    )
