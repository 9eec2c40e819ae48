"""Workloads: the calls of a program's run as weights of points, and the time that other algorithms would save.

The run's report is libcollwise's report in JSON (docs/interposing.md). A row counts calls whose message sizes lie
between a power of two and the next one. These calls are timed at their mean size. The saving of a row is its measured
time, multiplied by 1 - T(best algorithm) / T(MPI's own algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import counted
from collwise.platforms import HostPlatform
from collwise.simulator.execution.profiles import OWN, Profile, ProfileRow, rows_by_key
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Timing
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.libraries.collwise_table import words_of
from collwise.validation.select.consumers import COLLWISE, sees_sizes
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import SEGMENTS
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import Times

_ELEMENT_BYTES = 8

AS_RUN, AS_MEASURED, BEST_BEFORE = "as it ran", "as measured", "best before"
"""Names of calls' defaults that are not decisions of a library.

They stand, in this order, for the algorithm of ours that ran; for MPI's own algorithm, as it was measured; and, if the
catalogue lacks the library's algorithm, for the best algorithm before a change.
"""

Default = Callable[["Calls", Choice], tuple[Choice, str] | None]
"""Returns the untuned choice for calls, given a tuned one, and the reason; None if the untuned choice is unknown."""


@dataclass(frozen=True)
class Calls:
    """The calls of a row of the report. They are timed at their mean size, cut to whole doubles from 16 B on."""

    row: ProfileRow

    @property
    def anywhere(self) -> ProfileRow:
        """The row without its processes per node, so that it can be found again on another platform."""
        return replace(self.row, processes_per_node=0)

    @property
    def point(self) -> tuple[int, int]:
        """The number of processes and the message size in bytes; 0 where the sizes are not known to all processes."""
        size = int(self.row.mean_bytes or 0)
        return self.row.processes, size - size % _ELEMENT_BYTES if size >= 2 * _ELEMENT_BYTES else size

    @property
    def title(self) -> str:
        """The number of calls, the collective and the number of processes, in words."""
        return f"{counted(self.row.calls, 'call')} of {self.row.collective} on {counted(self.row.processes, 'process')}"

    @property
    def obstacle(self) -> str:
        """The reason why libcollwise could not replace or time the calls; empty if it could."""
        why = self.row.ran.removeprefix(f"{OWN}: ")
        if self.row.collective not in Catalogue.load().collectives:
            return f"{why}, which libcollwise passes on"
        if self.row.processes < 2:
            return "they send nothing"
        if self.row.mean_bytes is None or "intercommunicator" in why or "invalid" in why:
            return why
        if self.point[1] == 0 and self.row.collective != "barrier":
            return "their sizes are not known"
        return ""

    def untuned(self, baseline: Baseline) -> tuple[Choice, str] | None:
        """The untuned choice, and its reason. None if the catalogue does not have the library's algorithm."""
        if not self.row.ran.startswith(OWN):
            return self._as_run, AS_RUN
        if self.row.collective not in baseline.collectives:
            return None
        choice = baseline.choice(self.row.collective, *self.point)
        return None if choice is None else (choice, baseline.title)

    @property
    def _as_run(self) -> Choice:
        """The algorithm of ours that ran, with its parameters. Parameters that are not named were 0."""
        entry = Catalogue.load().algorithm(self.row.collective, self.row.ran)
        known = {name: int(value) for name, _, value in (word.partition("=") for word in self.row.parameters.split())}
        part, count, limit = (
            known.get(name, 0) for name in (entry.part_parameter, entry.count_parameter, entry.limit_parameter)
        )
        return Choice(entry.name, part, 0 if count == entry.default_count else count, limit)


@dataclass(frozen=True)
class Workload:
    """The calls of a program that libcollwise could replace, and why it could not replace the others."""

    calls: tuple[Calls, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[ProfileRow]) -> Workload:
        """The workload of a report's rows."""
        known = [Calls(row) for row in rows]
        left_out = [f"{calls.title}: {calls.obstacle}" for calls in known if calls.obstacle]
        return cls(tuple(calls for calls in known if not calls.obstacle), tuple(left_out))

    def placed(self, processes_per_node: int) -> Workload:
        """The workload with this many processes on each node."""
        rows = [replace(calls.row, processes_per_node=processes_per_node) for calls in self.calls]
        return replace(self, calls=tuple(map(Calls, rows)))

    def with_processes(self, processes: int, procs: int) -> Workload:
        """The workload of `procs` processes in place of `processes`, without the calls of some of them."""
        whole = [calls for calls in self.calls if calls.row.processes == processes]
        rows = [replace(calls.row, processes=procs, ranks=f"0-{procs - 1}") for calls in whole]
        parts = [calls for calls in self.calls if calls not in whole]
        others = [f"{calls.title}: their number with {procs} is not known" for calls in parts]
        return Workload(tuple(map(Calls, rows)), (*self.left_out, *others))

    def simulated(
        self,
        platform: HostPlatform,
        context: SimulationContext,
        baseline: Baseline,
        segments: Sequence[int] = SEGMENTS,
    ) -> list[Times]:
        """Simulates all choices for each row on a platform, including the untuned choice of the library `baseline`.

        Processes of smaller communicators are placed as if they were the first processes.
        """
        grids = []
        for calls in self.calls:
            row, (procs, size) = calls.row, calls.point
            grid = Grid.of(row.collective, (procs,), (size,), row.processes_per_node, segments)
            if (default := calls.untuned(baseline)) is not None and default[0] not in grid.choices:
                grid = replace(grid, choices=(*grid.choices, default[0]))
            grids.append(grid)
        return simulate(platform, grids, context, label=f"{platform.name}: timing the run's collectives")


