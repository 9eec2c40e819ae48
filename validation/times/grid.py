"""Enumerates cases: the choices that compete for a collective, and a case for each point that a choice runs at.

The lmo algorithms cut messages between the thresholds of linear gather and scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError, warn
from collwise.simulator.limits import buffers_of_node
from collwise.simulator.timing import WINDOWS, WITH_WINDOWS, Case
from collwise.validation.libraries.openmpi_untuned import min_bytes
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import SEGMENTS

if TYPE_CHECKING:
    from collwise.models.single_messages import Thresholds

BUILTIN = "builtin"
"""The experiment in which MPI's own collective is called."""
CASE_COLUMNS = (
    *("collective", "algorithm", "procs", "message_bytes", "segment_bytes", "parameter", "limit_bytes"),
    *("processes_per_node", "nodes", "root"),
)
"""The columns of a case in frames."""
LIBRARY = "library"
"""The name of the MPI library's own collective among algorithms that are measured."""


def candidates(
    collective: str,
    segments: Sequence[int] = SEGMENTS,
    algorithms: Sequence[str] = (),
    counts: Mapping[str, Sequence[int]] = MappingProxyType({}),
    between_segment_bytes: int = 0,
) -> tuple[Choice, ...]:
    """The choices that compete: every algorithm at the first segment size, then the segmented ones at each other size.

    Empty `algorithms` stand for all that can be chosen. `counts` has numbers of chains, radices and the like by the
    name of the parameter; each number makes a choice. Algorithms made of tasks send a segment between nodes in pieces
    of `between_segment_bytes` (0: in one piece).
    """
    catalogue = Catalogue.load()
    names = algorithms or catalogue.collective(collective).selectable
    entries = [catalogue.algorithm(collective, name) for name in names]
    found = [
        Choice(
            entry.name,
            segment if entry.pipelined else 0,
            count,
            between_segment_bytes if entry.limit_parameter == "between_segment_bytes" else 0,
        )
        for segment in segments
        for entry in entries
        for count in _counts_of(entry, counts)
    ]
    return tuple(dict.fromkeys(found))


_ALL_AT_ONCE = {("alltoall", "linear"), ("alltoallv", "linear")}
_MANY_PROCS = 64


def is_all_at_once(collective: str, algorithm: str, procs: int) -> bool:
    """True if every process has so many messages in flight at once that buffers matter, which no engine simulates."""
    return procs >= _MANY_PROCS and (collective, algorithm) in _ALL_AT_ONCE


def _counts_of(entry: Algorithm, counts: Mapping[str, Sequence[int]]) -> Sequence[int]:
    """The requested `counts` for an algorithm, without those that make no difference to it."""
    asked = counts.get(entry.count_parameter) or (0,)
    if entry.count_parameter != "within" or entry.collective in WITH_WINDOWS:
        return asked
    return [count for count in asked if count not in WINDOWS] or (0,)


def cuts_nothing(case: Case) -> bool:
    """True if the case's segment size holds the whole message. All such segment sizes give the same messages."""
    return case.segment_bytes >= max(case.message_bytes, 1) and not case.limit_bytes


def without_repeats(found: Iterable[Case]) -> list[Case]:
    """The cases without those that differ from an earlier one only in a segment size that cuts nothing."""
    kept: dict[Case, Case] = {}
    for case in found:
        kept.setdefault(replace(case, segment_bytes=max(case.message_bytes, 1)) if cuts_nothing(case) else case, case)
    return list(kept.values())


def case_of(
    collective: str, choice: Choice, procs: int, message_bytes: int, processes_per_node: int = 1, root: int = 0
) -> Case:
    """The case that times a choice at a point. For LIBRARY_DECIDES, the case calls MPI's own collective."""
    if choice == LIBRARY_DECIDES:
        return Case(collective, "-", procs, message_bytes, processes_per_node=processes_per_node, experiment=BUILTIN)
    way = (choice.segment_bytes, choice.parameter, processes_per_node, root)
    return Case(collective, choice.algorithm, procs, message_bytes, *way, limit_bytes=choice.limit_bytes)


