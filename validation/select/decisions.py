"""Decision tables: which algorithm to run for each process count and from which message size; and their JSON form."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from collwise.common.errors import UsageError
from collwise.common.files import read_json
from collwise.common.units import counted, format_size, typed_sizes
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid, is_all_at_once
from collwise.validation.times.slowdown import SlowdownSummary, slowdown, summary_of

if TYPE_CHECKING:
    from collwise.models.piecewise import Array
    from collwise.validation.times.times import Times

_Held = TypeVar("_Held")
Row = tuple[tuple[int, Choice], ...]
"""The decisions for one process count: ascending message sizes, each with the choice from there on."""

_FORMAT = "collwise decisions 3"
_LOSS = ("points", "mean", "worst")
_SOURCES = {"times measured under": "measured", "model ": "predicted"}
"""The sources of times by the beginning of `made_by` in files; times with any other beginning are simulated."""
DIGITS = "digits"
"""The fact with the number of digits to which times are rounded."""
WIDE_STEP = 4
"""The factor in processes or size beyond which a choice is not expected to suit."""


def wide_steps_texts(tables: Sequence[DecisionTable], are_left: bool = False) -> list[str]:
    """Sentences that name the gaps in process counts and sizes where no times support the tables' choices.

    `are_left` is true if the rules leave the process counts inside such gaps to the library (`left_to_library`).
    """
    found = []
    if steps := sorted({step for table in tables for step in table.wide_steps()}):
        between = " and ".join(f"from P = {low + 1} to {high - 1}" for low, high in steps)
        added = ",".join(map(str, _added(steps)))
        text = _LEFT if are_left else _UNDECIDED
        option = f"{added} to --procs"
        found.append(text.format(between=between, smaller="fewer processes", times=WIDE_STEP, option=option))
    if steps := sorted({step for table in tables for step in table.wide_size_steps()}):
        between = " and ".join(f"between {format_size(low)} and {format_size(high)}" for low, high in steps)
        added = typed_sizes(_added(steps))
        found.append(_UNDECIDED.format(between=between, smaller="smaller messages", option=f"{added} to --sizes"))
    return found


_UNDECIDED = "nothing was decided {between}, where the choices for {smaller} hold; to decide there, add {option}"

_LEFT = (
    "nothing was decided {between}: the choices for {smaller} hold for up to {times} times as many, and for more if "
    "the next larger decided number has the same choices; otherwise the library decides. To decide there, add {option}"
)


def _added(steps: Iterable[tuple[int, int]]) -> list[int]:
    """The values that also have to be decided so that no step exceeds WIDE_STEP."""
    return sorted({low * WIDE_STEP**k for low, high in steps for k in range(1, 32) if low * WIDE_STEP**k < high})


_DOUBT = (
    "every process has P - 1 messages under way at once, for which real networks and libraries need buffers that are "
    "not simulated"
)


def is_doubtful(of: DecisionTable | Times, choice: Choice, procs: int) -> bool:
    """True if a choice is fast in simulated times because simulation does not limit buffers (`is_all_at_once`)."""
    return of.source == "simulated" and is_all_at_once(of.collective, choice.algorithm, procs)


def without_doubtful(times: Times) -> Times:
    """The times without doubtful choices, except at points where the grid times them without making them candidates."""
    import numpy as np

    grid, shape = times.grid, times.seconds.shape
    besides = {*grid.besides}
    kept = [
        (procs, size, choice) in besides or not is_doubtful(times, choice, procs)
        for choice in grid.timed
        for procs, size in grid.points
    ]
    return times.where(np.reshape(kept, (*shape[:3], *[1] * (len(shape) - 3))))


def all_at_once_text(tables: Sequence[DecisionTable]) -> str:
    """A warning of choices with many messages in flight at once, which no engine limits; empty without such choices."""
    found: dict[str, set[int]] = {}
    for table in tables:
        for procs in {*table.rules, *(table.times.procs if table.times is not None else ())}:
            for _, choice in table.row(procs):
                if is_doubtful(table, choice, procs):
                    found.setdefault(f"{table.collective} {choice.algorithm}", set()).add(procs)
    names = ", ".join(f"{name} at P = {_listed(sorted(counts))}" for name, counts in sorted(found.items()))
    return f"{names}: {_DOUBT}; measure these choices before you use them" if found else ""


def left_out_text(every: Iterable[Times]) -> str:
    """A sentence on choices that would be fastest but are left out as doubtful; empty without such choices."""
    found: dict[str, int] = {}
    for times in every:
        for procs, size in times.grid.points:
            best = times.best_choice(procs, size)
            if best is not None and is_doubtful(times, best, procs):
                name = f"{times.collective} {best.algorithm}"
                found[name] = found.get(name, 0) + 1
    names = ", ".join(f"{name}, fastest at {counted(points, 'point')}" for name, points in found.items())
    let_in = "measure these, or allow them with --doubtful; by the simulated times, rules without them are slower"
    return f"left out: {names}, where {_DOUBT}; {let_in}" if found else ""


def spans(row: Sequence[tuple[int, _Held]]) -> Iterator[tuple[int, int | None, _Held]]:
    """The start of each entry in an ascending row, the next entry's start (None: no next one), and the entry."""
    for (start, held), following in zip_longest(row, row[1:]):
        yield start, following and following[0], held


