"""The searches, on a synthetic machine of which the best configurations are known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.timing import Case, Timing
from collwise.studies.papers.luo2020.heuristics import allowed, with_heuristics, worth_testing
from collwise.validation.hierarchy.corrected import Corrected
from collwise.validation.hierarchy.cost_model import EXPERIMENT
from collwise.validation.hierarchy.space import (
    EXHAUSTIVE,
    PREDICT,
    SEARCHES,
    Space,
    by_input,
    outputs,
    segments_of,
)
from collwise.validation.hierarchy.tuning import Billed, Found, search, tune
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of
from tests.validation.hierarchy.synthetic import SPACE, SyntheticMachine

CASES = SPACE.cases()


class Distorted:
    """Predictions that are wrong by a factor that depends on the algorithm, the segments and the message."""

    def time(self, cases: Sequence[Case], /) -> dict[Case, Timing]:
        true = SyntheticMachine().time(cases)
        return {case: replace(one, seconds=one.seconds * _factor(case)) for case, one in true.items()}


def _factor(case: Case) -> float:
    by_name = {"tasks_chain": 0.7, "tasks_binary": 1.1, "tasks_binomial": 0.9}[case.algorithm]
    segments = segments_of(case.message_bytes, case.segment_bytes)
    return by_name * (1 + 0.05 * math.log2(segments)) * (1 + 0.02 * math.log2(case.message_bytes))


class Constant:
    """A timer by which all cases take the same."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing

    def time(self, cases: Sequence[Case], /) -> dict[Case, Timing]:
        return {case: replace(self._timing, case=case) for case in cases}


@pytest.fixture(scope="module")
def tuning():
    return tune(SPACE, SEARCHES, SyntheticMachine(), Distorted(), budget=0.02)


def test_scores_compare_choices_and_assumed_times_with_all_times(tuning) -> None:
    """Tasks are exact on this machine, but for messages whose last segment is shorter."""
    every = tuning.found["exhaustive"]
    assert len(every.seconds) == len(CASES) == len(every.bill.timings)
    assert set(every.best) == set(SPACE.inputs)
    for score in tuning.scores:
        found, lost = tuning.found[score.search], []
        for one, cases in by_input(CASES).items():
            least = min(every.seconds[case] for case in cases)
            lost.append(every.by_input[one][found.best[one]] / least - 1)
        assert (score.mean, score.worst) == (pytest.approx(sum(lost) / len(lost)), pytest.approx(max(lost)))
        assert (score.inputs, score.best_found) == (len(lost), lost.count(0.0))
        errors = [abs(seconds / every.seconds[case] - 1) for case, seconds in found.seconds.items()]
        assert score.median_error == pytest.approx(statistics.median(errors))
        assert score.machine_seconds == sum(one.seconds * one.repetitions for one in found.bill.timings.values())
        assert score.cost == score.machine_seconds / tuning.exhaustive_seconds
        assert score.benchmarks == len(found.bill.timings)
    by_tasks = tuning.scores[SEARCHES.index("tasks")]
    assert by_tasks.mean == pytest.approx(0.0, abs=1e-9)
    assert by_tasks.median_error < 1e-9
    assert by_tasks.cost < 0.5


def test_heuristics_only_leave_out(tuning) -> None:
    made = {name: tuning.found[name] for name in ("exhaustive", "tasks")}
    found = with_heuristics(replace(tuning, found=made), SyntheticMachine()).found
    assert list(found) == ["exhaustive", "exhaustive-heuristics", "tasks", "tasks-heuristics"]
    for name, whole in made.items():
        less = found[f"{name}-heuristics"]
        assert set(less.seconds) < set(whole.seconds)
        assert less.bill.seconds < whole.bill.seconds
        assert set(less.best) == set(SPACE.inputs)


