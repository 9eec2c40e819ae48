"""Profiles of programs: the time within collectives, and what other algorithms would save of it.

A profile is the JSON report of libcollwise (docs/interposing.md). The saving of a line is its measured time multiplied
by the part of the time of MPI's own algorithm that the best one saves, both times from a platform or a decision table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.collwise_rules import words_of
from collwise.validation.selection.consumers import COLLWISE, sees_sizes
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.defaults import SEGMENTS
from collwise.validation.whatif.application import (
    AS_RUN,
    PARAMETERS,
    Calls,
    rounded_bytes,
    untuned,
    what_if_application,
)

_VERSION = 1
_MAKE_ONE = "make one with: collwise profile -o FILE.json -- PROGRAM"
_OWN = "MPI's own"


@dataclass(frozen=True)
class ProfileRow:
    """The calls of a collective on one communicator whose sizes lie between a power of two and the next one.

    `seconds` is the time within all of them by the mean process; `algorithm` is empty where `mpis_own` says why MPI's
    own ran, and `parameters` are those that it ran with. `mean_bytes` is None where the sizes are not known to all
    processes.
    """

    collective: str
    communicator: str
    ranks: str
    processes: int
    processes_per_node: int
    algorithm: str
    mpis_own: str
    least_bytes: int | None
    mean_bytes: float | None
    calls: int
    seconds: float
    shortest_seconds: float
    longest_seconds: float
    parameters: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, int | None]:
        """What the same calls of another run have in common with these, whatever algorithm ran."""
        return self.collective, self.communicator, self.ranks, self.processes, self.least_bytes

    @property
    def ran(self) -> str:
        """The algorithm that ran, or that MPI's own did."""
        return self.algorithm or f"{_OWN}: {self.mpis_own}"

    @property
    def where(self) -> str:
        """The communicator, by its name or its ranks in MPI_COMM_WORLD."""
        return self.communicator or f"ranks {self.ranks}"


@dataclass(frozen=True)
class Profile:
    """The collectives of one run: rows, and the seconds between MPI_Init and MPI_Finalize by the mean process."""

    processes: int
    seconds: float
    rows: tuple[ProfileRow, ...]

    @property
    def collective_seconds(self) -> float:
        """The seconds within collectives by the mean process."""
        return sum(row.seconds * row.processes for row in self.rows) / self.processes


@dataclass(frozen=True)
class Expected:
    """What a row's calls would save: `default` is what MPI runs untuned, `tuned` the choice with the saving.

    `default_seconds` and `tuned_seconds` are the times of one call that the platform or the table says, the half-widths
    those of their confidence intervals, nan where these are not known.
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
        """The half-width of the saving's interval, by those of the two times; nan where these are not known."""
        if self.tuned == self.default:
            return 0.0
        if not (self.default_seconds > 0 and self.tuned_seconds > 0):
            return math.nan
        apart = (self.default_half_width / self.default_seconds, self.tuned_half_width / self.tuned_seconds)
        return self.row.seconds * self.tuned_seconds / self.default_seconds * math.hypot(*apart)

    @property
    def saving_seconds(self) -> float:
        """Seconds of the mean process that all calls of the row would save."""
        if not self.default_seconds > 0:
            return 0.0
        return self.row.seconds * (1 - self.tuned_seconds / self.default_seconds)


@dataclass(frozen=True)
class Expectation:
    """The savings of a profile, the reasons why nothing is known of other rows, and where the times come from."""

    rows: tuple[Expected, ...]
    left_out: tuple[str, ...]
    made_by: str

    def saving_seconds(self, processes: int) -> float:
        """Seconds of the mean of all processes."""
        return sum(one.saving_seconds * one.row.processes for one in self.rows) / processes

    def saving_half_width(self, processes: int) -> float:
        """The half-width of its interval, if all savings are off in the same direction; nan where it is not known."""
        return sum(one.saving_half_width * one.row.processes for one in self.rows) / processes

    @property
    def is_measured(self) -> bool:
        """Whether the times are measured, and not exact as those of a simulation."""
        return self.made_by.startswith("times measured")


@dataclass(frozen=True)
class Achieved:
    """A row of one run beside the same calls of a later one: seconds of the mean process within them."""

    row: ProfileRow
    ran: str
    seconds_before: float
    seconds_after: float

    @property
    def saving_seconds(self) -> float:
        """Seconds that the later run took less within these calls."""
        return self.seconds_before - self.seconds_after

    @property
    def changed(self) -> bool:
        """Whether another algorithm ran than before; MPI's own is the same, whatever the reason is that it ran."""
        return self.row.ran != self.ran and not all(ran.startswith(_OWN) for ran in (self.row.ran, self.ran))


