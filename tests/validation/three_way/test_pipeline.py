from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case, Timing
from collwise.studies.reports.validation_report import document, write_validation
from collwise.validation.testbed.bed import down, names
from collwise.validation.three_way import pipeline
from collwise.validation.three_way.pipeline import ThreeWayComparison, Validation
from collwise.validation.three_way.plan import COLLECTIVES, usual_plan
from collwise.validation.three_way.verdicts import SIMULATED
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from tests.needs import need


@pytest.fixture
def bed_name() -> Iterator[str]:
    need("testbed", "openmpi", "smpi")
    name = f"three-way-{os.getpid()}"
    yield name
    down(name)


@pytest.mark.slow
def test_four_nodes_from_nothing_to_the_report(bed_name: str, tmp_path: Path) -> None:
    plan = usual_plan(nodes=4, collectives=("bcast", "gather"), sizes=(16384, 65536), quick=True, models=False)

    def run() -> Validation:
        with Store(tmp_path / "store.sqlite") as store:
            return ThreeWayComparison(plan, SimulationContext(store), tmp_path, name=bed_name).run()

    result = run()
    assert bed_name not in names()
    assert not result.failed
    found = document(result)
    assert len(found["rows"]) == len(plan.main.cases()) > 20
    assert all(row["seconds"] > 0 and row["predicted"][SIMULATED] > 0 for row in found["rows"])
    points = {tuple(row["point"].values()) for row in found["rows"]}
    assert {tuple(row["point"].values()) for row in found["builtin"]} == points
    page, text = write_validation(result, tmp_path)
    assert page.stat().st_size > 50_000
    assert "| bcast | median absolute error |" in text.read_text().replace("**", "")
    assert found["verdicts"]
    # Measured cases are not measured again.
    assert document(run())["rows"] == found["rows"]


def test_the_whole_plan_has_all_that_was_asked_for() -> None:
    plan = usual_plan()
    shapes = [one.shape for one in plan.scenarios if one.shape is not None]
    beds = [(one.nodes, one.bits_per_second) for one in shapes]
    assert beds == [(8, 5e7), (4, 5e7), (16, 5e7), (8, 2.5e7), (8, 5e7)]
    assert [one.transport for one in shapes] == ["steady"] * 4 + ["default"]
    assert set(plan.main.sizes) == set(COLLECTIVES)
    assert all(len(sizes) >= 8 for sizes in plan.main.sizes.values())
    assert {case.collective for case in plan.scenarios[2].cases()} == set(COLLECTIVES)
    assert len(usual_plan(quick=True).scenarios) == 1


def test_algorithms_stay_where_they_run() -> None:
    plan = usual_plan(nodes=6, collectives=("allgather",), sizes=(1024,), quick=True)
    assert "recursive_doubling" not in {case.algorithm for case in plan.main.cases()}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"collectives": ("barrier",)}, "no comparison of barrier; valid: bcast, gather"),
        ({"nodes": 1}, "1 nodes: at least 2 are needed"),
        ({"sizes": (0, 8)}, "the smallest size is 1 B"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        usual_plan(**options)  # type: ignore[arg-type]


class FakeModel:
    """Two seconds for a chain, nothing for a binary tree, less than nothing for a binomial one."""

    name, platform, plays = "fake", "bed", False

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return ("chain", "binary", "binomial") if collective == "bcast" else ()

    def predict(self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike, *_: object) -> Any:
        seconds = {"chain": 2.0, "binary": np.nan, "binomial": -1.0}[algorithm]
        return np.full(np.broadcast_shapes(np.shape(procs), np.shape(message_bytes)), seconds)


def test_models_predict_what_they_cover_and_only_positive_times() -> None:
    model: Any = FakeModel()
    [times] = pipeline._predicted([model], Grid.of("bcast", [4], [8], segments=(0,))).values()
    assert times.at_point(4, 8) == {Choice("chain"): 2.0}
    assert pipeline._predicted([model], Grid.of("gather", [4], [8])) == {}


class FakeBench:
    """In place of a real MPI: one broadcast fails, and three launches differ."""

    def __init__(self, *_: object) -> None:
        pass

    def time(self, cases: Sequence[Case]) -> dict[Case, Timing]:
        failed = {case: Timing(case, math.nan, error="died") for case in cases if case.algorithm == "linear"}
        good = {case: Timing(case, 9.0, half_width_seconds=0.5, repetitions=3, median_seconds=1.0) for case in cases}
        return good | failed


def test_a_measured_time_is_the_median_and_a_failed_case_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "Measured", FakeBench)
    target: Any = SimpleNamespace(name="bed", installation=SimpleNamespace(label="MPI 1"))
    grid = Grid.of("bcast", [4], [8], segments=(8192,), algorithms=("chain", "linear")).with_besides(
        lambda *_: LIBRARY_DECIDES
    )
    with Store(tmp_path / "store.sqlite") as store:
        comparison = ThreeWayComparison(usual_plan(quick=True), SimulationContext(store), tmp_path)
        [times] = comparison._times(target, [grid], lambda case: pipeline.METHOD, "bed")
    assert times.at_point(4, 8) == {Choice("chain", 8192): 1.0, LIBRARY_DECIDES: 1.0}
    assert times.half_width_of(LIBRARY_DECIDES, 4, 8) == 0.5
    assert [one.case.algorithm for one in comparison.result.failed] == ["linear"]
