"""The paper's data against a second typing of it, and its formulas by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import numpy as np
import pandas as pd
import pytest

from collwise.models.implementation_aware import bcast
from collwise.models.interface import Points
from collwise.models.parameters import ModelParameters, Observation
from collwise.models.single_messages import Hockney
from collwise.platforms import load_description
from collwise.platforms.changes import Change, changed
from collwise.studies.papers.nuriyev2021 import published_model as paper
from collwise.studies.papers.nuriyev2021.simulated import (
    CLUSTERS,
    PAPER_ALGORITHMS,
    SHAHEEN,
    ClusterUse,
    FittedTable,
    LiteralModel,
    Shaheen,
    agreement_counts,
    agreement_rows,
    agreement_with_measured_best,
    by_own_engine,
    engines_apart,
    printed_picks,
)
from collwise.validation.compare.scores import Scores
from collwise.validation.times.defaults import BCAST_SIZES, SEGMENT_BYTES
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times

# Typed a second time, row by row from the article, in another notation than the module's.
TABLE_2_GRISOU = """
8 binomial binary(3) split_binary(160)
16 binary binary(0) split_binary(1)
32 binary binary(0) split_binary(0)
64 split_binary binary(1) split_binary(0)
128 binary binary(0) split_binary(1)
256 split_binary binary(2) split_binary(0)
512 split_binary binary(2) chain(111)
1024 split_binary binary(3) chain(88)
2048 split_binary binary(2) chain(55)
4096 split_binary binary(1) chain(20)
"""
TABLE_2_GROS = """
8 binary binomial(3) split_binary(549)
16 binomial binomial(0) split_binary(32)
32 binomial binomial(0) split_binary(3)
64 split_binary binomial(8) split_binary(0)
128 split_binary binomial(8) split_binary(0)
256 binary binary(0) split_binary(6)
512 binary binary(0) chain(7297)
1024 split_binary binary(7) chain(6094)
2048 split_binary binary(4) chain(3227)
4096 split_binary binary(9) chain(2568)
"""
TABLE_8 = """
8 binomial binomial(0) split_binary(44)
40 binary binary(0) split_binary(6)
152 split_binary split_binary(0) split_binary(0)
232 binary binary(0) binary(0)
328 split_binary binary(1) split_binary(0)
472 binary binary(0) chain(101)
648 binary binary(0) chain(146)
1032 split_binary binary(1) chain(25)
2088 split_binary binary(1) chain(27)
4840 binary binary(0) chain(16)
"""


def as_text(table: pd.DataFrame) -> str:
    return "\n".join(
        f"{r.kib} {r.best} {r.model}({r.model_percent}) {r.openmpi}({r.openmpi_percent})" for r in table.itertuples()
    )


@pytest.mark.parametrize(
    ("table", "typed"),
    [
        (paper.TABLE_2_GRISOU, TABLE_2_GRISOU),
        (paper.TABLE_2_GROS, TABLE_2_GROS),
        (paper.TABLE_8_SHAHEEN, TABLE_8),
    ],
    ids=["grisou", "gros", "shaheen-ii"],
)
def test_broadcast_tables(table: pd.DataFrame, typed: str) -> None:
    assert as_text(table) == typed.strip()


def test_gather_tables() -> None:
    picks = ("binomial", "binomial", "linear_sync")
    for table, costs in (
        (paper.TABLE_3_GRISOU, (190, 104, 68, 36, 19)),
        (paper.TABLE_3_GROS, (524, 271, 2073, 71, 36)),
    ):
        assert tuple(table.openmpi_percent) == costs
        assert set(zip(table.best, table.model, table.openmpi, strict=True)) == {picks}


def test_parameters() -> None:
    """Tables 4, 5 and 7 in microseconds and nanoseconds a byte; broadcasts in the order of the article."""
    order = ("linear", "k_chain", "chain", "split_binary", "binary", "binomial")
    typed = {
        "grisou": [(2.2e-6, 18), (0.57e-6, 4.7), (0.61e-6, 4.9), (0.37e-6, 3.6), (0.58e-6, 4.7), (0.58e-6, 4.8)],
        "gros": [(1.4e-6, 11), (0.54e-6, 4.5), (4.7e-6, 38), (0.55e-6, 4.5), (0.58e-6, 4.7), (0.12e-6, 1.0)],
        "shaheen-ii": [(2.6e-6, 21), (0.25e-6, 2.1), (0.21e-6, 1.8), (0.34e-6, 2.8), (0.31e-6, 2.5), (0.16e-6, 1.3)],
    }
    for platform, rows in typed.items():
        for name, (micro, nano) in zip(order, rows, strict=True):
            pair = paper.PARAMETERS[platform, "bcast"][name]
            assert pair.alpha_seconds == pytest.approx(micro * 1e-6)
            assert pair.beta_seconds_per_byte == pytest.approx(nano * 1e-9)
    gathers = {
        "grisou": {"linear": (15, 1.5), "binomial": (120, 0.86), "linear_sync": (59, 0.94)},
        "gros": {"linear": (130, 0.34), "binomial": (100, 0.42), "linear_sync": (95, 0.39)},
    }
    for platform, entries in gathers.items():
        for name, (micro, nano) in entries.items():
            pair = paper.PARAMETERS[platform, "gather"][name]
            assert pair.alpha_seconds == pytest.approx(micro * 1e-6)
            assert pair.beta_seconds_per_byte == pytest.approx(nano * 1e-9)


def test_gamma() -> None:
    grisou, gros = paper.GAMMAS["grisou"], paper.GAMMAS["gros"]
    assert grisou["table 6"]([2, 3, 4, 5, 6, 7]) == pytest.approx([1, 1.114, 1.219, 1.283, 1.451, 1.54])
    assert gros["table 6"]([2, 3, 4, 5, 6, 7]) == pytest.approx([1, 1.084, 1.17, 1.254, 1.339, 1.424])
    assert grisou["table 6, constant beyond 7"](8) == pytest.approx(1.54)
    assert grisou["table 6"](8) > 1.6


def predicted(table: pd.DataFrame, reading: str = "") -> pd.DataFrame:
    return paper.predicted_seconds(table, reading or paper.ADOPTED[table.collective[0]], "table 6")


def test_grisou_8_kib_by_hand() -> None:
    """One segment, P = 90, floor(log2 P) = 6: every formula on paper."""
    seconds = predicted(paper.TABLE_2_GRISOU).loc[0]
    below = 1.451 + 1.283 + 1.219 + 1.114 + 1.0
    assert seconds.linear == pytest.approx(89 * (2.2e-12 + 8192 * 1.8e-8))
    assert seconds.chain == pytest.approx(89 * (6.1e-13 + 8192 * 4.9e-9))
    assert seconds.k_chain == pytest.approx((22 + 1.283 - 1) * (5.7e-13 + 8192 * 4.7e-9))
    assert seconds.binary == pytest.approx(1.114 * 6 * (5.8e-13 + 8192 * 4.7e-9))
    assert seconds.binomial == pytest.approx((1.54 + below - 1) * (5.8e-13 + 8192 * 4.8e-9))
    forwarding = 2 * (6 + 0.5 - 1) * (3.7e-13 + 8192 * 3.6e-9)
    assert seconds.split_binary == pytest.approx(forwarding + 3.7e-13 + 4096 * 3.6e-9)


def test_gros_256_kib_by_hand() -> None:
    """32 segments: the plus in (7) leaves the binomial tree ahead of the printed binary tree, the product does not."""
    below = 1.339 + 1.254 + 1.17 + 1.084 + 1.0
    segment = 1.2e-13 + 8192 * 1.0e-9
    plus, product = (predicted(paper.TABLE_2_GROS, reading).loc[5] for reading in ("", paper.LITERAL))
    binary = 1.084 * (6 + 32 - 1) * (5.8e-13 + 8192 * 4.7e-9)
    assert plus.binomial == pytest.approx((32 * 1.424 + below - 1) * segment)
    assert product.binomial == pytest.approx((32 * 1.424 * below - 1) * segment)
    assert plus.binary == product.binary == pytest.approx(binary)
    assert (plus.idxmin(), product.idxmin(), paper.TABLE_2_GROS.model[5]) == ("binomial", "binary", "binary")


def test_gros_gather_by_hand() -> None:
    """64 KiB halves at 128 KiB are rendezvous: formula (13)."""
    at_64, at_128 = (predicted(paper.TABLE_3_GROS).loc[row] for row in (0, 1))
    assert at_64.linear_sync == pytest.approx(99 * (9.5e-5 + 32768 * 3.9e-10))
    assert at_128.linear_sync == pytest.approx(99 * (2 * 9.5e-5 + 131072 * 3.9e-10))
    assert at_64.binomial == pytest.approx(7 * 1.0e-4 + 99 * 65536 * 4.2e-10)
    assert at_64.linear == pytest.approx(99 * (1.3e-4 + 65536 * 3.4e-10))
    assert (at_64.idxmin(), at_128.idxmin()) == ("binomial", "binomial")


def test_adopted_reading_is_that_of_the_models() -> None:
    points = Points.of(90, np.array([8192, 65536, 1048576]), SEGMENT_BYTES)
    gamma = paper.GAMMAS["grisou"]["table 6"]
    (ours,) = paper.READINGS["bcast"][paper.ADOPTED["bcast"]]["binomial"](points, gamma)
    (models,) = bcast.AS_PRINTED["binomial"](points, gamma)
    assert ours.count == pytest.approx(models.count)
    assert ours.bytes_each == pytest.approx(models.bytes_each)


def test_rows_that_match() -> None:
    rows = paper.all_matches().set_index(["cluster", "reading", "gamma"]).rows
    readings = (paper.ADOPTED["bcast"], paper.LITERAL)
    assert [rows["grisou", reading, "table 6"] for reading in readings] == [10, 10]
    assert [rows["gros", reading, "table 6"] for reading in readings] == [5, 9]
    assert [rows["shaheen-ii", reading, "Gros's"] for reading in readings] == [1, 9]
    assert [rows[cluster, paper.ADOPTED["gather"], "table 6"] for cluster in ("grisou", "gros")] == [5, 5]


def test_openmpi_columns_against_listing_1() -> None:
    (row,) = paper.openmpi_contradictions().itertuples()
    assert (row.table[:7], row.kib, row.openmpi, row.decided) == ("Table 8", 232, "binary", "split_binary")


def test_alpha_beta_ratios() -> None:
    ratios = paper.alpha_beta_ratios().set_index(["platform", "algorithm"])
    assert len(ratios) == 18
    assert ratios.ratio["grisou", "linear"] == pytest.approx(8192 * 2.2e-12 / 1.8e-8)
    assert ratios["from"]["grisou", "linear"] == pytest.approx(8192 * 2.15e-12 / 1.85e-8)
    assert ratios.to["gros", "binomial"] == pytest.approx(8192 * 1.25e-13 / 0.95e-9)
    assert list(ratios.index[~ratios["1 possible?"]]) == [("grisou", "chain"), ("grisou", "split_binary")]


@pytest.mark.parametrize("algorithm", paper.PARAMETERS["grisou", "bcast"])
def test_one_segment_size_gives_one_number(algorithm: str) -> None:
    """Only these two of the paper's broadcasts send messages of several sizes, whose times give alpha and beta."""
    points = Points.of(40, np.array(BCAST_SIZES), 0 if algorithm == "linear" else SEGMENT_BYTES)
    parts = bcast.AS_PRINTED[algorithm](points, paper.GAMMAS["grisou"]["table 6"])
    counts = sum(part.count for part in parts)
    sums = sum(part.count * part.bytes_each for part in parts) / SEGMENT_BYTES
    several = algorithm in ("linear", "split_binary")
    assert np.linalg.matrix_rank(np.column_stack([counts, sums])) == 1 + several


