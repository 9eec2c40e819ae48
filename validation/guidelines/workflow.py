"""The whole check of a library: times, guidelines, repair by mock-ups, and the check of the repaired library.

A repair is the fastest mock-up for a call that violates a pattern guideline. Repairs are written as a table of
libcollwise and as profiles of PGMPITuneLib.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from collwise.common.errors import CollwiseError, UsageError, check_name, located, unknown_name, warn
from collwise.simulator.timing import Case
from collwise.validation.guidelines.checks import (
    COLLECTIVES,
    GUIDELINES,
    KINDS,
    PATTERN,
    Call,
    Checked,
    Comparison,
    Guideline,
    Launches,
    RankTest,
    Share,
    check,
    guidelines_of,
)
from collwise.validation.libraries.pgmpi import PgmpiProfile, Range
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of

if TYPE_CHECKING:
    from collwise.validation.guidelines.library import CaseTimes, Library


@dataclass(frozen=True)
class RepairedRange:
    """Message sizes from `first` to `last`, both included, for which a mock-up replaces the collective."""

    collective: str
    procs: int
    first: int
    last: int
    guideline: Guideline


@dataclass(frozen=True)
class Plan:
    """The plan of a check: message sizes by collective, process counts, the criterion, and the kinds of guidelines."""

    sizes: Mapping[str, Sequence[int]]
    procs: Sequence[int]
    criterion: Share
    kinds: Sequence[str] = KINDS
    repair: bool = True

    def calls(self) -> list[Call]:
        """All calls, in the order of collectives, process counts and sizes."""
        points = ((name, procs) for name in self.sizes for procs in self.procs if procs > 1)
        return [Call(name, procs, size) for name, procs in points for size in self.sizes[name]]


@dataclass(frozen=True)
class Repaired:
    """The times of calls without and with repairs, from alternating launches, and the check of the repaired library."""

    rules: str
    default: Mapping[Call, Launches]
    own: Mapping[Call, Launches]
    checked: Checked
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """A violation, and the reason why it is not repaired, which is empty if it is repaired."""

    violation: Comparison
    reason: str

    @property
    def repaired(self) -> bool:
        """True if the repaired library does not have the violation."""
        return not self.reason


@dataclass(frozen=True)
class GuidelinesResult:
    """A library's times and its violations, before and after repair. `seconds` is how long the first check took.

    `repairs` has, for each call that violates guidelines, the violated guideline with the fastest mock-up. `unused` has
    the reasons why mock-ups do not run (such as too small buffers), by guideline and call.
    """

    library: Library
    plan: Plan
    own: Mapping[Call, Launches]
    mockups: Mapping[tuple[str, Call], Launches]
    before: Checked
    repairs: Mapping[Call, Guideline]
    ranges: tuple[RepairedRange, ...]
    seconds: float
    tuned: Repaired | None = None
    unused: Mapping[tuple[str, Call], str] = field(default_factory=dict)

    @property
    def failed(self) -> dict[str, str]:
        """The errors of calls and mock-ups without a time; each key names the call and its P."""
        found = {(call.collective, call): launches for call, launches in self.own.items()} | dict(self.mockups)
        return {f"{name}, P = {call.procs}": one.error for (name, call), one in found.items() if one.error}

    def gain(self, call: Call) -> float:
        """The default time divided by the time with repairs, from alternating launches; nan if nothing was repaired."""
        if self.tuned is None or call not in self.tuned.own:
            return math.nan
        return self.tuned.default[call].seconds / self.tuned.own[call].seconds

    def greatest_gain(self) -> tuple[Call, float] | None:
        """The repaired call with the greatest gain; None if there is no repair."""
        gains = [(call, self.gain(call)) for call in self.repairs]
        return max((entry for entry in gains if not math.isnan(entry[1])), key=lambda entry: entry[1], default=None)

    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of every violation found before repair; empty if nothing was repaired."""
        if self.tuned is None:
            return ()
        left = {(each.guideline, each.call): each for each in self.tuned.checked.violations}
        found = self.before.violations
        return tuple(Outcome(each, self._reason(each, left.get((each.guideline, each.call)))) for each in found)

    def new_violations(self) -> tuple[Outcome, ...]:
        """The violations of the repaired library that the first check did not find, with their reasons."""
        if self.tuned is None:
            return ()
        known = {(each.guideline, each.call) for each in self.before.violations}
        found = [each for each in self.tuned.checked.violations if (each.guideline, each.call) not in known]
        return tuple(Outcome(comparison, self._cause(comparison)) for comparison in found)

    def _reason(self, violation: Comparison, still: Comparison | None) -> str:
        """The reason why a violation remains after repair (as `still`); empty if it is repaired (`still` is None)."""
        if still is None:
            return ""
        runs = self.repairs.get(violation.call)
        if runs is None:
            return "no mock-up is faster for this call"
        gain = f"{runs.label} runs, with a gain of x {self.gain(violation.call):.2f}"
        if violation.kind != PATTERN:
            return f"{gain}, which is not enough"
        less = (1 - 1 / still.ratio) * 100
        if runs.name == violation.guideline:
            return f"{gain}, and takes {less:.0f} % less when timed as a mock-up: times differ within a launch"
        faster = GUIDELINES[violation.guideline].label
        return f"{gain}, the fastest in the first check; {faster} now takes {less:.0f} % less"

    def _cause(self, violation: Comparison) -> str:
        """The reason why the repaired library has a violation that the first check did not find."""
        against = replace(violation.call, message_bytes=violation.other_bytes)
        if violation.kind != PATTERN and against in self.repairs and self.gain(against) > 1:
            return f"what it is compared with has a gain of x {self.gain(against):.2f} by its repair"
        ratios = {(each.guideline, each.call, each.other_bytes): each.ratio for each in self.before.comparisons}
        ratio = ratios.get((violation.guideline, violation.call, violation.other_bytes))
        if ratio is None:
            return "one of the two had no time in the first check"
        return f"times differ between the runs: the ratio was {ratio:.2f} in the first check"


