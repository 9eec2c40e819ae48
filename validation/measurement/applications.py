"""Gains of applications from other choices of collectives, by simulated times, in total and within collectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError, check_name, unknown_name, warn
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.execution.interposed import LibraryOptions
from collwise.simulator.sweeps.application_runner import ApplicationRunner, CollectivesInUse, application_cases
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import run_cases
from collwise.validation.libraries.baselines import BASELINES, Baseline
from collwise.validation.select.consumers import COLLWISE, algorithms_for, sees_sizes
from collwise.validation.select.decisions import DecisionTable, decisions_from
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform

SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
"""SMPI's selectors, which make the decisions of versions of Open MPI, MPICH, MVAPICH2 and Intel MPI."""
FLAT, HIERARCHICAL = "flat", "hierarchical"
NAMES = (*SELECTORS, *BASELINES, FLAT, HIERARCHICAL)
"""Names of choices of collectives: selectors, untuned libraries, and tuned tables. A file may also be a choice."""
COLLECTIVES, SEGMENTS = "ompi,flat,hierarchical", "64KiB:1MiB:x2"
"""The default choices of collectives that are compared, and the default segment sizes."""


@dataclass(frozen=True)
class Application:
    """A program of ours: its options with their defaults, and the operations per second of its computation."""

    name: str
    options: Mapping[str, int]
    rate: float
    operation: str


_OPERATIONS = "additions and multiplications"
APPLICATIONS: Mapping[str, Application] = {
    item.name: item
    for item in (
        # All-pairs shortest paths: the processes take turns to broadcast rows.
        Application("asp", {"size": 1048576, "rows": 0, "iterations": 24}, 1e9, "updates of a distance"),
        # Master-worker matrix multiplication: scatterv, bcast, gatherv.
        Application("matmul", {"size": 4096, "repetitions": 1, "fastest": 1}, 2e10, _OPERATIONS),
        # Data-parallel training of AlexNet: allreduce of gradients.
        Application("training", {"steps": 1, "batch": 8, "fusion-bytes": 2**26, "overlap": 1}, 2e10, _OPERATIONS),
    )
}


@dataclass(frozen=True)
class ApplicationRow:
    """One execution: its seconds, and the mean and maximum over processes of the seconds within collectives."""

    application: str
    collectives: str
    procs: int
    processes_per_node: int
    seconds: float
    mean_seconds: float
    max_seconds: float
    speedup: float
    """The time with the first choice of collectives, divided by the time with this choice."""
    algorithms: str = ""
    """The algorithms that the rules name, if there are rules."""
    error: str = ""
    """The reason why all times are nan; empty if they are known."""

    @property
    def mean_share(self) -> float:
        """The share of the time that processes spend within collectives, on average."""
        return self.mean_seconds / self.seconds

    @property
    def max_share(self) -> float:
        """The largest share of the time that a process spends within collectives."""
        return self.max_seconds / self.seconds


def application_of(name: str) -> Application:
    """The application of that name. Raises UsageError, which lists the valid names, if there is none."""
    check_name("application", name, APPLICATIONS)
    return APPLICATIONS[name]


def arguments_of(application: Application, settings: Mapping[str, int], rate: float | None) -> list[str]:
    """The program's arguments for modelled computation. Raises UsageError for settings of other applications."""
    for name in settings:
        check_name(f"setting of {application.name}", name, application.options)
    chosen = {**application.options, **settings}
    words = [word for name, value in chosen.items() for word in (f"--{name}", str(value))]
    return [*words, "--rate", repr(rate or application.rate)]


def compare_collectives(
    platform: HostPlatform,
    application: Application,
    procs: Sequence[int],
    processes_per_node: int,
    names: Sequence[str],
    context: SimulationContext,
    *,
    settings: Mapping[str, int],
    rate: float | None = None,
    segments: Sequence[int],
) -> list[ApplicationRow]:
    """A row for each process count and choice of collectives.

    The context's engine times the algorithms that tables choose from; applications run in SMPI. Raises UsageError for
    unknown names and for processes that do not fit on the platform, CollwiseError if an application does not report
    its calls.
    """
    arguments = arguments_of(application, settings, rate)
    for name in names:
        if name not in NAMES and not Path(name).suffix:
            raise unknown_name("choice of collectives", name, NAMES, "or a file of decisions or rules")
    for count in procs:
        platform.hosts_for(count, processes_per_node)
    rows: list[ApplicationRow] = []

    def runner(in_use: CollectivesInUse, count: int) -> ApplicationRunner:
        return ApplicationRunner(platform, application.name, arguments, in_use, count, context.simgrid)

    for count in procs:
        first = math.nan
        own = runner(CollectivesInUse("ompi"), count)
        tuning = _Tuning(platform, own, count, processes_per_node, tuple(segments), context)
        for name in names:
            tables = tuning.tables(name)
            for table in tables:
                if count not in table.decided_procs:
                    warn(f"{name}: P = {count} was not decided; {table.between_procs}")
            cases = application_cases(application.name, name, count, processes_per_node)
            with context.progress(f"{application.name} with {name}, P = {count}") as advance:
                found = run_cases(runner(_in_use(name, tables), count), cases, context.store, advance).timings
            total, within = (found[case] for case in cases)
            first = total.seconds if name == names[0] else first
            times = (total.seconds, within.seconds, within.greatest_seconds, first / total.seconds)
            row = ApplicationRow(application.name, name, count, processes_per_node, *times)
            rows.append(replace(row, algorithms=_algorithms(tables, count), error=total.error))
    warn_of_free_messages(platform)
    return rows


