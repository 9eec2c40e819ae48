"""Models by name, for the commands that need one: from a parameter file, or estimated now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from collwise.common.errors import UsageError
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import MODELS as IMPLEMENTATION_AWARE
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.loading import load_model, models_of
from collwise.models.parameter_file import FittedParameters
from collwise.models.point_to_point import FORMULAS
from collwise.platforms import HostPlatform
from collwise.simulator.experiments import ExperimentRunner
from collwise.simulator.store import Store
from collwise.studies.commands.shared import sweep_progress
from collwise.validation import fitting
from collwise.validation.estimating import Request, estimate, most_useful_procs, request

MODEL_NAMES = (*IMPLEMENTATION_AWARE, *FORMULAS)
"""Every model of collectives, as on the command line."""

HETEROGENEOUS = "_heterogeneous"

MODEL = click.Choice(MODEL_NAMES)


@dataclass(frozen=True)
class HowToRun:
    """Where times are kept and what simulates: the options that all commands share."""

    store: Store
    engine: str | None = None
    jobs: int | None = None


def simulated_parameters(
    platform: HostPlatform, wanted: Request, how: HowToRun, procs: int | None = None
) -> FittedParameters:
    """Estimates a point-to-point model on a simulated platform, with one process a node."""
    runner = ExperimentRunner.simulated(
        platform,
        how.store,
        procs=procs or most_useful_procs(wanted, len(platform.hosts)),
        engine_version=how.engine,
        jobs=how.jobs,
    )
    return estimate(wanted, runner, platform.name, f"simulated, {runner.label}", platform.reduce_seconds_per_byte)


def implementation_aware(platform: HostPlatform, ppn: int, segments: Sequence[int], how: HowToRun) -> ModelParameters:
    """Fits the implementation-aware models; the least segment size is the common one."""
    procs = fitting.default_procs(platform, ppn)
    plan = fitting.Plan(procs, ppn, segments[0], more_segments=tuple(segments[1:]))
    with sweep_progress(f"{platform.name}: fitting models") as progress:
        return fitting.fit(platform, plan, how.store, engine_version=how.engine, jobs=how.jobs, on_progress=progress)


def model_of(
    name: str, file: Path | None, platform: HostPlatform, ppn: int, segments: Sequence[int], how: HowToRun
) -> CollectiveModel:
    """The model of a parameter file, or one that is estimated now (from the store where the experiments are there).

    Raises UsageError for a file that is of another platform or does not hold the model.
    """
    if file is not None:
        return _from_file(name, file, platform, ppn)
    if name in IMPLEMENTATION_AWARE:
        return ImplementationAware(implementation_aware(platform, ppn, segments, how), name)
    family, heterogeneous = name.removesuffix(HETEROGENEOUS), name.endswith(HETEROGENEOUS)
    return models_of(simulated_parameters(platform, request(family, heterogeneous=heterogeneous), how))[name]


def _from_file(name: str, file: Path, platform: HostPlatform, ppn: int) -> CollectiveModel:
    model = load_model(file, name)
    if model.platform != platform.name:
        raise UsageError(f"{file}: parameters of platform '{model.platform}', not of '{platform.name}'")
    if isinstance(model, ImplementationAware) and model.parameters.processes_per_node != ppn:
        per_node = model.parameters.processes_per_node
        raise UsageError(f"{file}: parameters for {per_node} processes per node, not {ppn}")
    return model
