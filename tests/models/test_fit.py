"""Every point-to-point model can be fitted in a laboratory, and then predicts the times there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from collwise.common.experiments import ROUNDTRIP, Experiment
from collwise.models.fitting.procedures import PROCEDURES, FitProcedure, request
from collwise.platforms import load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from tests.needs import needs

pytestmark = needs("smpi")

SIZES = (1, 1000, 50_000)


def default(family: str) -> FitProcedure:
    return PROCEDURES[family][request(family).procedure]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "timings.sqlite") as opened:
        yield opened


@pytest.mark.parametrize("family", ["hockney", "hockney_by_size", "loggp", "plogp"])
def test_homogeneous(family: str, store: Store) -> None:
    lab = SimulationContext(store).laboratory(load("exact-sender"), 3)
    fitted = default(family).fit(lab)
    times = lab.run([Experiment(ROUNDTRIP, (0, 1), size, size) for size in SIZES])
    assert not fitted.heterogeneous
    assert fitted.predict(SIZES) == pytest.approx([one.seconds / 2 for one in times], rel=1e-3)


@pytest.mark.parametrize("family", ["hockney", "lmo"])
def test_heterogeneous(family: str, store: Store) -> None:
    lab = SimulationContext(store).laboratory(load("exact-heterogeneous"), 4)
    fitted = default(family).fit(lab, heterogeneous=True)
    assert fitted.heterogeneous
    for pair in ((0, 1), (3, 2)):
        times = lab.run([Experiment(ROUNDTRIP, pair, size, size) for size in SIZES])
        assert fitted.predict(SIZES, *pair) == pytest.approx([one.seconds / 2 for one in times], rel=1e-3)


def test_loggp_and_plogp_of_pairs(store: Store) -> None:
    """Of one byte, which is all that these say of platforms where several parts grow with the message."""
    lab = SimulationContext(store).laboratory(load("exact-heterogeneous"), 3)
    (time,) = lab.run([Experiment(ROUNDTRIP, (0, 2), 1, 1)])
    for family in ("loggp", "plogp"):
        fitted = default(family).fit(lab, heterogeneous=True)
        assert fitted.heterogeneous
        assert float(np.asarray(fitted.predict(1, 0, 2))) == pytest.approx(time.seconds / 2, rel=1e-2)
