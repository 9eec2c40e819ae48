"""Who is to follow decisions: Open MPI by dynamic rules, or the interposing library by its own table.

What each can be told, and by what it looks a call up. Of Open MPI these are facts read in its component `tuned`
(coll_tuned_decision_dynamic.c and coll_tuned_COLLECTIVE_decision.c), by version.
"""

from __future__ import annotations

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError, unknown_name


def _versions() -> tuple[str, ...]:
    collectives = Catalogue.load().collectives.values()
    return tuple(sorted({v for entry in collectives for a in entry.algorithms.values() for v in a.openmpi}))


OPENMPI_VERSIONS = _versions()
OPENMPI, COLLWISE = "openmpi", "collwise"
TARGETS = (COLLWISE, *(f"openmpi-{version}" for version in OPENMPI_VERSIONS))

# Open MPI 4.0 compares datatype size times processes and forgets the count (mended by its pull requests 7758, 8048);
# for scans all versions do.
_BLIND_TO_COUNT = {("gather", "4.0"), ("scatter", "4.0")} | {
    (scan, version) for scan in ("scan", "exscan") for version in OPENMPI_VERSIONS
}
# Since 4.1 the mean of the blocks is compared (pull requests 8209, 8224).
_TOTAL_COMPARED = {("allgatherv", "4.0")}
# Each process looks up what it passes as send count and type. At the root of a gather these mean nothing when it passes
# MPI_IN_PLACE, and in a scatter they mean something at the root only.
OWN_SEND_COUNT_COUNTS = ("gather", "scatter")
# The classic rules file has no place for their parameter: linear_sync's limit of requests is then none.
_PARAMETER_NOT_IN_RULES = {("alltoall", "linear_sync")}
# Sizes that not all processes know.
_SIZE_NOT_KNOWN_TO_ALL = ("gatherv", "scatterv", "alltoallv")


def series(openmpi_version: str) -> str:
    """'4.1' of '4.1' or '4.1.4'. Raises UsageError for a version that the catalogue has no ids for."""
    short = ".".join(openmpi_version.split(".")[:2])
    if short not in OPENMPI_VERSIONS:
        raise unknown_name("Open MPI version", openmpi_version, OPENMPI_VERSIONS)
    return short


def openmpi_version(target: str) -> str | None:
    """'4.1' of 'openmpi-4.1', None for another target."""
    return target.removeprefix("openmpi-") if target.startswith("openmpi-") else None


def can_run(target: str | None, algorithm: Algorithm) -> bool:
    """Whether the target (None: any) can be told to run the algorithm."""
    version = openmpi_version(target) if target else None
    if version is None:
        return True
    return version in algorithm.openmpi and (algorithm.collective, algorithm.name) not in _PARAMETER_NOT_IN_RULES


def candidates(collective: str, target: str | None) -> tuple[str, ...]:
    """Names of the algorithms that can be chosen for a target. Raises UsageError if it has none."""
    entry = Catalogue.load().collective(collective)
    names = tuple(name for name in entry.selectable if can_run(target, entry.algorithms[name]))
    if not names:
        raise UsageError(f"{target} has no {collective} algorithm that could be chosen")
    return names


def sees_sizes(target: str, collective: str) -> bool:
    """Whether the target tells messages of different sizes apart when it looks a call up."""
    version = openmpi_version(target)
    if version is None:
        return collective not in _SIZE_NOT_KNOWN_TO_ALL
    blind = (collective, series(version)) in _BLIND_TO_COUNT
    return not blind and Catalogue.load().collective(collective).openmpi_message != "none"


def one_choice_a_count(collective: str, target: str | None = None) -> bool:
    """Whether decisions for the target (None: for each of them) should keep to one algorithm a process count.

    They must where it does not see message sizes, and should where processes may see different ones: two algorithms at
    once hang.
    """
    if target is None:
        return any(one_choice_a_count(collective, each) for each in TARGETS if each != "openmpi-4.0")
    different = openmpi_version(target) is not None and collective in OWN_SEND_COUNT_COUNTS
    return different or not sees_sizes(target, collective)


def rule_message(collective: str, version: str, procs: int, message_bytes: int, datatype_bytes: int = 1) -> int:
    """What Open MPI compares with the message sizes of its rules, for a call of `message_bytes`."""
    key = (collective, series(version))
    if key in _BLIND_TO_COUNT:
        return datatype_bytes * procs
    compared = Catalogue.load().collective(collective).openmpi_message
    if compared == "none":
        return 0
    return message_bytes * procs if compared == "times_procs" or key in _TOTAL_COMPARED else message_bytes


def multiplies_by_procs(collective: str, version: str) -> bool:
    """Whether one message size is another one in the rules for each process count."""
    return rule_message(collective, version, 2, 2) == 4
