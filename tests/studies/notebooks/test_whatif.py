"""The what-if notebook from a clean state, and its sliders."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

import collwise
from collwise.platforms.changes import Change
from collwise.studies.cli.options import SimulationOptions
from collwise.studies.figures.explorer import Explorer
from collwise.studies.papers.notebook import known_studies, run
from collwise.studies.papers.study import environment

# Of the notebook's grids these tests have fewer points.
FEWER = {
    "explorer(PLATFORM, COLLECTIVE)": 'explorer(PLATFORM, COLLECTIVE, procs="4,60", sizes="1KiB,1MiB")',
    'procs="12:124:+16"': 'procs="12,60"',
    'sizes="1KiB:4MiB:x2"': 'sizes="1KiB:4MiB:x64"',
    "16,31,32,48,62,64,80,93,124": "31,32,62,124",
}


def test_the_notebook_answers_its_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = known_studies()["whatif"].read_text()
    for many, few in FEWER.items():
        assert text.count(many) == 1
        text = text.replace(many, few)
    (tmp_path / "whatif.py").write_text(text)
    monkeypatch.setattr("collwise.studies.papers.notebook.known_studies", lambda: {"whatif": tmp_path / "whatif.py"})
    settings = environment(SimulationOptions(tmp_path / "timings.sqlite"), quick=False)
    results, files = run("whatif", settings, tmp_path / "out", lambda title, done: None)
    assert {path.name for path in files} == {
        "whatif.md", "whatif.json", "whatif.ipynb", "whatif-1.png", "whatif-2.png", "whatif-3.png",
    }  # fmt: skip
    page = (tmp_path / "out/whatif.md").read_text()
    crossing = r"^\d+ +(\d+) +1048576 +([\d.]+) +ring +rabenseifner$"
    rows = {int(procs): float(factor) for procs, factor in re.findall(crossing, page, re.MULTILINE)}
    assert set(rows) == {31, 62, 124}  # not the powers of two
    assert page.count("  1048576  ") == 3
    assert rows[31] > rows[62] > rows[124]
    assert any("P = 62, m = 1 MiB: from bandwidth x0.17" in line for line in results["conclusions"])
    cells = json.loads((tmp_path / "out" / "whatif.ipynb").read_text())["cells"]
    shown = [output for cell in cells for output in cell.get("outputs", ())]
    assert any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in shown)
    assert not any(output["output_type"] == "error" for output in shown)


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer(collwise.live_map("gros", "allreduce", procs="4:40:+4", sizes="8:256KiB:x8"))


def test_a_slider_draws_the_map_again(explorer: Explorer) -> None:
    before = explorer.picture
    assert before.startswith(b"\x89PNG")
    assert explorer.text.startswith("no change: another choice is the best at 0 of 60 points")
    explorer.bandwidth.value = 0.125
    assert explorer.text.startswith("bandwidth x0.125: another choice is the best at ")
    assert explorer.picture != before
    explorer.bandwidth.value = 1.0
    assert explorer.picture == before


def test_sliders_together(explorer: Explorer) -> None:
    explorer.latency.value, explorer.overheads.value = 2.0, 1.5
    explorer.background.value, explorer.eager_limit.value = 0.3, "16KiB"
    assert explorer.changes() == [
        Change("latency", "x2"),
        Change("overheads", "1.5us"),
        Change("background", "0.3"),
        Change("eager_limit", "16KiB"),
    ]
    assert "eager limit 16KiB: another choice" in explorer.text
    explorer.latency.value, explorer.overheads.value, explorer.background.value = 1.0, 0.0, 0.0
    explorer.eager_limit.value = "as it is"


def test_only_the_last_of_many_moves_is_drawn(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(explorer, "update", lambda: drawn.append(explorer.bandwidth.value))

    async def move() -> None:
        for value in (2.0, 4.0, 8.0):
            explorer.bandwidth.value = value
        await explorer.drawn()

    asyncio.run(move())
    assert drawn == [8.0]
    explorer.bandwidth.value = 1.0
