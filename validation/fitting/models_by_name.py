"""Models by name: from a parameter file, or fitted now on a simulated platform or an execution target."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from collwise.common.errors import CollwiseError, UsageError, check_name, warn
from collwise.common.keys import read_toml
from collwise.common.units import format_size
from collwise.models.fitting.procedures import CLOSE, QUICK, Detail, FitRequest, fit, max_useful_procs, request
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import FAMILIES, FittedParameters, ModelParameters, PathParameters
from collwise.models.point_to_point import PointToPointModel
from collwise.models.registry import (
    CRITICAL_PATH,
    DEFAULT_MODEL,
    IMPLEMENTATION_AWARE,
    ModelKind,
    models_of_family,
)
from collwise.platforms import HostPlatform, load
from collwise.platforms.hosts import PlacedPlatform
from collwise.simulator.bench import Bench, Simulated
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.fitting import critical_path_fit, implementation_aware as by_algorithm
from collwise.validation.fitting.critical_path import CriticalPath
from collwise.validation.fitting.scheduled_model import ScheduledModel
from collwise.validation.times.defaults import SEGMENT_BYTES

Parameters = ModelParameters | PathParameters | FittedParameters
"""Parameters that a fit estimates and a parameter file holds."""


def models_of(parameters: Parameters) -> dict[str, CollectiveModel]:
    """The models that have these parameters, by name; the first one is the model that they were made for.

    The means of heterogeneous parameters serve the homogeneous models.
    """
    if isinstance(parameters, PathParameters):
        return {CRITICAL_PATH: CriticalPath(parameters)}
    if isinstance(parameters, ModelParameters):
        kinds = models_of_family(IMPLEMENTATION_AWARE)
        return {str(kind): ImplementationAware(parameters, str(kind)) for kind in kinds}
    of_pairs, means = parameters.parameters, parameters.parameters.homogeneous()
    return {
        str(kind): PointToPointModel(
            str(kind),
            parameters.platform,
            of_pairs if kind.heterogeneous else means,
            parameters.reduce_seconds_per_byte,
        )
        for kind in models_of_family(parameters.family)
        if of_pairs.heterogeneous or not kind.heterogeneous
    }


def named_model(models: Mapping[str, CollectiveModel], name: str | None, source: object) -> CollectiveModel:
    """The model of that name, or without a name the first one. Raises UsageError, naming `source`, if there is none."""
    if name is None:
        return next(iter(models.values()))
    check_name("model", name, models, f"those in {source}")
    return models[name]


def load_models(path: str | Path) -> dict[str, CollectiveModel]:
    """Every model in a parameter file of any kind, by name; the model that the file was made for is first."""
    return _models_from(read_toml(path), path)


def model_from_document(document: Mapping[str, Any], path: str | Path) -> CollectiveModel:
    """The model that a document describes and names. Raises UsageError, which names the file `path`."""
    known = dict(document)
    name, by_schedule = known.pop("name"), known.pop("by_schedule", False)
    found = named_model(_models_from(known, path), name, path)
    return ScheduledModel.of(found) if by_schedule else found


def _models_from(document: Mapping[str, Any], path: str | Path) -> dict[str, CollectiveModel]:
    kinds: dict[object, type[Parameters]] = {kind.FORMAT: kind for kind in (PathParameters, FittedParameters)}
    return models_of(kinds.get(document.get("format"), ModelParameters).from_document(document, path))


def load_model(path: str | Path, name: str | None = None) -> CollectiveModel:
    """The model of that name, by default the one that the file was made for. Raises UsageError for an unknown name."""
    return named_model(load_models(path), name, path)


def parameters_on(
    bench: Bench, wanted: FitRequest, procs: int | None = None, detail: Detail | None = None
) -> FittedParameters:
    """Fits a point-to-point model on a bench, by default on the fewest processes that give the same result as all.

    Raises UsageError for more processes than the bench holds, CollwiseError when the time is up, and the errors of
    `fit`.
    """
    usual = max_useful_procs(wanted, bench.max_procs, alike=not bench.is_heterogeneous)
    lab = bench.laboratory(procs or usual)
    made_by, reduction = f"{bench.source}, {lab.label}", bench.reduce_seconds_per_byte or 0.0
    return fit(wanted, lab, bench.name, made_by, reduction, detail or (CLOSE if bench.is_exact else QUICK))


def algorithms_parameters_on(
    bench: Bench,
    family: str,
    procs: Sequence[int] | None = None,
    ppn: int | None = None,
    *,
    collectives: Sequence[str] = (),
    segments: Sequence[int] | None = None,
    chains: int | None = None,
    broadcasts: Sequence[str] | None = None,
) -> ModelParameters | PathParameters:
    """Fits a model with parameters of each algorithm on a bench.

    Without `collectives`, the model is fitted for all collectives. Arguments that are not given have the usual values
    for this kind of bench; for a target, `ppn` is ignored. `broadcasts` are the broadcast algorithms of implementation-
    aware models. Raises UsageError if the bench is too small, CollwiseError when an experiment fails.
    """
    plans: Any = critical_path_fit if family == CRITICAL_PATH else by_algorithm
    plan_of: Any = critical_path_fit.PathPlan if family == CRITICAL_PATH else by_algorithm.FitPlan
    if isinstance(bench, Simulated):
        per_node = ppn or bench.platform.default_processes_per_node
        plan = plan_of(by_algorithm.default_procs(bench.platform, per_node), per_node)
    else:
        plan = plans.measured_plan(bench, procs or by_algorithm.measured_procs(bench.max_procs))
    given: dict[str, Any] = {"procs": procs and tuple(procs), "collectives": tuple(collectives) or None}
    if segments is not None and family == CRITICAL_PATH:
        given["segment_bytes"] = tuple(segments)
    elif segments is not None:
        # The common size comes first. Whole messages come last, since they are fitted in addition to some segment size.
        common, *more = [size for size in segments if size] or [SEGMENT_BYTES]
        given |= {"segment_bytes": common, "more_segments": (*more, *([0] if 0 in segments else []))}
    if broadcasts is not None and family != CRITICAL_PATH:
        given["broadcasts"] = tuple(name for name in plan.broadcasts if name in broadcasts)
    given["chains"] = chains
    fitted: ModelParameters | PathParameters = plans.fit(
        bench, replace(plan, **{name: value for name, value in given.items() if value is not None})
    )
    return fitted


def measured_models(
    bench_within: Callable[[float], Bench],
    procs: int,
    collectives: Sequence[str] = (),
    *,
    budget_seconds: float = 960.0,
    on_note: Callable[[str], None] = lambda note: None,
) -> list[CollectiveModel]:
    """Every model that can be fitted within the time, and its printed form, if it has one.

    `bench_within` gives a bench that stops after a number of seconds. Each family of models gets an equal share of the
    time that is left. Point-to-point models come first: LMO is fitted on `procs` processes, the others on
    `max_useful_procs`. Then come models with parameters of each algorithm, on `procs` processes; if `collectives` are
    named, these models are fitted only for those. A model whose fit fails, or for which no time is left, is missing;
    `on_note` receives the reason.
    """
    until = time.monotonic() + budget_seconds
    found: dict[str, CollectiveModel] = {}

    def fitted(family: str, bench: Bench) -> Parameters:
        if family in (IMPLEMENTATION_AWARE, CRITICAL_PATH):
            asked = by_algorithm.measured_procs(procs)
            return algorithms_parameters_on(bench, family, asked, collectives=collectives)
        wanted = request(family)
        return parameters_on(bench, wanted, procs if family == "lmo" else max_useful_procs(wanted, procs))

    families = (*FAMILIES, IMPLEMENTATION_AWARE, CRITICAL_PATH)
    for number, family in enumerate(families):
        left = (until - time.monotonic()) / (len(families) - number)
        if left <= 0:
            on_note(f"{family}: not fitted, the budget of {budget_seconds:g} s was spent")
            continue
        try:
            found |= models_of(fitted(family, bench_within(left)))
        except CollwiseError as problem:
            on_note(f"{family}: not fitted: {problem}")
    return list(found.values())


def models_on(
    platform: HostPlatform,
    names: Sequence[str],
    ppn: int,
    segments: Sequence[int],
    context: SimulationContext,
    collectives: Sequence[str] = (),
) -> list[CollectiveModel]:
    """Models fitted on the platform, in the order of `names`; a fit that serves several models is made once.

    Models with parameters of each algorithm are fitted for `collectives`, or for all collectives if none is named.
    Implementation-aware models are fitted for the segment sizes `segments`, the first of which is common to all
    algorithms. If nodes differ, the parameters of homogeneous models are the means of heterogeneous parameters, if
    there is a procedure for heterogeneous parameters.
    """
    bench, found = Simulated(platform, context), dict[str, CollectiveModel]()
    for name in names:
        if name in found:
            continue
        kind = ModelKind.parse(name)
        parameters: Parameters
        if kind.family in (IMPLEMENTATION_AWARE, CRITICAL_PATH):
            cut = segments if kind.family == IMPLEMENTATION_AWARE else None
            parameters = algorithms_parameters_on(bench, kind.family, None, ppn, collectives=collectives, segments=cut)
        else:
            where_possible = None if platform.heterogeneous else False
            parameters = parameters_on(bench, request(kind.family, heterogeneous=kind.heterogeneous or where_possible))
        found |= models_of(parameters)
    return [found[name] for name in names]


def model_of(
    name: str | None,
    file: Path | None,
    platform: HostPlatform,
    ppn: int,
    segments: Sequence[int],
    context: SimulationContext,
) -> CollectiveModel:
    """The model in a parameter file, or a model that is fitted now. Experiments that the store has are not run again.

    If `name` is None, the model is the one that the file was made for, or without a file the default model.
    """
    if file is None:
        return models_on(platform, [name or DEFAULT_MODEL], ppn, segments, context.with_experiments())[0]
    model = load_model(file, name)
    check_fits_platform(model, file, platform, ppn)
    return model


def check_fits_platform(model: CollectiveModel, file: Path, platform: HostPlatform, ppn: int) -> None:
    """Raises UsageError if a file's model was fitted on another platform or with other processes per node.

    Warns if ranks are not placed by blocks, since parameters are fitted for that placement.
    """
    if isinstance(platform, PlacedPlatform):
        warn(f"{file}: predictions are for ranks placed by blocks; --placement changes simulated times only")
    per_node = model.processes_per_node
    if model.platform != platform.name or per_node not in (None, ppn):
        fitted_with = "" if per_node is None else f" with {per_node} per node"
        wanted = "" if per_node is None else f" with {ppn}"
        raise UsageError(
            f"{file}: parameters of platform '{model.platform}'{fitted_with}, not of '{platform.name}'{wanted}"
        )


def beyond_what_is_known(model: CollectiveModel, collective: str, procs: int, message_bytes: int) -> list[str]:
    """Warnings if the largest P or m of a prediction is beyond the platform or beyond the model's experiments."""
    fitted_procs, fitted_bytes = model.reach(collective)
    found = []
    try:
        platform = load(model.platform)
    except UsageError:
        # A fit takes half of what a platform holds, see by_algorithm.default_procs.
        if fitted_procs and procs > 2 * fitted_procs:
            found.append(f"P = {procs} is far beyond what was fitted, which ends at P = {fitted_procs}")
    else:
        per_node = model.processes_per_node or platform.default_processes_per_node
        most = platform.max_procs(per_node)
        if procs > most:
            found.append(
                f"P = {procs} is beyond platform '{platform.name}', which holds {most} with {per_node} per node"
            )
    if fitted_bytes and message_bytes > fitted_bytes:
        size, max_fitted = format_size(message_bytes), format_size(int(fitted_bytes))
        found.append(f"messages of {size} are beyond what was fitted, {max_fitted} at most")
    return found
