"""Models that are fitted and that predict: `fit`, `predict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name, note, warn
from collwise.models.fitting.procedures import CLOSE, QUICK, request
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import FAMILIES, FittedParameters, ModelParameters, PathParameters
from collwise.models.registry import CRITICAL_PATH, IMPLEMENTATION_AWARE, no_parameters
from collwise.platforms import HostPlatform
from collwise.simulator.bench import Bench, Measured, Simulated
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import PRECISION_OF_FITS, Method, Precision
from collwise.simulator.timing import Case
from collwise.validation.fitting import critical_path_fit, implementation_aware, models_by_name
from collwise.validation.fitting.critical_path_fit import PathPlan
from collwise.validation.fitting.implementation_aware import FitPlan, default_procs, measured_plan, measured_procs
from collwise.validation.fitting.scheduled_model import ScheduledModel
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import sizes_of
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted

Parameters = ModelParameters | PathParameters | FittedParameters


@dataclass(frozen=True, repr=False)
class FittedModel:
    """Estimated parameters and the models that they belong to; made by `fit`.

    `parameters` hold everything that was estimated, `models` the models by name, the one they were made for first.
    """

    parameters: Parameters

    @cached_property
    def models(self) -> Mapping[str, CollectiveModel]:
        """The models that have these parameters, by name."""

        return models_by_name.models_of(self.parameters)

    @property
    def platform(self) -> str:
        """The platform that the parameters were estimated on."""
        return self.parameters.platform

    def table(self) -> pd.DataFrame:
        """The parameters as people read them."""
        from collwise.studies.reports.parameters import ALGORITHM_COLUMNS, algorithm_rows, parameter_rows

        if isinstance(self.parameters, FittedParameters):
            return pd.DataFrame(parameter_rows(self.parameters), columns=["parameter", "value"])
        return pd.DataFrame(algorithm_rows(self.parameters), columns=ALGORITHM_COLUMNS)

    def save(self, path: str | Path) -> None:
        """Writes the parameter file (TOML) that `predict` and `select` read. Raises UsageError where it cannot."""
        self.parameters.save(Path(path))

    def __repr__(self) -> str:
        return f"<FittedModel {next(iter(self.models))} on {self.platform}, {self.parameters.made_by}>"

    def _repr_html_(self) -> str:
        return f"<p>{next(iter(self.models))} on {self.platform}</p>" + self.table().to_html(index=False)


ModelLike = FittedModel | CollectiveModel | str | Path
"""A result of `fit`, a model, or the path of a parameter file."""


def fit(
    platform: PlatformLike | ExecutionTarget,
    model: str = "implementation-aware",
    *,
    procs: Numbers | None = None,
    segments: Numbers | None = None,
    collective: Names = "all",
    chains: int | None = None,
    procedure: str | None = None,
    heterogeneous: bool | None = None,
    precision: Precision | None = None,
    thorough: bool = False,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> FittedModel:
    """Estimates a model's parameters from experiments, simulated on a platform or measured at an execution target.

    Parameters: `platform`, see `platform`, or an execution target; `model`, 'implementation-aware' (Nuriyev &
    Lastovetsky 2021), 'critical_path' (the same with schedules for formulas) or one of the point-to-point models
    'hockney', 'hockney_by_size', 'logp', 'loggp', 'plogp', 'lmo'; `procs`, the process counts of the experiments, one
    number for point-to-point models; `context`, see `session`. The first two take `segments`, segment sizes in bytes,
    by default '8KiB:128KiB:x2', measured '0,8KiB' (critical_path: '0,1KiB,8KiB,64KiB'), `collective`, those that are
    fitted, by default all that the model covers, and `ppn`, processes per node; the first takes `chains` of the K-chain
    tree. Point-to-point models take `procedure` and `heterogeneous` (parameters of each pair of processes, by default
    where nodes differ). Measured experiments take `precision`, and `thorough` for as many sizes as in simulation.

    Returns a FittedModel, for `predict`, `select` and its own `save`. Experiments that the store has are not made
    again. Raises UsageError for wrong arguments, CollwiseError when an experiment fails.

    >>> import collwise
    >>> model = collwise.fit("exact", "hockney")
    >>> model
    <FittedModel hockney on exact, simulated, SimGrid ...>
    """

    known = (IMPLEMENTATION_AWARE, CRITICAL_PATH, *FAMILIES)
    check_name("model", model, known)
    where = platform if isinstance(platform, ExecutionTarget) else arguments.platform(platform)
    counts = None if procs is None else arguments.counts(procs)
    with arguments.opened(context) as simulations:
        bench: Bench
        if isinstance(where, ExecutionTarget):
            method = Method(timing="maximum", precision=precision or PRECISION_OF_FITS)
            bench = Measured(where, simulations, method, _LIMIT_SECONDS.get(model, 3600.0))
        else:
            bench = Simulated(where, simulations)
        if model in (IMPLEMENTATION_AWARE, CRITICAL_PATH):
            names = () if collective == "all" else arguments.collectives(collective)
            if model == CRITICAL_PATH:
                path_plan = _path_plan(bench, where, counts, segments, ppn)
                plan = replace(path_plan, collectives=names or path_plan.collectives)
                return FittedModel(critical_path_fit.fit(bench, plan))
            fit_plan = _fit_plan(bench, where, counts, segments, chains or 0, ppn)
            fit_plan = replace(fit_plan, collectives=names or fit_plan.collectives)
            return FittedModel(implementation_aware.fit(bench, fit_plan))
        if counts is not None and len(counts) != 1:
            raise UsageError(f"--procs: one number for --model {model}, not {len(counts)}")
        if heterogeneous is None and not bench.is_heterogeneous:
            heterogeneous = False
        detail = CLOSE if thorough or bench.is_exact else QUICK
        count = counts[0] if counts else None
        return FittedModel(models_by_name.parameters_on(bench, request(model, procedure, heterogeneous), count, detail))


_LIMIT_SECONDS = {IMPLEMENTATION_AWARE: 600.0}


def _fit_plan(
    bench: Bench,
    where: HostPlatform | ExecutionTarget,
    procs: tuple[int, ...] | None,
    segments: Numbers | None,
    chains: int,
    ppn: int | None,
) -> FitPlan:
    """The extent of a fit of implementation-aware models, with the usual extent of what is not given."""

    common, *more = models_by_name.fitted_segments(() if segments is None else arguments.sizes(segments))
    if isinstance(where, HostPlatform):
        per_node = ppn or where.default_processes_per_node
        plan = FitPlan(procs or default_procs(where, per_node), per_node, common, chains)
    else:
        plan = measured_plan(bench, procs or measured_procs(where.usual_procs), common, chains)
    return plan if segments is None else replace(plan, more_segments=tuple(more))


def _path_plan(
    bench: Bench,
    where: HostPlatform | ExecutionTarget,
    procs: tuple[int, ...] | None,
    segments: Numbers | None,
    ppn: int | None,
) -> PathPlan:
    """The extent of a fit of the model critical_path, with the usual extent of what is not given."""

    if isinstance(where, HostPlatform):
        plan = critical_path_fit.simulated_plan(where, ppn or where.default_processes_per_node)
        plan = replace(plan, procs=procs or plan.procs)
    else:
        plan = critical_path_fit.measured_plan(bench, procs or measured_procs(where.usual_procs))
    return plan if segments is None else replace(plan, segment_bytes=arguments.sizes(segments))


def predict(
    model: ModelLike,
    collective: str,
    procs: Numbers,
    sizes: Numbers | None = None,
    *,
    algorithms: Names | None = None,
    segments: Numbers | None = None,
    name: str | None = None,
    by_schedule: bool = False,
) -> AllTimes:
    """Predicted times of a collective's algorithms at every process count and message size.

    Parameters: `model`, what `fit` returned, or the path of a parameter file; `collective`, a name; `procs`, process
    counts; `sizes`, message sizes in bytes; `algorithms`, by default all that the model covers; `segments`, segment
    sizes in bytes, 0 for unsegmented, by default that of the fit; `name`, which of the file's models predicts;
    `by_schedule`, for a point-to-point model, times along the schedule of each algorithm instead of its formula, which
    all algorithms of all collectives have.

    Returns Times of the collective, by its name. There is none where the time is not deterministic or beyond what was
    fitted. Between the points the Times ask the model, so that `select` decides to the byte. Raises UsageError where
    the model has no formula.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:x2", sizes="1KiB,1MiB")
    >>> times["bcast"].procs
    (2, 4, 8)
    """

    fitted = model_from(model, name)
    if by_schedule:
        fitted = ScheduledModel.of(fitted)
    covered = _with_formula(fitted, collective, algorithms)
    counts, message_bytes = arguments.counts(procs), sizes_of(collective, arguments.sizes(sizes) if sizes else None)
    for line in models_by_name.beyond_what_is_known(fitted, collective, max(counts), max(message_bytes)):
        warn(line)
    choices = tuple(
        Choice(algorithm, segment)
        for algorithm in covered
        for segment in _segments_of(fitted, collective, algorithm, segments)
    )
    return AllTimes.of([predicted(fitted, Grid(collective, choices, counts, message_bytes))])


def model_from(model: ModelLike, name: str | None = None) -> CollectiveModel:
    """The model of that name, or the one that the parameters were made for. Raises UsageError where it is missing."""

    if isinstance(model, FittedModel):
        return models_by_name.named_model(model.models, name, model)
    return models_by_name.load_model(model, name) if isinstance(model, (str, Path)) else model


def predicted_times(model: CollectiveModel, cases: Sequence[Case]) -> dict[Case, float]:
    """The model's times of cases, without those that it has no prediction for."""
    found = {
        case: float(
            model.predict(
                case.collective, case.algorithm, case.procs, case.message_bytes, case.segment_bytes, case.fanout
            )
        )
        for case in cases
        if case.algorithm in model.algorithms(case.collective)
    }
    return {case: one for case, one in found.items() if not np.isnan(one)}


