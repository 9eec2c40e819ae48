"""Decisions, and the rules that libraries read: `select`, `export`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.algorithms.catalogue_check import LIBRARIES
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name, note, warn
from collwise.common.files import write_text
from collwise.common.units import counted
from collwise.models.interface import CollectiveModel
from collwise.platforms import HostPlatform, known, load
from collwise.platforms.smpi import charges_overheads, warn_of_free_messages, without_free_barrier
from collwise.predictions import ModelLike, model_from, predicted_times
from collwise.simulator.sweeps.context import without_progress
from collwise.simulator.timing import Case, Timing
from collwise.stored import chosen_configurations
from collwise.validation.exports.formats import FORMATS, exported
from collwise.validation.exports.mpich import VERSIONS as MPICH_VERSIONS
from collwise.validation.select.consumers import (
    ALL_CONSUMERS,
    OPENMPI,
    algorithms_for,
    can_run,
    needs_one_choice,
    openmpi_version,
    segments_for,
)
from collwise.validation.select.decisions import (
    MEASURED_UNDER,
    DecisionTable,
    all_at_once_text,
    decisions_from,
    decisions_text,
    wide_steps_texts,
)
from collwise.validation.select.select import select_by_model, select_by_times, simulate_and_select
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import AGREEMENT, SEGMENTS, TIE_LIMIT, TOLERANCE_PERCENT, sizes_of
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.measured import (
    Measurement,
    fill_gaps,
    gap_cases,
    measured_grid,
    measured_platform,
    measured_times,
    measurement_of,
    with_own_times,
)
from collwise.validation.times.points import asked_points, warn_of_doubtful
from collwise.validation.times.predictions import covered_by_model, without_prediction

if TYPE_CHECKING:
    from collwise.simulator.store import Store
    from collwise.simulator.sweeps.context import SimulationContext

SOURCES = ("predicted", "simulated", "measured")
"""The sources of times by which choices are made."""


@dataclass(frozen=True, repr=False)
class Decisions:
    """Decision tables, one per collective: the algorithm to run from a P and message size on; from `select`."""

    tables: tuple[DecisionTable, ...]
    failed: tuple[Timing, ...] = field(default=(), compare=False)
    """Simulated cases that failed and are no choice."""

    @classmethod
    def load(cls, *paths: str | Path) -> Decisions:
        """The tables of files that `save` or `collwise select -o` wrote. Raises UsageError naming the file."""
        return cls(tuple(table for path in paths for table in decisions_from(Path(path))))

    def save(self, path: str | Path) -> None:
        """Writes all tables into one JSON file. Raises UsageError when it cannot be written."""
        write_text(Path(path), decisions_text(self.tables))

    def choose(self, collective: str, procs: int, message_bytes: int | str) -> Choice:
        """The choice for one call. Raises UsageError where nothing is decided."""
        found = {table.collective: table for table in self.tables}
        check_name("collective", collective, found, "those decided")
        return found[collective].choose(procs, arguments.sizes(message_bytes)[0])

    def frame(self) -> pd.DataFrame:
        """A row per rule: `collective`, `from_procs`, `from_bytes`, `algorithm`, `segment_bytes`."""
        rows = [
            (table.collective, procs, start, choice.algorithm, choice.segment_bytes)
            for table in self.tables
            for procs, row in table.rules.items()
            for start, choice in row
        ]
        return pd.DataFrame(rows, columns=["collective", "from_procs", "from_bytes", "algorithm", "segment_bytes"])

    def __repr__(self) -> str:
        what = ", ".join(f"{table.collective} on {table.platform} by {table.made_by}" for table in self.tables[:3])
        more = f" and {len(self.tables) - 3} more" if len(self.tables) > 3 else ""
        return f"<Decisions for {what}{more}: {len(self.frame())} rules>"

    def _repr_html_(self) -> str:
        return self.frame().to_html(index=False, max_rows=30)


def select(
    collective: Names,
    model: ModelLike | None = None,
    *,
    platform: PlatformLike | None = None,
    by: str = "predicted",
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    segments: Numbers | None = None,
    consumer: str | None = None,
    one_choice: bool | None = None,
    tolerance: float = TOLERANCE_PERCENT,
    exact: bool = False,
    name: str | None = None,
    by_node: bool = False,
    guidelines: bool = False,
    ppn: int | None = None,
    configuration: Names | None = None,
    fill: str | None = None,
    agreement: float = AGREEMENT * 100,
    tie_limit: float = TIE_LIMIT * 100,
    context: SimulationContext | None = None,
) -> Decisions:
    """Decides which algorithm to run for each process count and from which message size on.

    Parameters: `collective`, one name, several, or 'all'; `by`, 'predicted', 'simulated' or 'measured' times; `model`,
    for predicted times, what `fit` returned or a parameter file, and `name`, which of its models; `platform`, needed
    for simulated times, and for measured ones the name that they have in the store; `procs`, process counts, by default
    2 to all of the platform's for predicted times and those measured for measured ones; `sizes`, message sizes in
    bytes, for measured times by default those measured; `segments`, segment sizes that a choice may have, by default 8
    KiB to 128 KiB by doubling, or those measured; `consumer`, 'openmpi-4.1', 'mpich' or another one, or 'collwise', to
    use only what its rules can express; `one_choice`, one algorithm per process count, by default where the consumer
    needs that; `tolerance`, by how many percent a choice may be slower than the best one, so that fewer rules suffice,
    0 for the fastest one everywhere; `exact`, decide by predicted times at every size, to the byte, and not at `sizes`
    only, which takes many more rules; `by_node`, choose by simulated times also among the algorithms that treat the
    processes of one node differently from others; `guidelines`, choose by such times also among the mock-ups of
    performance guidelines, which libcollwise can run; `ppn`, processes per node; `context`, see `session`. For measured
    times, `configuration`, beginnings of keys that `configurations` lists, says which measurement is meant where there
    are several; `fill`, 'simulated' or 'predicted', fills gaps where that source is within `agreement` percent of what
    is measured nearby; `tie_limit`, by how many percent of its time a choice may be slower than the fastest one
    whose confidence interval it overlaps.

    Returns Decisions, with the fewest rules that keep to the tolerance at `sizes`; with `exact` they keep to it, to the
    byte, at every size between the least and the largest of them, but by the model critical_path. Without,
    choices by predicted times change at the byte from which on the later one is faster, and each table by formulas has
    the loss between the sizes (`between`). Measured choices whose confidence interval overlaps that of
    the fastest one are as good as it is. Raises UsageError for wrong arguments.

    >>> import collwise
    >>> decisions = collwise.select("bcast", collwise.fit("exact", "hockney"), procs="2:8:+1")
    >>> decisions
    <Decisions for bcast on exact by model hockney: ... rules>
    >>> decisions.choose("bcast", 8, "1MiB").algorithm
    '...'
    """
    check_name("source of times", by, SOURCES)
    if consumer is not None:
        check_name("decision consumer", consumer, ALL_CONSUMERS)
    arguments.check_percent("tolerance", tolerance)
    arguments.check_percent("limit of ties", tie_limit)
    if by_node and by == "predicted":
        raise UsageError("by_node is for simulated and measured times, by which alone algorithms by node are chosen")
    if guidelines and by == "predicted":
        raise UsageError("guidelines is for simulated and measured times, by which alone mock-ups are chosen")
    if by != "predicted" and exact:
        raise UsageError(f"exact is for predicted times; {by} ones are known at single sizes only")
    if by != "measured" and (fill is not None or configuration is not None):
        raise UsageError(f"{'fill' if fill is not None else 'configuration'} is for measured times")
    chosen = _candidates(arguments.collectives(collective), consumer, by_node, guidelines)
    counts = None if procs is None else arguments.counts(procs)
    asked_sizes = None if sizes is None else arguments.sizes(sizes)
    cut = None if segments is None else segments_for(consumer, arguments.sizes(segments))

    def single(one: str) -> bool:
        return needs_one_choice(one, consumer) if one_choice is None else one_choice

    for_openmpi = by == "simulated" and consumer is not None and openmpi_version(consumer) is not None

    def grids(
        names: dict[str, tuple[str, ...]], counts: tuple[int, ...], per_node: int, short: bool = False
    ) -> list[CaseGrid]:
        pieces = cut or segments_for(consumer, SEGMENTS)
        return [
            CaseGrid(
                one, counts, sizes_of(one, asked_sizes, decided=not short), per_node, pieces, algorithms, for_openmpi
            )
            for one, algorithms in names.items()
        ]

    if by == "measured":
        asked_grid = (counts, asked_sizes, (0,) if consumer in LIBRARIES else cut)
        filler = None if fill is None else _Filler(fill, platform, model, name, agreement / 100)
        with arguments.opened(context) as opened:
            where_measured = _measured_platform(opened.store, platform)
            wanted = () if configuration is None else chosen_configurations(opened.store, configuration)
            keys = [one.key for one in wanted]
            tables = []
            for one in _measured(opened.store, where_measured, chosen, ppn, keys):
                how = (single(one.collective), tolerance / 100, tie_limit / 100)
                tables.append(_by_measured(opened, one, chosen[one.collective], asked_grid, filler, how))
            return Decisions(tuple(tables))
    where = None if platform is None else arguments.platform(platform)
    if where is not None and ppn is not None:
        where.check_processes_per_node(ppn)
    if by == "predicted":
        if model is None:
            raise UsageError("predicted times need a model: what fit returned, or a parameter file")
        fitted = model_from(model, name)
        described = where or (load(fitted.platform) if fitted.platform in known() else None)
        if described is not None:
            warn_of_free_messages(described)
        chosen = _with_formulas(fitted, chosen)
        asked = grids(chosen, *_process_counts(fitted, Path(str(model)), where, counts, ppn))
        if described is not None:
            asked = asked_points(described, asked)
            warn_of_doubtful(described, asked)
        for grid in asked:
            covered, left_out = covered_by_model(fitted, grid)
            for line in filter(None, (left_out, without_prediction(fitted, covered))):
                note(line)
        progress = without_progress if context is None else context.progress
        tables = [
            select_by_model(fitted, grid, single(grid.collective), not exact, tolerance / 100, not exact, progress)
            for grid in asked
        ]
        if described is not None:
            tables = [replace(one, platform_procs=described.max_procs(one.processes_per_node)) for one in tables]
        return Decisions(tuple(tables))
    if where is None or counts is None:
        raise UsageError("simulated times need a platform and procs, for example '8,16,32'")
    per_node = ppn or where.default_processes_per_node
    chosen = {one: chosen[one] for one in without_free_barrier(chosen, where)}
    asked = asked_points(where, grids(chosen, counts, per_node, charges_overheads(where.smpi_options())))
    with arguments.opened(context) as simulations:
        tables, sweep = simulate_and_select(where, asked, simulations, single, tolerance / 100)
    for text in filter(None, (*wide_steps_texts(tables), all_at_once_text(tables))):
        note(text)
    if by_node:
        note("forms of algorithms that use memory which the processes of a node share are not simulated, and no choice")
    if sweep.failed:
        warn(f"{counted(len(sweep.failed), 'case')} failed and are no choice; first: {sweep.failed[0].error}")
    return Decisions(tuple(tables), tuple(sweep.failed))


def export(
    decisions: Decisions | str | Path | Sequence[str | Path],
    path: str | Path | None = None,
    format_name: str = "openmpi",
    *,
    openmpi_version: str = "4.1",
    mpich_version: str = "4.0",
    procs: int | None = None,
) -> str:
    """Decisions as rules that an MPI library reads; a file of that name is replaced.

    Parameters: `decisions`, what `select` returned, or files that it was saved in; `path`, the file to write, if any;
    `format_name`, 'openmpi' (classic dynamic rules), 'openmpi-json', 'collwise' (the table of `collwise run`), 'mpich'
    (its selection file), 'mpich-variables', 'intel', 'mvapich2', 'ucc', 'smpi' or 'prf' (a profile of
    PGMPITuneLib); `openmpi_version`, whose algorithm ids classic rules have; `mpich_version`, '4.0' or '4.1' for 4.1
    and later; `procs`, for formats that hold for one process count, which one.

    Returns the text of the rules. A choice that the format cannot express is replaced by the best one that it can,
    and a note says what that costs; warnings say what to know before the rules are used. Raises UsageError for what
    cannot be written at all, and for a file that cannot be written.

    >>> import collwise
    >>> model = collwise.fit("exact", "hockney")
    >>> decisions = collwise.select("bcast", model, procs="2:8:+1", consumer="openmpi-4.1")
    >>> rules = collwise.export(decisions, "exact.rules")
    """
    check_name("format", format_name, FORMATS)
    check_name("version of MPICH's selection file", mpich_version, MPICH_VERSIONS)
    if not isinstance(decisions, Decisions):
        decisions = Decisions.load(*([decisions] if isinstance(decisions, (str, Path)) else decisions))
    version = mpich_version if format_name == "mpich" else openmpi_version
    made = exported(decisions.tables, format_name, version=version, procs=procs)
    for line in made.substitutions[:_MOST_SUBSTITUTIONS]:
        note(str(line))
    if len(made.substitutions) > _MOST_SUBSTITUTIONS:
        costs = [one.cost for one in made.substitutions if not math.isnan(one.cost)]
        worst = f", the worst of which is {max(costs) * 100:.1f} % slower" if costs else ""
        note(f"{len(made.substitutions)} choices cannot be said{worst}; {_MOST_SUBSTITUTIONS} are listed")
    consumer = FORMATS[format_name].consumer
    consumer = f"{OPENMPI}-{openmpi_version}" if consumer == OPENMPI else consumer
    if consumer in ALL_CONSUMERS and any(not one.too_few for one in made.substitutions):
        note(
            "replacements are the best of the choices that the table has times of, often few; "
            f"'collwise select ... --for {consumer}' makes a table from all that these rules can express"
        )
    for warning in made.warnings:
        warn(warning)
    if path is not None:
        write_text(Path(path), made.text)
    return made.text


_MOST_SUBSTITUTIONS = 20


@dataclass(frozen=True)
class _Filler:
    """The source that fills gaps in measured times, and how far it may be from what is measured nearby."""

    source: str
    platform: PlatformLike | None
    model: ModelLike | None
    model_name: str | None
    agreement: float

    def __post_init__(self) -> None:
        check_name("source that fills gaps", self.source, ("simulated", "predicted"))
        if not 0 <= self.agreement < 1:
            raise UsageError(f"agreement within {self.agreement * 100:g} percent; valid: from 0 to below 100")
        if self.source == "simulated" and self.platform is None:
            raise UsageError("gaps filled by simulation need a platform")
        if self.source == "predicted" and self.model is None:
            raise UsageError("gaps filled by predictions need a model: what fit returned, or a parameter file")

    def times(self, cases: Sequence[Case], simulations: SimulationContext) -> tuple[dict[Case, float], str]:
        """The source's times of cases, without those that it has none for, and its name."""
        if self.source == "simulated":
            assert self.platform is not None
            where = arguments.platform(self.platform)
            sweep = simulations.simulate(where, cases, f"{where.name}: simulating {len(cases)} cases to fill gaps")
            return {case: one.seconds for case, one in sweep.timings.items() if one.ok}, sweep.configuration.maker
        assert self.model is not None
        fitted = model_from(self.model, self.model_name)
        return predicted_times(fitted, cases), f"model {fitted.name}"


