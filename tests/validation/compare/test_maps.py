"""Maps from made-up times: what is best, what a model picks, and what that costs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY
from collwise.platforms import load_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.compare.maps import DecisionMaps, decision_maps
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from tests.runners import context_with

GRISOU = load_description("grisou")
PLAN = CaseGrid("bcast", (4, 8), (2000, 5000, 10**6), 1, (0, 1024, 8192), ("linear", "chain", "binary"))


class Model:
    """Linear at P = 4, elsewhere chain by 1 KiB segments; nothing is predicted at 5000 bytes on 8 processes."""

    platform = "grisou"

    def __init__(self, name: str, *algorithms: str) -> None:
        self.name = name
        self._algorithms = algorithms

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return self._algorithms

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, fanout: int = 0,
    ) -> Array:  # fmt: skip
        p, m = np.broadcast_arrays(procs, message_bytes)
        picked = algorithm == "linear" if segment_bytes == 0 else algorithm == "chain" and segment_bytes == 1024
        seconds = np.where((p == 4) == (algorithm == "linear"), 1.0, 2.0) + (0.0 if picked else 5.0)
        return np.where((p == 8) & (m == 5000), np.nan, seconds)


def seconds_of(case: Case) -> float:
    """Chain is the best, by 8 KiB for long messages, else unsegmented, too; linear takes P times as long."""
    if case.algorithm == "linear":
        return float(case.procs)
    if case.algorithm == "binary":
        return 3.0
    return {0: 1.0 if case.message_bytes < 8192 else 2.0, 1024: 1.5, 8192: 1.0}[case.segment_bytes]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DecisionMaps:
    with Store(tmp_path / "timings.sqlite") as store:
        models = [Model("all", "linear", "chain", "binary"), Model("some", "linear")]
        return decision_maps(GRISOU, PLAN, models, context_with(store, seconds_of))


def named(made: DecisionMaps, winners: Array) -> list[list[str]]:
    methods = [*made.methods]
    return [["-" if index == NOBODY else methods[index].label for index in row] for row in winners.tolist()]


def test_every_segmented_algorithm_is_a_method_unsegmented_too(made: DecisionMaps) -> None:
    assert [choice.label for choice in made.methods] == [
        "linear", "chain", "binary", "chain, 1 KiB", "binary, 1 KiB", "chain, 8 KiB", "binary, 8 KiB",
    ]  # fmt: skip
    assert made.seconds.shape == (7, 2, 3)


def test_the_best_and_the_picks(made: DecisionMaps) -> None:
    assert named(made, made.best) == [["chain", "chain", "chain, 8 KiB"]] * 2
    assert named(made, made.models["all"].winners) == [["linear"] * 3, ["chain, 1 KiB", "-", "chain, 1 KiB"]]
    assert named(made, made.models["some"].winners) == [["linear"] * 3, ["linear", "-", "linear"]]


def test_slowdowns_are_in_simulated_time(made: DecisionMaps) -> None:
    slowdown = made.models["all"].slowdown
    assert slowdown[0].tolist() == [3.0, 3.0, 3.0]
    assert (slowdown[1, 0], slowdown[1, 2]) == (0.5, 0.5)
    assert math.isnan(slowdown[1, 1])
    found = made.summary("all")
    assert (found.best_share, found.mean_slowdown, found.worst_slowdown) == (0.0, 2.0, 3.0)
    assert (found.worst_procs, found.worst_bytes, found.worst_pick) == (4, 2000, Choice("linear"))
    worst = made.summary("some")
    assert (worst.worst_slowdown, worst.worst_procs) == (7.0, 8)


def test_what_a_model_leaves_out_is_told(made: DecisionMaps) -> None:
    assert made.models["all"].remarks == (
        "bcast: never chosen where model all has no prediction for them: linear, chain, binary",
    )
    assert made.models["some"].remarks[0] == (
        "bcast: left out, as model some has no formula or parameters for them: chain, binary"
    )


def test_a_model_without_any(tmp_path: Path) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        with pytest.raises(UsageError, match="model 'none' covers none of the bcast algorithms"):
            decision_maps(GRISOU, PLAN, [Model("none")], SimulationContext(store))
        with pytest.raises(UsageError, match="cannot hold P = 52 with 1 per node"):
            decision_maps(GRISOU, CaseGrid("bcast", (52,), (1,), 1, (0,)), [], SimulationContext(store))


def test_one_segment_is_no_method_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At 1 KiB the chain by 1 KiB is the unsegmented chain, which the model takes for slower than linear."""
    plan = replace(PLAN, message_bytes=(1024, 1025))

    with Store(tmp_path / "timings.sqlite") as store:
        made = decision_maps(GRISOU, plan, [Model("all", "linear", "chain", "binary")], context_with(store, seconds_of))
    assert named(made, made.models["all"].winners)[1] == ["linear", "chain, 1 KiB"]
