from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.common.experiments import SCATTER, Experiment, Measurement
from collwise.models.collectives.steps import steps_of
from collwise.models.fitting.procedures import fit, max_useful_procs, request
from collwise.models.parameters import FittedParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import FurtherGap, LogGP, PLogP
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, loggp_machine

TRUE = LogGP(30e-6, 5e-6, 8e-6, 12e-6, 9e-9)
CHANGE = FurtherGap((1.0, 2.0, 4.0, 7.0), (0.0, -1e-6, -3e-6, -4e-6))
OVERHEAD, GAP = (PiecewiseLinear((1.0,), (seconds,)) for seconds in (5e-6, 12e-6))
PLOGP = PLogP(30e-6, OVERHEAD, OVERHEAD, GAP)


class ShrinkingGap(LogGPLaboratory):
    """The LogGP machine with a gap that shrinks with the number of receivers of a scatter."""

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        if any(experiment.kind != SCATTER for experiment in experiments):
            return super().run(experiments, in_parallel)
        found = []
        for experiment in experiments:
            assert experiment.message_bytes == 1
            receivers = len(experiment.processes) - 1
            gap = TRUE.gap_seconds + float(CHANGE(receivers))
            found.append(Measurement(float(TRUE.predict(experiment.message_bytes)) + (receivers - 1) * gap))
        return found


@pytest.mark.parametrize("min_bytes", [0, 1])
@pytest.mark.parametrize("family", ["logp", "loggp", "plogp"])
def test_the_change_of_the_gap_is_found(family: str, min_bytes: int, tmp_path: Path) -> None:
    lab = ShrinkingGap(loggp_machine(30e-6, 5e-6, 8e-6, 12e-6, 9e-9), procs=8, min_bytes=min_bytes)
    fitted = fit(request(family, by_receivers=True), lab, "machine", "a test")
    found = fitted.parameters.further_gap  # type: ignore[union-attr]
    assert found.receivers == CHANGE.receivers
    # The gap of an empty message is a G shorter than that of a byte.
    assert found.seconds == pytest.approx(CHANGE.seconds, abs=1e-8)
    fitted.save(tmp_path / "p.toml")
    assert FittedParameters.load(tmp_path / "p.toml").parameters.further_gap == found  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "parameters"), [("loggp", TRUE), ("plogp", PLOGP)])
def test_formulas_take_it_for_as_many_receivers_as_a_process_has(name: str, parameters: LogGP | PLogP) -> None:
    constant, changed = (
        PointToPointModel(name, "machine", one) for one in (parameters, replace(parameters, further_gap=CHANGE))
    )

    def change(collective: str, algorithm: str, segment_bytes: int = 0) -> float:
        point = (collective, algorithm, 8, 4096, segment_bytes)
        return float(changed.predict(*point) - constant.predict(*point))

    assert change("bcast", "linear") == pytest.approx(6 * CHANGE(7))
    assert change("scatter", "linear") == pytest.approx(6 * CHANGE(7))
    assert change("barrier", "linear") == pytest.approx(6 * CHANGE(7))
    # Four segments: three gaps in each of three levels with three children; two children and a fork; one child.
    assert change("bcast", "binomial", 1024) == pytest.approx(9 * CHANGE(3))
    assert change("bcast", "binary", 1024) == pytest.approx((3 + 3 * 2) * CHANGE(2))
    assert change("bcast", "chain", 1024) == 0


def test_beyond_the_largest_number_of_receivers_the_change_stays() -> None:
    assert CHANGE([1, 3, 7, 100]) == pytest.approx([0.0, -2e-6, -4e-6, -4e-6])
    assert steps_of(TRUE).gap(1, [1, 9]) == pytest.approx([12e-6, 12e-6])
    with pytest.raises(ValueError, match="ascending"):
        FurtherGap((1.0, 1.0), (0.0, 0.0))


def test_all_processes_take_part() -> None:
    assert max_useful_procs(request("loggp", by_receivers=True), 32) == 32
    assert max_useful_procs(request("loggp"), 32) == 6


def test_what_has_no_such_gap_is_refused() -> None:
    with pytest.raises(
        UsageError, match="hockney has no gap that could depend on receivers; valid: logp, loggp, plogp"
    ):
        request("hockney", by_receivers=True)
    with pytest.raises(UsageError, match="leave out --heterogeneous"):
        request("loggp", heterogeneous=True, by_receivers=True)
    assert not request("loggp", heterogeneous=None, by_receivers=True).heterogeneous
    lab = LogGPLaboratory(loggp_machine(30e-6, 5e-6, 8e-6, 12e-6, 9e-9))
    lab.procs = 2
    with pytest.raises(UsageError, match="at least 3 processes, not 2"):
        fit(request("loggp", by_receivers=True), lab, "machine", "a test")


@pytest.mark.parametrize("receivers", ["[2, 3]", "[1, 1]", "[1]"])
def test_a_malformed_change_is_refused(tmp_path: Path, receivers: str) -> None:
    parameters = FittedParameters("loggp", "culler", "machine", "a test", 8, 65536, 0.0, TRUE)
    path = tmp_path / "p.toml"
    parameters.save(path)
    path.write_text(f"{path.read_text()}\n[parameters.further_gap]\nreceivers = {receivers}\nseconds = [0.0, 1e-6]\n")
    with pytest.raises(UsageError, match="receivers"):
        FittedParameters.load(path)