def test_half_digit() -> None:
    assert paper.half_digit(4.7e-9) == pytest.approx(0.05e-9)
    assert paper.half_digit(1.0e-9) == pytest.approx(0.05e-9)
    assert math.isclose(paper.half_digit(1.2e-4), 0.05e-4)


def fitted_table(
    cluster: ClusterUse, collective: str, sizes: tuple[int, ...], seconds: Mapping[str, float]
) -> FittedTable:
    """A table in which algorithms take the same time at all sizes, by default a second."""
    names = PAPER_ALGORITHMS[collective]
    grid = Grid.of(collective, (cluster.table_procs,), sizes, 1, (SEGMENT_BYTES,), names)
    times = np.array([np.full((1, len(sizes)), seconds.get(one.algorithm, 9.0)) for one in grid.choices])
    right = Times.of_seconds(grid, times, cluster.name, "simulated", "none", State.NOT_ASKED)
    return FittedTable(cluster, collective, cast(ModelParameters, None), Scores(right))


def test_the_product_is_fitted_and_predicts() -> None:
    """Experiments that take what (7) as a product says give its parameters' sum back, and its predictions."""
    true, gamma, sizes = Hockney(2e-6, 1e-9), paper.GAMMAS["gros"]["table 6"], (65536, 262144, 1048576)
    product = paper.READINGS["bcast"][paper.LITERAL]["binomial"]

    def seconds(procs: int, size: int) -> float:
        [part] = product(Points.of(procs, [size], SEGMENT_BYTES), gamma)
        gather = (procs - 1) * float(true.predict(4096))
        return float(part.count[0] * true.predict(part.bytes_each[0])) + gather

    own = [
        Observation("bcast_gather", procs, size, SEGMENT_BYTES, seconds(procs, size), 0, 4096)
        for procs in (40, 124)
        for size in sizes
    ]
    fits = {"as_printed": {"bcast": {}}}
    known = ModelParameters("gros", "by hand", 1, 65536, SEGMENT_BYTES, gamma, true, fits, {"bcast": {"binomial": own}})
    model = LiteralModel.of(known)
    [pair] = model.parameters.fits["as_printed"]["bcast"]["binomial"].parameters.values()
    assert pair.predict(SEGMENT_BYTES) == pytest.approx(true.predict(SEGMENT_BYTES), rel=1e-4)
    [part] = product(Points.of(100, np.array(sizes), SEGMENT_BYTES), gamma)
    found = model.predict("bcast", "binomial", 100, sizes, SEGMENT_BYTES)
    assert found == pytest.approx(part.count * true.predict(SEGMENT_BYTES), rel=1e-4)
    # Several process counts at once are those one by one.
    both = model.predict("bcast", "binomial", np.array([40, 100]), np.array(sizes[:2]), SEGMENT_BYTES)
    assert both[1] == pytest.approx(float(model.predict("bcast", "binomial", 100, sizes[1], SEGMENT_BYTES)))


