from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.validation.calibration.segmented_regression import fit_segments, value_at


def law(sizes: np.ndarray, jump: float) -> np.ndarray:
    low, high = 3e-5 + sizes * 1e-9, 1e-5 + sizes * 8e-8
    return np.where(sizes < 2000, low, np.where(sizes < 65536, high, 1e-3 * jump + sizes * 8.4e-8))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0, 0.05), st.floats(2, 5))
def test_known_segments_are_found_again_under_noise(seed: int, noise: float, jump: float) -> None:
    chance = np.random.default_rng(seed)
    sizes = np.unique(np.exp(chance.uniform(0, np.log(4e6), 120)).astype(int))
    seconds = law(sizes, jump) * np.exp(noise * chance.standard_normal(len(sizes)))
    found = fit_segments(sizes, seconds, relative_errors=[noise] * len(sizes))
    values = np.array([value_at(found, size) for size in sizes])
    assert len(found) <= 6
    # As good as the noise allows, at small sizes as well as at large ones.
    for part in (sizes < 2000, sizes >= 65536):
        assert np.median(np.abs(values[part] / law(sizes[part], jump) - 1)) < 0.01 + noise / 2
    starts = [segment.from_bytes for segment in found]
    for place in (2000, 65536):
        below, above = sizes[sizes < place][-4:], sizes[sizes >= place][:4]
        assert any(below[0] <= start <= above[-1] for start in starts)


def test_one_straight_line_is_one_segment() -> None:
    sizes = np.geomspace(1, 1e6, 50)
    (only,) = fit_segments(sizes, 2e-5 + sizes * 1e-8)
    assert only.base_seconds == pytest.approx(2e-5)
    assert only.seconds_per_byte == pytest.approx(1e-8)


def test_base_and_slope_are_not_below_the_least_ones() -> None:
    sizes = np.geomspace(1000, 2000, 20)
    for segment in fit_segments(sizes, 1e-4 - sizes * 2e-8, least=(1e-9, 1e-12), max_segments=1):
        assert segment.seconds_per_byte == pytest.approx(1e-12)
        assert segment.base_seconds > 0


def test_one_wild_point_is_no_segment() -> None:
    sizes = np.geomspace(1, 1e6, 60)
    seconds = 2e-5 + sizes * 1e-8
    seconds[30] *= 5
    found = fit_segments(sizes, seconds)
    assert value_at(found, 10.0) == pytest.approx(2e-5 + 1e-7, rel=0.03)
    assert value_at(found, 5e5) == pytest.approx(2e-5 + 5e-3, rel=0.03)


def test_too_few_points() -> None:
    with pytest.raises(ValueError, match="two points"):
        fit_segments([1], [1.0])