def from_zero(row: Row) -> Row:
    """The row, starting at message size 0: the library decides (LIBRARY_DECIDES) below the first choice."""
    return row if row and row[0][0] == 0 else ((0, LIBRARY_DECIDES), *row)


def choice_in(row: Row, message_bytes: int) -> Choice | None:
    """The choice of a row for a message size; None below the first size that the row decides."""
    below = [choice for start, choice in row if start <= message_bytes]
    return below[-1] if below else None


def refined(
    row: Row, message_bytes: Iterable[int], choose: Callable[[int, Choice], _Held]
) -> tuple[tuple[int, _Held], ...]:
    """A row with the choices that `choose` returns for the choices of the given row.

    `choose` is called at the sizes where the row's choices begin, and at the given sizes above the first of these.
    Equal neighbours become one step.
    """
    starts = {start for start, _ in row}
    starts |= {size for size in message_bytes if row and size > row[0][0]}
    chosen = ((start, choice_in(row, start)) for start in sorted(starts))
    return merged((start, choose(start, choice)) for start, choice in chosen if choice is not None)


def merged(steps: Iterable[tuple[int, _Held]]) -> tuple[tuple[int, _Held], ...]:
    """The steps, without those that repeat the choice of the step before."""
    return tuple(next(equal) for _, equal in groupby(steps, key=lambda step: step[1]))


def without_repeated_rows(rows: Iterable[tuple[int, Row]], kept: Container[int]) -> dict[int, Row]:
    """Rows by process count, ascending, without rows that equal the previous one, except at the `kept` counts."""
    found: dict[int, Row] = {}
    for procs, row in rows:
        if procs in kept or row != next(reversed(found.values()), None):
            found[procs] = row
    return found


_MAX_LISTED = 12
"""The largest number of process counts that are listed in full."""


def _listed(procs: Sequence[int]) -> str:
    shown = procs if len(procs) <= _MAX_LISTED else [*procs[:2], "...", procs[-1]]
    return ", ".join(map(str, shown))


