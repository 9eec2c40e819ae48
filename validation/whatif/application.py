"""What-if for an application: the collectives that a run's report counts, on a platform and on a changed one.

The report is that of libcollwise in JSON (docs/interposing.md). A row counts calls whose message sizes lie between a
power of two and the next one; they are timed at their mean size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import counted
from collwise.platforms import HostPlatform
from collwise.platforms.changes import Change, changed
from collwise.simulator.execution.profiles import OWN, ProfileRow, read_profile
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case, Timing
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS
from collwise.validation.times.grid import CaseGrid, choice_of

_ELEMENT_BYTES = 8

AS_RUN, BEST_BEFORE = "as it ran", "best before"
"""What the default of a line is, if it is no library's decision: the algorithm of ours that ran, or what was the best
before the change, where the library's algorithm is not in the catalogue."""


@dataclass(frozen=True)
class Calls:
    """A line of the report: so many calls of a collective with about this message size, and what ran.

    `message_bytes` is None where the sizes are not known to all processes; `parameters` are those of the report, as in
    'segment_bytes=8192 radix=4'.
    """

    collective: str
    procs: int
    message_bytes: int | None
    calls: int
    algorithm: str
    parameters: str = ""

    @property
    def title(self) -> str:
        """The number of calls, the collective and the number of processes, in words."""
        return f"{counted(self.calls, 'call')} of {self.collective} on {counted(self.procs, 'process')}"

    @property
    def obstacle(self) -> str:
        """The reason why libcollwise could not replace the calls, or why their times cannot be asked for; or empty."""
        why = self.algorithm.removeprefix(f"{OWN}: ")
        if self.collective not in Catalogue.load().collectives:
            return f"{why}, which libcollwise passes on"
        if self.procs < 2:
            return "they send nothing"
        if self.message_bytes is None or "intercommunicator" in why or "invalid" in why:
            return why
        if self.message_bytes == 0 and self.collective != "barrier":
            return "their sizes are not known"
        return ""


@dataclass(frozen=True)
class CallTimes:
    """The seconds of all calls of a line: by default and tuned, before and after the change.

    Tuned is the best choice on either platform, `tuned` that of the changed one.
    """

    calls: Calls
    default: Choice
    default_is: str
    tuned: Choice
    default_before: float
    tuned_before: float
    default_after: float
    tuned_after: float


@dataclass(frozen=True)
class Application:
    """The lines of a report with their times, what was left out and why, and the cases that failed."""

    lines: tuple[CallTimes, ...]
    left_out: tuple[str, ...]
    made_by: str
    failed: tuple[Timing, ...] = ()

    def total(self, name: str) -> float:
        """The seconds of all calls: of 'default_before', 'tuned_before', 'default_after' or 'tuned_after'."""
        return float(sum(getattr(line, name) for line in self.lines))


def calls_of(row: ProfileRow) -> Calls:
    """The calls of a row, at their mean size in whole doubles where these are as fine."""
    message_bytes = None if row.mean_bytes is None else int(row.mean_bytes)
    if message_bytes is not None and message_bytes >= 2 * _ELEMENT_BYTES:
        message_bytes -= message_bytes % _ELEMENT_BYTES
    return Calls(row.collective, row.processes, message_bytes, row.calls, row.ran, row.parameters)


def reported_calls(path: Path) -> list[Calls]:
    """The calls of a report in JSON. Raises UsageError for other files, and for a report that counts none."""
    found = [calls_of(row) for row in read_profile(path).rows]
    if not found:
        raise UsageError(f"{path}: the report counts no call")
    return found


def what_if_application(
    platform: HostPlatform,
    changes: Sequence[Change],
    lines: Sequence[Calls],
    processes_per_node: int,
    context: SimulationContext,
    baseline: Baseline,
    segments: Sequence[int] = SEGMENTS,
) -> Application:
    """Times the calls of a report by default and tuned, on the platform and on the changed one.

    `baseline` is the library that decides by default. Processes of smaller communicators are placed as if they were the
    first ones. Raises UsageError for changes that cannot be made, and if the processes do not fit on a platform.
    """
    places = [(platform, processes_per_node)]
    if changes:
        new = changed(platform, changes)
        places.append((new.platform, new.processes_per_node or processes_per_node))
    timed = [line for line in lines if not line.obstacle]
    left_out = [f"{line.title}: {line.obstacle}" for line in lines if line.obstacle]
    if not timed:
        raise UsageError(f"no call of the report can be timed: {'; '.join(left_out)}")
    sides = []
    failed: list[Timing] = []
    for where, per_node in places:
        cases = {line: _candidates(line, per_node, segments, baseline) for line in timed}
        every = list(dict.fromkeys(case for mine in cases.values() for case in mine.values()))
        sweep = context.simulate(where, every, f"{where.name}: timing the run's collectives")
        failed.extend(sweep.failed)
        sides.append(
            {
                line: {choice: sweep.timings[case].seconds for choice, case in mine.items()}
                for line, mine in cases.items()
            }
        )
    before, after = sides[0], sides[-1]
    found = []
    for line in timed:
        tuned_before, tuned_after = _fastest(before[line]), _fastest(after[line])
        default, default_is = untuned(line, baseline) or (tuned_before, BEST_BEFORE)
        found.append(
            CallTimes(
                line,
                default,
                default_is,
                tuned_after,
                line.calls * before[line][default],
                line.calls * before[line][tuned_before],
                line.calls * after[line][default],
                line.calls * after[line][tuned_after],
            )
        )
    return Application(tuple(found), tuple(left_out), sweep.configuration.maker, tuple(failed))


def _candidates(
    line: Calls, processes_per_node: int, segments: Sequence[int], baseline: Baseline
) -> dict[Choice, Case]:
    """The choices that are timed for a line, the default among them."""
    message_bytes = line.message_bytes or 0
    grid = CaseGrid(line.collective, (line.procs,), (message_bytes,), processes_per_node, tuple(segments))
    found = {choice_of(case): case for case in grid.cases()}
    if default := untuned(line, baseline):
        found.setdefault(default[0], grid.case(default[0], line.procs, message_bytes))
    return found


def untuned(line: Calls, baseline: Baseline) -> tuple[Choice, str] | None:
    """What runs untuned, and why; None where the catalogue does not have the library's algorithm."""
    if not line.algorithm.startswith(OWN):
        return _as_run(line), AS_RUN
    if line.collective not in baseline.collectives:
        return None
    choice = baseline.choice(line.collective, line.procs, line.message_bytes or 0)
    return None if choice is None else (choice, baseline.title)


def _as_run(line: Calls) -> Choice:
    """The algorithm of ours that ran, with its parameters; those that are not named were 0."""
    entry = Catalogue.load().algorithm(line.collective, line.algorithm)
    known = {name: int(value) for name, _, value in (word.partition("=") for word in line.parameters.split())}
    part, count, limit = (
        known.get(name, 0) for name in (entry.part_parameter, entry.count_parameter, entry.limit_parameter)
    )
    return Choice(entry.name, part, 0 if count == entry.default_count else count, limit)


def _fastest(seconds: dict[Choice, float]) -> Choice:
    known = {choice: value for choice, value in seconds.items() if not np.isnan(value)}
    if not known:
        raise UsageError("no algorithm has a time for a call of the report")
    return min(known, key=lambda choice: known[choice])
