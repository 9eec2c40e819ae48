"""LMO's parameters come back from the times that a machine of known parameters takes."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.common.errors import UsageError
from collwise.common.experiments import ONE_TO_TWO, ROUNDTRIP, Experiment
from collwise.models.fitting import lmo
from collwise.models.single_messages import LMO, Thresholds
from tests.models.fitting.lmo_laboratory import LMOLaboratory, random_machine

PARAMETERS = ("processor_seconds", "processor_seconds_per_byte", "latency_seconds", "network_seconds_per_byte")


def worst_error(estimated: LMO, machine: LMO) -> dict[str, float]:
    """By parameter: the largest relative error."""
    worst = {}
    for name in PARAMETERS:
        found, true = np.asarray(getattr(estimated, name)), np.asarray(getattr(machine, name))
        there = true != 0
        assert np.array_equal(found[~there], true[~there])
        worst[name] = float(np.max(np.abs(found[there] / true[there] - 1)))
    return worst


@settings(max_examples=60)
@given(
    procs=st.integers(3, 6),
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(0, 0.9),
    least=st.integers(0, 2),
    limit=st.integers(2000, 60000),
)
def test_any_machine_comes_back_exactly(procs: int, seed: int, spread: float, least: int, limit: int) -> None:
    machine = random_machine(procs, seed, spread)
    estimated = lmo.lmo_by_triplets(LMOLaboratory(machine, min_bytes=least, eager_limit_bytes=limit))
    assert max(worst_error(estimated, machine).values()) < 1e-9


def test_sixteen_processors_come_back() -> None:
    machine = random_machine(16, 1)
    lab = LMOLaboratory(machine)
    estimated = lmo.lmo_by_triplets(lab, Thresholds(5120, 4096, 6144))
    assert max(worst_error(estimated, machine).values()) < 1e-9
    assert estimated.heterogeneous
    assert estimated.thresholds == Thresholds(5120, 4096, 6144)
    assert estimated.predict(1000, 3, 7) == pytest.approx(machine.predict(1000, 3, 7), rel=1e-9)


def test_the_experiments_are_as_many_as_the_thesis_counts() -> None:
    procs = 7
    lab = LMOLaboratory(random_machine(procs, 2))
    lmo.lmo_by_triplets(lab)
    kinds = [experiment.kind for experiment in lab.asked]
    assert kinds.count(ROUNDTRIP) == 2 * comb(procs, 2)
    assert kinds.count(ONE_TO_TWO) == 2 * 3 * comb(procs, 3)
    assert lab.calls == 2
    assert {experiment.reply_bytes for experiment in lab.asked if experiment.kind == ONE_TO_TWO} == {1}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_noise_of_a_percent_averages_out(seed: int, spread: float) -> None:
    """Parameters of a processor are means of 105 triplets; those of a pair have the noise of one roundtrip."""
    machine = random_machine(16, seed, spread)
    estimated = lmo.lmo_by_triplets(LMOLaboratory(machine, noise=0.01, seed=seed))
    found, true = estimated.homogeneous(), machine.homogeneous()
    for name in PARAMETERS:
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.02)
    worst = worst_error(estimated, machine)
    assert max(worst["processor_seconds"], worst["processor_seconds_per_byte"]) < 0.05
    assert max(worst.values()) < 0.3


def test_the_slower_partner_may_change_with_the_size() -> None:
    """Processor 1 has the longer latency, processor 2 the slower link."""
    latency = np.array([[0, 90e-6, 10e-6], [90e-6, 0, 40e-6], [10e-6, 40e-6, 0]])
    network = np.array([[0, 1e-9, 90e-9], [1e-9, 0, 5e-9], [90e-9, 5e-9, 0]])
    machine = LMO(np.array([3e-6, 5e-6, 4e-6]), np.array([1e-10, 2e-10, 3e-10]), latency, network)
    assert max(worst_error(lmo.lmo_by_triplets(LMOLaboratory(machine)), machine).values()) < 1e-9


def test_a_shared_link_is_in_t_and_predictions_stay_right() -> None:
    """As if a link that all messages of a sender share were the slower part: 1 / beta is negative then, and kept."""
    procs = 4
    machine = LMO(
        np.full(procs, 5e-6),
        np.full(procs, 8e-9),
        20e-6 * (1 - np.eye(procs)),
        -6e-9 * (1 - np.eye(procs)),
    )
    estimated = lmo.lmo_by_triplets(LMOLaboratory(machine))
    assert max(worst_error(estimated, machine).values()) < 1e-9
    assert np.all(estimated.as_hockney().beta_seconds_per_byte[~np.eye(procs, dtype=bool)] > 0)


def test_averages_are_over_the_triplets_that_a_processor_or_a_pair_is_in() -> None:
    """One of processor 0's three triplets says 6 us more: (4.10) with n = 4 gives a third and a half of it."""

    def change(experiment: Experiment, seconds: float) -> float:
        wrong = experiment.kind == ONE_TO_TWO and experiment.processes in {(0, 1, 2), (0, 2, 1)}
        return seconds + (12e-6 if wrong else 0)

    machine = random_machine(4, 5)
    estimated = lmo.lmo_by_triplets(LMOLaboratory(machine, change=change))
    constants = np.asarray(estimated.processor_seconds) - np.asarray(machine.processor_seconds)
    latencies = np.asarray(estimated.latency_seconds) - np.asarray(machine.latency_seconds)
    assert constants == pytest.approx([2e-6, 0, 0, 0], abs=1e-13)
    assert latencies[0] == pytest.approx([0, -3e-6, -3e-6, 0], abs=1e-13)
    assert np.array_equal(latencies, latencies.T)


