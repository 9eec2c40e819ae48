"""The best mapping against brute force and against simulation."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.models.collectives.blocks import binomial_seconds
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import LMO, Hockney
from collwise.platforms import load
from collwise.platforms.linear_costs import point_to_point
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.rank_mapping import best_mappings, check_choice, mapping_gains
from tests.needs import needs


def hockney(procs: int = 6) -> Hockney:
    generator = np.random.default_rng(5)
    alpha, beta = generator.uniform(1e-5, 1e-4, (procs, procs)), generator.uniform(5e-9, 5e-8, (procs, procs))
    return Hockney(alpha + alpha.T, beta + beta.T)


def model_of(parameters: Hockney | LMO) -> PointToPointModel:
    family = "lmo" if isinstance(parameters, LMO) else "hockney"
    return PointToPointModel(f"{family}_heterogeneous", "none", parameters)


@pytest.mark.parametrize("collective", ["scatter", "gather"])
def test_each_size_has_the_best_of_all_mappings(collective: str) -> None:
    parameters, gather = hockney(), collective == "gather"
    every = [(0, *rest) for rest in permutations(range(1, 6))]
    for size, mapping in best_mappings(model_of(parameters), collective, 6, [1, 50_000]).items():
        least = min(float(binomial_seconds(parameters, one, size, gather)) for one in every)
        assert float(binomial_seconds(parameters, mapping, size, gather)) == pytest.approx(least)


def test_a_common_mapping_has_the_least_sum_of_ratios() -> None:
    parameters, sizes = hockney(), [1, 4_000, 50_000]
    default = binomial_seconds(parameters, range(6), sizes)
    every = [(0, *rest) for rest in permutations(range(1, 6))]
    least = min(float(np.sum(binomial_seconds(parameters, one, sizes) / default)) for one in every)
    chosen = best_mappings(model_of(parameters), "scatter", 6, sizes, common=True)
    assert list(chosen) == sizes
    assert len(set(chosen.values())) == 1
    assert float(np.sum(binomial_seconds(parameters, chosen[1], sizes) / default)) == pytest.approx(least)
    # The best at one size is another one: the common mapping is a compromise.
    assert best_mappings(model_of(parameters), "scatter", 6, [1])[1] != chosen[1]


def test_equal_processors_keep_the_default() -> None:
    equal = Hockney(np.full((7, 7), 1e-5), np.full((7, 7), 1e-8))
    assert best_mappings(model_of(equal), "gather", 7, [1000]) == {1000: tuple(range(7))}


@pytest.mark.parametrize(
    ("collective", "model", "says"),
    [
        ("scater", "lmo_heterogeneous", "did you mean scatter or gather"),
        ("bcast", "lmo_heterogeneous", "Valid: scatter, gather"),
        ("scatter", "hockney", "all mappings are equal; valid: lmo_heterogeneous, hockney_heterogeneous"),
        ("scatter", "loggp", "no parameters per pair"),
        ("scatter", "lmo_heterogenous", "did you mean lmo_heterogeneous"),
    ],
)
def test_what_knows_no_mapping(collective: str, model: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_choice(collective, model)


def test_models_that_cannot() -> None:
    with pytest.raises(UsageError, match="no parameters per pair"):
        best_mappings(PointToPointModel("hockney", "none", Hockney(1e-5, 1e-8)), "scatter", 4, [1])
    with pytest.raises(UsageError, match="parameters are of 6 nodes; valid: 2 to 6"):
        best_mappings(model_of(hockney()), "scatter", 7, [1])


@needs("smpi")
def test_predicted_gain_is_simulated_on_the_first_nodes(tmp_path: Path) -> None:
    platform = load("hcl16")
    truth = point_to_point(platform)
    model = PointToPointModel(
        "hockney_heterogeneous", "hcl16", Hockney(truth.alpha_seconds, truth.beta_seconds_per_byte)
    )
    with Store(tmp_path / "store.sqlite") as store:
        mappings = best_mappings(model, "gather", 12, [1024])
        (gain,) = mapping_gains(platform, model, "gather", 12, mappings, SimulationContext(store))
        assert gain.hosts == tuple(platform.hosts[node] for node in gain.mapping)
        assert gain.hosts[0] == platform.hosts[0]
        assert set(gain.mapping) == set(range(12))
        assert gain.predicted_gain > 0.1
        # A gather's messages do not share links, so that Hockney is nearly right about it.
        assert gain.simulated_seconds == pytest.approx(gain.predicted_seconds, rel=0.1)
        assert gain.simulated_gain == pytest.approx(gain.predicted_gain, abs=0.05)
        case = Case("gather", "binomial", 12, 1024)
        assert (
            SimulationContext(store).simulate(platform, [case]).timings[case].seconds == gain.simulated_default_seconds
        )
