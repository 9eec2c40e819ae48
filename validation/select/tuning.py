"""From a platform to chosen algorithms: fits the models, compares picks and selects, for several collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from collwise.common.errors import UsageError
from collwise.models.critical_path import PathParameters
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.piecewise import Array
from collwise.models.registry import BY_PARTS, CRITICAL_PATH
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import without_free_barrier
from collwise.simulator.sweeps.context import SCHEDULE, ShowProgress, SimulationContext, without_progress
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.compare.comparison import ComparisonResult, Pick, compare
from collwise.validation.compare.evaluation import Score, score_of
from collwise.validation.compare.maps import cases_shipped
from collwise.validation.exports.expressed import Substitution
from collwise.validation.exports.formats import for_openmpi
from collwise.validation.fitting.critical_path import CriticalPath
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.library_defaults.openmpi import fixed_choice
from collwise.validation.select.consumers import (
    RULES_VERSIONS,
    algorithms_for,
    consumers_of,
    needs_one_choice,
    openmpi_version,
)
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.select import select_by_model, select_by_simulation
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.defaults import DECISION_SIZES, SEGMENTS, SIZES, TOLERANCE_PERCENT
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.points import asked_points
from collwise.validation.times.predictions import seconds_of, simulated_seconds

TUNING_MODELS = (BY_PARTS, CRITICAL_PATH)
"""The models with parameters of each algorithm."""


@dataclass(frozen=True)
class EngineChoices:
    """The schedule engine's times of a collective, and SMPI's, nan where it has none; shape (candidates, P, m).

    `score` compares the two where both are known. `decisions` is None for a collective that is only compared.
    `shipped` has the picks of an untuned library by (P, m): the engine's seconds, and their slowdown against the best;
    it is empty for a collective without one.
    """

    grid: CaseGrid
    seconds: Array
    smpi_seconds: Array
    score: Score
    failures: int
    decisions: DecisionTable | None
    baseline: Baseline
    shipped: Mapping[tuple[int, int], Pick]


@dataclass(frozen=True)
class Gain:
    """The picks of an untuned library and of the decisions at a point, with times of the same source."""

    procs: int
    message_bytes: int
    default: Pick
    rules: Pick

    @property
    def ratio(self) -> float:
        """The library's time divided by that of the decisions; nan where one of the two is not known."""
        return self.default.seconds / self.rules.seconds if self.rules.seconds else np.nan


@dataclass(frozen=True)
class Tuning:
    """Fitted parameters of one platform, and by collective the comparison and the decisions.

    `model` is None where nothing is predicted. `segment_bytes` is the size of segments that is common to all algorithms
    that cut messages; `by_engine` has what the schedule engine says of these collectives, and of others for which it
    decides; `decided_sizes` are the message sizes that the decisions are made for. `rules` are the decisions as rules
    for Open MPI say them, where it has rules, with what is `substituted` in them.
    """

    platform: HostPlatform
    model: ImplementationAware | CriticalPath | None
    processes_per_node: int
    segment_bytes: int
    comparisons: Mapping[str, ComparisonResult]
    by_engine: Mapping[str, EngineChoices] = field(default_factory=dict)
    decisions: Mapping[str, DecisionTable] = field(default_factory=dict)
    decided_sizes: Mapping[str, Sequence[int]] = field(default_factory=lambda: DECISION_SIZES)
    rules: Mapping[str, DecisionTable] = field(default_factory=dict)
    substituted: Sequence[Substitution] = ()

    @property
    def parameters(self) -> ModelParameters | PathParameters | None:
        """The fitted parameters of the model."""
        return None if self.model is None else self.model.parameters

    @property
    def baseline(self) -> Baseline:
        """The decisions of an untuned library that all comparisons are with."""
        return next(iter(self.comparisons.values())).baseline

    @property
    def failures(self) -> int:
        """The number of simulated cases that failed."""
        compared = sum(len(result.sweep.failed) for result in self.comparisons.values())
        return compared + sum(choices.failures for choices in self.by_engine.values())

    def gains(self, collective: str) -> list[Gain]:
        """The gains of the rules over the untuned library at every compared point that they decide.

        Times are those of the comparison, or else the schedule engine's.
        """
        found, rules = [], self.rules[collective]
        if collective in self.comparisons:
            result = self.comparisons[collective]
            for row in result.rows:
                point = (row.procs, row.message_bytes)
                if (choice := rules.choice_at(*point)) is not None:
                    seconds = seconds_of(result.grid, result.sweep, _run(collective, choice, *point), *point)
                    found.append(Gain(*point, row.baseline, Pick.of(choice, seconds, row.best.seconds)))
            return found
        engine = self.by_engine[collective]
        choices = list(engine.grid.candidates.values())
        for (procs, size), pick in engine.shipped.items():
            if (choice := rules.choice_at(procs, size)) is not None:
                at = engine.seconds[:, engine.grid.procs.index(procs), engine.grid.message_bytes.index(size)]
                run = _run(collective, choice, procs, size)
                untuned = pick.seconds if run == pick.choice else np.nan
                seconds = float(at[choices.index(run)]) if run in choices else untuned
                found.append(Gain(procs, size, pick, Pick.of(choice, seconds, np.nanmin(at))))
        return found


