"""Measured times of the store as decisions need them: one measurement of a collective, and gaps filled from elsewhere.

A gap is a candidate without a measured time at a point. Another source, simulated or predicted, fills it only where it
agrees with what is measured nearby (`fill_gaps`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, check_name
from collwise.simulator.store import Store, StoredConfiguration
from collwise.simulator.sweeps.method import MEDIAN_VARIANCE, combine, half_width
from collwise.simulator.timing import Case, Timing
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.select import IntervalTimes
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import AGREEMENT
from collwise.validation.times.grid import BUILTIN, CaseGrid, cuts_nothing
from collwise.validation.times.slowdown import SlowdownSummary, slowdown, summary_of

_NEAR_SIZES, _NEAR_PROCS = 4.0, 2.0
"""Nearby is what has at most this many times the size, or the process count, or this part of it."""
# Details of a configuration that differ between the executions of one measurement.
_EXECUTION = ("launch", "run")
_HOW_TO_MEASURE = "measure some (collwise measure, or --script for another machine) or read some (collwise import)"


@dataclass(frozen=True)
class Measurement:
    """The measured times of one collective on a platform, made by one method under one library.

    Their `seconds` are medians, of several launches the median of the launches' medians (`robust`).
    `keys` are its configurations, one for each launch; `others` is the number of other measurements of the collective
    there. `own` has the times of the MPI library's own collective, by process count and size.
    """

    platform: str
    collective: str
    maker: str
    processes_per_node: int
    timings: Mapping[Case, Timing]
    keys: tuple[str, ...]
    others: int = 0
    own: Mapping[tuple[int, int], Timing] = field(default_factory=dict)

    @property
    def measured(self) -> int:
        """The number of cases that were measured; those that send the same messages share one's time."""
        return len({timing.case for timing in self.timings.values()})

    @property
    def label(self) -> str:
        """The beginning of its first configuration's key, and the number of the others."""
        more = f" and {len(self.keys) - 1} more" if len(self.keys) > 1 else ""
        return self.keys[0][:12] + more

    @property
    def exact(self) -> bool:
        """Whether every time has a confidence interval."""
        return all(math.isfinite(one.half_width_seconds) for one in self.timings.values())


def measured_names(store: Store) -> set[str]:
    """The names of platforms that the store has measured times of."""
    return {one.configuration.platform for one in _measured(store)}


def _measured(store: Store) -> list[StoredConfiguration]:
    return [one for one in store.configurations() if one.configuration.source == "measured"]


def measured_platform(store: Store, name: str | None = None) -> str:
    """The name that a platform's measured times have in the store; without a name, that of the only one there.

    Names of platforms are in lower case, those of hosts and test beds not always. Raises UsageError where several
    platforms were measured and none is named.
    """
    known = measured_names(store)
    if name is None:
        if len(known) > 1:
            raise UsageError(f"times of {len(known)} platforms are measured; name one: {', '.join(sorted(known))}")
        return known.pop() if known else ""
    alike = [one for one in known if one.lower() == name.lower()]
    return alike[0] if name not in known and len(alike) == 1 else name


