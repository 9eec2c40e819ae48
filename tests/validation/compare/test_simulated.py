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
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import LMO, Hockney, Thresholds
from collwise.platforms import load, load_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.present.scores import points, remarks as evaluation_remarks, score_records, score_rows
from collwise.validation.compare.scores import CLOCK, Scores
from collwise.validation.compare.simulated import beside_simulation, one_segment_is_none, remarks
from collwise.validation.libraries.baselines import BASELINES, PAPERS
from collwise.validation.libraries.openmpi_3 import decide
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted
from tests.needs import needs
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


def test_failed_cases_are_never_the_best(beside: Callable[..., Scores]) -> None:
    def failing(case: Case) -> float | None:
        fails = case.algorithm == "linear" or (case.algorithm == "linear_sync" and case.segment_bytes)
        return None if fails else by_name(case)

    scores = beside(failing, GATHER, MODEL)
    assert {timing.case.algorithm for timing in scores.right.failed} == {"linear", "linear_sync"}
    assert {scores.pick(None, i, j).name for i, j in scores.places(*scores.times)} == {"binomial"}
    assert math.isnan(scores.slowdown["Open MPI 3.1"].values[0, 1])
    nothing = beside(lambda case: None, GATHER, MODEL)
    assert nothing.places(*nothing.times) == []


def test_a_single_process_has_no_slowdown(beside: Callable[..., Scores]) -> None:
    scores = beside(lambda case: 0.0, Grid.of("gather", (1,), (1000, 100_000), 1, (SEGMENT,)), MODEL)
    assert all(lost.values.tolist() == [[0.0, 0.0]] for lost in scores.slowdown.values())


def test_only_what_the_model_covers_is_compared(beside: Callable[..., Scores]) -> None:
    """The fastest by far has no parameters: it is no candidate, and the user is told so."""
    model = Says("by_parts", ("linear_sync", "binomial"), lambda algorithm, *_: 1.0 + (algorithm != "binomial"))
    scores = beside(lambda case: 1e-9 if case.algorithm == "linear" else by_name(case), GATHER, model)
    assert scores.right.grid.names == ("linear_sync", "binomial")
    assert scores.pick(None, 0, 0).choice == scores.pick("by_parts", 0, 0).choice == Choice("binomial")
    assert remarks(scores) == ["gather: left out, as model by_parts has no formula or parameters for them: linear"]


# Maps: a method is an algorithm at a segment size, and one segment is none.

PLAN = Grid.of("bcast", (4, 8), (2000, 5000, 10**6), 1, (0, 1024, 8192), ("linear", "chain", "binary"))


def picks_linear_or_chain(algorithm: str, segment: int, p: int, m: int) -> float:
    """Linear at P = 4, elsewhere chain by 1 KiB segments; nothing is predicted at 5000 bytes on 8 processes."""
    if (p, m) == (8, 5000):
        return math.nan
    picked = algorithm == "linear" if segment == 0 else algorithm == "chain" and segment == 1024
    return (1.0 if (p == 4) == (algorithm == "linear") else 2.0) + (0.0 if picked else 5.0)


def of_maps(case: Case) -> float:
    """Chain is the best, by 8 KiB for long messages, else unsegmented, too; linear takes P times as long."""
    if case.algorithm == "linear":
        return float(case.procs)
    if case.algorithm == "binary":
        return 3.0
    return {0: 1.0 if case.message_bytes < 8192 else 2.0, 1024: 1.5, 8192: 1.0}[case.segment_bytes]


def maps_of(grid: Grid, tmp_path: Path) -> Scores:
    models = [
        Says("all", ("linear", "chain", "binary"), picks_linear_or_chain),
        Says("some", ("linear",), lambda *_: 1),
    ]
    with Store(tmp_path / "timings.sqlite") as store:
        predictions = [one_segment_is_none(predicted(model, grid)) for model in models]
        return beside_simulation(GRISOU, grid, predictions, context_with(store, of_maps))


def labels(scores: Scores, title: str | None) -> list[list[str]]:
    right = scores.right
    return [[scores.pick(title, i, j).label for j in range(len(right.message_bytes))] for i in range(len(right.procs))]


def test_maps_have_every_method_and_the_picks_of_models(tmp_path: Path) -> None:
    scores = maps_of(PLAN, tmp_path)
    assert [choice.label for choice in scores.right.choices] == [
        "linear", "chain", "binary", "chain, 1 KiB", "binary, 1 KiB", "chain, 8 KiB", "binary, 8 KiB",
    ]  # fmt: skip
    assert labels(scores, None) == [["chain", "chain", "chain, 8 KiB"]] * 2
    assert labels(scores, "all") == [["linear"] * 3, ["chain, 1 KiB", "-", "chain, 1 KiB"]]
    assert labels(scores, "some") == [["linear"] * 3] * 2
    found = scores.summary("all", CLOCK)
    assert (found.points, found.best_share, found.mean, found.worst, found.worst_at) == (5, 0.0, 2.0, 3.0, (0, 0))
    assert scores.summary("some").worst == 7.0
    assert remarks(scores) == [
        "bcast: never chosen where model all has no prediction for them: linear, chain, binary",
        "bcast: left out, as model some has no formula or parameters for them: chain, binary",
    ]