@dataclass(frozen=True)
class DecisionTable:
    """The choices to run: for each process count, ascending, its row.

    `source` says if the decisions are based on simulated, measured or predicted times. `made_by` names the engine, MPI
    library or model that these times come from. A point between two entries takes the lower entry, in P and in m.
    Nothing is decided below the first entries, or where a row is empty. `times` are these times, if they are known.
    `between` is the loss at sizes between the timed ones, if a model predicts this loss. `platform_procs` is the
    platform's largest process count, if it is known.
    """

    collective: str
    platform: str
    processes_per_node: int
    source: str
    made_by: str
    rules: Mapping[int, Row]
    times: Times | None = field(default=None, compare=False)
    between: SlowdownSummary | None = field(default=None, compare=False)
    platform_procs: int | None = field(default=None, compare=False)

    @property
    def last_procs(self) -> int:
        """The largest process count in use: the platform's, or if that is not known, the largest decided one."""
        decided = self.times.procs if self.times is not None else ()
        return self.platform_procs or max((*self.rules, *decided))

    @property
    def decided_procs(self) -> tuple[int, ...]:
        """The process counts that were decided: the counts of the times, or of the rows if times are not known."""
        return self.times.procs if self.times is not None else tuple(sorted(self.rules))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices of all rows, each once."""
        return tuple(dict.fromkeys(choice for row in self.rules.values() for _, choice in row))

    @property
    def between_procs(self) -> str:
        """A sentence on the process counts that were decided, and on the rows that other counts take."""
        known = sorted(self.decided_procs)
        others = "others take the row of the next smaller P"
        if any(procs - 1 in known and procs not in known for procs in self.rules):
            others += ", or, if that row's choices do not run on every P, the row that starts at the following P"
        return f"{self.collective}: decided for P = {_listed(known)}; {others}"

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self.rules)

    def row(self, procs: int) -> Row:
        """The row in force for P; empty below the first row's P."""
        position = bisect.bisect_right(self._starts, procs)
        return self.rules[self._starts[position - 1]] if position else ()

    def whole_row(self, procs: int) -> Row:
        """The row in force for P, starting at message size 0. Raises UsageError below the first row's P."""
        if procs < min(self.rules):
            raise UsageError(f"the {self.collective} decision table starts at P = {min(self.rules)}, not {procs}")
        return from_zero(self.row(procs))

    def choose(self, procs: int, message_bytes: int) -> Choice:
        """The choice for a point. Raises UsageError if nothing is decided for it."""
        if not self.rules:
            raise UsageError(f"nothing is decided for {self.collective}")
        if procs < min(self.rules):
            raise UsageError(f"the decision table starts at P = {min(self.rules)}, not {procs}")
        choice = self.choice_at(procs, message_bytes)
        if choice is None:
            raise UsageError(f"the decision table has no entry for {message_bytes} bytes")
        return choice

    def choice_at(self, procs: int, message_bytes: int) -> Choice | None:
        """The choice for a point; None if nothing is decided for it."""
        return choice_in(self.row(procs), message_bytes)

    def seconds_at(self, procs: int, message_bytes: int) -> dict[Choice, float]:
        """The seconds of the choices at the timed point that stands for P and m.

        If P or m was not timed, the next lower timed one is taken, or the first one if none is lower. Times of the MPI
        library's own decision are included if they are exact, but not if they are measured, since no rule asks for this
        decision.
        """
        if self.times is None:
            return {}
        found = self.times.at_point(*self.times.at_or_below(procs, message_bytes))
        return {choice: value for choice, value in found.items() if choice != LIBRARY_DECIDES or self.times.is_exact}

    def timed_points(self) -> Iterator[tuple[Choice | None, dict[Choice, float]]]:
        """The choice and all seconds at every timed point; doubtful choices are left out unless they are chosen."""
        for procs, size in self.times.grid.points if self.times is not None else ():
            chosen, seconds = self.choice_at(procs, size), self.seconds_at(procs, size)
            yield (
                chosen,
                {one: seconds[one] for one in seconds if one == chosen or not is_doubtful(self, one, procs)},
            )

    def wide_steps(self) -> list[tuple[int, int]]:
        """Pairs of neighbouring timed process counts whose ratio exceeds WIDE_STEP; none for predicted times."""
        return [] if self.times is None else self._wide(self.times.procs)

    def wide_size_steps(self) -> list[tuple[int, int]]:
        """Pairs of neighbouring timed message sizes, in bytes, whose ratio exceeds WIDE_STEP."""
        return [] if self.times is None else self._wide(size for size in self.times.message_bytes if size > 0)

    def _wide(self, decided: Iterable[int]) -> list[tuple[int, int]]:
        if self.source == "predicted":
            return []
        return [(low, high) for low, high in pairwise(sorted(decided)) if high > WIDE_STEP * low]

    def rests_on_gaps(self, procs: int, start: int, end: int | None) -> bool:
        """True if a gap-filling source gave any time of the choices for P from `start` to below `end`."""
        from collwise.validation.times.times import State

        known = self.times
        return known is not None and any(
            known.state_of(self.choose(procs, size), procs, size) == State.FILLED
            for size in known.message_bytes
            if start <= size and (end is None or size < end)
        )