def _measured_platform(store: Store, platform: PlatformLike | None) -> str:
    """The name that a platform's measured times have in the store."""
    if platform is not None and not isinstance(platform, HostPlatform) and Path(str(platform)).is_file():
        platform = load(str(platform))
    name = platform.name if isinstance(platform, HostPlatform) else platform
    return measured_platform(store, None if name is None else str(name))


def _measured(
    store: Store, platform: str, collectives: Iterable[str], ppn: int | None, keys: Sequence[str]
) -> list[Measurement]:
    """The measurement of each collective; those without any are left out, and an error if all are."""
    found: list[Measurement] = []
    missing: dict[str, UsageError] = {}
    for name in collectives:
        try:
            found.append(measurement_of(store, platform, name, ppn, keys))
        except UsageError as problem:
            missing[name] = problem
    if not found:
        raise next(iter(missing.values()))
    if missing:
        note(f"{', '.join(missing)}: nothing is measured on {platform} that could be chosen; left out")
    return found


def _by_measured(
    simulations: SimulationContext,
    measurement: Measurement,
    algorithms: Sequence[str],
    asked: tuple[tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...] | None],
    filler: _Filler | None,
    how: tuple[bool, float, float],
) -> DecisionTable:
    """The table of one collective by measured times; says what it rests on.

    `asked` are the process counts, sizes and segment sizes, None for those measured; `how` is what `select_by_times`
    takes.
    """
    platform, collective = measurement.platform, measurement.collective
    grid = measured_grid(measurement, algorithms, *asked)
    times = measured_times(grid, measurement)
    gaps = [case for case in grid.cases() if case not in measurement.timings]
    if filler is not None and gaps:
        found, filled_by = filler.times(gap_cases(grid, measurement), simulations)
        times = fill_gaps(grid, measurement, times, found, filled_by, filler.agreement)
    made_by = f"{MEASURED_UNDER} {measurement.maker}"
    if times.filled.any():
        made_by += f", gaps filled by {times.filled_by}"
    table = select_by_times(grid, times, platform, made_by, *how)
    if not table.rules:
        raise UsageError(f"{collective} on {platform}: no time for any of the process counts and sizes asked for")
    table = with_own_times(table, measurement)
    for line in _told(measurement, len(gaps), int(times.filled.sum()), filler):
        note(f"{collective}: {line}")
    return table


