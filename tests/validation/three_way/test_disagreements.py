from __future__ import annotations

import math

import pandas as pd
import pytest

from collwise.simulator.timing import Case, Timing
from collwise.validation.three_way.disagreements import (
    NOT_FOUND,
    NOT_SEEN_AGAIN,
    WITHIN_INTERVAL,
    Pair,
    cause_of,
    disagreements,
    spread,
)
from collwise.validation.three_way.scores import repeatability
from collwise.validation.three_way.table import SIMULATED


def row(size: int, simulated: float, algorithm: str = "chain", half_width: float = 0.0, of: str = "bcast") -> pd.Series:
    point = {"target": "bed", "collective": of, "procs": 8, "message_bytes": size}
    measured = {"algorithm": algorithm, "seconds": 1.0, "half_width_seconds": half_width}
    return pd.Series({**point, **measured, SIMULATED: simulated})


def test_neighbours_on_one_side_are_one_disagreement() -> None:
    table = [row(1, 1.5), row(2, 1.4), row(4, 1.1), row(8, 1.3), row(16, 0.6), row(32, 0.7), row(1, 5.0, "linear")]
    found = disagreements(pd.DataFrame(table))
    ranges = [(one.worst.algorithm, list(one.rows.message_bytes)) for one in found]
    assert ranges == [("linear", [1]), ("chain", [16, 32]), ("chain", [1, 2]), ("chain", [8])]
    assert found[1].worst.message_bytes == 16
    assert disagreements(pd.DataFrame([row(1, math.nan)])) == []


def test_the_cause_closes_most_of_the_gap() -> None:
    worst, again = row(1, 2.0), Pair(2.0, 1.0)
    closing = {"two cores": Pair(1.2, 1.0), "rendezvous protocol": Pair(1.1, 1.0), "opposite traffic": Pair(2.0, 1.0)}
    assert cause_of(worst, again, closing) == "rendezvous protocol"
    # Half of ln 2 is left at sqrt(2).
    assert cause_of(worst, again, {"two cores": Pair(math.sqrt(2) * 1.01, 1.0)}) == NOT_FOUND
    assert cause_of(worst, again, {"two cores": Pair(math.sqrt(2) * 0.99, 1.0)}) == "two cores"
    assert cause_of(worst, again, {}) == NOT_FOUND
    assert cause_of(worst, None, {}) == NOT_FOUND


def test_what_the_measurement_does_not_say_has_no_cause() -> None:
    assert cause_of(row(1, 2.0, half_width=1.1), Pair(2.0, 1.0), {}) == WITHIN_INTERVAL
    assert cause_of(row(1, 2.0), Pair(2.0, 1.9), {"two cores": Pair(1.0, 1.0)}) == NOT_SEEN_AGAIN


def test_every_collective_gets_its_worst_looked_at_first() -> None:
    table = [row(1, 9.0), row(1, 8.0, "binary"), row(1, 7.0, "linear"), row(1, 1.5, of="gather")]
    chosen = spread(disagreements(pd.DataFrame(table)), 3)
    assert [(one.worst.collective, one.worst.algorithm) for one in chosen] == [
        ("bcast", "chain"),
        ("gather", "chain"),
        ("bcast", "binary"),
    ]
    assert spread([], 3) == []


def test_repeated_means_agree_within_the_interval_of_their_difference() -> None:
    case = Case("bcast", "chain", 8, 1)

    def timing(seconds: float, half_width: float, error: str = "") -> Timing:
        return Timing(case, seconds, half_width_seconds=half_width, repetitions=5, error=error)

    found = repeatability(
        [
            (timing(1.0, 0.1), timing(1.09, 0.1)),
            (timing(1.0, 0.1), timing(1.15, 0.1)),
            (timing(1.0, 0.1), timing(1.3, 0.1)),
            (timing(1.0, 0.1), timing(math.nan, 0.1, "failed")),
        ]
    )
    assert (found.cases, found.within, found.overlapping, found.inside) == (3, 1, 2, 1)
    assert found.median_difference == pytest.approx(0.15)
    assert found.worst_difference == pytest.approx(0.3)
