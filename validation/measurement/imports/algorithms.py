"""The algorithms of imported times, found in the catalogue by other programs' names, and marks on impossible times."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.simulator.timing import Case, Timing
from collwise.validation.libraries.mpich_untuned import decide as decide_by_mpich
from collwise.validation.libraries.openmpi_untuned import (
    NEEDS_ELEMENTS,
    ONE_CHAIN,
    decide as decide_by_openmpi,
    min_elements,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import BUILTIN, choice_of as choice_of_case

WHOLE_BYTES = 1 << 30
"""The size of a first part that no block exceeds, so that there is no second part."""

NEEDS_LIBRARY = "an id needs a known library"
"""The beginning of the objection to an algorithm's id if the library is not known."""
_OPENMPI: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "bcast": (
            "linear basic_linear", "chain", "pipeline", "split_binary split_binary_tree", "binary binary_tree",
            "binomial binomial_tree", "knomial knomial_tree", "scatter_allgather", "scatter_allgather_ring",
        ),
        "gather": ("linear basic_linear", "binomial", "linear_sync linear_synch"),
        "scatter": ("linear basic_linear", "binomial", "linear_nb"),
        "allgather": ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit"),
        "allgatherv": ("default", "bruck", "ring", "neighbor", "two_proc", "sparbit"),
        "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
        "alltoallv": ("linear basic_linear", "pairwise"),
        "reduce": ("linear", "chain", "pipeline", "binary", "binomial", "in_order in_order_binary", "rabenseifner"),
        "allreduce": (
            "linear basic_linear", "nonoverlapping non_overlapping", "recursive_doubling", "ring", "segmented_ring",
            "rabenseifner",
        ),
        "reduce_scatter": ("non_overlapping nonoverlapping", "recursive_halving", "ring", "butterfly"),
    }
)  # fmt: skip
"""Algorithms' names in coll/tuned's variables, by collective, in the order of ids from 1. Some have several names."""
_MPICH = {"rabenseifner": "reduce_scatter_allgather"}
"""Names by which other programs force MPICH's algorithms, and MPICH's own names if they differ."""
_VERSION = re.compile(r"Open ?MPI\s*v?(\d+)\.(\d+)", re.IGNORECASE)
_MIN_VERSION = (4, 0)
_OPENMPI_3 = {"bcast": 6, "allreduce": 5, "reduce": 6}
"""The largest ids of Open MPI 3, if later versions have more."""
_MIN_MESSAGE_SECONDS = 0.49e-6
"""The shortest published time of a message between two nodes: a put on Tofu D (Ajima et al., CLUSTER 2018)."""
_IN_ROUNDS = ("bcast", "allreduce", "allgather", "reduce_scatter", "barrier")
"""Collectives in which the last process hears from the first one only after ceil(log2 nodes) successive messages."""
_FLOOR, _UNKNOWN_FLOOR = 0.02, 0.2
"""Relative differences up to which times within a run count as equal, with and without known intervals."""
_ALIKE, _MIN_SIZES = 0.8, 4
"""Forcing had no effect if times equal the default's at this share of the sizes. At least so many sizes are needed."""

_USUAL_ELEMENT_BYTES = 4
"""The size of elements in reductions of OSU's, Intel's and PICO's benchmarks."""


def openmpi_choice(collective: str, name: str, procs: int, *, by_rules: bool = True) -> Choice | None:
    """The choice of an algorithm with this name in Open MPI's variables; None if the catalogue does not have it.

    If `by_rules` is true, an algorithm with several chains gets one chain, which is what parameters of 0 in a rule
    mean.
    """
    plain = name.lower().replace("-", "_")
    found = next((place for place, names in enumerate(_OPENMPI.get(collective, ()), 1) if plain in names.split()), 0)
    choice = None if not found else _choice_of_id(collective, found, procs)
    one_chain = choice and by_rules and (collective, choice.algorithm) in ONE_CHAIN
    return replace(choice, parameter=1) if choice and one_chain else choice


