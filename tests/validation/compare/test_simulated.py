"""Models and libraries beside simulated times that are made up: picks, scores, maps, and what is told of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.platforms import load, load_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.present.scores import points, remarks as evaluation_remarks, score_records, score_rows
from collwise.validation.compare.scores import Scores
from collwise.validation.compare.simulated import beside_simulation, one_segment_is_none, remarks
from collwise.validation.libraries.baselines import BASELINES, PAPERS
from collwise.validation.libraries.openmpi_3 import decide
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted
from collwise.validation.times.times import State, Times
from tests.runners import context_with

GRISOU, GROS = load_description("grisou"), load("gros")
SEGMENT = 8192
GATHER = Grid.of("gather", (20, 60), (1000, 100_000), 1, (SEGMENT,))
LISTED = "Open MPI 3.1, common segments"
Seconds = Callable[[Case], float | None]


class Says:
    """A model that predicts what a function of the algorithm, the segment size, P and m says."""

    platform, plays = "gros", False

    def __init__(self, name: str, algorithms: tuple[str, ...], seconds: Callable[..., float]) -> None:
        self.name, self._algorithms, self._seconds = name, algorithms, seconds

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return self._algorithms

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, parameter: int = 0,
    ) -> Array:  # fmt: skip
        points = np.broadcast(procs, message_bytes)
        found = [self._seconds(algorithm, int(np.max(segment_bytes)), int(p), int(m)) for p, m in points]
        return np.array(found, dtype=float).reshape(points.shape)

    def document(self) -> dict[str, object]:
        return {}


def by_table(name: str, seconds: dict[tuple[str, int], float]) -> Says:
    """A model of the algorithm and m alone; nan where that is not there."""
    names = tuple(dict.fromkeys(algorithm for algorithm, _ in seconds))
    return Says(name, names, lambda algorithm, segment, p, m: seconds.get((algorithm, m), math.nan))


MODEL = Says("sync", ("linear", "linear_sync", "binomial"), lambda algorithm, *_: 1.0 + (algorithm != "binomial"))


@pytest.fixture
def beside(tmp_path: Path) -> Callable[..., Scores]:
    def of(seconds: Seconds, grid: Grid, *models: Says, baseline: str = PAPERS.name) -> Scores:
        with Store(tmp_path / "timings.sqlite") as store:
            predictions = [predicted(model, grid) for model in models]
            asked = predictions[0].grid if predictions else grid
            return beside_simulation(
                GRISOU, asked, predictions, context_with(store, seconds, "on fire"), BASELINES[baseline]
            )

    return of


def by_name(case: Case) -> float:
    return {"linear": 2.0, "linear_sync": 5.0, "binomial": 4.0}[case.algorithm] + case.segment_bytes / 32768


def test_every_algorithm_is_simulated_and_open_mpis_own_segments(beside: Callable[..., Scores]) -> None:
    grid = Grid.of("bcast", (3, 50), (1024, 2**20), 2, (SEGMENT,))
    right = beside(lambda case: 1.0, grid).right
    cases = set(right.grid.cases())
    assert {case.processes_per_node for case in cases} == {2}
    for procs, size in grid.points:
        for name in Catalogue.load().collective("bcast").selectable:
            segment = SEGMENT if Catalogue.load().algorithm("bcast", name).pipelined else 0
            assert Case("bcast", name, procs, size, segment, processes_per_node=2) in cases
        assert right.seconds_of(decide("bcast", procs, size), procs, size) == 1.0
    # Beside the common ones, only those two of Open MPI's are others.
    assert len(cases) == 4 * len(grid.names) + 1 + 2


def test_a_point_compares_each_pick_with_the_best(beside: Callable[..., Scores]) -> None:
    scores = beside(by_name, GATHER, MODEL)
    assert list(scores.others) == ["sync", LISTED, "Open MPI 3.1"]
    assert scores.places(*scores.times) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert scores.pick(None, 0, 0) == (Choice("linear"), 2.0, 0.0)
    assert scores.pick("sync", 0, 0) == (Choice("binomial"), 4.0, 1.0)
    assert scores.pick(LISTED, 0, 1) == (Choice("linear_sync"), 5.0, 1.5)
    assert scores.pick("Open MPI 3.1", 0, 1) == (Choice("linear_sync", 32768), 6.0, 2.0)
    assert scores.slowdown["Open MPI 3.1"].values.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    (row,) = points(scores, [(0, 1)]).rows
    assert row[:3] == (20, "100000 B", "linear")
    assert row[4:] == ("binomial (100)", "linear_sync (150)", "linear_sync, 32 KiB (200)")


def test_a_remark_says_if_other_times_judge_than_those_that_the_model_was_fitted_to(
    beside: Callable[..., Scores],
) -> None:
    scores = beside(by_name, GATHER, MODEL)

    def fitted_to(maker: str) -> list[str]:
        model: Any = SimpleNamespace(parameters=SimpleNamespace(made_by=maker))
        others = {title: replace(one, between=model) for title, one in scores.times.items()}
        return [
            line for line in evaluation_remarks(replace(scores, others=scores.others | others)) if "fitted to" in line
        ]

    maker = scores.right.maker
    told = f"sync was fitted to times by SimGrid 9.9, but is judged by times by {maker}, which differ"
    assert [line.partition(": ")[2] for line in fitted_to("SimGrid 9.9")] == [told]
    assert fitted_to(maker) == fitted_to("") == []


def test_an_algorithm_of_a_library_that_the_catalogue_lacks(beside: Callable[..., Scores]) -> None:
    """MPICH's recursive doubling for allgatherv has no time, and the output says so."""
    grid = Grid.of("allgatherv", (16,), (1024, 2**20), 2, (SEGMENT,))
    scores = beside(lambda case: 1.0, grid, baseline="mpich-4")
    short, long = (scores.pick("MPICH 4", 0, j) for j in (0, 1))
    assert (short.name, math.isnan(short.slowdown), long.choice) == ("recursive_doubling", True, Choice("ring"))
    missing, nodes = remarks(scores)
    assert missing.endswith(
        "no time for MPICH 4 at 1 point, since the catalogue has no algorithm that is the same as its "
        "recursive_doubling"
    )
    assert "several processes on a node, MPICH combines" in nodes