def run(library: Library, plan: Plan) -> GuidelinesResult:
    """Checks a library, and checks it again with repairs if there are any and `plan.repair` is set.

    Raises CollwiseError if no call of the library has a time.
    """
    started = time.monotonic()
    calls = plan.calls()
    unused: dict[tuple[str, Call], str] = {}
    own_cases: dict[Call, Case] = {}
    mockup_cases: dict[tuple[str, Call], Case] = {}
    for call in calls:
        name, procs, size = call.collective, call.procs, call.message_bytes
        per_node = library.processes_per_node(procs)
        own_cases[call] = case_of(name, LIBRARY_DECIDES, procs, size, per_node)
        for guideline in guidelines_of(name):
            mockup = guideline.mockup
            if objection := mockup.objection(procs, size):
                unused[guideline.name, call] = objection
            else:
                mockup_cases[guideline.name, call] = case_of(name, Choice(mockup.name), procs, size, per_node)
    _warn_of_few_launches(library, plan, max(len(own_cases), len(mockup_cases)))
    every = [*own_cases.values(), *mockup_cases.values()]

    def checked(found: CaseTimes) -> tuple[dict[Call, Launches], dict[tuple[str, Call], Launches], Checked]:
        own = {call: found[case] for call, case in own_cases.items()}
        mockups = {key: found[case] for key, case in mockup_cases.items()}
        return own, mockups, check(own, mockups, plan.criterion, plan.kinds)

    own, mockups, before = checked(library.times(every))
    if own and not any(launches.medians for launches in own.values()):
        raise CollwiseError(f"{library.title}: no call has a time; the first error: {next(iter(own.values())).error}")
    mended = repairs(before)
    joined = ranges(mended, plan.sizes)
    done = time.monotonic()
    tuned = None
    if plan.repair and mended:
        chosen = {own_cases[call]: Choice(guideline.mockup.name) for call, guideline in mended.items()}
        rules = rules_text(joined, {procs: library.processes_per_node(procs) for procs in plan.procs})
        default, repaired = library.times_in_turn(every, rules, chosen)
        after, _, again = checked(repaired)
        plain = {call: default[case] for call, case in own_cases.items()}
        tuned = Repaired(rules, plain, after, again, time.monotonic() - done)
    return GuidelinesResult(library, plan, own, mockups, before, mended, joined, done - started, tuned, unused)


