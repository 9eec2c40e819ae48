"""Machines that are drawn about a description, on which searches are judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.platforms import Platform, load
from collwise.platforms.description_file import checked
from collwise.simulator.timing import Case, Timing
from collwise.validation.hierarchy.cost_model import task_case, task_times
from collwise.validation.hierarchy.drawn import DEVIATION, NOISE, OFF, REPETITIONS, DrawnMachine, draw
from collwise.validation.hierarchy.space import EXHAUSTIVE
from collwise.validation.hierarchy.tuning import tune
from tests.validation.hierarchy.synthetic import SPACE, SyntheticMachine

STAMPEDE2 = load("stampede2")
SEEDS = range(40)


def numbers_of(platform: Platform) -> dict[str, float]:
    """Numbers of a platform that a draw changes, by their names."""
    calibration, topology = platform.calibration, platform.topology
    assert topology is not None
    assert platform.memory_bytes_per_second is not None
    return {
        "rate": platform.link_bytes_per_second,
        "latency": platform.link_latency_seconds,
        "hop": topology.hop_latency_seconds,
        "oversubscription": vars(topology)["oversubscription"],
        "loopback": platform.loopback_bytes_per_second,
        "memory": platform.memory_bytes_per_second,
        "reduction": calibration.reduce_seconds_per_byte,
        "threshold": calibration.eager_limit_bytes,
        "handshake": calibration.latency_factor[-1][1],
        **{f"base of {name}": getattr(calibration, name)[-1][1] for name in ("os", "or_", "ois")},
        **{f"bytes of {name}": getattr(calibration, name)[-1][2] for name in ("os", "or_", "ois")},
    }


def test_every_number_is_off_by_a_factor_of_its_own() -> None:
    known = numbers_of(STAMPEDE2)
    factors = np.array([[drawn[name] / known[name] for name in known] for drawn in map(numbers_of, drawn_platforms())])
    assert (factors >= 1 / OFF - 1e-3).all()
    assert (factors <= OFF + 1e-3).all()
    assert (np.ptp(np.log(factors), axis=0) > math.log(OFF)).all()
    together = np.corrcoef(np.log(factors).T) - np.eye(len(known))
    assert np.abs(together).max() < 0.8


def drawn_platforms() -> list[Platform]:
    return [draw(STAMPEDE2, seed).platform for seed in SEEDS]


def test_a_drawn_machine_can_be_described() -> None:
    for platform in drawn_platforms():
        assert checked(platform) == platform
        starts = {row[0] for row in platform.calibration.latency_factor}
        assert platform.calibration.eager_limit_bytes in starts  # the protocol's rows move with the threshold


def test_a_seed_is_a_machine() -> None:
    assert draw(STAMPEDE2, 1) == draw(STAMPEDE2, 1)
    rules = {
        (one.like_smpi, one.platform.calibration.crosstraffic) for one in (draw(STAMPEDE2, seed) for seed in SEEDS)
    }
    assert len(rules) == 4
    assert len({tuple(numbers_of(platform).values()) for platform in drawn_platforms()}) == len(SEEDS)
    with pytest.raises(UsageError, match="a description with equal nodes"):
        draw(load("hcl16"), 1)


MACHINE = DrawnMachine(STAMPEDE2, like_smpi=False, seed=1)


class Ones:
    """An engine by which all cases take a second."""

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        return {case: Timing(case, 1.0) for case in cases}


TRUE, MEASURED = MACHINE.true(Ones()), MACHINE.measured(Ones())


def test_configurations_deviate_alike_for_sizes_nearby() -> None:
    cases = SPACE.cases()
    true = TRUE.time(cases)
    deviations = {case: math.log(true[case].seconds) for case in cases}
    assert np.std(list(deviations.values())) == pytest.approx(DEVIATION, rel=0.2)
    large = [case for case in cases if case.message_bytes == 2**21]
    for case in large:
        assert deviations[case] == deviations[replace(case, message_bytes=2**22)]
    assert len({deviations[case] for case in large}) == len(large)


def test_benchmarks_are_noisy_and_true_times_are_not() -> None:
    cases = SPACE.cases()
    true, found = TRUE.time(cases), MEASURED.time(cases)
    errors = [math.log(found[case].seconds / true[case].seconds) for case in cases]
    assert np.std(errors) == pytest.approx(NOISE / math.sqrt(REPETITIONS), rel=0.15)
    assert {one.repetitions for one in found.values()} == {REPETITIONS}
    assert MEASURED.time(cases) == found
    within = [abs(true[case].seconds - one.seconds) < one.half_width_seconds for case, one in found.items()]
    assert np.mean(within) == pytest.approx(0.95, abs=0.03)


def test_tasks_deviate_as_their_configuration_does() -> None:
    whole = next(case for case in SPACE.cases() if case.message_bytes > 8 * case.segment_bytes)
    case, engine = task_case(whole, 8), SyntheticMachine()
    timers = engine, MACHINE.true(engine), MACHINE.measured(engine)
    plain, deviating, noisy = (task_times(timer.time([case])[case]) for timer in timers)
    factors = deviating.seconds / plain.seconds
    assert np.ptp(factors) < 1e-9
    assert factors.mean() != 1
    by_task = noisy.seconds / deviating.seconds
    assert np.ptp(by_task, axis=0).max() < 1e-9  # the same on all leaders
    assert len(set(by_task[0])) == len(plain.names)


def test_choices_are_judged_by_true_times() -> None:
    engine = SyntheticMachine()
    tuning = tune(SPACE, [EXHAUSTIVE], MACHINE.measured(engine), true=MACHINE.true(engine))
    [score] = tuning.scores
    assert score.cost == 1
    assert score.best_found < score.inputs
    assert 0 < score.mean < 0.02