def mpich_choice(collective: str, name: str) -> Choice | None:
    """The choice of an algorithm with this name in MPICH's variables; None if the catalogue does not have it."""
    entries = Catalogue.load().collective(collective).algorithms.values()
    wanted = (name, _MPICH.get(name, name))
    return next((Choice(entry.name) for entry in entries if entry.mpich in wanted), None)


def choice_of(collective: str, name: str, library: str, procs: int) -> tuple[Choice, str]:
    """The choice that a name or an id stands for, and an objection to it (empty if there is none).

    A number is the id of an algorithm in `library`, which must be Open MPI or Intel MPI. An empty name, 'default' and
    '-' stand for the library's own decision. Any other text names an algorithm, in the catalogue or not.
    """
    if name.lower() in ("", "-", "default"):
        return LIBRARY_DECIDES, ""
    if not name.isdecimal():
        return Choice(name), ""
    number = int(name)
    if found := _VERSION.search(library):
        version = (int(found[1]), int(found[2]))
        last = len(_OPENMPI.get(collective, ()))
        last = _OPENMPI_3.get(collective, last) if version < _MIN_VERSION else last
        if not 1 <= number <= last:
            return Choice(f"id {number}"), f"{library} has no algorithm {number} of {collective}; its last is {last}"
        return _choice_of_id(collective, number, procs) or Choice(f"id {number}"), ""
    entries = Catalogue.load().collective(collective).algorithms.values()
    if "intel" in library.lower():
        known = next((Choice(entry.name) for entry in entries if entry.name_in("intel") == name), None)
        return known or Choice(f"id {number}"), ""
    return Choice(f"id {number}"), f"{NEEDS_LIBRARY} (Open MPI 4.1, Intel MPI), not '{library}'"


def code_of(collective: str, choice: Choice) -> str:
    """The algorithm whose code runs: another one than named if there is a single chain, or no limit on requests."""
    if (collective, choice.algorithm) == ("alltoall", "linear_sync"):
        return "linear"
    single = ONE_CHAIN.get((collective, choice.algorithm)) if choice.parameter == 1 else None
    return single or choice.algorithm


def _choice_of_id(collective: str, number: int, procs: int) -> Choice | None:
    entries = Catalogue.load().collective(collective).algorithms.values()
    # No id has changed its meaning since 4.0.
    name = next((entry.name for entry in entries if number in entry.openmpi.values()), None)
    if name is None:
        return None
    if (collective, name) == ("gather", "linear_sync"):
        return Choice(name, WHOLE_BYTES)
    if (collective, name) == ("alltoall", "linear_sync"):
        return Choice(name, parameter=max(1, procs - 1))
    return Choice(name)


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
            unforced |= {timing.case: reason for timing in found if _forced(timing.case)}
    return [_marked(timing, unforced.get(timing.case, "")) for timing in singly]


def _kind(timing: Timing) -> tuple[str, int, int]:
    return timing.case.collective, timing.case.procs, timing.case.processes_per_node


def _marked(timing: Timing, reason: str) -> Timing:
    return replace(timing, seconds=math.nan, error=reason) if reason and timing.ok else timing


def _forced(case: Case) -> Algorithm | None:
    """The catalogue's entry of the algorithm that a case forces, if there is one."""
    known = case.experiment == "collective"
    return Catalogue.load().find(case.collective, case.algorithm) if known else None


def _reason(timing: Timing, library: str, to_last: bool, element_bytes: int) -> str:
    case = timing.case
    if timing.seconds == 0:
        return "0 s: the call did nothing"
    rounds = math.ceil(math.log2(case.nodes)) if to_last and case.collective in _IN_ROUNDS else 0
    if timing.seconds < rounds * _MIN_MESSAGE_SECONDS:
        return f"less than {rounds} messages one after another need (at least {rounds * _MIN_MESSAGE_SECONDS:.3g} s)"
    entry = _forced(case)
    if entry is None:
        return ""
    if objection := entry.objection(case.procs, case.message_bytes):
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
    for timing in timings:
        case = timing.case
        if timing.ok and case.message_bytes in default and _forced(case):
            name = code_of(case.collective, choice_of_case(case))
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