def _told(measurement: Measurement, gaps: int, filled: int, filler: _Filler | None) -> Iterator[str]:
    yield f"{measurement.measured} times measured under {measurement.maker}, configuration {measurement.label}"
    if measurement.others:
        yield f"{measurement.others} other measurements there are not used; choose one with its configuration"
    if not measurement.exact:
        yield "some times have no confidence interval; they count as exact"
    if filler is not None:
        yield f"{filled} of {gaps} gaps filled by {filler.source} times, the others have no agreement nearby"
    elif gaps:
        yield f"{gaps} points of choices are not measured, where they are not chosen"


def _candidates(
    collectives: Sequence[str], consumer: str | None, by_node: bool, guidelines: bool
) -> dict[str, tuple[str, ...]]:
    """Algorithms to choose from by collective; those without any are left out, and an error if all are."""
    if by_node and consumer is not None:
        entries = map(Catalogue.load().collective, collectives)
        if not any(can_run(consumer, entry.algorithms[name]) for entry in entries for name in entry.by_node):
            raise UsageError(f"--by-node: {consumer} has no algorithms by node of {arguments.several(collectives)}")
    found, missing = {}, []
    for name in collectives:
        try:
            found[name] = algorithms_for(
                name, *([consumer] if consumer else []), by_node=by_node, guidelines=guidelines
            )
        except UsageError as problem:
            missing.append(problem)
    if not found:
        raise missing[0]
    for left_out in missing:
        note(f"{left_out}; left out")
    return found