def test_only_what_the_model_covers_is_compared(beside: Callable[..., Scores]) -> None:
    """The fastest by far has no parameters: it is no candidate, and the user is told so."""
    model = Says("by_parts", ("linear_sync", "binomial"), lambda algorithm, *_: 1.0 + (algorithm != "binomial"))
    scores = beside(lambda case: 1e-9 if case.algorithm == "linear" else by_name(case), GATHER, model)
    assert scores.right.grid.names == ("linear_sync", "binomial")
    assert scores.pick(None, 0, 0).choice == scores.pick("by_parts", 0, 0).choice == Choice("binomial")
    assert remarks(scores) == ["gather: left out, as model by_parts has no formula or parameters for them: linear"]


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=4, unique=True), st.booleans())
def test_one_segment_is_no_choice_of_its_own_beside_the_whole_message(sizes: list[int], whole: bool) -> None:
    grid = Grid.of(
        "bcast", (4, 8), sorted(sizes), 1, (*([0] if whole else []), 512, 1024), ("linear", "chain", "binary")
    )
    shape = (len(grid.timed), 2, len(sizes))
    times = Times.of_seconds(grid, np.ones(shape), "gros", "predicted", "model all", State.NO_FORMULA)
    kept = one_segment_is_none(times)
    for choice in grid.timed:
        for procs, size in grid.points:
            gone = whole and choice.segment_bytes >= size
            assert kept.state_of(choice, procs, size) == (State.NOT_ASKED if gone else State.TIMED)
            assert math.isnan(kept.seconds_of(choice, procs, size)) == gone


def test_a_grid_that_does_not_fit(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "timings.sqlite") as store,
        pytest.raises(UsageError, match="cannot hold P = 52 with 1 per node"),
    ):
        beside_simulation(GRISOU, Grid.of("bcast", (52,), (1,), 1, (0,)), [], SimulationContext(store))


# Scores of models.


def scored(models: list[Says], seconds: Seconds, grid: Grid, tmp_path: Path) -> Scores:
    with Store(tmp_path / "timings.sqlite") as store:
        predictions = [predicted(model, grid) for model in models]
        return beside_simulation(GROS, grid, predictions, context_with(store, seconds, "deadlock"))


def test_errors_and_costs_by_hand(tmp_path: Path) -> None:
    grid = Grid.of("scatter", (4,), (10, 20, 30), 1, (0,), ("linear", "binomial"))
    times = {("linear", 10): 1.0, ("linear", 20): 2.0, ("linear", 30): 3.0}
    times |= {("binomial", 10): 2.0, ("binomial", 20): 1.0, ("binomial", 30): 2.0}
    good = by_table("good", {("linear", 10): 1.0, ("linear", 20): 2.0, ("linear", 30): 3.3})
    nearly = by_table(
        "nearly", {("linear", 10): 1.1, ("linear", 20): 1.0, ("binomial", 10): 2.0, ("binomial", 20): 1.5}
    )
    scores = scored([good, nearly], lambda case: times.get((case.algorithm, case.message_bytes)), grid, tmp_path)
    first, second = score_records(scores)
    # Only linear is predicted, 10 % too long at m = 30. It costs twice the best at 20, half more at 30.
    assert (first["model"], first["predictions"], first["picks"], first["best_picks"]) == ("good", 3, 3, 1)
    assert (first["mean_error"], first["worst_error"]) == (pytest.approx(0.1 / 3), pytest.approx(0.1))
    assert first["worst_error_at"] == "P = 4, 30 B: linear"
    assert first["mean_slowdown"] == pytest.approx((0 + 1 + 0.5) / 3)
    assert (first["worst_slowdown"], first["worst_at"]) == (1.0, "P = 4, 20 B: linear")
    assert (first["left_out"], first["unpredicted"]) == (("binomial",), 0)
    # Errors 0.1, 0.5, 0 and 0.5; picks linear twice, which is wrong at 20; nothing is predicted at 30.
    assert [second[name] for name in ("predictions", "unpredicted", "picks", "best_picks")] == [4, 2, 2, 1]
    assert (second["mean_error"], second["worst_error"]) == (pytest.approx(1.1 / 4), pytest.approx(0.5))
    assert (second["mean_slowdown"], second["worst_slowdown"], second["left_out"]) == (0.5, 1.0, ())
    assert len(score_rows([first, second])) == 2
    assert evaluation_remarks(scores) == [
        "gros, scatter: the picks of good have the least slowdown, 50.0 % on average, 100.0 % at worst",
        "gros, scatter: times of binomial are missing in good",
    ]