def _run(collective: str, choice: Choice, procs: int, message_bytes: int) -> Choice:
    """The choice that runs: where the library decides, that decision."""
    untuned = fixed_choice(collective, procs, message_bytes) if choice == LIBRARY_DECIDES else None
    return untuned or choice


def tune(
    platform: HostPlatform,
    collectives: Sequence[str],
    procs: Sequence[int],
    context: SimulationContext,
    baseline: Baseline,
    *,
    processes_per_node: int | None = None,
    segments: Sequence[int] = SEGMENTS,
    sizes: Mapping[str, tuple[int, ...]] = SIZES,
    model: str | None = BY_PARTS,
) -> Tuning:
    """Fits the model on the platform and compares its picks and the baseline's; `decided` then makes the decisions.

    The model is one of TUNING_MODELS, or None: nothing is fitted or predicted. A choice is an algorithm and one
    of the `segments` (bytes), the least of which is the common one. Raises UsageError when P does not fit on
    the platform.
    """
    ppn = processes_per_node or platform.default_processes_per_node
    segments = tuple(sorted(segments))
    for count in procs:
        platform.hosts_for(count, ppn)
    fitted: ImplementationAware | CriticalPath | None = None
    if model is not None:
        (found,) = models_on(platform, [model], ppn, segments, context.with_experiments(), collectives)
        if not isinstance(found, (ImplementationAware, CriticalPath)):
            raise UsageError(f"model {model} has no parameters of each algorithm; valid: {', '.join(TUNING_MODELS)}")
        fitted = found
    grids = asked_points(platform, [CaseGrid(name, tuple(procs), sizes[name], ppn, segments) for name in collectives])
    comparisons = {grid.collective: compare(platform, grid, fitted, context, baseline) for grid in grids}
    return Tuning(platform, fitted, ppn, segments[0], comparisons)


def decided(
    tuning: Tuning,
    by: str = "predicted",
    sizes: Mapping[str, Sequence[int]] = DECISION_SIZES,
    progress: ShowProgress = without_progress,
) -> Tuning:
    """The tuning with decisions for every P of the platform, by 'predicted' times, or for those compared, 'simulated'.

    Predicted times of the model critical_path are played, and so decide only where they are compared, too. Among the
    compared sizes those from the least of `sizes` on are decided; formulas decide at all of them, and the tables have
    the loss between. They have the usual tolerance, as by `select`, and hold only what every consumer of the collective
    can be asked for, so that all kinds of rules can be written from them. What the engine decides is among them; the
    barrier is not, where messages are free.
    """
    platform = tuning.platform
    model = tuning.model
    if isinstance(model, ImplementationAware):
        model = ImplementationAware(model.parameters, BY_PARTS)
    if model is None and by == "predicted":
        raise UsageError("predicted times decide nothing without a model")
    tables = {name: one.decisions for name, one in tuning.by_engine.items() if one.decisions is not None}
    asked = without_free_barrier(tuning.comparisons, platform)
    for name in asked:
        result = tuning.comparisons[name]
        grid, single, tolerance = result.grid, needs_one_choice(name), TOLERANCE_PERCENT / 100
        expressible = algorithms_for(name, *consumers_of(name))
        if by == "predicted" and isinstance(model, ImplementationAware):
            procs = tuple(range(2, platform.max_procs(grid.processes_per_node) + 1))
            grid = replace(grid, procs=procs, message_bytes=tuple(sizes[name]), algorithms=expressible)
            tables[name] = select_by_model(model, grid, single, sampled=True, tolerance=tolerance, switches=True)
            continue
        known = tuple(one for one in expressible if one in grid.names)
        # Shorter messages are not decided, unless nothing else is compared.
        long = tuple(size for size in grid.message_bytes if size >= min(sizes[name]))
        grid = replace(grid, algorithms=known, message_bytes=long or grid.message_bytes)
        if by == "predicted" and model is not None:
            tables[name] = select_by_model(model, grid, single, True, tolerance, progress=progress)
        else:
            tables[name] = select_by_simulation(platform, grid, result.sweep, single, tolerance)
    order = [*asked, *tables]
    most = platform.max_procs(tuning.processes_per_node)
    decisions = {name: replace(tables[name], platform_procs=most) for name in order}
    said, substituted = for_openmpi(
        [table for name, table in decisions.items() if any(map(openmpi_version, consumers_of(name)))], RULES_VERSIONS[0]
    )
    rules = {**decisions, **{table.collective: table for table in said}}
    return replace(tuning, decisions=decisions, decided_sizes=sizes, rules=rules, substituted=substituted)


