"""Selection: which algorithm each source would pick for (collective, P, m), and what the pick costs against the best.

Degradation of a pick is T(pick) / T(best) - 1 in simulated time, as in tables 2, 3 and 8 of Nuriyev & Lastovetsky 2021.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Times, fastest, switch_points
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Case
from collwise.validation.openmpi.builtin_decisions import Choice, decide, decide_as_listed
from collwise.validation.selection.decision_table import DecisionTable, Row


@dataclass(frozen=True)
class Pick:
    """An algorithm picked for one point, its simulated seconds and its degradation (0.03: 3 % over the best)."""

    choice: Choice
    seconds: float
    degradation: float


@dataclass(frozen=True)
class Comparison:
    """One row: (collective, P, m), simulated and predicted seconds by candidate's label, and the picks.

    `model` is the model's pick; `openmpi` Open MPI's algorithm at the common segment size (the paper's comparison),
    `openmpi_shipped` the same with the segment sizes that Open MPI ships.
    """

    collective: str
    procs: int
    message_bytes: int
    simulated: Mapping[str, float]
    predicted: Mapping[str, float]
    best: Pick
    model: Pick
    openmpi: Pick
    openmpi_shipped: Pick


@dataclass(frozen=True)
class ComparisonResult:
    """All rows, and the cases that failed (their rows are left out).

    `left_out` are lines for the user on algorithms that were not compared (see `covered_by_model`) or not predicted
    everywhere (see `not_predicted`), mostly empty.
    """

    rows: tuple[Comparison, ...]
    sweep: RunResult
    left_out: str = ""

    def degradations(self, source: str) -> Array:
        """Degradation of 'model', 'openmpi' or 'openmpi_shipped', one value a row."""
        return np.array([getattr(row, source).degradation for row in self.rows])


@dataclass(frozen=True)
class ComparisonPlan:
    """Which points to compare. `segment_bytes` is common to all segmented algorithms; `more_segments` widen the choice.

    0 is unsegmented. A candidate is an algorithm at a segment size; its label is the algorithm's name at the common one
    and 'chain, 32 KiB' at another.
    """

    collective: str
    procs: tuple[int, ...]
    message_bytes: tuple[int, ...]
    processes_per_node: int
    segment_bytes: int
    algorithms: tuple[str, ...] = ()
    more_segments: tuple[int, ...] = ()

    def names(self) -> tuple[str, ...]:
        """The algorithms compared: those asked for, or all that can be chosen."""
        catalogue = Catalogue.load()
        for name in self.algorithms:
            catalogue.algorithm(self.collective, name)
        return self.algorithms or catalogue.collective(self.collective).selectable

    def case(self, choice: Choice, procs: int, message_bytes: int) -> Case:
        """The case that times a choice."""
        return Case(
            self.collective,
            choice.algorithm,
            procs,
            message_bytes,
            choice.segment_bytes,
            choice.fanout,
            self.processes_per_node,
            limit_bytes=choice.limit_bytes,
        )

    def choice(self, algorithm: str) -> Choice:
        """The algorithm at the common segment size."""
        entry = Catalogue.load().algorithm(self.collective, algorithm)
        return Choice(algorithm, self.segment_bytes if entry.pipelined else 0)

    def candidates(self) -> dict[str, Choice]:
        """All that is compared, by label; the common segment size first."""
        found = {name: self.choice(name) for name in self.names()}
        for segment in self.more_segments:
            for name in self.names():
                if Catalogue.load().algorithm(self.collective, name).pipelined and segment != self.segment_bytes:
                    found[f"{name}, {format_size(segment)}"] = Choice(name, segment)
        return found

    def candidate_cases(self) -> list[Case]:
        """Every candidate at every point that it runs at."""
        catalogue = Catalogue.load()
        return [
            self.case(choice, procs, size)
            for procs in self.procs
            for size in self.message_bytes
            for choice in self.candidates().values()
            if not catalogue.algorithm(self.collective, choice.algorithm).objection(procs)
        ]

    def cases(self) -> list[Case]:
        """Everything to simulate: all candidates, and Open MPI's choices at the common segment size and as shipped."""
        points = [(procs, size) for procs in self.procs for size in self.message_bytes]
        common = self.candidate_cases()
        listed = [self.case(self.choice(decide_as_listed(self.collective, *point)), *point) for point in points]
        shipped = [self.case(decide(self.collective, *point), *point) for point in points]
        return list(dict.fromkeys([*common, *listed, *shipped]))


def compare(
    platform: HostPlatform,
    plan: ComparisonPlan,
    model: CollectiveModel,
    context: SimulationContext,
) -> ComparisonResult:
    """Simulates what is missing and sets simulated, predicted and Open MPI's picks side by side.

    Only algorithms that the model covers are compared. Raises UsageError when the plan does not fit on the platform.
    """
    plan, left_out = covered_by_model(model, plan)
    sweep = context.simulate(platform, plan.cases(), f"{platform.name}: simulating {plan.collective}")
    predicted = predict_at_points(model, plan)
    rows = []
    for i, procs in enumerate(plan.procs):
        for j, message_bytes in enumerate(plan.message_bytes):
            row = _row(plan, sweep, procs, message_bytes, {name: float(t[i, j]) for name, t in predicted.items()})
            if row is not None:
                rows.append(row)
    lines = [line for line in (left_out, not_predicted(model, plan)) if line]
    return ComparisonResult(tuple(rows), sweep, "\n".join(lines))


def covered_by_model(model: CollectiveModel, plan: ComparisonPlan) -> tuple[ComparisonPlan, str]:
    """The plan with the algorithms that the model can predict, and a line for the user that names the others.

    The line is empty where there are none. Raises UsageError if the model can predict no algorithm of the plan.
    """
    known = model.algorithms(plan.collective)
    covered = tuple(name for name in plan.names() if name in known)
    others = [name for name in plan.names() if name not in known]
    if not covered:
        raise UsageError(f"model '{model.name}' covers none of the {plan.collective} algorithms asked for")
    line = f"{plan.collective}: left out, as model {model.name} has no formula or parameters for them: "
    return replace(plan, algorithms=covered), line + ", ".join(others) if others else ""


def predict_all(
    model: CollectiveModel, plan: ComparisonPlan, procs: ArrayLike, message_bytes: ArrayLike
) -> dict[str, Array]:
    """Predicted seconds of every candidate, arrays over the points. Raises UsageError if the model lacks one."""
    return {label: _predicted(model, plan, choice, procs, message_bytes) for label, choice in plan.candidates().items()}


def _predicted(
    model: CollectiveModel, plan: ComparisonPlan, choice: Choice, procs: ArrayLike, message_bytes: ArrayLike
) -> Array:
    return model.predict(plan.collective, choice.algorithm, procs, message_bytes, choice.segment_bytes, choice.fanout)


def predict_at_points(model: CollectiveModel, plan: ComparisonPlan) -> dict[str, Array]:
    """`predict_all` at the points of the plan, shape (P, m)."""
    return predict_all(model, plan, np.array(plan.procs)[:, None], np.array(plan.message_bytes)[None, :])


def not_predicted(model: CollectiveModel, plan: ComparisonPlan) -> str:
    """A line for the user on algorithms whose time the model does not foretell at all points of the plan, or nothing.

    They are never chosen there.
    """
    times = predict_at_points(model, plan)
    names = {choice.algorithm: None for label, choice in plan.candidates().items() if np.isnan(times[label]).any()}
    line = f"{plan.collective}: never chosen where model {model.name} foretells no time for them: "
    return line + ", ".join(names) if names else ""


def _row(
    plan: ComparisonPlan, sweep: RunResult, procs: int, message_bytes: int, predicted: Mapping[str, float]
) -> Comparison | None:
    def seconds(choice: Choice) -> float:
        timing = sweep.timings.get(plan.case(choice, procs, message_bytes))
        return timing.seconds if timing is not None else np.nan

    candidates = plan.candidates()
    simulated = {label: seconds(choice) for label, choice in candidates.items()}
    ran = {name: value for name, value in simulated.items() if np.isfinite(value)}
    foreseen = {name: value for name, value in predicted.items() if np.isfinite(value)}
    if not ran or not foreseen:
        return None
    best = min(ran, key=ran.__getitem__)

    def pick(choice: Choice) -> Pick:
        return Pick(choice, seconds(choice), _degradation(seconds(choice), ran[best]))

    return Comparison(
        collective=plan.collective,
        procs=procs,
        message_bytes=message_bytes,
        simulated=simulated,
        predicted=predicted,
        best=pick(candidates[best]),
        model=pick(candidates[min(foreseen, key=foreseen.__getitem__)]),
        openmpi=pick(plan.choice(decide_as_listed(plan.collective, procs, message_bytes))),
        openmpi_shipped=pick(decide(plan.collective, procs, message_bytes)),
    )


def _degradation(seconds: float, best_seconds: float) -> float:
    """0 also where nothing takes any time: a single process."""
    return 0.0 if seconds == best_seconds else seconds / best_seconds - 1 if best_seconds > 0 else np.inf


def select_by_model(
    model: CollectiveModel, plan: ComparisonPlan, one_choice: bool = False, sampled: bool = False
) -> DecisionTable:
    """The fastest predicted algorithm for every P of the plan, from its least to its largest m; see `switch_points`.

    At every size between them the table chooses as evaluating the formulas there would; with `sampled` only at the
    sizes of the plan. Rows that say what the one before says are left out. With `one_choice` each P has one algorithm
    for all m: the one whose worst degradation over the plan's sizes is least (see `targets.one_choice_a_count` for
    where that is needed). A choice that does not run on every P holds only where it was decided: at P + 1 the best one
    without such a requirement follows it. Algorithms that the model does not cover are no choice (see
    `covered_by_model`). Raises UsageError if it covers none.
    """
    plan, _ = covered_by_model(model, plan)
    if one_choice or sampled:
        predicted = predict_at_points(model, plan)
        rules = _decide(plan, list(predicted), np.stack(list(predicted.values())), one_choice)
    else:
        rules = _decide_exactly(model, plan)
    made_by = f"model {model.name}"
    return DecisionTable(plan.collective, model.platform, plan.processes_per_node, made_by, rules)


def _decide_exactly(model: CollectiveModel, plan: ComparisonPlan) -> dict[int, Row]:
    choices = list(plan.candidates().values())
    algorithms = [Catalogue.load().algorithm(plan.collective, choice.algorithm) for choice in choices]
    everywhere = [index for index, algorithm in enumerate(algorithms) if not algorithm.bound_to_procs]
    segments = sorted({choice.segment_bytes for choice in choices})

    def times(choice: Choice, algorithm: Algorithm) -> Times:
        def seconds(procs: Array, message_bytes: Array) -> Array:
            found = _predicted(model, plan, choice, procs, message_bytes)
            if not algorithm.bound_to_procs:
                return found
            counts, places = np.unique(procs, return_inverse=True)
            return np.where(np.array([bool(algorithm.objection(int(p))) for p in counts])[places], np.nan, found)

        return seconds

    def rows(which: Sequence[int], procs: Sequence[int]) -> dict[int, Row]:
        candidates = [times(choices[index], algorithms[index]) for index in which]
        found = switch_points(candidates, procs, min(plan.message_bytes), max(plan.message_bytes), segments)
        return {p: _row_from(row, [choices[index] for index in which]) for p, row in found.items()}

    decided = rows(range(len(choices)), plan.procs)
    decided = {p: row for p, row in decided.items() if row}
    bound = [p for p, row in decided.items() if any(choices.index(choice) not in everywhere for _, choice in row)]
    followed = [p for p in bound if p + 1 not in decided]
    if followed:
        after = rows(everywhere, followed) if everywhere else dict.fromkeys(followed, ())
        decided |= {p + 1: row for p, row in after.items()}
    return _merged(decided)


def _row_from(found: Sequence[tuple[int, int]], choices: Sequence[Choice]) -> Row:
    """A row from sizes and candidates; where no candidate has a time, what was chosen below stays."""
    row: list[tuple[int, Choice]] = []
    for start, candidate in found:
        if candidate != NOBODY and (not row or row[-1][1] != choices[candidate]):
            row.append((start, choices[candidate]))
    return tuple(row)


def select_by_simulation(
    platform: HostPlatform, plan: ComparisonPlan, sweep: RunResult, one_choice: bool = False
) -> DecisionTable:
    """The fastest simulated algorithm for every P and m of the plan; otherwise as `select_by_model`, sampled.

    The sweep holds at least the plan's `candidate_cases`.
    """
    rules = _decide(plan, list(plan.candidates()), simulated_seconds(plan, sweep), one_choice)
    made_by = sweep.configuration.maker
    return DecisionTable(plan.collective, platform.name, plan.processes_per_node, made_by, rules)


def simulated_seconds(plan: ComparisonPlan, sweep: RunResult) -> Array:
    """Times of the plan's candidates, shape (candidates, P, m); nan for what failed or does not run on a P."""

    def of(choice: Choice, procs: int, message_bytes: int) -> float:
        timing = sweep.timings.get(plan.case(choice, procs, message_bytes))
        return timing.seconds if timing is not None else np.nan

    return np.array(
        [[[of(choice, p, m) for m in plan.message_bytes] for p in plan.procs] for choice in plan.candidates().values()]
    )


def _decide(plan: ComparisonPlan, labels: Sequence[str], seconds: Array, one_choice: bool) -> dict[int, Row]:
    """Rules from seconds of shape (candidate, P, m), nan where there is no time; P without any are left out."""
    candidates = plan.candidates()
    choices = [candidates[label] for label in labels]
    algorithms = [Catalogue.load().algorithm(plan.collective, choice.algorithm) for choice in choices]
    everywhere = np.array([not algorithm.bound_to_procs for algorithm in algorithms])
    rows: dict[int, Row] = {}
    for procs in sorted(plan.procs):
        times = seconds[:, plan.procs.index(procs)]
        times = np.where(np.isnan(times), np.inf, times)
        if not np.isfinite(times).any():
            continue
        here = np.array([not algorithm.objection(procs) for algorithm in algorithms])
        rows[procs] = _row_of(plan, choices, np.where(here[:, None], times, np.inf), one_choice)
        if any(not everywhere[choices.index(choice)] for _, choice in rows[procs]):
            rows[procs + 1] = _row_of(plan, choices, np.where(everywhere[:, None], times, np.inf), one_choice)
    return _merged(rows)


def _row_of(plan: ComparisonPlan, choices: Sequence[Choice], times: Array, one_choice: bool) -> Row:
    """The entries of one P from times of shape (candidate, m), infinite where there is none."""
    known = np.any(np.isfinite(times), axis=0)
    if not known.any():
        return ()
    winners = fastest(times)
    if one_choice:
        winners[:] = np.argmin(_worst_ratio(times[:, known]))
    row: list[tuple[int, Choice]] = []
    for size, winner, there in zip(plan.message_bytes, winners, known, strict=True):
        if there and (not row or row[-1][1] != choices[winner]):
            row.append((0 if one_choice and not row else size, choices[winner]))
    return tuple(row)


def _worst_ratio(seconds: Array) -> Array:
    """By algorithm (first axis) the largest ratio to the fastest one over all sizes (last axis)."""
    least = np.min(seconds, axis=0)
    return np.max(np.where(seconds == least, 1.0, seconds / np.where(least > 0, least, 1.0)), axis=-1)


def _merged(rows: Mapping[int, Row]) -> dict[int, Row]:
    """Drops rows that say what the one before them says."""
    rules: dict[int, Row] = {}
    for procs in sorted(rows):
        if not rules or rows[procs] != list(rules.values())[-1]:
            rules[procs] = rows[procs]
    return rules
