"""The thesis's numbers as printed, and the study's logic on small inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

import collwise
from collwise.common.errors import CollwiseError
from collwise.common.experiments import ROUNDTRIP, Effort, Experiment, Measurement
from collwise.models.piecewise import Array
from collwise.models.single_messages import Hockney, Thresholds
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.oflynn2009 import analysis as thesis
from collwise.studies.papers.oflynn2009.figures import escalations
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid, with_thresholds
from collwise.validation.times.times import State, Times
from tests.needs import needs
from tests.runners import context_with

ROOT = Path(__file__).parents[3]
KIB = 1024
HCL16 = thesis.cluster()
NODES_BY_TYPE = {"1": 2, "2": 6, "3": 2, "4": 1, "5": 1, "6": 1, "7": 3}
"""Appendix A.2: the number of nodes of each type."""

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
                typed[f"{row}-{column}"] = (float(alpha), float(beta))
    found = {
        types: (cell["alpha_seconds"] * 1e6, cell["beta_seconds_per_byte"] * 1e6)
        for types, cell in HCL16.published["hockney"].items()
    }
    assert list(found) == sorted(typed)
    for types, cell in found.items():
        assert cell == pytest.approx(typed[types])


def test_the_platform_has_the_nodes_of_the_thesis() -> None:
    assert Counter(thesis.types_of_nodes(HCL16)) == NODES_BY_TYPE


def test_other_numbers_as_printed() -> None:
    printed = thesis.PUBLISHED
    assert printed["table_3_1"]["global"] == {"scatter": 28.7, "gather": 44.7}
    assert printed["table_3_1"]["maximum"] == {"scatter": 0.8, "gather": 15.6}
    assert printed["table_3_1"]["root"] == {"scatter": 0.8, "gather": 15.7}
    assert printed["table_5_1_seconds"] == {"Hockney": 0.17, "PLogP": 63.11, "LMO": 0.33}
    assert list(printed["table_5_1_formulas"]) == ["Hockney", "LogGP", "PLogP", "LMO"]
    assert (printed["parallel_seconds"], printed["serial_seconds"]) == (5, 16)
    assert (printed["hockney_sizes"], printed["figure_5_5_bytes"]) == (10, [102400, 204800])
    assert Thresholds(65536, 5120, 65536) == thesis.THRESHOLDS


def test_published_mean_weighs_cells_by_their_pairs_of_nodes() -> None:
    nodes, total = NODES_BY_TYPE, np.zeros(2)
    for types, cell in HCL16.published["hockney"].items():
        one, other = types.split("-")
        pairs = comb(nodes[one], 2) if one == other else nodes[one] * nodes[other]
        total += np.array([cell["alpha_seconds"], cell["beta_seconds_per_byte"]]) * pairs
    homogeneous = thesis.HOMOGENEOUS_HOCKNEY
    found = thesis.homogeneous_hockneys(HCL16, homogeneous, homogeneous)
    mean = found.loc["mean of table 7.1 over all pairs of nodes"]
    assert tuple(mean) == pytest.approx(tuple(total / 120))


def test_table_7_1_takes_means_over_the_pairs_of_two_types() -> None:
    kinds, table = thesis.types_of_nodes(HCL16), HCL16.published["hockney"]
    alpha, beta = np.zeros((16, 16)), np.zeros((16, 16))
    for i in range(16):
        for j in range(16):
            if i != j:
                cell = table["-".join(sorted((kinds[i], kinds[j])))]
                alpha[i, j], beta[i, j] = cell["alpha_seconds"], cell["beta_seconds_per_byte"]
    exact, off = Hockney(alpha, beta), Hockney(alpha.copy(), 2 * beta)
    # Types 1 and 3 have two nodes each: one of four pairs is twice as slow.
    assert isinstance(off.alpha_seconds, np.ndarray)
    off.alpha_seconds[0, 8] = off.alpha_seconds[8, 0] = 2 * alpha[0, 8]
    cells = thesis.table_7_1(HCL16, exact, off)
    assert list(cells.index) == list(table)
    assert np.allclose(cells.regression, cells.published)
    assert np.allclose(cells.two_sizes.loc["1-3"] / cells.published.loc["1-3"] - 1, (0.25, 1.0))
    assert np.allclose(cells.two_sizes.loc["1-2"] / cells.published.loc["1-2"] - 1, (0.0, 1.0))
    homogeneous = thesis.homogeneous_hockneys(HCL16, exact, off).loc["published homogeneous model"]
    assert tuple(homogeneous) == (63.9e-6, 0.00967e-6)
    assert thesis.cells_like(cells, homogeneous) == ["1-1"]


class _Lab:
    procs, min_bytes, eager_limit_bytes = 4, 1, 65536

    def __init__(self) -> None:
        self.effort, self.asked = Effort(), list[bool]()

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        self.asked.append(in_parallel)
        self.effort.measurements += len(experiments)
        return [Measurement(1.0) for _ in experiments]


def test_one_after_another() -> None:
    lab = _Lab()
    alone = thesis.OneAfterAnother(lab)
    alone.run([Experiment(ROUNDTRIP, (0, 1), 1, 1)])
    assert lab.asked == [False]
    assert alone.effort.measurements == 1


def test_errors_leave_out_what_is_not_predicted() -> None:
    found = thesis.errors({"m": np.array([0.1, np.nan, -0.3])})
    assert found.points["m"] == 2
    assert found["mean"]["m"] == pytest.approx(0.2)
    assert found.worst["m"] == pytest.approx(0.3)
    assert thesis.shown(found)["m"] == "20.0 / 30.0"


def test_a_failed_case_ends_the_study(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        context = context_with(store, lambda case: None if case.message_bytes == 2048 else 1.0, "no route")
        with pytest.raises(CollwiseError, match=r"1 case failed; first: .*scatter.*2048.*: no route"):
            thesis.simulated(HCL16, [thesis.grid_of("scatter", thesis.LINEAR)], context)


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
        segment_bytes: ArrayLike = 0, parameter: int = 0,
    ) -> Array:  # fmt: skip
        return np.full(np.shape(message_bytes), self._linear if algorithm == "linear" else 1.0)


def test_choices_and_errors() -> None:
    count = len(thesis.SIZES)
    everywhere, first = np.ones(count, dtype=bool), np.arange(count) < 3
    grid = thesis.grid_of("scatter", thesis.LINEAR, thesis.BINOMIAL)
    seconds = np.array([[np.where(first, 0.5, 2.0)], [np.ones(count)]])
    right = Times.of_seconds(grid, seconds, "none", "simulated", "none", State.NOT_ASKED)
    scores = thesis.scores_of(right, {"optimist": _Model("optimist", 0.5), "pessimist": _Model("pessimist", 2.0)})
    found = thesis.choices(scores, thesis.LINEAR, everywhere)
    assert found.to_dict("index") == {
        "simulation": {"linear": 3, "right": count},
        "optimist": {"linear": count, "right": 3},
        "pessimist": {"linear": 0, "right": count - 3},
    }
    assert thesis.errors_of(scores, thesis.LINEAR, first)["mean"]["pessimist"] == pytest.approx(3.0)


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
        found = thesis.without_shared_links(HCL16, SimulationContext(store))
    assert found.worst.lmo < 1e-3
    assert found["mean"].hockney > 0.2


def test_cases_of_lmo_have_the_bounds_that_the_command_gives() -> None:
    """From M2 on a gather is regular, so its blocks are not cut."""
    for grid in thesis.lmo_grids(thesis.THRESHOLDS):
        assert grid.choices == with_thresholds(grid.collective, [Choice("lmo")], thesis.THRESHOLDS)
    gather, _ = thesis.lmo_grids(thesis.THRESHOLDS)
    assert gather.choices[0].limit_bytes == 64 * KIB - 1
    gather, _ = thesis.lmo_grids(Thresholds(64 * KIB))
    assert gather.choices == (Choice("lmo"),)
    gather, _ = thesis.lmo_grids(Thresholds(None, 5 * KIB))
    assert gather.choices[0].limit_bytes == 0


def test_escalations_are_predicted_from_the_buffer_alone(tmp_path: Path) -> None:
    """Those gathers have time-outs that had them on the test bed, and M1 is within a factor of two."""
    with collwise.session(tmp_path / "t.sqlite", engine="schedule") as context:
        predicted = thesis.predicted_gathers(context, thesis.BED, thesis.BED_PROCS, thesis.BED_THRESHOLDS)
    measured = thesis.measured_gathers()
    beside = thesis.escalations_beside_measured(measured, predicted)
    assert [*beside.index] == ["linear", "lmo", "lmo at M1/2", "linear_sync", "binomial"]
    assert ((beside.predicted_share > 0) == (beside.share > 0)).all()
    # Of those that have time-outs the order is as predicted; the others take as long as gathers without escalation.
    late = beside[beside.share > 0]
    assert (late["mean"].rank() == late.predicted_mean.rank()).all()
    for mean in ("mean", "predicted_mean"):
        assert beside[beside.share == 0][mean].to_numpy() == pytest.approx(1, abs=0.1)
    sizes = predicted.index[predicted.linear > predicted["no losses"] + 0.15]
    assert 0.5 <= sizes[0] / (thesis.BED_THRESHOLDS.gather_irregular_from_bytes or 0) <= 2
    assert sizes[-1] < (thesis.BED_THRESHOLDS.gather_regular_from_bytes or 0)
    escalations(predicted, measured, "title").savefig(tmp_path / "escalations.png")
    assert (tmp_path / "escalations.png").stat().st_size > 5000


def test_the_cluster_of_figure_7_4_escalates_between_m1_and_m2(tmp_path: Path) -> None:
    """M1 is an input, M2 and what LMO_Gather does are not."""
    with collwise.session(tmp_path / "t.sqlite", engine="schedule") as context:
        predicted = thesis.predicted_gathers(context, thesis.MYRINET, thesis.MYRINET_PROCS, thesis.THRESHOLDS)
    late = predicted.index[predicted.linear > predicted["no losses"] + 0.15]
    assert (late[0], late[-1]) == (8 * KIB, 56 * KIB)
    found = thesis.predicted_escalations(predicted, thesis.THRESHOLDS)
    assert found.share["linear"] == 1
    assert found.share.drop("linear").max() == 0


# Typed a second time: matrix size, seconds with native and with optimized collectives.
TABLE_7_2 = "1000 0.80 0.65 2000 5.5 5.02 3000 16.61 11.05 4000 74.29 64.79 5000 221.00 188.72 6000 494.24 394.65"


def test_table_7_2_as_printed() -> None:
    assert thesis.TABLE_7_2.reset_index().to_numpy().ravel() == pytest.approx([*map(float, TABLE_7_2.split())])


@needs("smpi")
def test_multiplications_communicate_for_as_long_as_their_collectives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else takes time, and the trees with processors placed by a model are those of placed ranks."""
    monkeypatch.setattr(thesis, "TABLE_7_2", thesis.TABLE_7_2.loc[[1000]])
    with collwise.session(tmp_path / "t.sqlite") as context:
        parameters = thesis.with_true_parameters("lmo_heterogeneous", HCL16)
        found = thesis.multiplications(HCL16, parameters, context).loc[1000]
        grids = [Grid(name, (Choice(tree),), (16,), (size,)) for name, tree, size in (
            ("scatterv", "linear", 500_000), ("bcast", "binomial", 8_000_000), ("gatherv", "linear", 500_000)
        )]  # fmt: skip
        parts = thesis.simulated(HCL16, grids, context)
    assert found.flat == pytest.approx(sum(of.array[0, 0, 0] for of in parts.values()), rel=0.1)
    assert found.mapped <= 1.01 * found.binomial


