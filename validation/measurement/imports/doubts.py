"""Marks imported times that cannot be those of the algorithm under which they are listed, with the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from collwise.simulator.timing import Case, Timing
from collwise.validation.libraries.mpich_untuned import decide as decide_by_mpich
from collwise.validation.libraries.openmpi_untuned import NEEDS_ELEMENTS, decide as decide_by_openmpi, min_elements
from collwise.validation.measurement.imports.algorithm_names import code_of, entry_of
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import BUILTIN, choice_of

_MIN_MESSAGE_SECONDS = 0.49e-6
"""The shortest published time of a message between two nodes: a put on Tofu D (Ajima et al., CLUSTER 2018)."""
_IN_ROUNDS = ("bcast", "allreduce", "allgather", "reduce_scatter", "barrier")
"""Collectives in which the last process hears from the first one only after ceil(log2 nodes) successive messages."""
_FLOOR, _UNKNOWN_FLOOR = 0.02, 0.2
"""Relative differences up to which times within a run count as equal, with and without known intervals."""
_ALIKE, _MIN_SIZES = 0.8, 4
"""The share of sizes at which times equal the default's if forcing had no effect; the least number of sizes."""

_USUAL_ELEMENT_BYTES = 4
"""The size of elements in reductions of OSU's, Intel's and PICO's benchmarks."""


def doubted(timings: Sequence[Timing], library: str, to_last: bool, element_bytes: int = 0) -> list[Timing]:
    """The timings of one run. An impossible timing has the reason as its error, and no time.

    Impossible are:
    - times of 0;
    - times too short for the messages that a collective must send one after another, if a time lasts until the last
      process has finished (`to_last`);
    - algorithms that cannot run with this P or number of elements: the library must have run another one;
    - all algorithms of a collective if forcing had no effect: for most sizes, the times of forced algorithms then equal
      those of the library's own decision.
    If `element_bytes` is 0, elements are as large as in the usual benchmarks.
    """
    singly = [_marked(timing, _reason(timing, library, to_last, element_bytes)) for timing in timings]
    unforced: dict[Case, str] = {}
    for (collective, procs, _), group in groupby(sorted(singly, key=_kind), _kind):
        found = list(group)
        if reason := _no_force(collective, procs, found, library):
            unforced |= {timing.case: reason for timing in found if _is_forced(timing)}
    return [_marked(timing, unforced.get(timing.case, "")) for timing in singly]


def _kind(timing: Timing) -> tuple[str, int, int]:
    return timing.case.collective, timing.case.procs, timing.case.processes_per_node


def _marked(timing: Timing, reason: str) -> Timing:
    return replace(timing, seconds=math.nan, error=reason) if reason and timing.ok else timing


def _is_forced(timing: Timing) -> bool:
    case = timing.case
    return case.experiment == "collective" and entry_of(case.collective, choice_of(case)) is not None


def _reason(timing: Timing, library: str, to_last: bool, element_bytes: int) -> str:
    case = timing.case
    if timing.seconds == 0:
        return "0 s: the call did nothing"
    rounds = math.ceil(math.log2(case.nodes)) if to_last and case.collective in _IN_ROUNDS else 0
    if timing.seconds < rounds * _MIN_MESSAGE_SECONDS:
        return f"less than {rounds} messages one after another can take ({rounds * _MIN_MESSAGE_SECONDS:.3g} s)"
    if not _is_forced(timing):
        return ""
    entry = entry_of(case.collective, choice_of(case))
    if entry is not None and (objection := entry.objection(case.procs, case.message_bytes)):
        return f"{case.algorithm} {objection}: another algorithm ran"
    if not library.startswith("Open MPI"):
        return ""
    has = case.message_bytes // (element_bytes or (1 if case.collective == "bcast" else _USUAL_ELEMENT_BYTES))
    needed = min_elements(case.collective, case.algorithm, case.procs)
    if has < needed:
        instead = NEEDS_ELEMENTS[case.collective, case.algorithm][1]
        return f"{case.algorithm} needs {needed} elements, this message has {has}: {instead} ran"
    return ""


def _no_force(collective: str, procs: int, timings: Sequence[Timing], library: str) -> str:
    """The reason why no algorithm of a collective ran as forced; empty if one did, or if that is not known."""
    untuned = [timing for timing in timings if timing.case.experiment == BUILTIN and timing.ok]
    default = {timing.case.message_bytes: timing for timing in untuned}
    columns: dict[str, dict[int, Timing]] = {}
    for timing in filter(_is_forced, timings):
        case = timing.case
        name = code_of(case.collective, choice_of(case))
        if timing.ok and case.message_bytes in default:
            columns.setdefault(name, {})[case.message_bytes] = timing
    known = {name: column for name, column in columns.items() if len(column) >= _MIN_SIZES}
    alike = [name for name, column in known.items() if _equal_share(column, default) >= _ALIKE]
    said = f"the force did not act: {', '.join(alike)} equal the library's own decision within the floor"
    if len(alike) > 1 and 2 * len(alike) >= len(known):
        return said
    if len(alike) == 1 == len(known):
        sizes = sorted(known[alike[0]])
        others = [size for size in sizes if _decided(library, collective, procs, size) not in (None, alike[0])]
        return said if 2 * len(others) >= len(sizes) else ""
    return ""


def _equal_share(column: Mapping[int, Timing], default: Mapping[int, Timing]) -> float:
    alike = 0
    for size, timing in column.items():
        widths = [each.half_width_seconds for each in (timing, default[size])]
        known = all(map(math.isfinite, widths))
        floor = max(_FLOOR, sum(widths) / default[size].seconds) if known else _UNKNOWN_FLOOR
        alike += abs(timing.seconds / default[size].seconds - 1) <= floor
    return alike / len(column)


def _decided(library: str, collective: str, procs: int, message_bytes: int) -> str | None:
    """The algorithm that the library runs untuned, by its published rules; None if the rules are not known."""
    decide = decide_by_openmpi if library.startswith("Open MPI") else decide_by_mpich if "MPICH" in library else None
    if decide is None:
        return None
    choice: Choice | None = decide(collective, procs, message_bytes).choice
    return choice.algorithm if choice is not None else None
