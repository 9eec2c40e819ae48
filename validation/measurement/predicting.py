"""Predictions for the points of measured runs, by an engine and analytical models that do not use measured times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.units import counted, format_size
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel
from collwise.models.parameters import FAMILIES
from collwise.models.registry import BY_PARTS, CRITICAL_PATH, IMPLEMENTATION_AWARE, MODELS
from collwise.platforms import AllocatedPlatform, HostPlatform, Platform, allocated
from collwise.platforms.allocation import Allocation, NodeMap, read_node_map
from collwise.simulator.bench import Simulated
from collwise.simulator.execution.cluster import hosts_in
from collwise.simulator.limits import buffers_of_node
from collwise.simulator.sweeps.context import SCHEDULE_WITH_EXPERIMENTS, SMPI, SimulationContext
from collwise.validation.calibration.figures import PUBLISHED, Factors, from_data_sheets, multiplied
from collwise.validation.fitting.implementation_aware import default_procs
from collwise.validation.fitting.models_by_name import Parameters, algorithms_parameters_on, models_of, parameters_on
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

_MAX_PROCS_OF_SMPI, _MAX_BYTES_OF_SMPI = 128, 8 << 30
"""SMPI takes minutes for more processes, and may run out of memory for more bytes in all buffers together."""

Grids = Sequence[tuple[MeasuredPlace, Grid]]


@dataclass(frozen=True)
class Predicted:
    """Predictions by predictor, platforms by machine, and notes on what was left out.

    `placed` has the jobs that were predicted on the nodes where they ran, by the name of the node map.
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
    """Predicts the candidates of the runs with the context's engine, and with every model if `models` is True."""
    found: dict[str, dict[MeasuredPlace, Times]] = {PREDICTED: {}}
    platforms: dict[str, str] = {}
    placed: dict[str, dict[str, None]] = {}
    to_model: dict[str, tuple[HostPlatform, list[tuple[MeasuredPlace, Grid]]]] = {}
    notes: list[str] = []
    read_map = cache(read_node_map)
    for run, platform, wanted in _predictable(runs, factors, context.engine is SMPI, notes.append):
        if run.machine not in platforms:
            note(f"{run.machine}: predicting by the {context.engine.name} engine")
        where = _where_it_ran(platform, run, wanted, read_map, notes.append)
        facts = {}
        if isinstance(where, AllocatedPlatform) and run.node_map is not None:
            placed.setdefault(run.node_map.name, {})[run.job] = None
            facts = {NODE_MAP: run.node_map.name}
        found[PREDICTED] |= _by_engine(where, wanted, context, facts)
        if models:
            if isinstance(platform, Platform) and PUBLISHED in platform.published:
                found.setdefault(SHEETS, {}).update(_by_engine(_by_data_sheets(where), wanted, context))
            whole = platform_of(run.machine, {**run.facts, "hosts": ""}, run.description) or platform
            to_model.setdefault(platform.name, (whole, []))[1].extend(wanted)
        platforms[run.machine] = platform.name
    if context.engine is SMPI:
        limit = f"P = {_MAX_PROCS_OF_SMPI} and buffers of {format_size(_MAX_BYTES_OF_SMPI)} in all"
        notes.append(f"simulated by SMPI up to {limit}")
    for whole, some in to_model.values():
        note(f"{whole.name}: fitting models and predicting by them")
        for model in _models(whole, some, context, notes.append):
            found.setdefault(model.name, {}).update(_by_model(model, some))
    jobs = {name: list(some) for name, some in placed.items()}
    return Predicted(found, platforms, jobs, list(dict.fromkeys(notes)))


def _predictable(
    runs: Sequence[MeasuredRun], factors: Mapping[str, Factors], by_smpi: bool, on_note: Callable[[str], None]
) -> Iterator[tuple[MeasuredRun, HostPlatform, Grids]]:
    """The runs, each with its machine's platform and its predictable points. `on_note` gets what is left out."""
    without = []
    for run in runs:
        wanted = [(place, grid) for place, grid, _ in grids(run)]
        if not wanted:
            without.append(f"{run.machine} ({run.job})")
            continue
        name = " over ".join(filter(None, (run.machine, run.facts.get("transport"))))
        platform = platform_of(run.machine, run.facts, run.description)
        if platform is None:
            on_note(f"no platform is named after {name}: its runs are left out")
            continue
        if isinstance(platform, Platform) and run.machine in factors:
            platform = replace(multiplied(platform, factors[run.machine]), name=f"{platform.name}-trained")
        fitting = [(place, grid) for place, grid in wanted if _fits(platform, place)]
        if beyond := sorted({place.procs for place, _ in wanted} - {place.procs for place, _ in fitting}):
            holds = f"{counted(len(platform.hosts), 'node')} of {counted(platform.known_cores_per_node or 1, 'core')}"
            on_note(f"{name}: P = {', '.join(map(str, beyond))} are left out: {platform.name} has {holds}")
        if some := list(_small(fitting)) if by_smpi else fitting:
            yield run, platform, some
    if without:
        on_note(f"left out, since no point has two algorithms of the catalogue: {', '.join(without)}")


