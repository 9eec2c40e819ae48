"""From a platform to chosen algorithms: fits the models, compares picks and selects, for several collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import cached_property

from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.registry import BY_PARTS
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.fitting.models_by_name import implementation_aware
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.comparison import ComparisonResult, compare
from collwise.validation.selection.consumers import CONSUMERS, algorithms_for, needs_one_choice
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.decisions import select_by_model, select_by_simulation
from collwise.validation.selection.defaults import DECISION_SIZES, SEGMENTS, SIZES, TOLERANCE_PERCENT
from collwise.validation.selection.engine_choices import EngineChoices, choices_by_engine, decided_grid


@dataclass(frozen=True)
class Tuning:
    """Fitted parameters of one platform, and by collective the comparison and the decisions.

    `by_model` are decision tables that may still be in the making; `by_engine` what the schedule engine says of these
    collectives and of others, which it decides.
    """

    platform: HostPlatform
    parameters: ModelParameters
    comparisons: Mapping[str, ComparisonResult]
    by_model: Mapping[str, Future[DecisionTable]]
    by_engine: Mapping[str, EngineChoices] = field(default_factory=dict)

    @cached_property
    def decisions(self) -> dict[str, DecisionTable]:
        """The decision tables by collective, once they are made."""
        tables = {name: decided.result() for name, decided in self.by_model.items()}
        return tables | {name: one.decisions for name, one in self.by_engine.items() if one.decisions is not None}

    @property
    def failures(self) -> int:
        """The number of simulated cases that failed."""
        compared = sum(len(result.sweep.failed) for result in self.comparisons.values())
        return compared + sum(choices.failures for choices in self.by_engine.values() if choices.decisions is not None)


def tune(
    platform: HostPlatform,
    collectives: Sequence[str],
    procs: Sequence[int],
    context: SimulationContext,
    pool: Executor,
    *,
    processes_per_node: int | None = None,
    segments: Sequence[int] = SEGMENTS,
    sizes: Mapping[str, tuple[int, ...]] = SIZES,
    by: str = "predicted",
) -> Tuning:
    """Fits the models on the platform, compares picks at `sizes`, and selects in the pool.

    A choice is an algorithm and one of the `segments` (bytes), the least of which is the common one. Decisions are `by`
    'predicted' times, for every P up to the largest, or by the 'simulated' times that are compared. They have the usual
    tolerance, and hold only what every consumer can be asked for, so that all kinds of rules can be written from them.
    Raises UsageError when P does not fit on the platform.
    """
    ppn = processes_per_node or platform.default_processes_per_node
    segments = tuple(sorted(segments))
    for count in procs:
        platform.hosts_for(count, ppn)
    parameters = implementation_aware(platform, ppn, segments, context, collectives)
    model = ImplementationAware(parameters, BY_PARTS)
    every_count = tuple(range(2, platform.max_procs(ppn) + 1))
    comparisons, decisions = {}, {}
    for name in collectives:
        compared = CaseGrid(name, tuple(procs), sizes[name], ppn, segments)
        result = comparisons[name] = compare(platform, compared, model, context)
        expressible, single, tolerance = (
            algorithms_for(name, *CONSUMERS),
            needs_one_choice(name),
            TOLERANCE_PERCENT / 100,
        )
        if by == "simulated":
            known = tuple(one for one in expressible if one in result.grid.names)
            large = tuple(size for size in sizes[name] if size >= DECISION_SIZES[name][0])
            decided = replace(result.grid, algorithms=known, message_bytes=large or sizes[name])
            decisions[name] = pool.submit(select_by_simulation, platform, decided, result.sweep, single, tolerance)
        else:
            decided = CaseGrid(name, every_count, DECISION_SIZES[name], ppn, segments, expressible)
            decisions[name] = pool.submit(select_by_model, model, decided, single, tolerance=tolerance)
    return Tuning(platform, parameters, comparisons, decisions)


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
    decided = {}
    for name in collectives:
        sizes = DECISION_SIZES[name]
        grid = replace(compared[0], collective=name, message_bytes=sizes, algorithms=())
        compared.append(grid)
        few = (sizes[0], sizes[len(sizes) // 2], sizes[-1])
        checked = replace(grid, procs=(checked_procs,), message_bytes=few, segments=grid.segments[:1])
        smpi[name] = context.simulate(platform, checked.cases(), f"{platform.name}: simulating {name}")
        decided[name] = decided_grid(grid, platform.max_procs(grid.processes_per_node))
    return replace(tuning, by_engine=choices_by_engine(platform, compared, smpi, decided, context))
