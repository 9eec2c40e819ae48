"""Makes decision tables, from a model or from simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Times, fastest, switch_points
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.decision_table import DecisionTable, Row
from collwise.validation.selection.predictions import (
    covered_by_model,
    predict_choice,
    predicted_seconds,
    simulated_seconds,
)
from collwise.validation.selection.slowdown import slowdown


def select_by_model(
    model: CollectiveModel, grid: CaseGrid, one_choice: bool = False, sampled: bool = False
) -> DecisionTable:
    """The fastest predicted choice for every P of the grid, from its least to its largest m; see `switch_points`.

    At every size between them the table chooses as evaluating the formulas there would; with `sampled` only at the
    sizes of the grid. Rows that repeat the one before are left out. With `one_choice` each P has one choice for all m:
    the one whose worst slowdown over the grid's sizes is least (see `consumers.needs_one_choice`). A choice that does
    not run on every P holds only where it was decided: at P + 1 the best one without such a requirement follows it.
    Algorithms that the model does not cover are no choice. Raises UsageError if it covers none.
    """
    grid, _ = covered_by_model(model, grid)
    sampled = sampled or one_choice
    rules = _rules(grid, predicted_seconds(model, grid), one_choice) if sampled else _exact_rules(model, grid)
    return DecisionTable(grid.collective, model.platform, grid.processes_per_node, f"model {model.name}", rules)


def select_by_simulation(
    platform: HostPlatform, grid: CaseGrid, sweep: RunResult, one_choice: bool = False
) -> DecisionTable:
    """The fastest simulated choice for every P and m of the grid; otherwise like `select_by_model`, sampled.

    The sweep holds at least the grid's cases.
    """
    rules = _rules(grid, simulated_seconds(grid, sweep), one_choice)
    return DecisionTable(grid.collective, platform.name, grid.processes_per_node, sweep.configuration.maker, rules)


def simulate_and_select(
    platform: HostPlatform,
    grids: Sequence[CaseGrid],
    context: SimulationContext,
    one_choice: Callable[[str], bool] = lambda collective: False,
) -> tuple[list[DecisionTable], RunResult]:
    """Simulates what is missing of several grids and makes a table of each; `one_choice` says which have one choice.

    The sweep holds the cases that failed. Raises UsageError for what does not fit on the platform.
    """
    names = ", ".join(grid.collective for grid in grids) if len(grids) <= 3 else f"{len(grids)} collectives"
    cases = [case for grid in grids for case in grid.cases()]
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {names}")
    return [select_by_simulation(platform, grid, sweep, one_choice(grid.collective)) for grid in grids], sweep


def _exact_rules(model: CollectiveModel, grid: CaseGrid) -> dict[int, Row]:
    choices = list(grid.candidates.values())
    algorithms = _algorithms(grid)
    unconditional = [index for index, algorithm in enumerate(algorithms) if not algorithm.bound_to_procs]
    segments = sorted({choice.segment_bytes for choice in choices})

    def times(choice: Choice, algorithm: Algorithm) -> Times:
        def seconds(procs: Array, message_bytes: Array) -> Array:
            found = predict_choice(model, grid.collective, choice, procs, message_bytes)
            if not algorithm.bound_to_procs:
                return found
            counts, positions = np.unique(procs, return_inverse=True)
            return np.where(np.array([bool(algorithm.objection(int(p))) for p in counts])[positions], np.nan, found)

        return seconds

    def rows(which: Sequence[int], procs: Sequence[int]) -> dict[int, Row]:
        candidates = [times(choices[index], algorithms[index]) for index in which]
        found = switch_points(candidates, procs, min(grid.message_bytes), max(grid.message_bytes), segments)
        return {p: _row([start for start, _ in row], [index for _, index in row], [choices[i] for i in which])
                for p, row in found.items()}  # fmt: skip

    decided = {p: row for p, row in rows(range(len(choices)), grid.procs).items() if row}
    bound = [p for p, row in decided.items() if any(choices.index(choice) not in unconditional for _, choice in row)]
    followed = [p for p in bound if p + 1 not in decided]
    if followed:
        after = rows(unconditional, followed) if unconditional else dict.fromkeys(followed, ())
        decided |= {p + 1: row for p, row in after.items()}
    return _merged(decided)


def _rules(grid: CaseGrid, seconds: Array, one_choice: bool) -> dict[int, Row]:
    """Rules from seconds of shape (candidate, P, m), nan where there is no time; P without any are left out."""
    choices = list(grid.candidates.values())
    unconditional = np.array([not algorithm.bound_to_procs for algorithm in _algorithms(grid)])
    rows: dict[int, Row] = {}
    for procs in sorted(grid.procs):
        times = seconds[:, grid.procs.index(procs)]
        if np.isnan(times).all():
            continue
        rows[procs] = _sampled_row(grid, choices, times, one_choice)
        if any(not unconditional[choices.index(choice)] for _, choice in rows[procs]):
            others = np.where(unconditional[:, None], times, np.nan)
            rows[procs + 1] = _sampled_row(grid, choices, others, one_choice)
    return _merged(rows)


def _sampled_row(grid: CaseGrid, choices: Sequence[Choice], times: Array, one_choice: bool) -> Row:
    """The row of one P from times of shape (candidate, m)."""
    winners = fastest(times)
    decided = winners != NOBODY
    if one_choice and decided.any():
        least_bad = _least_worst_slowdown(times[:, decided])
        return ((0, choices[least_bad]),)
    return _row(grid.message_bytes, winners.tolist(), choices)


def _least_worst_slowdown(times: Array) -> int:
    """The candidate (first axis) whose worst slowdown over the sizes (last axis) is least, of those with most times."""
    missing = np.isnan(times)
    worst = np.max(slowdown(np.where(missing, np.inf, times), np.nanmin(times, axis=0)), axis=-1)
    return int(np.lexsort((worst, missing.sum(axis=-1)))[0])


def _row(starts: Sequence[int], winners: Sequence[int], choices: Sequence[Choice]) -> Row:
    """A row from sizes and candidates; where no candidate has a time, what was chosen below stays."""
    row: list[tuple[int, Choice]] = []
    for start, winner in zip(starts, winners, strict=True):
        if winner != NOBODY and (not row or row[-1][1] != choices[winner]):
            row.append((start, choices[winner]))
    return tuple(row)


def _algorithms(grid: CaseGrid) -> list[Algorithm]:
    return [Catalogue.load().algorithm(grid.collective, one.algorithm) for one in grid.candidates.values()]


def _merged(rows: Mapping[int, Row]) -> dict[int, Row]:
    """Drops rows that repeat the one before them."""
    rules: dict[int, Row] = {}
    for procs in sorted(rows):
        if not rules or rows[procs] != list(rules.values())[-1]:
            rules[procs] = rows[procs]
    return rules
