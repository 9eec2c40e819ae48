"""Models by name: from files, estimated on simulated platforms, and what they cover."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel
from collwise.models.point_to_point import PointToPointModel
from collwise.platforms import load
from collwise.simulator.bench import Simulated
from collwise.simulator.store import Store
from collwise.validation.fitting.models_by_name import (
    SimulationContext,
    check_fits_platform,
    model_of,
    models_on,
    parameters_on,
)
from tests.models.parameter_examples import fitted
from tests.needs import needs


def on(platform: str, names: list[str], folder: Path) -> list[CollectiveModel]:
    with Store(folder / "timings.sqlite") as store:
        return models_on(load(platform), names, 1, (8192,), SimulationContext(store))


@needs("smpi")
def test_models_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = ["loggp_as_printed", "hockney", "loggp", "hockney_heterogeneous"]
    found = on("exact", names, tmp_path)
    assert [model.name for model in found] == names
    assert {model.platform for model in found} == {"exact"}
    hockney = found[1]
    assert isinstance(hockney, PointToPointModel)
    assert hockney.parameters.alpha_seconds == pytest.approx(53e-6, rel=1e-6)


@needs("smpi")
def test_where_nodes_differ_homogeneous_models_are_the_means_of_all(tmp_path: Path) -> None:
    """Whichever other models are asked for, and in which order."""
    (alone,) = on("exact-heterogeneous", ["hockney"], tmp_path)
    first, each = on("exact-heterogeneous", ["hockney", "hockney_heterogeneous"], tmp_path)
    other_each, last = on("exact-heterogeneous", ["hockney_heterogeneous", "hockney"], tmp_path)
    assert isinstance(each, PointToPointModel)
    assert isinstance(alone, PointToPointModel)
    assert alone == first == last
    alpha = np.asarray(each.parameters.alpha_seconds)
    assert alpha.shape == (16, 16)
    assert alone.parameters.alpha_seconds == pytest.approx(alpha[~np.eye(16, dtype=bool)].mean())
    assert other_each.name == "hockney_heterogeneous"


@needs("smpi")
def test_which_processes_take_part(tmp_path: Path) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context, wanted = SimulationContext(store), request("hockney", "two-sizes")
        assert parameters_on(Simulated(load("gros"), context), wanted).procs == 6
        assert parameters_on(Simulated(load("exact-heterogeneous"), context), wanted).procs == 16
        assert parameters_on(Simulated(load("gros"), context), wanted, 3).procs == 3
        with pytest.raises(UsageError, match="platform 'exact' cannot hold P = 9"):
            parameters_on(Simulated(load("exact"), context), wanted, 9)


def test_a_file_of_another_platform(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    fitted("hockney", platform="gros").save(file)
    with Store(tmp_path / "timings.sqlite") as store:
        model = model_of("hockney", file, load("gros"), 1, (8192,), SimulationContext(store))
        assert model.name == "hockney"
        assert model.processes_per_node is None
        check_fits_platform(model, file, load("gros"), 2)
        with pytest.raises(UsageError, match=r"p\.toml: parameters of platform 'gros', not of 'grisou'$"):
            model_of("hockney", file, load("grisou"), 2, (8192,), SimulationContext(store))
        with pytest.raises(UsageError, match=r"unknown model 'lmo'.*those in .*p\.toml"):
            model_of("lmo", file, load("gros"), 1, (8192,), SimulationContext(store))