def test_agreement_with_a_simulation_in_which_binary_is_always_the_best() -> None:
    def simulated(table: pd.DataFrame) -> FittedTable:
        times = {"binary": 1.0, "split_binary": 1.05, "binomial": 1.2, "chain": 3.0, "linear_sync": 2.0}
        cluster = next(one for one in CLUSTERS if one.name == table.cluster[0])
        return fitted_table(cluster, table.collective[0], tuple(table.message_bytes), times)

    found = agreement_with_measured_best(by_own_engine([simulated(table) for table in paper.TABLES[:4]]))
    rows = found.set_index(["cluster", "collective", "kib"])
    # Binary is the model's pick with 3 % at 8 KB on Grisou; at 32 KB on Gros it is no printed pick.
    indistinguishable = rows.best_within_precision
    assert indistinguishable["grisou", "bcast", 8]
    assert not indistinguishable["gros", "bcast", 32]
    assert not rows.same_best["grisou", "bcast", 8]
    assert rows.best_slowdown["grisou", "bcast", 8] == pytest.approx(0.2)
    # Split-binary is 160 % off as measured and 5 % as simulated, the chain 111 % and 200 %.
    assert not rows.openmpi_same_way["grisou", "bcast", 8]
    assert rows.openmpi_same_way["grisou", "bcast", 512]
    counts = agreement_counts(found)
    assert list(counts.rows) == [10, 10, 5, 5]
    assert list(counts.same_best) == [3, 3, 5, 5]  # all gathers by the binomial tree
    shown = agreement_rows({"smpi": found, "engine": found.assign(openmpi_slowdown=0.5)})
    assert shown.iloc[6].tolist()[-1] == "chain/111/200/50"


