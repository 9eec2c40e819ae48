"""Scores against errors and costs that are computed point by point."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.hockney import Hockney
from collwise.models.interface import CollectiveModel
from collwise.models.lmo import LMO, Thresholds
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.compare.evaluation import Evaluation, Score, evaluate, usual_grid
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import CaseGrid
from tests.needs import needs
from tests.runners import context_with

GROS = load("gros")
HOCKNEY = PointToPointModel("hockney", "gros", Hockney(2e-5, 1e-9))
GRID = CaseGrid("bcast", (2, 3, 6), (64, 4096, 65536), segments=(0, 1024))


class Says:
    """A model that predicts `seconds[algorithm, segment][P, m]`; nan where that is not there."""

    platform = "gros"

    def __init__(self, name: str, seconds: dict[tuple[str, int], dict[tuple[int, int], float]]) -> None:
        self.name, self.seconds = name, seconds

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(algorithm for algorithm, _ in self.seconds))

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, fanout: int = 0,
    ) -> Array:  # fmt: skip
        known = self.seconds.get((algorithm, int(np.max(segment_bytes))), {})
        points = np.broadcast(procs, message_bytes)
        found = [known.get((int(p), int(m)), math.nan) for p, m in points]
        return np.array(found).reshape(points.shape)


def scored(
    models: list[CollectiveModel], times: dict[tuple[str, int, int, int], float], grid: CaseGrid,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> Evaluation:  # fmt: skip
    """On scatter, where (algorithm, segment, P, m) takes the time given; what is not there fails."""

    def seconds(case: Case) -> float | None:
        return times.get((case.algorithm, case.segment_bytes, case.procs, case.message_bytes))

    with Store(tmp_path / "timings.sqlite") as store:
        return evaluate(GROS, models, [grid], context_with(store, seconds, "deadlock"))


def test_errors_and_costs_by_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    grid = CaseGrid("scatter", (4,), (10, 20, 30), segments=(0,))
    times = {("linear", 0, 4, 10): 1.0, ("linear", 0, 4, 20): 2.0, ("linear", 0, 4, 30): 3.0}
    times |= {("binomial", 0, 4, 10): 2.0, ("binomial", 0, 4, 20): 1.0, ("binomial", 0, 4, 30): 2.0}
    good = Says("good", {("linear", 0): {(4, 10): 1.0, (4, 20): 2.0, (4, 30): 3.3}})
    nearly = Says(
        "nearly",
        {
            ("linear", 0): {(4, 10): 1.1, (4, 20): 1.0},
            ("binomial", 0): {(4, 10): 2.0, (4, 20): 1.5},
        },
    )
    result = scored([good, nearly], times, grid, monkeypatch, tmp_path)
    first, second = result.scores
    # Only linear is predicted, 10 % too long at m = 30. It costs twice the best at 20, half more at 30.
    assert (first.model, first.predictions, first.picks, first.best_picks) == ("good", 3, 3, 1)
    assert first.mean_error == pytest.approx(0.1 / 3)
    assert first.worst_error == pytest.approx(0.1)
    assert first.mean_slowdown == pytest.approx((0 + 1 + 0.5) / 3)
    assert (first.worst_slowdown, first.worst_at) == (1.0, "P = 4, 20 B: linear")
    assert (first.left_out, first.unpredicted) == (("binomial",), 0)
    # Errors 0.1, 0.5, 0 and 0.5; picks linear twice, which is wrong at 20; nothing is predicted at 30.
    assert (second.predictions, second.unpredicted, second.picks, second.best_picks) == (4, 2, 2, 1)
    assert second.mean_error == pytest.approx(1.1 / 4)
    assert second.worst_error == pytest.approx(0.5)
    assert (second.mean_slowdown, second.worst_slowdown) == (0.5, 1.0)
    assert second.left_out == ()
    best = result.best("scatter")
    assert best is not None
    assert (first.mean_slowdown, best.model) == (0.5, "good")
    assert result.covered_by_none == {"scatter": ("linear_nonblocking",)}
    assert result.failed == ()


def test_of_equal_predictions_the_first_is_picked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Though the other one's is less in the last bits."""
    says = Says("one", {("linear", 0): {(4, 10): 1.0}, ("binomial", 0): {(4, 10): math.nextafter(1.0, 0.0)}})
    times = {("linear", 0, 4, 10): 1.0, ("binomial", 0, 4, 10): 5.0}
    (score,) = scored([says], times, CaseGrid("scatter", (4,), (10,), segments=(0,)), monkeypatch, tmp_path).scores
    assert (score.best_picks, score.mean_slowdown) == (1, 0.0)


def test_failed_cases_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    says = Says("one", {("linear", 0): {(4, 10): 2.0}, ("binomial", 0): {(4, 10): 1.0}})
    result = scored(
        [says], {("linear", 0, 4, 10): 2.0}, CaseGrid("scatter", (4,), (10,), segments=(0,)), monkeypatch, tmp_path
    )
    (score,) = result.scores
    assert (score.predictions, score.picks, score.mean_error, score.mean_slowdown) == (1, 1, 0.0, 0.0)
    assert [timing.case.algorithm for timing in result.failed] == ["binomial"]


def test_where_everything_fails_nothing_is_scored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    says = Says("one", {("linear", 0): {(4, 10): 2.0}})
    result = scored([says], {}, CaseGrid("scatter", (4,), (10,), segments=(0,)), monkeypatch, tmp_path)
    (score,) = result.scores
    assert (score.predictions, score.picks, score.worst_at) == (0, 0, "")
    assert math.isnan(score.mean_error)
    assert math.isnan(score.mean_slowdown)
    assert result.best("scatter") is None


