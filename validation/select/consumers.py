"""Decision consumers: Open MPI and other MPI libraries, which follow their own rules, and libcollwise with its table.

The module says which choices a consumer can be asked for, and which sizes it compares with its rules. The facts about
Open MPI come, by version, from its component `tuned` (coll_tuned_decision_dynamic.c and
coll_tuned_COLLECTIVE_decision.c). docs/exports.md has the sources of the facts about other libraries.
"""

from __future__ import annotations

from dataclasses import replace

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.algorithms.catalogue_check import LIBRARIES
from collwise.common.errors import UsageError, unknown_name
from collwise.validation.libraries.baselines import BASELINES, DEFAULT, Baseline
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid

_ALGORITHMS = [item for entry in Catalogue.load().collectives.values() for item in entry.algorithms.values()]
OPENMPI_VERSIONS = tuple(sorted({version for algorithm in _ALGORITHMS for version in algorithm.openmpi}))
OPENMPI, COLLWISE = "openmpi", "collwise"
RULES_VERSIONS = ("4.1", "5.0")
"""The versions of Open MPI for whose rules a table is made if no consumer is named."""
CONSUMERS = (COLLWISE, *(f"openmpi-{version}" for version in RULES_VERSIONS))
"""The consumers that a table is made for if no consumer is named."""
SMPI, PGMPI = "smpi", "pgmpi"
ALL_CONSUMERS = (COLLWISE, *(f"openmpi-{version}" for version in OPENMPI_VERSIONS), *LIBRARIES, SMPI)

# Open MPI 4.0 compares datatype size times processes and ignores the count (fixed by its pull requests 7758, 8048). For
# scans, all versions ignore the count.
_COUNT_IGNORED = {("gather", "4.0"), ("scatter", "4.0")} | {
    (scan, version) for scan in ("scan", "exscan") for version in OPENMPI_VERSIONS
}
# Open MPI 4.0 compares the total of the blocks, later versions the mean (pull requests 8209, 8224).
_TOTAL_COMPARED = {("allgatherv", "4.0")}
LOCAL_SEND_COUNT_COMPARED = ("gather", "scatter")
"""Collectives for which each process looks a rule up by the send count and type that it passes.

In a gather, send count and type are not significant at a root that passes MPI_IN_PLACE. In a scatter, they are
significant only at the root.
"""
# The classic rules file has no field for these algorithms' parameter, so linear_sync runs without a limit of requests.
_PARAMETER_NOT_IN_RULES = {("alltoall", "linear_sync")}
_SIZE_NOT_KNOWN_TO_ALL = ("gatherv", "scatterv", "alltoallv")
# Collectives for which a library has only one algorithm, or no message size that every process knows.
_WITHOUT_SIZES = {
    "mpich": (*_SIZE_NOT_KNOWN_TO_ALL, "gather", "scatter", "scan", "exscan", "barrier"),
    "intel": (*_SIZE_NOT_KNOWN_TO_ALL, "barrier"),
    "mvapich2": (*_SIZE_NOT_KNOWN_TO_ALL, "barrier"),
    "ucc": (*_SIZE_NOT_KNOWN_TO_ALL, "barrier"),
}
# SMPI's versions of these algorithms choose the segment size for each call.
_SMPI_SEGMENTS_BY_CALL = (
    *(("bcast", "chain"), ("gather", "linear_sync")),
    *(("reduce", name) for name in ("chain", "pipeline", "binomial")),
)
KNOMIAL_RADIX = 4
"""K of Open MPI's k-nomial trees, unless its option coll_tuned_COLLECTIVE_algorithm_knomial_radix sets another one."""
# An option gives UCC's trees one radix for all calls; docs/exports.md has the radices.
_RADIX = {("ucc", "bcast", "knomial"): 4, ("ucc", "reduce", "knomial"): 4}


def series(openmpi_version: str) -> str:
    """The series '4.1' of '4.1' or '4.1.4'. Raises UsageError for a version that the catalogue has no ids for."""
    short = ".".join(openmpi_version.split(".")[:2])
    if short not in OPENMPI_VERSIONS:
        raise unknown_name("Open MPI version", openmpi_version, OPENMPI_VERSIONS)
    return short


def openmpi_consumer(version: str) -> str:
    """The consumer 'openmpi-4.1' for '4.1' or '4.1.4'. Raises the errors of `series`."""
    return f"{OPENMPI}-{series(version)}"


def openmpi_version(consumer: str) -> str | None:
    """The version '4.1' of 'openmpi-4.1'; None for other consumers."""
    return consumer.removeprefix("openmpi-") if consumer.startswith("openmpi-") else None


def untuned_of(consumer: str) -> Baseline | None:
    """The untuned library to which rules for a consumer apply; the default one if they apply to any MPI library."""
    return DEFAULT if consumer == COLLWISE else BASELINES.get({"mpich": "mpich-4"}.get(consumer, consumer))


def leaves_calls(consumer: str) -> bool:
    """True if rules for the consumer, Open MPI or libcollwise, can leave single calls to the MPI library."""
    return consumer == COLLWISE or openmpi_version(consumer) is not None


