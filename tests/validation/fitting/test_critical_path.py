"""The model by critical paths: coefficients, estimation from times of known parameters, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.models.parameters import CLASSES, EAGER, LOCAL, RENDEZVOUS, Overheads, PathParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import Hockney
from collwise.platforms import load
from collwise.simulator.bench import Simulated
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case, Timing
from collwise.validation.fitting import critical_path_fit
from collwise.validation.fitting.critical_path import CriticalPath, path_counts, path_tables
from collwise.validation.fitting.critical_path_fit import PathPlan, fit_algorithms, plan_cases, receives_first
from collwise.validation.fitting.models_by_name import load_model, models_on
from collwise.validation.select.select import select
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted
from tests.needs import needs

MESSAGES = {EAGER: Hockney(2e-5, 1e-9), RENDEZVOUS: Hockney(5e-5, 9e-10), LOCAL: Hockney(1e-6, 2e-10)}
OVERHEADS = Overheads(
    PiecewiseLinear((0.0, 65536.0), (2e-6, 9e-6)),
    PiecewiseLinear((0.0, 65536.0), (1e-6, 6e-6)),
    PiecewiseLinear((0.0, 65536.0), (3e-6, 8e-6)),
)
REDUCED = 3e-10


def known(first: bool = True, per_node: int = 1, limit: int = 65536) -> PathParameters:
    return PathParameters("small", "made up", per_node, limit, REDUCED, first, OVERHEADS, MESSAGES)


def flat(collective: str) -> list[Algorithm]:
    """The algorithms that treat all processes alike, which are fitted."""
    return [entry for entry in Catalogue.load().algorithms(collective) if not entry.by_node and not entry.guideline]


def times(
    cases: Sequence[Case], parameters: PathParameters, pairs: dict[tuple[str, str], dict[str, Hockney]]
) -> dict[Case, Timing]:
    """The times of a platform on which each algorithm has the parameters given, others those of single messages."""
    found = {}
    for case in cases:
        schedule = Schedule(case)
        own = {**parameters.messages, **pairs.get((case.collective, case.algorithm), {})}
        played = schedule.play(path_tables(parameters, own, case.procs, schedule.sizes, case.collective == "barrier"))
        found[case] = Timing(case, played.seconds)
    return found


@pytest.mark.parametrize(
    ("first", "per_node", "chosen"),
    [
        (True, 1, ("bcast", "allgather", "gather", "scan", "alltoall")),
        (False, 1, ("bcast", "allreduce")),
        (True, 2, ("bcast",)),
    ],
)
def test_every_algorithm_gets_its_own_parameters_back(first: bool, per_node: int, chosen: tuple[str, ...]) -> None:
    plan = PathPlan((5, 12), per_node, chosen, (0, 8192), tuple(4**k for k in range(3, 11)))
    truth: dict[tuple[str, str], dict[str, Hockney]] = {}
    for number, entry in enumerate(one for name in chosen for one in flat(name)):
        share = 0.8 + 0.05 * (number % 9)
        truth[entry.collective, entry.name] = {
            name: Hockney(share * pair.alpha_seconds, pair.beta_seconds_per_byte / share)
            for name, pair in MESSAGES.items()
        }
    # The chain that tells whether messages wait has the parameters of single messages.
    truth["bcast", "chain"] = MESSAGES
    timings = times([*plan_cases(plan), critical_path_fit.chain_case(plan)], known(first, per_node), truth)
    found = fit_algorithms(replace(known(not first, per_node)), plan, timings)
    assert found.receives_first == first
    for (collective, algorithm), pairs in truth.items():
        fit = found.fits[collective][algorithm]
        assert fit.mean_residual < 1e-2, (collective, algorithm, fit)
        for name, pair in fit.parameters.items():
            # Which of the messages within a node and between nodes takes how long, the times leave open in part.
            if per_node > 1:
                continue
            mine = (pair.alpha_seconds, pair.beta_seconds_per_byte)
            true = (pairs[name].alpha_seconds, pairs[name].beta_seconds_per_byte)
            assert mine == pytest.approx(true, rel=0.05), (collective, algorithm, name, fit.steps)


def test_times_that_no_parameters_explain_are_residuals() -> None:
    """The first messages take twice as long as the model can say: the rest is fitted as if they were not there."""
    plan = PathPlan((6,), 1, ("allgather",), (0,), tuple(4**k for k in range(3, 9)))
    chain = critical_path_fit.chain_case(plan)
    timings = times([*plan_cases(plan), chain], known(), {})
    ring = [case for case in timings if case.algorithm == "ring"]
    timings[ring[0]] = replace(timings[ring[0]], seconds=2 * timings[ring[0]].seconds)
    fit = fit_algorithms(known(), plan, timings).fits["allgather"]["ring"]
    assert fit.residuals[0] == pytest.approx(-0.5, abs=0.05)
    assert np.max(np.abs(fit.residuals[1:])) < 0.05


def test_a_failed_experiment_or_none_is_an_error() -> None:
    plan = PathPlan((4,), 1, ("barrier",))
    cases = [*plan_cases(plan), critical_path_fit.chain_case(plan)]
    timings = times(cases, known(), {})
    timings[cases[0]] = Timing(cases[0], float("nan"), error="deadlock")
    with pytest.raises(CollwiseError, match=r"an experiment of the fit failed: .*barrier.*: deadlock"):
        fit_algorithms(known(), plan, timings)
    with pytest.raises(UsageError, match="a fit needs at least two processes"):
        critical_path_fit.fit(Simulated(load("gros"), SimulationContext(Store(":memory:"))), PathPlan((1,), 1))


def test_whether_messages_wait_shows_in_a_chain_of_segments() -> None:
    plan = PathPlan((8,), 1)
    chain = critical_path_fit.chain_case(plan)
    for first in (False, True):
        (timing,) = times([chain], known(first), {}).values()
        assert receives_first(known(), chain, 1.1 * timing.seconds) == first


@pytest.mark.parametrize("collective", Catalogue.load().collectives)
def test_coefficients_of_all_algorithms_are_positive_and_add_up_to_the_time(collective: str) -> None:
    """A longer message takes longer, apart from where the protocol changes."""
    sizes = (0,) if collective == "barrier" else (2048, 16384, 1 << 18)
    parameters = known(limit=1 << 15)
    vector = np.array([value for name in CLASSES for value in vars(MESSAGES[name]).values()])
    for entry in Catalogue.load().algorithms(collective):
        if entry.real_mpi_only or entry.guideline:
            continue  # it calls MPI's own collectives, which have no schedule or one that depends on the library
        for procs in (*range(2, 9), 12, 17, 32):
            if entry.objection(procs):
                continue
            before = 0.0
            for size in sizes:
                schedule = Schedule(Case(collective, entry.name, procs, size, 8192 if entry.pipelined else 0))
                found = path_counts(parameters, MESSAGES, collective == "barrier", schedule)
                where = f"{entry.name}, P = {procs}, {size}"
                latencies, in_bytes = found.counts.reshape(len(CLASSES), 2).T
                assert (found.counts >= 0).all(), where
                # The processor alone may be what a short message waits for.
                busy = found.known_seconds == pytest.approx(found.seconds)
                assert busy or latencies.sum() >= 1, where
                assert busy or collective == "barrier" or in_bytes.sum() > 0, where
                assert found.counts @ vector + found.known_seconds == pytest.approx(found.seconds, rel=1e-9), where
                assert found.seconds > before, where
                before = found.seconds


@cache
def fitted(per_node: int) -> PathParameters:
    plan = PathPlan((4,), per_node, ("bcast", "allgather"), (0, 8192), (64, 4096, 262144))
    timings = times([*plan_cases(plan), critical_path_fit.chain_case(plan)], known(True, per_node), {})
    return fit_algorithms(known(True, per_node), plan, timings)


def model_of(per_node: int = 1) -> CriticalPath:
    """A model that has played nothing yet."""
    return CriticalPath(fitted(per_node))


def test_predictions_are_those_of_the_schedule_at_one_size_and_at_many() -> None:
    model = model_of()
    sizes = np.unique(np.geomspace(1, 1 << 22, 60).astype(int))
    many = model.predict("allgather", "bruck", np.array([[5], [12]]), sizes)
    each = np.array([[float(model.predict("allgather", "bruck", p, int(m))) for m in sizes] for p in (5, 12)])
    assert many.shape == (2, len(sizes))
    assert many == pytest.approx(each, rel=1e-3)
    assert len(model_of().predict("bcast", "chain", 8, sizes, 8192)) == len(sizes)


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_choices_change_at_the_byte_at_which_the_other_one_is_faster(tolerance: float) -> None:
    """The choices are those by all times, of which the table needs only some."""
    model = model_of()
    for collective in ("bcast", "allgather"):
        grid = Grid.of(collective, (3, 8), (64, 5000, 30_000, 300_000), segments=(0, 8192))
        asked = grid.of_algorithms(model.algorithms(collective))
        seconds = predicted(model, asked).array
        exact = select(predicted(model, asked, tolerance), tolerance=tolerance)
        sampled = select(replace(predicted(model_of(), asked, tolerance), between=None), tolerance=tolerance)
        choices = list(asked.choices)
        for j, procs in enumerate(asked.procs):
            for k, size in enumerate(asked.message_bytes):
                for table in (exact, sampled):
                    chosen = seconds[choices.index(table.choose(procs, size)), j, k]
                    assert chosen <= np.nanmin(seconds[:, j, k]) * (1 + tolerance + 1e-9)
        moved = 0
        for procs, row in exact.rules.items():
            assert [choice for _, choice in row] == [choice for _, choice in sampled.rules[procs]]
            for (start, choice), (_, before), (at, _) in zip(row[1:], row, sampled.rules[procs][1:], strict=False):
                now, last = (
                    [model.seconds(asked.case(one, procs, m)) for one in (choice, before)] for m in (start, start - 1)
                )
                # A row of several P may change at a size for another one of them.
                assert now[0] < now[1] or start == at
                assert last[0] >= last[1] or start - 1 in asked.message_bytes
                moved += start < at
        assert moved > 0 or tolerance > 0


def test_a_decision_plays_only_what_it_compares() -> None:
    model = model_of()
    table = select(predicted(model, Grid.of("bcast", (4, 6), (1024, 65536), segments=(8192,))), False, 0.01)
    assert set(table.rules) <= {4, 5, 6, 7}
    assert {case.procs for case in model._known} == {4, 6}
    assert {case.message_bytes for case in model._known} >= {1024, 65536}


def test_an_interrupted_contest_plays_no_more() -> None:
    played = []

    class Interrupted(CriticalPath):
        def seconds_within(self, case: Case, max_seconds: float) -> float | None:
            played.append(case)
            if len(played) == 3:
                raise KeyboardInterrupt
            return super().seconds_within(case, max_seconds)

    grid = Grid.of("bcast", tuple(range(2, 60)), (64, 5000, 30_000, 300_000), segments=(0, 8192))
    model = Interrupted(model_of().parameters)
    grid = grid.of_algorithms(model.algorithms("bcast"))
    with pytest.raises(KeyboardInterrupt):
        predicted(model, grid, 0.0)
    assert len(played) < len(grid.cases()) / 4


def test_what_does_not_run_is_nan_and_what_was_not_fitted_is_not_covered() -> None:
    model = model_of()
    found = model.predict("allgather", "recursive_doubling", [7, 8], 1000)
    assert np.isnan(found).tolist() == [True, False]
    assert model.algorithms("scan") == ()
    assert set(model.algorithms("allgather")) == {entry.name for entry in flat("allgather")}


def test_processes_of_one_node_exchange_messages_within_it() -> None:
    model = model_of(2)
    near, far = model.predict("bcast", "chain", [2, 3], 4096)
    assert 0 < near < far
    assert LOCAL in model.parameters.fits["bcast"]["chain"].parameters


def test_a_file_holds_everything(tmp_path: Path) -> None:
    model = model_of()
    model.parameters.save(tmp_path / "path.toml")
    read = load_model(tmp_path / "path.toml")
    assert isinstance(read, CriticalPath)
    assert read.parameters.as_document() == model.parameters.as_document()
    assert read.predict("bcast", "binary", 9, 5000, 1024) == model.predict("bcast", "binary", 9, 5000, 1024)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("receives_first = true", 'receives_first = "yes"', "receives_first = 'yes'; valid: true or false"),
        ("[messages.eager]", "[messages.late]", "messages.eager is missing"),
        ("reduce_seconds_per_byte = 3e-10", "reduce_seconds_per_byte = -1", "reduce_seconds_per_byte = -1; valid:"),
        ("format = 3", "format = 4", "not a parameter file; make one with 'collwise fit"),
    ],
)
def test_broken_files_are_named_with_the_key(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    model_of().parameters.save(file)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=rf"path\.toml: .*{message}"):
        load_model(file)


@needs("smpi")
def test_single_messages_of_a_simulated_platform(tmp_path: Path) -> None:
    """Boba's description says what a message takes: 2 (14.806 us) + 17 bytes / rate, and overheads."""
    with Store(tmp_path / "timings.sqlite") as store:
        lab = SimulationContext(store).laboratory(load("boba"), 2)
        found = critical_path_fit.single_messages(lab, PathPlan((4,), 1), 1e-9)
    for name in (EAGER, RENDEZVOUS):
        pair = found.messages[name]
        assert pair.alpha_seconds == pytest.approx(2 * 14.806e-6 + 17 / 66666667, rel=1e-3)
        assert pair.beta_seconds_per_byte == pytest.approx(1.5e-8, rel=1e-3)
    assert found.overheads.send(1000) == pytest.approx(8.683e-6)
    assert found.overheads.receive(1000) == pytest.approx(8.15e-6)
    assert found.overheads.send(0) == 0


@needs("smpi")
def test_a_fit_on_a_simulated_platform_explains_its_experiments(tmp_path: Path) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        (model,) = models_on(load("exact"), ["critical_path"], 1, (), SimulationContext(store), ["allgather", "gather"])
    assert isinstance(model, CriticalPath)
    for fits in model.parameters.fits.values():
        for name, fit in fits.items():
            assert fit.mean_residual < 0.05, (name, fit)