def test_times_that_are_not_deterministic_are_skipped_and_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = PointToPointModel("lmo", "gros", LMO(1e-6, 1e-9, 1e-5, 1e-9, Thresholds(None, 100, 1000)))
    grid = CaseGrid("scatter", (2, 4), (10, 500, 5000), segments=(0,))
    case_times = {("linear", 0, p, m): 1e-3 for p in grid.procs for m in grid.message_bytes}

    with Store(tmp_path / "timings.sqlite") as store:
        context = context_with(store, lambda case: 1e-3 if case.algorithm == "linear" else 2e-3)
        result = evaluate(GROS, [model], [replace(grid, collective="gather")], context)
    (score,) = result.scores
    # Linear is not predicted at 500 bytes for either P; binomial always is, and is picked there.
    assert len(case_times) + 6 == 12 == score.predictions + score.unpredicted
    assert (score.predictions, score.unpredicted, score.picks) == (10, 2, 6)
    assert score.worst_slowdown == pytest.approx(1.0)


def independently(model: CollectiveModel, times: dict[Case, float], collective: str) -> tuple[list[float], list[float]]:
    """Errors of all predictions and costs of all picks, one loop for each."""
    errors, costs = [], []
    points = sorted({(case.procs, case.message_bytes) for case in times})
    for p, m in points:
        here = {case: seconds for case, seconds in times.items() if (case.procs, case.message_bytes) == (p, m)}
        predicted = {}
        for case, seconds in here.items():
            if case.algorithm in model.algorithms(collective):
                predicted_seconds = float(model.predict(collective, case.algorithm, p, m, case.segment_bytes))
                predicted[case] = predicted_seconds
                errors.append(abs(predicted_seconds - seconds) / seconds)
        picked = min(predicted, key=lambda case: predicted[case])
        costs.append(here[picked] / min(here.values()) - 1)
    return errors, costs


@needs("smpi")
@pytest.mark.parametrize("collective", ["bcast", "scatter"])
def test_a_small_grid_simulated(collective: str, tmp_path: Path) -> None:
    grid = GRID if collective == "bcast" else CaseGrid("scatter", GRID.procs, GRID.message_bytes, segments=(0,))
    with Store(tmp_path / "timings.sqlite") as store:
        result = evaluate(GROS, [HOCKNEY], [grid], SimulationContext(store))
        known = Catalogue.load().collective(collective).algorithms
        cases = [
            Case(collective, name, p, m, segment, 0, 1)
            for name in HOCKNEY.algorithms(collective)
            for segment in (grid.segments if known[name].pipelined else (0,))
            for p in grid.procs
            for m in grid.message_bytes
            if known[name].selectable and not known[name].objection(p)
        ]
        sweep = SimulationContext(store).simulate(GROS, cases)
        assert sweep.processes_started == 0
        times = {case: timing.seconds for case, timing in sweep.timings.items()}
    errors, costs = independently(HOCKNEY, times, collective)
    (score,) = result.scores
    assert score.predictions == len(errors) == len(cases)
    assert score.mean_error == pytest.approx(np.mean(errors))
    assert score.worst_error == pytest.approx(max(errors))
    assert score.picks == len(costs) == 9
    assert score.mean_slowdown == pytest.approx(np.mean(costs))
    assert score.worst_slowdown == pytest.approx(max(costs))
    assert score.best_picks == sum(cost == 0 for cost in costs)


def test_usual_grids() -> None:
    assert usual_grid(load("boba"), "bcast").procs == (3, 5, 8, 12, 16, 24, 32)
    assert usual_grid(load("boba"), "barrier").message_bytes == (0,)
    assert usual_grid(load("hcl16"), "scatter").procs == (3, 5, 8, 12, 16)
    assert usual_grid(load("boba"), "bcast", (4,)).procs == (4,)
    assert usual_grid(load("boba"), "reduce").segments == (0, 1024, 8192)
    # Algorithms that cut no messages compete once.
    assert len(usual_grid(load("boba"), "gather").candidates) == len(Catalogue.load().collective("gather").selectable)
    assert "segmented_ring, 8 KiB" in usual_grid(load("boba"), "allreduce").candidates
    assert all(usual_grid(load("gros"), name).cases() for name in Catalogue.load().collectives)
    assert usual_grid(load("boba"), "alltoall").message_bytes[-1] == 32768


def test_what_cannot_be_evaluated(tmp_path: Path) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        with pytest.raises(UsageError, match="none of the models hockney covers scan"):
            evaluate(GROS, [HOCKNEY], [replace(GRID, collective="scan")], SimulationContext(store))
        with pytest.raises(UsageError, match="models are scored from P = 2 on"):
            evaluate(GROS, [HOCKNEY], [CaseGrid("bcast", (1, 4), (64,))], SimulationContext(store))


def test_labels() -> None:
    assert Choice("chain", 8192).label == "chain, 8 KiB"
    assert Choice("linear").label == "linear"


def test_the_best_model_is_the_one_whose_selection_costs_least() -> None:
    def score(model: str, mean: float, worst: float, picks: int = 3) -> Score:
        return Score(
            platform="p",
            collective="bcast",
            model=model,
            picks=picks,
            best_picks=1,
            mean_slowdown=mean,
            worst_slowdown=worst,
            worst_at="",
        )

    result = Evaluation("p", (score("a", 0.1, 0.5), score("b", 0.1, 0.2), score("c", math.nan, math.nan, 0)), {})
    best = result.best("bcast")
    assert best is not None
    assert best.model == "b"
    assert result.best("gather") is None
