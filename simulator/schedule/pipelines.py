"""Extrapolates the times of long pipelines, since a segmented schedule soon repeats and its times then grow evenly.

Three short pipelines are played. They have the same last segment as the whole pipeline, and each is longer than the one
before by a number of segments, the period. The comparisons of times by each process, connection and port are counted
from the end; those with the same number are matched between the three plays. Two conditions are checked at the end and
in the two periods before:

- Each of the times grows by as much from the second play to the third as from the first to the second.
- Each comparison has the same result in all plays, and in the whole pipeline if the times continue to grow evenly.

If both hold, each further period adds the same time again, since a segment depends only on segments of the last two
periods. The times of the whole pipeline then follow exactly, except for rounding. If not, a longer period is tried, and
in the end the whole pipeline is played. Sizes that depend on the number of segments, such as the halves that
split-binary exchanges at its end, are those of the whole pipeline in all three plays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from collwise.common.errors import UsageError
from collwise.simulator.schedule.library import Played, Schedule
from collwise.simulator.schedule.shared import NodeOf, Sizes, TablesOf, recorded, segmented_bytes
from collwise.simulator.schedule.tables import Doubles
from collwise.simulator.timing import Case

KnownPlay = tuple[Schedule, Sizes, float, Played | None]
"""A played schedule, its sizes, its limit in seconds, and its times (None if it exceeded the limit)."""

PERIODS = (8, 48, 240, 960, 3840)
"""The periods that are tried, in segments: multiples of many small numbers, and of 8, so that doubles stay whole."""

PERIODS_BEFORE = 3  # the least number of periods in the shortest of the three plays
# The smallest number of periods for which a pipeline is extrapolated. The three short pipelines together have at most
# 15 periods, and even with the comparisons they take at most a third of the time of the whole pipeline.
_LONGER = 90
# The largest number of messages in the longest of the three plays, whose comparisons are all held in memory.
_MAX_MESSAGES = 300_000
# The number of bits below a comparison's kind (`compared` in simulator/schedule/play.h), and the kind of events.
_KIND_BITS, _EVENT = 28, 9
# The recorded words per message, without strands and with strands, and the fewest words recorded for a process.
_WORDS, _STRAND_WORDS, _MIN_WORDS = 2, 6, 24
# The share of a case that `begins_longer` records first, and the largest share that it records.
_FIRST_SHARE, _MAX_SHARE = 1 / 64, 0.4
# The factor by which a recording exceeds the suggested length, and the largest growth to the next recording. The excess
# is needed because a pipeline begins slowly.
_FURTHER, _FACTOR = 1.2, 4.0
_EXACT = 1e-12  # rounding differences stay below this, relative to the whole time


def play_case(case: Case, tables_of: TablesOf) -> Played:
    """The times of a case on a network, as `play_case_within` finds them for processes placed by blocks."""
    played = play_case_within(case, tables_of)
    assert played is not None
    return played


def play_case_within(
    case: Case,
    tables_of: TablesOf,
    max_seconds: float = math.inf,
    known: list[KnownPlay] | None = None,
    node_of: NodeOf = None,
) -> Played | None:
    """The times of a case on the network that `tables_of` describes. Long pipelines are extrapolated.

    Returns None for a case that takes longer than `max_seconds`, if that is noticed before its end. A schedule that
    equals one in `known` is not played again; other schedules are added to `known`, whose plays must all be on the same
    network. By default processes are placed by blocks.
    """
    for period_bytes in (period * bytes_a_step(case) for period in PERIODS):
        if 0 < _LONGER * period_bytes <= case.message_bytes:
            extrapolated = _extrapolated(case, period_bytes, tables_of, node_of)
            if extrapolated is not None:
                return extrapolated
    schedule, sizes = recorded(case, node_of)
    for other, other_sizes, most, played in known or ():
        answers = played is not None or max_seconds <= most
        if answers and np.array_equal(sizes, other_sizes) and (schedule is other or schedule.equals(other)):
            return played
    played = schedule.play_within(tables_of(sizes), max_seconds)
    if known is not None:
        known.append((schedule, sizes, max_seconds, played))
    return played


def min_seconds(case: Case, tables_of: TablesOf, node_of: NodeOf = None) -> float:
    """A lower bound of a case's time, found by recording two processes alone; 0 if they cannot be recorded alone."""
    try:
        schedule = Schedule(case, node_of, root_alone=True)
    except UsageError:
        return 0.0
    return schedule.own_seconds(tables_of(schedule.sizes))


