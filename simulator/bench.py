"""Benches time cases and make experiments; a bench is an engine on a platform, or a method at an execution target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Case, Timing

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.simulator.execution.targets import ExecutionTarget
    from collwise.simulator.sweeps.experiment_runner import ExperimentLaboratory
    from collwise.simulator.sweeps.method import Method


class Timer(Protocol):
    """A bench or another source of timings of cases."""

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        """The timings of cases; the timing of a failed case has an error."""


@dataclass(frozen=True)
class Simulated:
    """An engine on a platform."""

    platform: HostPlatform
    context: SimulationContext
    # The engine may leave out a collective's cases that are slower than the fastest by more than its margin, a share.
    margins: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    source = "simulated"
    is_exact = True

    @property
    def name(self) -> str:
        """The platform's name."""
        return self.platform.name

    @property
    def made_by(self) -> str:
        """The engine that makes the times, as parameter files name it."""
        return self.context.engine.collectives(self.platform, 1, self.context).configuration.maker

    @property
    def eager_limit_bytes(self) -> int:
        """The size from which messages wait for their receiver, bytes."""
        return self.platform.eager_limit_bytes

    @property
    def reduce_seconds_per_byte(self) -> float | None:
        """The time to combine a byte of a reduction; None if it is not known and has to be measured."""
        return self.platform.reduce_seconds_per_byte

    @property
    def is_heterogeneous(self) -> bool:
        """True if nodes are known to differ."""
        return self.platform.heterogeneous

    @property
    def max_procs(self) -> int:
        """The largest number of processes for fits: one on each node."""
        return len(self.platform.hosts)

    def alike(self, procs: int) -> tuple[int, int]:
        """The number of processes among which all pairs are equal, and how many of them are on each node."""
        return len(self.platform.hosts), 1

    def processes_per_node(self, procs: int) -> int:
        """The platform's default number of processes on each node."""
        return self.platform.default_processes_per_node

    def run(self, cases: Sequence[Case], label: str = "") -> RunResult:
        """The timings of cases, with the numbers of reused timings and of started processes."""
        margins = self.margins if self.context.engine.leaves_out else {}
        return replace(self.context, tolerances=margins).simulate(self.platform, cases, label)

    def time(self, cases: Sequence[Case], label: str = "") -> Mapping[Case, Timing]:
        """The simulated timings, without the cases that were left out."""
        return self.run(cases, label).timings

    def laboratory(self, procs: int, processes_per_node: int = 1) -> ExperimentLaboratory:
        """The laboratory for experiments between the first `procs` processes."""
        return self.context.laboratory(self.platform, procs, processes_per_node)


@dataclass(frozen=True)
class Measured:
    """A method at an execution target. Each launch is stopped after `limit_seconds`.

    The default limit is the sum of the method's own limits. With another value of `run`, everything is measured again.
    """

    target: ExecutionTarget
    context: SimulationContext
    method: Method
    limit_seconds: float | None = None
    run: str = ""
    source = "measured"
    is_exact = False
    is_heterogeneous = False  # nodes of a target are taken to be equal
    reduce_seconds_per_byte = None

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    @property
    def made_by(self) -> str:
        """'measured' and the MPI library."""
        return f"measured, {self.target.installation.label}"

    @property
    def eager_limit_bytes(self) -> int:
        """The size from which messages wait for their receiver, bytes."""
        return self.target.eager_limit_bytes

    @property
    def max_procs(self) -> int:
        """The number of processes that the target usually runs."""
        return self.target.usual_procs

    def alike(self, procs: int) -> tuple[int, int]:
        """All processes, and the target's number of processes on each node."""
        return procs, self.target.processes_per_node(procs)

    def processes_per_node(self, procs: int) -> int:
        """The target's number of processes on each node."""
        return self.target.processes_per_node(procs)

    def time(self, cases: Sequence[Case], label: str = "") -> Mapping[Case, Timing]:
        """The measured timings, combined over several launches."""
        from collwise.simulator.sweeps.mpi_runner import measure

        asked = list(dict.fromkeys(cases))
        options = {"timeout_seconds": self.limit_seconds, "run": self.run}
        with self.context.progress(label or f"measuring on {self.target.name}") as advance:
            made = measure(self.target, asked, self.context.store, self.method, on_progress=advance, **options)
        return dict(zip(asked, made, strict=True))

    def laboratory(self, procs: int, processes_per_node: int = 1) -> ExperimentLaboratory:
        """The laboratory for experiments between the first `procs` processes, with the method's precision."""
        from collwise.simulator.sweeps.experiment_runner import TIME_LIMIT_SECONDS, ExperimentLaboratory

        limit = TIME_LIMIT_SECONDS if self.limit_seconds is None else self.limit_seconds
        return ExperimentLaboratory.measured(
            self.target, procs, self.context.store, precision=self.method.precision, limit_seconds=limit
        )


Bench: TypeAlias = Simulated | Measured
"""A bench times cases and makes experiments. Cases in the store are not timed again, so a stopped command resumes."""