def tune_by_engine(
    tuning: Tuning, collectives: Sequence[str], checked_procs: int, context: SimulationContext
) -> Tuning:
    """The tuning with what the schedule engine says of its collectives, and with its decisions for further ones.

    Of these, SMPI times every algorithm at the common segment size on `checked_procs` processes, at the least, a middle
    and the largest size, as a check.
    """
    platform = tuning.platform
    compared = [result.grid for result in tuning.comparisons.values()]
    smpi = {name: result.sweep for name, result in tuning.comparisons.items()}
    tables = {}
    for name in collectives:
        sizes = DECISION_SIZES[name]
        grid = replace(compared[0], collective=name, message_bytes=sizes, algorithms=())
        compared.append(grid)
        few = (sizes[0], sizes[len(sizes) // 2], sizes[-1])
        checked = replace(grid, procs=(checked_procs,), message_bytes=few, segments=grid.segments[:1])
        smpi[name] = context.simulate(platform, checked.cases(), f"{platform.name}: simulating {name}")
        tables[name] = decided_grid(grid, platform.max_procs(grid.processes_per_node))
    return replace(tuning, by_engine=choices_by_engine(platform, compared, smpi, tables, context, tuning.baseline))


def choices_by_engine(
    platform: HostPlatform,
    compared: Sequence[CaseGrid],
    smpi: Mapping[str, RunResult],
    decided: Mapping[str, CaseGrid],
    context: SimulationContext,
    baseline: Baseline,
) -> dict[str, EngineChoices]:
    """Times the compared grids by the schedule engine, sets SMPI's times beside these, and decides the other grids.

    `smpi` has the results of SMPI's simulations by collective, which may be of some of the compared cases only.
    The engine also times what the untuned library picks for those collectives that the baseline decides.
    Decisions have the usual tolerance and hold only what every consumer can be asked for. Raises UsageError for what
    does not fit on the platform, and for platform XML.
    """
    engine = replace(context, engine=SCHEDULE)
    cases = [case for grid in (*compared, *decided.values()) for case in grid.cases()]
    known = [name for name in decided if name in baseline.collectives]
    cases += [case for grid in compared if grid.collective in known for case in cases_shipped(baseline, grid)]
    result = engine.simulate(platform, cases, f"{platform.name}: playing {len(compared)} collectives")
    found = {}
    for grid in compared:
        name, played = grid.collective, simulated_seconds(grid, result)
        checked = simulated_seconds(grid, smpi[name])
        table = None
        if name in decided:
            tolerance = TOLERANCE_PERCENT / 100
            table = select_by_simulation(platform, decided[name], result, needs_one_choice(name), tolerance)
        failed = sum(timing.case.collective == name for timing in (*result.failed, *smpi[name].failed))
        score = score_of(platform.name, result.configuration.maker, grid, played, checked)
        shipped = _picks(baseline, grid, result, played) if name in known else {}
        found[name] = EngineChoices(grid, played, checked, score, failed, table, baseline, shipped)
    return found


def _picks(baseline: Baseline, grid: CaseGrid, result: RunResult, seconds: Array) -> dict[tuple[int, int], Pick]:
    """The untuned library's picks, with the engine's times."""
    picks = {}
    for point, best in zip(grid.points, np.nanmin(seconds, axis=0).flat, strict=True):
        decision = baseline.decide(grid.collective, *point)
        choice = decision.choice
        unknown = Pick.unknown(decision.algorithm)
        picks[point] = unknown if choice is None else Pick.of(choice, seconds_of(grid, result, choice, *point), best)
    return picks


def decided_grid(grid: CaseGrid, largest: int) -> CaseGrid:
    """The grid of a decision table up to the largest P, for the sizes of a compared grid.

    Its process counts are powers of two, where algorithms have one round less than just above, the counts just above
    and midway, and those compared: a row of the table holds up to the next one.
    """
    powers = [2**k for k in range(1, largest.bit_length())]
    counts = {count for power in powers for count in (power, power + 1, power * 3 // 2)} | {*grid.procs, largest}
    procs = tuple(sorted(count for count in counts if count <= largest))
    return replace(grid, procs=procs, algorithms=algorithms_for(grid.collective, *consumers_of(grid.collective)))
