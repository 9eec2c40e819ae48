"""MPI libraries under test: their own collectives and the mock-ups, timed in SMPI or on a real MPI."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Protocol

from collwise.algorithms.catalogue import BUFFER_VARIABLES
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.execution.interposed import LIBRARY, LibraryOptions, preloadable
from collwise.simulator.execution.targets import ExecutionTarget, ModifiedTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext, smpi_as_library
from collwise.simulator.sweeps.method import Method
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing, is_mock_up
from collwise.validation.guidelines.criteria import Times
from collwise.validation.library_defaults.baselines import Baseline, library_decisions
from collwise.validation.measurement.gain import verify_algorithms
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of

# The limit of the launch that only shows what runs, where the method has none.
_MOST_SECONDS = 600.0

TITLES = {"ompi": "Open MPI", "mpich": "MPICH", "mvapich2": "MVAPICH2", "impi": "Intel MPI"}
"""The libraries that SMPI's selectors stand for."""


class Library(Protocol):
    """An MPI library in a place, whose calls can be timed."""

    @property
    def name(self) -> str:
        """Short, for file names."""

    @property
    def title(self) -> str:
        """For readers."""

    @property
    def place(self) -> str:
        """The platform or target."""

    @property
    def exact(self) -> bool:
        """Whether times are exact, as simulated ones are."""

    def processes_per_node(self, procs: int) -> int:
        """The number of processes on each node. Raises UsageError when there is no room for so many."""

    def times(self, cases: Sequence[Case]) -> dict[Case, Times]:
        """The times of cases."""

    def times_in_turn(
        self, cases: Sequence[Case], tuned: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]
    ) -> tuple[dict[Case, Times], dict[Case, Times]]:
        """The times of cases, and of `tuned`, which has all of them, under libcollwise with rules that choose `chosen`.

        Both are launched in turn, so that drift affects them alike. Raises CollwiseError where libcollwise does not run
        what the rules say.
        """


@dataclass(frozen=True)
class _OnPlatform:
    """A library on a platform, with `ppn` processes on each node; 0: as many as the platform says."""

    platform: HostPlatform
    context: SimulationContext
    _: KW_ONLY
    ppn: int = 0
    exact: bool = True

    @property
    def place(self) -> str:
        """The platform."""
        return self.platform.title

    def processes_per_node(self, procs: int) -> int:
        """The number of processes on a node: as asked for, by default as the platform says."""
        return self.ppn or self.platform.default_processes_per_node


@dataclass(frozen=True)
class SimulatedLibrary(_OnPlatform):
    """A library that one of SMPI's selectors stands for, on a platform."""

    selector: str

    @property
    def name(self) -> str:
        """As `Library.name`."""
        return f"{self.platform.name}-{self.selector}"

    @property
    def title(self) -> str:
        """As `Library.title`."""
        return f"SMPI's {self.selector} ({TITLES[self.selector]})"

    def times(self, cases: Sequence[Case], rules: str = "") -> dict[Case, Times]:
        """The simulated times, with libcollwise where there are rules; those of cases that failed are empty."""
        context = replace(self.context, engine=smpi_as_library(self.selector, rules))
        found = context.simulate(self.platform, cases, f"{self.name}{' with libcollwise' if rules else ''}").timings
        return {case: _exact(timing) for case, timing in found.items()}

    def times_in_turn(
        self, cases: Sequence[Case], tuned: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]
    ) -> tuple[dict[Case, Times], dict[Case, Times]]:
        """The times without and with libcollwise; there is no drift, and exact times show what ran."""
        return self.times(cases), self.times(tuned, rules)


@dataclass(frozen=True)
class RecordedLibrary(_OnPlatform):
    """A library whose decisions are known, on a platform: the schedule engine plays what it runs untuned.

    It has no limit like that of SMPI's selectors on the number of processes.
    """

    baseline: Baseline

    @property
    def name(self) -> str:
        """As `Library.name`."""
        return f"{self.platform.name}-{self.baseline.name}"

    @property
    def title(self) -> str:
        """As `Library.title`."""
        return f"{self.baseline.title} as recorded"

    def times(self, cases: Sequence[Case]) -> dict[Case, Times]:
        """The times of the catalogue's algorithms that the library decides for, and of mock-ups that call them.

        Those of algorithms that the catalogue lacks, and of mock-ups that need these, are empty.
        """
        found: dict[Case, Times] = {}
        played: dict[Case, Case] = {}
        for case in cases:
            decision = None if is_mock_up(case) else self.baseline.decide(case.collective, *_point(case))
            if decision is None:
                played[case] = case
            elif decision.choice is not None:
                played[case] = self._case(case, decision.choice)
            else:
                what = f"{decision.algorithm} for {case.collective}"
                found[case] = Times((), f"{self.baseline.title} runs {what}, which the catalogue does not have")
        context = replace(self.context, engine=SCHEDULE, library=library_decisions(self.baseline))
        timings = context.simulate(self.platform, list(dict.fromkeys(played.values())), self.name).timings
        return found | {case: _exact(timings[what]) for case, what in played.items()}

    def times_in_turn(
        self, cases: Sequence[Case], tuned: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]
    ) -> tuple[dict[Case, Times], dict[Case, Times]]:
        """The times without and with the choices, which replace calls of the program and none of mock-ups."""
        replaced = {case: self._case(case, chosen[case]) if case in chosen else case for case in tuned}
        found = self.times(list(dict.fromkeys([*cases, *replaced.values()])))
        return {case: found[case] for case in cases}, {case: found[what] for case, what in replaced.items()}

    def _case(self, case: Case, choice: Choice) -> Case:
        return case_of(case.collective, choice, *_point(case), self.processes_per_node(case.procs))


