"""Decision maps and penalty maps: the best method at every (P, m) by simulation and by models, and what a model costs.

Figures 6 and 7 of Pješivac-Grbović et al. 2007. A method is an algorithm at a segment size. The penalty of a model at a
point is T(the method it picks) / T(best method) - 1, both simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices, fastest
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.validation.openmpi.builtin_decisions import Choice
from collwise.validation.selection.comparison import (
    ComparisonPlan,
    covered_by_model,
    not_predicted,
    predict_at_points,
    simulated_seconds,
)

# Simulated times that differ by less than this share are equal: the clock is no finer.
_CLOCK = 1e-6


@dataclass(frozen=True)
class ModelMap:
    """What a model picks: indices of methods, or NOBODY, and the penalties (0.03: 3 %), both of shape (P, m).

    The penalty is nan where the model picks nothing or no simulated time is there. `remarks` are lines for the user.
    """

    winners: Indices
    penalty: Array
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """How good a model's map is. `best_share` is that of the points where it picks a best method.

    Penalties are shares of the best time; the worst one is at (`worst_procs`, `worst_bytes`), where the model picks
    `worst_pick`.
    """

    best_share: float
    mean_penalty: float
    worst_penalty: float
    worst_procs: int
    worst_bytes: int
    worst_pick: Choice


@dataclass(frozen=True)
class DecisionMaps:
    """Maps of one collective over the points of the plan.

    `methods` are the plan's candidates by label; `seconds` their simulated times, shape (methods, P, m), nan where a
    method does not run; `best` the index of the fastest one; `models` the maps by model.
    """

    plan: ComparisonPlan
    methods: Mapping[str, Choice]
    seconds: Array
    best: Indices
    models: Mapping[str, ModelMap]
    sweep: RunResult

    def summary(self, model: str) -> Summary:
        """Of a model's map. Raises UsageError if it has no penalty anywhere."""
        found = self.models[model]
        known = np.isfinite(found.penalty)
        if not known.any():
            raise UsageError(f"model '{model}' picks nothing at the points asked for")
        i, j = np.unravel_index(int(np.argmax(np.where(known, found.penalty, -1.0))), found.penalty.shape)
        return Summary(
            best_share=float(np.mean(found.penalty[known] <= _CLOCK)),
            mean_penalty=float(np.mean(found.penalty[known])),
            worst_penalty=float(found.penalty[i, j]),
            worst_procs=self.plan.procs[i],
            worst_bytes=self.plan.message_bytes[j],
            worst_pick=list(self.methods.values())[found.winners[i, j]],
        )


def method_name(choice: Choice) -> str:
    """'chain, 8 KiB', and 'chain' where it is not segmented."""
    return choice.algorithm + (f", {format_size(choice.segment_bytes)}" if choice.segment_bytes else "")


def decision_maps(
    platform: HostPlatform,
    plan: ComparisonPlan,
    models: Sequence[CollectiveModel],
    context: SimulationContext,
) -> DecisionMaps:
    """Simulates what is missing of the plan's candidates, and lays each model's picks beside the fastest ones.

    Raises UsageError when the plan does not fit on the platform, or a model covers none of its algorithms.
    """
    for model in models:
        covered_by_model(model, plan)
    cases = plan.candidate_cases()
    sweep = context.simulate(platform, cases, f"{platform.name}: simulating {plan.collective}")
    seconds = simulated_seconds(plan, sweep)
    best = fastest(seconds)
    found = {model.name: _model_map(model, plan, seconds, best) for model in models}
    return DecisionMaps(plan, plan.candidates(), seconds, best, found, sweep)


def _model_map(model: CollectiveModel, plan: ComparisonPlan, seconds: Array, best: Indices) -> ModelMap:
    covered, left_out = covered_by_model(model, plan)
    predicted = predict_at_points(model, covered)
    nothing = np.full(best.shape, np.nan)
    times = np.stack([predicted.get(label, nothing) for label in plan.candidates()])
    sizes = np.array(plan.message_bytes)
    whole = {choice.algorithm for choice in plan.candidates().values() if choice.segment_bytes == 0}
    for choice, mine in zip(plan.candidates().values(), times, strict=True):
        algorithm = Catalogue.load().algorithm(plan.collective, choice.algorithm)
        mine[[bool(algorithm.objection(p)) for p in plan.procs]] = np.nan
        if choice.algorithm in whole:
            # In one segment a message is whole; parameters of its own for either do not make it another method.
            mine[:, sizes <= choice.segment_bytes] = np.nan
    winners = fastest(times)
    picked = np.take_along_axis(seconds, winners[None], axis=0)[0]
    least = np.take_along_axis(seconds, best[None], axis=0)[0]
    there = (winners != NOBODY) & (best != NOBODY)
    # A single process takes no time, whichever method it uses.
    ratio = np.where(least > 0, picked / np.where(least > 0, least, 1.0), 1.0)
    penalty = np.where(there, ratio - 1, np.nan)
    return ModelMap(winners, penalty, tuple(filter(None, (left_out, not_predicted(model, covered)))))