def choice_of(case: Case) -> Choice:
    """The choice that a case of one of our algorithms times."""
    return Choice(case.algorithm, case.segment_bytes, case.parameter, case.limit_bytes)


@dataclass(frozen=True)
class Grid:
    """The timed choices of one collective. Some compete at every P and m, others are only timed at some points.

    If `for_openmpi` is true, a choice competes only where a message has enough elements for Open MPI (`min_bytes`).
    `besides` are choices that are timed without competing, each at a point, for example those of an untuned library.
    There are no cases at points whose buffers take more than `memory_bytes_per_node`, if this is given.
    """

    collective: str
    choices: tuple[Choice, ...]
    procs: tuple[int, ...]
    message_bytes: tuple[int, ...]
    processes_per_node: int = 1
    root: int = 0
    for_openmpi: bool = False
    memory_bytes_per_node: int | None = None
    besides: tuple[tuple[int, int, Choice], ...] = ()

    @classmethod
    def of(
        cls,
        collective: str,
        procs: Sequence[int],
        message_bytes: Sequence[int],
        processes_per_node: int = 1,
        segments: Sequence[int] = SEGMENTS,
        algorithms: Sequence[str] = (),
        **others: Any,
    ) -> Grid:
        """The grid of algorithms, by default all that can be chosen, each with the segment sizes that it can have.

        The first of `segments` (0: unsegmented) is common to all algorithms that cut messages. `others` are fields of
        the class. Raises UsageError for names that the catalogue does not have.
        """
        choices = candidates(collective, segments, algorithms)
        return cls(collective, choices, tuple(procs), tuple(message_bytes), processes_per_node, **others)

    @property
    def names(self) -> tuple[str, ...]:
        """The algorithms that compete."""
        return tuple(dict.fromkeys(choice.algorithm for choice in self.choices))

    @property
    def timed(self) -> tuple[Choice, ...]:
        """The choices that are timed at any point: first the competing ones, then others."""
        return tuple(dict.fromkeys([*self.choices, *(choice for _, _, choice in self.besides)]))

    @property
    def points(self) -> list[tuple[int, int]]:
        """All points (P, m), by P and then by m."""
        return [(count, size) for count in self.procs for size in self.message_bytes]

    @property
    def segments(self) -> tuple[int, ...]:
        """The segment sizes of the choices that compete, in their order; only 0 if no choice cuts messages."""
        return tuple(dict.fromkeys(choice.segment_bytes for choice in self.choices if choice.segment_bytes)) or (0,)

    @cached_property
    def labels(self) -> dict[Choice, str]:
        """The choices' names: the algorithm's name for its first choice, names like 'chain, 32 KiB' for others."""
        found: dict[Choice, str] = {}
        named: set[str] = set()
        for choice in self.timed:
            found[choice] = choice.label if choice.algorithm in named else choice.algorithm
            named.add(choice.algorithm)
        return found

    def only(self, keep: Callable[[Choice], bool]) -> Grid:
        """The grid with only those competing choices for which `keep` returns True."""
        return replace(self, choices=tuple(filter(keep, self.choices)))

    def of_algorithms(self, names: Container[str]) -> Grid:
        """The grid with only the competing choices of these algorithms."""
        return self.only(lambda choice: choice.algorithm in names)

    def by_algorithm(self) -> Grid:
        """The grid, reordered so that the competing choices of each algorithm are adjacent, in their order."""
        return replace(self, choices=tuple(sorted(self.choices, key=lambda choice: self.names.index(choice.algorithm))))

    def with_besides(self, choice_at: Callable[[int, int], Choice | None]) -> Grid:
        """The grid that also times the choices that a function returns for points; None stands for no choice."""
        named = ((procs, size, choice_at(procs, size)) for procs, size in self.points)
        more = [(procs, size, choice) for procs, size, choice in named if choice is not None]
        return replace(self, besides=tuple(dict.fromkeys([*self.besides, *more])))

    def max_bytes(self, procs: int) -> float:
        """The size of the longest message whose buffers a node can hold; infinity without a limit."""
        buffers = buffers_of_node(self.collective, procs, self.processes_per_node)
        limit = self.memory_bytes_per_node
        return math.inf if limit is None or not buffers else limit // buffers

    def fits(self, procs: int, message_bytes: int) -> bool:
        """True if a node can hold the buffers at a point."""
        return message_bytes <= self.max_bytes(procs)

    def runs(self, choice: Choice, procs: int, message_bytes: int) -> bool:
        """True if the choice's algorithm runs at a point, and a node can hold the buffers."""
        if not self.fits(procs, message_bytes):
            return False
        entry = Catalogue.load().find(self.collective, choice.algorithm)
        return entry is None or not entry.objection(procs, message_bytes)

    def competes(self, choice: Choice, procs: int, message_bytes: int) -> bool:
        """True if a choice that runs at a point may be chosen there, and so is timed."""
        return not self.for_openmpi or message_bytes >= min_bytes(self.collective, choice.algorithm, procs)

    def case(self, choice: Choice, procs: int, message_bytes: int) -> Case:
        """The case that times a choice at a point (`case_of`)."""
        return case_of(self.collective, choice, procs, message_bytes, self.processes_per_node, self.root)

    def cases(self) -> list[Case]:
        """The case of every choice at every point where it runs and may be chosen, then the additional cases."""
        asked = [(choice, *point) for point in self.points for choice in self.choices if self.competes(choice, *point)]
        asked += [(choice, procs, size) for procs, size, choice in self.besides]
        return list(dict.fromkeys(self.case(*each) for each in asked if self.runs(*each)))


