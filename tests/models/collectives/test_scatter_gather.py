"""Scatter and gather: the thesis's own expressions and regions."""

from __future__ import annotations

import numpy as np
import pytest

from collwise.models.collectives import blocks
from collwise.models.collectives.blocks import binomial_seconds
from collwise.models.interface import Points
from collwise.models.single_messages import LMO, Hockney, LogGP, Thresholds

NUMBERS = np.random.default_rng(5)
PAIRS = Hockney(NUMBERS.uniform(20, 200, (8, 8)) * 1e-6, NUMBERS.uniform(1, 20, (8, 8)) * 1e-9)


def hop(sender: int, receiver: int, size: float) -> float:
    return float(np.asarray(PAIRS.alpha_seconds)[sender, receiver]) + size * float(
        np.asarray(PAIRS.beta_seconds_per_byte)[sender, receiver]
    )


def test_5_2() -> None:
    """The formula for 8 processors, with the M that the first summand lacks in print."""
    m = 4096.0
    expected = hop(0, 4, 4 * m) + max(
        hop(0, 2, 2 * m) + max(hop(0, 1, m), hop(2, 3, m)),
        hop(4, 6, 2 * m) + max(hop(4, 5, m), hop(6, 7, m)),
    )
    assert float(blocks.scatter_binomial(Points.of(8, m), PAIRS)) == pytest.approx(expected)
    transposed = Hockney(np.asarray(PAIRS.alpha_seconds).T, np.asarray(PAIRS.beta_seconds_per_byte).T)
    assert float(blocks.gather_binomial(Points.of(8, m), transposed)) == pytest.approx(expected)


@pytest.mark.parametrize("procs", [2, 4, 8, 16, 128])
def test_5_3_equal_pairs_take_log2_n_alpha_and_all_blocks_but_one(procs: int) -> None:
    alpha, beta, sizes = 5e-5, 8e-9, np.array([0.0, 1.0, 1e5])
    expected = np.log2(procs) * alpha + (procs - 1) * beta * sizes
    for model in (Hockney(alpha, beta), Hockney(np.full((procs, procs), alpha), np.full((procs, procs), beta))):
        assert blocks.scatter_binomial(Points.of(procs, sizes), model) == pytest.approx(expected)
        assert blocks.gather_binomial(Points.of(procs, sizes), model) == pytest.approx(expected)


def test_blocks_are_counted_where_procs_are_no_power_of_two() -> None:
    """The longest way of five processes has 1, 2 and 1 blocks, since rank 4 has no children; that of six 2, 2 and 1."""
    seconds = blocks.scatter_binomial(Points.of([5, 6, 7], 1000), Hockney(0.0, 1e-9))
    assert seconds == pytest.approx([4e-6, 5e-6, 6e-6])
    latencies = blocks.scatter_binomial(Points.of([5, 6, 7], 0), Hockney(1.0, 0.0))
    assert latencies == pytest.approx([3, 3, 3])


def test_table_5_2_sums_over_pairs() -> None:
    m = 1000.0
    assert float(blocks.scatter_between_pairs(Points.of(8, m), PAIRS)) == pytest.approx(
        sum(hop(0, i, m) for i in range(1, 8))
    )
    assert float(blocks.gather_between_pairs(Points.of(5, m), PAIRS)) == pytest.approx(
        sum(hop(i, 0, m) for i in range(1, 5))
    )


def lmo(thresholds: Thresholds) -> LMO:
    latency = np.array([[0, 10, 30], [10, 0, 5], [30, 5, 0]]) * 1e-6
    rate = np.array([[0, 8, 9], [8, 0, 7], [9, 7, 0]]) * 1e-9
    return LMO(np.array([1, 20, 3]) * 1e-6, np.array([1, 2, 30]) * 1e-9, latency, rate, thresholds)


def test_4_1_to_4_3() -> None:
    model = lmo(Thresholds(65536, 4096, 65536))
    sizes = np.array([1000, 4095, 4096, 65535, 65536, 1e6])
    root = 2 * (1e-6 + 1e-9 * sizes)
    first, second = 30e-6 + 10e-9 * sizes, 33e-6 + 39e-9 * sizes
    points = Points.of(3, sizes)
    assert blocks.scatter_lmo(points, model) == pytest.approx(root + np.maximum(first, second))
    gathered = blocks.gather_lmo(points, model)
    assert gathered[:2] == pytest.approx((root + np.maximum(first, second))[:2])
    assert np.isnan(gathered[2:4]).all()
    assert gathered[4:] == pytest.approx((root + first + second)[4:])
    assert np.isfinite(blocks.gather_binomial(points, model)).all()


def test_without_an_upper_threshold_all_from_m1_on_is_irregular() -> None:
    gathered = blocks.gather_lmo(Points.of(3, [100, 1e4, 1e9]), lmo(Thresholds(None, 4096, None)))
    assert np.isnan(gathered).tolist() == [False, True, True]


def test_lmo_between_two_is_a_message() -> None:
    """Table 5.2 as printed counts the receiver's bytes twice; (4.1) and (4.2) do not."""
    model, points = lmo(Thresholds()), Points.of(2, [0, 1000, 1e6])
    for formula in (blocks.scatter_lmo, blocks.scatter_binomial, blocks.gather_lmo, blocks.gather_binomial):
        assert formula(points, model) == pytest.approx(model.predict([0, 1000, 1e6], 0, 1))


def test_heterogeneous_loggp_has_no_formula() -> None:
    model = LogGP(np.ones((3, 3)), np.ones(3), np.ones(3), np.ones((3, 3)))
    with pytest.raises(ValueError, match="no formula"):
        binomial_seconds(model, range(3), 1.0)
