"""Choices by the schedule engine's times, and how far these are from SMPI's where SMPI has times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from collwise.models.piecewise import Array
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.comparison import Pick
from collwise.validation.selection.consumers import algorithms_for, consumers_of, needs_one_choice
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.decisions import select_by_simulation
from collwise.validation.selection.defaults import TOLERANCE_PERCENT
from collwise.validation.selection.evaluation import Score, score_of
from collwise.validation.selection.maps import cases_shipped
from collwise.validation.selection.predictions import seconds_of, simulated_seconds
from collwise.validation.selection.slowdown import slowdown


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
    decisions: DecisionTable | None = None
    baseline: Baseline | None = None
    shipped: Mapping[tuple[int, int], Pick] = field(default_factory=dict)


def choices_by_engine(
    platform: HostPlatform,
    compared: Sequence[CaseGrid],
    smpi: Mapping[str, RunResult],
    decided: Mapping[str, CaseGrid],
    context: SimulationContext,
    baseline: Baseline | None = None,
) -> dict[str, EngineChoices]:
    """Times the compared grids by the schedule engine, sets SMPI's times beside these, and decides the other grids.

    `smpi` has the results of SMPI's simulations by collective, which may be of some of the compared cases only.
    With a baseline, the engine also times what the untuned library picks for those that it decides.
    Decisions have the usual tolerance and hold only what every consumer can be asked for. Raises UsageError for what
    does not fit on the platform, and for platform XML.
    """
    engine = replace(context, engine=SCHEDULE)
    cases = [case for grid in (*compared, *decided.values()) for case in grid.cases()]
    known = [] if baseline is None else [name for name in decided if name in baseline.collectives]
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
        shipped = _picks(baseline, grid, result, played) if name in known and baseline is not None else {}
        found[name] = EngineChoices(grid, played, checked, score, failed, table, baseline, shipped)
    return found


def _picks(baseline: Baseline, grid: CaseGrid, result: RunResult, seconds: Array) -> dict[tuple[int, int], Pick]:
    """The untuned library's picks, with the engine's times."""
    best = np.nanmin(seconds, axis=0)
    picks = {}
    for i, procs in enumerate(grid.procs):
        for j, size in enumerate(grid.message_bytes):
            decision = baseline.decide(grid.collective, procs, size)
            if decision.choice is None:
                picks[procs, size] = Pick(Choice(decision.algorithm), np.nan, np.nan, decision.algorithm)
                continue
            taken = seconds_of(grid, result, decision.choice, procs, size)
            picks[procs, size] = Pick(decision.choice, taken, float(slowdown(taken, best[i, j])))
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
