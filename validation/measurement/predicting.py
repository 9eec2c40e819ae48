"""Predictions of the points of measured runs, without a look at their times: by an engine, and by analytical models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from collwise.common.units import counted
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import FAMILIES
from collwise.models.registry import BY_PARTS, MODELS
from collwise.platforms import HostPlatform, load
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SCHEDULE_WITH_EXPERIMENTS, SMPI, SimulationContext
from collwise.validation.fitting import critical_path_fit, implementation_aware
from collwise.validation.fitting.models_by_name import models_of, parameters_on
from collwise.validation.measurement.judging import PREDICTED, MeasuredPlace, Predictions, grids, platform_of
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted as predicted_by, simulate
from collwise.validation.times.times import Times

_MOST_PROCS_OF_SMPI = 128
"""SMPI's simulations of the longest messages take minutes from here on."""

Grids = Sequence[tuple[MeasuredPlace, Grid]]


@dataclass(frozen=True)
class Predicted:
    """Predictions by what predicts, the platforms by the machines that they describe, and what was left out."""

    predictions: Mapping[str, Predictions]
    platforms: Mapping[str, str]
    notes: Sequence[str]


def predicted(runs: Sequence[MeasuredRun], context: SimulationContext, models: bool) -> Predicted:
    """The predictions of the candidates of runs by the context's engine, and by every model if `models` says so.

    Raises the errors of the engine.
    """
    found: dict[str, dict[MeasuredPlace, Times]] = {PREDICTED: {}}
    platforms: dict[str, str] = {}
    by_platform: dict[str, list[tuple[MeasuredPlace, Grid]]] = {}
    notes: list[str] = []
    without: list[str] = []
    for run in runs:
        name = " over ".join(filter(None, (run.machine, run.facts.get("transport"))))
        wanted = list(grids(run))
        if not wanted:
            without.append(f"{run.machine} ({run.job})")
            continue
        platform = platform_of(run.machine, run.facts)
        if platform is None:
            notes.append(f"no platform is called like {name}: its runs are left out")
            continue
        most = _MOST_PROCS_OF_SMPI if context.engine is SMPI else math.inf
        fitting = [(place, grid) for place, grid in wanted if _fits(platform, place, most)]
        if len(fitting) < len(wanted):
            kept = {place for place, _ in fitting}
            counts = ", ".join(map(str, sorted({place.procs for place, _ in wanted if place not in kept})))
            holds = f"platform {platform.name} has {counted(len(platform.hosts), 'node')}"
            limit = holds if most == math.inf else f"{holds}, and {context.engine.name} plays P = {most} at most"
            notes.append(f"{name}: P = {counts} are left out: {limit}")
        if fitting:
            times = simulate(platform, [grid for _, grid in fitting], context)
            found[PREDICTED] |= {place: one for (place, _), one in zip(fitting, times, strict=True)}
            platforms[run.machine] = platform.name
            by_platform.setdefault(platform.name, []).extend(fitting)
    if without:
        notes.append(f"nowhere two algorithms that the catalogue has, and so no cell: {', '.join(without)}")
    for name, some in by_platform.items() if models else ():
        for model in _models(load(name), some, context):
            found.setdefault(model.name, {}).update(_by_model(model, some))
    return Predicted(found, platforms, list(dict.fromkeys(notes)))


def _fits(platform: HostPlatform, place: MeasuredPlace, most_procs: float) -> bool:
    cores = platform.known_cores_per_node or place.processes_per_node
    fits = place.procs <= platform.max_procs(place.processes_per_node) and place.processes_per_node <= cores
    return fits and place.procs <= most_procs


def _models(platform: HostPlatform, wanted: Grids, context: SimulationContext) -> list[CollectiveModel]:
    """Every model with formulas for what is wanted, fitted to the description by the schedule engine.

    Fits have one process on each node. Those of models with parameters of each algorithm have whole messages, and no
    more processes than are wanted, unless that are too few to fit.
    """
    bench = Simulated(platform, replace(context, engine=SCHEDULE_WITH_EXPERIMENTS))
    collectives = tuple(dict.fromkeys(grid.collective for _, grid in wanted))
    broadcasts = [name for _, grid in wanted if grid.collective == "bcast" for name in grid.names]
    most = max(place.procs for place, _ in wanted)

    def no_more(procs: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({min(count, max(most, procs[0])) for count in procs}))

    paths = critical_path_fit.simulated_plan(platform, 1)
    paths = replace(paths, procs=no_more(paths.procs), collectives=collectives, segment_bytes=(0,))
    found = models_of(critical_path_fit.fit(bench, paths))
    if any(name in MODELS[BY_PARTS].formulas for name in collectives):
        plan = implementation_aware.simulated_plan(platform, 1)
        usual = tuple(name for name in plan.broadcasts if name in broadcasts)
        plan = replace(plan, procs=no_more(plan.procs), more_segments=(0,), broadcasts=usual, collectives=collectives)
        found |= models_of(implementation_aware.fit(bench, plan))
    for family in FAMILIES:
        found |= models_of(
            parameters_on(bench, request(family, heterogeneous=None if platform.heterogeneous else False))
        )
    return list(found.values())


def _by_model(model: CollectiveModel, wanted: Grids) -> Iterator[tuple[MeasuredPlace, Times]]:
    for place, grid in wanted:
        known = grid.of_algorithms(model.algorithms(grid.collective))
        if known.choices and model.processes_per_node in (None, place.processes_per_node):
            yield place, predicted_by(model, known)
