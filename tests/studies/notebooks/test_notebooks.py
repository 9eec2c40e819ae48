"""The notebooks from a clean state: each answers its question."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from collwise.studies.cli.options import SimulationOptions
from collwise.studies.papers.notebook import run
from collwise.studies.papers.study import environment
from tests.needs import needs


def executed(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """The results and the page of a notebook, with an empty store."""
    settings = environment(SimulationOptions(folder / "timings.sqlite"), quick=False)
    results, files = run(name, settings, folder / "out", lambda title, done: None)
    assert all(path.stat().st_size for path in files)
    cells = json.loads((folder / "out" / f"{name}.ipynb").read_text())["cells"]
    assert not any(output["output_type"] == "error" for cell in cells for output in cell.get("outputs", ()))
    return results, (folder / "out" / f"{name}.md").read_text()


def test_getting_started_ends_with_rules(tmp_path: Path) -> None:
    results, page = executed("getting_started", tmp_path)
    should, cost = results["conclusions"]
    assert re.search(r"1 MiB a broadcast on Dahu should run \w+\.", should)
    [mean, worst] = map(int, re.findall(r"(\d+) %", cost))
    assert 0 < mean < worst
    assert page.count("# processes and more") >= 4
    assert page.count("![](getting_started-") == 3
    assert page.index("## Simulated times") < page.index("## Rules") < page.index("## Answer")


@pytest.mark.slow
def test_own_cluster_says_how_much_depends_on_its_figures(tmp_path: Path) -> None:
    results, page = executed("own_cluster", tmp_path)
    said = re.compile(r"(\w+), if in truth (\S+): the rules cost ([\d.]+) % on the mean, ([\d.]+) % at worst\.")
    kept = [match.groups() for match in map(said.fullmatch, results["conclusions"]) if match]
    assert {(change, name) for name, change, *_ in kept} == {
        (change, name) for change in ("bandwidth=x0.7", "latency=x2", "overheads=x2") for name in ("bcast", "allreduce")
    }
    assert all(0 <= float(mean) <= float(worst) for *_, mean, worst in kept)
    assert "collwise platforms calibrate" in page


@pytest.mark.slow
@needs("smpi")
def test_model_accuracy_names_whom_to_trust(tmp_path: Path) -> None:
    results, page = executed("model_accuracy", tmp_path)
    assert [line.partition(",")[0] for line in results["conclusions"]] == ["bcast", "reduce", "gather", "scatter"]
    assert all("by times of Open MPI 4.1.4: " in line for line in results["conclusions"])
    assert page.count("![](model_accuracy-") == 2
    assert "collwise check machines" in page
