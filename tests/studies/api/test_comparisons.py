"""`collwise.compare`: errors, choices of libraries and rules, and whom to trust, against right times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.studies.figures.maps import score_maps
from collwise.validation.select.select import select
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times


def _times(collective: str, factor: float, maker: str) -> Times:
    grid = Grid.of(collective, (4, 8), (8192, 65536), segments=(8192,))
    shape = (len(grid.choices), 2, 2)
    seconds = factor * np.arange(1.0, np.prod(shape) + 1).reshape(shape)
    return Times.of_seconds(grid, seconds, "gros", "simulated", maker, State.NOT_ASKED)


@pytest.fixture
def right() -> AllTimes:
    return AllTimes.of([_times("bcast", 1.0, "SMPI"), _times("gather", 1.0, "SMPI")])


def test_times_are_compared_by_collective_and_size(right: AllTimes) -> None:
    other = AllTimes.of([_times("gather", 1.25, "slow"), _times("bcast", 0.5, "slow")])
    scores = collwise.compare(right, other)
    table = scores.table()
    assert table.collective.tolist() == ["bcast", "gather"]
    assert table.mean_error.tolist() == pytest.approx([0.5, 0.25])
    assert table.bias.tolist() == pytest.approx([-0.5, 0.25])
    assert table.tau.tolist() == pytest.approx([1, 1])
    assert scores.trusted().source.tolist() == ["slow"] * 4
    assert [axis.get_title() for axis in score_maps(scores, "worst_error").axes[:1]] == ["slow"]
    with pytest.raises(UsageError, match="no figure of 'mean_eror'; valid: median_error, mean_error"):
        score_maps(scores, "mean_eror")


def test_decisions_libraries_and_files_decide(right: AllTimes, tmp_path: Path) -> None:
    decisions = collwise.Decisions((select(right["bcast"]),))
    decisions.save(tmp_path / "best.json")
    scores = collwise.compare(right["bcast"], decisions, "openmpi-4.1", tmp_path / "best.json")
    table = scores.table().set_index("source")
    assert table.mean_slowdown["rules"] == table.mean_slowdown["best.json"] == 0
    assert table.points["Open MPI 4.1"] <= 4
    assert table.cases.tolist() == [0, 0, 0]


def test_what_cannot_be_compared_is_refused(right: AllTimes) -> None:
    with pytest.raises(UsageError, match=r"no collective of the reference times \(bcast, gather\) is in all other"):
        collwise.compare(right, _times("reduce", 1.0, "other"))
    with pytest.raises(
        UsageError, match=r"'openmpi-9' is neither an untuned library nor a file; valid: openmpi-4.1, .*"
    ):
        collwise.compare(right, "openmpi-9")
    with pytest.raises(UsageError, match="float is neither times nor a decider"):
        collwise.compare(right, 1.0)  # type: ignore[arg-type]


def test_times_are_a_figure_a_table_and_arrays(right: AllTimes) -> None:
    figure = collwise.figure({"bcast": right["bcast"]})
    assert [axis.get_ylabel() for axis in figure.axes] == ["time", "time / best time"]
    assert "P = 8" in figure.get_suptitle()
    with pytest.raises(UsageError, match="a figure shows one collective, not bcast, gather"):
        collwise.figure(right)
    with pytest.raises(UsageError, match="no times of bcast with P = 7; valid: 4, 8"):
        collwise.figure(right["bcast"], procs=7)
    decisions = collwise.select(right)
    assert len(collwise.figure(decisions, "gros-gather").axes) == 2
    with pytest.raises(UsageError, match="unknown figure 'gather'; did you mean gros-gather"):
        collwise.figure(decisions, "gather")
    assert right.frame().shape[0] == sum(times.data.seconds.size for times in right.values())
    assert "<table" in right._repr_html_()
