"""Applications under several choices of collectives: the rows, the tables that are made, and what the store keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.platforms import load, load_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.application_runner import IN_COLLECTIVES, ApplicationRunner, CollectivesInUse
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.measurement.applications import (
    APPLICATIONS,
    ApplicationRow,
    _algorithms,
    application_of,
    arguments_of,
    compare_collectives,
)
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from tests.needs import needs

pytestmark = needs("smpi")

SEGMENTS = (65536,)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, SCHEDULE)


def compared(
    context: SimulationContext, *names: str, application: str = "asp", procs: int = 12, **settings: int
) -> list[ApplicationRow]:
    chosen = settings or {"size": 65536, "rows": 12, "iterations": 3}
    platform = load("stampede2")
    return compare_collectives(
        platform, APPLICATIONS[application], (procs,), procs // 3, names, context, settings=chosen, segments=SEGMENTS
    )


def test_rows_have_times_shares_and_speedups(context: SimulationContext) -> None:
    ompi, mpich, openmpi, flat, hierarchical = rows = compared(
        context, "ompi", "mpich", "openmpi-3.1", "flat", "hierarchical"
    )
    assert [row.collectives for row in rows] == ["ompi", "mpich", "openmpi-3.1", "flat", "hierarchical"]
    computing = 3 * 65536 / 1e9
    for row in rows:
        assert 0 < row.mean_seconds <= row.max_seconds < row.seconds
        assert row.seconds - row.mean_seconds == pytest.approx(computing, rel=0.2)
        assert row.speedup == pytest.approx(ompi.seconds / row.seconds)
        assert row.mean_share <= row.max_share < 1
    assert ompi.algorithms == mpich.algorithms == ""
    assert openmpi.algorithms == "bcast: split_binary, 1 KiB"
    assert flat.algorithms.startswith("bcast: ")
    # What treats nodes differently may be chosen, too, so that the best of these is no slower.
    assert hierarchical.mean_seconds <= 1.02 * flat.mean_seconds


def test_a_second_comparison_starts_nothing(context: SimulationContext, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compared(context, "ompi", "mpich")

    def refuse(*_: object) -> None:
        raise AssertionError("executed again")

    with monkeypatch.context() as patch:
        patch.setattr(ApplicationRunner, "_run", refuse)
        assert compared(context, "ompi", "mpich") == first
        with pytest.raises(AssertionError, match="executed again"):
            compared(context, "ompi", size=65536, rows=12, iterations=4)
    rows = list(context.store.rows(collective="asp", experiment=IN_COLLECTIVES))
    assert [row["algorithm"] for row in rows] == ["ompi", "mpich"]
    assert [row["greatest_seconds"] for row in rows] == [one.max_seconds for one in first]


def test_files_of_rules_and_decisions_are_choices(context: SimulationContext, tmp_path: Path) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text("bcast 2 1 0 linear\n")
    decisions = tmp_path / "mine.json"
    choice = {"from_bytes": 0, "algorithm": "linear", "segment_bytes": 0, "parameter": 0, "limit_bytes": 0}
    document = {"collective": "bcast", "platform": "stampede2", "processes_per_node": 1, "made_by": "hand"}
    decisions.write_text(json.dumps([{**document, "format": "collwise decisions 3", "rules": {"2": [choice]}}]))
    ompi, by_rules, by_decisions = compared(context, "ompi", str(rules), str(decisions))
    assert by_rules.seconds == by_decisions.seconds != ompi.seconds
    assert by_decisions.algorithms == "bcast: linear"

    rules.write_text("bcast 2 1 0 lineer\n")
    with pytest.raises(UsageError, match=r"mine.rules:1: .*lineer.* did you mean linear"):
        compared(context, str(rules))


@pytest.mark.parametrize("name", ["ompi", "flat"])
def test_reductions_take_the_platforms_time_by_selectors_and_by_our_algorithms(
    context: SimulationContext, name: str
) -> None:
    platform = load_description("stampede2")
    free = replace(platform, calibration=replace(platform.calibration, reduce_seconds_per_byte=0.0))
    settings = {"steps": 1, "batch": 1, "fusion-bytes": 0}
    seconds = [
        compare_collectives(
            one, APPLICATIONS["training"], (2,), 1, (name,), context, settings=settings, segments=SEGMENTS
        )[0].mean_seconds
        for one in (platform, free)
    ]
    # Two processes combine each gradient's bytes once, or each a half of them.
    whole = 4 * 61_842_345 * platform.calibration.reduce_seconds_per_byte
    assert 0.45 * whole <= seconds[0] - seconds[1] <= 1.05 * whole


@pytest.mark.parametrize(
    ("application", "settings"),
    [("matmul", {"size": 64, "fastest": 3}), ("training", {"steps": 1, "batch": 1})],
)
def test_the_other_applications_run(context: SimulationContext, application: str, settings: dict[str, int]) -> None:
    ompi, hierarchical = compared(context, "ompi", "hierarchical", application=application, procs=6, **settings)
    assert 0 < hierarchical.mean_seconds < hierarchical.seconds
    called = {"matmul": {"scatterv", "bcast", "gatherv"}, "training": {"allreduce"}}[application]
    assert {part.partition(":")[0] for part in hierarchical.algorithms.split("; ")} == called
    assert ompi.seconds != hierarchical.seconds


def test_wrong_names_are_refused_with_the_valid_ones(context: SimulationContext) -> None:
    with pytest.raises(UsageError, match="unknown choice of collectives 'ompj'; did you mean ompi"):
        compared(context, "ompj")
    with pytest.raises(UsageError, match="unknown application 'aspp'; did you mean asp"):
        application_of("aspp")
    with pytest.raises(UsageError, match="unknown setting of asp 'sizes'; did you mean size"):
        arguments_of(APPLICATIONS["asp"], {"sizes": 4}, None)
    with pytest.raises(UsageError, match=r"openmpi-3.1: no decision of Open MPI 3.1 for allreduce"):
        compared(context, "openmpi-3.1", application="training", steps=1)
    with pytest.raises(UsageError, match="cannot hold"):
        compare_collectives(
            load("stampede2"), APPLICATIONS["asp"], (10**6,), 1, ("ompi",), context, settings={}, segments=SEGMENTS
        )


def test_an_execution_that_fails_says_why(context: SimulationContext) -> None:
    runner = ApplicationRunner(load("gros"), "asp", ["--size", "0"], CollectivesInUse("ompi"))
    with pytest.raises(CollwiseError, match=r"SimGrid .*usage: asp"):
        runner.calls(2, 1)
    [row] = compared(context, "ompi", size=0)
    assert "usage: asp" in row.error
    assert math.isnan(row.seconds)
    assert math.isnan(row.speedup)


def test_each_of_two_tables_of_a_collective_is_named() -> None:
    """A search by tasks writes one for each number of processes per node."""
    tables = [
        DecisionTable("allreduce", "made up", per_node, "simulated", "hand", {2: ((0, Choice(name)),)})
        for per_node, name in ((1, "ring"), (2, "rabenseifner"))
    ]
    assert _algorithms(tables, 4) == "allreduce: ring; allreduce: rabenseifner"