def loss_of(table: DecisionTable) -> SlowdownSummary:
    """The slowdowns of a table's choices against the best one, at the points of the table's times."""
    points = table.timed_points()
    costs = [slowdown(times[chosen], min(times.values())) for chosen, times in points if chosen in times]
    return summary_of(costs, 0.0)


def undecided_points(table: DecisionTable) -> tuple[int, int]:
    """The number of points where another choice's interval overlaps the fastest one's, and the number of all points.

    Both are 0 for a table without intervals.
    """
    import numpy as np

    times = table.times
    if times is None or times.is_exact:
        return 0, 0
    seconds, widths = times.array, times.competing(times.half_widths)
    widths = np.where(np.isinf(widths), 0.0, widths)
    filled = np.where(np.isnan(seconds), np.inf, seconds)
    fastest = np.argmin(filled, axis=0)[None]
    reach = np.take_along_axis(filled + np.nan_to_num(widths), fastest, axis=0)
    others = seconds != np.take_along_axis(seconds, fastest, axis=0)  # equal ones are the same case
    overlapping = others & (filled - np.nan_to_num(widths) < reach)
    known = np.isfinite(filled).any(axis=0)
    return int((overlapping.any(axis=0) & known).sum()), int(known.sum())


def check_one_choice(table: DecisionTable, procs: int, whose: str) -> None:
    """Raises UsageError if the row of a process count depends on the message size, or does not start at 0."""
    row = table.rules[procs]
    if len(row) > 1 or (row and row[0][0] > 0):
        name = table.collective
        raise UsageError(
            f"{whose} cannot choose for {name} by message size, which P = {procs} needs; make the table with "
            f"'collwise select --one-choice' or leave {name} out"
        )


def check_one_table_each(tables: Sequence[DecisionTable], by_node: bool = False) -> None:
    """Raises UsageError if there are no tables to write rules from, or two tables for one collective.

    If `by_node` is true, a collective may have one table for each number of processes per node.
    """
    if not tables:
        raise UsageError("no decision table to write rules from")
    each = [(table.collective, by_node and table.processes_per_node) for table in tables]
    if twice := next((name for name, per_node in each if each.count((name, per_node)) > 1), None):
        raise UsageError(f"two decision tables for {twice}: a rules file holds one per collective")


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
            **({} if table.between is None else {"loss_between_sizes": {n: getattr(table.between, n) for n in _LOSS}}),
            **({} if table.times is None else {"times": _times_document(table.times)}),
        }
        for table in tables
    ]


def _times_document(times: Times) -> dict[str, Any]:
    """The seconds, rounded to four digits (null: no time), and the filled gaps as [choice, P, m]."""
    import numpy as np

    from collwise.validation.times.times import State

    own = times.index_of(LIBRARY_DECIDES)
    measured_own = LIBRARY_DECIDES in times.grid.timed and not times.is_exact
    kept = [place for place in range(len(times.grid.timed)) if not (measured_own and place == own)]
    seconds, widths, state = (values.values for values in (times.seconds, times.half_widths, times.state))
    procs, sizes = list(times.procs), list(times.message_bytes)
    document: dict[str, Any] = {
        "choices": [vars(times.grid.timed[place]) for place in kept],
        "procs": procs,
        "message_bytes": sizes,
        "seconds": _digits(seconds[kept]),
    }
    if times.source == "measured":
        document["half_widths"] = _digits(np.where(np.isinf(widths), 0.0, widths)[kept])
    if measured_own:
        document["own"] = _digits(np.stack([seconds[own], widths[own]]))
    if (filled := np.argwhere(state[kept] == State.FILLED)).size:
        document["gaps_filled_by"] = times.filled_by
        document["gaps_filled"] = [[a, procs[i], sizes[j]] for a, i, j in filled.tolist()]
    return document


