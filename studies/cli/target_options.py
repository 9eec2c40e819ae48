"""Options that name an execution target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import REACH_SECONDS, TRANSPORTS
from collwise.simulator.execution.installations import MPI_LIBRARIES
from collwise.studies.cli.declare import flag, group, option, refuse_options
from collwise.studies.cli.options import MEASURING, PRECISION, SIMULATING
from collwise.studies.cli.types import PLATFORM, SIZE, FiniteRange, NamedChoice
from collwise.targets import TARGET_OPTIONS, TargetOptions, refuse_target_details, target_from

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform

_OPTIONS: dict[str, Any] = {
    "library": option(NamedChoice("MPI library", MPI_LIBRARIES)),
    "hosts": option(),
    "launcher": option(NamedChoice("launcher", ("mpirun", "srun", "oar"))),
    "testbed": option(is_flag=False, flag_value="bed"),
    "ppn": option(click.IntRange(1), key="ppn of a target"),
    "remote_shell": option(default=""),
    "transport": option(NamedChoice("transport", TRANSPORTS)),
    "eager_limit": option(SIZE),
    "mpirun_args": option(default=""),
    "reach": option(FiniteRange(1), REACH_SECONDS),
    "any_nodes": flag(),
}


def _without(*names: str) -> Any:
    return group(TargetOptions, **{name: one for name, one in _OPTIONS.items() if name not in names})


def target(*without: str) -> Any:
    """The options that name a target, without some, as the ExecutionTarget."""
    names = {name: one for name, one in _OPTIONS.items() if name not in without}
    return group(lambda **given: target_from(TargetOptions(**given)), **names)


TARGET = _without()
"""The options that name a target, as TargetOptions for `target_from`."""
TARGET_BESIDE_TESTBEDS = _without("testbed", "transport", "ppn")
"""The same for a command whose own options describe test beds."""


def _if_named(**named: Any) -> TargetOptions | None:
    """The options of a target; None where none is named. Raises UsageError for options that need one."""
    where = TargetOptions(**named)
    if where.named:
        return where
    refuse_target_details(where)
    refuse_options(MEASURING, f"measured times ({TARGET_OPTIONS})")
    return None


TARGET_IF_NAMED = group(_if_named, **{name: one for name, one in _OPTIONS.items() if name != "ppn"})
"""The target of a command that also simulates, and has a --ppn of its own."""


def _bench(platform: HostPlatform | None, **named: Any) -> HostPlatform | TargetOptions:
    """The platform or target of experiments. Raises UsageError for options of the other one."""
    where = TargetOptions(**named)
    if (platform is None) == (not where.named):
        raise UsageError(f"name either --platform, to simulate, or an execution target to measure on: {TARGET_OPTIONS}")
    if platform is None:
        refuse_options(SIMULATING, "--platform")
        return where
    refuse_options(PRECISION, f"an execution target: {TARGET_OPTIONS}; simulated time is exact")
    return platform


BENCH = group(_bench, platform=option(PLATFORM), **{name: one for name, one in _OPTIONS.items() if name != "ppn"})
"""The place of experiments: the platform of --platform, simulated, or the target that the others name."""