def _with_formula(model: CollectiveModel, collective: str, given: Names | None) -> list[str]:
    """Those asked for that the model covers; the others are named in a line. Raises UsageError where it covers none."""
    asked = arguments.algorithms(collective, given)
    covered = model.algorithms(collective)
    if given is None or arguments.names(given) == ("all",):
        # Also those that are measured but not offered as a choice.
        asked = tuple(dict.fromkeys((*asked, *covered)))
    missing = [name for name in asked if name not in covered]
    if len(missing) == len(asked):
        if not covered and model.name == CRITICAL_PATH:
            raise no_parameters(model.name, [collective])
        known = f"; valid: {', '.join(covered)}" if covered else ""
        raise UsageError(f"model {model.name} has no formula for {collective} {', '.join(missing)}{known}")
    if missing:
        note(f"model {model.name} has no formula for {collective} {', '.join(missing)}; left out")
    return [name for name in asked if name in covered]


def _segments_of(model: CollectiveModel, collective: str, algorithm: str, given: Numbers | None) -> tuple[int, ...]:
    """The segment sizes asked for, or that of the fit, where the algorithm cuts messages."""
    if not Catalogue.load().algorithm(collective, algorithm).pipelined:
        return (0,)
    if given is not None:
        return arguments.sizes(given)
    return (model.segment_bytes,)
