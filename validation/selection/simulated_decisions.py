"""Decision tables of several collectives from simulation, for measuring what they gain."""

from __future__ import annotations

from collections.abc import Sequence

from collwise.common.errors import CollwiseError
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.selection.comparison import ComparisonPlan, select_by_simulation
from collwise.validation.selection.consumers import candidates
from collwise.validation.selection.decision_table import DecisionTable


def simulated_decisions(
    platform: HostPlatform,
    collectives: Sequence[str],
    procs: Sequence[int],
    message_bytes: Sequence[int],
    context: SimulationContext,
    *,
    segments: Sequence[int],
    target: str | None = None,
    processes_per_node: int = 1,
) -> dict[str, DecisionTable]:
    """By collective the fastest simulated algorithm for every P and m, of those that `target` can be told to run.

    Raises UsageError for what does not fit on the platform, and CollwiseError where a case fails.
    """
    plans = [
        ComparisonPlan(
            name, tuple(procs), tuple(message_bytes), processes_per_node, segments[0], candidates(name, target),
            tuple(segments[1:]),
        )
        for name in collectives
    ]  # fmt: skip
    cases = [case for plan in plans for case in plan.candidate_cases()]
    sweep = context.simulate(platform, cases)
    if sweep.failed:
        raise CollwiseError(f"{len(sweep.failed)} simulated cases failed; first: {sweep.failed[0].error}")
    return {plan.collective: select_by_simulation(platform, plan, sweep) for plan in plans}
