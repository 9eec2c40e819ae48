"""Choices by the schedule engine: what is compared with SMPI's times, decided and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.reports.choices import PlatformChoices, compared_on, decided_grid
from collwise.studies.reports.engine_table import (
    agreement_line,
    checked_times,
    engine_columns,
    engine_rows,
    library_line,
)
from collwise.validation.compare.scores import compare
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.select.consumers import CONSUMERS, algorithms_for
from collwise.validation.times.defaults import DECISION_SIZES
from collwise.validation.times.grid import Grid
from tests.runners import context_with

BOBA, BASELINE = load("boba"), BASELINES["openmpi-4.1"]
LEAST, *_, MOST = DECISION_SIZES["allreduce"]


def by_smpi(engine: Callable[[Case], float]) -> Callable[[Case], float]:
    """A tenth longer than the engine's, the ring's half as long."""
    return lambda case: engine(case) * (0.5 if case.algorithm == "ring" else 1.1)


@pytest.fixture
def choices(tmp_path: Path) -> PlatformChoices:
    """SMPI checks allreduce, which the engine decides, at three sizes on 8 processes."""
    with Store(tmp_path / "timings.sqlite") as store:
        engine = SimulationContext(store, engine=SCHEDULE)

        def seconds(case: Case) -> float:
            return engine.simulate(BOBA, [case]).timings[case].seconds

        smpi = context_with(store, by_smpi(seconds))
        compared = compared_on(
            BOBA, ["bcast"], (4, 8), smpi, BASELINE, segments=(65536, 8192), sizes={"bcast": (8192,)}, model=None
        )
        return compared.with_engine(["allreduce"], 8, smpi)


def test_errors_and_slowdowns_are_of_the_points_that_smpi_has(choices: PlatformChoices) -> None:
    scores = choices.by_engine["allreduce"]
    played, checked = scores.right, checked_times(scores)
    assert played.array.shape == (len(played.choices), 2, len(DECISION_SIZES["allreduce"]))
    assert not np.isnan(played.array).any()
    assert np.isnan(checked.array[:, 0]).all()
    known = np.isfinite(checked.array)
    assert known.sum() == 3 * len(played.grid.names)
    against = compare(checked.by_algorithm(), played)
    (title,) = against.others
    errors = against.errors_of(title)
    assert errors is not None
    assert errors.count == known.sum()
    assert errors.mean == pytest.approx(((errors.count - 3) * (1 - 1 / 1.1) + 3) / errors.count)
    assert errors.worst == pytest.approx(1.0)
    assert against.worst_error_at(title)[0].algorithm == "ring"
    assert "picks, by SMPI's times at 3 points" in agreement_line(scores)
    assert "Schedule engine against SMPI" in agreement_line(choices.by_engine["bcast"])


def test_tables_hold_where_rounds_change(choices: PlatformChoices) -> None:
    grid = Grid.of("allreduce", (4, 8), (LEAST,), segments=(8192,))
    assert decided_grid(grid, 12).procs == (2, 3, 4, 5, 6, 8, 9, 12)
    table, times = choices.decided_by_engine["allreduce"], choices.by_engine["allreduce"].right
    assert table.times is not None
    assert set(table.rules) <= {count + by for count in table.times.procs for by in (0, 1)}
    names = algorithms_for("allreduce", *CONSUMERS)
    known = times.only(lambda one: one.algorithm in names)
    for procs, size in known.grid.points:
        best = min(known.at_point(procs, size)[one] for one in known.choices)
        assert times.seconds_of(table.choose(procs, size), procs, size) <= best * 1.01


def test_rows_show_smpi_where_it_has_times(choices: PlatformChoices) -> None:
    scores = choices.by_engine["allreduce"]
    rows = engine_rows(scores, BASELINE)
    assert [row[0] for row in rows] == ["4"] * 12 + ["8"] * 12 if len(rows) == 24 else len(rows) == 2 * 10
    assert len(engine_columns(scores)) == len(rows[0])
    assert engine_columns(scores)[5] == "Open MPI 4.1 (%)"
    assert library_line(scores).startswith("Slowdown against the best: Open MPI 4.1 ")
    assert all(row[-2:] == ("-", "-") for row in rows if row[0] == "4")
    with_time = [row for row in rows if row[-1] != "-"]
    assert len(with_time) == 3
    for row in with_time:
        assert row[6].endswith("(-50)" if row[2].partition(",")[0] == "ring" else "(+10)")
    assert all(row[4].partition(" (")[0] != row[2].partition(",")[0] for row in rows)


def test_decisions_of_both_kinds_of_times_and_gains(choices: PlatformChoices) -> None:
    sizes = {"bcast": (8192,), **{name: DECISION_SIZES[name] for name in ("allreduce",)}}
    decided = choices.decided(choices.times_to_decide(sizes), sizes)
    assert list(decided.decisions) == list(decided.rules) == ["bcast", "allreduce"]
    assert all(table.platform_procs == BOBA.max_procs(1) for table in decided.decisions.values())
    assert all(one.ratio > 0.9 for name in decided.rules for one in decided.gains(name) if np.isfinite(one.ratio))
    assert len(decided.gains("bcast")) == 2
    other = replace(decided, baseline=BASELINES["openmpi-3.1"])
    assert other.gains("allreduce") == []