def begins_longer(
    case: Case,
    tables_of: TablesOf,
    max_seconds: float,
    messages: float,
    node_of: NodeOf = None,
    paces: dict[Case, float] | None = None,
) -> bool:
    """True if the beginning of a case of about `messages` messages shows that it takes longer than `max_seconds`.

    First a small part of the case is recorded; the time of playing it then suggests how much more to record. `paces`
    has the seconds per operation found for other message sizes on the same network; its keys are cases with size 0. It
    suggests how much to record first, and the pace of this case is added to it.
    """
    words = (_STRAND_WORDS if case.entry.does_several_at_once else _WORDS) * messages / case.procs
    kind, paces = replace(case, message_bytes=0), {} if paces is None else paces
    suggested = _FURTHER * max_seconds / paces[kind] / words if kind in paces else 0.0
    share = max(_FIRST_SHARE, _MIN_WORDS / words, min(suggested, _MAX_SHARE))
    while share <= _MAX_SHARE:
        try:
            begin = Schedule(case, node_of, max_words=math.ceil(share * words))
        except UsageError:
            return False
        reached = begin.begins_longer(tables_of(begin.sizes), max_seconds)
        if reached > max_seconds:
            return True
        if reached > 0:
            paces[kind] = reached / (share * words)
        share *= min(_FURTHER * max_seconds / reached, _FACTOR) if reached > 0 else _FACTOR
    return False