def test_prediction_keeps_to_its_budget_and_loses_little(tuning) -> None:
    [score] = [one for one in tuning.scores if one.search == PREDICT]
    assert score.cost <= 0.02
    assert score.mean < 0.002
    assert score.mean < 0.2 * mean_loss(tuning.found["exhaustive"], search(EXHAUSTIVE, CASES, Distorted()).seconds)


def mean_loss(truth: Found, seconds: Mapping[Case, float]) -> float:
    """The mean slowdown of what these seconds say is best."""
    picks = {one: min(cases, key=seconds.__getitem__) for one, cases in by_input(seconds).items()}
    best = {one: truth.by_input[one][choice] for one, choice in truth.best.items()}
    return sum(truth.seconds[pick] / best[one] - 1 for one, pick in picks.items()) / len(picks)


def test_prediction_measures_no_more_than_is_worth_it() -> None:
    [score] = tune(SPACE, [PREDICT], SyntheticMachine(), SyntheticMachine(), budget=0.5).scores
    assert score.benchmarks < 0.2 * len(CASES)
    assert score.cost < 0.1


def test_measured_ratios_correct_predictions_nearby() -> None:
    predictions = Corrected(dict.fromkeys(CASES, 1.0))
    near, far = CASES[0], CASES[-1]

    def add(case: Case, seconds: float) -> None:
        predictions.add({case: Timing(case, seconds)})

    add(near, 1.5)
    assert predictions.seconds[near] == pytest.approx(1.5)
    assert 1.05 < predictions.seconds[far] < 1.5  # most of what is known of it is the prediction
    beside = replace(near, message_bytes=2 * near.message_bytes)
    assert predictions.seconds[far] < predictions.seconds[beside] < 1.5
    add(far, 0.8)
    assert predictions.seconds[near] == pytest.approx(1.5)
    assert predictions.seconds[far] == pytest.approx(0.8)


def test_noise_is_not_taken_for_the_truth() -> None:
    exact, noisy = Corrected({CASES[0]: 1.0}), Corrected({CASES[0]: 1.0})
    exact.add({CASES[0]: Timing(CASES[0], 2.0)})
    noisy.add({CASES[0]: Timing(CASES[0], 2.0, half_width_seconds=1.0)})
    assert noisy.seconds[CASES[0]] < 1.9 < exact.seconds[CASES[0]]


def test_budgets_are_kept_while_times_are_uncertain() -> None:
    predictions = Corrected(dict.fromkeys(CASES, 1.0))
    assert 0.3 * len(CASES) < predictions.min_sum_of_seconds() < 0.8 * len(CASES)
    assert predictions.most_telling(10.0, 1.0, 0.0) == []  # each may take longer
    assert 0 < len(predictions.most_telling(2.0, 100.0, 0.0)) <= 2
    assert predictions.most_telling(2.0, 100.0, math.inf) == []


def test_prediction_needs_predictions() -> None:
    with pytest.raises(ValueError, match="needs predictions"):
        search(PREDICT, CASES, SyntheticMachine())


def test_a_benchmark_is_paid_once() -> None:
    bill = Billed(SyntheticMachine())
    bill.time(CASES[:1])
    once = bill.seconds
    bill.time(CASES[:1])
    assert bill.seconds == once > 0
    assert len(bill.timings) == 1


def test_repetitions_are_paid() -> None:
    bill = Billed(Constant(Timing(CASES[0], 2.0, repetitions=5)))
    bill.time(CASES[:3])
    assert bill.seconds == pytest.approx(30.0)
    assert bill.repetitions == pytest.approx(5.0)


def test_tasks_are_timed_once_for_all_message_sizes() -> None:
    timer = SyntheticMachine()
    search("tasks", CASES, timer)
    assert all(case.experiment == EXPERIMENT for case in timer.log)
    assert len(timer.log) == len(set(timer.log)) < len(CASES) / 3


def test_a_failed_benchmark_ends_the_search() -> None:
    timer = Constant(Timing(CASES[0], math.nan, error="no memory"))
    with pytest.raises(CollwiseError, match="tasks_chain on 8 processes failed: no memory"):
        search("exhaustive", CASES, timer)


