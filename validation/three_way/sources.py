"""What simulation and models say of measured cases, put beside the measured times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from collwise.models.interface import CollectiveModel
from collwise.simulator.timing import Case, Timing
from collwise.validation.three_way.table import SIMULATED, OwnChoice, Point, Row, Table


def predictions(models: Sequence[CollectiveModel], cases: Sequence[Case]) -> dict[str, dict[Case, float]]:
    """By model and case the predicted seconds; what a model has no formula for, or foretells no time for, is left out.

    Models with nothing to say of any case are left out, too.
    """
    found: dict[str, dict[Case, float]] = {}
    for model in models:
        mine: dict[Case, float] = {}
        for (collective, algorithm), group in _by_algorithm(cases).items():
            if algorithm in model.algorithms(collective):
                seconds = np.broadcast_to(
                    model.predict(
                        collective,
                        algorithm,
                        np.array([case.procs for case in group]),
                        np.array([case.message_bytes for case in group]),
                        np.array([case.segment_bytes for case in group]),
                    ),
                    len(group),
                )
                mine |= {
                    case: float(value)
                    for case, value in zip(group, seconds, strict=True)
                    if np.isfinite(value) and value > 0
                }
        if mine:
            found[model.name] = mine
    return found


def _by_algorithm(cases: Iterable[Case]) -> dict[tuple[str, str], list[Case]]:
    found: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        found.setdefault((case.collective, case.algorithm), []).append(case)
    return found


def table_of(
    place: str,
    measured: Iterable[Timing],
    simulated: Mapping[Case, Timing],
    predicted: Mapping[str, Mapping[Case, float]],
    own: Iterable[Timing] = (),
) -> Table:
    """The comparison at a place. Cases that failed, in measurement or simulation, say nothing there."""

    def foretold(case: Case) -> dict[str, float]:
        of_models = {name: seconds[case] for name, seconds in predicted.items() if case in seconds}
        simulation = simulated.get(case)
        return {SIMULATED: simulation.seconds, **of_models} if simulation is not None and simulation.ok else of_models

    def point(case: Case) -> Point:
        return Point(place, case.collective, case.procs, case.message_bytes)

    rows = [
        Row(point(one.case), one.case.algorithm, one.seconds, one.half_width_seconds, foretold(one.case))
        for one in measured
        if one.ok
    ]
    owns = [OwnChoice(point(one.case), one.seconds, one.half_width_seconds) for one in own if one.ok]
    return Table(tuple(rows), tuple(owns))


def joined(tables: Iterable[Table]) -> Table:
    """All rows of several places."""
    found = list(tables)
    return Table(tuple(row for one in found for row in one.rows), tuple(own for one in found for own in one.own))
