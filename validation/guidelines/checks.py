"""Checks of guidelines on times: pattern (GL1 to GL22), monotony and split-robustness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collwise.validation.guidelines.criteria import Launches, Share, Verdict

MONOTONY, SPLIT = "monotony", "split-robustness"
PATTERN = "pattern"
KINDS = (PATTERN, MONOTONY, SPLIT)


@dataclass(frozen=True, order=True)
class Call:
    """A call of a library's own collective."""

    collective: str
    procs: int
    message_bytes: int


@dataclass(frozen=True)
class Comparison:
    """A guideline at one call: the time of the call, and the time that it must not exceed.

    `guideline` is GL1 to GL22, 'monotony' or 'split-robustness'. `other_bytes` is the message size of what it is
    compared with: another one for monotony, and for split-robustness that of each of the `calls`.
    """

    guideline: str
    call: Call
    time: Launches
    other: Launches
    verdict: Verdict
    other_bytes: int
    calls: int = 1

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return self.guideline if self.guideline in KINDS else PATTERN

    @property
    def violated(self) -> bool:
        """True if the call is slower than it may be."""
        return self.verdict.slower

    @property
    def ratio(self) -> float:
        """The time of the call divided by the one that it must not exceed."""
        return self.time.seconds / self.other.seconds


@dataclass(frozen=True)
class Checked:
    """The comparisons of a library, and the violations among them."""

    comparisons: tuple[Comparison, ...]

    @property
    def violations(self) -> tuple[Comparison, ...]:
        """The comparison with the largest ratio for each guideline and each call that violates it."""
        worst: dict[tuple[str, Call], Comparison] = {}
        for one in self.comparisons:
            key = (one.guideline, one.call)
            if one.violated and (key not in worst or one.ratio > worst[key].ratio):
                worst[key] = one
        return tuple(sorted(worst.values(), key=lambda one: (one.call, KINDS.index(one.kind), -one.ratio)))

    def counts(self) -> dict[str, int]:
        """The number of violations of each kind."""
        found = self.violations
        return {kind: sum(one.kind == kind for one in found) for kind in KINDS}

    def checked(self) -> dict[str, int]:
        """For each kind the number of calls and guidelines that were checked."""
        asked = {(one.kind, one.guideline, one.call) for one in self.comparisons}
        return {kind: sum(entry[0] == kind for entry in asked) for kind in KINDS}


def check(
    own: Mapping[Call, Launches],
    mockups: Mapping[tuple[str, Call], Launches],
    criterion: Share,
    kinds: Sequence[str] = KINDS,
) -> Checked:
    """Checks a library's times `own`; `mockups` are those of mock-ups, by guideline and call.

    Failed calls are left out. Each kind is a family of comparisons of its own for the criterion.
    """
    candidates = {PATTERN: _pattern(own, mockups), MONOTONY: _monotony(own), SPLIT: _split(own)}
    found: list[Comparison] = []
    for kind in kinds:
        asked = [one for one in candidates[kind] if own[one[1]].medians and one[2].medians]
        verdicts = criterion.judge([(own[call], other) for _, call, other, _, _ in asked])
        found += [
            Comparison(guideline, call, own[call], other, verdict, size, calls)
            for (guideline, call, other, size, calls), verdict in zip(asked, verdicts, strict=True)
        ]
    return Checked(tuple(found))


_Candidate = tuple[str, Call, Launches, int, int]


def _pattern(own: Mapping[Call, Launches], mockups: Mapping[tuple[str, Call], Launches]) -> Iterator[_Candidate]:
    for (guideline, call), other in mockups.items():
        if call in own:
            yield guideline, call, other, call.message_bytes, 1


def _monotony(own: Mapping[Call, Launches]) -> Iterator[_Candidate]:
    """t(m) <= t(m') for all m < m'."""
    for call in own:
        for larger in _same(own, call):
            if larger.message_bytes > call.message_bytes:
                yield MONOTONY, call, own[larger], larger.message_bytes, 1


def _split(own: Mapping[Call, Launches]) -> Iterator[_Candidate]:
    """t(m) <= k t(m / k) for all k for which m / k is a size."""
    for call in own:
        for part in _same(own, call):
            if 0 < part.message_bytes < call.message_bytes and call.message_bytes % part.message_bytes == 0:
                calls = call.message_bytes // part.message_bytes
                yield SPLIT, call, own[part].times(calls), part.message_bytes, calls


def _same(own: Mapping[Call, Launches], call: Call) -> Iterator[Call]:
    return (one for one in own if (one.collective, one.procs) == (call.collective, call.procs))