def _digits(values: Array) -> list[list[list[float | None]]]:
    return [[[None if math.isnan(item) else float(f"{item:.4g}") for item in row] for row in each] for each in values]


def _times_from(entry: Mapping[str, Any], source: str) -> Times:
    """The times of a table's document. They are rounded to four digits, as their fact DIGITS says."""
    import numpy as np

    from collwise.validation.times.times import MEASURED_UNDER, State, Times

    document = entry["times"]
    procs, sizes = tuple(map(int, document["procs"])), tuple(map(int, document["message_bytes"]))
    choices = tuple(_choice(item) for item in document["choices"])
    seconds, widths, own = (np.array(document.get(name, ()), float) for name in ("seconds", "half_widths", "own"))
    shape = (len(choices), len(procs), len(sizes))
    if not (procs and sizes) or seconds.shape != shape or (widths.size and widths.shape != shape):
        raise ValueError("the number of its times does not match its process counts and sizes")
    if own.size and own.shape != (2, *shape[1:]):
        raise ValueError("the number of times of MPI's own collective does not match its process counts and sizes")
    if not widths.size:
        widths = np.where(np.isnan(seconds), np.nan, 0.0)
    besides: tuple[tuple[int, int, Choice], ...] = ()
    if own.size:
        besides = tuple((p, m, LIBRARY_DECIDES) for p in procs for m in sizes)
        seconds, widths = np.concatenate([seconds, own[:1]]), np.concatenate([widths, own[1:]])
    grid = Grid(entry["collective"], choices, procs, sizes, int(entry["processes_per_node"]), besides=besides)
    state = np.where(np.isnan(seconds), State.NOT_ASKED, State.TIMED).astype(np.int8)
    for a, p, m in document.get("gaps_filled", ()):
        state[a, procs.index(p), sizes.index(m)] = State.FILLED
    maker = entry["made_by"].removeprefix(MEASURED_UNDER).strip()
    return Times.of_values(
        grid,
        {"seconds": seconds, "half_width_seconds": widths, "state": state},
        entry["platform"],
        source,
        maker,
        filled_by=document.get("gaps_filled_by", ""),
        facts={DIGITS: 4},
    )


def _choice(step: Mapping[str, Any]) -> Choice:
    return Choice(*(step[name] for name in ("algorithm", "segment_bytes", "parameter", "limit_bytes")))


def decisions_from(path: Path) -> list[DecisionTable]:
    """Reads the tables in a file that `collwise select -o` wrote. Raises UsageError naming the file."""
    return read_json(
        path,
        "a decision table",
        "make one with 'collwise select -o FILE', or take the NAME-decisions.json that is beside Open MPI's rules of "
        "'collwise tune'",
        lambda document: isinstance(document, list) and all(entry.get("format") == _FORMAT for entry in document),
        lambda document: [_table(entry) for entry in document],
    )


def _table(entry: Mapping[str, Any]) -> DecisionTable:
    rules = {int(p): tuple((step["from_bytes"], _choice(step)) for step in row) for p, row in entry["rules"].items()}
    if not rules:
        raise ValueError("no process counts")
    made_by = entry["made_by"]
    source = next((source for words, source in _SOURCES.items() if made_by.startswith(words)), "simulated")
    times = _times_from(entry, source) if "times" in entry else None
    between = SlowdownSummary(**entry["loss_between_sizes"]) if "loss_between_sizes" in entry else None
    most = None if entry.get("platform_procs") is None else int(entry["platform_procs"])
    return DecisionTable(
        *(entry["collective"], entry["platform"], int(entry["processes_per_node"]), source, made_by),
        *(rules, times, between, most),
    )
