"""Choices by the schedule engine: what is compared with SMPI's times, decided and shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.simulator.timing import Configuration, Timing
from collwise.studies.reports.engine_table import engine_columns, engine_rows, library_line
from collwise.validation.library_defaults.baselines import BASELINES
from collwise.validation.select.consumers import CONSUMERS, algorithms_for
from collwise.validation.select.tuning import EngineChoices, choices_by_engine, decided_grid
from collwise.validation.times.grid import CaseGrid

BOBA = load("boba")
GRID = CaseGrid("allreduce", (4, 8), (8192, 65536), segments=(8192, 65536))


@pytest.fixture
def choices(tmp_path: Path) -> EngineChoices:
    """SMPI has times at one size on 8 processes only: the engine's, a tenth longer, and the ring's half as long."""
    checked = replace(GRID, procs=(8,), message_bytes=(65536,), segments=(8192,))
    with Store(tmp_path / "timings.sqlite") as store:
        played = SimulationContext(store, engine=SCHEDULE).simulate(BOBA, checked.cases()).timings
        times = {
            case: Timing(case, timing.seconds * (0.5 if case.algorithm == "ring" else 1.1))
            for case, timing in played.items()
        }
        smpi = RunResult(times, 0, 0, Configuration("simulated", "boba", "SMPI"))
        decided = {"allreduce": decided_grid(GRID, 12)}
        return choices_by_engine(
            BOBA, [GRID], {"allreduce": smpi}, decided, SimulationContext(store), BASELINES["openmpi-4.1"]
        )["allreduce"]


def test_errors_and_slowdowns_are_of_the_points_that_smpi_has(choices: EngineChoices) -> None:
    assert choices.seconds.shape == (len(GRID.candidates), 2, 2)
    assert not np.isnan(choices.seconds).any()
    assert np.isnan(choices.smpi_seconds[:, 0]).all()
    count = choices.score.predictions
    assert count == len(GRID.names)
    assert choices.score.mean_error == pytest.approx(((count - 1) * (1 - 1 / 1.1) + 1) / count)
    assert choices.score.worst_error == pytest.approx(1.0)
    assert choices.score.worst_error_at == "P = 8, 64 KiB: ring"
    assert choices.score.picks == 1


def test_tables_hold_where_rounds_change(choices: EngineChoices) -> None:
    assert decided_grid(GRID, 12).procs == (2, 3, 4, 5, 6, 8, 9, 12)
    assert choices.decisions is not None
    assert set(choices.decisions.rules) <= {2, 3, 4, 5, 6, 8, 9, 10, 12, 13}
    labels = list(GRID.candidates.values())
    known = [k for k, label in enumerate(labels) if label.algorithm in algorithms_for("allreduce", *CONSUMERS)]
    for i, procs in enumerate(GRID.procs):
        for j, size in enumerate(GRID.message_bytes):
            chosen = choices.seconds[labels.index(choices.decisions.choose(procs, size)), i, j]
            assert chosen <= choices.seconds[known, i, j].min() * 1.01


def test_rows_show_smpi_where_it_has_times(choices: EngineChoices) -> None:
    rows = engine_rows(choices)
    assert [row[:2] for row in rows] == [("4", "8 KiB"), ("4", "64 KiB"), ("8", "8 KiB"), ("8", "64 KiB")]
    assert len(engine_columns(choices)) == len(rows[0])
    assert engine_columns(choices)[5] == "Open MPI 4.1 (%)"
    assert [row[5].partition(" (")[0] for row in rows] == ["rabenseifner"] * 4
    for row, pick in zip(rows, choices.shipped.values(), strict=True):
        label = list(GRID.candidates).index("rabenseifner")
        i, j = GRID.procs.index(int(row[0])), [8192, 65536].index(8192 if row[1] == "8 KiB" else 65536)
        assert pick.seconds == choices.seconds[label, i, j]
        assert pick.slowdown == pytest.approx(pick.seconds / choices.seconds[:, i, j].min() - 1)
    assert library_line(choices).startswith("Slowdown against the best: Open MPI 4.1 ")
    assert all(row[-2:] == ("-", "-") for row in rows[:3])
    best = rows[3][2].partition(",")[0]
    if best != "ring":
        assert rows[3][6].endswith("(+10)")
    names = [row[4].partition(" (")[0] for row in rows]
    assert all(name != row[2] for name, row in zip(names, rows, strict=True))
