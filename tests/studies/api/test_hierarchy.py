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


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> SyntheticMachine:
    machine = SyntheticMachine()

    def measure(
        target: object, cases: Sequence[Case], store: Store, method: Method, on_progress: object
    ) -> list[Timing]:
        assert target is TARGET
        assert method == Method(warmup=2)
        timings = machine(cases)
        return [timings[case] for case in cases]

    monkeypatch.setattr(hierarchy, "measure", measure)
    return machine


def test_a_target_is_measured(timer: SyntheticMachine, tmp_path: Path) -> None:
    with collwise.session(store=tmp_path / "store.sqlite") as context:
        tuning = collwise.tune_hierarchy(
            "bcast", target=TARGET, method=Method(warmup=2), searches="exhaustive,tasks", context=context, **SPACE
        )
    assert {one.place for one in tuning.space.inputs} == {(4, 2)}
    assert {case.fanout for case in timer.log} == {0, 1}
    assert {case.processes_per_node for case in timer.log} == {2}
    assert tuning.scores[1].mean == pytest.approx(0.0, abs=1e-9)


def test_predictions_for_a_target_come_from_a_platform(timer: SyntheticMachine, tmp_path: Path) -> None:
    with collwise.session(store=tmp_path / "store.sqlite") as context:
        tuning = collwise.tune_hierarchy(
            *("bcast",),
            **{"platform": "stampede2", "target": TARGET, "method": Method(warmup=2), "budget": 0.5},
            **{**SPACE, "within": "point-to-point"},
            context=context,
        )
    [score] = tuning.scores
    assert score.search == "predict"
    assert 0 < score.benchmarks == len(timer.log) < len(list(tuning.space.points()))
    assert tuning.is_estimate


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "name a platform to simulate, or an execution target"),
        ({"target": TARGET}, "'predict' needs a platform"),
        ({"target": TARGET, "platform": "stampede2", "drawn": 1}, "an execution target is what it is"),
        ({"target": TARGET, "searches": "tasks", "ppn": 4}, "has 2 processes on each node"),
        ({"target": TARGET, "searches": ""}, "name a search"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(collwise.UsageError, match=message):
        collwise.tune_hierarchy("bcast", **({"searches": "tasks"} if not given else {}), **given)