def can_run(consumer: str, algorithm: Algorithm) -> bool:
    """True if a decision can ask the consumer for the algorithm."""
    if consumer == SMPI:
        return bool(algorithm.smpi) and (algorithm.collective, algorithm.name) not in _SMPI_SEGMENTS_BY_CALL
    if consumer in LIBRARIES:
        return bool(algorithm.name_in(consumer))
    version = openmpi_version(consumer)
    if version is None:
        return True
    return version in algorithm.openmpi and (algorithm.collective, algorithm.name) not in _PARAMETER_NOT_IN_RULES


def segments_for(consumer: str | None, segments: tuple[int, ...]) -> tuple[int, ...]:
    """The segment sizes that choices for a consumer may have: the given ones, or 0 if its rules have no segments."""
    return (0,) if consumer in LIBRARIES else segments


def can_say(consumer: str, collective: str, choice: Choice) -> bool:
    """True if rules for a consumer can express a choice. They can always express the library's own decision."""
    if consumer == COLLWISE or choice == LIBRARY_DECIDES:
        return True
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    if not can_run(consumer, algorithm) or choice.limit_bytes:
        return False
    count = choice.parameter or algorithm.default_count
    if openmpi_version(consumer) is not None:
        return choice.algorithm != "knomial" or count == KNOMIAL_RADIX
    if consumer == SMPI:
        return count == algorithm.default_count and choice.segment_bytes == algorithm.smpi_segment_bytes
    radix = _RADIX.get((consumer, collective, choice.algorithm), algorithm.default_count)
    return choice.segment_bytes == 0 and count == radix


def can_choose(consumer: str | None, collective: str, choice: Choice) -> bool:
    """True if the catalogue offers the choice, and the consumer (None: libcollwise) can run it."""
    entry = Catalogue.load().collective(collective)
    if choice.algorithm not in {*entry.selectable, *entry.by_node, *entry.mock_ups}:
        return False
    if choice.segment_bytes and not entry.algorithms[choice.algorithm].pipelined:
        return False
    if consumer in LIBRARIES:
        return can_say(consumer, collective, choice)
    return consumer is None or can_run(consumer, entry.algorithms[choice.algorithm])


def grid_for(consumer: str | None, grid: Grid) -> Grid:
    """The grid of the choices for a consumer. For Open MPI, choices are left out at points with too few elements."""
    kept = choosable_for(consumer, grid)
    return kept if consumer is None or openmpi_version(consumer) is None else replace(kept, for_openmpi=True)


def choosable_for(consumer: str | None, grid: Grid) -> Grid:
    """The grid with only the choices that a consumer, if given, can be asked for. Raises UsageError if none is left."""
    if consumer is None:
        return grid
    kept = grid.only(lambda choice: can_choose(consumer, grid.collective, choice))
    if not kept.choices:
        raise UsageError(f"{consumer} cannot run any of the {grid.collective} choices: {', '.join(grid.names)}")
    return kept


def algorithms_for(collective: str, *consumers: str, by_node: bool = False) -> tuple[str, ...]:
    """Names of the algorithms that a decision can ask each of these consumers for.

    Hierarchical algorithms are included if `by_node` is true. PGMPITuneLib has only mock-ups, and other consumers have
    none. Raises UsageError if there is no such algorithm.
    """
    entry = Catalogue.load().collective(collective)
    offered = entry.selectable + (entry.by_node if by_node else ())
    offered += entry.mock_ups if PGMPI in consumers else ()
    names = tuple(name for name in offered if all(can_run(each, entry.algorithms[name]) for each in consumers))
    if not names:
        raise UsageError(f"{', '.join(consumers)} has no {collective} algorithm to choose")
    return names


def sees_sizes(consumer: str, collective: str) -> bool:
    """True if the consumer distinguishes messages of different sizes when it looks a call up."""
    if consumer == SMPI:
        return False
    version = openmpi_version(consumer)
    if version is None:
        return collective not in _WITHOUT_SIZES.get(consumer, _SIZE_NOT_KNOWN_TO_ALL)
    ignored = (collective, series(version)) in _COUNT_IGNORED
    return not ignored and Catalogue.load().collective(collective).openmpi_message != "none"


def needs_one_choice(collective: str, consumer: str | None = None) -> bool:
    """True if decisions for the consumer (None: all consumers) should make one choice for each process count.

    They should if the consumer does not see message sizes, or if the processes of a call may see different sizes, since
    the call would hang if they ran different algorithms.
    """
    if consumer is None:
        return any(needs_one_choice(collective, each) for each in CONSUMERS)
    different = openmpi_version(consumer) is not None and collective in LOCAL_SEND_COUNT_COMPARED
    return different or not sees_sizes(consumer, collective)


def rule_message(collective: str, version: str, procs: int, message_bytes: int) -> int:
    """The number that Open MPI compares with the message sizes of its rules, if the call's datatype is a byte."""
    key = (collective, series(version))
    if key in _COUNT_IGNORED:
        return procs
    compared = Catalogue.load().collective(collective).openmpi_message
    if compared == "none":
        return 0
    return message_bytes * procs if compared == "times_procs" or key in _TOTAL_COMPARED else message_bytes


def multiplies_by_procs(collective: str, version: str) -> bool:
    """True if the rules compare message sizes that are multiplied by the process count."""
    return rule_message(collective, version, 2, 2) == 4
