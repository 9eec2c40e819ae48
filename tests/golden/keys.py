"""The configurations under which every runner stores times: no engine, MPI library, host or test bed is needed.

Installations stand for real ones, and programs are files with their names in them. Where a runner, a target or a
function moves, `PATCHED` and the calls below are what has to follow it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from collwise.platforms import load
from collwise.platforms.changes import Change, changed
from collwise.simulator.execution.cluster import LaunchOptions
from collwise.simulator.execution.installations import Installation
from collwise.simulator.execution.launchers import LocalMachine, Mpirun, Oar, Srun
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.application_runner import ApplicationRunner, CollectivesInUse
from collwise.simulator.sweeps.context import (
    SCHEDULE,
    SCHEDULE_LIKE_SMPI,
    SMPI,
    SMPI_ALGORITHM_1,
    Engine,
    SimulationContext,
    smpi_as_library,
)
from collwise.simulator.sweeps.experiment_runner import MeasuredExperiments, SimulatedExperiments
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import MpiRunner
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.guidelines.library import measured_library
from collwise.validation.hierarchy.drawn import draw
from collwise.validation.libraries.baselines import BASELINES, library_decisions
from collwise.validation.measurement.gain import deciding
from collwise.validation.testbed.bed import Bed
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way.verdicts import with_component
from tests.golden.shapes import masked

SWEEPS, EXECUTION = "collwise.simulator.sweeps", "collwise.simulator.execution"
VERSIONS = {"smpi": "3.32", "openmpi": "4.1.4", "mpich": "4.0.2"}
RULES = "# rules\nbcast 4 1 0 default\n"
PRECISE = Precision(5, 50, 0.95, 0.05)


@dataclass(frozen=True)
class Standing(Installation):
    """An installation whose programs are files in a folder."""

    def program(self, name: str) -> Path:
        """The file, which is made if it is not there."""
        file = self.build_directory / f"{self.library}-{name}"
        file.write_text(name)
        return file


def configurations(folder: Path) -> dict[str, Any]:
    """All of them, by what makes times."""
    with standing_in(folder):
        found = [*_simulated(), *_applications(), *_measured(folder)]
    assert len(dict(found)) == len(found)
    return {name: masked(one) for name, one in found}


@contextlib.contextmanager
def standing_in(folder: Path) -> Iterator[None]:
    """Installations, hosts and the engine's library are stand-ins in the folder."""

    def find(library: str, *_: object) -> Installation:
        return Standing(library, VERSIONS[library], Path("/usr/bin/mpirun"), folder, "")

    def hosts_of(target: Any) -> tuple[list[str], str]:
        return [host for host, slots in target.slots.items() for _ in range(slots)], "Open MPI v4.1.4, package: golden"

    engine = folder / "engine.so"
    engine.write_text("engine")
    environment = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_CLUSTER_NAME": "summer"}
    nodes = folder / "nodes"
    nodes.write_text("paravance-1\nparavance-1\nparavance-2\nparavance-2\n")
    patched: dict[str, Any] = {
        **{f"{SWEEPS}.{name}.smpi_installation": lambda *_: find("smpi") for name in _SIMULATORS},
        **dict.fromkeys(
            (
                f"{EXECUTION}.launchers.find_installation",
                f"{EXECUTION}.cluster.find_installation",
                "collwise.validation.testbed.target.find_installation",
            ),
            find,
        ),
        f"{EXECUTION}.launchers.machine.node": lambda: "here",
        f"{EXECUTION}.cluster.ClusterTarget._find_hosts": hosts_of,
        f"{EXECUTION}.launchers.shutil.which": lambda *_, **__: "/usr/bin/there",
        f"{SWEEPS}.schedule_runner.library_file": lambda: engine,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, stand_in in patched.items():
            patch.setattr(name, stand_in)
        for name, value in (environment | {"OAR_NODEFILE": str(nodes)}).items():
            patch.setenv(name, value)
        yield


_SIMULATORS = ("smpi_runner", "experiment_runner", "application_runner")


def _simulated() -> Iterator[tuple[str, Configuration]]:
    gros, drawn = load("gros"), draw(load("stampede2"), 3)
    platforms = {name: load(name) for name in ("gros", "stampede2", "fat-tree-1024", "hcl16", "dahu")} | {
        "gros, in another order": gros.reordered([1, 0, *range(2, 124)]),
        "gros, changed": changed(gros, [Change("bandwidth", "x2"), Change("overheads", "1us")]).platform,
    }
    with Store(":memory:") as store:
        context = SimulationContext(store)

        def configuration(platform: Any, engine: Engine, **others: Any) -> Configuration:
            return engine.collectives(platform, 4, replace(context, engine=engine, **others)).configuration

        for name, platform in platforms.items():
            yield f"schedule engine, {name}", configuration(platform, SCHEDULE)
            yield f"SMPI, {name}", configuration(platform, SMPI)
        for name in ("openmpi-4.1", "mpich-4"):
            library = library_decisions(BASELINES[name])
            yield f"schedule engine, mock-ups on {name}", configuration(gros, SCHEDULE, library=library)
        yield "schedule engine, like SMPI", configuration(gros, SCHEDULE_LIKE_SMPI)
        yield "drawn machine", configuration(drawn.platform, SCHEDULE_LIKE_SMPI if drawn.like_smpi else SCHEDULE)
        yield "SMPI, algorithm 1", configuration(gros, SMPI_ALGORITHM_1)
        yield "SMPI, as a library", configuration(gros, smpi_as_library("ompi"))
        yield "SMPI, as a library with rules", configuration(gros, smpi_as_library("impi", RULES))
    for in_parallel in (False, True):
        made = SimulatedExperiments(gros, 4, in_parallel=in_parallel)
        yield f"experiments in SMPI{', side by side' * in_parallel}", made.configuration
    other = SimulatedExperiments(gros, 4, program="experiments_algorithm_1")
    yield "experiments in SMPI, algorithm 1", other.configuration


def _applications() -> Iterator[tuple[str, Configuration]]:
    for name, choices in {
        "by a selector": CollectivesInUse("mvapich2", "mvapich2"),
        "by rules": CollectivesInUse("flat", rules=RULES),
    }.items():
        runner = ApplicationRunner(load("gros"), "asp", ["--rows", "192"], choices, procs=4)
        yield f"application, {name}", runner.configuration


def _targets() -> dict[str, ExecutionTarget]:
    options = LaunchOptions()
    tcp = LaunchOptions(processes_per_node=1, transport="tcp", extra_args=("--bind-to", "core"), any_nodes=True)
    facts = {"nodes": "8", "bits_per_second": "50000000", "congestion_control": "reno", "kernel": "Linux 6.1"}
    other = Shape(nodes=4, ranks_per_node=2, transport="default", switches=2, uplink_bits_per_second=1e7)
    return {
        "this machine, Open MPI": LocalMachine("openmpi"),
        "this machine, MPICH": LocalMachine("mpich"),
        "hosts": Mpirun({"node1": 2, "node2": 2}, options),
        "hosts, any nodes over TCP": Mpirun({"node1": 2, "node2": 2}, tcp),
        "hosts, MPICH": Mpirun({"node1": 1, "node2": 1}, LaunchOptions(library="mpich"), "oarsh"),
        "srun": Srun(options),
        "oar": Oar(options),
        "test bed": TestBed(Bed("usual", Shape(), facts)),
        "test bed, several processes a node": TestBed(Bed("other", other, facts | {"switches": "2"})),
    }


METHODS: Mapping[str, tuple[Method, dict[str, Any]]] = {
    "usual": (Method(), {}),
    "rounds": (Method("global", synchronisation="rounds", late_seconds=1e-4, warmup=3), {}),
    "NREP, samples": (Method("root", nrep=0.01, keep_samples=True, limit_seconds=0.0), {}),
    "third launch of a run": (Method(launches=3), {"run": "again", "launch": 3}),
    "random order": (Method(precision=Precision(10, 10)), {"in_random_order": True}),
}


def _measured(folder: Path) -> Iterator[tuple[str, Configuration]]:
    targets = _targets()
    for name, target in targets.items():
        yield f"MPI, {name}", MpiRunner(target, Method()).configuration
        yield f"experiments, {name}", MeasuredExperiments(target, 4, PRECISE).configuration
    here, bed = targets["this machine, Open MPI"], targets["test bed"]
    for name, (method, how) in METHODS.items():
        yield f"MPI, method: {name}", MpiRunner(here, method, **how).configuration
    counted = {Case("-", "-", 2, 8, experiment="roundtrip", peers="0,1"): 7}
    several = MeasuredExperiments(bed, 4, PRECISE, in_parallel=True, repetitions=counted)
    yield "experiments, side by side, counted", several.configuration
    for name in ("tuned", "han"):
        yield f"MPI, component {name}", MpiRunner(with_component(bed, name), Method()).configuration
    for way in ("rules", "libcollwise"):
        yield f"MPI, decided by {way}", MpiRunner(deciding(bed, way, "digest", {}), Method()).configuration
    yield from _guidelines(bed, folder)


def _guidelines(target: ExecutionTarget, folder: Path) -> Iterator[tuple[str, Configuration]]:
    """Those of a library that is checked and repaired on a target: two launches of each."""
    made: list[Configuration] = []

    def measure(where: ExecutionTarget, cases: Sequence[Case], _: Store, method: Method, **how: Any) -> list[Timing]:
        made.append(MpiRunner(where, method, **how).configuration)
        return [Timing(case, 1.0, median_seconds=1.0) for case in cases]

    case = Case("bcast", "-", 4, 1024, experiment="builtin")
    module = "collwise.validation.guidelines.library"
    with Store(":memory:") as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{module}.measure", measure)
        patch.setattr(f"{module}.verify_algorithms", lambda *_: None)
        patch.setattr("collwise.simulator.execution.interposed.preloadable", lambda library, _: str(library))
        patch.setattr(target, "shared_directory", lambda: contextlib.nullcontext(folder))
        library = measured_library(target, store, Method(keep_samples=True), launches=2)
        library.times([case])
        library.times_in_turn([case], RULES, {})
    for number, one in enumerate(made, 1):
        yield f"guidelines, measurement {number}", one
