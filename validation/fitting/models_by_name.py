"""Models by name: from a parameter file, or estimated now on a simulated platform or at a place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import format_size
from collwise.models.hockney import HockneyBySize
from collwise.models.implementation_aware.estimation import FORMULAS as IMPLEMENTATION_FORMULAS
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import MODELS as IMPLEMENTATION_AWARE
from collwise.models.implementation_aware.parameters import TRADITIONAL, ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.loading import load_model, models_of
from collwise.models.parameter_file import FAMILIES, FittedParameters
from collwise.models.plogp import PLogP
from collwise.models.point_to_point import AS_PRINTED, FORMULAS, PRINTED
from collwise.platforms import HostPlatform, load
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.laboratory import ExperimentLaboratory
from collwise.simulator.sweeps.method import Precision
from collwise.validation.fitting import implementation_aware as fitting
from collwise.validation.fitting.point_to_point import QUICK, Detail, Request, estimate, most_useful_procs, request
from collwise.validation.selection.defaults import SEGMENT_BYTES

MODEL_NAMES = (*IMPLEMENTATION_AWARE, *FORMULAS, *(family + AS_PRINTED for family in PRINTED))
"""Every model of collectives, as on the command line."""

HETEROGENEOUS = "_heterogeneous"


def simulated_parameters(
    platform: HostPlatform, wanted: Request, context: SimulationContext, procs: int | None = None
) -> FittedParameters:
    """Estimates a point-to-point model on a simulated platform, with one process a node.

    Raises UsageError for more processes than nodes, and what `estimate` raises.
    """
    count = procs or most_useful_procs(wanted, len(platform.hosts), alike=not platform.heterogeneous)
    runner = context.laboratory(platform, count)
    return estimate(wanted, runner, platform.name, f"simulated, {runner.label}", platform.reduce_seconds_per_byte)


def measured_parameters(
    place: ExecutionTarget,
    wanted: Request,
    store: Store,
    procs: int,
    precision: Precision = fitting.MEASURED_PRECISION,
    detail: Detail = QUICK,
    limit_seconds: float = 3600.0,
) -> FittedParameters:
    """Estimates a point-to-point model from experiments at a place, with `procs` processes there.

    Raises UsageError for more processes than it holds, CollwiseError when the time is up, and what `estimate` raises.
    """
    runner = ExperimentLaboratory.measured(place, procs, store, precision=precision, limit_seconds=limit_seconds)
    return estimate(wanted, runner, place.name, f"measured, {runner.label}", detail=detail)


def measured_models(
    place: ExecutionTarget,
    store: Store,
    procs: int,
    *,
    precision: Precision = fitting.MEASURED_PRECISION,
    segment_bytes: int = SEGMENT_BYTES,
    budget_seconds: float = 240.0,
    on_note: Callable[[str], None] = lambda note: None,
) -> list[CollectiveModel]:
    """Every model that can be fitted at the place within the time, each with its printed form where it has one.

    Models of messages are estimated on no more processes than change anything, LMO and the implementation-aware ones
    on `procs`. A model whose fit fails, or for which no time is left, is missing, and `on_note` is told why.
    """
    until = time.monotonic() + budget_seconds
    found: list[CollectiveModel] = []

    def attempt(name: str, fit: Callable[[float], Sequence[CollectiveModel]]) -> None:
        left = until - time.monotonic()
        if left <= 0:
            on_note(f"{name}: not fitted, {budget_seconds:g} s were over")
            return
        try:
            found.extend(fit(left))
        except CollwiseError as problem:
            on_note(f"{name}: not fitted: {problem}")

    def of_messages(family: str, left: float) -> list[CollectiveModel]:
        wanted = request(family)
        count = procs if family == "lmo" else most_useful_procs(wanted, procs)
        fitted = measured_parameters(place, wanted, store, count, precision, limit_seconds=left)
        return list(models_of(fitted).values())

    def of_algorithms(left: float) -> list[CollectiveModel]:
        plan = fitting.measured_plan(place, fitting.measured_procs(procs), segment_bytes)
        parameters = fitting.fit_measured(place, plan, store, precision=precision, limit_seconds=left)
        return [ImplementationAware(parameters, one) for one in IMPLEMENTATION_AWARE]

    attempt("implementation-aware", of_algorithms)
    for family in FAMILIES:
        attempt(family, lambda left, family=family: of_messages(family, left))  # type: ignore[misc]
    return list({model.name: model for model in found}.values())


def fitted_segments(segments: Sequence[int]) -> tuple[int, ...]:
    """The segment sizes in the order of a fit: the common one first, whole messages (0) last.

    Whole messages are fitted besides sizes of segments, of which there is always one.
    """
    cut = [size for size in segments if size] or [SEGMENT_BYTES]
    return (*cut, *([0] if 0 in segments else []))


def implementation_aware(
    platform: HostPlatform,
    ppn: int,
    segments: Sequence[int],
    context: SimulationContext,
    collectives: Sequence[str] = (),
) -> ModelParameters:
    """Fits the implementation-aware models for some collectives, or all; see `fitted_segments`."""
    procs = fitting.default_procs(platform, ppn)
    segments = fitted_segments(segments)
    plan = fitting.Plan(procs, ppn, segments[0], more_segments=tuple(segments[1:]))
    if collectives:
        plan = replace(plan, collectives=tuple(collectives))
    return fitting.fit(platform, plan, context)


def models_on(
    platform: HostPlatform,
    names: Sequence[str],
    ppn: int,
    segments: Sequence[int],
    context: SimulationContext,
    collectives: Sequence[str] = (),
) -> list[CollectiveModel]:
    """Models estimated on the platform, in the order of their names; what one fit gives is fitted once.

    `segments`: sizes that implementation-aware models are fitted for, see `fitted_segments`;
    `collectives`: those that they are fitted for, all if empty.
    Where nodes differ, homogeneous models are the means of heterogeneous ones, if there is a procedure for these.
    """
    found: dict[str, CollectiveModel] = {}
    for name in names:
        if name in found:
            continue
        if name in IMPLEMENTATION_AWARE:
            parameters = implementation_aware(platform, ppn, segments, context, collectives)
            found |= {one: ImplementationAware(parameters, one) for one in IMPLEMENTATION_AWARE}
        else:
            found |= models_of(simulated_parameters(platform, _request(name, platform.heterogeneous), context))
    return [found[name] for name in names]


def _request(name: str, differ: bool) -> Request:
    family = name.removesuffix(AS_PRINTED).removesuffix(HETEROGENEOUS)
    return request(family, heterogeneous=name.endswith(HETEROGENEOUS) or (None if differ else False))


def model_of(
    name: str,
    file: Path | None,
    platform: HostPlatform,
    ppn: int,
    segments: Sequence[int],
    context: SimulationContext,
    collectives: Sequence[str] = (),
) -> CollectiveModel:
    """The model of a parameter file, or one that is estimated now (from the store where the experiments are there).

    Raises UsageError for a file that is of another platform or does not hold the model.
    """
    if file is not None:
        return _from_file(name, file, platform, ppn)
    return models_on(platform, [name], ppn, segments, context, collectives)[0]


def _from_file(name: str, file: Path, platform: HostPlatform, ppn: int) -> CollectiveModel:
    model = load_model(file, name)
    check_fits_platform(model, file, platform, ppn)
    return model


def fitted_per_node(model: CollectiveModel) -> int | None:
    """The processes a node that the model's parameters hold for; None where they hold for any."""
    return model.parameters.processes_per_node if isinstance(model, ImplementationAware) else None