def measurement_of(
    store: Store,
    platform: str,
    collective: str,
    processes_per_node: int | None = None,
    keys: Sequence[str] = (),
) -> Measurement:
    """The measurement of a collective that the store has: of several, that with the most times, else the newest.

    Launches and repeated runs of one measurement are combined (`robust`). `keys`, beginnings of configurations' keys,
    say which measurement is wanted. Raises UsageError where nothing is measured.
    """
    measured = _measured(store)
    known = dict.fromkeys(one.configuration.platform for one in measured)
    if not known:
        raise UsageError(f"store {store.path} has no measured times; {_HOW_TO_MEASURE}")
    check_name("platform with measured times", platform, known, _HOW_TO_MEASURE)
    wanted = [
        one for one in measured if one.configuration.platform == platform and one.key.startswith(tuple(keys) or "")
    ]
    alike: dict[object, list[StoredConfiguration]] = {}
    for one in wanted:
        if collective in one.collectives:
            details = tuple(pair for pair in one.configuration.details if pair[0] not in _EXECUTION)
            alike.setdefault((one.configuration.maker, details), []).append(one)
    found = [_combined(store, group, collective) for group in alike.values()]
    found = [one for one in found if one.timings]
    per_node = {ppn for one in found for ppn in {case.processes_per_node for case in one.timings}}
    if processes_per_node is None and len(per_node) > 1:
        if not _one_mapping(found):
            counts = ", ".join(map(str, sorted(per_node)))
            raise UsageError(
                f"{collective} on {platform} was measured with {counts} processes per node; say for which: --ppn"
            )
        # Fewer processes than fit on a node are recorded with their number.
        per_node = {max(per_node)}
    if not found:
        raise _nothing(store, platform, collective, wanted)
    ppn = processes_per_node or per_node.pop()
    here = [replace(one, processes_per_node=ppn, timings=_mapped(one.timings.values(), ppn)) for one in found]
    if not any(one.timings for one in here):
        raise UsageError(f"{collective} on {platform} was not measured with {ppn} processes per node")
    newest = max(enumerate(here), key=lambda pair: (len(pair[1].timings), pair[0]))[1]
    return replace(newest, timings=_with_repeats(newest.timings), others=sum(bool(one.timings) for one in here) - 1)


def _with_repeats(timings: Mapping[Case, Timing]) -> dict[Case, Timing]:
    """The timings, also for cases that differ from these only in a segment size that cuts nothing.

    They have the segment sizes with which the same algorithm is measured elsewhere.
    """
    cuts: dict[str, set[int]] = {}
    for case in timings:
        cuts.setdefault(case.algorithm, set()).add(case.segment_bytes)
    found = dict(timings)
    for case, timing in timings.items():
        if cuts_nothing(case):
            others = (replace(case, segment_bytes=cut) for cut in cuts[case.algorithm])
            found = {other: timing for other in others if cuts_nothing(other)} | found
    return found


def _nothing(store: Store, platform: str, collective: str, wanted: Sequence[StoredConfiguration]) -> UsageError:
    experiments = Counter(
        row["experiment"]
        for one in wanted
        for row in store.rows(configuration=one.key, collective=collective)
        if not row["error"]
    )
    if experiments[BUILTIN]:
        return UsageError(
            f"the measured times of {collective} on {platform} are of MPI's own collective, whose algorithm is not "
            "known; measure ours: collwise measure"
        )
    others = sorted({name for one in wanted for name in one.collectives} - {"-"})
    has = f"; measured there: {', '.join(others)}" if others else ""
    return UsageError(f"nothing is measured of {collective} on {platform}{has}; {_HOW_TO_MEASURE}")


def _combined(store: Store, group: Sequence[StoredConfiguration], collective: str) -> Measurement:
    """The times of a measurement, each from those of its executions that have the case, if it ran there."""
    launches = [
        {
            case: timing
            for case, timing in store.timings_of(one.key).items()
            if (case.collective, case.root) == (collective, 0)
            and case.experiment in ("collective", BUILTIN)
            and timing.ok
        }
        for one in group
    ]
    confidence = float(dict(group[0].configuration.details).get("confidence", 0.95))
    cases = dict.fromkeys(case for one in launches for case in one)
    timings = {case: robust([one[case] for one in launches if case in one], confidence) for case in cases}
    made = group[0].configuration
    ours = {case: one for case, one in timings.items() if case.experiment != BUILTIN}
    own = {(case.procs, case.message_bytes): one for case, one in timings.items() if case.experiment == BUILTIN}
    return Measurement(made.platform, collective, made.maker, 1, ours, tuple(one.key for one in group), own=own)


def robust(launches: Sequence[Timing], confidence: float = 0.95) -> Timing:
    """The times of one case in several launches as one that stalls of the machine hardly move: the launches' median.

    Its `seconds` are the median of the launches' medians, with an interval from what differs between these medians, as
    if they were normally distributed. A single launch has the interval of its mean: what single stalls do to a mean
    they do not do to a median, so that the interval is rather too wide. Records without a median have their mean.
    """
    combined = combine(launches, confidence)
    medians = [one.median_seconds for one in launches]
    if not all(map(math.isfinite, medians)):
        return combined
    width = combined.half_width_seconds
    if len(launches) > 1:
        width = math.sqrt(MEDIAN_VARIANCE) * half_width(medians, confidence)
    return replace(combined, seconds=combined.median_seconds, half_width_seconds=width)


