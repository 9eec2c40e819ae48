"""Measured times from the store: one measurement of a collective, in one or more launches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, check_name
from collwise.common.grouping import grouped
from collwise.simulator.store import Store, StoredConfiguration
from collwise.simulator.sweeps.method import MEDIAN_VARIANCE, combine, half_width
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import BUILTIN, Grid, choice_of, cuts_nothing
from collwise.validation.times.times import BYTES, PROCS, Times

# Details of a configuration that differ between the executions of one measurement.
_EXECUTION = ("launch", "run")
_HOW_TO_MEASURE = "measure some (collwise measure, or --script elsewhere) or read some (collwise times import)"


def _of_source(store: Store, source: str) -> list[StoredConfiguration]:
    return [configuration for configuration in store.configurations() if configuration.configuration.source == source]


def _measurement(stored: StoredConfiguration) -> tuple[object, ...]:
    """The maker and the details that all executions of one measurement have."""
    made = stored.configuration
    return made.maker, *(pair for pair in made.details if pair[0] not in _EXECUTION)


def measured_platform(store: Store, name: str) -> str:
    """The name under which the store has a platform's measured times; `name` may differ in upper and lower case."""
    known = {configuration.configuration.platform for configuration in _of_source(store, "measured")}
    alike = [text for text in known if text.lower() == name.lower()]
    return alike[0] if name not in known and len(alike) == 1 else name


def stored_times(
    store: Store,
    source: str,
    platform: str,
    collective: str,
    processes_per_node: int | None = None,
    keys: Sequence[str] = (),
) -> Times:
    """The stored times of a collective from one source, measured or simulated.

    Of several measurements, the one with the most times is taken, and among equals the newest. Launches and repeated
    runs of one measurement are combined (`robust`). `keys` are prefixes of the keys of the configurations that may be
    taken. LIBRARY_DECIDES has the times of the MPI library's own collective.

    The result has three facts: `configurations`, the keys of the measurement's configurations; `measured`, the number
    of measured cases; and `others`, the number of other measurements.
    """
    stored = _of_source(store, source)
    known = dict.fromkeys(configuration.configuration.platform for configuration in stored)
    if not known:
        raise UsageError(f"store {store.path} has no {source} times; {_HOW_TO_MEASURE}")
    check_name(f"platform with {source} times", platform, known, _HOW_TO_MEASURE)
    wanted = [
        configuration
        for configuration in stored
        if configuration.configuration.platform == platform and configuration.key.startswith(tuple(keys) or "")
    ]
    alike = grouped((each for each in wanted if collective in each.collectives), _measurement)
    combined = [(group, _combined(store, group, collective)) for group in alike.values()]
    found = [(group, timings) for group, timings in combined if any(map(_is_ours, timings))]
    per_node = {case.processes_per_node for _, timings in found for case in timings if _is_ours(case)}
    if processes_per_node is None and len(per_node) > 1:
        if not _one_mapping(timings for _, timings in found):
            counts = ", ".join(map(str, sorted(per_node)))
            raise UsageError(
                f"{collective} on {platform} was measured with {counts} processes per node; name one with ppn"
            )
        # If P is smaller than the number of processes that fit on a node, a case is recorded with P per node.
        per_node = {max(per_node)}
    if not found:
        raise _nothing(store, platform, collective, wanted)
    ppn = processes_per_node or per_node.pop()
    here = [(group, _mapped(timings.values(), ppn)) for group, timings in found]
    here = [(group, timings) for group, timings in here if any(map(_is_ours, timings))]
    if not here:
        raise UsageError(f"{collective} on {platform} was not measured with {ppn} processes per node")
    _, (group, timings) = max(enumerate(here), key=lambda pair: (sum(map(_is_ours, pair[1][1])), pair[0]))
    made = group[0].configuration
    facts = {"configurations": [configuration.key for configuration in group], "others": len(here) - 1}
    return _times_of(timings, source, made.platform, made.maker, facts)


def times_of_run(configuration: Configuration, timings: Iterable[Timing]) -> list[Times]:
    """The times of one configuration's collectives, by processes per node; facts are the configuration's details.

    Marked cells count as failed.
    """
    alike: dict[tuple[str, int], dict[Case, Timing]] = {}
    for timing in timings:
        case = timing.case
        if case.experiment in ("collective", BUILTIN):
            alike.setdefault((case.collective, case.processes_per_node), {})[case] = timing
    source, platform, maker = configuration.source, configuration.platform, configuration.maker
    return [_times_of(found, source, platform, maker, dict(configuration.details)) for found in alike.values()]


def times_of_launches(launches: Sequence[Sequence[Timing]], platform: str, maker: str, confidence: float) -> Times:
    """The times of a collective's cases from timings in each launch, with the `mean_seconds` over all launches."""
    ppn = max(each[0].case.processes_per_node for each in launches)

    def times(combined: Callable[[Sequence[Timing], float], Timing]) -> Times:
        failed = [next((timing for timing in each if not timing.ok), None) for each in launches]
        found = [bad or combined(each, confidence) for bad, each in zip(failed, launches, strict=True)]
        return _times_of(_mapped(found, ppn), "measured", platform, maker, {})

    medians = times(robust)
    return replace(medians, data=medians.data.assign(mean_seconds=times(combine).seconds))