@dataclass(frozen=True)
class Saving:
    """The saving of a row's calls: `default` is what MPI runs untuned, `tuned` the choice that saves time.

    Seconds are those of one call; their half-widths are nan if unknown, as in simulations.
    """

    row: ProfileRow
    default: Choice
    default_is: str
    tuned: Choice
    default_seconds: float
    tuned_seconds: float
    default_half_width: float = math.nan
    tuned_half_width: float = math.nan

    @property
    def saving_half_width(self) -> float:
        """The half-width of the saving's interval, from the intervals of the two times; nan if these are not known."""
        if self.tuned == self.default:
            return 0.0
        if not (self.default_seconds > 0 and self.tuned_seconds > 0):
            return math.nan
        apart = (self.default_half_width / self.default_seconds, self.tuned_half_width / self.tuned_seconds)
        return self.row.seconds * self.tuned_seconds / self.default_seconds * math.hypot(*apart)

    @property
    def saving_seconds(self) -> float:
        """The seconds, averaged over processes, that all calls of the row would save."""
        if not self.default_seconds > 0:
            return 0.0
        return self.row.seconds * (1 - self.tuned_seconds / self.default_seconds)


@dataclass(frozen=True)
class Savings:
    """The savings of a workload's rows, the reasons why the other rows have no known saving, and the times' origin."""

    rows: tuple[Saving, ...]
    left_out: tuple[str, ...]
    source: str
    made_by: str
    failed: tuple[Timing, ...] = ()

    def as_simulated(self) -> Savings:
        """The savings of calls whose measured times are not known, by their simulated times."""

        def timed(row: ProfileRow, seconds: float) -> ProfileRow:
            runs = replace(row, fastest_run_seconds=seconds, slowest_run_seconds=seconds)
            return replace(runs, seconds=seconds, shortest_seconds=seconds, longest_seconds=seconds)

        rows = (replace(one, row=timed(one.row, one.row.calls * one.default_seconds)) for one in self.rows)
        return replace(self, rows=tuple(rows))

    def saving_seconds(self, processes: int) -> float:
        """The saved seconds, as a mean over all processes."""
        return sum(row.saving_seconds * row.row.processes for row in self.rows) / processes

    def saving_half_width(self, processes: int) -> float:
        """The half-width of the saving's interval, if all savings are off in the same direction; nan if unknown."""
        return sum(row.saving_half_width * row.row.processes for row in self.rows) / processes


def savings(workload: Workload, known: Sequence[Times] | Sequence[DecisionTable], default: Default) -> Savings:
    """The seconds that a workload saves with the fastest choices, or with the choices of decision tables.

    If P or m is not among a table's points, the next lower one counts. `default` gives the untuned choice if MPI's own
    collectives are not measured. Raises UsageError for tables without times.
    """
    tables = {item.collective: item for item in known if isinstance(item, DecisionTable)}
    if tables and all(table.times is None for table in tables.values()):
        raise UsageError("the decisions include no times; use a file of 'collwise select -o FILE'")
    of_grids = {
        (item.collective, item.processes_per_node, *item.grid.points): item for item in known if isinstance(item, Times)
    }
    found: list[Saving] = []
    left_out = list(workload.left_out)
    for calls in workload.calls:
        row = calls.row
        what = f"{calls.title} and {calls.point[1]} bytes"
        if tables:
            table = tables.get(row.collective)
            if table is None or table.times is None:
                left_out.append(f"{calls.title}: the decisions do not cover this collective")
                continue
            times, tuned = table.times, table.choice_at(*calls.point)
            lacking = _below(table, calls.point[0])
        else:
            times = of_grids[row.collective, row.processes_per_node, calls.point]
            tuned, lacking = times.best_choice(*calls.point), "no algorithm has a time"
        if tuned is None:
            left_out.append(f"{what}: {lacking}")
        elif (saving := _saving(row, calls, times, tuned, default)) is not None:
            found.append(saving)
        else:
            left_out.append(f"{what}: the decisions have no time of the untuned choice")
    failed = dict.fromkeys(timing for grid in of_grids.values() for timing in grid.failed)
    source, made_by = next(((item.source, item.made_by) for item in known), ("", ""))
    return Savings(tuple(found), tuple(left_out), source, made_by, tuple(failed))


