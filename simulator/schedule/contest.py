"""Contests among the cases for one choice. A case is dropped once it is surely slower than the fastest one."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from collwise.simulator.timing import Case

PlayWithin = Callable[[Case, float], float | None]
"""The seconds of a case; None if it takes longer than the given seconds or cannot be played."""

# This is added to the tolerance, for rounding.
_MARGIN = 1e-9


def contest_of(case: Case) -> Case:
    """The key of a case's contest: the case without its algorithm and parameters."""
    return replace(case, algorithm="", segment_bytes=0, parameter=0, limit_bytes=0)


def hold_contests(
    cases: Iterable[Case], play: PlayWithin, tolerance: float, known: Mapping[Case, Mapping[Case, float]]
) -> dict[Case, float]:
    """The seconds of cases that differ only in their choice and message size; cases of the same size compete.

    All cases within `tolerance` of the fastest of their size (0.01: 1 %) get a time, and so do some others. Algorithms
    that run on every P also compete among themselves, since only they are chosen between the timed process counts.
    Cases are played in the order of their times at the previous size, since fast cases limit the others. `known` has
    earlier seconds, by contest.
    """
    sizes = collections.defaultdict(list)
    for case in cases:
        sizes[case.message_bytes].append(case)
    found: dict[Case, float] = {}
    before: dict[Case, float] = {}
    for _, here in sorted(sizes.items()):
        now = dict(known.get(contest_of(here[0]), {}))
        best = min(now.values(), default=math.inf)
        best_on_every_p = min((now[case] for case in now if not case.entry.bound_to_procs), default=math.inf)
        for case in sorted(here, key=lambda case: before.get(replace(case, message_bytes=0), math.inf)):
            on_every_p = not case.entry.bound_to_procs
            seconds = play(case, (best_on_every_p if on_every_p else best) * (1 + tolerance + _MARGIN))
            if seconds is not None:
                now[case] = seconds
                best = min(best, seconds)
                best_on_every_p = min(best_on_every_p, seconds if on_every_p else math.inf)
        found |= now
        before = {replace(case, message_bytes=0): seconds for case, seconds in now.items()}
    return found