def _times_of(
    timings: Mapping[Case, Timing], source: str, platform: str, maker: str, facts: Mapping[str, Any]
) -> Times:
    """The times of one collective's cases; cases that differ only in segments that cut nothing share a time."""
    first = next(iter(timings))
    ours = {case: timing for case, timing in timings.items() if _is_ours(case)}
    every = {**_with_repeats(ours), **timings}
    choices = _in_order(first.collective, dict.fromkeys(choice_of(case) for case in every if _is_ours(case)))
    procs, sizes = (tuple(sorted({getattr(case, name) for case in every})) for name in (PROCS, BYTES))
    own = tuple((case.procs, case.message_bytes, LIBRARY_DECIDES) for case in every if not _is_ours(case))
    grid = Grid(first.collective, choices, procs, sizes, first.processes_per_node, besides=own)
    number = len({timing.case for timing in ours.values()})
    return Times.of_timings(grid, every, platform, source, maker, facts={**facts, "measured": number})


def _is_ours(case: Case) -> bool:
    return case.experiment != BUILTIN


def _in_order(collective: str, choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Choices in the order of `candidates`: in the catalogue's order for each segment size, the smallest size first."""
    entries = Catalogue.load().collective(collective).algorithms
    names = [*entries]
    cut = {
        choice: choice.segment_bytes
        for choice in choices
        if choice.algorithm in entries and entries[choice.algorithm].pipelined
    }
    least = min(cut.values(), default=0)

    def place(choice: Choice) -> tuple[int, ...]:
        known = names.index(choice.algorithm) if choice.algorithm in entries else len(names)
        return (cut.get(choice, least), known, choice.segment_bytes, choice.parameter, choice.limit_bytes)

    return tuple(sorted(choices, key=place))


def _with_repeats(timings: Mapping[Case, Timing]) -> dict[Case, Timing]:
    """The timings, with copies for the algorithm's segment sizes at other points, if these sizes cut nothing either."""
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
        for configuration in wanted
        for row in store.rows(configuration=configuration.key, collective=collective)
        if not row["error"]
    )
    if experiments[BUILTIN]:
        return UsageError(
            f"the measured times of {collective} on {platform} are of MPI's own collective, whose algorithm is not "
            "known; measure ours with 'collwise measure', or import the times of an untuned library by 'collwise times "
            "import --algorithm LIBRARY', such as openmpi-4.1"
        )
    others = sorted({name for configuration in wanted for name in configuration.collectives} - {"-"})
    has = f"; measured there: {', '.join(others)}" if others else ""
    return UsageError(f"nothing is measured of {collective} on {platform}{has}; {_HOW_TO_MEASURE}")


def _combined(store: Store, group: Sequence[StoredConfiguration], collective: str) -> dict[Case, Timing]:
    """The times of a measurement. Each time combines the executions in which the case ran."""
    launches = [
        {
            case: timing
            for case, timing in store.timings_of(configuration.key).items()
            if (case.collective, case.root) == (collective, 0)
            and case.experiment in ("collective", BUILTIN)
            and timing.ok
        }
        for configuration in group
    ]
    confidence = float(dict(group[0].configuration.details).get("confidence", 0.95))
    cases = dict.fromkeys(case for launch in launches for case in launch)
    return {case: robust([launch[case] for launch in launches if case in launch], confidence) for case in cases}


def robust(launches: Sequence[Timing], confidence: float = 0.95) -> Timing:
    """One time of a case from several launches, robust against stalls of the machine.

    The `seconds` are the median of the launches' medians, with an interval from the spread of these medians, as if they
    were normally distributed. A single launch gets the interval of its mean. If a launch has no median, means are taken
    instead.
    """
    combined = combine(launches, confidence)
    medians = [launch.median_seconds for launch in launches]
    if not all(map(math.isfinite, medians)):
        return combined
    width = combined.half_width_seconds
    if len(launches) > 1:
        width = math.sqrt(MEDIAN_VARIANCE) * half_width(medians, confidence)
    return replace(combined, seconds=combined.median_seconds, half_width_seconds=width)


def _one_mapping(found: Iterable[Mapping[Case, Timing]]) -> bool:
    """True if all cases have the same number of processes per node, or P of them if P is smaller."""
    cases = [case for timings in found for case in timings if _is_ours(case)]
    most = max(case.processes_per_node for case in cases)
    return all(case.processes_per_node == min(most, case.procs) for case in cases)


def _mapped(timings: Iterable[Timing], processes_per_node: int) -> dict[Case, Timing]:
    """The timings with this many processes per node, or with P per node if P is smaller; all cases get this number."""
    return {
        replace(timing.case, processes_per_node=processes_per_node): timing
        for timing in timings
        if timing.case.processes_per_node in (processes_per_node, min(processes_per_node, timing.case.procs))
    }