def _point(case: Case) -> tuple[int, int]:
    return case.procs, case.message_bytes


def _exact(timing: Timing) -> Times:
    return Times((timing.seconds,)) if timing.ok else Times((), timing.error)


@dataclass(frozen=True)
class MeasuredLibrary:
    """A real MPI library on a target. Each time is measured in `launches` separate executions of MPI.

    Algorithms follow one another in another order in each, since the first cases of an execution can be slower.
    `on_launch` gets the number of finished launches and that of all.
    """

    target: ExecutionTarget
    store: Store
    method: Method
    launches: int = 10
    on_launch: Callable[[int, int], None] = lambda done, of: None
    exact: bool = False

    @property
    def name(self) -> str:
        """As `Library.name`."""
        return f"{self.target.name}-{self.target.installation.library}"

    @property
    def title(self) -> str:
        """As `Library.title`."""
        return self.target.installation.label

    @property
    def place(self) -> str:
        """The target."""
        return self.target.name

    def processes_per_node(self, procs: int) -> int:
        """As many as on the target."""
        return self.target.processes_per_node(procs)

    def times(self, cases: Sequence[Case]) -> dict[Case, Times]:
        """The medians of all launches."""
        return self._launched([(cases, self.target)], "")[0]

    def times_in_turn(
        self, cases: Sequence[Case], tuned: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]
    ) -> tuple[dict[Case, Times], dict[Case, Times]]:
        """The medians of all launches without and with libcollwise, whose report is read first."""
        with self.target.shared_directory() as folder:
            following = self._following(rules, folder)
            reporting = ModifiedTarget(following, {"decided_by": "report"})
            verify_algorithms(reporting, folder, chosen, self.method.most_seconds(len(chosen)) or _MOST_SECONDS)
            # Both run all cases, since those of a longer launch can be faster.
            plain, repaired = self._launched([(tuned, self.target), (tuned, following)], "again, ")
        return {case: plain[case] for case in cases}, repaired

    def _launched(self, ways: Sequence[tuple[Sequence[Case], ExecutionTarget]], run: str) -> list[dict[Case, Times]]:
        found: list[list[list[Timing]]] = [[] for _ in ways]
        for launch in range(1, self.launches + 1):
            for (cases, target), timings in zip(ways, found, strict=True):
                label = f"guidelines, {run}launch {launch}"
                made = measure(target, cases, self.store, method=self.method, run=label, in_random_order=True)
                timings.append(made)
            self.on_launch(launch, self.launches)
        return [_by_case(cases, timings) for (cases, _), timings in zip(ways, found, strict=True)]

    def _following(self, rules: str, folder: Path) -> ModifiedTarget:
        """The target with libcollwise preloaded and following the rules."""
        table = folder / "rules"
        table.write_text(rules, encoding="utf-8")
        library = self.target.installation.program(LIBRARY)
        facts = {"rules": hashlib.sha256(rules.encode()).hexdigest(), "libcollwise": file_digest(library)}
        variables = {
            "LD_PRELOAD": preloadable(library, folder),
            **LibraryOptions(table).environment,
            **{name: os.environ[name] for name in BUFFER_VARIABLES if name in os.environ},
        }
        return ModifiedTarget(self.target, facts, environment=variables)


def _by_case(cases: Sequence[Case], launches: Sequence[Sequence[Timing]]) -> dict[Case, Times]:
    found = {}
    for case, timings in zip(cases, zip(*launches, strict=True), strict=True):
        problem = next((one.error for one in timings if not one.ok), "")
        found[case] = Times(() if problem else tuple(one.median_seconds for one in timings), problem)
    return found
