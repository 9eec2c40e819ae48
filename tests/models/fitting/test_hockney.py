from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.common.errors import UsageError
from collwise.models.fitting.hockney import hockney_by_regression, hockney_by_size, hockney_by_two_sizes
from collwise.models.fitting.regression import Sizes
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, Machine, eager_machine, loggp_machine

EXACT = 1e-6


def bent_machine(at_bytes: int = 50000) -> Machine:
    """2 ns a byte up to the bend, 10 ns a byte beyond."""
    return Machine(lambda p, m: 1e-6, lambda p, m: 1e-6, lambda i, j, m: 40e-6 + 2e-9 * m + 8e-9 * max(0, m - at_bytes))


@settings(max_examples=30)
@given(st.floats(1e-6, 1e-3), st.floats(1e-10, 1e-7))
def test_a_straight_line_is_recovered(alpha: float, beta: float) -> None:
    lab = LogGPLaboratory(Machine(lambda p, m: alpha / 4, lambda p, m: alpha / 4, lambda i, j, m: alpha / 2 + beta * m))
    for model in (hockney_by_two_sizes(lab), hockney_by_regression(lab)):
        assert [model.alpha_seconds, model.beta_seconds_per_byte] == pytest.approx([alpha, beta], rel=EXACT)
    by_size = hockney_by_size(lab)
    assert by_size.beta([10, 3000, 1 << 20]) == pytest.approx(np.full(3, beta), rel=1e-4)


def test_a_straight_line_takes_few_sizes_and_a_bend_more() -> None:
    sizes = Sizes(smallest_bytes=1024, largest_bytes=1 << 17, max_count=30)
    straight, bent = LogGPLaboratory(eager_machine()), LogGPLaboratory(bent_machine())
    hockney_by_regression(straight, sizes)
    hockney_by_size(bent, sizes)
    assert straight.rounds == 1
    assert [one.message_bytes for one in straight.asked] == [1, *(1 << k for k in range(10, 18))]
    extra = {one.message_bytes for one in bent.asked} - {one.message_bytes for one in straight.asked}
    assert extra
    assert all(1 << 15 < size < 1 << 17 for size in extra)


def test_the_bend_is_found() -> None:
    model = hockney_by_size(LogGPLaboratory(bent_machine()), Sizes(largest_bytes=1 << 18, tolerance=0.005))
    assert model.beta([2000, 45000, 60000, 200000]) == pytest.approx([2e-9, 2e-9, 1e-8, 1e-8], rel=1e-3)
    sizes = np.arange(1, 1 << 18, 997)
    true = 42e-6 + 2e-9 * sizes + 8e-9 * np.maximum(0, sizes - 50000)
    np.testing.assert_allclose(model.predict(sizes), true, rtol=0.005)


def test_at_most_so_many_sizes() -> None:
    for most in (3, 5, 12):
        lab = LogGPLaboratory(bent_machine())
        hockney_by_regression(lab, Sizes(largest_bytes=1 << 20, max_count=most, tolerance=1e-9))
        sizes = [one.message_bytes for one in lab.asked]
        assert len(set(sizes)) == len(sizes) <= most
        assert {1, 1024, 1 << 20} <= set(sizes)


def test_noise_of_one_percent() -> None:
    pairs = [(i, j) for i in range(6) for j in range(6) if i < j]
    lab = LogGPLaboratory(loggp_machine(40e-6, 5e-6, 8e-6, 1e-6, 1e-8), procs=6, noise=0.01)
    for model in (hockney_by_two_sizes(lab, pairs=pairs), hockney_by_regression(lab, pairs=pairs)):
        assert [model.alpha_seconds, model.beta_seconds_per_byte] == pytest.approx([53e-6, 1e-8], rel=0.02)


def test_pairs_choose_their_sizes_and_heterogeneous_arrays_are_symmetric() -> None:
    lab = LogGPLaboratory(
        Machine(
            lambda p, m: 2e-6,
            lambda p, m: 3e-6,
            lambda i, j, m: (10 + i + j) * 1e-6 + (1 + i * j) * 1e-9 * m + ((i + j == 5) * 1e-8 * max(0, m - 50000)),
        ),
        procs=4,
    )
    i, j = np.mgrid[:4, :4]
    straight = (i != j) & (i + j != 5)
    models = [estimate(lab, heterogeneous=True) for estimate in (hockney_by_regression, hockney_by_two_sizes)]
    for model in models:
        alpha, beta = np.asarray(model.alpha_seconds), np.asarray(model.beta_seconds_per_byte)
        np.testing.assert_allclose(alpha[straight], ((15 + i + j) * 1e-6)[straight], rtol=EXACT)
        np.testing.assert_allclose(beta[straight], ((1 + i * j) * 1e-9)[straight], rtol=EXACT)
        np.testing.assert_array_equal(alpha, alpha.T)
        np.testing.assert_array_equal(np.diag(beta), 0)
    asked = {pair: {one.message_bytes for one in lab.asked if one.processes == pair} for pair in ((0, 1), (2, 3))}
    assert asked[0, 1] < asked[2, 3]


def test_homogeneous_is_the_mean_of_the_pairs() -> None:
    lab = LogGPLaboratory(
        Machine(lambda p, m: 0, lambda p, m: 0, lambda i, j, m: (i + j) * 1e-6 + (i + j) * 1e-9 * m), procs=3
    )
    pairs = [(0, 1), (1, 2)]
    for model in (hockney_by_two_sizes(lab, pairs=pairs), hockney_by_regression(lab, pairs=pairs)):
        assert [model.alpha_seconds, model.beta_seconds_per_byte] == pytest.approx([2e-6, 2e-9], rel=EXACT)
    assert hockney_by_size(lab, pairs=pairs).predict(5000) == pytest.approx(2e-6 + 2e-9 * 5000, rel=EXACT)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda lab: hockney_by_two_sizes(lab, large_bytes=1), "large messages of 1 bytes"),
        (lambda lab: hockney_by_regression(lab, Sizes(smallest_bytes=1)), "they must exceed the smallest message, 1"),
        (lambda lab: Sizes(1024, 1024), "from 1024 to 1024 bytes"),
        (lambda lab: Sizes(max_count=2), "max_count = 2 allows too few message sizes"),
        (lambda lab: Sizes(tolerance=0), "a tolerance above 0"),
    ],
)
def test_what_does_not_fit(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=message):
        call(LogGPLaboratory(eager_machine()))
