"""The report of made-up times: what it says, and that it can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collwise.simulator.timing import Case, Timing
from collwise.studies.reports.validation_report import document, write_validation
from collwise.validation.compare.scores import AllScores
from collwise.validation.testbed.check import BedCheck, Exchange
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TcpCounts
from collwise.validation.three_way.disagreements import NOT_FOUND, Diagnosis, Pair, disagreements
from collwise.validation.three_way.pipeline import Stage, Validation
from collwise.validation.three_way.plan import usual_plan
from collwise.validation.three_way.verdicts import SIMULATED, Repeatability
from tests.validation.three_way.made_up import made_up as scored

PLACES = ("testbed-8x100M", "testbed-4x100M")


def made_up() -> Validation:
    others = {SIMULATED: {"chain": [1.1e-3] * 2, "linear": [1.0e-3] * 2}, "hockney": {"chain": [3e-3] * 2}}
    measured = {"chain": [1e-3] * 2, "linear": [2e-3] * 2}
    how: dict[str, Any] = {"sizes": (1024, 8192), "half_width": 1e-5, "own": [0.9e-3] * 2}
    scores = {place: AllScores([scored(measured, others, place=place, **how)]) for place in PLACES}
    found = disagreements(scores[PLACES[0]].values())
    diagnosis = Diagnosis(found[0], "two cores", Pair(1e-3, 2e-3), {"two cores": Pair(1e-3, 1.1e-3)}, TcpCounts(7))
    failed = [Timing(Case("bcast", "binary", 8, 8), float("nan"), error="died")]
    return Validation(
        plan=usual_plan(collectives=("bcast",), sizes=(1024, 8192)),
        scores=scores,
        platforms={place: simulated_platform(Shape(8)) for place in PLACES},
        repeated=Repeatability(10, 8, 9, 7, 0.01, 0.2, 0.02),
        checked=BedCheck(1.2e7, 1.2e7, 9e7, 9.6e7, 0.4, 3e-5, (Exchange(1000, 0.04, 0.06),)),
        disagreements=found,
        diagnoses=[diagnosis],
        failed=failed,
        notes=["lmo: not fitted"],
        stages=[Stage("measured", 12.0)],
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    page, text = write_validation(made_up(), tmp_path_factory.mktemp("report"))
    assert len(list(page.parent.glob("*.svg"))) == 4
    return page.read_text(encoding="utf-8"), text.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "said",
    [
        # The better half of errors is 10 %, the other 50 %; simulation picks linear, twice as slow as the best.
        "| **all** | **median absolute error** | **30.0 %** | **15.0 %** | **no** | **+15.0 %** | **two cores (1)** |",
        "| **bcast** | **worst slowdown of picks** | **100.0 %** | **25.0 %** | **no** | **+75.0 %** |",
        "| bcast | MPI's own choice | 2 | -10.0 % |",
        "| bcast | linear | 1 KiB to 8 KiB | 1 KiB | -50.0 % | two cores | 100 % | two cores 10 % | 7, 0 |",
        "| means that differ by at most sqrt(h1^2 + h2^2) | 8 (80 %) |",
        "| test bed 4x100M | simulated | bcast | 30.0 % |",
        "| bcast | binary | 8 | 8 B | died |",
        "| alltoall of 1000 B at half the rate, and twice its time at the full rate | 60.0 ms | 80.0 ms | 75% |",
        "lmo: not fitted",
        "![Simulated over measured times.](validation-scatter.svg)",
    ],
)
def test_the_markdown_says_what_was_found(report: tuple[str, str], said: str) -> None:
    assert said in report[1]


def test_the_page_holds_its_figures_and_escapes_text(report: tuple[str, str]) -> None:
    page, _ = report
    assert page.count("data:image/svg+xml;base64,") == 4
    assert "token bucket&#39;s burst" in page
    assert "two cores (1)" in page
    assert NOT_FOUND in page


def test_the_document_is_json() -> None:
    found = json.loads(json.dumps(document(made_up())))
    assert [one["within_limit"] for one in found["verdicts"]] == [False] * 9
    assert not found["checked"]["ok"]
    assert found["causes"][0]["cause"] == "two cores"
    assert len(found["rows"]) == 8