def _with_formulas(model: CollectiveModel, chosen: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The collectives that the model has formulas for; the others are named, and an error if these are all."""
    from collwise.models.registry import check_formulas, no_parameters

    if not any(model.algorithms(name) for name in chosen):
        check_formulas(model.name, list(chosen))
    covered = {name: names for name, names in chosen.items() if model.algorithms(name)}
    if not covered:  # parameters by collective, none of them for these
        raise no_parameters(model.name, list(chosen))
    if without := [name for name in chosen if name not in covered]:
        note(f"{', '.join(without)}: model {model.name} has no formulas; left out")
    return covered


def _process_counts(
    model: CollectiveModel, file: Path, platform: HostPlatform | None, procs: tuple[int, ...] | None, ppn: int | None
) -> tuple[tuple[int, ...], int]:
    """The process counts to decide for, and the processes per node: as asked, as fitted, or the platform's."""
    from collwise.validation.fitting.models_by_name import check_fits_platform, fitted_per_node, platform_of

    fitted = fitted_per_node(model)
    if ppn is not None and fitted not in (None, ppn):
        raise UsageError(f"--ppn: {file} has parameters for {fitted} per node, not for {ppn}")
    per_node = ppn or fitted
    if platform is None and procs:
        return procs, per_node or 1
    platform = platform or platform_of(model, file)
    per_node = per_node or platform.default_processes_per_node
    check_fits_platform(model, file, platform, per_node)
    for count in procs or ():
        platform.hosts_for(count, per_node)
    return procs or tuple(range(2, platform.max_procs(per_node) + 1)), per_node
