"""Estimation finds what a platform's description says, and the comparison sees when it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.models.fitting.procedures import PROCEDURES, FitRequest, request
from collwise.models.parameters import FittedParameters
from collwise.models.single_messages import Hockney
from collwise.platforms import load, load_description
from collwise.platforms.linear_costs import PointToPoint, point_to_point
from collwise.simulator.bench import Simulated
from collwise.simulator.store import Store
from collwise.validation.fitting.models_by_name import SimulationContext, parameters_on
from collwise.validation.fitting.recovery import (
    LMO_TOLERANCE,
    PLATFORMS,
    TOLERANCE,
    Recovered,
    objection,
    recover,
    requests,
)
from tests.needs import needs

# The parameters in which each family must be compared.
PARAMETERS = {
    "hockney": {"alpha", "beta"},
    "hockney_by_size": {"T(1 B)", "T(1024 B)", "T(65536 B)"},
    "logp": {"L", "o", "o_s", "o_r", "g"},
    "loggp": {"L", "o", "o_s", "o_r", "g", "G"},
    "plogp": {"L", *(f"{name}({size} B)" for name in ("o_s", "o_r", "g") for size in (1, 1024, 65536))},
    "lmo": {"C", "t", "L", "1/beta"},
}


def simulated(platform_name: str, wanted: list[FitRequest], folder: Path, procs: int | None = None) -> list[Recovered]:
    platform = load(platform_name)
    with Store(folder / "timings.sqlite") as store:
        return recover(
            platform, wanted, partial(parameters_on, Simulated(platform, SimulationContext(store)), procs=procs)
        )


def assert_found(rows: list[Recovered]) -> None:
    for row in rows:
        tolerance = 0.05 if row.family == "lmo" else 0.02
        assert row.worst_error <= tolerance, row
        assert row.ok, row
        assert row.estimated == pytest.approx(row.true, rel=tolerance, abs=1e-7), row
    by_procedure: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        by_procedure.setdefault((row.family, row.procedure), set()).add(row.parameter)
    for (family, procedure), names in by_procedure.items():
        apart = {"o_s", "o_r"} if procedure == "hoefler" else set()
        assert names == PARAMETERS[family] - apart


def test_the_tolerances() -> None:
    assert (TOLERANCE, LMO_TOLERANCE) == (0.02, 0.05)


def first_that_suits(name: str) -> list[FitRequest]:
    """The requests that suit the platform, and none of the platforms with equal nodes before it."""
    *before, truth = (point_to_point(load(other)) for other in PLATFORMS[: PLATFORMS.index(name) + 1])
    return [
        wanted
        for wanted in requests(load(name).heterogeneous)
        if not objection(wanted, truth) and (wanted.heterogeneous or all(objection(wanted, other) for other in before))
    ]


@needs("smpi")
@pytest.mark.parametrize(("name", "number"), [*zip(PLATFORMS, (8, 2, 2, 6), strict=True)])
def test_every_procedure_recovers_the_parameters_among_few_processes(name: str, number: int, tmp_path: Path) -> None:
    wanted = first_that_suits(name)
    rows = simulated(name, wanted, tmp_path, 4 if name in ("exact-symmetric", "exact-heterogeneous") else 3)
    assert {FitRequest(row.family, row.procedure, row.heterogeneous) for row in rows} == set(wanted)
    assert len(wanted) == number
    assert_found(rows)


@needs("smpi")
@pytest.mark.slow
def test_every_procedure_recovers_what_it_is_meant_to(tmp_path: Path) -> None:
    tried: set[tuple[str, str, bool]] = set()
    for name in PLATFORMS:
        platform = load(name)
        rows = simulated(name, requests(platform.heterogeneous), tmp_path)
        assert_found(rows)
        tried |= {(row.family, row.procedure, row.heterogeneous) for row in rows}
    assert {(family, procedure) for family, procedure, _ in tried} == {
        (family, procedure) for family, procedures in PROCEDURES.items() for procedure in procedures
    }
    each = {family for family, _, heterogeneous in tried if heterogeneous}
    assert each == set(PARAMETERS) - {"hockney_by_size"}


def made_up(truth: PointToPoint, factor: float = 1.0) -> Callable[[FitRequest], FittedParameters]:
    """A fit that knows the true alpha and beta, times a factor."""

    def fit(wanted: FitRequest) -> FittedParameters:
        alpha, beta = truth.alpha_seconds * factor, truth.beta_seconds_per_byte * factor
        parameters = Hockney(alpha, beta)
        n = len(alpha)
        if not wanted.heterogeneous:
            parameters = parameters.homogeneous()
        return FittedParameters("hockney", wanted.procedure, "x", "x", n, truth.eager_limit_bytes, 0.0, parameters)

    return fit


@pytest.mark.parametrize("name", ["exact", "exact-heterogeneous"])
@pytest.mark.parametrize(("factor", "ok"), [(1.0, True), (1.015, True), (0.985, True), (1.025, False), (0.97, False)])
def test_an_estimate_that_is_off_is_seen(name: str, factor: float, ok: bool) -> None:
    platform = load(name)
    wanted = request("hockney", None, platform.heterogeneous)
    rows = recover(platform, [wanted], made_up(point_to_point(platform), factor))
    assert [row.parameter for row in rows] == ["alpha", "beta"]
    for row in rows:
        assert row.worst_error == pytest.approx(abs(factor - 1), rel=1e-6, abs=1e-12)
        assert row.ok == ok
        assert row.estimated == pytest.approx(row.true * factor)


def test_one_wrong_pair_of_many_is_seen() -> None:
    platform = load("exact-heterogeneous")
    truth = point_to_point(platform)

    def fit(wanted: FitRequest) -> FittedParameters:
        fitted = made_up(truth)(wanted)
        assert isinstance(fitted.parameters, Hockney)
        alpha = np.array(fitted.parameters.alpha_seconds)
        alpha[11, 3] *= 1.03
        return replace(fitted, parameters=replace(fitted.parameters, alpha_seconds=alpha))

    rows = {row.parameter: row for row in recover(platform, [request("hockney", None, True)], fit)}
    assert rows["alpha"].worst_error == pytest.approx(0.03)
    assert not rows["alpha"].ok
    assert rows["beta"].ok


def test_an_estimate_that_is_no_number_is_not_found() -> None:
    platform = load("exact")
    rows = recover(platform, [request("hockney")], made_up(point_to_point(platform), float("nan")))
    assert not any(row.ok for row in rows)


@needs("smpi")
def test_parameters_of_another_platform_are_not_found(tmp_path: Path) -> None:
    """The description of one platform, the estimates of another whose receives take a fifth longer."""
    described = load_description("exact")
    ((least, base, per_byte),) = described.calibration.or_
    slower = replace(described.calibration, or_=((least, base * 1.2, per_byte),))
    other = replace(described, calibration=slower)
    with Store(tmp_path / "timings.sqlite") as store:
        fit = partial(parameters_on, Simulated(other, SimulationContext(store)), procs=2)
        rows = recover(described, [request("hockney")], fit)
    wrong = {row.parameter: row.worst_error for row in rows if not row.ok}
    assert wrong == {"alpha": pytest.approx(0.2 * base / 53e-6, rel=0.01)}


def test_platforms_whose_truth_is_not_known() -> None:
    with pytest.raises(UsageError, match="platform 'grisou': factors or overheads that change with the message size"):
        recover(load("grisou"), [request("hockney")], made_up(point_to_point(load("exact"))))


@pytest.mark.parametrize(
    ("family", "procedure", "platform", "why"),
    [
        ("loggp", "hoefler", "exact", "assumes that sending and receiving cost the same"),
        ("lmo", "triplets", "exact-sender", "assumes that sending and receiving cost the same"),
        ("plogp", "kielmann", "exact-symmetric", "assumes that only the gap grows with the message size"),
        ("plogp", "fitted", "exact", "assumes that the messages of a barrier are received concurrently"),
    ],
)
def test_what_procedures_assume(family: str, procedure: str, platform: str, why: str) -> None:
    assert objection(FitRequest(family, procedure), point_to_point(load(platform))) == why


def test_what_does_not_suit_is_not_fitted() -> None:
    def fit(wanted: FitRequest) -> FittedParameters:
        raise AssertionError(wanted)

    assert recover(load("exact"), [FitRequest("lmo", "triplets")], fit) == []