def test_the_exhaustive_time_is_estimated_from_the_tasks() -> None:
    tuned = tune(SPACE, ("tasks",), SyntheticMachine())
    whole = tune(SPACE, ("exhaustive",), SyntheticMachine())
    assert tuned.is_estimate
    assert tuned.exhaustive_seconds == pytest.approx(whole.exhaustive_seconds)


# --- The space --------------------------------------------------------------------------------------------------------


def test_configurations_that_would_do_the_same_are_tried_once() -> None:
    assert SPACE.segments_for(2**12) == (2**14,)
    assert SPACE.segments_for(2**16) == (2**14, 2**16)
    short = SPACE.choices(2**12)
    assert {choice.limit_bytes for choice in short} == {0}
    assert {choice.limit_bytes for choice in SPACE.choices(2**18)} == {0, 2**14}
    assert all(choice.limit_bytes < choice.segment_bytes for choice in SPACE.choices(2**22))


def test_the_librarys_own_collectives_take_no_pieces() -> None:
    space = replace(SPACE, algorithms=("library", "chain"))
    assert {one.limit_bytes for one in space.choices(2**22) if one.algorithm == "tasks_library"} == {0}


def test_wrong_spaces() -> None:
    with pytest.raises(UsageError, match="allreduce has no tasks with 'ring'"):
        replace(SPACE, collective="allreduce", algorithms=("ring",))
    with pytest.raises(UsageError, match="gatherv has no task-based algorithms"):
        replace(SPACE, collective="gatherv")
    with pytest.raises(UsageError, match="no tasks with 'ring' between nodes; valid: chain"):
        replace(SPACE, algorithms=("ring",))
    with pytest.raises(UsageError, match="at least 1 byte"):
        replace(SPACE, segment_bytes=(0,))


def test_outputs_are_those_of_table_2() -> None:
    choice = Choice("tasks_binary", 65536, 1, 16384)
    assert outputs("bcast", choice) == {
        **{"fs": 65536, "imod": "rounds", "smod": "shared memory", "ibalg": "binary", "iralg": None},
        **{"ibs": 16384, "irs": None},
    }
    assert outputs("allreduce", replace(choice, limit_bytes=0))["irs"] == 65536
    assert outputs("allreduce", Choice("tasks_library", 4096)) == {
        **{"fs": 4096, "imod": "library", "smod": "point-to-point", "ibalg": None, "iralg": None},
        **{"ibs": None, "irs": None},
    }


@pytest.mark.parametrize(
    ("algorithm", "within", "segment", "pieces", "size", "worth"),
    [
        ("chain", 0, 2**14, 0, 2**18, True),
        ("chain", 0, 2**16, 0, 2**18, False),  # 4 segments do not fill a chain of 16
        ("chain", 0, 2**16, 2**14, 2**18, True),
        ("binomial", 0, 2**14, 0, 2**16, True),
        ("binomial", 0, 2**14, 0, 2**20, False),
        ("binary", 2, 2**16, 0, 2**20, False),  # one-sided for short segments
        ("binary", 2, 2**20, 0, 2**22, True),
        ("binary", 1, 2**20, 0, 2**22, False),
        ("binary", 0, 2**14, 2**13, 2**20, False),  # two pieces
        ("binary", 0, 2**12, 0, 2**22, False),  # 1024 segments
    ],
)
def test_rules_of_thumb(algorithm: str, within: int, segment: int, pieces: int, size: int, worth: bool) -> None:
    case = case_of("bcast", Choice(f"tasks_{algorithm}", segment, within, pieces), 16 * 8, size, 8)
    assert worth_testing(case) == worth


def test_rules_of_thumb_leave_something_for_every_input() -> None:
    only_binomial = Space("bcast", (4,), (2,), (2**22,), (2**12,), ("binomial",))
    assert allowed(only_binomial) == only_binomial.cases()
