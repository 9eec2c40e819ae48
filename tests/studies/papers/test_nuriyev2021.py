"""The paper's data against a second typing of it, and its formulas by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collwise.models.hockney import Hockney
from collwise.models.implementation_aware import bcast
from collwise.models.interface import Points
from collwise.studies.papers.nuriyev2021 import published_model as paper
from collwise.studies.papers.nuriyev2021 import tables
from collwise.validation.selection.defaults import SEGMENT_BYTES

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


def as_text(table: tables.PublishedTable) -> str:
    return "\n".join(
        f"{r.message_kib} {r.best} {r.model}({r.model_percent}) {r.openmpi}({r.openmpi_percent})" for r in table.rows
    )


@pytest.mark.parametrize(
    ("table", "typed"),
    [
        (tables.TABLE_2_GRISOU, TABLE_2_GRISOU),
        (tables.TABLE_2_GROS, TABLE_2_GROS),
        (tables.TABLE_8_SHAHEEN, TABLE_8),
    ],
    ids=lambda value: getattr(value, "title", ""),
)
def test_broadcast_tables(table: tables.PublishedTable, typed: str) -> None:
    assert as_text(table) == typed.strip()


def test_gather_tables() -> None:
    for table, costs in (
        (tables.TABLE_3_GRISOU, (190, 104, 68, 36, 19)),
        (tables.TABLE_3_GROS, (524, 271, 2073, 71, 36)),
    ):
        assert tuple(row.openmpi_percent for row in table.rows) == costs
        assert {(row.best, row.model, row.openmpi) for row in table.rows} == {("binomial", "binomial", "linear_sync")}


def test_parameters() -> None:
    """Tables 4, 5 and 7 in microseconds and nanoseconds a byte; broadcasts in the order of the article."""
    order = ("linear", "k_chain", "chain", "split_binary", "binary", "binomial")
    typed = {
        "grisou": [(2.2e-6, 18), (0.57e-6, 4.7), (0.61e-6, 4.9), (0.37e-6, 3.6), (0.58e-6, 4.7), (0.58e-6, 4.8)],
        "gros": [(1.4e-6, 11), (0.54e-6, 4.5), (4.7e-6, 38), (0.55e-6, 4.5), (0.58e-6, 4.7), (0.12e-6, 1.0)],
        "shaheen": [(2.6e-6, 21), (0.25e-6, 2.1), (0.21e-6, 1.8), (0.34e-6, 2.8), (0.31e-6, 2.5), (0.16e-6, 1.3)],
    }
    for platform, rows in typed.items():
        for name, (micro, nano) in zip(order, rows, strict=True):
            pair = tables.PARAMETERS[platform]["bcast"][name]
            assert pair.alpha_seconds == pytest.approx(micro * 1e-6)
            assert pair.beta_seconds_per_byte == pytest.approx(nano * 1e-9)
    gathers = {
        "grisou": {"linear": (15, 1.5), "binomial": (120, 0.86), "linear_sync": (59, 0.94)},
        "gros": {"linear": (130, 0.34), "binomial": (100, 0.42), "linear_sync": (95, 0.39)},
    }
    for platform, entries in gathers.items():
        for name, (micro, nano) in entries.items():
            pair = tables.PARAMETERS[platform]["gather"][name]
            assert pair.alpha_seconds == pytest.approx(micro * 1e-6)
            assert pair.beta_seconds_per_byte == pytest.approx(nano * 1e-9)


def test_gamma() -> None:
    assert tables.TABLE_6_GAMMA["grisou"]([2, 3, 4, 5, 6, 7]) == pytest.approx([1, 1.114, 1.219, 1.283, 1.451, 1.54])
    assert tables.TABLE_6_GAMMA["gros"]([2, 3, 4, 5, 6, 7]) == pytest.approx([1, 1.084, 1.17, 1.254, 1.339, 1.424])
    assert tables.gammas_for(tables.TABLE_2_GRISOU)["table 6, constant beyond 7"](8) == pytest.approx(1.54)
    assert tables.gammas_for(tables.TABLE_2_GRISOU)["table 6"](8) > 1.6


def test_grisou_8_kib_by_hand() -> None:
    """One segment, P = 90, floor(log2 P) = 6: every formula on paper."""
    predicted = paper.published_choices(tables.TABLE_2_GRISOU)[0].predicted
    below = 1.451 + 1.283 + 1.219 + 1.114 + 1.0
    assert predicted["linear"] == pytest.approx(89 * (2.2e-12 + 8192 * 1.8e-8))
    assert predicted["chain"] == pytest.approx(89 * (6.1e-13 + 8192 * 4.9e-9))
    assert predicted["k_chain"] == pytest.approx((22 + 1.283 - 1) * (5.7e-13 + 8192 * 4.7e-9))
    assert predicted["binary"] == pytest.approx(1.114 * 6 * (5.8e-13 + 8192 * 4.7e-9))
    assert predicted["binomial"] == pytest.approx((1.54 + below - 1) * (5.8e-13 + 8192 * 4.8e-9))
    forwarding = 2 * (6 + 0.5 - 1) * (3.7e-13 + 8192 * 3.6e-9)
    assert predicted["split_binary"] == pytest.approx(forwarding + 3.7e-13 + 4096 * 3.6e-9)


def test_gros_256_kib_by_hand() -> None:
    """32 segments: the plus in (7) leaves the binomial tree ahead of the printed binary tree, the product does not."""
    below = 1.339 + 1.254 + 1.17 + 1.084 + 1.0
    segment = 1.2e-13 + 8192 * 1.0e-9
    plus = paper.published_choices(tables.TABLE_2_GROS)[5]
    product = paper.published_choices(tables.TABLE_2_GROS, paper.LITERAL)[5]
    binary = 1.084 * (6 + 32 - 1) * (5.8e-13 + 8192 * 4.7e-9)
    assert plus.predicted["binomial"] == pytest.approx((32 * 1.424 + below - 1) * segment)
    assert product.predicted["binomial"] == pytest.approx((32 * 1.424 * below - 1) * segment)
    assert plus.predicted["binary"] == product.predicted["binary"] == pytest.approx(binary)
    assert (plus.choice, plus.matches, plus.within_rounding) == ("binomial", False, False)
    assert (product.choice, product.matches) == ("binary", True)
    assert plus.excess_of_printed == pytest.approx(binary / plus.predicted["binomial"] - 1)


def test_gros_gather_by_hand() -> None:
    """64 KiB halves at 128 KiB are rendezvous: formula (13)."""
    at_64, at_128 = paper.published_choices(tables.TABLE_3_GROS)[:2]
    assert at_64.predicted["linear_sync"] == pytest.approx(99 * (9.5e-5 + 32768 * 3.9e-10))
    assert at_128.predicted["linear_sync"] == pytest.approx(99 * (2 * 9.5e-5 + 131072 * 3.9e-10))
    assert at_64.predicted["binomial"] == pytest.approx(7 * 1.0e-4 + 99 * 65536 * 4.2e-10)
    assert at_64.predicted["linear"] == pytest.approx(99 * (1.3e-4 + 65536 * 3.4e-10))
    assert at_64.choice == at_128.choice == "binomial"


def test_adopted_reading_is_that_of_the_models() -> None:
    points = Points.of(90, np.array([8192, 65536, 1048576]), SEGMENT_BYTES)
    gamma = tables.TABLE_6_GAMMA["grisou"]
    (ours,) = paper.ADOPTED["bcast"].formula("binomial")(points, gamma)
    (models,) = bcast.AS_PRINTED["binomial"](points, gamma)
    assert ours.count == pytest.approx(models.count)
    assert ours.bytes_each == pytest.approx(models.bytes_each)


def test_rows_that_match() -> None:
    def rows(table: tables.PublishedTable, reading: paper.Reading, gamma: str) -> int:
        return paper.matches_by_reading(table)[reading.name, gamma]

    plus, product = paper.ADOPTED["bcast"], paper.LITERAL
    assert [rows(tables.TABLE_2_GRISOU, reading, "table 6") for reading in (plus, product)] == [10, 10]
    assert [rows(tables.TABLE_2_GROS, reading, "table 6") for reading in (plus, product)] == [5, 9]
    assert [rows(tables.TABLE_8_SHAHEEN, reading, "Gros's") for reading in (plus, product)] == [1, 9]
    for table in (tables.TABLE_3_GRISOU, tables.TABLE_3_GROS):
        assert rows(table, paper.ADOPTED["gather"], "table 6") == 5


def test_openmpi_columns_against_listing_1() -> None:
    ((table, row, decided),) = paper.openmpi_contradictions()
    assert (table.number, row.message_kib, row.openmpi, decided) == (8, 232, "binary", "split_binary")


def test_segment_ratios() -> None:
    """At 128 and 256 KiB on Gros, by hand: where the two trees' predictions are equal."""
    below = 5.847
    low, high = paper.segment_ratios_that_match(tables.TABLE_2_GROS, "binomial", "binary")
    assert low == pytest.approx(1.084 * 37 / (32 * 1.424 + below - 1))
    assert high == pytest.approx(1.084 * 21 / (16 * 1.424 + below - 1))


