"""The thesis's numbers as printed, and the study's logic on small inputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from collwise.common.errors import CollwiseError
from collwise.common.experiments import ROUNDTRIP, Effort, Experiment, Measurement
from collwise.models.hockney import Hockney
from collwise.models.lmo import Thresholds
from collwise.models.piecewise import Array
from collwise.platforms import load
from collwise.platforms.description import HeterogeneousPlatform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.oflynn2009 import analysis as thesis
from collwise.studies.papers.oflynn2009 import estimates as estimating
from collwise.studies.papers.oflynn2009 import tables
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import choice_of
from collwise.validation.times.thresholds import with_thresholds
from tests.needs import needs
from tests.runners import context_with

# Typed a second time, column by column, in another notation than the module's: alpha us, beta us a byte.
TABLE_7_1_BY_COLUMNS = """
1: 63.9 0.00967
2: 124 0.00941 | 122 0.00963
3: 61.2 0.00932 | 58.3 0.00932 | 39.4 0.0151
4: 121 0.0172 | 122 0.017 | 61.8 0.00914 | X X
5: 60.7 0.00948 | 60.8 0.00934 | 43.1 0.00918 | 61.2 0.0146 | X X
6: 61.4 0.00950 | 57.9 0.00941 | 46.3 0.00923 | 60.9 0.0143 | 59 0.0488 | X X
7: 61.3 0.00939 | 60.4 0.00934 | 38.1 0.00908 | 61.2 0.0142 | 48.8 0.00923 | 53.3 0.00923 | 36.1 0.00921
"""


def test_table_7_1_as_printed() -> None:
    typed = {}
    for line in TABLE_7_1_BY_COLUMNS.strip().splitlines():
        column, cells = line.split(":")
        for row, cell in enumerate(cells.split("|"), start=1):
            if "X" not in cell:
                alpha, beta = cell.split()
                typed[row, int(column)] = (float(alpha), float(beta))
    assert typed == tables.TABLE_7_1_MICROSECONDS


def test_the_platform_has_the_same_table_and_nodes() -> None:
    platform = load("hcl16")
    assert isinstance(platform, HeterogeneousPlatform)
    assert [int(kind.name) for kind in platform.types_of_hosts] == estimating.TYPES_OF_NODES
    for types, (alpha, beta) in tables.TABLE_7_1_MICROSECONDS.items():
        cell = platform.published["hockney"][f"{types[0]}-{types[1]}"]
        assert cell["alpha_seconds"] == pytest.approx(alpha * 1e-6)
        assert cell["beta_seconds_per_byte"] == pytest.approx(beta * 1e-6)


def test_other_numbers_as_printed() -> None:
    assert tables.TABLE_5_1_SECONDS == {"Hockney": 0.17, "PLogP": 63.11, "LMO": 0.33}
    assert (tables.PARALLEL_SECONDS, tables.SERIAL_SECONDS) == (5, 16)
    assert Thresholds(65536, 5120, 65536) == tables.THRESHOLDS
    assert sum(tables.NODES_BY_TYPE.values()) == 16


def test_published_mean_weighs_cells_by_their_pairs_of_nodes() -> None:
    nodes, total = tables.NODES_BY_TYPE, np.zeros(2)
    for (one, other), cell in tables.TABLE_7_1_MICROSECONDS.items():
        total += np.array(cell) * (comb(nodes[one], 2) if one == other else nodes[one] * nodes[other])
    found = estimating.homogeneous_hockneys(tables.HOMOGENEOUS_HOCKNEY, tables.HOMOGENEOUS_HOCKNEY)
    mean = found.loc["mean of table 7.1 over all pairs of nodes"]
    assert mean.alpha == pytest.approx(total[0] / 120 * 1e-6)
    assert mean.beta == pytest.approx(total[1] / 120 * 1e-6)


def test_table_7_1_takes_means_over_the_pairs_of_two_types() -> None:
    kinds = estimating.TYPES_OF_NODES
    alpha, beta = np.zeros((16, 16)), np.zeros((16, 16))
    for i in range(16):
        for j in range(16):
            if i != j:
                cell = tables.TABLE_7_1_MICROSECONDS[tuple(sorted((kinds[i], kinds[j])))]  # type: ignore[index]
                alpha[i, j], beta[i, j] = cell[0] * 1e-6, cell[1] * 1e-6
    exact, off = Hockney(alpha, beta), Hockney(alpha.copy(), 2 * beta)
    # Types 1 and 3 have two nodes each: one of four pairs is twice as slow.
    assert isinstance(off.alpha_seconds, np.ndarray)
    off.alpha_seconds[0, 8] = off.alpha_seconds[8, 0] = 2 * alpha[0, 8]
    cells = estimating.table_7_1(exact, off)
    assert list(cells.index) == [f"{one}-{other}" for one, other in tables.TABLE_7_1_MICROSECONDS]
    assert np.allclose(cells.regression, cells.published)
    assert np.allclose(cells.two_sizes.loc["1-3"] / cells.published.loc["1-3"] - 1, (0.25, 1.0))
    assert np.allclose(cells.two_sizes.loc["1-2"] / cells.published.loc["1-2"] - 1, (0.0, 1.0))
    homogeneous = estimating.homogeneous_hockneys(exact, off).loc["published homogeneous model"]
    assert tuple(homogeneous) == (63.9e-6, 0.00967e-6)
    assert estimating.cells_like(cells, homogeneous) == ["1-1"]


class _Lab:
    procs, least_bytes, eager_limit_bytes = 4, 1, 65536

    def __init__(self) -> None:
        self.effort, self.asked = Effort(), list[bool]()

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        self.asked.append(in_parallel)
        self.effort.measurements += len(experiments)
        return [Measurement(1.0) for _ in experiments]


def test_one_after_another() -> None:
    lab = _Lab()
    alone = estimating.OneAfterAnother(lab)
    alone.run([Experiment(ROUNDTRIP, (0, 1), 1, 1)])
    assert lab.asked == [False]
    assert alone.effort.measurements == 1


def test_errors_leave_out_what_is_not_predicted() -> None:
    found = estimating.errors({"m": np.array([1.1, np.nan, 0.7])}, np.array([1.0, 1.0, 1.0]))
    assert found.points["m"] == 2
    assert found["mean"]["m"] == pytest.approx(0.2)
    assert found.worst["m"] == pytest.approx(0.3)
    assert estimating.shown(found)["m"] == "20.0 / 30.0"


def test_a_failed_case_ends_the_study(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        context = context_with(store, lambda case: None if case.message_bytes == 2048 else 1.0, "no route")
        with pytest.raises(CollwiseError, match=r"1 cases failed; first: .*scatter.*2048.*: no route"):
            thesis.simulated_curves(load("hcl16"), {"": thesis.SERIES["scatter", "linear"]}, context)


def test_regions_of_the_binomial_tree() -> None:
    regions = thesis.binomial_regions(65536)
    assert np.all(sum(where.astype(int) for where in regions.values()) == 1)
    name_of = {size: name for name, where in regions.items() for size in np.array(thesis.SIZES)[where]}
    # The root's largest message has 8 blocks.
    assert [name_of[kib * 1024] for kib in (7, 8, 60, 64)] == ["all eager", "some eager", "some eager", "none eager"]


class _Model:
    """Linear takes `linear` of a second, binomial one."""

    platform = "none"

    def __init__(self, name: str, linear: float) -> None:
        self.name, self._linear = name, linear

    def algorithms(self, collective: str) -> tuple[str, ...]:
        return ("linear", "binomial")

    def predict(
        self, collective: str, algorithm: str, procs: ArrayLike, message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0, fanout: int = 0,
    ) -> Array:  # fmt: skip
        return np.full(np.shape(message_bytes), self._linear if algorithm == "linear" else 1.0)


def test_choices_and_errors() -> None:
    count = len(thesis.SIZES)
    everywhere, first = np.ones(count, dtype=bool), np.arange(count) < 3
    curves = {("scatter", "linear"): np.where(first, 0.5, 2.0), ("scatter", "binomial"): np.ones(count)}
    models = {"optimist": _Model("optimist", 0.5), "pessimist": _Model("pessimist", 2.0)}
    found = thesis.choices(models, curves, "linear", everywhere)
    assert found.to_dict("index") == {
        "simulation": {"linear": 3, "right": count},
        "optimist": {"linear": count, "right": 3},
        "pessimist": {"linear": 0, "right": count - 3},
    }
    assert thesis.errors_of(models, curves, ("scatter", "linear"), first)["mean"]["pessimist"] == pytest.approx(3.0)


@needs("smpi")
def test_on_the_exact_platform(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        recovered, errors = thesis.on_the_exact_platform(SimulationContext(store))
    assert set(recovered.parameter) == {"C", "t", "L", "1/beta"}
    assert recovered.worst_error.max() < 1e-4
    worst = errors.worst
    assert worst.slowest_last < 1e-3
    assert worst.slowest_last < worst.scatter < 0.05 < errors["mean"].hockney_scatter
    assert worst.binomial < 1e-6


@needs("smpi")
def test_lmo_is_exact_where_no_link_is_shared(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        found = thesis.without_shared_links(load("hcl16"), SimulationContext(store))
    assert found.worst.lmo < 1e-3
    assert found["mean"].hockney > 0.2


def test_cases_of_lmo_have_the_bounds_that_the_command_gives() -> None:
    """From M2 on a gather is regular, so its blocks are not cut."""
    from_the_thesis = thesis.lmo_cases(tables.THRESHOLDS)
    for collective, case in from_the_thesis.items():
        [choice] = with_thresholds(collective, [Choice("lmo")], tables.THRESHOLDS)
        assert choice_of(case) == choice
    assert from_the_thesis["gather"].limit_bytes == 64 * tables.KIB - 1
    assert choice_of(thesis.lmo_cases(Thresholds(64 * tables.KIB))["gather"]) == Choice("lmo")
    assert thesis.lmo_cases(Thresholds(None, 5 * tables.KIB))["gather"].limit_bytes == 0
