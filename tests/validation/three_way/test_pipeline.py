from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Timing
from collwise.studies.reports.validation_report import document, write_validation
from collwise.validation.testbed.bed import down, names
from collwise.validation.three_way.pipeline import ThreeWayComparison, Validation
from collwise.validation.three_way.plan import COLLECTIVES, usual_plan
from collwise.validation.three_way.table import POINT, SIMULATED, ours, own, records, sources, table_of
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
            return ThreeWayComparison(plan, store, tmp_path, name=bed_name).run()

    result = run()
    assert bed_name not in names()
    assert not result.failed
    measured = ours(result.table)
    assert len(measured) == len(plan.main.cases()) > 20
    assert (measured[["seconds", SIMULATED]] > 0).all(axis=None)
    assert set(own(result.table)[POINT].itertuples(index=False)) == set(measured[POINT].itertuples(index=False))
    page, text = write_validation(result, tmp_path)
    assert page.stat().st_size > 50_000
    assert "| bcast | median absolute error |" in text.read_text().replace("**", "")
    assert document(result)["verdicts"]
    # Measured cases are not measured again.
    assert list(run().table.seconds) == list(result.table.seconds)


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
        ({"nodes": 1}, "1 nodes; valid: 2 and more"),
        ({"sizes": (0, 8)}, "the least size is 1 B"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        usual_plan(**options)  # type: ignore[arg-type]


class FakeModel:
    """Two seconds for a chain, nothing for others."""

    name, platform = "fake", "bed"

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return ("chain",)

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        fanout: int = 0,
    ) -> np.ndarray:
        return np.full(np.shape(procs), 2.0)


def test_failed_cases_say_nothing() -> None:
    good, bad = Case("bcast", "chain", 4, 8), Case("bcast", "linear", 4, 8)
    measured = [Timing(good, 1.0), Timing(bad, float("nan"), error="died")]
    simulated = {good: Timing(good, float("nan"), error="died"), bad: Timing(bad, 1.0)}
    builtin = [Timing(Case("bcast", "-", 4, 8, experiment="builtin"), 3.0)]
    table = table_of("bed", measured, {SIMULATED: simulated}, [FakeModel()], builtin)
    [row] = records(ours(table))
    assert (row["algorithm"], row["predicted"]) == ("chain", {"fake": 2.0})
    assert row["point"] == {"target": "bed", "collective": "bcast", "procs": 4, "message_bytes": 8}
    [mine] = records(own(table))
    assert (mine["seconds"], mine["predicted"]) == (3.0, {})
    assert sources(table) == ["fake"]
