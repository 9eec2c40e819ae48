"""Choices in measured cells without predictions: what MPI libraries decide, and what was fastest elsewhere."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from collwise.common.grouping import grouped
from collwise.validation.libraries.baselines import BASELINES, Baseline
from collwise.validation.measurement.imports.algorithms import code_of
from collwise.validation.measurement.judging import Cell
from collwise.validation.times.choice import LIBRARY_DECIDES

FIXED, VOTE = "best fixed", "others' vote"
"""Two deciders: the algorithm with the least mean regret on the machine (hindsight), and the other machines' vote."""
RULES = "robust, or the library"
"""The decider that takes the robust choice, or leaves the call to a library whose own decisions are not known."""
TABLE = "table of "
"""The prefix of the name of a decider that takes the fastest algorithms of one machine; the machine's name follows."""
_LIBRARIES = ("mpich-4", "openmpi-5.0")
_KNOWN = {"Open MPI 4": "openmpi-4.1", "Open MPI 5": "openmpi-5.0", "MPICH 4": "mpich-4"}
"""Libraries whose decisions are known, by the beginning of their names. Cray's, Fujitsu's and Intel's are not known."""

Chooser = Callable[[Cell], str | None]
"""Returns the algorithm of a cell's candidate, or the library's own decision; None if nothing is decided."""


def with_choices(cells: Sequence[Cell], choosers: Mapping[str, Chooser]) -> list[Cell]:
    """The cells with the choice of each decider, by the decider's name, if the choice was measured."""
    found = []
    for cell in cells:
        chosen = {name: choose(cell) for name, choose in choosers.items()}
        measured = {name: choice for name, choice in chosen.items() if choice is not None and choice in cell.seconds}
        found.append(replace(cell, choices={**cell.choices, **measured}))
    return found


def choosers_among(cells: Sequence[Cell]) -> dict[str, Chooser]:
    """Deciders without predictions, by name. They use cells measured on the same machine or on others, or no cells."""
    machines = sorted({cell.place.machine for cell in cells})
    found: dict[str, Chooser] = {FIXED: best_fixed(cells)}
    found |= {BASELINES[name].title: partial(decided, BASELINES[name]) for name in _LIBRARIES}
    if len(machines) > 1:
        groups = grouped(cells, lambda cell: (cell.place.machine, cell.place.collective))
        found |= {TABLE + name: partial(_voted, groups, [name]) for name in machines}
        found[VOTE] = partial(_voted, groups, machines)
    return found


def best_fixed(cells: Sequence[Cell]) -> Chooser:
    """Chooses each machine's best fixed algorithm by collective and size class.

    In a cell that has no time of this algorithm, the call is left to the library.
    """
    best = {key: _least_lost(group) for key, group in grouped(cells, _group).items()}

    def choose(cell: Cell) -> str:
        name = best[_group(cell)]
        return name if name in cell.seconds else LIBRARY_DECIDES.algorithm

    return choose


def _group(cell: Cell) -> tuple[str, str, str]:
    return cell.place.machine, cell.place.collective, cell.size_class


def _least_lost(cells: Sequence[Cell]) -> str:
    counts = Counter(name for cell in cells for name in cell.candidates)
    names = sorted(name for name, number in counts.items() if number == max(counts.values()))

    def lost(name: str) -> float:
        own = (cell.lost.get(LIBRARY_DECIDES.algorithm, math.inf) for cell in cells)
        return sum(cell.lost.get(name, untuned) for cell, untuned in zip(cells, own, strict=True))

    return min(names, key=lost)


def decided(library: Baseline, cell: Cell) -> str | None:
    """The candidate that a library decides for, if any.

    The result is None if no candidate has the same algorithm, segments and number of chains, or if nodes have several
    processes and the library then decides differently.
    """
    place = cell.place
    choice = library.choice(place.collective, place.procs, cell.message_bytes)
    by_node = library.nodes and place.processes_per_node > 1
    if choice is None or by_node or 0 < choice.segment_bytes < cell.message_bytes:
        return None
    code = code_of(place.collective, choice)
    of_its_own = 0 < choice.parameter < place.procs - 1 and (code == choice.algorithm or choice.parameter > 1)
    return None if of_its_own else cell.codes.get(code)


def ruled(cells: Sequence[Cell], decider: str) -> list[Cell]:
    """The cells with RULES as another decider, if the library's own decision was measured.

    RULES takes the choice of `decider` if the library's decisions are known, and else leaves the call to the library.
    """
    found = []
    for cell in cells:
        if decider in cell.choices and LIBRARY_DECIDES.algorithm in cell.seconds:
            known = known_library(cell.library, cell.place.processes_per_node)
            chosen = cell.choices[decider] if known else LIBRARY_DECIDES.algorithm
            cell = replace(cell, choices={**cell.choices, RULES: chosen})
        found.append(cell)
    return found


def known_library(name: str, processes_per_node: int) -> Baseline | None:
    """The library of a run, by the library's name and version, if the library's own decisions are known."""
    found = next((BASELINES[known] for begin, known in _KNOWN.items() if name.startswith(begin)), None)
    return None if found is None or (found.nodes and processes_per_node > 1) else found


def _voted(groups: Mapping[tuple[str, str], Sequence[Cell]], machines: Iterable[str], cell: Cell) -> str | None:
    """The candidate with the smallest mean rank on other machines, among those that most machines rank."""
    ranks: dict[str, list[float]] = {}
    for name in machines:
        if name != cell.place.machine:
            near = _nearest(cell, groups.get((name, cell.place.collective), []))
            for algorithm, rank in _ranked(cell, near).items():
                ranks.setdefault(algorithm, []).append(rank)
    most = max(map(len, ranks.values()), default=0)
    means = {name: sum(found) / most for name, found in sorted(ranks.items()) if len(found) == most}
    return min(means, key=means.__getitem__, default=None)


def _nearest(cell: Cell, others: Sequence[Cell]) -> list[Cell]:
    """The other cells that are nearest by processes per node, then P, then size; several if they are equally near."""

    def numbers(one: Cell) -> tuple[int, int, int]:
        return one.place.processes_per_node, one.place.procs, max(1, one.message_bytes)

    def distance(other: Cell) -> tuple[float, ...]:
        return tuple(abs(math.log(here / there)) for here, there in zip(numbers(cell), numbers(other), strict=True))

    least = min(map(distance, others), default=())
    return [other for other in others if distance(other) == least]


def _ranked(cell: Cell, near: Sequence[Cell]) -> dict[str, float]:
    """The mean ranks of a cell's candidates in the near cells, from 0 (the fastest) to 1."""
    found: dict[str, list[float]] = {}
    for other in near:
        common = sorted(set(cell.candidates) & set(other.candidates), key=lambda name: (other.seconds[name], name))
        for rank, name in enumerate(common if len(common) > 1 else []):
            found.setdefault(name, []).append(rank / (len(common) - 1))
    return {name: sum(ranks) / len(ranks) for name, ranks in found.items()}