def check_fits_platform(model: CollectiveModel, file: Path, platform: HostPlatform, ppn: int) -> None:
    """Raises UsageError, naming the file, if the model is of another platform or of other processes a node."""
    per_node = fitted_per_node(model)
    if model.platform != platform.name or per_node not in (None, ppn):
        fitted_with = "" if per_node is None else f" with {per_node} per node"
        wanted = "" if per_node is None else f" with {ppn}"
        raise UsageError(
            f"{file}: parameters of platform '{model.platform}'{fitted_with}, not of '{platform.name}'{wanted}"
        )


def platform_of(model: CollectiveModel, file: Path) -> HostPlatform:
    """The platform that the model is of. Raises UsageError, naming the file, if it is not among the known ones."""
    try:
        return load(model.platform)
    except UsageError:
        raise UsageError(
            f"{file}: parameters of platform '{model.platform}', which is in a file of its own: give its size by "
            "--platform FILE or --procs"
        ) from None


def beyond_what_is_known(model: CollectiveModel, collective: str, procs: int, message_bytes: int) -> list[str]:
    """Warnings where the largest P or m of a prediction is beyond the platform or the model's experiments."""
    fitted_procs, fitted_bytes = _reach(model, collective)
    found = []
    try:
        platform = load(model.platform)
    except UsageError:
        # A fit takes half of what a platform holds, see fitting.default_procs.
        if fitted_procs and procs > 2 * fitted_procs:
            found.append(f"P = {procs} is far beyond what was fitted, P of up to {fitted_procs}")
    else:
        per_node = fitted_per_node(model) or platform.default_processes_per_node
        most = platform.max_procs(per_node)
        if procs > most:
            found.append(
                f"P = {procs} is beyond platform '{platform.name}', which holds {most} with {per_node} per node"
            )
    if fitted_bytes and message_bytes > fitted_bytes:
        size, most_fitted = format_size(message_bytes), format_size(int(fitted_bytes))
        found.append(f"messages of {size} are beyond what was fitted, {most_fitted} at most")
    return found


def _reach(model: CollectiveModel, collective: str) -> tuple[int, float]:
    """The largest P and m that the model was fitted to; 0 where its parameters do not tell."""
    if isinstance(model, ImplementationAware):
        by_algorithm = model.parameters.observations.get(collective, {})
        points = [(one.procs, one.message_bytes) for observations in by_algorithm.values() for one in observations]
        return max((p for p, _ in points), default=0), max((m for _, m in points), default=0)
    parameters = getattr(model, "parameters", None)
    if isinstance(parameters, HockneyBySize):
        return 0, parameters.time.message_bytes[-1]
    return 0, parameters.gap.message_bytes[-1] if isinstance(parameters, PLogP) else 0


def covers(model: str, collective: str) -> bool:
    """Whether the model has a formula for any algorithm of the collective."""
    family = model.removesuffix(AS_PRINTED)
    if family in FORMULAS:
        return collective in FORMULAS[family]
    return collective == "bcast" if model == TRADITIONAL else collective in IMPLEMENTATION_FORMULAS[model]


def check_formulas(model: str, collectives: Sequence[str]) -> None:
    """Raises UsageError naming those of the collectives that the model has no formulas for."""
    missing = [name for name in collectives if not covers(model, name)]
    if missing:
        others = [
            name
            for name in MODEL_NAMES
            if not name.endswith(AS_PRINTED) and all(covers(name, collective) for collective in missing)
        ]
        any_model = any(covers(name, collective) for name in MODEL_NAMES for collective in missing)
        none = "; no model has them for all of these (see 'collwise models --collective all')"
        known = f"; these have: {', '.join(others)}" if others else none if any_model else "; no model has any"
        raise UsageError(
            f"model {model} has no formulas for {', '.join(missing)}{known}. "
            "Every collective can be chosen by simulated times: collwise select --by simulated"
        )
