from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.models.implementation_aware.message_counts import Gamma, ceil_log2, floor_log2
from collwise.models.interface import Points, segment_count

ONE_SIZE = Gamma((8192.0,), ((1.0, 1.2, 1.35, 1.6),))
THREE_SIZES = Gamma((1000.0, 2000.0, 4000.0), ((1.0, 1.1, 1.2), (1.0, 1.4, 1.9), (1.0, 2.0, 3.0)))


def straight_line_slope(values: tuple[float, ...]) -> float:
    if len(values) == 1:
        return 0.0
    count = len(values)
    mean_p, mean_value = sum(range(2, 2 + count)) / count, sum(values) / count
    above = sum((p - mean_p) * (value - mean_value) for p, value in zip(range(2, 2 + count), values, strict=True))
    return above / sum((p - mean_p) ** 2 for p in range(2, 2 + count))


def gamma_by_hand(gamma: Gamma, procs: int, message_bytes: float) -> float:
    def of_row(values: tuple[float, ...]) -> float:
        last = 1 + len(values)
        if procs <= 2:
            return values[0]
        if procs >= last:
            return values[-1] + straight_line_slope(values) * (procs - last)
        return values[procs - 2]

    sizes = gamma.message_bytes
    if message_bytes <= sizes[0]:
        return of_row(gamma.values[0])
    for i in range(len(sizes) - 1):
        if message_bytes <= sizes[i + 1]:
            share = (message_bytes - sizes[i]) / (sizes[i + 1] - sizes[i])
            low, high = of_row(gamma.values[i]), of_row(gamma.values[i + 1])
            return low + (high - low) * share
    return of_row(gamma.values[-1])


@pytest.mark.parametrize("gamma", [ONE_SIZE, THREE_SIZES, Gamma((8192.0,), ((1.0,),))])
@given(st.lists(st.integers(1, 200), min_size=1), st.lists(st.floats(0, 10000), min_size=1))
def test_gamma_is_interpolated_between_sizes_and_goes_on_straight(
    gamma: Gamma, procs: list[int], sizes: list[float]
) -> None:
    sizes = [*sizes, *gamma.message_bytes]
    expected = [[gamma_by_hand(gamma, p, m) for m in sizes] for p in procs]
    assert gamma(np.array(procs)[:, None], sizes) == pytest.approx(np.array(expected))


def test_gamma_fits_each_slope_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    polyfit = np.polyfit

    def counted(x: np.ndarray, y: np.ndarray, degree: int) -> np.ndarray:
        fitted.append(y)
        return polyfit(x, y, degree)

    monkeypatch.setattr(np, "polyfit", counted)
    gamma = Gamma(THREE_SIZES.message_bytes, ((1.0, 1.1, 1.3), *THREE_SIZES.values[1:]))
    for procs in range(32, 64):
        gamma(procs, 3000)
    assert len(fitted) == len(gamma.values)


def test_logarithms_of_whole_numbers_are_exact() -> None:
    values = [*range(1, 5001), *(2**k + d for k in range(13, 41) for d in (-1, 0, 1))]
    floors, ceilings = floor_log2(np.array(values, dtype=float)), ceil_log2(np.array(values, dtype=float))
    assert floors.tolist() == [value.bit_length() - 1 for value in values]
    assert ceilings.tolist() == [(value - 1).bit_length() for value in values]


@given(st.integers(1, 2**40), st.integers(1, 2**30))
def test_segment_count(message_bytes: int, segment_bytes: int) -> None:
    (count,) = segment_count(np.array([float(message_bytes)]), np.array([float(segment_bytes)]))
    assert (count - 1) * segment_bytes < message_bytes <= count * segment_bytes


def test_segment_count_of_unsegmented_and_empty_messages() -> None:
    points = Points.of(4, [0, 1, 8192, 8193, 10**9, 0], [8192, 8192, 8192, 8192, 0, 0])
    assert points.segments.tolist() == [1, 1, 1, 2, 1, 1]


def test_points_broadcast_to_one_shape() -> None:
    points = Points.of([[2], [3]], [10, 20, 30], 8)
    assert points.procs.shape == points.message_bytes.shape == points.segment_bytes.shape == (2, 3)
    assert points.procs.tolist() == [[2, 2, 2], [3, 3, 3]]
    assert points.message_bytes.tolist() == [[10, 20, 30]] * 2
    assert points.segments.tolist() == [[2, 3, 4]] * 2
    assert Points.of(2, 1).parameter == 4
    assert Points.of(2, 1, parameter=0).parameter == 4
    assert Points.of(2, 1, parameter=7).parameter == 7
