from __future__ import annotations

from dataclasses import replace

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import Platform, load_description
from collwise.validation.calibration.published import (
    PublishedFigure,
    calibrate,
    published_targets,
    simulated_targets,
    with_parameters,
)
from collwise.validation.times.defaults import GATHER_SIZES
from tests.needs import needs

SMALL = replace(load_description("grisou"), name="small", nodes=8)
PROCS, PER_NODE = 6, 1
TRUTH = {"link_latency_seconds": 2.7e-5, "bandwidth_factor": 0.81, "rendezvous_latency_factor": 3.2}


def log2_ceiling(value: int) -> int:
    return (value - 1).bit_length()


def test_a_target_tells_its_error() -> None:
    assert PublishedFigure("gamma(3)", 1.25, 1.2).relative_error == pytest.approx(-0.04)


def test_targets_of_the_paper() -> None:
    """Tables 6 and 4 through formulas (12), (13) and (15), by hand."""
    targets = published_targets(load_description("grisou"), 40)
    assert [targets[f"gamma({p})"] for p in range(3, 8)] == [1.114, 1.219, 1.283, 1.451, 1.54]
    assert targets["gather linear 64 KiB"] == pytest.approx(39 * (1.5e-5 + 65536 * 1.5e-9))
    assert targets["gather linear_sync 1 MiB"] == pytest.approx(39 * (2 * 5.9e-5 + 2**20 * 9.4e-10))
    assert targets["gather binomial 256 KiB"] == pytest.approx(6 * 1.2e-4 + 39 * 2**18 * 8.6e-10)
    assert len(targets) == 5 + 3 * 5 - 1
    assert "gather linear_sync 64 KiB" not in targets


def test_a_platform_without_published_figures() -> None:
    with pytest.raises(UsageError, match="platform 'small' has no \\[published\\] figures to calibrate against"):
        published_targets(replace(SMALL, published={}), PROCS)


def test_the_three_unknowns_reach_the_simulator() -> None:
    options = with_parameters(SMALL, TRUTH).smpi_options()
    assert options["smpi/bw-factor"] == "0:0.81"
    assert options["smpi/lat-factor"].endswith(":3.2")
    assert 'lat="2.7e-05s"' in with_parameters(SMALL, TRUTH).xml_text()


def test_no_message_is_faster_than_a_shorter_one_with_overheads() -> None:
    """The overheads that end at the rendezvous threshold are in the latency from there on."""
    both = sum(
        base + 65536 * per_byte for rows in (SMALL.calibration.os, SMALL.calibration.or_) for _, base, per_byte in rows
    )
    found = with_parameters(SMALL, TRUTH | {"rendezvous_latency_factor": 1.0}).calibration
    assert found.latency_factor[1][1] == pytest.approx(1 + both / 5.4e-5, rel=1e-3)
    free = replace(SMALL, calibration=SMALL.calibration.with_overheads_times(0))
    assert with_parameters(free, TRUTH | {"rendezvous_latency_factor": 1.0}).calibration.latency_factor[1][1] == 1.0


@pytest.fixture(scope="module")
def truth() -> Platform:
    """The small platform, whose published figures are what it does with the true parameters."""
    found = simulated_targets(with_parameters(SMALL, TRUTH), PROCS, PER_NODE)
    published: dict[str, dict[str, float]] = {"gamma": {str(p): found[f"gamma({p})"] for p in range(3, 8)}}
    low, high = GATHER_SIZES[1], GATHER_SIZES[-1]
    for algorithm in ("linear", "linear_sync", "binomial"):
        first, last = found[f"gather {algorithm} 128 KiB"], found[f"gather {algorithm} 1 MiB"]
        beta = (last - first) / (high - low) / (PROCS - 1)
        messages = {"linear": PROCS - 1, "linear_sync": 2 * (PROCS - 1), "binomial": log2_ceiling(PROCS)}[algorithm]
        alpha = (first - (PROCS - 1) * low * beta) / messages
        published[f"gather_{algorithm}"] = {"alpha_seconds": alpha, "beta_seconds_per_byte": beta}
    return replace(SMALL, published=published)


@needs("smpi")
def test_the_formulas_describe_the_simulation(truth: Platform) -> None:
    """Alpha and beta from two sizes give the times of the others: targets and simulation speak of the same thing."""
    targets = published_targets(truth, PROCS)
    found = simulated_targets(with_parameters(SMALL, TRUTH), PROCS, PER_NODE)
    assert targets.keys() == found.keys()
    for name, value in found.items():
        assert targets[name] == pytest.approx(value, rel=2e-3), name


@needs("smpi")
def test_known_parameters_are_found_again(truth: Platform) -> None:
    calibrated, targets = calibrate(truth, PROCS, PER_NODE)
    assert calibrated.link_latency_seconds == pytest.approx(TRUTH["link_latency_seconds"], rel=0.01)
    ((_, bandwidth_factor),) = calibrated.calibration.bandwidth_factor
    assert bandwidth_factor == pytest.approx(TRUTH["bandwidth_factor"], rel=0.005)
    (eager, rendezvous) = calibrated.calibration.latency_factor
    assert eager == (0, 1.0)
    assert rendezvous[0] == SMALL.calibration.eager_limit_bytes
    assert rendezvous[1] == pytest.approx(TRUTH["rendezvous_latency_factor"], rel=0.02)
    assert max(abs(target.relative_error) for target in targets) < 0.01
    assert [target.name for target in targets] == list(published_targets(truth, PROCS))
    assert "P = 6, 1 per node" in calibrated.calibration.note
    assert replace(calibrated, calibration=truth.calibration, link_latency_seconds=truth.link_latency_seconds) == truth
