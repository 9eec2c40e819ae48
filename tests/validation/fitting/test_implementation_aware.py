from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import ModelParameters
from collwise.models.registry import AS_PRINTED, BY_PARTS
from collwise.platforms import Calibration, load_description
from collwise.simulator.bench import Simulated
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.experiment_runner import ExperimentRunner
from collwise.simulator.sweeps.smpi_runner import SmpiRunner
from collwise.validation.compare.scores import Scores
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.fitting.implementation_aware import FitPlan, default_procs, fit
from collwise.validation.libraries.baselines import PAPERS
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted
from tests.needs import needs
from tests.runners import context_with

pytestmark = needs("smpi")

PLATFORM = replace(
    load_description("grisou"),
    name="small",
    nodes=16,
    link_bytes_per_second=1e9,
    link_latency_seconds=2e-5,
    calibration=Calibration(bandwidth_factor=((0, 0.9),), latency_factor=((0, 1.0), (65536, 2.0))),
)
PLAN = FitPlan(procs=(4, 8, 16), processes_per_node=1, more_segments=())
WIDE_PLAN = FitPlan(procs=(4, 8, 16), processes_per_node=1, more_segments=(65536,), collectives=("bcast",))
GRIDS = {
    "bcast": ((5, 8, 12, 16), (8192, 65536, 262144, 1048576)),
    "gather": ((5, 8, 12, 16), (65536, 262144, 1048576)),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("fit") / "timings.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def parameters(store: Store) -> ModelParameters:
    return fit(Simulated(PLATFORM, SimulationContext(store, jobs=1)), PLAN)


def comparison(
    parameters: ModelParameters, store: Store, collective: str, segments: tuple[int, ...] = (8192,)
) -> Scores:
    procs, sizes = GRIDS[collective]
    times = predicted(ImplementationAware(parameters, BY_PARTS), Grid.of(collective, procs, sizes, 1, segments))
    return beside_simulation(PLATFORM, times.grid, [times], SimulationContext(store, jobs=1), PAPERS)


def test_the_plan_by_default() -> None:
    assert default_procs(load_description("grisou"), 2) == (10, 25, 51)
    assert default_procs(replace(PLATFORM, nodes=2), 1) == (2,)
    assert PLATFORM.eager_limit_bytes == 65536
    assert replace(PLATFORM, calibration=Calibration(eager_limit_bytes=4000)).eager_limit_bytes == 4000


def test_what_a_fit_holds(parameters: ModelParameters) -> None:
    assert (parameters.platform, parameters.processes_per_node) == ("small", 1)
    assert (parameters.eager_limit_bytes, parameters.segment_bytes) == (65536, 8192)
    assert parameters.made_by.startswith("SimGrid ")
    broadcasts = {"linear", "chain", "k_chain", "binary", "split_binary", "binomial"}
    newer = {"knomial", "scatter_allgather", "scatter_ring_allgather", "two_tree"}
    assert set(ImplementationAware(parameters, BY_PARTS).algorithms("bcast")) == broadcasts | newer
    assert set(ImplementationAware(parameters, AS_PRINTED).algorithms("bcast")) == broadcasts
    for model in (BY_PARTS, AS_PRINTED):
        assert set(ImplementationAware(parameters, model).algorithms("gather")) == {"linear", "linear_sync", "binomial"}
    split_binary = parameters.fits[BY_PARTS]["bcast"]["split_binary"]
    assert {"exchange/eager", "exchange/rendezvous"} <= set(split_binary.parameters)


def test_gamma_and_hockney_are_those_of_the_links(parameters: ModelParameters) -> None:
    """p - 1 flows share the root's link; a message takes two latencies and its bytes, envelope included, over 0.9e9."""

    def flat(procs: int, size: int) -> float:
        return 4e-5 * (2 if size >= 65536 else 1) + (procs - 1) * (size + 16) / 0.9e9

    for size in (1024, 8192, 65536, 1048576):
        for procs in (2, 3, 5, 7):
            expected = flat(procs, size) / flat(2, size)
            assert float(parameters.gamma(procs, size)) == pytest.approx(expected, rel=0.01), (size, procs)
    assert parameters.hockney.beta_seconds_per_byte == pytest.approx(1 / 0.9e9, rel=0.06)
    assert 4e-5 * 0.9 < parameters.hockney.alpha_seconds < 8e-5 * 1.1


def test_fits_by_parts_describe_their_experiments(parameters: ModelParameters) -> None:
    """Mean and worst residuals: trees, chains and scatters are nearly exact where messages share links alone.

    Of two trees it varies with P how many steps of the schedule are waited for. Of reductions, how far a message that
    waits overlaps the one before varies with its size and the number of segments: the worst is 12 % for a chain.
    """
    limits = {"bcast two_tree": (0.025, 0.13), "bcast": (0.005, 0.025), "gather": (1e-3, 1e-3),
              "scatter": (0.002, 0.02), "reduce linear": (1e-3, 1e-3), "reduce": (0.026, 0.125)}  # fmt: skip
    for collective, by_name in parameters.fits[BY_PARTS].items():
        for name, fitted in by_name.items():
            mean, worst = limits.get(f"{collective} {name}", limits[collective])
            assert fitted.mean_residual < mean, (collective, name)
            assert fitted.worst_residual < worst, (collective, name)


@pytest.mark.parametrize("collective", ["bcast", "gather"])
def test_predictions_are_near_simulation_and_choices_cost_next_to_nothing(
    parameters: ModelParameters, store: Store, collective: str
) -> None:
    scores = comparison(parameters, store, collective)
    for choice, errors in zip(scores.right.choices, scores.errors[BY_PARTS].values, strict=True):
        # Two trees: 24 % at P = 5 for one segment, which is not sent as those of the fit are; scatter and allgather
        # 7 % there; the others 5 %.
        within = {"two_tree": 0.25, "scatter_allgather": 0.08}.get(choice.algorithm, 0.05)
        assert np.abs(errors).max() <= within, choice.algorithm
    assert len(scores.places(*scores.times)) == len(scores.right.grid.points)
    costs = scores.summary(BY_PARTS)
    assert (costs.mean <= 0.03, costs.worst <= 0.10) == (True, True)


def test_choosing_the_segment_too_costs_little(store: Store) -> None:
    parameters = fit(Simulated(PLATFORM, SimulationContext(store, jobs=1)), WIDE_PLAN)
    scores = comparison(parameters, store, "bcast", (8192, *WIDE_PLAN.more_segments))
    assert len(scores.right.choices) == 10 + 7 * len(WIDE_PLAN.more_segments)
    chosen = {scores.pick(None, i, j).choice.segment_bytes for i, j in scores.places(*scores.times)}
    assert len(chosen) > 1, "the best segment size should depend on the message"
    costs = scores.summary(BY_PARTS)
    assert (costs.mean <= 0.03, costs.worst <= 0.10) == (True, True)
    narrow = comparison(parameters, store, "bcast").right
    assert (scores.right.best_seconds.values <= narrow.best_seconds.values).all()


def test_a_second_fit_simulates_nothing(
    parameters: ModelParameters, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("simulated again")

    monkeypatch.setattr(SmpiRunner, "make", never)
    monkeypatch.setattr(ExperimentRunner, "make", never)
    assert fit(Simulated(PLATFORM, SimulationContext(store, jobs=1)), PLAN) == parameters


def test_a_plan_that_does_not_fit(store: Store) -> None:
    with pytest.raises(UsageError, match="platform 'small' cannot hold P = 17 with 1 per node"):
        fit(Simulated(PLATFORM, SimulationContext(store)), FitPlan((8, 17), 1))


def test_a_failed_experiment_ends_the_fit(store: Store) -> None:
    context = context_with(store, lambda case: None if case.algorithm == "chain" else 1.0, "no network")
    with pytest.raises(CollwiseError, match=r"an experiment of the fit failed: .*chain.*: no network"):
        fit(Simulated(PLATFORM, context), PLAN)


@pytest.mark.parametrize(
    ("nodes", "procs"),
    [(1, (2, 4)), (16, (1, 4))],
)
def test_a_fit_needs_two_nodes_and_two_processes(store: Store, nodes: int, procs: tuple[int, ...]) -> None:
    platform = replace(PLATFORM, nodes=nodes, name="tiny")
    with pytest.raises(UsageError, match=r"tiny .* a fit needs at least two nodes and two processes"):
        fit(Simulated(platform, SimulationContext(store)), FitPlan(procs, 4))
