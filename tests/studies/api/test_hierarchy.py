"""Hierarchical tuning by the public interface: on an execution target, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import collwise
from collwise import hierarchy
from collwise.simulator.store import Store
from collwise.simulator.sweeps import mpi_runner
from collwise.simulator.sweeps.method import Method
from collwise.simulator.timing import Case, Timing
from tests.validation.hierarchy.synthetic import SyntheticMachine

TARGET: Any = SimpleNamespace(
    name="four nodes",
    usual_procs=8,
    processes_per_node=lambda procs: 2,
    installation=SimpleNamespace(label="some MPI"),
)
SPACE = {"sizes": "16KiB:1MiB:x4", "segments": "16KiB,64KiB", "within": "point-to-point,shared-memory"}


@pytest.fixture(autouse=True)
def targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy, "target_from", lambda target: target)


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> SyntheticMachine:
    machine = SyntheticMachine()

    def measure(target: object, cases: Sequence[Case], store: Store, method: Method, **_: object) -> list[Timing]:
        assert target is TARGET
        assert method == Method(warmup=2)
        timings = machine.time(cases)
        return [timings[case] for case in cases]

    monkeypatch.setattr(mpi_runner, "measure", measure)
    return machine


def test_a_target_is_measured(timer: SyntheticMachine, tmp_path: Path) -> None:
    with collwise.session(store=tmp_path / "store.sqlite") as context:
        found = collwise.search_tasks(
            "bcast", target=TARGET, method=Method(warmup=2), searches="exhaustive,tasks", context=context, **SPACE
        )
    tuning = found["bcast"]
    assert {one.place for one in tuning.space.inputs} == {(4, 2)}
    assert {case.parameter for case in timer.log} == {0, 1}
    assert {case.processes_per_node for case in timer.log} == {2}
    assert tuning.scores[1].mean == pytest.approx(0.0, abs=1e-9)


def test_predictions_for_a_target_come_from_a_platform(timer: SyntheticMachine, tmp_path: Path) -> None:
    with collwise.session(store=tmp_path / "store.sqlite") as context:
        found = collwise.search_tasks(
            *("bcast",),
            **{"platform": "stampede2", "target": TARGET, "method": Method(warmup=2), "budget": 0.5},
            **{**SPACE, "within": "point-to-point"},
            context=context,
        )
    tuning = found["bcast"]
    [score] = tuning.scores
    assert score.search == "predict"
    assert 0 < score.benchmarks == len(timer.log) < len(tuning.space.cases())
    assert tuning.is_estimate


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "name --platform to simulate, or a target"),
        ({"target": TARGET}, "'predict' needs a platform"),
        ({"target": TARGET, "platform": "stampede2", "drawn": 1}, "cannot be combined with an execution target"),
        ({"target": TARGET, "searches": "tasks", "ppn": 4}, "has 2 processes on each node"),
        ({"target": TARGET, "searches": ""}, "name a search"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(collwise.UsageError, match=message):
        collwise.search_tasks("bcast", **({"searches": "tasks"} if not given else {}), **given)
