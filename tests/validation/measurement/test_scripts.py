"""The printed script, run for real from a folder that has nothing else, and the way of its results into the store."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.common.folders import SOURCES
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.timing import Case
from collwise.validation.measurement.imports import import_file
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.measurement.scripts import USUAL_NAME, carried_sources, write_script
from tests.needs import needs

METHOD = Method(precision=Precision(2, 2))
CASES = [Case("bcast", name, procs, 4096, 1024) for procs in (2, 3) for name in ("binomial", "chain")]


def test_what_is_carried() -> None:
    carried = dict(carried_sources())
    assert {"simulator/programs/benchmark.c", "simulator/programs/whereabouts.c", "algorithms/registry.c"} <= set(
        carried
    )
    assert '"binomial"' in carried["algorithms/registry.c"]
    mains = [name for name, text in carried.items() if "int main(" in text]
    assert sorted(mains) == ["simulator/programs/benchmark.c", "simulator/programs/whereabouts.c"]
    assert not [name for name in carried if "interpose" in name or "simulated" in name]


def results(folder: Path, per_node: int = 2, **changed: object) -> Path:
    """As a run on hosts a, a, b, b would have left them."""
    script = write_script(folder, CASES, METHOD).read_text()
    process = subprocess.run(
        ["bash", "-c", f"sed '1,/^COLLWISE_SOURCES$/d' {folder / USUAL_NAME} | base64 -d | tar -xzOf - header.json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert script.startswith("#!/usr/bin/env bash\n")
    lines = [process.stdout.strip()]
    lines += [
        json.dumps({"rank": rank, "host": "ab"[rank // per_node], "library": "Open MPI v9.8.7, somewhere"})
        for rank in range(4)
    ]
    record = {
        "median_seconds": 0.001, "least_seconds": 0.001, "greatest_seconds": 0.005, "half_width_seconds": 0.0,
        "repetitions": 2, "late_starts": 0, "clock_resolution_seconds": 1e-8, "precise": True,
    }  # fmt: skip
    lines += [json.dumps({"id": place, "seconds": 0.001 * (place + 1), **record, **changed}) for place in range(4)]
    file = folder / "results.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_results_come_into_the_store_once(tmp_path: Path) -> None:
    file = results(tmp_path)
    with Store(tmp_path / "store.sqlite") as store:
        first = import_file(file, store, MissingFacts()).timings
        second = import_file(file, store, MissingFacts()).timings
        rows = list(store.rows())
    assert [(row.case, row.seconds) for row in first] == [(row.case, row.seconds) for row in second]
    assert [row.seconds for row in first] == pytest.approx([0.001, 0.002, 0.003, 0.004])
    assert [(row.case.procs, row.case.algorithm, row.case.processes_per_node) for row in first] == [
        (2, "binomial", 2), (2, "chain", 2), (3, "binomial", 2), (3, "chain", 2)
    ]  # fmt: skip
    assert len(rows) == 4
    assert {row["maker"] for row in rows} == {"Open MPI 9.8.7"}
    assert {row["platform"] for row in rows} == {"a"}
    assert "a*2,b*2" in rows[0]["details"]


def test_new_results_replace_the_old_ones(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        import_file(results(tmp_path), store, MissingFacts())
        found = import_file(results(tmp_path, late_starts=3), store, MissingFacts()).timings
        assert {row.late_starts for row in found} == {3}
        assert [row["late_starts"] for row in store.rows()] == [3] * 4


def test_a_script_makes_one_launch(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 launches; a script makes one"):
        write_script(tmp_path, CASES, Method(launches=2))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (9, '{"id": 3, "seconds": 0.', ":9: expected a JSON object, not"),
        (9, '{"id": 9, "seconds": 0.1}', ":9: expected a record with an id from 0 to 3"),
        (9, '{"id": 3, "seconds": -1}', ':9: expected a record with "seconds" above 0'),
        (9, '{"id": 3, "seconds": 0.1}', ":9: expected a whole record of the benchmark program .wrong: 'half_width"),
        (9, "[]", ":9: expected a JSON object"),
        (1, '{"collwise_script": 1}', ":1: expected the first line of a script's results, with cases, method"),
    ],
)
def test_malformed_results_store_nothing(tmp_path: Path, line: int, text: str, message: str) -> None:
    file = results(tmp_path)
    lines = file.read_text().splitlines()
    lines[line - 1] = text
    file.write_text("\n".join(lines) + "\n")
    with Store(tmp_path / "store.sqlite") as store:
        with pytest.raises(UsageError, match=message):
            import_file(file, store, MissingFacts())
        assert not list(store.rows())


@pytest.mark.slow
@needs("openmpi")
def test_the_script_runs_where_nothing_of_the_house_is(tmp_path: Path) -> None:
    away = tmp_path / "with a blank"
    away.mkdir()
    script = write_script(away, CASES, METHOD, launcher="mpirun.openmpi --oversubscribe")
    assert str(SOURCES) not in script.read_text()
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment["COMPILER"] = "mpicc.openmpi"
    run = subprocess.run(["bash", USUAL_NAME, "out.jsonl"], cwd=away, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert sorted(entry.name for entry in away.iterdir()) == [USUAL_NAME, "out.jsonl"]
    with Store(tmp_path / "store.sqlite") as store:
        found = import_file(away / "out.jsonl", store, MissingFacts()).timings
    assert {row.case.algorithm for row in found} == {"binomial", "chain"}
    assert all(row.ok and 0 < row.seconds < 3600 and row.repetitions == 2 for row in found)
    again = subprocess.run(["bash", USUAL_NAME, "out.jsonl"], cwd=away, capture_output=True, text=True)
    assert again.returncode == 2
    assert "name another file" in again.stderr


def test_results_that_end_early_are_kept_as_far_as_they_go_and_the_others_counted(tmp_path: Path) -> None:
    file = results(tmp_path)
    lines = file.read_text().splitlines()
    for left_out in (0, 2):
        file.write_text("\n".join(lines[: len(lines) - left_out]) + "\n")
        with Store(tmp_path / f"{left_out}.sqlite") as store:
            found = import_file(file, store, MissingFacts())
        assert [row.case.procs for row in found.timings] == [2, 2, 3, 3][: 4 - left_out]
        assert found.asked == 4