def _in_use(name: str, tables: Sequence[DecisionTable]) -> CollectivesInUse:
    from collwise.validation.libraries.collwise_table import collwise_rules

    if name in SELECTORS:
        return CollectivesInUse(name, name)
    if tables:
        return CollectivesInUse(name, rules=collwise_rules(tables))
    path = Path(name)
    LibraryOptions(path).check()
    return CollectivesInUse(name, rules=path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _Tuning:
    """Makes decision tables for one process count and for the calls of an application, which `own` lists."""

    platform: HostPlatform
    own: ApplicationRunner
    procs: int
    per_node: int
    segments: tuple[int, ...]
    context: SimulationContext

    def tables(self, name: str) -> list[DecisionTable]:
        """The decision tables of a choice of collectives; empty for a selector and for a file of rules."""
        if name in SELECTORS:
            return []
        if name in BASELINES:
            return self._untuned(BASELINES[name])
        if name in NAMES:
            return self._tuned(by_node=name == HIERARCHICAL)
        return decisions_from(Path(name)) if Path(name).suffix == ".json" else []

    @cached_property
    def _sizes(self) -> dict[str, tuple[int, ...]]:
        """The message sizes of the calls, ascending, by collective."""
        sizes: dict[str, set[int]] = {}
        for call in self.own.calls(self.procs, self.per_node):
            sizes.setdefault(call.collective, set()).add(call.message_bytes)
        return {collective: tuple(sorted(found)) for collective, found in sizes.items()}

    def _untuned(self, baseline: Baseline) -> list[DecisionTable]:
        """The untuned decisions of a library, for calls for which we have the library's algorithm."""
        tables = []
        for name, sizes in self._sizes.items():
            asked = sizes if sees_sizes(COLLWISE, name) else sizes[:1]
            found = [(size, baseline.choice(name, self.procs, size)) for size in asked if name in baseline.collectives]
            row = tuple((size, choice) for size, choice in found if choice is not None)
            if row:
                rules = {self.procs: _from_the_start(row)}
                tables.append(DecisionTable(name, self.platform.name, self.per_node, "library", baseline.title, rules))
        if not tables:
            known = f"decision of {baseline.title} for {', '.join(self._sizes)} that our algorithms implement"
            raise UsageError(f"{baseline.name}: no {known}; valid: {', '.join(SELECTORS)}")
        return tables

    def _tuned(self, by_node: bool) -> list[DecisionTable]:
        """The fastest simulated algorithm for each call; hierarchical ones are candidates only if `by_node` is true."""
        from collwise.validation.select.select import select
        from collwise.validation.times.memory_limits import warn_of_doubtful
        from collwise.validation.times.sources import simulate

        catalogue = Catalogue.load()
        grids = []
        for text, sizes in self._sizes.items():
            offered = algorithms_for(text, COLLWISE, by_node=by_node)
            names = tuple(name for name in offered if not catalogue.algorithm(text, name).real_mpi_only)
            grids.append(Grid.of(text, (self.procs,), sizes, self.per_node, self.segments, names))
        sized = {size: sees_sizes(COLLWISE, size) for size in self._sizes}
        margins = {text: 0.0 for text, by_size in sized.items() if by_size}
        found = simulate(self.platform, grids, self.context, margins)
        warn_of_free_messages(self.platform)
        warn_of_doubtful(self.platform, grids)
        tables = [select(times, not sized[times.collective]) for times in found]
        failed = [timing for times in found for timing in times.failed]
        if failed and not all(table.rules for table in tables):
            raise CollwiseError(f"{len(failed)} cases failed; first: {failed[0].error}")
        return [replace(item, rules={p: _from_the_start(row) for p, row in item.rules.items()}) for item in tables]


def _from_the_start(row: tuple[tuple[int, Choice], ...]) -> tuple[tuple[int, Choice], ...]:
    """The row with its first choice from 0 bytes on, so that an untimed first call runs the same algorithm."""
    return ((0, row[0][1]), *row[1:]) if row else row


def _algorithms(tables: Sequence[DecisionTable], procs: int) -> str:
    """The choices of the tables for a process count, by collective."""
    labels = [(table.collective, dict.fromkeys(choice.label for _, choice in table.row(procs))) for table in tables]
    return "; ".join(f"{collective}: {' / '.join(found)}" for collective, found in labels)
