"""The report's sections on nodes of several processes, of made-up times and of tasks by the schedule engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

import collwise
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.studies.reports.shared_nodes import shared_node_document, shared_node_sections
from collwise.validation.compare.scores import AllScores
from collwise.validation.correctness.verification import VerificationResult
from collwise.validation.three_way.pipeline import Validation
from collwise.validation.three_way.plan import usual_plan
from collwise.validation.three_way.verdicts import SCHEDULED, SIMULATED
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.files import AllTimes
from tests.validation.three_way.made_up import made_up

RESULTS = [
    VerificationResult("openmpi", "4.1.4", "bcast", name, 40, 0, failures, first, (16,))
    for name, failures, first in (("tasks_chain", 0, None), ("hierarchical", 2, "P = 16: wrong"))
]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    tasks_chain, in_memory = Choice("tasks_chain"), Choice("tasks_chain", parameter=1)
    measured = {"chain": [2e-3] * 2, tasks_chain: [1e-3] * 2, in_memory: [1.5e-3] * 2}
    others = {
        SIMULATED: {"chain": [2.2e-3] * 2, tasks_chain: [1.1e-3] * 2},
        SCHEDULED: {"chain": [1e-3] * 2, tasks_chain: [1.2e-3] * 2},
    }
    how: dict[str, Any] = {"sizes": (1024, 8192), "procs": 16, "per_node": 4}
    components = {
        name: AllTimes.of([made_up({LIBRARY_DECIDES: [seconds] * 2}, {}, **how).right])
        for name, seconds in (("tuned", 3e-3), ("han", 0.5e-3))
    }
    with Store(tmp_path_factory.mktemp("tasks") / "store.sqlite") as store:
        tasks = collwise.time_tasks(
            "bcast", platform="stampede2", nodes=4, ppn=2, context=SimulationContext(store, SCHEDULE)
        )
    return Validation(
        plan=usual_plan(nodes=4, ranks_per_node=4, collectives=("bcast",), sizes=(1024, 8192)),
        scores={"bed": AllScores([made_up(measured, others, half_width=1e-5, **how)])},
        components=components,
        verified=RESULTS,
        tasks=tasks,
    )


@pytest.mark.parametrize(
    "said",
    [
        "| bcast | 2 | 80 | **2** |",
        "openmpi bcast hierarchical: P = 16: wrong",
        "| simulated | hierarchical | 2 | 10.0 % |",
        "| schedule | flat | 2 | 50.0 % |",
        # The engine takes the flat chain for the fastest, which took twice as long; SMPI chooses rightly.
        "| schedule | all | 2 | 2 | 0 | 100.0 % | 100.0 % |",
        "| simulated | all | 2 | 2 | 2 | 0.0 % | 0.0 % | - | 0 |",
        "| tuned | 2 | 1.50 | 1.50 | 1.50 | 0 |",
        "| han | 2 | 0.25 | 0.25 | 0.25 | 2 |",
        "| bcast | shared memory | 2 | 1.50 |",
        "| chain |",
    ],
)
def test_the_sections_say_what_was_found(result: Validation, said: str) -> None:
    sections = shared_node_sections(result)
    assert said in "\n".join(
        text for one in sections for text in (*one.paragraphs, *(table.markdown() for table in one.tables))
    )


def test_plain_data_have_the_same(result: Validation) -> None:
    document = json.loads(json.dumps(shared_node_document(result)))
    assert [one["slowdown"] for one in document["choices_of_kind"][SCHEDULED]] == pytest.approx([1.0, 1.0])
    assert document["components"][0]["pick algorithm"] == "chain"
    assert len(document["tasks"]) == 3


def test_one_process_on_each_node_adds_nothing(result: Validation) -> None:
    flat = Validation(**{**vars(result), "plan": usual_plan(quick=True)})
    assert shared_node_sections(flat) == []