def read_profile(path: Path) -> Profile:
    """Reads a report that libcollwise wrote as JSON. Raises UsageError naming the file, and the row, for others."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: no JSON; {_MAKE_ONE}") from None
    if not isinstance(document, dict) or document.get("collwise_report") != _VERSION:
        raise UsageError(f"{path}: no report of libcollwise in JSON; {_MAKE_ONE}")
    try:
        processes, seconds = _whole(document, "processes", 1), _seconds(document, "seconds")
        if not isinstance(document["rows"], list):
            raise ValueError("rows is not a list")
    except (KeyError, ValueError) as problem:
        raise UsageError(f"{path}: {_said(problem)}") from None
    rows = []
    for number, entry in enumerate(document["rows"], start=1):
        try:
            rows.append(_row(entry))
        except (KeyError, ValueError) as problem:
            raise UsageError(f"{path}: row {number}: {_said(problem)}") from None
    return Profile(processes, seconds, tuple(rows))


def _said(problem: Exception) -> str:
    return f"no {problem}" if isinstance(problem, KeyError) else str(problem)


def _row(entry: Any) -> ProfileRow:
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    unsized = entry["mean_bytes"] is None
    return ProfileRow(
        _text(entry, "collective"),
        _text(entry, "communicator"),
        _text(entry, "ranks"),
        _whole(entry, "processes", 0),
        _whole(entry, "processes_per_node", 0),
        _text(entry, "algorithm") if "algorithm" in entry else "",
        _text(entry, "mpis_own") if "mpis_own" in entry else "",
        None if unsized else _whole(entry, "least_bytes", 0),
        None if unsized else _seconds(entry, "mean_bytes"),
        _whole(entry, "calls", 0),
        _seconds(entry, "seconds"),
        _seconds(entry, "shortest_seconds"),
        _seconds(entry, "longest_seconds"),
        _parameters(entry) if "parameters" in entry else "",
    )


def _parameters(entry: Mapping[str, Any]) -> str:
    text = _text(entry, "parameters")
    if PARAMETERS.fullmatch(text) is None:
        raise ValueError(f"parameters is {text[:40]!r}; valid: names with numbers, as in 'segment_bytes=8192 radix=4'")
    return text


def _text(entry: Mapping[str, Any], name: str) -> str:
    if not isinstance(entry[name], str):
        raise ValueError(f"{name} is not text")
    return str(entry[name])


def _whole(entry: Mapping[str, Any], name: str, least: int) -> int:
    value = entry[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise ValueError(f"{name} is {str(value)[:40]!r}; it is a whole number from {least} on")
    return value


def _seconds(entry: Mapping[str, Any], name: str) -> float:
    value = entry[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e30:
        raise ValueError(f"{name} is {str(value)[:40]!r}; it is a number from 0 on")
    return float(value)


def calls_of(row: ProfileRow) -> Calls:
    """The row in the form of a line of the text report."""
    message_bytes = None if row.mean_bytes is None else rounded_bytes(row.mean_bytes)
    return Calls(row.collective, row.processes, message_bytes, row.calls, row.ran, row.parameters)


def profiled_calls(path: Path) -> list[Calls]:
    """The calls of a JSON report. Raises UsageError for other files."""
    return [calls_of(row) for row in read_profile(path).rows]


def _replaceable(rows: Iterable[ProfileRow]) -> tuple[list[ProfileRow], list[str]]:
    """The rows of calls that libcollwise could replace and whose times can be asked for, and why others are not."""
    lines = [(row, calls_of(row)) for row in rows]
    left_out = [f"{line.title}: {line.obstacle}" for _, line in lines if line.obstacle]
    return [row for row, line in lines if not line.obstacle], left_out


def expected_on(
    platform: HostPlatform,
    profile: Profile,
    context: SimulationContext,
    baseline: Baseline,
    segments: Sequence[int] = SEGMENTS,
) -> Expectation:
    """What the best algorithms would save, by the times of a platform's simulation.

    `baseline` is the library that decides untuned. Raises UsageError if the processes do not fit on the platform.
    """
    rows, left_out = _replaceable(profile.rows)
    found: list[Expected] = []
    made_by = ""
    for per_node in sorted({row.processes_per_node for row in rows}):
        mine = [row for row in rows if row.processes_per_node == per_node]
        timed = what_if_application(
            platform, (), [calls_of(row) for row in mine], per_node, context, baseline, segments
        )
        made_by = f"{platform.title}, {timed.made_by}"
        found += [
            Expected(
                row,
                line.default,
                line.default_is,
                line.tuned,
                line.default_before / max(row.calls, 1),
                line.tuned_before / max(row.calls, 1),
            )
            for row, line in zip(mine, timed.lines, strict=True)
        ]
    return Expectation(tuple(found), tuple(left_out), made_by)


def expected_of(tables: Sequence[DecisionTable], profile: Profile, baseline: Baseline) -> Expectation:
    """What the choices of decision tables would save, by the times that the tables were made from.

    Where P or m is not among the tables' points, the next lower one counts. Raises UsageError for tables without times.
    """
    by_name = {table.collective: table for table in tables}
    if all(table.evidence is None for table in tables):
        raise UsageError("the decisions have no times (make some with: collwise select -o FILE)")
    rows, left_out = _replaceable(profile.rows)
    found: list[Expected] = []
    for row in rows:
        line = calls_of(row)
        size = line.message_bytes or 0
        table = by_name.get(row.collective)
        if table is None or table.evidence is None:
            left_out.append(f"{line.title}: the decisions have none for it")
            continue
        seconds = table.evidence.at(row.processes, size)
        own, around = table.evidence.own_at(row.processes, size)
        default, default_is = untuned(line, baseline) or (None, "")
        if not math.isnan(own):
            default, default_is = Choice(_OWN), "as measured"
            seconds = {**seconds, default: own}
        if default_is == AS_RUN and default not in seconds:
            default = next((one for one in seconds if one.algorithm == row.algorithm), None)
        tuned = table.choice_at(row.processes, size)
        if tuned is None:
            left_out.append(f"{line.title} and {size} bytes: below the first decision")
            continue
        if default is None or default not in seconds or tuned not in seconds:
            left_out.append(f"{line.title} and {size} bytes: the decisions have no time of what runs untuned")
            continue
        width = table.evidence.half_width(tuned, row.processes, size)
        around = around if default.algorithm == _OWN else table.evidence.half_width(default, row.processes, size)
        found.append(Expected(row, default, default_is, tuned, seconds[default], seconds[tuned], around, width))
    return Expectation(tuple(found), tuple(left_out), tables[0].made_by)


def achieved_between(before: Profile, after: Profile) -> tuple[Achieved, ...]:
    """The calls that both runs have, whatever ran: the time within them, and what the later run saves."""
    first, second = _by_key(before.rows), _by_key(after.rows)
    found = []
    for key, rows in first.items():
        if key in second:
            ran = ", ".join(dict.fromkeys(row.ran for row in second[key]))
            found.append(Achieved(rows[0], ran, sum(r.seconds for r in rows), sum(r.seconds for r in second[key])))
    if not found:
        raise UsageError("the two reports have no calls in common")
    return tuple(found)


def differing_calls(before: Profile, after: Profile) -> tuple[int, int]:
    """The number of kinds of calls of which two runs made different numbers (one program: 0), and that of all kinds."""
    first, second = _by_key(before.rows), _by_key(after.rows)
    kinds = dict.fromkeys((*first, *second))

    def number(rows: Sequence[ProfileRow]) -> int:
        return sum(row.calls for row in rows)

    return sum(number(first.get(kind, ())) != number(second.get(kind, ())) for kind in kinds), len(kinds)


def _by_key(rows: Iterable[ProfileRow]) -> dict[tuple[str, str, str, int, int | None], list[ProfileRow]]:
    found: dict[tuple[str, str, str, int, int | None], list[ProfileRow]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def rules_of(expectation: Expectation) -> str:
    """The text of a table for libcollwise that has the tuned choice for the profiled calls that it makes faster.

    It must do so beyond the intervals of the times, where these are known. All other process counts and sizes keep
    MPI's own algorithms.
    """
    steps: dict[tuple[str, int, int], dict[int, Choice]] = {}
    for one in expectation.rows:
        if one.saving_seconds > 0 and one.tuned != one.default and not one.saving_half_width >= one.saving_seconds:
            key = (one.row.collective, one.row.processes, min(one.row.processes_per_node, one.row.processes))
            least = (one.row.least_bytes or 0) if sees_sizes(COLLWISE, one.row.collective) else 0
            steps.setdefault(key, {})[least] = one.tuned
    lines = [
        f"# For the calls of a profile, by {expectation.made_by}",
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