def _below(table: DecisionTable, procs: int) -> str:
    """The reason why a table decides nothing for calls of P processes: where it begins, or its row of this P."""
    row = table.row(procs)
    return f"below the first decision, for {f'{row[0][0]} bytes' if row else f'P = {min(table.rules)}'}"


def _saving(row: ProfileRow, calls: Calls, times: Times, tuned: Choice, default: Default) -> Saving | None:
    """The saving of a row by times at its point or the next lower one; None if a time is missing."""
    point = times.at_or_below(*calls.point)
    seconds = times.at_point(*point)
    own = None if times.is_exact else seconds.pop(LIBRARY_DECIDES, None)
    untuned, untuned_is = (Choice(OWN), AS_MEASURED) if own is not None else default(calls, tuned) or (None, "")
    if own is not None:
        seconds[Choice(OWN)] = own
    if untuned_is == AS_RUN and untuned not in seconds:
        untuned = next((second for second in seconds if second.algorithm == row.algorithm), None)
    if untuned is None or untuned not in seconds or tuned not in seconds:
        return None

    def width(choice: Choice) -> float:
        if times.is_exact:
            return math.nan
        known = times.half_width_of(LIBRARY_DECIDES if choice == Choice(OWN) else choice, *point)
        # An unknown interval counts as empty, except for MPI's own algorithm.
        return 0.0 if math.isinf(known) and choice != Choice(OWN) else known

    widths = width(untuned), width(tuned)
    return Saving(row, untuned, untuned_is, tuned, seconds[untuned], seconds[tuned], *widths)


@dataclass(frozen=True)
class Achieved:
    """The same calls in one run and a later run, with the seconds that processes spend in them, on average."""

    row: ProfileRow
    ran: str
    seconds_before: float
    seconds_after: float

    @property
    def saving_seconds(self) -> float:
        """The seconds that the later run saved within these calls."""
        return self.seconds_before - self.seconds_after

    @property
    def changed(self) -> bool:
        """True if another algorithm ran than before. MPI's own algorithms count as the same, whatever the reason."""
        return self.row.ran != self.ran and not all(ran.startswith(OWN) for ran in (self.row.ran, self.ran))


def achieved_between(before: Profile, after: Profile) -> tuple[Achieved, ...]:
    """The calls that both runs have, whichever algorithms ran, with their times and the later run's saving."""
    first, second = rows_by_key(before.rows), rows_by_key(after.rows)
    found = []
    for key, rows in first.items():
        if key in second:
            ran = ", ".join(dict.fromkeys(row.ran for row in second[key]))
            found.append(Achieved(rows[0], ran, sum(r.seconds for r in rows), sum(r.seconds for r in second[key])))
    if not found:
        raise UsageError("the two reports have no calls in common")
    return tuple(found)


def rules_of(found: Savings) -> str:
    """The text of a table for libcollwise with the tuned choices for those profiled calls that become faster.

    The saving must exceed the half-width of its interval, if that half-width is known. All other process counts and
    sizes keep MPI's own algorithms.
    """
    steps: dict[tuple[str, int, int], dict[int, Choice]] = {}
    for row in found.rows:
        if row.saving_seconds > 0 and row.tuned != row.default and not row.saving_half_width >= row.saving_seconds:
            key = (row.row.collective, row.row.processes, min(row.row.processes_per_node, row.row.processes))
            least = (row.row.min_bytes or 0) if sees_sizes(COLLWISE, row.row.collective) else 0
            steps.setdefault(key, {})[least] = row.tuned
    lines = [
        f"# For the calls of a profile, by {found.made_by}",
        "# collective procs processes_per_node message_bytes algorithm [parameters]",
    ]
    for (collective, procs, per_node), choices in sorted(steps.items()):
        words: dict[int, str] = {0: "default"}
        for least in sorted(choices):
            words[least] = words_of(collective, choices[least])
            if collective != "barrier" and sees_sizes(COLLWISE, collective):
                words.setdefault(2 * least if least else 1, "default")
        words |= {least: words_of(collective, choice) for least, choice in choices.items()}
        lines += [f"{collective} {procs} {per_node} {least} {words[least]}" for least in sorted(words)]
        if (collective, procs + 1, 1) not in steps:
            lines.append(f"{collective} {procs + 1} 1 0 default")
    return "\n".join(lines) + "\n"
