"""Experiments that the schedule engine plays: fits recover the true parameters of platforms without a simulator."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collwise.common.errors import CollwiseError
from collwise.common.experiments import PRTT, ROUNDTRIP, SATURATION, SEND, SENDRECV, Experiment
from collwise.models.fitting.procedures import request
from collwise.models.single_messages import LMO, Hockney, LogGP
from collwise.platforms import load, load_description
from collwise.platforms.linear_costs import point_to_point
from collwise.simulator.bench import Simulated
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE_WITH_EXPERIMENTS, SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.fitting.models_by_name import parameters_on


@pytest.fixture
def context(tmp_path: Path) -> SimulationContext:
    return SimulationContext(Store(tmp_path / "t.sqlite"), SCHEDULE_WITH_EXPERIMENTS)


def test_fits_recover_the_parameters_of_a_platform(context: SimulationContext) -> None:
    """Without SMPI's envelope, whose time is part of the true latency."""
    bench, truth = Simulated(load("exact"), context), point_to_point(load("exact"))
    hockney = parameters_on(bench, request("hockney")).parameters
    assert isinstance(hockney, Hockney)
    assert hockney.alpha_seconds == pytest.approx(truth.alpha_seconds[0, 1], rel=0.01)
    assert hockney.beta_seconds_per_byte == pytest.approx(truth.beta_seconds_per_byte[0, 1], rel=1e-6)
    loggp = parameters_on(bench, request("loggp")).parameters
    assert isinstance(loggp, LogGP)
    overheads = (loggp.send_overhead_seconds, loggp.receive_overhead_seconds)
    assert overheads == pytest.approx((truth.send_seconds[0], truth.receive_seconds[0]), rel=0.01)
    bench, truth = Simulated(load("exact-symmetric"), context), point_to_point(load("exact-symmetric"))
    lmo = parameters_on(bench, request("lmo")).parameters
    assert isinstance(lmo, LMO)
    assert lmo.processor_seconds == pytest.approx(truth.processor_seconds[0], rel=0.05)
    assert lmo.network_seconds_per_byte == pytest.approx(truth.network_seconds_per_byte[0, 1], rel=0.05)


def test_messages_in_a_row_are_those_of_the_slowest_stage(context: SimulationContext) -> None:
    lab = context.laboratory(load("exact"), 2)
    one, many = lab.run([Experiment(SATURATION, (0, 1), 4096, 1, count) for count in (1, 101)])
    (send, roundtrip) = lab.run([Experiment(SEND, (0, 1), 4096), Experiment(ROUNDTRIP, (0, 1), 4096, 1)])
    truth = point_to_point(load("exact"))
    receive = truth.receive_seconds[0] + 4096 * truth.receive_seconds_per_byte[0]
    slowest = max(send.seconds, receive, truth.network_seconds_per_byte[0, 1] * 4095)
    assert one.seconds == pytest.approx(roundtrip.seconds)
    assert many.seconds - one.seconds == pytest.approx(100 * slowest, rel=1e-3)


def test_delays_between_messages_add_to_their_sends(context: SimulationContext) -> None:
    lab = context.laboratory(load("exact"), 2)
    one, plain, delayed = lab.run(
        [Experiment(PRTT, (0, 1), 64, 64, count, delay) for count, delay in ((1, 0.0), (11, 0.0), (11, 1e-3))]
    )
    (row, send) = lab.run([Experiment(SATURATION, (0, 1), 64, 64, 11), Experiment(SEND, (0, 1), 64, 64)])
    assert plain.seconds == row.seconds
    assert delayed.seconds - one.seconds == pytest.approx(10 * (1e-3 + send.seconds))


def test_pairs_of_a_torus_differ_by_their_hops(context: SimulationContext) -> None:
    lab = context.laboratory(load("fugaku"), 6)
    near, far = lab.run([Experiment(ROUNDTRIP, pair, 1, 1) for pair in ((0, 1), (0, 4))])
    assert far.seconds - near.seconds == pytest.approx(2 * 3 * 1e-7, rel=1e-6)


def test_copies_in_a_buffer_are_no_part_of_a_message(context: SimulationContext) -> None:
    platform = load_description("gros")
    longer = replace(platform, calibration=replace(platform.calibration, copy_seconds_per_byte=1e-9))
    asked = [Experiment(ROUNDTRIP, (0, 1), 4096, 1), Experiment(SEND, (0, 1), 4096)]
    alike, others = (context.laboratory(one, 2).run(asked) for one in (platform, longer))
    assert alike == others


def test_other_kinds_fail(context: SimulationContext) -> None:
    lab = context.laboratory(load("exact"), 2)
    with pytest.raises(CollwiseError, match="no experiment 'sendrecv'"):
        lab.run([Experiment(SENDRECV, (0, 1), 1, 0, 2)])


def test_a_barrier_alone_is_played(context: SimulationContext) -> None:
    """It is an experiment of the benchmark program, without an algorithm."""
    timings = context.simulate(load("exact"), [Case("-", "-", 8, 0, experiment="barrier")]).timings
    (timing,) = timings.values()
    assert timing.ok
    assert math.isfinite(timing.seconds)
    assert np.isfinite(timing.root_seconds)
