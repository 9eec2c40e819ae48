"""The times by which `collwise select` decides: predicted, simulated, or measured and filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.algorithms.catalogue_check import LIBRARIES
from collwise.common.errors import UsageError, note
from collwise.models.interface import CollectiveModel
from collwise.models.registry import check_formulas, no_parameters
from collwise.platforms import HostPlatform, known, load
from collwise.platforms.smpi import charges_overheads, warn_of_free_messages, without_free_barrier
from collwise.predictions import model_from
from collwise.simulator.sweeps.context import SimulationContext
from collwise.store_contents import chosen_configurations
from collwise.studies.cli.types import Unknown
from collwise.validation.fitting.models_by_name import check_fits_platform, platform_of
from collwise.validation.select import consumers
from collwise.validation.times.defaults import SEGMENTS, sizes_of
from collwise.validation.times.grid import Grid
from collwise.validation.times.measured import asked_of, measured_platform, stored_times
from collwise.validation.times.points import asked_points, warn_of_doubtful
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times


@dataclass(frozen=True)
class Asked:
    """What decisions are asked for: algorithms by collective, and points and segment sizes, None for the usual ones.

    `margins` are the shares by which times of a collective may be slower than the best and left out, where they may be.
    """

    algorithms: Mapping[str, tuple[str, ...]]
    consumer: str | None
    procs: tuple[int, ...] | None
    sizes: tuple[int, ...] | None
    segments: tuple[int, ...] | None
    ppn: int | None
    margins: Mapping[str, float]

    def grids(self, procs: Sequence[int], per_node: int, decided: bool, collectives: Sequence[str]) -> list[Grid]:
        """The grids of collectives; `decided`: by default with the sizes that decisions are made for."""
        pieces = consumers.segments_for(self.consumer, self.segments or SEGMENTS)
        return [
            Grid.of(name, procs, sizes_of(name, self.sizes, decided=decided), per_node, pieces, self.algorithms[name])
            for name in collectives
        ]


Filler = Callable[[Grid], Times]
"""Makes the times of a grid by another source."""


def times_by(
    by: str,
    collectives: Sequence[str],
    parameters: Path | None,
    platform: HostPlatform | Unknown | None,
    procs: tuple[int, ...] | None,
    ppn: int | None,
    how: Mapping[str, Any],
    context: SimulationContext,
) -> Sequence[Times]:
    """The times of a source that the options of `collwise select` ask for; `how` are its further ones, by name."""
    for name, what in (("tolerance", "tolerance"), ("tie_limit", "limit of ties")):
        arguments.check_percent(what, how[name])
    consumer, fill, agreement = how["consumer"], how["fill"], how["agreement"]
    algorithms = choosable(collectives, consumer, how["by_node"], how["guidelines"])
    single = {name: consumers.needs_one_choice(name, consumer) for name in algorithms if how["one_choice"] is None}
    margins = {name: how["tolerance"] / 100 for name in algorithms if not single.get(name, how["one_choice"])}
    asked = Asked(algorithms, consumer, procs, how["sizes"], how["segments"], ppn, margins)
    where = None if isinstance(platform, Unknown) else platform
    if by == "measured":
        if fill is not None and not 0 <= agreement < 100:
            raise UsageError(f"agreement within {agreement:g} percent; valid: from 0 to below 100")
        filler: Filler | None = None
        if fill == "simulated":
            if where is None:
                raise UsageError("gaps filled by simulation need a platform")
            filler = partial(_simulated_gaps, where, context)
        elif fill == "predicted" and parameters is not None:
            filler = partial(predicted, model_from(parameters, how["name"]))
        return _measured_times(asked, platform, how["configuration"], filler, agreement / 100, context)
    if where is not None and ppn is not None:
        where.check_processes_per_node(ppn)
    if by == "predicted":
        assert parameters is not None
        return _predicted_times(asked, parameters, how["name"], where, context)
    assert where is not None
    return simulated_times(asked, where, context)


def choosable(
    collectives: Sequence[str], consumer: str | None, by_node: bool, guidelines: bool
) -> dict[str, tuple[str, ...]]:
    """Algorithms to choose from by collective; those without any are left out, and an error if all are."""
    if by_node and consumer is not None:
        entries = map(Catalogue.load().collective, collectives)
        if not any(consumers.can_run(consumer, entry.algorithms[name]) for entry in entries for name in entry.by_node):
            raise UsageError(f"--by-node: {consumer} has no algorithms by node of {arguments.several(collectives)}")
    found, missing = {}, []
    those = [consumer] if consumer else []
    for name in collectives:
        try:
            found[name] = consumers.algorithms_for(name, *those, by_node=by_node, guidelines=guidelines)
        except UsageError as problem:
            missing.append(problem)
    if not found:
        raise missing[0]
    for left_out in missing:
        note(f"{left_out}; left out")
    return found


def _predicted_times(
    asked: Asked, parameters: Path, name: str | None, platform: HostPlatform | None, context: SimulationContext
) -> list[Times]:
    """The times that a model predicts, by default for all process counts of its platform."""
    model = model_from(parameters, name)
    described = platform or (load(model.platform) if model.platform in known() else None)
    if described is not None:
        warn_of_free_messages(described)
    names = _with_formulas(model, list(asked.algorithms))
    grids = asked.grids(*_process_counts(model, parameters, platform, asked), True, names)
    if described is not None:
        grids = asked_points(described, grids)
        warn_of_doubtful(described, grids)
    found = [predicted(model, grid, asked.margins.get(grid.collective), context.progress) for grid in grids]
    for line in (line for times in found for line in times.notes):
        note(line)
    if described is None:
        return found
    return [replace(times, max_procs=described.max_procs(times.processes_per_node)) for times in found]


def simulated_times(asked: Asked, platform: HostPlatform, context: SimulationContext) -> list[Times]:
    """The simulated times, for Open MPI also those of what it runs untuned; what is missing is simulated now."""
    names = without_free_barrier(asked.algorithms, platform)
    per_node = asked.ppn or platform.default_processes_per_node
    short = charges_overheads(platform.smpi_options())
    grids = asked_points(platform, asked.grids(asked.procs or (), per_node, not short, names))
    grids = [consumers.grid_for(asked.consumer, grid) for grid in grids]
    found = simulate(platform, grids, context, asked.margins)
    warn_of_free_messages(platform)
    warn_of_doubtful(platform, grids)
    return found


def _measured_times(
    asked: Asked,
    platform: HostPlatform | str | None,
    configuration: Sequence[str] | None,
    filler: Filler | None,
    agreement: float,
    context: SimulationContext,
) -> list[Times]:
    """The measured times of the store, with gaps filled by `filler` where it agrees with what is measured nearby."""
    store, found, missing = context.store, [], {}
    named = platform.name if isinstance(platform, HostPlatform) else platform
    where = measured_platform(store, named)
    keys = [] if configuration is None else [one.key for one in chosen_configurations(store, configuration)]
    for name in asked.algorithms:
        try:
            found.append(stored_times(store, "measured", where, name, asked.ppn, keys))
        except UsageError as problem:
            missing[name] = problem
    if not found:
        raise next(iter(missing.values()))
    if missing:
        note(f"{', '.join(missing)}: nothing is measured on {where} that could be chosen; left out")
    return [_filled(asked, times, filler, agreement) for times in found]


def _simulated_gaps(platform: HostPlatform, context: SimulationContext, grid: Grid) -> Times:
    label = f"{platform.name}: simulating {len(grid.cases())} cases to fill gaps"
    return simulate(platform, [grid], context, {}, label)[0]


def _filled(asked: Asked, times: Times, filler: Filler | None, agreement: float) -> Times:
    """The measured times at the points asked for; gaps are filled by those nearby, also of other points."""
    cut = (0,) if asked.consumer in LIBRARIES else asked.segments
    grid = asked_of(times, asked.algorithms[times.collective], asked.procs, asked.sizes, cut)
    if filler is not None:
        mine = times.grid
        procs, sizes = {*mine.procs, *grid.procs}, {*mine.message_bytes, *grid.message_bytes}
        choices = tuple(dict.fromkeys([*mine.choices, *grid.choices]))
        whole = replace(mine, choices=choices, procs=tuple(sorted(procs)), message_bytes=tuple(sorted(sizes)))
        times = times.of_grid(whole)
        if (gaps := times.gaps(grid)).besides:
            times = times.filled(filler(gaps), agreement)
    return times.of_grid(grid)


def _with_formulas(model: CollectiveModel, collectives: Sequence[str]) -> list[str]:
    """The collectives that the model has formulas for; the others are named, and an error if these are all."""
    covered = [name for name in collectives if model.algorithms(name)]
    if not covered:
        check_formulas(model.name, collectives)
        raise no_parameters(model.name, collectives)  # parameters by collective, none of them for these
    if without := [name for name in collectives if name not in covered]:
        note(f"{', '.join(without)}: model {model.name} has no formulas; left out")
    return covered


def _process_counts(
    model: CollectiveModel, file: Path, platform: HostPlatform | None, asked: Asked
) -> tuple[tuple[int, ...], int]:
    """The process counts to decide for, and the processes per node: as asked, as fitted, or the platform's."""
    fitted = model.processes_per_node
    if asked.ppn is not None and fitted not in (None, asked.ppn):
        raise UsageError(f"--ppn: {file} has parameters for {fitted} per node, not for {asked.ppn}")
    per_node = asked.ppn or fitted
    if platform is None and asked.procs:
        return asked.procs, per_node or 1
    platform = platform or platform_of(model, file)
    per_node = per_node or platform.default_processes_per_node
    check_fits_platform(model, file, platform, per_node)
    for count in asked.procs or ():
        platform.hosts_for(count, per_node)
    return asked.procs or tuple(range(2, platform.max_procs(per_node) + 1)), per_node
