"""Predictions of the points of measured runs, without a look at their times: by an engine, and by analytical models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import counted, format_size
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import FAMILIES, ModelParameters, PathParameters
from collwise.models.registry import BY_PARTS, CRITICAL_PATH, IMPLEMENTATION_AWARE, MODELS
from collwise.platforms import HostPlatform, Platform, allocated
from collwise.platforms.allocation import Allocation, read_node_map
from collwise.simulator.bench import Simulated
from collwise.simulator.execution.cluster import hosts_in
from collwise.simulator.limits import buffers_of_node
from collwise.simulator.sweeps.context import SCHEDULE_WITH_EXPERIMENTS, SMPI, SimulationContext
from collwise.validation.calibration.figures import PUBLISHED, Factors, from_data_sheets, multiplied
from collwise.validation.fitting import critical_path_fit, implementation_aware
from collwise.validation.fitting.models_by_name import Parameters, models_of, parameters_on
from collwise.validation.measurement.judging import (
    NODE_MAP,
    PREDICTED,
    SHEETS,
    MeasuredPlace,
    Predictions,
    grids,
    platform_of,
)
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted as predicted_by, simulate
from collwise.validation.times.times import Times

_MOST_PROCS_OF_SMPI, _MOST_BYTES_OF_SMPI = 128, 8 << 30
"""SMPI takes minutes for more processes, and may not have the memory for more bytes in all buffers together."""

Grids = Sequence[tuple[MeasuredPlace, Grid]]


@dataclass(frozen=True)
class Predicted:
    """Predictions by what predicts, the platforms by the machines that they describe, and what was left out.

    `placed` has the jobs that were predicted on the nodes where they ran, by the names of the maps that say where.
    """

    predictions: Mapping[str, Predictions]
    platforms: Mapping[str, str]
    placed: Mapping[str, Sequence[str]]
    notes: Sequence[str]


def predicted(
    runs: Sequence[MeasuredRun],
    context: SimulationContext,
    models: bool,
    factors: Mapping[str, Factors] = MappingProxyType({}),
) -> Predicted:
    """The predictions of the candidates of runs by the context's engine, and by every model if `models` says so."""
    found: dict[str, dict[MeasuredPlace, Times]] = {PREDICTED: {}}
    placed: dict[str, list[str]] = {}
    notes: list[str] = []
    reached = []
    for one in _reached(runs, factors, context.engine is SMPI, notes.append):
        reached.append(one)
        times, is_placed = _simulated(one.platform, one, context, notes.append)
        if is_placed and one.run.node_map is not None:
            node_map = one.run.node_map.name
            placed.setdefault(node_map, []).append(one.run.job)
            times = {place: replace(each, facts={**each.facts, NODE_MAP: node_map}) for place, each in times.items()}
        found[PREDICTED] |= times
        if isinstance(one.platform, Platform) and PUBLISHED in one.platform.published and models:
            plain = replace(from_data_sheets(one.platform), name=f"{one.platform.name}-data-sheets")
            found.setdefault(SHEETS, {}).update(_simulated(plain, one, context, notes.append)[0])
    if without := [f"{run.machine} ({run.job})" for run in runs if not list(grids(run))]:
        notes.append(f"nowhere two algorithms that the catalogue has, and so no cell: {', '.join(without)}")
    if context.engine is SMPI:
        limit = f"P = {_MOST_PROCS_OF_SMPI} and buffers of {format_size(_MOST_BYTES_OF_SMPI)} in all"
        notes.append(f"simulated by SMPI up to {limit}")
    if models:
        for name, times in _by_models(reached, context, notes.append):
            found.setdefault(name, {}).update(times)
    platforms = {one.run.machine: one.platform.name for one in reached}
    jobs = {name: list(dict.fromkeys(some)) for name, some in placed.items()}
    return Predicted(found, platforms, jobs, list(dict.fromkeys(notes)))


class _Reached(NamedTuple):
    """A run, the platform that describes its machine, and what is predicted there."""

    run: MeasuredRun
    platform: HostPlatform
    wanted: Grids


def _reached(
    runs: Sequence[MeasuredRun], factors: Mapping[str, Factors], by_smpi: bool, on_note: Callable[[str], None]
) -> Iterator[_Reached]:
    """The runs that can be predicted, on platforms with the factors of their machines; notes say what is left out."""
    for run in runs:
        name = " over ".join(filter(None, (run.machine, run.facts.get("transport"))))
        wanted = list(grids(run))
        if not wanted:
            continue
        platform = platform_of(run.machine, run.facts)
        if platform is None:
            on_note(f"no platform is called like {name}: its runs are left out")
            continue
        if isinstance(platform, Platform) and run.machine in factors:
            platform = replace(multiplied(platform, factors[run.machine]), name=f"{platform.name}-trained")
        fitting = [(place, grid) for place, grid in wanted if _fits(platform, place)]
        if beyond := sorted({place.procs for place, _ in wanted} - {place.procs for place, _ in fitting}):
            holds = f"{counted(len(platform.hosts), 'node')} of {counted(platform.known_cores_per_node or 1, 'core')}"
            on_note(f"{name}: P = {', '.join(map(str, beyond))} are left out: {platform.name} has {holds}")
        if by_smpi:
            fitting = list(_small(fitting))
        if fitting:
            yield _Reached(run, platform, fitting)


