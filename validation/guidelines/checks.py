"""The performance guidelines of Hunold & Carpen-Amarie 2018, section 3.1, and checks of them on times.

A pattern guideline (GL1 to GL22, guidelines.toml) says that a collective is not slower than a mock-up, which runs other
collectives one after another. The mock-ups are algorithms of the catalogue, each under the collective that it replaces.
Checks are also made of monotony and of split-robustness.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError, check_name

REDUCE_LOCAL = "reduce_local"
"""The local part of GL20, which is not a collective."""


@dataclass(frozen=True)
class MockUpPart:
    """A collective that a mock-up runs. `message_bytes` computes its message size from P and the call's size."""

    collective: str
    message_bytes: Callable[[int, int], int]

    def call(self, replaced: Call) -> Call:
        """The call that the mock-up of a call makes."""
        return Call(self.collective, replaced.procs, self.message_bytes(replaced.procs, replaced.message_bytes))


@dataclass(frozen=True)
class Guideline:
    """A guideline: a collective is not slower than its mock-up, whose parts run one after another."""

    name: str
    collective: str
    parts: tuple[MockUpPart, ...]

    @property
    def label(self) -> str:
        """The parts of the mock-up as text, such as 'gather + bcast'."""
        return " + ".join(part.collective for part in self.parts)

    @property
    def profile_name(self) -> str:
        """The mock-up's name in PGMPITuneLib: 'allgather_as_gather_bcast'."""
        words = [part.collective.replace("_", "") for part in self.parts]
        return "_".join([self.collective.replace("_", ""), "as", *words])

    @property
    def mockup(self) -> Algorithm:
        """The mock-up, which is an algorithm of the catalogue."""
        entries = Catalogue.load().algorithms(self.collective)
        return next(entry for entry in entries if entry.guideline == self.name)


_SIZES: Mapping[str, Callable[[int, int], int]] = {
    "same": lambda procs, message_bytes: message_bytes,
    "all": lambda procs, message_bytes: procs * message_bytes,
    "share": lambda procs, message_bytes: -(-message_bytes // procs),
}
_TABLE = tomllib.loads(Path(__file__).with_name("guidelines.toml").read_text(encoding="utf-8"))
_PARTS = {name: [MockUpPart(part, _SIZES[size]) for part, size in row["parts"].items()] for name, row in _TABLE.items()}
GUIDELINES = {name: Guideline(name, row["collective"], tuple(_PARTS[name])) for name, row in _TABLE.items()}
"""All guidelines by name."""
COLLECTIVES = tuple(dict.fromkeys(guideline.collective for guideline in GUIDELINES.values()))
"""The collectives that have guidelines."""


def guidelines_of(collective: str) -> tuple[Guideline, ...]:
    """The guidelines with this collective on their left side."""
    return tuple(guideline for guideline in GUIDELINES.values() if guideline.collective == collective)


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
        return median(self.medians) if self.medians else math.nan

    def times(self, factor: float) -> Launches:
        """The time of this many such calls one after another."""
        return Launches(tuple(factor * seconds for seconds in self.medians), self.error)


class Verdict(NamedTuple):
    """A verdict: whether the first of two calls is slower, and the corrected p-value, which is nan without a test."""

    slower: bool
    p_value: float = math.nan


@dataclass(frozen=True)
class Share:
    """Requires that the second of two calls is faster by a share: 0.1 in Hunold & Carpen-Amarie 2018, section 4.2.

    The times that it compares are the medians of the launches' medians.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise UsageError(f"share {self.share:g}; valid: at least 0, below 1")

    @property
    def description(self) -> str:
        """The criterion in words: 'faster by more than 10 %'."""
        return f"faster by more than {self.share * 100:g} %"

    def judge(self, pairs: Sequence[tuple[Launches, Launches]]) -> list[Verdict]:
        """A verdict on each pair. `pairs` must be all pairs of a check, since criteria may correct for their number."""
        return [Verdict(right.seconds < (1 - self.share) * left.seconds) for left, right in pairs]


@dataclass(frozen=True)
class RankTest(Share):
    """Requires that the second of two calls is faster by `share`, and significantly so in a Mann-Whitney rank test.

    The test is one-sided and compares the launches' medians, at the level `alpha` after the correction.
    """

    share: float = 0.0
    alpha: float = 0.05
    correction: str = "bh"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"significance level {self.alpha:g}; valid: strictly between 0 and 1")
        check_name("correction", self.correction, CORRECTIONS)
        super().__post_init__()

    @property
    def description(self) -> str:
        """The criterion in words, such as 'faster by Mann and Whitney's rank test at 5 %, corrected after ...'."""
        test = f"Mann and Whitney's rank test at {self.alpha * 100:g} %"
        also = f", and by more than {self.share * 100:g} %" if self.share else ""
        return f"faster by {test}, corrected after {CORRECTIONS[self.correction]}{also}"

    def judge(self, pairs: Sequence[tuple[Launches, Launches]]) -> list[Verdict]:
        """A verdict on each pair; a pair with a failed call is 'not slower', and the correction leaves it out."""
        from scipy.stats import false_discovery_control

        known = [index for index, (left, right) in enumerate(pairs) if left.medians and right.medians]
        values = [_p_value(pairs[index][0].medians, pairs[index][1].medians) for index in known]
        adjusted = false_discovery_control(values, method=self.correction).tolist() if values else []
        corrected = dict(zip(known, adjusted, strict=True))
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
    from scipy.stats import mannwhitneyu

    distinct = len({*left, *right}) == len(left) + len(right)
    method = "exact" if distinct and len(left) + len(right) <= _MAX_EXACT else "asymptotic"
    return float(mannwhitneyu(left, right, alternative="greater", method=method).pvalue)


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

    `guideline` is GL1 to GL22, 'monotony' or 'split-robustness'. `other_bytes` is the message size on the other side;
    for split-robustness, it is the size of each of the `calls`. The guideline is violated if the call is slower than it
    may be.
    """

    guideline: str
    call: Call
    time: Launches
    other: Launches
    other_bytes: int
    calls: int
    violated: bool
    p_value: float

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return self.guideline if self.guideline in KINDS else PATTERN

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
        for each in self.comparisons:
            key = (each.guideline, each.call)
            if each.violated and (key not in worst or each.ratio > worst[key].ratio):
                worst[key] = each
        return tuple(sorted(worst.values(), key=lambda each: (each.call, KINDS.index(each.kind), -each.ratio)))

    def counts(self) -> dict[str, int]:
        """The number of violations of each kind."""
        found = Counter(violation.kind for violation in self.violations)
        return {kind: found[kind] for kind in KINDS}

    def checked(self) -> dict[str, int]:
        """The number of checked pairs of a guideline and a call, by kind."""
        found = Counter(kind for kind, *_ in {(each.kind, each.guideline, each.call) for each in self.comparisons})
        return {kind: found[kind] for kind in KINDS}


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
            Comparison(guideline, call, own[call], other, size, calls, *verdict)
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