def test_one_segment_is_no_method_of_its_own(tmp_path: Path) -> None:
    """At 1 KiB the chain by 1 KiB is the unsegmented chain, which the model takes for slower than linear."""
    grid = Grid.of("bcast", (4, 8), (1024, 1025), 1, (0, 1024, 8192), PLAN.names)
    assert labels(maps_of(grid, tmp_path), "all")[1] == ["linear", "chain, 1 KiB"]


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
    scores = scored([good, nearly], lambda case: times[case.algorithm, case.message_bytes], grid, tmp_path)
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


def test_of_equal_predictions_the_first_is_picked(tmp_path: Path) -> None:
    """Though the other one's is less in the last bits."""
    says = by_table("one", {("linear", 10): 1.0, ("binomial", 10): math.nextafter(1.0, 0.0)})
    grid = Grid.of("scatter", (4,), (10,), 1, (0,), ("linear", "binomial"))
    scores = scored([says], lambda case: 1.0 if case.algorithm == "linear" else 5.0, grid, tmp_path)
    assert scores.pick("one", 0, 0) == (Choice("linear"), 1.0, 0.0)


def test_failed_cases_do_not_count(tmp_path: Path) -> None:
    says = by_table("one", {("linear", 10): 2.0, ("binomial", 10): 1.0})
    grid = Grid.of("scatter", (4,), (10,), 1, (0,), ("linear", "binomial"))
    scores = scored([says], lambda case: 2.0 if case.algorithm == "linear" else None, grid, tmp_path)
    (record,) = score_records(scores)
    assert [record[name] for name in ("predictions", "picks", "mean_error", "mean_slowdown")] == [1, 1, 0.0, 0.0]
    assert [timing.case.algorithm for timing in scores.right.failed] == ["binomial"]
    (nothing,) = score_records(scored([says], lambda case: None, grid, tmp_path))
    assert (nothing["predictions"], nothing["picks"], nothing["worst_at"]) == (0, 0, "")


def test_times_that_are_not_deterministic_are_skipped_and_counted(tmp_path: Path) -> None:
    model = PointToPointModel("lmo", "gros", LMO(1e-6, 1e-9, 1e-5, 1e-9, Thresholds(None, 100, 1000)))
    grid = Grid.of("gather", (2, 4), (10, 500, 5000), segments=(0,))
    with Store(tmp_path / "timings.sqlite") as store:
        context = context_with(store, lambda case: 1e-3 if case.algorithm == "linear" else 2e-3)
        grid = grid.of_algorithms(model.algorithms("gather"))
        scores = beside_simulation(GROS, grid, [predicted(model, grid)], context)
    (record,) = score_records(scores)
    # Linear is not predicted at 500 bytes for either P; binomial always is, and is picked there.
    assert (record["predictions"], record["unpredicted"], record["picks"]) == (10, 2, 6)
    assert record["worst_slowdown"] == pytest.approx(1.0)


@needs("smpi")
def test_a_small_grid_simulated(tmp_path: Path) -> None:
    """Errors of all predictions and costs of all picks, one loop for each."""
    model = PointToPointModel("hockney", "gros", Hockney(2e-5, 1e-9))
    grid = Grid.of("bcast", (2, 3, 6), (64, 4096, 65536), segments=(0, 1024))
    with Store(tmp_path / "timings.sqlite") as store:
        grid = grid.of_algorithms(model.algorithms("bcast")).by_algorithm()
        scores = beside_simulation(GROS, grid, [predicted(model, grid)], SimulationContext(store))
        cases = grid.cases()
        sweep = SimulationContext(store).simulate(GROS, cases)
    assert sweep.processes_started == 0
    errors, costs = [], []
    for point in grid.points:
        here = {case: one.seconds for case, one in sweep.timings.items() if (case.procs, case.message_bytes) == point}
        said = {case: float(model.predict("bcast", case.algorithm, *point, case.segment_bytes)) for case in here}
        errors += [abs(said[case] / here[case] - 1) for case in here]
        costs.append(here[min(said, key=said.__getitem__)] / min(here.values()) - 1)
    (record,) = score_records(scores)
    assert (record["predictions"], record["picks"]) == (len(errors), len(costs))
    assert (record["mean_error"], record["worst_error"]) == (pytest.approx(np.mean(errors)), pytest.approx(max(errors)))
    assert record["mean_slowdown"] == pytest.approx(np.mean(costs))
    assert (record["worst_slowdown"], record["best_picks"]) == (pytest.approx(max(costs)), costs.count(0))
