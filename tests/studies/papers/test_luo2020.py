"""What the paper on HAN says against a second typing of it, and whole collectives on a few nodes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.luo2020 import whole as paper
from collwise.validation.measurement.applications import NAMES
from collwise.validation.times.choice import Choice

# Typed a second time from section IV-A: figure, small or large messages, the libraries' factors.
STATED = """
10 small Open 4.72
10 large Open 7.35
10 large Cray 2.32
12 small Intel 1.15
12 small MVAPICH2 2.28
12 small Open 5.35
12 large Intel 1.39
12 large MVAPICH2 3.83
12 large Open 1.73
13 large Cray 1.12
"""
TINY = paper.Machine("stampede2", "4 nodes of 4", 16, 4)
SIZES = (4, 4096, 131072)


def test_speed_ups_that_the_text_states() -> None:
    typed = [
        f"{one.figure} {one.sizes} {one.over.split()[0]} {factor}"
        for one in paper.SPEED_UPS.itertuples()
        for factor in re.findall(r"up to ([\d.]+)x", one.words)
    ]
    assert sorted(typed) == sorted(STATED.strip().splitlines())
    for one in paper.SPEED_UPS.itertuples():
        machine, collective = paper.FIGURES[one.figure]
        assert (one.machine, one.collective) == (machine.name, collective)


def test_other_printed_numbers() -> None:
    printed = paper.PUBLISHED
    assert list(printed["search_cost_percent"].values()) == [100, 26.8, 23, 4.3]
    assert sorted(printed["communication_percent"].values()) == [46.41, 50.24, 69.29, 81.77]
    assert sorted(printed["asp_speed_up"].values()) == [1.08, 1.8, 2.43]
    assert sorted(printed["training_percent"].values()) == [9.05, 24.30]
    assert [one["segment_bytes"] for one in printed["best_of_4_mb"].values()] == [131072, 1048576]
    assert list(printed["table_1"]) == ["n", "p", "m", "t"]
    assert list(printed["table_2"]) == ["fs", "imod", "smod", "ibalg", "iralg", "ibs", "irs"]


def test_sizes_include_the_borders_of_the_paper() -> None:
    for sizes in (paper.SIZES, paper.QUICK_SIZES):
        assert {4, paper.SMALL_BYTES, paper.LARGEST_BYTES} <= set(sizes)
        assert list(sizes) == sorted(sizes)
        assert all(size.bit_count() == 1 for size in sizes)


def test_choices_by_node_and_flat_are_disjoint() -> None:
    for collective in ("bcast", "allreduce"):
        by_node, flat = (
            {one.algorithm for one in paper.choices_at(collective, kind, 1536, 8 * paper.MIB)} for kind in (True, False)
        )
        assert "hierarchical" in by_node
        assert "multi_leader_chain" in by_node
        assert "tasks_library" not in by_node
        assert not by_node & flat


def test_rings_compete_only_where_blocks_are_long_enough() -> None:
    def rings(size: int) -> bool:
        return "ring" in {one.algorithm for one in paper.choices_at("allreduce", False, 1536, size)}

    assert not rings(1536 * 256 - 1)
    assert rings(1536 * 256)


def test_segments_are_neither_too_many_nor_longer_than_the_message() -> None:
    def segments(size: int) -> set[int]:
        return {one.segment_bytes for one in paper.choices_at("bcast", False, 1536, size)}

    assert segments(8192) == {0}
    assert segments(131072) == {0, 8192, 65536}
    assert segments(paper.LARGEST_BYTES) == {0, 524288}


def test_open_mpi_4_0_decides_as_before_4_1() -> None:
    assert paper.default_choice("bcast", 1536, 2047) == Choice("binomial")
    assert paper.default_choice("bcast", 1536, 2048) == Choice("split_binary", 1024)
    assert paper.default_choice("allreduce", 1536, 9999) == Choice("recursive_doubling")
    assert paper.default_choice("allreduce", 4096, 10000) == Choice("non_overlapping")
    assert paper.default_choice("allreduce", 4096, 4 * 4097) == Choice("ring")
    assert paper.default_choice("allreduce", 16, 16 * paper.MIB) == Choice("ring")
    assert paper.default_choice("allreduce", 16, 16 * paper.MIB + 4) == Choice("segmented_ring", paper.MIB)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> SimulationContext:
    return SimulationContext(Store(tmp_path_factory.mktemp("luo") / "t.sqlite"), jobs=2)


@pytest.mark.parametrize("collective", ["bcast", "allreduce"])
def test_whole_collectives_by_both_engines(collective: str, context: SimulationContext) -> None:
    found = paper.simulate_whole(TINY, collective, SIZES, context, SIZES)
    assert list(found.seconds.index) == list(SIZES)
    assert (found.seconds > 0).all(axis=None)
    # Both engines time the same choices.
    assert list(found.smpi) == list(found.seconds)
    assert found.smpi.notna().all(axis=None)
    assert np.abs(np.log(found.smpi / found.seconds)).to_numpy().max() < 0.35
    # No source is faster than the best of all that compete, except by segments that do not.
    ours = found.seconds[[paper.HIERARCHICAL, paper.FLAT]].min(axis=1)
    assert (found.seconds[paper.DEFAULT] >= 0.9 * ours).all()
    # The oracle that knows HAN's picks is never slower, and no pick is far from it.
    ratios = found.speed_ups()
    assert ratios.loc[4, paper.FLAT] == pytest.approx(
        found.seconds.loc[4, paper.FLAT] / found.seconds.loc[4, paper.HAN]
    )
    assert ratios[paper.HIERARCHICAL].between(0.5, 1).all()
    assert list(ratios) == [paper.HIERARCHICAL, paper.FLAT, paper.DEFAULT, *paper.DECISIONS]
    picks = paper.han_picks(TINY, collective, SIZES, context)
    assert list(picks) == list(SIZES)
    assert all(choice.algorithm.startswith("tasks_") for choice in picks.values())


def test_the_parts_of_a_broadcast_take_no_longer_than_the_whole(context: SimulationContext) -> None:
    alone = paper.parts(TINY, SIZES, context)
    whole = paper.simulate_whole(TINY, "bcast", SIZES, context).seconds[paper.HIERARCHICAL]
    assert (alone.max(axis=1) <= 1.001 * whole).all()


def test_a_hierarchical_broadcast_does_not_depend_on_the_placement(context: SimulationContext) -> None:
    by_blocks = paper.simulate_whole(TINY, "bcast", SIZES, context).seconds[paper.HIERARCHICAL]
    found = paper.cyclic(TINY, SIZES, context)
    assert found[paper.HIERARCHICAL].to_numpy() == pytest.approx(by_blocks.to_numpy(), rel=0.02)


def made_up(figure: int, factor: float) -> paper.Whole:
    """Times in which HAN's pick takes 1 s, and everything else `factor` times as long."""
    machine, collective = paper.FIGURES[figure]
    sizes, others = [4, 131072, 1 << 20], [paper.HIERARCHICAL, paper.FLAT, paper.DEFAULT, *paper.DECISIONS]
    seconds = pd.DataFrame(factor, sizes, [paper.HAN, *others])
    seconds[paper.HAN] = [1.0, 0.5, 1.0]
    return paper.Whole(machine, collective, seconds, seconds.map(str), seconds)


