"""Thresholds come back from series with leaps and escalations at known sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.common.experiments import GATHER, SCATTER, Experiment
from collwise.models.fitting import lmo
from collwise.models.single_messages import Thresholds
from tests.models.fitting.lmo_laboratory import LMOLaboratory, random_machine

KIB = 1024
# Section 7.2: the 16-node cluster.
THESIS = Thresholds(64 * KIB, 5 * KIB, 64 * KIB)
SIZES = list(range(KIB, 200 * KIB + 1, KIB))


def as_in_the_thesis(seed: int, likely: float = 0.4) -> Callable[[Experiment, float], float]:
    """Scatter leaps at S, gather escalates tenfold and more at random sizes from M1 to M2 and is steeper beyond."""

    def change(experiment: Experiment, seconds: float) -> float:
        size = experiment.message_bytes
        if experiment.kind == SCATTER:
            return seconds * (1.1 if size >= 64 * KIB else 1)
        if size >= 64 * KIB:
            return seconds * 1.5
        generator = np.random.default_rng((seed, size))
        if experiment.kind == GATHER and size >= 5 * KIB and generator.random() < likely:
            return seconds + generator.uniform(0.1, 0.3)
        return seconds

    return change


@pytest.mark.parametrize(("seed", "noise"), [(1, 0.0), (2, 0.01), (3, 0.03)])
def test_the_thesis_thresholds_come_back(seed: int, noise: float) -> None:
    lab = LMOLaboratory(random_machine(16, seed), noise=noise, seed=seed, change=as_in_the_thesis(seed))
    assert lmo.fit_thresholds(lab) == THESIS


def test_rare_escalations_are_found_at_finer_strides() -> None:
    """Where one size of twenty escalates, the first stride sees none near M1."""
    lab = LMOLaboratory(random_machine(8, 5), change=as_in_the_thesis(5, likely=0.05))
    coarse = lmo.fit_thresholds(lab, finest_stride_bytes=KIB).gather_irregular_from_bytes
    assert coarse is not None
    assert coarse > 5 * KIB
    assert lmo.fit_thresholds(lab) == THESIS


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_deterministic_machine_has_no_thresholds(noise: float) -> None:
    lab = LMOLaboratory(random_machine(8, 6), noise=noise, seed=6)
    assert lmo.fit_thresholds(lab) == Thresholds()
    assert lab.effort.measurements == 2 * len(SIZES)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_leap_at_the_eager_limit_is_s(noise: float) -> None:
    def rendezvous(experiment: Experiment, seconds: float) -> float:
        return seconds + (2e-4 if experiment.kind == SCATTER and experiment.message_bytes >= 32 * KIB else 0)

    lab = LMOLaboratory(random_machine(8, 7), noise=noise, seed=7, change=rendezvous)
    assert lmo.fit_thresholds(lab) == Thresholds(scatter_leap_bytes=32 * KIB)


def test_a_gather_that_becomes_serial_at_once_has_m2_alone() -> None:
    def serial(experiment: Experiment, seconds: float) -> float:
        return seconds * (1.5 if experiment.kind == GATHER and experiment.message_bytes >= 64 * KIB else 1)

    lab = LMOLaboratory(random_machine(8, 8), change=serial)
    assert lmo.fit_thresholds(lab) == Thresholds(gather_regular_from_bytes=64 * KIB)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_lines_are_found_where_they_meet(noise: float) -> None:
    """Two leaps, one of them down, and a change of slope that is no leap."""
    sizes = np.array(SIZES)
    times = 1e-4 + 1e-8 * sizes
    times[50:] *= 2
    times[100:] *= 0.6
    times[150:] += 8e-8 * (sizes[150:] - sizes[149])
    times *= 1 + noise * np.random.default_rng(9).standard_normal(len(times))
    found = [start for start, _ in lmo.lines(SIZES, times.tolist())]
    assert len(found) == 4
    assert found[:3] == [0, 50, 100]
    assert abs(found[3] - 150) <= 1 + 100 * noise
    assert lmo.scatter_leap(SIZES, times.tolist()) == SIZES[50]


def test_costs_of_lines_are_those_of_least_squares() -> None:
    """Also of series in which some times are a thousand times as long as others."""
    generator = np.random.default_rng(12)
    sizes = np.array(SIZES, dtype=float)
    times = (1e-4 + 1e-8 * sizes) * generator.normal(1, 0.02, len(sizes)) + 0.2 * (generator.random(len(sizes)) < 0.1)
    costs, points = lmo._costs(sizes, times), np.column_stack([sizes, times])
    for start, end in combinations(range(0, len(SIZES) + 1, 3), 2):
        if end - start < lmo.MIN_POINTS:
            assert costs[start, end] == np.inf
        else:
            deviation = max(lmo._line(points, start, end)[1], lmo.TOLERANCE)
            assert costs[start, end] == pytest.approx(2 * (end - start) * np.log(deviation), rel=1e-6)


def test_a_change_of_slope_is_no_leap() -> None:
    times = [1e-4 + 1e-8 * (size + 3 * max(0, size - 64 * KIB)) for size in SIZES]
    assert len(lmo.lines(SIZES, times)) == 2
    assert lmo.scatter_leap(SIZES, times) is None


@pytest.mark.parametrize("bent", [0.0, 5e-4])
def test_rounding_and_small_bends_are_no_change(bent: float) -> None:
    times = [round((1e-4 + 1e-8 * size) * (1 + bent * (size > 64 * KIB)), 8) for size in SIZES]
    assert lmo.lines(SIZES, times) == [(0, len(SIZES))]


def test_noise_is_no_leap() -> None:
    """Few points let noise look like a change of lines now and then."""
    sizes = SIZES[3::4]
    breaks = 0
    for seed in range(12):
        noise = np.random.default_rng(seed).normal(1, 0.03, len(sizes))
        times = [(1e-4 + 1e-8 * size) * factor for size, factor in zip(sizes, noise, strict=True)]
        breaks += len(lmo.lines(sizes, times)) - 1
        assert lmo.scatter_leap(sizes, times) is None
    assert breaks > 0


def test_gather_irregular_to_the_end_has_no_m2() -> None:
    generator = np.random.default_rng(10)
    times = [1e-4 + 1e-8 * size + (size >= 100 * KIB) * generator.choice([0.0, 0.5]) for size in SIZES]
    assert lmo.gather_regular_from(SIZES, times) is None


def test_escalations_too_rare_to_scatter_are_irregular() -> None:
    """More of them than lines could be set apart for, up to 64 KiB."""
    times = [(1e-4 + 1e-8 * size) * (1.5 if size >= 64 * KIB else 1) for size in SIZES]
    for place in range(5, 63, 7):
        times[place] *= 40
    assert lmo.gather_regular_from(SIZES, times) == 64 * KIB
    for place in range(70, 200, 30):
        times[place] *= 40
    assert lmo.gather_regular_from(SIZES, times) == SIZES[191]


def test_less_than_tenfold_is_irregular_without_m1() -> None:
    generator = np.random.default_rng(11)
    times = [(1e-4 + 1e-8 * size) * (1 if size >= 64 * KIB else generator.choice([1, 3])) for size in SIZES]
    assert lmo.gather_regular_from(SIZES, times) == 64 * KIB
    assert lmo.gather_irregular_from(lambda sizes: [], SIZES, times) is None


def test_escalations_are_tenfold() -> None:
    assert lmo.escalations([1, 2, 29, 30, 3, 4]).tolist() == [False, False, False, True, False, False]


def test_m1_below_a_kibibyte_is_not_rounded_to_nothing() -> None:
    def gather(size: int) -> float:
        return 1.0 if 300 <= size < 9000 and size % 2 == 0 else 1e-3

    def measure(sizes: list[int]) -> list[float]:
        return [gather(size) for size in sizes]

    assert lmo.gather_irregular_from(measure, SIZES, measure(SIZES)) == 300


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="ascending"):
        lmo.lines([2, 1], [1.0, 1.0])
    with pytest.raises(UsageError, match="above 0"):
        lmo.lines([1, 2], [1.0, 0.0])
