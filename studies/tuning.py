"""The main job: from a platform to a chosen algorithm. Fit, compare and select for several collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.implementation_aware.estimation import BY_PARTS
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.fitting.models_by_name import implementation_aware
from collwise.validation.selection.comparison import (
    Comparison,
    ComparisonPlan,
    ComparisonResult,
    Pick,
    compare,
    select_by_model,
)
from collwise.validation.selection.consumers import TARGETS, candidates, one_choice_a_count
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.grid import DECISION_SIZES, MORE_SEGMENTS, SEGMENT_BYTES, SIZES


@dataclass(frozen=True)
class Tuning:
    """The fitted parameters of one platform, and comparisons and decisions by collective."""

    platform: HostPlatform
    parameters: ModelParameters
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
    segments: Sequence[int] = (SEGMENT_BYTES, *MORE_SEGMENTS),
) -> Tuning:
    """Fits the models on the platform, compares picks at the paper's sizes, and selects for every P up to the largest.

    A choice is an algorithm and one of the `segments` (bytes); the least of them is the common one. Decisions contain
    only what every decision consumer can express, so that all kinds of rules can be written from them.

    Raises UsageError when P does not fit on the platform.
    """
    ppn = processes_per_node or platform.default_processes_per_node
    segment_bytes, *others = sorted(segments)
    more = tuple(others)
    for count in procs:
        platform.hosts_for(count, ppn)
    parameters = implementation_aware(platform, ppn, sorted(segments), context, collectives)
    model = ImplementationAware(parameters, BY_PARTS)
    comparisons, decisions = {}, {}
    for collective in collectives:
        plan = ComparisonPlan(collective, tuple(procs), SIZES[collective], ppn, segment_bytes, more_segments=more)
        comparisons[collective] = compare(platform, plan, model, context)
        everywhere = tuple(range(2, platform.max_procs(ppn) + 1))
        names = _known_to_all(collective)
        wide = ComparisonPlan(collective, everywhere, DECISION_SIZES[collective], ppn, segment_bytes, names, more)
        decisions[collective] = select_by_model(model, wide, one_choice=one_choice_a_count(collective))
    return Tuning(platform, parameters, comparisons, decisions)


def _known_to_all(collective: str) -> tuple[str, ...]:
    """The algorithms that every decision consumer can express."""
    by_target = [candidates(collective, target) for target in TARGETS]
    return tuple(name for name in candidates(collective, None) if all(name in names for names in by_target))


def table_columns(rows: Sequence[Comparison]) -> tuple[str, ...]:
    """The column heads of `table_row`."""
    common = () if chooses_segments(rows) else ("Open MPI (%)",)
    own = "Open MPI 3.1 (%)" if chooses_segments(rows) else "with its segments (%)"
    return ("P", "m", "best", "time", "model (%)", *common, own)


def chooses_segments(rows: Sequence[Comparison]) -> bool:
    """Whether candidates have several segment sizes; the paper's have one, and so has Open MPI's algorithm there."""
    return any("," in label for row in rows for label in row.simulated)


def table_row(row: Comparison) -> tuple[str, ...]:
    """A row like those of the paper's tables 2, 3 and 8: the best, and each pick with its slowdown in percent."""
    wide = chooses_segments([row])

    def named(pick: Pick, with_segment: bool) -> str:
        segment = pick.choice.segment_bytes
        return pick.choice.algorithm + (f", {format_size(segment)}" if segment and with_segment else "")

    common = () if wide else (f"{named(row.openmpi, False)} ({percent(row.openmpi.degradation)})",)
    return (
        str(row.procs),
        format_size(row.message_bytes),
        named(row.best, wide),
        format_seconds(row.best.seconds),
        f"{named(row.model, wide)} ({percent(row.model.degradation)})",
        *common,
        f"{named(row.openmpi_shipped, True)} ({percent(row.openmpi_shipped.degradation)})",
    )


def percent(degradation: float) -> str:
    """'3', '160': whole percent, never '-0'."""
    return f"{degradation * 100:z.0f}"


def summary_line(result: ComparisonResult) -> str:
    """The mean and worst degradation of each source's picks in a sentence, and the algorithms that were left out."""
    sources = [("model", "model"), ("openmpi", "Open MPI"), ("openmpi_shipped", "with its segments")]
    if chooses_segments(result.rows):
        sources = [("model", "model"), ("openmpi_shipped", "Open MPI 3.1")]
    parts = []
    for source, name in sources:
        values = result.degradations(source) * 100
        parts.append(f"{name} {np.mean(values):.1f} % on average, {np.max(values):.1f} % at worst")
    return "Cost against the best: " + "; ".join(parts) + (f".\n{result.left_out}" if result.left_out else "")
