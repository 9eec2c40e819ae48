"""MPI libraries under test: their own collectives and the mock-ups, timed in SMPI or on a real MPI."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from collwise.algorithms.catalogue import BUFFER_VARIABLES
from collwise.platforms import HostPlatform
from collwise.simulator.bench import Simulated
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.execution.interposed import LIBRARY, following_rules
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext, smpi_as_library
from collwise.simulator.sweeps.method import Method
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing, is_mock_up
from collwise.validation.guidelines.checks import Launches
from collwise.validation.libraries.baselines import Baseline, library_decisions
from collwise.validation.measurement.gain import verify_algorithms
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of

_MAX_SECONDS = 600.0
"""The time limit of the launch that only verifies which algorithms run, if the measuring method sets no limit."""
TITLES = {"ompi": "Open MPI", "mpich": "MPICH", "mvapich2": "MVAPICH2", "impi": "Intel MPI"}
"""The MPI libraries that SMPI's selectors imitate."""

CaseTimes = dict[Case, Launches]


@dataclass(frozen=True)
class Library:
    """An MPI library whose calls can be timed. `place` names the platform or execution target.

    `times_in_turn` times cases twice: without libcollwise, and with libcollwise and rules that choose an algorithm for
    some of the cases. Launches alternate, so that drift affects both equally. The function raises CollwiseError if
    libcollwise does not run what the rules say. `launches` is the number of launches in which each time is
    measured, 0 if times are exact.
    """

    name: str
    title: str
    place: str
    processes_per_node: Callable[[int], int]
    times: Callable[[Sequence[Case]], CaseTimes]
    times_in_turn: Callable[[Sequence[Case], str, Mapping[Case, Choice]], tuple[CaseTimes, CaseTimes]]
    launches: int = 0


def simulated_library(platform: HostPlatform, context: SimulationContext, selector: str, ppn: int = 0) -> Library:
    """A library as one of SMPI's selectors imitates it, with `ppn` processes per node (0: the platform's default)."""
    name = f"{platform.name}-{selector}"

    def times(cases: Sequence[Case], rules: str = "") -> CaseTimes:
        bench = Simulated(platform, replace(context, engine=smpi_as_library(selector, rules)))
        return _exact(bench.time(cases, f"{name}{' with libcollwise' if rules else ''}"))

    def times_in_turn(cases: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]) -> tuple[CaseTimes, CaseTimes]:
        return times(cases), times(cases, rules)

    title = f"SMPI's {selector} ({TITLES[selector]})"
    return Library(name, title, platform.title, _per_node(platform, ppn), times, times_in_turn)


def recorded_library(platform: HostPlatform, context: SimulationContext, baseline: Baseline, ppn: int = 0) -> Library:
    """A library whose decisions are known; the schedule engine plays what the library runs untuned.

    Unlike for SMPI's selectors, the number of processes is not limited. Algorithms that the catalogue lacks have no
    times, and neither have mock-ups that need such algorithms.
    """
    name, per_node = f"{platform.name}-{baseline.name}", _per_node(platform, ppn)
    bench = Simulated(platform, replace(context, engine=SCHEDULE, library=library_decisions(baseline)))

    def times(cases: Sequence[Case]) -> CaseTimes:
        found: CaseTimes = {}
        played: dict[Case, Case] = {}
        for case in cases:
            point = case.procs, case.message_bytes
            decision = None if is_mock_up(case) else baseline.decide(case.collective, *point)
            if decision is None:
                played[case] = case
            elif decision.choice is not None:
                played[case] = following(case, decision.choice)
            else:
                what = f"{decision.algorithm} for {case.collective}"
                found[case] = Launches((), f"{baseline.title} runs {what}, which the catalogue does not have")
        timings = _exact(bench.time(list(dict.fromkeys(played.values())), name))
        return found | {case: timings[what] for case, what in played.items()}

    def times_in_turn(cases: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]) -> tuple[CaseTimes, CaseTimes]:
        # Rules replace calls that the program makes, but not the calls that a mock-up makes.
        replaced = {case: following(case, chosen[case]) if case in chosen else case for case in cases}
        found = times(list(dict.fromkeys([*cases, *replaced.values()])))
        return {case: found[case] for case in cases}, {case: found[what] for case, what in replaced.items()}

    def following(case: Case, choice: Choice) -> Case:
        return case_of(case.collective, choice, case.procs, case.message_bytes, per_node(case.procs))

    return Library(name, f"{baseline.title} as recorded", platform.title, per_node, times, times_in_turn)


def measured_library(
    target: ExecutionTarget,
    store: Store,
    method: Method,
    launches: int = 10,
    on_launch: Callable[[int, int], None] = lambda done, of: None,
) -> Library:
    """A real MPI library on a target. Each time is measured in `launches` separate executions of MPI.

    The order of algorithms differs in each execution, since the first cases can be slower. `on_launch` gets the number
    of finished launches and the number of all launches.
    """

    def launched(cases: Sequence[Case], targets: Sequence[ExecutionTarget], run: str) -> list[CaseTimes]:
        found: list[list[list[Timing]]] = [[] for _ in targets]
        for launch in range(1, launches + 1):
            for where, timings in zip(targets, found, strict=True):
                label = f"guidelines, {run}launch {launch}"
                timings.append(measure(where, cases, store, method=method, run=label, in_random_order=True))
            on_launch(launch, launches)
        return [_medians(cases, timings) for timings in found]

    def times_in_turn(cases: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]) -> tuple[CaseTimes, CaseTimes]:
        with target.shared_directory() as folder:
            replacing = _replacing(target, rules, folder)
            reporting = replacing.modified({"decided_by": "report"})
            verify_algorithms(reporting, folder, chosen, method.max_seconds(len(chosen)) or _MAX_SECONDS)
            # Both targets run all cases, since cases can be faster in a longer launch.
            plain, repaired = launched(cases, [target, replacing], "again, ")
        return plain, repaired

    def times(cases: Sequence[Case]) -> CaseTimes:
        return launched(cases, [target], "")[0]

    name, title = f"{target.name}-{target.installation.library}", target.installation.label
    return Library(name, title, target.name, target.processes_per_node, times, times_in_turn, launches)


def _per_node(platform: HostPlatform, ppn: int) -> Callable[[int], int]:
    return lambda procs: ppn or platform.default_processes_per_node


def _exact(timings: Mapping[Case, Timing]) -> CaseTimes:
    return {case: Launches((time.seconds,) if time.ok else (), time.error) for case, time in timings.items()}


def _medians(cases: Sequence[Case], launches: Sequence[Sequence[Timing]]) -> CaseTimes:
    found = {}
    for case, timings in zip(cases, zip(*launches, strict=True), strict=True):
        problem = next((timing.error for timing in timings if not timing.ok), "")
        found[case] = Launches(() if problem else tuple(timing.median_seconds for timing in timings), problem)
    return found


def _replacing(target: ExecutionTarget, rules: str, folder: Path) -> ExecutionTarget:
    """The target with libcollwise preloaded and following the rules."""
    library = target.installation.program(LIBRARY)
    facts = {"rules": hashlib.sha256(rules.encode()).hexdigest(), "libcollwise": file_digest(library)}
    buffers = {name: os.environ[name] for name in BUFFER_VARIABLES if name in os.environ}
    return target.modified(facts, {**following_rules(rules, library, folder), **buffers})