# The threshold that is the bound of each collective's algorithms.
_BOUNDS = {"gather": "gather_irregular_from_bytes", "scatter": "scatter_leap_bytes"}


def bounds_of(algorithm: Algorithm, thresholds: Thresholds | None) -> tuple[int, int]:
    """The segment size and the limit, in bytes, of a `bounded` algorithm; 0 if there is none.

    If the threshold is missing, the algorithm runs as linear, and a warning is printed.
    """
    bound_name = _BOUNDS[algorithm.collective]
    bound: int | None = getattr(thresholds, bound_name, None)
    if thresholds is None or bound is None:
        why = f"give {bound_name} by --thresholds FILE" if thresholds is None else f"the file has no {bound_name}"
        warn(f"{algorithm.collective} {algorithm.name} runs as linear: {why}")
        return 0, 0
    return bound, thresholds.last_irregular_bytes if algorithm.collective == "gather" else 0


def with_thresholds(collective: str, choices: Sequence[Choice], thresholds: Thresholds | None) -> tuple[Choice, ...]:
    """The choices; those of algorithms that take a threshold get the bound and the limit from `bounds_of`."""
    entries = Catalogue.load().collective(collective).algorithms

    def bounded(choice: Choice) -> Choice:
        if not entries[choice.algorithm].bounded:
            return choice
        segment, limit = bounds_of(entries[choice.algorithm], thresholds)
        return replace(choice, segment_bytes=segment, limit_bytes=limit)

    return tuple(map(bounded, choices))


def check_thresholds_matter(algorithms: Sequence[Algorithm], thresholds: Thresholds | None) -> None:
    """Raises UsageError for thresholds that none of the algorithms takes."""
    if thresholds is not None and not any(algorithm.bounded for algorithm in algorithms):
        entries = [entry for name in _BOUNDS for entry in Catalogue.load().algorithms(name) if entry.bounded]
        takers = ", ".join(f"{entry.collective} {entry.name}" for entry in entries)
        raise UsageError(f"--thresholds: none of the algorithms asked for uses thresholds; these do: {takers}")


def with_bounds(algorithms: str, thresholds: Thresholds | None) -> str:
    """A valid list such as 'gather=lmo;bcast=chain,segment_bytes=8192', with bounds added to entries without bounds."""
    entries = algorithms.split(";")
    for place, entry in enumerate(entries):
        collective, _, choice = entry.partition("=")
        name, *parameters = (word.strip() for word in choice.split(","))
        algorithm = Catalogue.load().find(collective.strip(), name)
        if algorithm is not None and algorithm.bounded and not parameters:
            bound, limit = bounds_of(algorithm, thresholds)
            named = algorithm.named_parameters(bound, limit_bytes=limit)
            entries[place] = ",".join([entry, *(f"{key}={value}" for key, value in named.items())])
    return ";".join(entries)