def test_speed_ups_beside_the_paper() -> None:
    rows = paper.compared({figure: made_up(figure, 1.5) for figure in paper.FIGURES})
    rows = rows.set_index(["figure", "messages", "HAN over"])
    assert len(rows) == len(paper.SPEED_UPS)
    assert rows.simulated[10, "large", paper.OPENMPI] == "1.50 to 1.50"
    assert rows["the paper"][10, "large", paper.OPENMPI] == "up to 7.35x"
    assert rows.simulated[10, "small", paper.CRAY] == "1.50 to 3.00"
    assert rows["greatest at"][10, "small", paper.CRAY] == "128 KiB"
    # Nothing stands for libraries that only SMPI's selectors imitate.
    assert set(rows.simulated[:, :, paper.INTEL]) == set(rows.simulated[:, :, paper.MVAPICH2]) == {"not simulated"}


def test_the_catalogue_has_every_decision() -> None:
    for machine, collective in paper.FIGURES.values():
        for baseline in paper.DECISIONS.values():
            assert all(baseline.choice(collective, machine.procs, size) is not None for size in machine.sizes)


def test_ranges_of_speed_ups() -> None:
    found = paper.by_range(pd.Series({4: 1.0, 131072: 4.0, 1 << 20: 0.5}))
    assert found["small"] == pytest.approx({"least": 1.0, "mean": 2.0, "greatest": 4.0})
    assert found["large"] == pytest.approx({"least": 0.5, "mean": 0.5, "greatest": 0.5})
    assert paper.by_range(pd.Series({4: 1.0, 1 << 20: np.nan}))["large"] == {}


def test_the_applications_of_the_study_run_with_collectives_that_are_known() -> None:
    source = (Path(paper.__file__).parent / "luo2020.py").read_text(encoding="utf-8")
    [line] = [line for line in source.splitlines() if line.startswith("APPLICATIONS = ")]
    for choices in ast.literal_eval(line.partition(" = ")[2]).values():
        assert set(choices.split(",")) <= set(NAMES)


def test_the_best_measured_configurations_are_those_of_each_imod() -> None:
    for one in paper.MEASURED["measured"]:
        best, library = (paper.measured_configuration(one, which) for which in ("best", "library"))
        assert (best.n[0], best.p[0], best.t[0]) == (*paper.MEASURED_ON, one["collective"])
        assert library.imod[0] == "library"
        assert library.ibalg[0] == "-"
        assert one["best_seconds"] <= min(one["library_seconds"], one["pick_seconds"])
