"""The baselines that choices are compared with: what an MPI library of some version decides untuned."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, check_name
from collwise.common.units import counted
from collwise.simulator.timing import Case
from collwise.validation.libraries import mpich_untuned, openmpi_untuned
from collwise.validation.libraries.openmpi_3 import DECIDED, decide as decide_by_openmpi_3
from collwise.validation.times.choice import Choice, Decision
from collwise.validation.times.grid import Grid, case_of

if TYPE_CHECKING:
    from collwise.simulator.schedule.library import LibraryDecisions


@dataclass(frozen=True)
class Baseline:
    """An untuned library: its name as the value of an option, its title, and its decision for a call.

    `nodes` says what the library does differently with several processes on a node; it is empty if nothing differs.
    `known` are the collectives whose decisions are known; it is empty if all are.
    """

    name: str
    title: str
    decision: Callable[[str, int, int], Decision]
    nodes: str = ""
    known: Sequence[str] = ()

    @property
    def collectives(self) -> Sequence[str]:
        """The collectives whose decisions are known."""
        return self.known or tuple(Catalogue.load().collectives)

    def decide(self, collective: str, procs: int, message_bytes: int) -> Decision:
        """The decision for a call. Raises UsageError for a collective whose decision is not known."""
        if collective not in self.collectives:
            ours = f"{self.title} for collective '{collective}'; valid: {', '.join(self.collectives)}"
            others = ", ".join(item.name for item in BASELINES.values() if collective in item.collectives)
            raise UsageError(f"no fixed decision of {ours}" + (f" (--baseline {others})" if others else ""))
        return self.decision(collective, procs, message_bytes)

    def otherwise(self, processes_per_node: int) -> str:
        """The text on what the library does differently with so many processes on a node; empty if nothing differs."""
        return self.nodes if processes_per_node > 1 else ""

    def choice(self, collective: str, procs: int, message_bytes: int) -> Choice | None:
        """The catalogue's choice that is the same as the decision; None if there is none."""
        return self.decide(collective, procs, message_bytes).choice


def _by_openmpi_3(collective: str, procs: int, message_bytes: int) -> Decision:
    choice = decide_by_openmpi_3(collective, procs, message_bytes)
    return Decision(choice.algorithm, choice)


_HAN = (
    "with several processes on a node, Open MPI 5.0 runs its component han if that is installed; the baseline is its "
    "component 'tuned'"
)
_COMPOSITIONS = (
    "with several processes on a node, MPICH combines algorithms within and between nodes (bcast, reduce, allreduce, "
    "barrier, scan); the baseline is what MPICH decides for one process on each node"
)
BASELINES = {
    item.name: item
    for item in (
        Baseline("openmpi-4.1", "Open MPI 4.1", openmpi_untuned.decide),
        Baseline("openmpi-5.0", "Open MPI 5.0", openmpi_untuned.decide, _HAN),
        Baseline("mpich-4", "MPICH 4", mpich_untuned.decide, _COMPOSITIONS),
        Baseline("openmpi-3.1", "Open MPI 3.1", _by_openmpi_3, known=DECIDED),
    )
}
"""Baselines by name, the default first."""
DEFAULT = BASELINES["openmpi-4.1"]
PAPERS = BASELINES["openmpi-3.1"]
"""The baseline of Nuriyev & Lastovetsky 2021."""


def baseline(name: str | None = None) -> Baseline:
    """The baseline of that name; without a name, that of the installed Open MPI, or else that of Open MPI 4.1.

    Raises UsageError for an unknown name.
    """
    if name is not None:
        check_name("baseline", name, BASELINES)
        return BASELINES[name]
    from collwise.simulator.execution.installations import mpi_installation

    try:
        version = mpi_installation("openmpi").version
    except UsageError:
        version = ""
    series = ".".join(version.split(".")[:2])
    return BASELINES.get(f"openmpi-{series}", DEFAULT)


def baseline_of(library: str, processes_per_node: int) -> Baseline | None:
    """The baseline, if any, that decides as a library with this name and version does, such as 'Open MPI 4.1.5'."""
    given = library.casefold().replace(" v", "").replace(" ", "")
    found = next((one for one in BASELINES.values() if given.startswith(one.title.casefold().replace(" ", ""))), None)
    return None if found is None or found.otherwise(processes_per_node) else found


def library_decisions(baseline: Baseline = DEFAULT) -> LibraryDecisions:
    """The library's decisions for its own collectives, which the recorder of mock-ups needs.

    The digest covers the code and the table that make the decisions.
    """
    from collwise.simulator.schedule.library import LibraryDecisions

    module = inspect.getsourcefile(baseline.decision)
    table = mpich_untuned.TABLE_PATH if baseline.decision == mpich_untuned.decide else openmpi_untuned.TABLE_PATH
    sources = [Path(file) for file in (module, inspect.getsourcefile(Decision), table) if file]
    text = b"".join(source.read_bytes() for source in sources)
    return LibraryDecisions(baseline.name, hashlib.sha256(text).hexdigest(), partial(_decided, baseline))


def _decided(baseline: Baseline, collective: str, procs: int, message_bytes: int) -> Case:
    """The case that does what the library runs for a call. Raises UsageError if the catalogue does not have it."""
    decision = baseline.decide(collective, procs, message_bytes)
    if decision.choice is None:
        raise UsageError(
            f"{baseline.title} runs {decision.algorithm} for {collective}, which the catalogue does not have"
        )
    return case_of(collective, decision.choice, procs, message_bytes)


def remarks_on(baseline: Baseline, grid: Grid) -> list[str]:
    """Lines for the user: the baseline's algorithms that are not in the catalogue, and what `baseline.nodes` says."""
    decisions = [baseline.decide(grid.collective, *point) for point in grid.points]
    missing = [decision.algorithm for decision in decisions if decision.choice is None]
    lines = []
    if missing:
        lines.append(
            f"{grid.collective}: no time for {baseline.title} at {counted(len(missing), 'point')}, since the catalogue "
            f"has no algorithm that is the same as its {', '.join(dict.fromkeys(missing))}"
        )
    if otherwise := baseline.otherwise(grid.processes_per_node):
        lines.append(f"{grid.collective}: {otherwise}")
    return lines
