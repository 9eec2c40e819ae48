"""The whole check of a library: times, guidelines, repair, and the same benchmark under the repaired library."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collwise.common.errors import CollwiseError, warn
from collwise.simulator.timing import Case
from collwise.validation.guidelines.checks import (
    KINDS,
    PATTERN,
    Call,
    Checked,
    Comparison,
    Launches,
    RankTest,
    Share,
    check,
)
from collwise.validation.guidelines.guideline import GUIDELINES, guidelines_of
from collwise.validation.guidelines.library import CaseTimes, Library
from collwise.validation.guidelines.repair import Repair, RepairedRange, ranges, repairs, rules_text
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of


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
        return [
            Call(name, procs, size)
            for name, sizes in self.sizes.items()
            for procs in self.procs
            if procs > 1
            for size in sizes
        ]


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

    `unused` has the reasons why mock-ups do not run (such as too small buffers), by guideline and call; `failed` has
    the problems of calls without a time.
    """

    library: Library
    plan: Plan
    own: Mapping[Call, Launches]
    mockups: Mapping[tuple[str, Call], Launches]
    before: Checked
    repairs: tuple[Repair, ...]
    ranges: tuple[RepairedRange, ...]
    seconds: float
    tuned: Repaired | None = None
    unused: Mapping[tuple[str, Call], str] = field(default_factory=dict)

    @property
    def failed(self) -> dict[str, str]:
        """The errors of calls and mock-ups without a time; each key names the call and its P."""
        own = {f"{call.collective}, P = {call.procs}": launches.error for call, launches in self.own.items()}
        mockups = {f"{name}, P = {call.procs}": mockup.error for (name, call), mockup in self.mockups.items()}
        return {what: error for what, error in {**own, **mockups}.items() if error}

    def gain(self, call: Call) -> float:
        """The default time divided by the time with repairs, from alternating launches; nan if nothing was repaired."""
        if self.tuned is None or call not in self.tuned.own:
            return math.nan
        return self.tuned.default[call].seconds / self.tuned.own[call].seconds

    def greatest_gain(self) -> tuple[Repair, float] | None:
        """The repair with the greatest gain; None if there is no repair."""
        gains = [(repair, self.gain(repair.call)) for repair in self.repairs]
        return max((entry for entry in gains if not math.isnan(entry[1])), key=lambda entry: entry[1], default=None)

    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of every violation found before repair; empty if nothing was repaired."""
        if self.tuned is None:
            return ()
        left = {(violation.guideline, violation.call): violation for violation in self.tuned.checked.violations}
        return tuple(
            Outcome(violation, self._reason(violation, left.get((violation.guideline, violation.call))))
            for violation in self.before.violations
        )

    def new_violations(self) -> tuple[Outcome, ...]:
        """The violations of the repaired library that the first check did not find, with their reasons."""
        if self.tuned is None:
            return ()
        known = {(violation.guideline, violation.call) for violation in self.before.violations}
        found = [
            violation
            for violation in self.tuned.checked.violations
            if (violation.guideline, violation.call) not in known
        ]
        return tuple(Outcome(comparison, self._cause(comparison)) for comparison in found)

    def _reason(self, violation: Comparison, still: Comparison | None) -> str:
        """The reason why a violation is left after repair; empty if it is repaired.

        `still` is the comparison after repair, or None if this is no longer a violation.
        """
        if still is None:
            return ""
        runs = next((repair.guideline for repair in self.repairs if repair.call == violation.call), None)
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
        call = violation.call
        against = Call(call.collective, call.procs, violation.other_bytes)
        if (
            violation.kind != PATTERN
            and self.gain(against) > 1
            and any(repair.call == against for repair in self.repairs)
        ):
            return f"what it is compared with has a gain of x {self.gain(against):.2f} by its repair"
        key = (violation.guideline, call, violation.other_bytes)
        same = (
            comparison
            for comparison in self.before.comparisons
            if (comparison.guideline, comparison.call, comparison.other_bytes) == key
        )
        before = next(same, None)
        if before is None:
            return "one of the two had no time in the first check"
        return f"times differ between the runs: the ratio was {before.ratio:.2f} in the first check"


def run(library: Library, plan: Plan) -> GuidelinesResult:
    """Checks a library. If `plan.repair` is set and there are repairs, also measures the library with these.

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
        chosen = {own_cases[repair.call]: Choice(repair.guideline.mockup.name) for repair in mended}
        rules = rules_text(joined, {procs: library.processes_per_node(procs) for procs in plan.procs})
        default, repaired = library.times_in_turn(every, rules, chosen)
        after, _, again = checked(repaired)
        plain = {call: default[case] for call, case in own_cases.items()}
        tuned = Repaired(rules, plain, after, again, time.monotonic() - done)
    return GuidelinesResult(library, plan, own, mockups, before, mended, joined, done - started, tuned, unused)


def _warn_of_few_launches(library: Library, plan: Plan, comparisons: int) -> None:
    """Warns, before anything is measured, if the rank test could not find a single violation."""
    if not isinstance(plan.criterion, RankTest) or library.exact:
        return
    needed = plan.criterion.min_launches(comparisons)
    if library.launches < needed:
        warn(
            f"with {library.launches} launches the rank test cannot find a single violation among "
            f"{comparisons} comparisons; it needs at least {needed} (--launches {needed})"
        )
