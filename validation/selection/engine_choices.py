"""Choices by the schedule engine's times, and how far these are from SMPI's where SMPI has times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from collwise.models.piecewise import Array
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.consumers import algorithms_for, consumers_of, needs_one_choice
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.decisions import select_by_simulation
from collwise.validation.selection.defaults import TOLERANCE_PERCENT
from collwise.validation.selection.evaluation import Score, score_of
from collwise.validation.selection.predictions import simulated_seconds


@dataclass(frozen=True)
class EngineChoices:
    """The schedule engine's times of a collective, and SMPI's, nan where it has none; shape (candidates, P, m).

    `score` compares the two where both are known. `decisions` is None for a collective that is only compared.
    """

    grid: CaseGrid
    seconds: Array
    smpi_seconds: Array
    score: Score
    failures: int
    decisions: DecisionTable | None = None


def choices_by_engine(
    platform: HostPlatform,
    compared: Sequence[CaseGrid],
    smpi: Mapping[str, RunResult],
    decided: Mapping[str, CaseGrid],
    context: SimulationContext,
) -> dict[str, EngineChoices]:
    """Times the compared grids by the schedule engine, sets SMPI's times beside these, and decides the other grids.

    `smpi` has the results of SMPI's simulations by collective, which may be of some of the compared cases only.
    Decisions have the usual tolerance and hold only what every consumer can be asked for. Raises UsageError for what
    does not fit on the platform, and for platform XML.
    """
    engine = replace(context, engine=SCHEDULE)
    cases = [case for grid in (*compared, *decided.values()) for case in grid.cases()]
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
        found[name] = EngineChoices(grid, played, checked, score, failed, table)
    return found


def decided_grid(grid: CaseGrid, largest: int) -> CaseGrid:
    """The grid of a decision table up to the largest P, for the sizes of a compared grid.

    Its process counts are powers of two, where algorithms have one round less than just above, the counts just above
    and midway, and those compared: a row of the table holds up to the next one.
    """
    powers = [2**k for k in range(1, largest.bit_length())]
    counts = {count for power in powers for count in (power, power + 1, power * 3 // 2)} | {*grid.procs, largest}
    procs = tuple(sorted(count for count in counts if count <= largest))
    return replace(grid, procs=procs, algorithms=algorithms_for(grid.collective, *consumers_of(grid.collective)))
