"""Profiles of programs: the time within collectives, and what other algorithms would save of it.

The saving of a line is its measured time multiplied by the part of the time of MPI's own algorithm that the best one
saves, both times from a platform or a decision table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform
from collwise.simulator.execution.profiles import OWN, Profile, ProfileRow, rows_by_key
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.select.collwise_rules import words_of
from collwise.validation.select.consumers import COLLWISE, sees_sizes
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS
from collwise.validation.whatif.application import AS_RUN, calls_of, untuned, what_if_application


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
        return self.row.ran != self.ran and not all(ran.startswith(OWN) for ran in (self.row.ran, self.ran))


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
            default, default_is = Choice(OWN), "as measured"
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
        around = around if default.algorithm == OWN else table.evidence.half_width(default, row.processes, size)
        found.append(Expected(row, default, default_is, tuned, seconds[default], seconds[tuned], around, width))
    return Expectation(tuple(found), tuple(left_out), tables[0].made_by)


def achieved_between(before: Profile, after: Profile) -> tuple[Achieved, ...]:
    """The calls that both runs have, whatever ran: the time within them, and what the later run saves."""
    first, second = rows_by_key(before.rows), rows_by_key(after.rows)
    found = []
    for key, rows in first.items():
        if key in second:
            ran = ", ".join(dict.fromkeys(row.ran for row in second[key]))
            found.append(Achieved(rows[0], ran, sum(r.seconds for r in rows), sum(r.seconds for r in second[key])))
    if not found:
        raise UsageError("the two reports have no calls in common")
    return tuple(found)


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
