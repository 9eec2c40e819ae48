"""The untuned decisions of Open MPI 4.1 and 5.0 for every collective, made by the components `tuned` and `basic`.

Some algorithms of Open MPI need a minimum number of elements. If a message has fewer, another algorithm runs.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from collwise.algorithms.catalogue import elements
from collwise.common.units import parse_size
from collwise.validation.times.choice import Choice, Decision

TABLE_PATH = Path(__file__).with_name("openmpi.toml")

BASIC = {"gatherv": "linear", "scatterv": "linear"}
"""Collectives for which the component `tuned` has no algorithm, and the algorithm of the component `basic`."""

ONE_CHAIN = {("bcast", "k_chain"): "chain", ("reduce", "chain"): "pipeline"}
"""Algorithms that with parameter 0 or 1 have a single chain, each with its single-chain counterpart."""

ELEMENT_BYTES = 16
"""The bytes of a complex double, the largest element that rules allow for."""

Steps = Sequence[tuple[int, str]]
"""Algorithms, each with the message size at which it begins."""


@cache
def table() -> Mapping[str, Mapping[int, Steps]]:
    """The decisions of openmpi.toml, by collective and by the number of processes from which they apply."""

    def steps(line: str) -> Steps:
        words = [part.split() for part in line.split(", ")]
        return [(parse_size(size[0]) if size else 0, name) for *size, name in words]

    document = tomllib.loads(TABLE_PATH.read_text(encoding="utf-8"))
    return {
        collective: {int(procs): steps(line) for procs, line in rows.items()} for collective, rows in document.items()
    }


def decide(collective: str, procs: int, message_bytes: int) -> Decision:
    """The decision for a commutative operation and equal blocks. Untuned Open MPI uses no segments."""
    name = decided_name(collective, procs, message_bytes)
    return Decision(name, _as_it_runs(collective, name, procs, message_bytes))


def decided_name(collective: str, procs: int, message_bytes: int) -> str:
    """The catalogue's name of the algorithm that Open MPI decides for, before it falls back on another algorithm."""
    if collective in BASIC:
        return BASIC[collective]
    rows = table()[collective]
    steps = rows[max((first for first in rows if first <= procs), default=min(rows))]
    return steps[bisect_right(steps, message_bytes, key=lambda step: step[0]) - 1][1]


def _as_it_runs(collective: str, name: str, procs: int, message_bytes: int) -> Choice:
    """The choice that sends the same messages as Open MPI, even if Open MPI falls back on another algorithm."""
    if collective == "allgather" and name == "recursive_doubling" and procs & (procs - 1):
        return Choice("bruck")
    if name == "neighbor_exchange" and procs % 2:
        return Choice("ring")
    has = message_bytes if collective == "bcast" else elements(message_bytes)
    if has < min_elements(collective, name, procs):
        return Choice(NEEDS_ELEMENTS[collective, name][1])
    if (collective, name) == ("gather", "linear_sync"):
        return Choice(name, message_bytes)  # the first part is the whole block
    if (collective, name) == ("alltoall", "linear_sync"):
        return Choice(name, parameter=max(1, procs - 1))  # no limit on simultaneous exchanges
    if (collective, name) in ONE_CHAIN:
        return Choice(name, parameter=1)
    return Choice(name)


def _power_of_two(procs: int) -> int:
    """The largest power of two up to P: the number of parts into which processes divide the message by halving."""
    return 1 << (procs.bit_length() - 1)


def _one_each(procs: int) -> int:
    return procs


NEEDS_ELEMENTS: Mapping[tuple[str, str], tuple[Callable[[int], int], str]] = {
    ("bcast", "split_binary"): (lambda _: 2, "chain"),
    ("bcast", "scatter_allgather"): (_one_each, "linear"),
    ("bcast", "scatter_ring_allgather"): (_one_each, "linear"),
    ("reduce", "rabenseifner"): (_power_of_two, "linear"),
    ("allreduce", "rabenseifner"): (_power_of_two, "linear"),
    ("allreduce", "ring"): (_one_each, "recursive_doubling"),
    ("allreduce", "segmented_ring"): (_one_each, "recursive_doubling"),
}
"""The minimum number of elements by process count, and the algorithm that runs with fewer elements.

Both were observed in the messages of Open MPI 4.1.4.
"""


def min_elements(collective: str, algorithm: str, procs: int) -> int:
    """The minimum number of elements with which Open MPI runs the algorithm itself; 0 if there is no minimum."""
    least, _ = NEEDS_ELEMENTS.get((collective, algorithm), (lambda _: 0, ""))
    return least(procs)


def min_bytes(collective: str, algorithm: str, procs: int) -> int:
    """The message size from which a rule may name the algorithm, bytes; 0 if a rule may always name it."""
    needed = min_elements(collective, algorithm, procs)
    return needed * ELEMENT_BYTES if needed > 1 else 0
