"""Enumerates cases: the choices that compete for a collective, and a case for each point that a choice runs at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from collwise.algorithms.catalogue import Catalogue
from collwise.common.units import format_size
from collwise.simulator.limits import buffers_of_node
from collwise.simulator.timing import Case
from collwise.validation.openmpi.least_elements import least_bytes
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS

ChoicesAt = Callable[[int, int], Iterable[Choice]]
"""Choices that depend on the point: on P and on the message size."""

BUILTIN = "builtin"
"""The experiment in which MPI's own collective is called."""
LIBRARY = "library"
"""The name of the MPI library's own collective among algorithms that are measured."""


def candidates(
    collective: str,
    segments: Sequence[int] = SEGMENTS,
    algorithms: Sequence[str] = (),
    counts: Mapping[str, Sequence[int]] = MappingProxyType({}),
    between_segment_bytes: int = 0,
) -> tuple[Choice, ...]:
    """The choices that compete: every algorithm at the first segment size, then those that cut messages at each other.

    `algorithms` are by default all that can be chosen; `counts` are numbers of chains, radices and the like, by name of
    the parameter, each of which makes a choice; in parts of `between_segment_bytes` (0: whole) algorithms from tasks
    send segments between nodes.
    Raises UsageError for names that the catalogue does not have.
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
        for count in counts.get(entry.count_parameter) or (0,)
    ]
    return tuple(dict.fromkeys(found))


def cases(
    collective: str,
    choices: Sequence[Choice] | ChoicesAt,
    procs: Sequence[int],
    message_bytes: Sequence[int],
    processes_per_node: int = 1,
    root: int = 0,
) -> list[Case]:
    """A case for each choice at each point (P, m), without those at which its algorithm does not run."""
    catalogue = Catalogue.load()
    choices_at: ChoicesAt = choices if callable(choices) else lambda procs, size: choices
    found = [
        case_of(collective, choice, count, size, processes_per_node, root)
        for count in procs
        for size in message_bytes
        for choice in choices_at(count, size)
        if not catalogue.algorithm(collective, choice.algorithm).objection(count, size)
    ]
    return list(dict.fromkeys(found))


def cuts_nothing(case: Case) -> bool:
    """Whether the case has segments that hold the whole message: with any such size it sends the same messages."""
    return case.segment_bytes >= max(case.message_bytes, 1) and not case.limit_bytes


def without_repeats(found: Iterable[Case]) -> list[Case]:
    """The cases but those that differ from an earlier one only in a segment size that cuts nothing."""
    kept: dict[Case, Case] = {}
    for case in found:
        kept.setdefault(replace(case, segment_bytes=max(case.message_bytes, 1)) if cuts_nothing(case) else case, case)
    return list(kept.values())


def case_of(
    collective: str, choice: Choice, procs: int, message_bytes: int, processes_per_node: int = 1, root: int = 0
) -> Case:
    """The case that times a choice at a point."""
    return Case(
        collective,
        choice.algorithm,
        procs,
        message_bytes,
        choice.segment_bytes,
        choice.fanout,
        processes_per_node,
        root,
        limit_bytes=choice.limit_bytes,
    )


def choice_of(case: Case) -> Choice:
    """The choice that a case times."""
    return Choice(case.algorithm, case.segment_bytes, case.fanout, case.limit_bytes)


def builtin_cases(
    collective: str, procs: Sequence[int], message_bytes: Sequence[int], processes_per_node: int = 1
) -> list[Case]:
    """The cases that call MPI's own collective."""
    return [
        Case(collective, "-", count, size, processes_per_node=processes_per_node, experiment=BUILTIN)
        for count in procs
        for size in message_bytes
    ]


@dataclass(frozen=True)
class CaseGrid:
    """The points (P, m) of one collective, and the algorithms and segment sizes that compete at each of them.

    The first of `segments` (0: unsegmented) is common to all algorithms that cut messages; without `algorithms` all
    that can be chosen compete. So do `further` choices, whatever their parameters. With `for_openmpi` a choice competes
    only where a message has enough elements for it in Open MPI, also large ones (`few_elements`). There are no cases at
    points whose buffers take more than `memory_bytes_per_node`, if that is given (`points.within_memory`).
    """

    collective: str
    procs: tuple[int, ...]
    message_bytes: tuple[int, ...]
    processes_per_node: int = 1
    segments: tuple[int, ...] = SEGMENTS
    algorithms: tuple[str, ...] = ()
    for_openmpi: bool = False
    further: tuple[Choice, ...] = ()
    memory_bytes_per_node: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The algorithms that compete."""
        return tuple(dict.fromkeys(choice.algorithm for choice in self.candidates.values()))

    @property
    def points(self) -> list[tuple[int, int]]:
        """All points (P, m), by P and then by m."""
        return [(count, size) for count in self.procs for size in self.message_bytes]

    def most_bytes(self, procs: int) -> float:
        """The longest message of which a node can hold the buffers; infinity where nothing limits it."""
        buffers = buffers_of_node(self.collective, procs, self.processes_per_node)
        limit = self.memory_bytes_per_node
        return math.inf if limit is None or not buffers else limit // buffers

    def fits(self, procs: int, message_bytes: int) -> bool:
        """Whether a node can hold the buffers at a point."""
        return message_bytes <= self.most_bytes(procs)

    @cached_property
    def candidates(self) -> dict[str, Choice]:
        """The choices by label: the algorithm's name at the common segment size, 'chain, 32 KiB' at another."""
        common = candidates(self.collective, self.segments[:1], self.algorithms)
        others = [one for one in candidates(self.collective, self.segments, self.algorithms) if one not in common]
        found = {one.algorithm: one for one in common} | {
            f"{one.algorithm}, {format_size(one.segment_bytes)}": one for one in others
        }
        known = set(found.values())
        return found | {f"{one.label}, as given": one for one in dict.fromkeys(self.further) if one not in known}

    def at_common_segment(self, algorithm: str) -> Choice:
        """An algorithm at the common segment size."""
        return candidates(self.collective, self.segments[:1], (algorithm,))[0]

    def case(self, choice: Choice, procs: int, message_bytes: int) -> Case:
        """The case that times a choice at a point."""
        return case_of(self.collective, choice, procs, message_bytes, self.processes_per_node)

    def cases(self) -> list[Case]:
        """Every candidate at every point that it runs at."""
        return self.cases_of(self._with_enough_elements if self.for_openmpi else list(self.candidates.values()))

    def cases_of(self, choices: Sequence[Choice] | ChoicesAt) -> list[Case]:
        """The cases of other choices, at every point where they run and fit into memory."""
        found = cases(self.collective, choices, self.procs, self.message_bytes, self.processes_per_node)
        return [case for case in found if self.fits(case.procs, case.message_bytes)]

    def _with_enough_elements(self, procs: int, message_bytes: int) -> Iterable[Choice]:
        choices = self.candidates.values()
        return (one for one in choices if message_bytes >= least_bytes(self.collective, one.algorithm, procs))