def test_alpha_beta_ratios() -> None:
    ratios = paper.alpha_beta_ratios().set_index(["platform", "algorithm"])
    assert len(ratios) == 18
    assert ratios.ratio["grisou", "linear"] == pytest.approx(8192 * 2.2e-12 / 1.8e-8)
    assert ratios["from"]["grisou", "linear"] == pytest.approx(8192 * 2.15e-12 / 1.85e-8)
    assert ratios.to["gros", "binomial"] == pytest.approx(8192 * 1.25e-13 / 0.95e-9)
    assert list(ratios.index[~ratios["1 possible?"]]) == [("grisou", "chain"), ("grisou", "split_binary")]


@pytest.mark.parametrize("algorithm", ["chain", "k_chain", "binary", "binomial"])
def test_one_segment_size_gives_one_number(algorithm: str) -> None:
    true = Hockney(2e-5, 1e-9)
    found = paper.minimum_norm_pair(algorithm, true)
    assert 8192 * found.alpha_seconds / found.beta_seconds_per_byte == pytest.approx(1)
    assert float(found.predict(8192)) == pytest.approx(float(true.predict(8192)))


@pytest.mark.parametrize("algorithm", ["linear", "split_binary"])
def test_messages_of_several_sizes_give_both(algorithm: str) -> None:
    found = paper.minimum_norm_pair(algorithm, Hockney(2e-5, 1e-9))
    assert found.alpha_seconds == pytest.approx(2e-5, rel=1e-6)
    assert found.beta_seconds_per_byte == pytest.approx(1e-9, rel=1e-6)


def test_half_digit() -> None:
    assert paper.half_digit(4.7e-9) == pytest.approx(0.05e-9)
    assert paper.half_digit(1.0e-9) == pytest.approx(0.05e-9)
    assert math.isclose(paper.half_digit(1.2e-4), 0.05e-4)


def test_indistinguishable() -> None:
    assert tables.TABLE_2_GRISOU.rows[0].indistinguishable == {"binomial", "binary"}
    assert tables.TABLE_2_GROS.rows[2].indistinguishable == {"binomial", "split_binary"}
    assert tables.TABLE_2_GROS.rows[1].indistinguishable == {"binomial"}
