"""The points asked for: those whose buffers a node cannot hold are left out, and lines say so and what is assumed."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, warn
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import Hockney
from collwise.platforms import Platform, load
from collwise.simulator.limits import buffers_of_node
from collwise.studies.cli.verbs import simulate
from collwise.validation.times.grid import Grid, candidates
from collwise.validation.times.memory_limits import (
    cases_within_memory,
    remark_on_sizes,
    warn_of_doubtful,
    within_memory,
)
from collwise.validation.times.sources import predicted, without_prediction

MIB = 2**20
MODEL = PointToPointModel("hockney", "exact", Hockney(1e-5, 1e-9), 1e-10)


def platform(memory: int | None) -> Platform:
    described = load("exact")
    assert isinstance(described, Platform)
    return replace(described, memory_bytes_per_node=memory)


@pytest.mark.parametrize(
    ("collective", "procs", "per_node", "messages"),
    [
        ("alltoall", 8, 4, 4 * 16),
        ("alltoall", 2, 4, 2 * 4),
        ("allgather", 8, 4, 4 * 9),
        ("reduce_scatter_block", 8, 1, 9),
        ("allreduce", 64, 32, 64),
        ("bcast", 64, 32, 32),
        ("gather", 64, 4, 68),
        ("barrier", 64, 4, 0),
    ],
)
def test_buffers_of_the_fullest_node(collective: str, procs: int, per_node: int, messages: int) -> None:
    assert buffers_of_node(collective, procs, per_node) == messages


def test_no_collective_needs_less_on_a_node_than_its_share() -> None:
    for collective in Catalogue.load().collectives:
        if collective != "barrier":
            assert buffers_of_node(collective, 12, 12) >= 12


def test_points_that_do_not_fit_have_no_cases_and_no_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    asked = Grid.of("alltoall", (2, 8), (1024, MIB), segments=(0,))
    (grid,) = within_memory(platform(8 * MIB), [asked])
    assert capsys.readouterr().err == (
        "collwise: left out, as the buffers of a node's 1 process take more than the 8 MiB that 'exact' has: "
        "alltoall at 1 of 4 points (P = 8: from 1 MiB)\n"
    )
    assert {(case.procs, case.message_bytes) for case in asked.cases()} == set(asked.points)
    assert {(case.procs, case.message_bytes) for case in grid.cases()} == {(2, 1024), (2, MIB), (8, 1024)}
    seconds = predicted(MODEL, grid).array
    assert np.isnan(seconds[:, 1, 1]).all()
    assert not np.isnan(seconds).all(axis=0)[[0, 0, 1], [0, 1, 0]].any()
    assert without_prediction(predicted(MODEL, grid.of_algorithms(("linear", "pairwise")))) == ""


def test_cases_that_do_not_fit_are_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*Grid.of("alltoall", (2, 8), (1024, MIB)).cases(), *Grid.of("bcast", (8,), (MIB,)).cases()]
    kept = cases_within_memory(platform(16 * MIB), asked, 2)
    assert "a node's 2 processes take more than the 16 MiB" in capsys.readouterr().err
    assert [case for case in asked if case not in kept] == [
        case for case in asked if (case.collective, case.procs, case.message_bytes) == ("alltoall", 8, MIB)
    ]
    assert cases_within_memory(platform(None), asked, 2) == asked


def test_nothing_is_left_out_where_everything_fits(capsys: pytest.CaptureFixture[str]) -> None:
    asked = Grid.of("alltoall", (2, 8), (1024, MIB))
    (grid,) = within_memory(platform(16 * MIB), [asked])
    assert grid.cases() == asked.cases()
    assert capsys.readouterr().err == ""
    assert asked.max_bytes(8) == math.inf


def test_a_grid_of_which_nothing_is_left_is_an_error() -> None:
    with pytest.raises(UsageError, match="no point of alltoall fits in memory: the buffers of a node"):
        within_memory(platform(MIB), [Grid.of("alltoall", (8,), (MIB,))])


def test_long_messages_on_nodes_of_unknown_memory_are_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    warn.cache_clear()
    asked = [Grid.of("alltoall", (8, 2048), (1024, 16 * MIB)), Grid.of("bcast", (2048,), (MIB,))]
    assert within_memory(platform(None), asked) == asked
    warn_of_doubtful(platform(None), asked)
    assert "one process take up to 64 GiB (alltoall of 16 MiB with P = 2048)" in capsys.readouterr().err
    warn_of_doubtful(platform(None), [Grid.of("alltoall", (8,), (16 * MIB,))])
    warn_of_doubtful(platform(2**40), asked)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("exact", [False, True])
def test_what_does_not_fit_is_not_decided(exact: bool) -> None:
    small = platform(8 * MIB)
    (grid,) = within_memory(small, [Grid.of("alltoall", (8,), (1024, MIB))])
    with collwise.session(":memory:", engine="schedule") as context:
        simulated = collwise.simulate(small, "alltoall", 8, (1024, MIB), context=context)
    for times in (predicted(MODEL, grid), *([] if exact else simulated.values())):
        (table,) = collwise.select(times, exact=exact).tables
        assert table.times is not None
        assert table.times.at_point(8, 1024)
        assert not table.times.at_point(8, MIB)


def test_what_is_assumed_of_sizes_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    odd, even = Grid.of("allreduce", (4,), (7, 8, 4097), segments=(0, 2**33)), Grid.of("bcast", (4,), (7,))
    remark_on_sizes([odd, even])
    assert capsys.readouterr().err == (
        "collwise: allreduce of 7 B, 4097 B: combined byte by byte, since these sizes are not whole numbers of "
        "doubles; other sizes are combined as doubles\n"
        "collwise: segments of 8 GiB cut nothing: no message is longer than 4097 B\n"
    )
    remark_on_sizes([replace(odd, message_bytes=(8, 4096), choices=candidates("allreduce", (1024,))), even])
    assert capsys.readouterr().err == ""


def test_simulated_sizes_and_numbers_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with collwise.session(":memory:", engine="schedule") as context:
        times = collwise.simulate(
            "exact", "bcast", 4, (7, 64), algorithms="knomial,k_chain,linear", segments="1KiB",
            counts={"radix": (2, 8), "chains": None}, context=context,
        ).frame()  # fmt: skip
    assert "segments of 1 KiB cut nothing: no message is longer than 64 B" in capsys.readouterr().err
    assert set(zip(times.algorithm, times.parameters, strict=True)) == {
        ("knomial", "segment_bytes=1024 radix=2"),
        ("knomial", "segment_bytes=1024 radix=8"),
        ("k_chain", "segment_bytes=1024 chains=4"),
        ("linear", ""),
    }


def test_the_table_of_simulated_times_has_a_column_for_each_radix() -> None:
    words = "--platform exact --collective bcast --procs 4 --sizes 8KiB --engine schedule --store :memory: "
    asked = CliRunner().invoke(
        simulate, [*words.split(), "--algorithms", "knomial,k_chain", "--parameter", "radix=2,8"]
    )
    assert asked.exit_code == 0, asked.output
    assert re.search("knomial, radix 2 .* knomial, radix 8 .* k_chain", asked.output)
    assert "By default k_chain, chains 4." in asked.output
    with pytest.raises(UsageError, match="--parameter: radix=1 is too small"):
        CliRunner().invoke(
            simulate, [*words.split(), "--parameter", "radix=1,2"], standalone_mode=False, catch_exceptions=False
        )