@needs("smpi")
def test_a_series_of_calls_hides_what_one_call_takes(tmp_path: Path) -> None:
    with collwise.session(tmp_path / "t.sqlite") as context:
        found = thesis.back_to_back(HCL16, context)
    assert [*found] == ["scatter", "gather"]
    for of in found.values():
        assert [*of.index] == [2**power * KIB for power in range(8)]
        for kind in thesis.SERIES:
            assert (of[f"{kind}, minimum"] <= of[f"{kind}, maximum"]).all()
        # From the eager limit on all processes see the time of the root's messages, one after another.
        large = of.loc[64 * KIB :]
        assert (large["series, maximum"] < 1.1 * large["series, minimum"]).all()
        assert (large["single, maximum"] > 5 * large["single, minimum"]).all()


def test_what_latency_prints_is_read() -> None:
    lines = [
        "# scatter, 4 processes",
        "# bytes  average (us)",
        "1024   2.00   1.00   3.50",
        "2048   4.00   2.00   7.00",
    ]
    found = thesis.latencies(lines)
    assert found.loc[2048].to_dict() == pytest.approx({"minimum": 2e-6, "maximum": 7e-6})


def test_measured_escalations_are_between_the_thresholds_of_the_page() -> None:
    page = (ROOT / "docs" / "regions-results.md").read_text(encoding="utf-8")
    assert "| 6 KiB | 64 KiB |" in page
    assert thesis.BED_THRESHOLDS.gather_irregular_from_bytes == 6 * KIB
    assert thesis.BED_THRESHOLDS.gather_regular_from_bytes == 64 * KIB
    found = thesis.measured_gathers()
    assert [*found.gather.unique()] == [*thesis.gathers_with(thesis.BED_THRESHOLDS)]
    assert found.message_bytes.between(6 * KIB, 64 * KIB, inclusive="left").all()
    linear = found[found.gather == "linear"].groupby("message_bytes").ratio
    assert linear.quantile(0.1).to_numpy() == pytest.approx(np.ones(7))
    assert (found.late == (found.seconds - found.seconds / found.ratio >= thesis.TIMEOUT_SECONDS)).all()


def test_measured_series_have_what_simulated_ones_have() -> None:
    for of in thesis.measured_series().values():
        assert [*of.index] == [2**power * KIB for power in range(8)]
        assert {*of.columns} == {f"{kind}, {what}" for kind in thesis.SERIES for what in ("minimum", "maximum")}
        assert (of["series, minimum"] <= of["series, maximum"]).all()