def bytes_a_step(case: Case) -> int:
    """The bytes that one more segment, or one more segment per block, adds to a message; 0 if unsegmented."""
    if case.segment_bytes == 0 or case.limit_bytes > 0 or not case.algorithm or not case.entry.pipelined:
        return 0
    if case.collective != "bcast" and case.message_bytes % 8 == 0:
        case = replace(case, segment_bytes=max(case.segment_bytes // 8, 1) * 8)  # doubles are reduced
    return segmented_bytes(case)


def _extrapolated(case: Case, period_bytes: int, tables_of: TablesOf, node_of: NodeOf) -> Played | None:
    """The times of a long pipeline, or None unless three short pipelines show that the times grow evenly."""
    periods = case.message_bytes // period_bytes - PERIODS_BEFORE
    shortest = case.message_bytes - periods * period_bytes
    schedules = [Schedule(replace(case, message_bytes=shortest + i * period_bytes), node_of) for i in range(3)]
    sizes = sizes_after(schedules, range(3), periods)
    if sizes is None or schedules[-1].messages > _MAX_MESSAGES:
        return None
    tables = tables_of(sizes)
    if tables.buffers is not None or tables.switch_of is not None:
        return None  # packets and their losses are not logged, nor are links between switches
    first, second = (_Comparisons(*schedule.play_compared(tables)) for schedule in schedules[:2])
    begin = first.begin_of_end(second)
    if begin is None:
        return None
    third = _Comparisons(*schedules[2].play_compared(tables))
    further = periods - 2
    last = third.ends + further * (third.ends - second.ends)
    if not _repeats((first, second, third), begin, further, _EXACT * float(last.max())):
        return None
    return Played(float(last.max()), float(last[case.root]), last)


def sizes_after(schedules: Sequence[Schedule], lengths: Sequence[int], periods: int) -> Sizes | None:
    """The sizes of a schedule of `periods` periods; None unless sizes and message counts are linear in `lengths`."""
    found = [schedule.sizes.astype(np.int64) for schedule in schedules]
    if len({len(item) for item in found}) > 1:
        return None
    first, second, third = (np.append(item, of.messages) for item, of in zip(found, schedules, strict=True))
    early, late = lengths[1] - lengths[0], lengths[2] - lengths[1]
    if ((third - second) * early != (second - first) * late).any() or second[-1] == first[-1]:
        return None
    whole = (first + (periods - lengths[0]) * (second - first) // early)[:-1]
    return whole.astype(np.uint64) if (whole >= 0).all() else None


class _Comparisons:
    """The times at which processes end in a play, and all comparisons, by entity (a process, connection or port)."""

    def __init__(self, played: Played, comparisons: npt.NDArray[np.void]) -> None:
        self.ends, self._found, self.entity = played.ends, comparisons, comparisons["entity"]

    def counts(self, entities: int) -> npt.NDArray[np.int64]:
        """The number of comparisons of each entity."""
        return np.bincount(self.entity, minlength=entities)

    def begin_of_end(self, longer: _Comparisons) -> npt.NDArray[np.int64] | None:
        """The position of each entity's first comparison in the two periods before its final phase.

        The final phase of an entity begins at the first comparison that differs from that in `longer`, a pipeline that
        is a period longer. Returns None if the play is too short.
        """
        entities = 1 + int(max(self.entity.max(initial=0), longer.entity.max(initial=0)))
        own, others = self.counts(entities), longer.counts(entities)
        if (others < own).any():
            return None
        at = np.arange(len(self.entity)) - (np.cumsum(own) - own)[self.entity]
        there = at + (np.cumsum(others) - others)[self.entity]
        differ = [self._found[name] != longer._found[name][there] for name in ("kind", "one", "other")]
        other = np.flatnonzero(np.logical_or.reduce(differ))
        noticed = own.copy()
        np.minimum.at(noticed, self.entity[other], at[other])
        begin = np.where(others > own, noticed - 2 * (others - own), 0)
        return begin if (begin >= 0).all() else None

    def end_of(self, begin: npt.NDArray[np.int64], tolerance: float) -> npt.NDArray[np.void]:
        """The comparisons of each entity from `begin` on; events at the same time are ordered by kind."""
        counts = self.counts(len(begin))
        at = np.arange(len(self.entity)) - (np.cumsum(counts) - counts)[self.entity]
        found = self._found[at >= begin[self.entity]]
        follows = np.zeros(len(found), dtype=bool)
        is_event = found["kind"] >> _KIND_BITS == _EVENT
        same_entity = found["entity"][1:] == found["entity"][:-1]
        follows[1:] = is_event[1:] & is_event[:-1] & same_entity & (np.diff(found["other"]) <= tolerance)
        return found[np.lexsort((found["kind"], np.cumsum(~follows)))] if follows.any() else found


def _repeats(
    plays: tuple[_Comparisons, _Comparisons, _Comparisons],
    begin: npt.NDArray[np.int64],
    further: int,
    tolerance: float,
) -> bool:
    """True if the ends and all comparisons shortly before them grow evenly, and no comparison changes its result."""
    if _differ([play.ends for play in plays], tolerance / further).any():
        return False
    entities = len(begin)
    if int(plays[2].entity.max(initial=0)) >= entities:
        return False
    counts = [play.counts(entities) for play in plays]
    added = counts[1] - counts[0]
    if (counts[2] - counts[1] != added).any():
        return False
    ends = [play.end_of(begin + i * added, tolerance) for i, play in enumerate(plays)]
    if any((end["kind"] != ends[0]["kind"]).any() for end in ends[1:]):
        return False
    if any(_differ([end[side] for end in ends], tolerance / further).any() for side in ("one", "other")):
        return False
    leads = [end["one"] - end["other"] for end in ends]
    leads.append(leads[2] + further * (leads[2] - leads[1]))
    never_later = np.all([lead <= tolerance for lead in leads], axis=0)
    never_earlier = np.all([lead >= -tolerance for lead in leads], axis=0)
    return bool((never_later | never_earlier).all())


def _differ(of_plays: list[Doubles], tolerance: float) -> npt.NDArray[np.bool_]:
    """True where a value grows differently from the second play to the third than from the first to the second."""
    first, second, third = of_plays
    return np.abs((third - second) - (second - first)) > tolerance
