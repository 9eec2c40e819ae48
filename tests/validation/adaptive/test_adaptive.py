"""The adaptive search where the truth is known: what it finds, spends, keeps within and resumes from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from collwise.common.errors import CollwiseError
from collwise.predictions import FittedModel, predicted_times
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import USUAL_METHOD
from collwise.simulator.sweeps.runner import Keep
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.present.searches import point_rows, search_document, summary_lines
from collwise.validation.adaptive import Goal
from collwise.validation.adaptive.belief import Belief, Process, expected_gain
from collwise.validation.adaptive.search import MAX_REPETITIONS, REPETITIONS, AdaptiveSearch, Searched, pooled
from collwise.validation.times.grid import Grid
from collwise.validation.times.measured import stored_times
from tests.models.parameter_examples import fitted

KIB = 1024
LAUNCH_SECONDS, NOISE = 1.0, 0.02
_OF_MODEL = predicted_times(
    FittedModel(fitted("hockney")).models["hockney"],
    Grid.of("bcast", (4, 8), tuple(KIB * 2**k for k in range(0, 11, 2)), segments=(8 * KIB, 64 * KIB)).cases(),
)
# The full grid takes a few minutes.
PREDICTED = {case: seconds * 40 / sum(_OF_MODEL.values()) for case, seconds in _OF_MODEL.items()}
CASES = list(PREDICTED)
_numbers = itertools.count()


class NoisyRunner:
    """A Runner and a clock: times around a truth, and the machine time that they and the launches take."""

    repetitions = REPETITIONS

    def __init__(self, truth: Mapping[Case, float | None], seed: int = 0, stop_after: float = math.inf) -> None:
        self.processes_started, self.now = 0, 0.0
        self.made: list[Case] = []
        self._truth, self._random, self._stop_after = truth, np.random.default_rng(seed), stop_after
        self.configuration = Configuration("measured", "bed", "Open MPI", (("runner", str(next(_numbers))),))

    def weight(self, case: Case) -> float:
        return 1.0

    def clock(self) -> float:
        return self.now

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        self.processes_started += 1
        self.now += LAUNCH_SECONDS
        for case in cases:
            if len(self.made) >= self._stop_after:
                raise CollwiseError("stopped")
            self.made.append(case)
            seconds = self._truth[case]
            if seconds is None:
                keep(Timing(case, math.nan, error="failed"))
                continue
            samples = tuple(seconds * np.exp(self._random.normal(0, NOISE, self.repetitions)))
            self.now += (self.repetitions + USUAL_METHOD.warmup) * seconds
            keep(Timing(case, float(np.mean(samples)), repetitions=self.repetitions, samples=samples))


def biased(seed: int, share: float = 0.3) -> dict[Case, float]:
    """A truth that the model misses: by algorithm, and by algorithm with the size."""
    random = np.random.default_rng(seed)
    names = dict.fromkeys(case.algorithm for case in CASES)
    of = {name: (random.normal(0, share), random.normal(0, share / 10)) for name in names}
    return {
        case: seconds * math.exp(of[case.algorithm][0] + of[case.algorithm][1] * math.log2(case.message_bytes / KIB))
        for case, seconds in PREDICTED.items()
    }


def searched(
    store: Store,
    truth: Mapping[Case, float | None],
    predictions: Sequence[Mapping[Case, float]] = (),
    goal: Goal | None = None,
    **how: float,
) -> tuple[Searched, NoisyRunner]:
    runner = NoisyRunner(truth, **how)  # type: ignore[arg-type]
    search = AdaptiveSearch(
        runner, runner.configuration, list(truth), store, predictions, goal or Goal(), clock=runner.clock
    )
    return search.run(), runner


def loss(found: Searched, truth: Mapping[Case, float | None]) -> list[float]:
    """What the choices lose in truth against the best case of each point."""
    best: dict[tuple[int, int], float] = {}
    for case, seconds in truth.items():
        if seconds is not None:
            point = case.procs, case.message_bytes
            best[point] = min(best.get(point, math.inf), seconds)
    chosen = [one.timing.case for one in found.points if one.timing is not None]
    return [float(truth[case] or math.inf) / best[case.procs, case.message_bytes] - 1 for case in chosen]


def full_seconds(truth: Mapping[Case, float]) -> float:
    method = USUAL_METHOD
    return LAUNCH_SECONDS + (method.precision.min_repetitions + method.warmup) * sum(truth.values())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite")


# Where few measured times were taken as proof that predictions are good, choices for long messages lost 4 to 11 % on
# average on the last four of these machines.
MACHINES = (0, 1, 157, 216, 1203, 1562)


@pytest.mark.parametrize("seed", MACHINES)
@pytest.mark.parametrize(("predictions", "lost", "share"), [([PREDICTED], 0.02, 0.35), ([], 0.03, 0.7)])
def test_choices_are_good_for_little_time_by_wrong_predictions_and_from_nothing(
    predictions: Sequence[Mapping[Case, float]], lost: float, share: float, seed: int, store: Store
) -> None:
    truth = biased(seed)
    found, runner = searched(store, truth, predictions, seed=seed)
    losses = loss(found, truth)
    assert len(losses) == len(found.points) == 12
    assert np.mean(losses) < lost
    assert runner.now < share * full_seconds(truth)
    times = stored_times(store, "measured", "bed", "bcast")
    for one in found.points:
        point = one.procs, one.message_bytes
        assert one.timing is not None
        assert one.timing.seconds == min(times.at_point(*point).values())
        best = times.best_choice(*point)
        assert best is not None
        # Two repetitions alone would have an interval of several times this.
        assert 0 < times.half_width_of(best, *point) < 0.15 * one.timing.seconds


def test_right_predictions_leave_little_to_measure(store: Store) -> None:
    found, runner = searched(store, PREDICTED, [PREDICTED])
    assert np.mean(loss(found, PREDICTED)) < 0.01
    assert len(set(runner.made)) < len(CASES) / 3
    assert found.mean_loss <= Goal().loss
    assert found.stopped == "the choices are expected to lose at most 0.5 % on average"
    assert found.full_seconds == pytest.approx(full_seconds(PREDICTED), rel=0.1)


@pytest.mark.parametrize("predicted", [True, False])
def test_cases_that_take_more_repetitions_than_the_fewest_leave_time_for_every_point(
    store: Store, monkeypatch: pytest.MonkeyPatch, predicted: bool
) -> None:
    monkeypatch.setattr(NoisyRunner, "repetitions", MAX_REPETITIONS)
    truth = biased(4)
    budget = 0.5 * full_seconds(truth)
    found, runner = searched(store, truth, [PREDICTED] if predicted else [], Goal(budget, loss=1e-6))
    # Where nothing is known, what may take far longer than expected is left out at the end.
    assert sum(one.timing is None for one in found.points) <= (0 if predicted else 2)
    assert runner.now < 1.1 * budget + LAUNCH_SECONDS


def test_a_search_that_was_stopped_resumes_from_the_store(store: Store) -> None:
    truth = biased(4)
    first = NoisyRunner(truth, stop_after=10)
    goal = Goal(budget_seconds=0.4 * full_seconds(truth))

    def search(runner: NoisyRunner, configuration: Configuration) -> Searched:
        return AdaptiveSearch(runner, configuration, CASES, store, [PREDICTED], goal, clock=runner.clock).run()

    with pytest.raises(CollwiseError, match="stopped"):
        search(first, first.configuration)
    assert set(store.timings(first.configuration)) == set(first.made)
    second = NoisyRunner(truth, seed=1)
    found = search(second, first.configuration)
    repetitions = sum(one.repetitions for one in store.timings(first.configuration).values())
    assert repetitions == REPETITIONS * (len(first.made) + len(second.made)) == found.spent.repetitions
    assert found.spent.seconds > second.now
    third = NoisyRunner(truth, seed=2)
    again = search(third, first.configuration)
    assert third.made == []
    assert [one.timing for one in again.points] == [one.timing for one in found.points]


def test_what_fails_is_never_chosen_and_is_told(store: Store) -> None:
    truth: dict[Case, float | None] = {**biased(5)}
    for case in CASES:
        if case.algorithm in ("binomial", "chain"):
            truth[case] = None
    found, runner = searched(store, truth, [PREDICTED])
    assert {one.case.algorithm for one in found.failed} <= {"binomial", "chain"}
    assert found.failed
    assert all(runner.made.count(one.case) == 1 for one in found.failed)
    assert np.mean(loss(found, truth)) < 0.02


def test_several_collectives_share_rounds(store: Store) -> None:
    truth = biased(6)
    both = {**truth, **{replace(case, collective="reduce"): seconds for case, seconds in truth.items()}}
    found, runner = searched(store, both)
    assert {one.collective for one in found.points} == {"bcast", "reduce"}
    assert runner.processes_started == found.spent.rounds
    assert {case.collective for case in runner.made[:40]} == {"bcast", "reduce"}


def test_without_a_choice_the_report_says_so(store: Store) -> None:
    found, _ = searched(store, biased(8), goal=Goal(3.5))
    assert any(one.timing is None for one in found.points)
    assert "points have no measured choice" in summary_lines(found)[-1]
    assert ("-", "-") in {(row[3], row[-1]) for row in point_rows(found)}
    assert None in {point["loss"] for point in search_document(found)["points"]}


@settings(max_examples=3)
@given(st.integers(0, 1000), st.floats(0.05, 1.0), st.booleans())
def test_a_search_keeps_its_budget_and_finds_the_best_with_all_the_time(seed: int, share: float, known: bool) -> None:
    truth = biased(seed)
    predictions = [PREDICTED] if known else []
    budget = share * full_seconds(truth)
    with TemporaryDirectory() as folder:
        limited, runner = searched(Store(Path(folder, "one")), truth, predictions, Goal(budget), seed=seed)
        free, _ = searched(Store(Path(folder, "two")), truth, predictions, Goal(loss=1e-4), seed=seed)
    assert runner.now <= budget or limited.spent.rounds == 1
    assert max(loss(free, truth)) < 3 * NOISE


# What is believed


@given(st.floats(-3, 3), st.floats(1e-3, 3))
def test_the_expected_gain_is_that_of_a_normal(behind: float, deviation: float) -> None:
    points = np.linspace(-8, 8, 20001)
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    wanted = float((np.maximum(deviation * points - behind, 0) * density).sum() * (points[1] - points[0]))
    found = float(expected_gain(np.array([behind]), np.array([deviation]))[0])
    assert found == pytest.approx(wanted, abs=1e-4)
    assert float(expected_gain(np.array([behind]), np.array([0.0]))[0]) == max(-behind, 0.0)


def measured(case: Case, seconds: float, repetitions: int = 3) -> Timing:
    return Timing(case, seconds, repetitions=repetitions, samples=(seconds,) * repetitions)


def test_measured_cases_are_known_and_cases_beside_them_better_known() -> None:
    belief = Belief(CASES, [PREDICTED])
    before = np.diag(belief.covariance).copy()
    number = CASES.index(Case("bcast", "chain", 4, 64 * KIB, 8 * KIB))
    belief.learn({CASES[number]: measured(CASES[number], 2 * PREDICTED[CASES[number]])})
    after = np.diag(belief.covariance)
    assert (after <= before + 1e-9).all()
    assert belief.mean[number] == pytest.approx(math.log(2 * PREDICTED[CASES[number]]), abs=0.05)
    assert math.sqrt(after[number]) < 0.06
    ratio = {case: belief.mean[place] - math.log(PREDICTED[case]) for place, case in enumerate(CASES)}
    near, far = Case("bcast", "chain", 4, 256 * KIB, 8 * KIB), Case("bcast", "binary", 4, 64 * KIB, 8 * KIB)
    assert math.log(2) > ratio[near] > ratio[far] > 0


@settings(max_examples=20)
@given(st.lists(st.integers(0, len(CASES) - 1), min_size=1, max_size=5, unique=True))
def test_imagining_lowers_variances_as_measuring_does(numbers: list[int]) -> None:
    belief = Belief(CASES, [PREDICTED])
    for number in numbers:
        belief.imagine(number, 3)
    imagined = belief.covariance.copy()
    other = Belief(CASES, [PREDICTED])
    # Repetitions that vary by as much as was guessed, so that the noise stays what it was.
    timings = {
        CASES[number]: replace(measured(CASES[number], PREDICTED[CASES[number]]), samples=_three(CASES[number], 0.025))
        for number in numbers
    }
    other.learn(timings)
    if other.scale == belief.scale:
        assert np.allclose(imagined, other.covariance, atol=1e-6)


def _three(case: Case, spread: float) -> tuple[float, float, float]:
    seconds = PREDICTED[case]
    return seconds * math.exp(spread), seconds, seconds * math.exp(-spread)


@settings(max_examples=8)
@given(st.lists(st.integers(0, len(CASES) - 1), min_size=1, max_size=6, unique=True), st.integers(0, 2**32 - 1))
def test_what_is_learned_is_a_normal_distribution_given_the_measured_values(numbers: list[int], seed: int) -> None:
    """By the textbook's formulas for means, covariances and likelihood, also if it is learned in two parts."""
    random = np.random.default_rng(seed)
    factors = random.normal(0, 1, (len(CASES), 8))
    alike, prior = factors @ factors.T + np.eye(len(CASES)), random.normal(0, 1, len(CASES))
    process = Process(prior, lambda rows, columns: alike[np.ix_(rows, columns)], 2.0)
    where, logs, noise = np.array(numbers), random.normal(0, 1, len(numbers)), random.uniform(0.1, 1, len(numbers))
    for part in np.array_split(np.arange(len(numbers)), 2):
        if len(part):
            process.learn(where[part], logs[part], noise[part])
            assert process.variance == pytest.approx(np.diag(process.covariance()))
    within = alike[np.ix_(where, where)] + np.diag(noise)
    gain = np.linalg.solve(within, alike[where]).T
    assert process.mean == pytest.approx(prior + gain @ (logs - prior[where]))
    assert process.covariance() == pytest.approx(alike - gain @ alike[where], abs=1e-9)
    likelihood = stats.multivariate_normal(prior[where], within).logpdf(logs) + len(numbers) / 2 * math.log(2 * math.pi)
    assert process.plausibility == pytest.approx(likelihood - math.log(2) ** 2 / 2)
    before = process.variance.copy()
    process.imagine(numbers[0], 0.5)
    again = Process(prior, lambda rows, columns: alike[np.ix_(rows, columns)], 2.0)
    again.learn(np.array([*numbers, numbers[0]]), np.array([*logs, 0.0]), np.array([*noise, 0.5]))
    assert process.covariance() == pytest.approx(again.covariance(), abs=1e-9)
    assert (process.variance <= before).all()


