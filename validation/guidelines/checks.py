"""Checks of guidelines on times: pattern (GL1 to GL22), monotony and split-robustness.

A call counts as slower than another by a rank test over several launches, or by a share of its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collwise.common.errors import UsageError, unknown_name

CORRECTIONS = {"bh": "Benjamini and Hochberg", "by": "Benjamini and Yekutieli"}
"""The corrections for many comparisons, by their names for --correction."""

# With more launches than this in total, the exact test takes long.
_MAX_EXACT = 60


@dataclass(frozen=True)
class Launches:
    """The time of a call: the median of each launch, in seconds, or a single exact time; empty after an `error`."""

    medians: tuple[float, ...]
    error: str = ""

    @property
    def seconds(self) -> float:
        """The median of the launches' medians; nan if the call failed."""
        from statistics import median

        return median(self.medians) if self.medians else math.nan

    def times(self, factor: float) -> Launches:
        """The time of this many such calls one after another."""
        return Launches(tuple(factor * median for median in self.medians), self.error)


@dataclass(frozen=True)
class Verdict:
    """A verdict: whether the first of two calls is slower, and the corrected p-value, which is nan without a test."""

    slower: bool
    p_value: float = math.nan


@dataclass(frozen=True)
class Share:
    """The criterion that the second of two calls is faster by more than a share of the first one's time.

    The times are medians of the launches' medians. The share 0.1 is the rule of Hunold & Carpen-Amarie 2018, section
    4.2.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise UsageError(f"share {self.share:g}; valid: at least 0, below 1")

    @property
    def description(self) -> str:
        """The criterion in words, for the head of a table: 'faster by more than 10 %'."""
        return f"faster by more than {self.share * 100:g} %"

    def judge(self, pairs: Sequence[tuple[Launches, Launches]]) -> list[Verdict]:
        """A verdict on each pair. `pairs` are all pairs of a check, so a criterion can correct for their number."""
        return [Verdict(right.seconds < (1 - self.share) * left.seconds) for left, right in pairs]


@dataclass(frozen=True)
class RankTest(Share):
    """Requires that the second of two calls is faster by `share`, and significantly so in a Mann-Whitney rank test.

    The test is one-sided and compares the launches' medians. The p-values of all comparisons are corrected together and
    compared with `alpha`.
    """

    share: float = 0.0
    alpha: float = 0.05
    correction: str = "bh"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"significance level {self.alpha:g}; valid: strictly between 0 and 1")
        if self.correction not in CORRECTIONS:
            raise unknown_name("correction", self.correction, CORRECTIONS)
        super().__post_init__()

    @property
    def description(self) -> str:
        """The criterion in words, such as 'faster by Mann and Whitney's rank test at 5 %, corrected after ...'."""
        also = f", and by more than {self.share * 100:g} %" if self.share else ""
        return (
            f"faster by Mann and Whitney's rank test at {self.alpha * 100:g} %, corrected after "
            f"{CORRECTIONS[self.correction]}{also}"
        )

    def judge(self, pairs: Sequence[tuple[Launches, Launches]]) -> list[Verdict]:
        """A verdict on each pair.

        If a call of a pair failed, the first call is judged not slower, and the correction leaves the pair out.
        """
        known = [index for index, (left, right) in enumerate(pairs) if left.medians and right.medians]
        values = [_p_value(pairs[index][0].medians, pairs[index][1].medians) for index in known]
        corrected = dict(zip(known, _corrected(values, self.correction), strict=True))
        return [
            Verdict(corrected.get(index, 1.0) <= self.alpha and by_share.slower, corrected.get(index, math.nan))
            for index, by_share in enumerate(super().judge(pairs))
        ]

    def min_launches(self, comparisons: int) -> int:
        """The smallest number of launches with which the test can find a single slower call among the comparisons."""
        launches = 2
        while comparisons > self.alpha * math.comb(2 * launches, launches):
            launches += 1
        return launches


def _p_value(left: Sequence[float], right: Sequence[float]) -> float:
    """The p-value of the one-sided test; exact if all values differ and are few enough."""
    from scipy import stats

    distinct = len({*left, *right}) == len(left) + len(right)
    method = "exact" if distinct and len(left) + len(right) <= _MAX_EXACT else "asymptotic"
    return float(stats.mannwhitneyu(left, right, alternative="greater", method=method).pvalue)


def _corrected(values: Sequence[float], correction: str) -> list[float]:
    """The p-values, corrected for their number."""
    from scipy import stats

    return [float(item) for item in stats.false_discovery_control(values, method=correction)] if values else []


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

    `guideline` is GL1 to GL22, 'monotony' or 'split-robustness'. `other_bytes` is the message size on the other side:
    for monotony a larger one, for split-robustness the size of each of the `calls`.
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
        """The time of the call divided by the time that it must not exceed."""
        return self.time.seconds / self.other.seconds


@dataclass(frozen=True)
class Checked:
    """The comparisons of a library, and the violations among them."""

    comparisons: tuple[Comparison, ...]

    @property
    def violations(self) -> tuple[Comparison, ...]:
        """The comparison with the largest ratio for each guideline and each call that violates it."""
        worst: dict[tuple[str, Call], Comparison] = {}
        for comparison in self.comparisons:
            key = (comparison.guideline, comparison.call)
            if comparison.violated and (key not in worst or comparison.ratio > worst[key].ratio):
                worst[key] = comparison
        return tuple(
            sorted(
                worst.values(),
                key=lambda comparison: (comparison.call, KINDS.index(comparison.kind), -comparison.ratio),
            )
        )

    def counts(self) -> dict[str, int]:
        """The number of violations of each kind."""
        found = self.violations
        return {kind: sum(comparison.kind == kind for comparison in found) for kind in KINDS}

    def checked(self) -> dict[str, int]:
        """The number of checked pairs of a guideline and a call, by kind."""
        asked = {(comparison.kind, comparison.guideline, comparison.call) for comparison in self.comparisons}
        return {kind: sum(entry[0] == kind for entry in asked) for kind in KINDS}


def check(
    own: Mapping[Call, Launches],
    mockups: Mapping[tuple[str, Call], Launches],
    criterion: Share,
    kinds: Sequence[str] = KINDS,
) -> Checked:
    """Checks the times `own` of a library's calls; `mockups` are the times of mock-ups, by guideline and call.

    Failed calls are left out. The criterion judges each kind as a separate family of comparisons.
    """
    candidates = {PATTERN: _pattern(own, mockups), MONOTONY: _monotony(own), SPLIT: _split(own)}
    found: list[Comparison] = []
    for kind in kinds:
        asked = [candidate for candidate in candidates[kind] if own[candidate[1]].medians and candidate[2].medians]
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
    return (item for item in own if (item.collective, item.procs) == (call.collective, call.procs))
