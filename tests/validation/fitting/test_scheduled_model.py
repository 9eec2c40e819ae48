"""Point-to-point models applied to schedules, against the formulas of the literature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import LMO, Hockney, LogGP
from collwise.validation.fitting.scheduled_model import ScheduledModel
from tests.models.parameter_examples import fitted

ALPHA, BETA, GAMMA = 2e-5, 1e-9, 5e-10
HOCKNEY = ScheduledModel(PointToPointModel("hockney", "exact", Hockney(ALPHA, BETA), GAMMA))
M = np.array([1024, 2**20])


def test_hockney_along_schedules_is_the_formula_where_one_message_follows_another() -> None:
    """Thakur, Rabenseifner & Gropp 2005, sections 2.1 to 2.4; P a power of two."""
    for procs, steps in ((8, 3), (64, 6)):
        step = ALPHA + BETA * M
        others = (procs - 1) / procs
        for collective, algorithm, expected in (
            ("bcast", "chain", (procs - 1) * step),
            ("bcast", "binomial", steps * step),
            ("allgather", "ring", (procs - 1) * step),
            ("allgather", "recursive_doubling", steps * ALPHA + (procs - 1) * BETA * M),
            ("alltoall", "pairwise", (procs - 1) * step),
            ("allreduce", "recursive_doubling", steps * (step + GAMMA * M)),
            ("allreduce", "rabenseifner", 2 * steps * ALPHA + others * (2 * BETA + GAMMA) * M),
        ):
            found = HOCKNEY.predict(collective, algorithm, procs, M)
            assert found == pytest.approx(expected, rel=1e-9), (collective, algorithm, procs)


def test_a_message_takes_what_each_model_says() -> None:
    """A linear broadcast to one process is one message."""
    loggp = LogGP(1e-5, 2e-6, 3e-6, 4e-6, 1e-9)
    lmo = LMO(np.array([1e-6, 3e-6]), np.array([1e-10, 2e-10]), np.full((2, 2), 1e-5), np.full((2, 2), 1e-9))
    for model in (
        HOCKNEY.base,
        PointToPointModel("loggp", "exact", loggp),
        PointToPointModel("lmo_heterogeneous", "exact", lmo),
        PointToPointModel("hockney_by_size", "exact", fitted("hockney by size").parameters),
        PointToPointModel("plogp", "exact", fitted("plogp").parameters),
    ):
        # Overheads of PLogP that are not within L + g(m), as of the example's large messages, add to it.
        sizes = M[:1] if model.name == "plogp" else M
        found = ScheduledModel(model).predict("bcast", "linear", 2, sizes)
        assert found == pytest.approx(model.parameters.predict(sizes), rel=1e-9), model.name


def test_all_algorithms_are_predicted_and_what_does_not_run_is_nan() -> None:
    for collective, entry in Catalogue.load().collectives.items():
        for algorithm in HOCKNEY.algorithms(collective):
            found = HOCKNEY.predict(
                collective, algorithm, np.array([[1], [5], [8]]), np.array([[0, 1000, 65536]]), 8192
            )
            assert found.shape == (3, 3)
            assert np.isnan(found[1]).all() == bool(entry.algorithms[algorithm].objection(5))
            assert (found[2] >= 0).all()
            assert (found[2, 1:] > 0).all() or collective == "barrier"


def test_heterogeneous_parameters_know_only_their_processors() -> None:
    lmo = LMO(np.full(3, 1e-6), np.full(3, 1e-10), np.full((3, 3), 1e-5), np.full((3, 3), 1e-9))
    model = ScheduledModel(PointToPointModel("lmo_heterogeneous", "exact", lmo))
    assert np.isfinite(model.predict("allreduce", "ring", 3, 1000)).all()
    assert np.isnan(model.predict("allreduce", "ring", 4, 1000)).all()


def test_from_python_and_only_for_models_of_messages(tmp_path: Path) -> None:
    fitted("hockney").save(tmp_path / "hockney.toml")
    times = collwise.predict(tmp_path / "hockney.toml", "allreduce", "4,8", "1KiB", by_schedule=True)
    known = Catalogue.load().algorithms("allreduce")
    assert set(times.frame().algorithm) == {one.name for one in known if not one.real_mpi_only and not one.guideline}
    assert (times.frame().seconds > 0).all()
    with pytest.raises(UsageError, match="has no parameters of single messages; use a point-to-point model"):
        ScheduledModel.of(HOCKNEY)
