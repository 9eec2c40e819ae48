"""Puts the predictions of simulation and models beside the measured times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from collwise.models.interface import CollectiveModel
from collwise.simulator.timing import Case, Timing
from collwise.validation.three_way.table import SIMULATED, BuiltinTime, MeasuredPoint, MeasuredRow, ThreeWayTable


def predictions(models: Sequence[CollectiveModel], cases: Sequence[Case]) -> dict[str, dict[Case, float]]:
    """By model and case the predicted seconds. Cases without a prediction are left out, and models without any."""
    found: dict[str, dict[Case, float]] = {}
    for model in models:
        predicted: dict[Case, float] = {}
        for (collective, algorithm), group in _by_algorithm(cases).items():
            if algorithm in model.algorithms(collective):
                procs, sizes, segments = (
                    np.array([getattr(case, name) for case in group])
                    for name in ("procs", "message_bytes", "segment_bytes")
                )
                seconds = np.broadcast_to(model.predict(collective, algorithm, procs, sizes, segments), len(group))
                predicted |= {
                    case: float(value)
                    for case, value in zip(group, seconds, strict=True)
                    if np.isfinite(value) and value > 0
                }
        if predicted:
            found[model.name] = predicted
    return found


def _by_algorithm(cases: Iterable[Case]) -> dict[tuple[str, str], list[Case]]:
    found: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        found.setdefault((case.collective, case.algorithm), []).append(case)
    return found


def table_of(
    target: str,
    measured: Iterable[Timing],
    simulated: Mapping[Case, Timing],
    predicted: Mapping[str, Mapping[Case, float]],
    builtin: Iterable[Timing] = (),
) -> ThreeWayTable:
    """The comparison on a target. Timings that failed, in measurement or simulation, are left out."""

    def predicted_for(case: Case) -> dict[str, float]:
        of_models = {name: seconds[case] for name, seconds in predicted.items() if case in seconds}
        simulation = simulated.get(case)
        return {SIMULATED: simulation.seconds, **of_models} if simulation is not None and simulation.ok else of_models

    def point(case: Case) -> MeasuredPoint:
        return MeasuredPoint(target, case.collective, case.procs, case.message_bytes)

    rows = [
        MeasuredRow(point(one.case), one.case.algorithm, one.seconds, one.half_width_seconds, predicted_for(one.case))
        for one in measured
        if one.ok
    ]
    builtin_times = [BuiltinTime(point(one.case), one.seconds, one.half_width_seconds) for one in builtin if one.ok]
    return ThreeWayTable(tuple(rows), tuple(builtin_times))


def joined(tables: Iterable[ThreeWayTable]) -> ThreeWayTable:
    """One table with the rows of several targets."""
    found = list(tables)
    return ThreeWayTable(
        tuple(row for one in found for row in one.rows), tuple(own for one in found for own in one.builtin)
    )