def test_many_processors_need_not_all_triplets() -> None:
    procs = 21
    machine = random_machine(procs, 3)
    lab = LMOLaboratory(machine)
    assert max(worst_error(lmo.lmo_by_triplets(lab), machine).values()) < 1e-9
    ones = [experiment for experiment in lab.asked if experiment.kind == ONE_TO_TWO]
    assert len(ones) < 2 * 3 * comb(procs, 3) / 4
    firsts = np.bincount([experiment.processes[0] for experiment in ones]) / 2
    assert firsts.min() >= lmo.TRIPLETS_EACH


def test_a_pair_in_no_triplet_takes_its_processors_averages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmo, "PROCS_WITH_ALL_TRIPLETS", 3)
    monkeypatch.setattr(lmo, "TRIPLETS_EACH", 1)
    machine = random_machine(12, 4)
    lab = LMOLaboratory(machine)
    assert max(worst_error(lmo.lmo_by_triplets(lab), machine).values()) < 1e-9
    assert len(lab.asked) < 2 * comb(12, 2) + 2 * 3 * 20


@pytest.mark.parametrize(("procs", "each"), [(3, 1), (5, 2), (17, 40), (51, 30), (8, 21), (8, 99)])
def test_triplets(procs: int, each: int) -> None:
    chosen = lmo.triplets(procs, each)
    assert len({tuple(triplet) for triplet in chosen.tolist()}) == len(chosen) <= comb(procs, 3)
    assert np.all(np.diff(chosen, axis=1) > 0)
    assert np.bincount(chosen.ravel(), minlength=procs).min() >= min(each, comb(procs - 1, 2))


def test_message_size() -> None:
    def size(eager_limit: int, leap: int | None = None) -> int:
        return lmo.message_size(LMOLaboratory(random_machine(3, 0), eager_limit_bytes=eager_limit), Thresholds(leap))

    assert size(65536) == 61440
    assert size(65536, 4096) == 3840
    assert size(8192, 65536) == 7680
    assert size(2**31) == 61440


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="at least 3"):
        lmo.lmo_by_triplets(LMOLaboratory(random_machine(2, 0)))
    with pytest.raises(UsageError, match="larger than the empty one"):
        lmo.lmo_by_triplets(LMOLaboratory(random_machine(3, 0), eager_limit_bytes=2))