def _simulated(
    platform: HostPlatform, one: _Reached, context: SimulationContext, on_note: Callable[[str], None]
) -> tuple[dict[MeasuredPlace, Times], bool]:
    """The times of a run on a platform of its machine, and whether they are on the nodes where it ran."""
    where = _where_it_ran(platform, one.run, one.wanted, on_note)
    times = simulate(where, [grid for _, grid in one.wanted], context)
    return dict(zip((place for place, _ in one.wanted), times, strict=True)), where is not platform


def _by_models(
    reached: Sequence[_Reached], context: SimulationContext, on_note: Callable[[str], None]
) -> Iterator[tuple[str, dict[MeasuredPlace, Times]]]:
    """Names of models with their times of all runs on a platform, where they are fitted to its description."""
    for name in dict.fromkeys(one.platform.name for one in reached):
        mine = [one for one in reached if one.platform.name == name]
        run, platform, _ = mine[0]
        described = platform_of(run.machine, {**run.facts, "hosts": ""}) or platform
        wanted = [each for one in mine for each in one.wanted]
        for model in _models(described, wanted, context, on_note):
            yield model.name, dict(_by_model(model, wanted))


def _fits(platform: HostPlatform, place: MeasuredPlace) -> bool:
    cores = platform.known_cores_per_node or place.processes_per_node
    return place.procs <= platform.max_procs(place.processes_per_node) and place.processes_per_node <= cores


def _where_it_ran(
    platform: HostPlatform, run: MeasuredRun, wanted: Grids, on_note: Callable[[str], None]
) -> HostPlatform:
    """The platform with the run on its nodes, if these are known and a map has all of them, else the platform itself.

    `on_note` receives why a map does not place a run. Raises UsageError for a malformed map.
    """
    hosts = hosts_in(run.facts.get("hosts", ""))
    if run.node_map is None or not hosts:
        return platform
    read_node_map(run.node_map)  # What is wrong in the map itself ends the command, before a host is looked for.
    job = f"{run.machine} ({run.job})"
    try:
        found = allocated(platform, Allocation(job, hosts, True, dict.fromkeys(hosts, job)), run.node_map)
    except UsageError as problem:
        on_note(f"predicted on nodes in order: {problem}")
        return platform
    if any(place.procs > found.max_procs(place.processes_per_node) for place, _ in wanted):
        on_note(f"predicted on nodes in order: {job}: its hosts are too few for its processes")
        return platform
    return found


def _small(wanted: Grids) -> Iterator[tuple[MeasuredPlace, Grid]]:
    """The grids with what SMPI can simulate of them."""
    for place, grid in wanted:
        most = _MOST_BYTES_OF_SMPI // buffers_of_node(grid.collective, place.procs, place.procs)
        sizes = tuple(size for size in grid.message_bytes if size <= most)
        if sizes and place.procs <= _MOST_PROCS_OF_SMPI:
            yield place, replace(grid, message_bytes=sizes)


def _models(
    platform: HostPlatform, wanted: Grids, context: SimulationContext, on_note: Callable[[str], None]
) -> list[CollectiveModel]:
    """Every model with formulas for what is wanted, fitted to the description by the schedule engine.

    Fits have one process on each node. Those of models with parameters of each algorithm have whole messages, and no
    more processes than are wanted, unless that are too few to fit. `on_note` receives why a model cannot be fitted.
    """
    bench = Simulated(platform, replace(context, engine=SCHEDULE_WITH_EXPERIMENTS))
    collectives = tuple(dict.fromkeys(grid.collective for _, grid in wanted))
    broadcasts = [name for _, grid in wanted if grid.collective == "bcast" for name in grid.names]
    most = max(place.procs for place, _ in wanted)

    def no_more(procs: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({min(count, max(most, procs[0])) for count in procs}))

    def by_path() -> PathParameters:
        plan = critical_path_fit.simulated_plan(platform, 1)
        plan = replace(plan, procs=no_more(plan.procs), collectives=collectives, segment_bytes=(0,))
        return critical_path_fit.fit(bench, plan)

    def by_algorithm() -> ModelParameters:
        plan = implementation_aware.simulated_plan(platform, 1)
        usual = tuple(name for name in plan.broadcasts if name in broadcasts)
        plan = replace(plan, procs=no_more(plan.procs), more_segments=(0,), broadcasts=usual, collectives=collectives)
        return implementation_aware.fit(bench, plan)

    heterogeneous = None if platform.heterogeneous else False
    fits: dict[str, Callable[[], Parameters]] = {
        family: partial(lambda one: parameters_on(bench, request(one, heterogeneous=heterogeneous)), family)
        for family in FAMILIES
    }
    fits[CRITICAL_PATH] = by_path
    if any(name in MODELS[BY_PARTS].formulas for name in collectives):
        fits[IMPLEMENTATION_AWARE] = by_algorithm
    found: dict[str, CollectiveModel] = {}
    for family, fit in fits.items():
        try:
            found |= models_of(fit())
        except CollwiseError as problem:
            on_note(f"{family} is not fitted to {platform.name}: {problem}")
    return list(found.values())


def _by_model(model: CollectiveModel, wanted: Grids) -> Iterator[tuple[MeasuredPlace, Times]]:
    for place, grid in wanted:
        known = grid.of_algorithms(model.algorithms(grid.collective))
        if known.choices and model.processes_per_node in (None, place.processes_per_node):
            yield place, predicted_by(model, known)