def _one_mapping(found: Iterable[Measurement]) -> bool:
    """Whether all cases fill nodes with the same number of processes, of which small ones have fewer."""
    cases = [case for one in found for case in one.timings]
    most = max(case.processes_per_node for case in cases)
    return all(case.processes_per_node == min(most, case.procs) for case in cases)


def _mapped(timings: Iterable[Timing], processes_per_node: int) -> dict[Case, Timing]:
    """The timings with this many processes per node, or as many as there are, by the case with that number."""
    return {
        replace(one.case, processes_per_node=processes_per_node): one
        for one in timings
        if one.case.processes_per_node in (processes_per_node, min(processes_per_node, one.case.procs))
    }


def measured_grid(
    measurement: Measurement,
    algorithms: Sequence[str],
    procs: Sequence[int] | None = None,
    message_bytes: Sequence[int] | None = None,
    segments: Sequence[int] | None = None,
) -> CaseGrid:
    """The grid of what is measured of these algorithms, or of points and segment sizes asked for.

    Raises UsageError where none of the algorithms is measured with one of the segment sizes.
    """
    name = measurement.collective
    pipelined = {one.name for one in Catalogue.load().algorithms(name) if one.pipelined}
    cases = [
        case
        for case in measurement.timings
        if case.algorithm in algorithms
        and (segments is None or case.algorithm not in pipelined or case.segment_bytes in segments)
        and not case.fanout
        and not case.limit_bytes
    ]
    if not cases:
        have = dict.fromkeys(case.algorithm for case in measurement.timings)
        raise UsageError(
            f"no {name} algorithm that can be chosen is measured on {measurement.platform}; measured: {', '.join(have)}"
        )
    cuts = sorted({case.segment_bytes for case in cases if case.algorithm in pipelined}) or [0]
    return CaseGrid(
        name,
        tuple(procs or sorted({case.procs for case in cases})),
        tuple(message_bytes or sorted({case.message_bytes for case in cases})),
        measurement.processes_per_node,
        tuple(cuts),
        tuple(dict.fromkeys(one for one in algorithms if one in {case.algorithm for case in cases})),
    )


def measured_times(grid: CaseGrid, measurement: Measurement) -> IntervalTimes:
    """The measured times of the grid's candidates; where the interval is not known its half-width counts as 0."""
    shape = (len(grid.candidates), len(grid.procs), len(grid.message_bytes))
    seconds, widths = np.full(shape, np.nan), np.zeros(shape)
    for a, choice in enumerate(grid.candidates.values()):
        for i, procs in enumerate(grid.procs):
            for j, size in enumerate(grid.message_bytes):
                if timing := measurement.timings.get(grid.case(choice, procs, size)):
                    seconds[a, i, j] = timing.seconds
                    widths[a, i, j] = timing.half_width_seconds if math.isfinite(timing.half_width_seconds) else 0.0
    return IntervalTimes(seconds, widths, np.zeros(shape, dtype=bool))


def with_own_times(table: DecisionTable, measurement: Measurement) -> DecisionTable:
    """The table with the measured times of the MPI library's own collective at its points, if there are any."""
    known = table.evidence
    if known is None or not measurement.own:
        return table

    def values(of: Callable[[Timing], float]) -> tuple[tuple[float, ...], ...]:
        found = [[measurement.own.get((procs, size)) for size in known.message_bytes] for procs in known.procs]
        return tuple(tuple(math.nan if one is None else of(one) for one in row) for row in found)

    own = (values(lambda one: one.seconds), values(lambda one: one.half_width_seconds))
    if all(math.isnan(seconds) for row in own[0] for seconds in row):
        return table
    return replace(table, evidence=replace(known, own=own))


def gap_cases(grid: CaseGrid, measurement: Measurement) -> list[Case]:
    """The cases of the grid without a measured time, and the measured cases nearby by which a source is judged."""
    nearby = _nearby_in(measurement)
    gaps = [case for case in grid.cases() if case not in measurement.timings]
    near = [near for gap in gaps for near in nearby(gap)]
    return list(dict.fromkeys([*gaps, *near]))


