"""Open MPI's algorithms that need a number of elements, and run as another algorithm where a message has fewer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

ELEMENT_BYTES = 16
"""The bytes of the largest elements that rules allow for, complex doubles."""


@dataclass(frozen=True)
class Least:
    """The least number of elements by process count, and the algorithm that runs with fewer."""

    elements: Callable[[int], int]
    otherwise: str


def _power_of_two(procs: int) -> int:
    """The largest power of two of processes: they halve the message as often."""
    return 1 << (procs.bit_length() - 1)


def _one_each(procs: int) -> int:
    return procs


NEEDS_ELEMENTS: Mapping[tuple[str, str], Least] = {
    ("bcast", "split_binary"): Least(lambda _: 2, "chain"),
    ("bcast", "scatter_allgather"): Least(_one_each, "linear"),
    ("bcast", "scatter_ring_allgather"): Least(_one_each, "linear"),
    ("reduce", "rabenseifner"): Least(_power_of_two, "linear"),
    ("allreduce", "rabenseifner"): Least(_power_of_two, "linear"),
    ("allreduce", "ring"): Least(_one_each, "recursive_doubling"),
    ("allreduce", "segmented_ring"): Least(_one_each, "recursive_doubling"),
}
"""The conditions by collective and algorithm of the catalogue, as messages of 4.1.4 show; others have none."""


def least_elements(collective: str, algorithm: str, procs: int) -> int:
    """The number of elements from which on Open MPI runs the algorithm itself."""
    condition = NEEDS_ELEMENTS.get((collective, algorithm))
    return condition.elements(procs) if condition else 1


def least_bytes(collective: str, algorithm: str, procs: int) -> int:
    """The bytes from which on a rule may name the algorithm, 0 if it may always."""
    needed = least_elements(collective, algorithm, procs)
    return needed * ELEMENT_BYTES if needed > 1 else 0
