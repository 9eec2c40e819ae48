"""Repair of violated pattern guidelines: the fastest mock-up for each, as a table of libcollwise and as profiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collwise.common.errors import UsageError, unknown_name
from collwise.validation.guidelines.checks import PATTERN, Call, Checked
from collwise.validation.guidelines.guideline import GUIDELINES, Guideline, guidelines_of
from collwise.validation.libraries.pgmpi import PgmpiProfile, Range


@dataclass(frozen=True)
class Repair:
    """A call that violates guidelines, and the violated guideline with the fastest mock-up."""

    call: Call
    guideline: Guideline


@dataclass(frozen=True)
class RepairedRange:
    """Message sizes from `first` to `last`, both included, for which a mock-up replaces the collective.

    The mock-up repairs all checked sizes in this range.
    """

    collective: str
    procs: int
    first: int
    last: int
    guideline: Guideline


def repairs(checked: Checked) -> tuple[Repair, ...]:
    """The repair of each call that violates a pattern guideline, in the order of calls."""
    found: dict[Call, tuple[float, str]] = {}
    for violation in checked.violations:
        if violation.kind == PATTERN:
            mockup = (violation.other.seconds, violation.guideline)
            found[violation.call] = min(found.get(violation.call, mockup), mockup)
    return tuple(Repair(call, GUIDELINES[guideline]) for call, (_, guideline) in sorted(found.items()))


def ranges(found: Sequence[Repair], sizes: Mapping[str, Sequence[int]]) -> tuple[RepairedRange, ...]:
    """Joins repairs of neighbouring sizes by the same mock-up; `sizes` are all checked sizes, ascending."""
    made: list[RepairedRange] = []
    for (collective, procs), group in itertools.groupby(
        found, key=lambda repair: (repair.call.collective, repair.call.procs)
    ):
        before: RepairedRange | None = None
        for repair in group:
            size = repair.call.message_bytes
            follows = before is not None and sizes[collective].index(before.last) + 1 == sizes[collective].index(size)
            if before is not None and follows and before.guideline == repair.guideline:
                made[-1] = before = RepairedRange(collective, procs, before.first, size, repair.guideline)
            else:
                before = RepairedRange(collective, procs, size, size, repair.guideline)
                made.append(before)
    return tuple(made)


def rules_text(found: Sequence[RepairedRange], processes_per_node: Mapping[int, int] | None = None) -> str:
    """A table for libcollwise (`collwise program run --table`) with these ranges only; empty if there are none.

    The table applies to the process counts that were checked. `processes_per_node` gives the processes per node of each
    count; if it is None, the table applies to any number of processes per node. All other calls are left to MPI's own
    algorithms. Since a rule also applies to larger process counts, processes per node and message sizes, up to those of
    the next rule, each range ends with a rule that names 'default'.
    """
    if not found:
        return ""
    lines = ["# Mock-ups where performance guidelines are violated, for collwise program run --table:"]
    lines.append("# collective procs processes_per_node message_bytes algorithm")
    for collective, of_collective in itertools.groupby(found, key=lambda one: one.collective):
        counts = {procs: list(group) for procs, group in itertools.groupby(of_collective, key=lambda one: one.procs)}
        lines.append("")
        for procs, group in counts.items():
            per_node = 1 if processes_per_node is None else processes_per_node[procs]
            lines += [f"{collective} {procs} {per_node} {start} {what}" for start, what in _steps(group)]
            if processes_per_node is not None:
                lines.append(f"{collective} {procs} {per_node + 1} 0 default")
            if procs + 1 not in counts:
                lines.append(f"{collective} {procs + 1} 1 0 default")
    return "\n".join(lines) + "\n"


def _steps(group: Sequence[RepairedRange]) -> Iterator[tuple[int, str]]:
    """Yields each size at which the choice changes, and the name of the new choice."""
    end = 0
    for item in group:
        if item.first > end:
            yield end, "default"
        yield item.first, item.guideline.mockup.name
        end = item.last + 1
    yield end, "default"


def profiles(found: Sequence[RepairedRange]) -> tuple[PgmpiProfile, ...]:
    """PGMPITuneLib's profile of each collective and process count with a repair."""
    made = []
    for (collective, procs), group in itertools.groupby(found, key=lambda one: (one.collective, one.procs)):
        mine = list(group)
        names = {_identity(item.guideline): item.guideline.profile_name for item in mine}
        made.append(
            PgmpiProfile(
                f"MPI_{collective.capitalize()}", procs, dict(sorted(names.items())),
                tuple(Range(item.first, item.last, _identity(item.guideline)) for item in mine),
            )
        )  # fmt: skip
    return tuple(made)


def _identity(guideline: Guideline) -> int:
    """The mock-up's number in a profile: its place among the mock-ups of its collective, starting at 1."""
    return guidelines_of(guideline.collective).index(guideline) + 1


def rules_of(profiles: Mapping[str, PgmpiProfile]) -> str:
    """The table for libcollwise with the ranges of PGMPITuneLib's profiles; the keys are the profiles' file names."""
    found: list[RepairedRange] = []
    seen: set[tuple[str, int]] = set()
    for file, profile in profiles.items():
        try:
            found += ranges_of(profile)
        except UsageError as problem:
            raise UsageError(f"{file}: {problem}") from None
        if (profile.function, profile.procs) in seen:
            raise UsageError(f"{file}: another profile of {profile.function} for {profile.procs} processes; give one")
        seen.add((profile.function, profile.procs))
    return rules_text(sorted(found, key=lambda item: (item.collective, item.procs, item.first)))


def ranges_of(profile: PgmpiProfile) -> tuple[RepairedRange, ...]:
    """The ranges of a profile that PGMPITuneLib wrote. Raises UsageError for a mock-up that the catalogue lacks."""
    known = {
        item.profile_name: item
        for item in GUIDELINES.values()
        if f"MPI_{item.collective.capitalize()}" == profile.function
    }
    if not known:
        functions = dict.fromkeys(f"MPI_{item.collective.capitalize()}" for item in GUIDELINES.values())
        raise unknown_name("function of a profile", profile.function, functions)
    found = []
    for item in profile.ranges:
        name = profile.mockups[item.mockup]
        if name not in known:
            raise UsageError(f"{profile.function}: {unknown_name('mock-up', name, known)}")
        guideline = known[name]
        found.append(RepairedRange(guideline.collective, profile.procs, item.start, item.end, guideline))
    return tuple(found)
