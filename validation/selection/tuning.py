"""From a platform to chosen algorithms: fits the models, compares picks and selects, for several collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collwise.common.errors import UsageError
from collwise.models.critical_path import PathParameters
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.registry import BY_PARTS, CRITICAL_PATH
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.fitting.critical_path import CriticalPath
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.comparison import ComparisonResult, compare
from collwise.validation.selection.consumers import CONSUMERS, algorithms_for, needs_one_choice
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.decisions import select_by_model
from collwise.validation.selection.defaults import DECISION_SIZES, SEGMENTS, SIZES, TOLERANCE_PERCENT

TUNING_MODELS = (BY_PARTS, CRITICAL_PATH)
"""The models with parameters of each algorithm."""


@dataclass(frozen=True)
class Tuning:
    """Fitted parameters of one platform, and by collective the comparison and the decisions.

    `segment_bytes` is the size of segments that is common to all algorithms that cut messages.
    """

    platform: HostPlatform
    parameters: ModelParameters | PathParameters
    segment_bytes: int
    comparisons: dict[str, ComparisonResult]
    decisions: dict[str, DecisionTable]

    @property
    def failures(self) -> int:
        """The number of simulated cases that failed."""
        return sum(len(result.sweep.failed) for result in self.comparisons.values())


def tune(
    platform: HostPlatform,
    collectives: Sequence[str],
    procs: Sequence[int],
    context: SimulationContext,
    *,
    processes_per_node: int | None = None,
    segments: Sequence[int] = SEGMENTS,
    sizes: Mapping[str, tuple[int, ...]] = SIZES,
    model: str = BY_PARTS,
) -> Tuning:
    """Fits the model on the platform, compares picks at `sizes`, and selects for every P up to the largest.

    The model is one with parameters of each algorithm. A choice is an algorithm and one of the `segments` (bytes), the
    least of which is the common one. Decisions, with the usual tolerance, hold only what every consumer can be asked
    for, so that all kinds of rules can be written from them. Raises UsageError when P does not fit on the platform.
    """
    ppn = processes_per_node or platform.default_processes_per_node
    segments = tuple(sorted(segments))
    for count in procs:
        platform.hosts_for(count, ppn)
    (fitted,) = models_on(platform, [model], ppn, segments, context, collectives)
    if not isinstance(fitted, (ImplementationAware, CriticalPath)):
        raise UsageError(f"model {model} has no parameters of each algorithm; valid: {', '.join(TUNING_MODELS)}")
    every_count = tuple(range(2, platform.max_procs(ppn) + 1))
    comparisons, decisions = {}, {}
    for name in collectives:
        compared = CaseGrid(name, tuple(procs), sizes[name], ppn, segments)
        comparisons[name] = compare(platform, compared, fitted, context)
        decided = CaseGrid(name, every_count, DECISION_SIZES[name], ppn, segments, algorithms_for(name, *CONSUMERS))
        single, tolerance = needs_one_choice(name), TOLERANCE_PERCENT / 100
        decisions[name] = select_by_model(fitted, decided, single, tolerance=tolerance)
    return Tuning(platform, fitted.parameters, segments[0], comparisons, decisions)