def _warn_of_few_launches(library: Library, plan: Plan, comparisons: int) -> None:
    """Warns, before anything is measured, if the rank test could not find a single violation."""
    needed = plan.criterion.min_launches(comparisons) if isinstance(plan.criterion, RankTest) else 0
    if 0 < library.launches < needed:
        warn(
            f"with {library.launches} launches the rank test cannot find a single violation among "
            f"{comparisons} comparisons; it needs at least {needed} (--launches {needed})"
        )


def repairs(checked: Checked) -> dict[Call, Guideline]:
    """The guideline whose mock-up repairs each call that violates a pattern guideline, in the order of calls."""
    found: dict[Call, tuple[float, str]] = {}
    for violation in checked.violations:
        if violation.kind == PATTERN:
            mockup = (violation.other.seconds, violation.guideline)
            found[violation.call] = min(found.get(violation.call, mockup), mockup)
    return {call: GUIDELINES[guideline] for call, (_, guideline) in sorted(found.items())}


def ranges(found: Mapping[Call, Guideline], sizes: Mapping[str, Sequence[int]]) -> tuple[RepairedRange, ...]:
    """Joins repairs of neighbouring sizes by the same mock-up; `sizes` are all checked sizes, ascending."""
    made: list[RepairedRange] = []
    for call, guideline in found.items():
        new = RepairedRange(call.collective, call.procs, call.message_bytes, call.message_bytes, guideline)
        before = made[-1] if made else new
        index = sizes[call.collective].index
        if replace(before, first=new.first, last=new.last) == new and index(before.last) + 1 == index(new.first):
            made[-1] = replace(before, last=new.last)
        else:
            made.append(new)
    return tuple(made)


def rules_text(found: Sequence[RepairedRange], processes_per_node: Mapping[int, int] | None = None) -> str:
    """A table for libcollwise (`collwise program run --table`) with these ranges only; empty if there are none.

    The table applies to the checked process counts, each with its number in `processes_per_node`, or with any number of
    processes per node if `processes_per_node` is None. Since a rule also applies to larger process counts, processes
    per node and message sizes, up to those of the next rule, each range ends with a rule that names 'default'.
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
        replaced = tuple(Range(item.first, item.last, _identity(item.guideline)) for item in mine)
        made.append(PgmpiProfile(_function(collective), procs, dict(sorted(names.items())), replaced))
    return tuple(made)


def _function(collective: str) -> str:
    return f"MPI_{collective.capitalize()}"


def _identity(guideline: Guideline) -> int:
    """The mock-up's number in a profile: its place among the mock-ups of its collective, starting at 1."""
    return guidelines_of(guideline.collective).index(guideline) + 1


def rules_of(profiles: Mapping[str, PgmpiProfile]) -> str:
    """The table for libcollwise with the ranges of PGMPITuneLib's profiles; the keys are the profiles' file names."""
    found: list[RepairedRange] = []
    seen: set[tuple[str, int]] = set()
    for file, profile in profiles.items():
        with located(file):
            found += ranges_of(profile)
        if (profile.function, profile.procs) in seen:
            raise UsageError(f"{file}: another profile of {profile.function} for {profile.procs} processes; give one")
        seen.add((profile.function, profile.procs))
    return rules_text(sorted(found, key=lambda item: (item.collective, item.procs, item.first)))


def ranges_of(profile: PgmpiProfile) -> tuple[RepairedRange, ...]:
    """The ranges of a profile that PGMPITuneLib wrote. Raises UsageError for a mock-up that the catalogue lacks."""
    check_name("function of a profile", profile.function, [*map(_function, COLLECTIVES)])
    known = {item.profile_name: item for item in GUIDELINES.values() if _function(item.collective) == profile.function}
    found = []
    for item in profile.ranges:
        name = profile.mockups[item.mockup]
        if name not in known:
            raise UsageError(f"{profile.function}: {unknown_name('mock-up', name, known)}")
        guideline = known[name]
        found.append(RepairedRange(guideline.collective, profile.procs, item.start, item.end, guideline))
    return tuple(found)