def fill_gaps(
    grid: CaseGrid,
    measurement: Measurement,
    times: IntervalTimes,
    source: Mapping[Case, float],
    filled_by: str,
    agreement: float = AGREEMENT,
) -> IntervalTimes:
    """The times with gaps filled where the source agrees with what is measured nearby.

    Nearby are the measured points of the same choice that are next to the gap: at the same P the next smaller and next
    larger size, up to four times away, and at the same size the next P on both sides, up to twice away. The source
    fills the gap if there is such a point and its time differs from the measured one by at most the share `agreement`
    at each of them. The largest of these differences is the half-width of the filled time's interval.
    """
    seconds, widths, filled = times.seconds.copy(), times.half_widths.copy(), times.filled.copy()
    index = {choice: a for a, choice in enumerate(grid.candidates.values())}
    nearby = _nearby_in(measurement)
    for gap in grid.cases():
        if gap in measurement.timings or gap not in source:
            continue
        near = [case for case in nearby(gap) if case in source]
        differences = [abs(source[case] / measurement.timings[case].seconds - 1) for case in near]
        if not near or max(differences) > agreement:
            continue
        place = (
            index[Choice(gap.algorithm, gap.segment_bytes)],
            grid.procs.index(gap.procs),
            grid.message_bytes.index(gap.message_bytes),
        )
        seconds[place], filled[place] = source[gap], True
        widths[place] = max(differences) * source[gap]
    return IntervalTimes(seconds, widths, filled, filled_by)


def _nearby_in(measurement: Measurement) -> Callable[[Case], list[Case]]:
    """A function that lists the measured points of a gap's choice that are next to it."""
    by_choice: dict[Case, list[Case]] = {}
    for case, timing in measurement.timings.items():
        if timing.seconds > 0:
            by_choice.setdefault(replace(case, procs=1, message_bytes=0), []).append(case)

    def nearby(gap: Case) -> list[Case]:
        same = by_choice.get(replace(gap, procs=1, message_bytes=0), [])
        along_sizes = [(case.message_bytes, case) for case in same if case.procs == gap.procs]
        along_procs = [(case.procs, case) for case in same if case.message_bytes == gap.message_bytes]
        return [*_beside(gap.message_bytes, along_sizes, _NEAR_SIZES), *_beside(gap.procs, along_procs, _NEAR_PROCS)]

    return nearby


def _beside(here: int, there: Sequence[tuple[int, Case]], most: float) -> list[Case]:
    """The next one below and the next one above, of those that are at most `most` times away."""
    below = max((one for one in there if one[0] < here and one[0] * most >= here), default=None)
    above = min((one for one in there if one[0] > here and one[0] <= here * most), default=None)
    return [one[1] for one in (below, above) if one is not None]


def loss_of(table: DecisionTable) -> SlowdownSummary:
    """The slowdowns of a table's choices against the best one, by the times that it was made from, at their points."""
    points = table.timed_points()
    costs = [slowdown(times[chosen], min(times.values())) for chosen, times in points if chosen in times]
    return summary_of(costs, 0.0)


def undecided_points(table: DecisionTable) -> tuple[int, int]:
    """The number of points whose intervals do not tell the fastest choice from another one, and that of all points.

    There the interval of another one overlaps that of the fastest. 0 of 0 for a table without intervals.
    """
    evidence = table.evidence
    if evidence is None or not evidence.half_widths:
        return 0, 0
    seconds, widths = np.array(evidence.seconds), np.array(evidence.half_widths)
    filled = np.where(np.isnan(seconds), np.inf, seconds)
    fastest = np.argmin(filled, axis=0)[None]
    reach = np.take_along_axis(filled + np.nan_to_num(widths), fastest, axis=0)
    others = seconds != np.take_along_axis(seconds, fastest, axis=0)  # equal ones are the same case
    overlapping = others & (filled - np.nan_to_num(widths) < reach)
    known = np.isfinite(filled).any(axis=0)
    return int((overlapping.any(axis=0) & known).sum()), int(known.sum())
