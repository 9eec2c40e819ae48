"""Every procedure on a platform in SMPI whose parameters are known: o_s, o_r(m) and the latency, eager at any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collwise.models.fitting.hockney import hockney_by_regression, hockney_by_size, hockney_by_two_sizes
from collwise.models.fitting.loggp import culler_loggp, hoefler_loggp
from collwise.models.fitting.plogp import fitted_plogp, kielmann_heterogeneous_plogp, kielmann_plogp
from collwise.models.fitting.regression import Sizes
from collwise.models.single_messages import LogGP
from collwise.platforms import Calibration, load_description
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.experiment_runner import ExperimentLaboratory
from tests.needs import needs

pytestmark = needs("smpi")

SEND, RECEIVE, PER_BYTE, LINK_LATENCY = 5e-6, 8e-6, 1e-8, 20e-6
# As good as infinite bandwidth: all that a byte costs is the receiver's time.
PLATFORM = replace(
    load_description("grisou"),
    name="known",
    nodes=4,
    link_latency_seconds=LINK_LATENCY,
    link_bytes_per_second=1e15,
    calibration=Calibration(
        eager_limit_bytes=1 << 30,
        crosstraffic=False,
        os=((0, SEND, 0.0),),
        ois=((0, SEND, 0.0),),
        or_=((0, RECEIVE, PER_BYTE),),
    ),
)
# SMPI limits a flow to its window over its roundtrip, which is 0.2 % of the time of a byte here.
WITHIN = 0.003
SIZES = np.array([1, 1024, 10000, 65536, 1 << 20])


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[ExperimentLaboratory]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store).laboratory(PLATFORM, 4)


def assert_loggp(model: LogGP, latency: float, receive: float, gap: float) -> None:
    found = (model.latency_seconds, model.receive_overhead_seconds, model.gap_seconds)
    assert found == pytest.approx((latency, receive, gap), rel=WITHIN)
    assert model.send_overhead_seconds == pytest.approx(SEND, rel=WITHIN)
    assert model.gap_seconds_per_byte == pytest.approx(PER_BYTE, rel=WITHIN)


def test_hockney(lab: ExperimentLaboratory) -> None:
    alpha = SEND + 2 * LINK_LATENCY + RECEIVE
    for model in (hockney_by_two_sizes(lab), hockney_by_regression(lab)):
        assert [model.alpha_seconds, model.beta_seconds_per_byte] == pytest.approx([alpha, PER_BYTE], rel=WITHIN)
    assert hockney_by_size(lab).predict(SIZES) == pytest.approx(alpha + PER_BYTE * SIZES, rel=WITHIN)


def test_logp_family(lab: ExperimentLaboratory) -> None:
    first = RECEIVE + PER_BYTE
    assert_loggp(culler_loggp(lab), 2 * LINK_LATENCY, first, first)
    assert_loggp(kielmann_plogp(lab).as_loggp(), 2 * LINK_LATENCY, first, first)
    # Seen from the sender, what the receiver takes longer than the sender is latency.
    assert_loggp(hoefler_loggp(lab), 2 * LINK_LATENCY + first - SEND, SEND, first)


def test_plogp(lab: ExperimentLaboratory) -> None:
    for model in (kielmann_plogp(lab), kielmann_plogp(lab, saturate=True)):
        assert model.latency_seconds == pytest.approx(2 * LINK_LATENCY + SEND, rel=WITHIN)
        assert model.send_overhead(SIZES) == pytest.approx(np.full(len(SIZES), SEND), rel=WITHIN)
        for function in (model.receive_overhead, model.gap):
            assert function(SIZES) == pytest.approx(RECEIVE + PER_BYTE * SIZES, rel=WITHIN)


def test_fitted_plogp(lab: ExperimentLaboratory) -> None:
    """A step of the chain and a process more in the barrier both take o_s + o_r: that is g here."""
    model = fitted_plogp(lab, kielmann_plogp(lab))
    assert model.latency_seconds == pytest.approx(2 * LINK_LATENCY, rel=WITHIN)
    assert model.gap(SIZES) == pytest.approx(SEND + RECEIVE + PER_BYTE * SIZES, rel=WITHIN)


def test_heterogeneous(lab: ExperimentLaboratory) -> None:
    first, apart = RECEIVE + PER_BYTE, ~np.eye(4, dtype=bool)
    hockney = hockney_by_two_sizes(lab, heterogeneous=True)
    np.testing.assert_allclose(np.asarray(hockney.beta_seconds_per_byte)[apart], PER_BYTE, rtol=WITHIN)
    culler = culler_loggp(lab, heterogeneous=True)
    np.testing.assert_allclose(np.asarray(culler.latency_seconds)[apart], 2 * LINK_LATENCY, rtol=WITHIN)
    np.testing.assert_allclose(culler.receive_overhead_seconds, first, rtol=WITHIN)
    plogp = kielmann_heterogeneous_plogp(lab, Sizes(1024, 1 << 16)).homogeneous()
    assert_loggp(plogp.as_loggp(), 2 * LINK_LATENCY, first, first)