def _fits(platform: HostPlatform, place: MeasuredPlace) -> bool:
    cores = platform.known_cores_per_node or place.processes_per_node
    return place.procs <= platform.max_procs(place.processes_per_node) and place.processes_per_node <= cores


def _where_it_ran(
    platform: HostPlatform,
    run: MeasuredRun,
    wanted: Grids,
    read_map: Callable[[Path], NodeMap],
    on_note: Callable[[str], None],
) -> HostPlatform:
    """The platform, reduced to the run's nodes if a map has all of them. Raises UsageError for a malformed map."""
    hosts = hosts_in(run.facts.get("hosts", ""))
    if run.node_map is None or not hosts:
        return platform
    node_map = read_map(run.node_map)
    job = f"{run.machine} ({run.job})"
    try:
        found = allocated(platform, Allocation(job, hosts, True, dict.fromkeys(hosts, job)), node_map)
    except UsageError as problem:
        on_note(f"predicted on nodes in order: {problem}")
        return platform
    if any(place.procs > found.max_procs(place.processes_per_node) for place, _ in wanted):
        on_note(f"predicted on nodes in order: {job}: its hosts are too few for its processes")
        return platform
    return found


def _by_data_sheets(where: HostPlatform) -> HostPlatform:
    """The platform, whole or reduced to the nodes of a job, with values of data sheets alone."""
    if isinstance(where, AllocatedPlatform):
        return replace(where, base=_by_data_sheets(where.base))
    assert isinstance(where, Platform)
    return replace(from_data_sheets(where), name=f"{where.name}-data-sheets")


def _by_engine(
    where: HostPlatform, wanted: Grids, context: SimulationContext, facts: Mapping[str, str] = MappingProxyType({})
) -> dict[MeasuredPlace, Times]:
    """The simulated times of each place, with further facts."""
    times = simulate(where, [grid for _, grid in wanted], context)
    return {place: item.with_facts(**facts) for (place, _), item in zip(wanted, times, strict=True)}


def _small(wanted: Grids) -> Iterator[tuple[MeasuredPlace, Grid]]:
    """The parts of the grids that SMPI can simulate."""
    for place, grid in wanted:
        most = _MAX_BYTES_OF_SMPI // buffers_of_node(grid.collective, place.procs, place.procs)
        sizes = tuple(size for size in grid.message_bytes if size <= most)
        if sizes and place.procs <= _MAX_PROCS_OF_SMPI:
            yield place, replace(grid, message_bytes=sizes)


def _models(
    platform: HostPlatform, wanted: Grids, context: SimulationContext, on_note: Callable[[str], None]
) -> list[CollectiveModel]:
    """Every model for the wanted collectives, fitted to times of the schedule engine with one process on each node."""
    bench = Simulated(platform, replace(context, engine=SCHEDULE_WITH_EXPERIMENTS))
    collectives = tuple(dict.fromkeys(grid.collective for _, grid in wanted))
    broadcasts = [name for _, grid in wanted if grid.collective == "bcast" for name in grid.names]
    usual = default_procs(platform, 1)
    most = max(usual[0], *(place.procs for place, _ in wanted))
    procs = sorted({min(count, most) for count in usual})

    def fitted(family: str) -> Parameters:
        if family in FAMILIES:
            return parameters_on(bench, request(family, heterogeneous=None if platform.heterogeneous else False))
        return algorithms_parameters_on(
            bench, family, procs, 1, collectives=collectives, segments=(0,), broadcasts=broadcasts
        )

    aware = any(name in MODELS[BY_PARTS].formulas for name in collectives)
    found: dict[str, CollectiveModel] = {}
    for family in (*FAMILIES, CRITICAL_PATH, *([IMPLEMENTATION_AWARE] if aware else [])):
        try:
            found |= models_of(fitted(family))
        except CollwiseError as problem:
            on_note(f"{family} is not fitted to {platform.name}: {problem}")
    return list(found.values())


def _by_model(model: CollectiveModel, wanted: Grids) -> Iterator[tuple[MeasuredPlace, Times]]:
    for place, grid in wanted:
        known = grid.of_algorithms(model.algorithms(grid.collective))
        if known.choices and model.processes_per_node in (None, place.processes_per_node):
            yield place, predicted_by(model, known)