def test_a_moved_threshold_takes_what_changes_there_along() -> None:
    platform = load_description(SHAHEEN.name)
    moved = changed(platform, [Change("eager_limit", "64KiB")]).platform.calibration
    assert moved.eager_limit_bytes == 65536
    assert moved.latency_factor == ((0, 1.0), (65536, 7.4))
    assert [row[0] for row in moved.ois] == [0, 65536]
    assert moved.os == platform.calibration.os


def test_printed_picks_of_table_8() -> None:
    """Where the chain takes twice as long as all others, and three times with eager segments."""
    sizes, names = paper.TABLE_8_SHAHEEN.message_bytes, ("linear", "chain", "binary", "split_binary", "binomial")
    times = dict.fromkeys(names, 1.0) | {"chain": 2.0}
    table = fitted_table(SHAHEEN, "bcast", tuple(sizes), times)
    found = Shaheen(
        table,
        smpi=pd.DataFrame([dict.fromkeys(names, 1.0) | {"chain": 2.5}], [8192]),
        eager=pd.DataFrame([times | {"chain": 3.0} for _ in sizes], sizes),
    )
    shown = printed_picks(found)
    assert list(shown.algorithm[shown["m (KB)"] == 8]) == ["binomial", "split_binary"]
    assert list(shown.measured[shown["m (KB)"] == 8]) == [0, 44]
    (at_472,) = shown[(shown["m (KB)"] == 472) & (shown.algorithm == "chain")].to_dict("records")
    assert (at_472["measured"], at_472["simulated"], at_472["simulated, eager segments"]) == (101, 100, 200)
    formulas = paper.predicted_seconds(paper.TABLE_8_SHAHEEN, paper.ADOPTED["bcast"], "Gros's").loc[5]
    assert at_472["by the formulas"] == pytest.approx(100 * (formulas.chain / formulas.min() - 1))
    assert engines_apart(found).max() == pytest.approx(0.25)