def test_sources_that_disagree_leave_a_case_in_doubt() -> None:
    doubted = CASES[7]
    belief = Belief(CASES, [PREDICTED, {**PREDICTED, doubted: 3 * PREDICTED[doubted]}])
    own = np.diag(belief.covariance)
    assert int(np.argmax(own)) == 7
    assert belief.mean[7] == pytest.approx(math.log(math.sqrt(3) * PREDICTED[doubted]))


def test_segments_that_do_not_cut_a_message_are_one_choice() -> None:
    cases = [Case("bcast", "chain", 4, 4 * KIB, segment) for segment in (0, 8 * KIB, 64 * KIB, KIB)]
    belief = Belief(cases, [dict.fromkeys(cases, 1e-3)])
    own, together = np.diag(belief.covariance), belief.covariance
    assert together[0, 1] == pytest.approx(own[0]) == pytest.approx(together[1, 2])
    assert together[0, 3] < own[0]


def test_rounds_are_pooled_by_the_median_of_their_repetitions() -> None:
    case = CASES[0]
    rounds = [
        Timing(case, float(np.mean(values)), repetitions=3, samples=values)
        for values in ((1.0, 1.1, 30.0), (1.0, 1.2, 1.2))
    ]
    first = pooled(None, rounds[0])
    assert (first.seconds, first.repetitions, first.greatest_seconds) == (1.1, 3, 30.0)
    both = pooled(first, rounds[1])
    assert (both.seconds, both.repetitions) == (pytest.approx(1.15), 6)
    assert (both.least_seconds, both.greatest_seconds) == (1.0, 30.0)
    assert both.samples == (1.0, 1.1, 30.0, 1.0, 1.2, 1.2)
    failed = Timing(case, math.nan, error="died")
    assert pooled(rounds[0], failed) is failed


@settings(max_examples=20)
@given(st.integers(3, 10), st.integers(0, 2**32 - 1))
def test_a_stall_moves_the_median_and_its_spread_by_little(count: int, seed: int) -> None:
    case = CASES[0]
    samples = np.exp(np.random.default_rng(seed).normal(0, 0.02, count))
    stalled = np.where(np.arange(count) == 0, 20.0, samples)
    quiet, disturbed = (pooled(None, Timing(case, 0.0, samples=tuple(values))) for values in (samples, stalled))
    assert abs(disturbed.seconds - quiet.seconds) <= np.ptp(samples)
