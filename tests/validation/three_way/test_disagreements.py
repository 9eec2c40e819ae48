from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, cast

import pytest

from collwise.simulator.timing import Case
from collwise.validation.testbed.shape import Shape
from collwise.validation.three_way.disagreements import (
    CONDITIONS,
    NOT_FOUND,
    NOT_SEEN_AGAIN,
    WITHIN_INTERVAL,
    Condition,
    Diagnoser,
    Pair,
    cause_of,
    disagreements,
    spread,
)
from collwise.validation.three_way.verdicts import SIMULATED
from tests.validation.three_way.made_up import made_up


def test_neighbours_on_one_side_are_one_disagreement() -> None:
    sizes = (1, 2, 3, 4, 8, 16, 32)
    simulated = {"chain": [1.5, 1.4, math.nan, 1.1, 1.3, 0.6, 0.7], "linear": [5.0, *[1.0] * 6]}
    measured = {name: [1.0] * len(sizes) for name in simulated}
    found = disagreements([made_up(measured, {SIMULATED: simulated}, sizes=sizes)])
    ranges = [(one.case.algorithm, one.message_bytes) for one in found]
    assert ranges == [("linear", (1,)), ("chain", (16, 32)), ("chain", (1, 2)), ("chain", (8,))]
    assert found[1].case.message_bytes == 16
    assert found[1].worst == Pair(0.6, 1.0)
    assert disagreements([made_up({"chain": [1.0]}, {SIMULATED: {}})]) == []


def test_a_size_without_times_does_not_divide_a_disagreement() -> None:
    simulated = {SIMULATED: {"chain": [1.5, math.nan, 1.4]}}
    [found] = disagreements([made_up({"chain": [1.0] * 3}, simulated, sizes=(1, 2, 4))])
    assert found.message_bytes == (1, 4)


def test_the_cause_closes_most_of_the_gap() -> None:
    worst, again = Pair(2.0, 1.0), Pair(2.0, 1.0)
    closing = {"two cores": Pair(1.2, 1.0), "rendezvous protocol": Pair(1.1, 1.0), "opposite traffic": Pair(2.0, 1.0)}
    assert cause_of(worst, again, closing) == "rendezvous protocol"
    # Half of ln 2 is left at sqrt(2).
    assert cause_of(worst, again, {"two cores": Pair(math.sqrt(2) * 1.01, 1.0)}) == NOT_FOUND
    assert cause_of(worst, again, {"two cores": Pair(math.sqrt(2) * 0.99, 1.0)}) == "two cores"
    assert cause_of(worst, again, {}) == NOT_FOUND
    assert cause_of(worst, None, {}) == NOT_FOUND


def test_what_the_measurement_does_not_say_has_no_cause() -> None:
    assert cause_of(Pair(2.0, 1.0, 1.1), Pair(2.0, 1.0), {}) == WITHIN_INTERVAL
    assert cause_of(Pair(2.0, 1.0), Pair(2.0, 1.9), {"two cores": Pair(1.0, 1.0)}) == NOT_SEEN_AGAIN


def test_every_collective_gets_its_worst_looked_at_first() -> None:
    simulated = {"chain": [9.0], "binary": [8.0], "linear": [7.0]}
    bcast = made_up({name: [1.0] for name in simulated}, {SIMULATED: simulated})
    gather = made_up({"chain": [1.0]}, {SIMULATED: {"chain": [1.5]}}, collective="gather")
    chosen = spread(disagreements([bcast, gather]), 3)
    assert [(one.case.collective, one.case.algorithm) for one in chosen] == [
        ("bcast", "chain"),
        ("gather", "chain"),
        ("bcast", "binary"),
    ]
    assert spread([], 3) == []


def test_test_beds_are_up_for_disagreements_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are the same under all conditions but one, which closes the gap."""
    module, beds, closing = "collwise.validation.three_way.disagreements", [], CONDITIONS[-1]
    [found] = disagreements([made_up({"chain": [1.0]}, {SIMULATED: {"chain": [2.0]}})])

    def up(shape: Shape, _: str) -> contextlib.AbstractContextManager[None]:
        beds.append(shape)
        return contextlib.nullcontext()

    def under(_: Diagnoser, condition: Condition, bed: object, cases: Sequence[Case]) -> dict[Case, Pair]:
        return dict.fromkeys(cases, Pair(1.0 if condition is closing else 2.0, 1.0))

    monkeypatch.setattr(f"{module}.temporarily_up", up)
    monkeypatch.setattr(f"{module}.TestBed", lambda up: up)
    monkeypatch.setattr(Diagnoser, "_under", under)
    monkeypatch.setattr(Diagnoser, "_counted", lambda *_: {})
    nothing = cast("Any", None)
    diagnoser = Diagnoser(Shape(4), nothing, nothing, "bed", nothing, nothing)
    assert diagnoser.diagnose([]) == []
    assert not beds
    [diagnosis] = diagnoser.diagnose([found])
    assert (diagnosis.disagreement, diagnosis.cause) == (found, closing.cause)
    assert diagnosis.unchanged == Pair(2.0, 1.0)
    assert beds[0] == Shape(4)
