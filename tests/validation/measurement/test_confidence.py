"""How sure choices are: probabilities against made discrepancies, outlooks by brute force, nothing of the machine."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.simulator.schedule.bounds import busiest_messages
from collwise.simulator.schedule.shared import recorded
from collwise.validation.measurement.confidence import (
    BY_MEAN,
    CLOSE,
    ROBUST,
    Discrepancy,
    Sureness,
    judged,
    kept,
    learned,
    left_out,
    messages_of,
    outlooks_of,
    robust_times,
)
from collwise.validation.measurement.judging import PREDICTED, Cell, MeasuredPlace
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from tests.validation.times_of import times_of

NAMES = ("linear", "chain", "binary", "binomial")
TRUTH = Discrepancy(0.3, 0.1, 0.2, 4.0)


def made(
    truth: Discrepancy, machines: Sequence[str] = "abcd", jobs: int = 30, cells: int = 2, seed: int = 5
) -> list[Cell]:
    """Cells of machines whose true times deviate from predictions as a discrepancy says."""
    drawn = np.random.default_rng(seed)
    found = []
    for number in range(len(machines) * jobs * cells):
        machine, job = machines[number % len(machines)], str(number // len(machines) % jobs)
        place = MeasuredPlace(machine, job, "bcast", int(drawn.choice((4, 8, 16))))
        messages = np.array([messages_of("bcast", Choice(name), place.procs, 1024, 1) for name in NAMES])
        predicted = np.exp(drawn.normal(0, 0.5, len(NAMES)))
        factor = math.sqrt(truth.freedom / drawn.chisquare(truth.freedom))
        deviation = truth.algorithm * drawn.standard_normal(len(NAMES))
        deviation += truth.messages * drawn.standard_normal() * np.log(messages)
        deviation += truth.seconds * drawn.standard_normal() * np.log(predicted)
        true = predicted * np.exp(factor * deviation)
        found.append(cell_of(place, predicted, true))
    return found


def cell_of(place: MeasuredPlace, predicted: Array, true: Array) -> Cell:
    """A cell with these predicted and measured seconds of NAMES."""
    seconds, by_name = dict(zip(NAMES, true.tolist(), strict=True)), dict(zip(NAMES, predicted.tolist(), strict=True))
    best = min(seconds, key=seconds.__getitem__)
    lost = {name: one / seconds[best] - 1 for name, one in seconds.items()}
    chosen = min(by_name, key=by_name.__getitem__)
    codes = {name: name for name in NAMES}
    at = (place, "Open MPI 4.1.5", 1024, best, seconds[best], seconds, lost, lost, codes)
    return Cell(*at, {PREDICTED: chosen}, {PREDICTED: by_name}, 0.0, 100)


def test_scales_of_a_made_discrepancy_are_found_again() -> None:
    found = learned(made(TRUTH, jobs=100))
    assert found.algorithm == pytest.approx(TRUTH.algorithm, rel=0.2)
    assert found.messages == pytest.approx(TRUTH.messages, rel=0.4)
    assert found.seconds == pytest.approx(TRUTH.seconds, rel=0.4)
    assert 2.5 < found.freedom < 8
    assert found.machines == ("a", "b", "c", "d")


def test_probabilities_are_calibrated_on_machines_that_are_left_out() -> None:
    _, sure = judged(made(TRUTH, machines="ab", jobs=250))
    for low, high in ((0.0, 0.5), (0.5, 0.8), (0.8, 1.01)):
        some = [one for one in sure if low <= one.probability < high]
        assert len(some) > 50
        said = np.mean([one.probability for one in some])
        assert np.mean([one.right for one in some]) == pytest.approx(said, abs=0.07)


def test_an_outlook_is_that_of_brute_force() -> None:
    messages, seconds = np.array([2.0, 9.0, 9.0]), np.array([1.0, 1.2, 0.9])
    found = TRUTH.outlook(("one", "two", "two"), messages, seconds)
    drawn = np.random.default_rng(77)
    lost = np.zeros((60_000, 3))
    for row in lost:
        factor = math.sqrt(TRUTH.freedom / drawn.chisquare(TRUTH.freedom))
        own, slope, other = drawn.standard_normal(2), drawn.standard_normal(), drawn.standard_normal()
        true = np.log(seconds) + factor * (
            TRUTH.algorithm * own[[0, 1, 1]]
            + TRUTH.messages * slope * np.log(messages)
            + TRUTH.seconds * other * np.log(seconds)
        )
        row[:] = true - true.min()
    assert [one.mean for one in found] == pytest.approx(np.expm1(lost.mean(axis=0)), rel=0.06)
    assert [one.percentile_95 for one in found] == pytest.approx(np.expm1(np.percentile(lost, 95, axis=0)), rel=0.12)
    assert [one.probability for one in found] == pytest.approx((lost < math.log1p(CLOSE)).mean(axis=0), abs=0.03)
    assert [one.fastest for one in found] == pytest.approx((lost == 0).mean(axis=0), abs=0.03)


def test_segments_of_one_algorithm_share_its_deviation() -> None:
    alone = Discrepancy(0.5, 0.0, 0.0, 5.0)
    found = alone.outlook(("chain", "chain"), np.array([4.0, 4.0]), np.array([1.0, 1.2]))
    assert [one.probability for one in found] == [1.0, 0.0]
    assert [one.percentile_95 for one in found] == pytest.approx([0.0, 0.2])


def test_nothing_is_learned_from_the_machine_that_is_left_out() -> None:
    machine = random.choice("abc")
    cells, factor = made(TRUTH, machines="abc", jobs=3), float(np.exp(np.random.default_rng().uniform(-4.6, 4.6)))
    changed = [
        replace(cell, seconds={name: one * factor ** len(name) for name, one in cell.seconds.items()})
        if cell.place.machine == machine
        else cell
        for cell in cells
    ]
    found = left_out(cells)[machine]
    assert found == left_out(changed)[machine], factor
    assert machine not in found.machines


def test_each_job_counts_once() -> None:
    cells = made(TRUTH, machines="ab", jobs=3)
    twice = [*cells, *(cell for cell in cells if cell.place.job == "0")]
    assert learned(twice).algorithm == pytest.approx(learned(cells).algorithm, rel=1e-3)


def test_choices_under_the_discrepancy_are_deciders() -> None:
    cells = made(TRUTH, machines="ab", jobs=3)
    found, sure = judged(cells)
    assert len(sure) == len(found) == len(cells)
    assert all({BY_MEAN, ROBUST} < set(cell.choices) for cell in found)
    alone, nothing = judged([cell for cell in cells if cell.place.machine == "a"])
    assert not nothing
    assert all(BY_MEAN not in cell.choices for cell in alone)


def test_what_was_kept_has_jobs_as_the_unit() -> None:
    (cell, *_) = made(TRUTH, machines="a", jobs=1)
    said = [
        Sureness(replace(cell, place=replace(cell.place, job=job)), 0.95, right, True)
        for job, right in (("1", True), ("1", True), ("2", True), ("2", False), ("3", False))
    ]
    found = kept(said, [one.right for one in said])
    assert (found.choices, found.right, found.jobs, found.share) == (5, 3, 3, 0.5)
    assert (found.low, found.high) == pytest.approx((beta.ppf(0.025, 1.5, 2.5), beta.ppf(0.975, 2.5, 1.5)))
    none = kept([], [])
    assert (none.choices, none.jobs) == (0, 0)
    assert math.isnan(none.share)
    every = kept(said[:2], [True, True])
    assert (every.low, every.high) == (pytest.approx(0.025), 1.0)


@pytest.mark.parametrize("name", ["chain", "binary", "binomial", "scatter_ring_allgather"])
def test_messages_of_long_pipelines_are_extrapolated(name: str) -> None:
    whole = busiest_messages(recorded(case_of("bcast", Choice(name, 8192), 8, 1 << 20))[0])
    assert messages_of("bcast", Choice(name, 8192), 8, 1 << 20, 1) == pytest.approx(whole, rel=0.02)
    assert messages_of("bcast", Choice("linear"), 8, 1 << 20, 1) == 7


def test_decisions_have_the_outlook_of_their_choice_and_robust_times_its_95th_percentile() -> None:
    """Of choices up to twenty times as slow as the best, and the library's own is none of them."""
    choices = (Choice("linear"), Choice("binomial"), Choice("chain", 1024), LIBRARY_DECIDES)
    times = times_of("bcast", choices, (8,), (1024, 4096), [[[1.0, 1.0]], [[1.2, 0.9]], [[30.0, 2.0]], [[0.5, 0.5]]])
    table = DecisionTable("bcast", "bed", 1, "simulated", "test", {8: ((1024, choices[0]), (4096, choices[1]))}, times)
    found = outlooks_of(table, TRUTH)
    assert [(one.procs, one.message_bytes) for one in found] == [(8, 1024), (8, 4096)]
    robust = robust_times(times, TRUTH)
    for one, known in zip(found, ((1.0, 1.2), (1.0, 0.9, 2.0)), strict=True):
        some, size = choices[: len(known)], one.message_bytes
        messages = np.array([messages_of("bcast", choice, 8, size, 1) for choice in some])
        each = TRUTH.outlook([choice.algorithm for choice in some], messages, np.array(known))
        assert one.outlook == each[some.index(table.choice_at(8, size) or choices[3])]
        assert one.rivals == tuple(
            choice.algorithm for choice, other in zip(some, each, strict=True) if other.fastest >= 0.1
        )
        if len(known) == 3:
            expected = [0.5 * (1 + other.percentile_95) for other in each]
            assert [robust.seconds_of(choice, 8, size) for choice in some] == pytest.approx(expected)
    assert outlooks_of(replace(table, times=None), TRUTH) == []
    assert outlooks_of(replace(table, times=replace(times, source="measured")), TRUTH) == []
    with pytest.raises(UsageError, match="robust choices need simulated times of all choices, not measured ones"):
        robust_times(replace(times, source="measured"), TRUTH)
