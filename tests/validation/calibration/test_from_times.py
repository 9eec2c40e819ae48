"""Figures fitted to times of collectives: of known machines, what times do not tell, what to measure next."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from collwise.calibrations import fitted_to_times
from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP, SATURATION
from collwise.platforms import Platform, load_description, write_description
from collwise.platforms.loader import interconnect
from collwise.simulator.timing import Case
from collwise.studies.present.shown import shown
from collwise.validation.calibration.figures import (
    FIGURES,
    Factors,
    amounts,
    from_data_sheets,
    multiplied,
    present,
    published,
    with_eager_limit,
)
from collwise.validation.calibration.from_times import (
    ERROR,
    MESSAGE_ERROR,
    Fitted,
    TimedCases,
    _misfit,
    check,
    fit,
    jump,
    most_telling,
    without_each_collective,
)
from collwise.validation.times.grid import Grid
from tests.command_line import called, printed

SIZES = (64, 16384, 4194304)
CASES = [
    case
    for collective in ("bcast", "gather", "scatter", "alltoall", "reduce", "allreduce")
    for case in Grid.of(collective, (16,), SIZES, 1, (0,)).cases()
    if not case.entry.by_node and case.parameter == 0
]
MESSAGE_SIZES = [1 << power for power in (0, 4, 8, 12, 14, 16, 20)]
LATENCIES = [Case("-", "-", 2, size, experiment=ROUNDTRIP, peers="0,1", reply_bytes=size) for size in MESSAGE_SIZES]
STREAMS = [replace(case, experiment=SATURATION, count=64, reply_bytes=4) for case in LATENCIES]
OSU = """# OSU MPI Latency Test v5.8
# Size          Latency (us)
{latencies}

# OSU MPI Bandwidth Test v5.8
# Size      Bandwidth (MB/s)
{rates}
"""


def preset(nodes: int = 16) -> Platform:
    made = from_data_sheets(interconnect("infiniband-hdr"))
    return replace(made, nodes=nodes, topology=None, name="made", host_prefix="made-")


def measured_on(platform: Platform, factors: Factors, cases: list[Case], noise: float = 0.0) -> TimedCases:
    """Cases on a platform, whose measured times are those with figures multiplied, and noise on them."""
    plain = TimedCases(platform, dict.fromkeys(cases, 1.0))
    seconds = plain.on(multiplied(platform, factors))
    off = np.exp(np.random.default_rng(1).normal(0.0, noise, len(seconds)))
    return TimedCases(platform, dict(zip(plain.cases, (seconds * off).tolist(), strict=True)))


def test_the_figures_of_a_machine_are_found() -> None:
    true = {"latency": 3.0, "start": 0.6, "handshake": 2.0, "rate": 0.9, "reduction": 1.5, "copy": 2.0}
    run = measured_on(preset(), true, CASES, noise=0.02)
    fitted = fit({"it": [run]})
    for name in ("latency", "rate"):
        assert fitted.of_machine["it"][name] == pytest.approx(true[name], rel=0.15)
    errors = np.array(check([run], fitted.of_machine["it"]).errors)
    assert 2 * np.median(errors) < 0.15 < np.median(check([run], {}).errors)
    for name, factor in true.items():
        low, high = fitted.interval("it", name)
        assert low < factor < high, name


def test_figures_that_times_say_nothing_of_keep_their_prior() -> None:
    cases = [case for case in CASES if case.collective == "bcast"]
    fitted = fit({"it": [measured_on(preset(), {"latency": 2.0, "reduction": 5.0}, cases)]})
    assert fitted.of_machine["it"]["reduction"] == pytest.approx(1.0, abs=1e-3)
    assert fitted.deviations["it"]["reduction"] == pytest.approx(FIGURES["reduction"].spread, rel=1e-3)
    assert fitted.deviations["it"]["latency"] < 0.8 * FIGURES["latency"].spread


def test_common_figures_lie_between_those_of_machines() -> None:
    runs = {name: [measured_on(preset(), {"latency": factor}, CASES)] for name, factor in (("a", 0.5), ("b", 2.0))}
    fitted = fit(runs)
    assert fitted.of_machine["a"]["latency"] < fitted.common["latency"] < fitted.of_machine["b"]["latency"]


def test_collectives_are_predicted_from_the_others() -> None:
    run = measured_on(preset(), {"latency": 3.0}, CASES)
    found = without_each_collective("it", [run])
    assert set(found) == {case.collective for case in run.cases}
    for name, checked in found.items():
        assert np.median(checked.errors) < 0.15, name


def test_times_without_a_case_that_is_played_are_refused() -> None:
    with pytest.raises(UsageError, match="it: the engine can play none of the timed cases"):
        fit({"it": [TimedCases(preset(), {Case("bcast", "nothing_known", 8, 64): 1e-5})]})


def test_multiplying_and_taking_back_gives_the_same_platform() -> None:
    plain = preset()
    factors = {name: 1.25 if name != "rate" else 0.9 for name in present(plain)}
    made = published(plain, factors)
    assert made.published["figures_multiplied"] == factors
    assert amounts(from_data_sheets(made)) == pytest.approx(amounts(plain), rel=1e-5)
    for name, factor in factors.items():
        assert amounts(made)[name] == pytest.approx(amounts(plain)[name] * factor, rel=1e-5)


def test_the_most_telling_measurements_beat_others_drawn_at_random() -> None:
    """Machines are drawn from the priors; after five measurements choices lose less if these were chosen."""
    base, random = preset(), np.random.default_rng(4)
    plain = TimedCases(base, dict.fromkeys(CASES, 1.0))
    start = fit({"it": [measured_on(base, {}, [CASES[0]])]})
    wanted = most_telling(base, replace(start, common=dict.fromkeys(start.common, 1.0)), CASES)
    assert len(wanted) == 5
    lost: dict[str, list[float]] = {"chosen": [], "drawn": []}
    for _ in range(6):
        factors = {name: math.exp(random.normal(0, FIGURES[name].spread)) for name in present(base)}
        truth = measured_on(base, factors, CASES)
        drawn = [plain.cases[place] for place in random.choice(len(plain.cases), 5, replace=False)]
        for how, cases in (("chosen", wanted), ("drawn", drawn)):
            some = {case: truth.measured[case] for case in cases}
            fitted = fit({"it": [TimedCases(base, some)]})
            lost[how].append(float(np.mean(check([truth], fitted.of_machine["it"]).regrets)))
    assert np.mean(lost["chosen"]) < np.mean(lost["drawn"])


def test_messages_between_two_nodes_tell_latency_and_rate() -> None:
    true = {"latency": 3.0, "handshake": 2.0, "rate": 0.8}
    run = measured_on(preset(), true, [*LATENCIES, *STREAMS], noise=0.02)
    fitted = fit({"it": [run]})
    for name, factor in true.items():
        low, high = fitted.interval("it", name)
        assert low < factor < high, name
        assert fitted.of_machine["it"][name] == pytest.approx(factor, rel=0.2), name
    assert np.median(check([run], fitted.of_machine["it"]).errors) < 0.05
    for name in ("reduction", "copy"):
        assert fitted.deviations["it"][name] == pytest.approx(FIGURES[name].spread, rel=0.01), name


def test_messages_in_a_row_tell_overheads() -> None:
    """Latencies tell no more than the sum of latency and overheads."""
    true = {"latency": 2.0, "overhead": 2.0, "start": 2.0}

    def width(cases: list[Case], name: str) -> float:
        return fit({"it": [measured_on(preset(), true, cases)]}).deviations["it"][name]

    assert width([*LATENCIES, *STREAMS], "start") < 0.5 * FIGURES["start"].spread < width(LATENCIES, "start")


def test_collectives_outweigh_messages_between_idle_nodes() -> None:
    """Messages in collectives take longer than alone, which is what choices are about."""
    idle, busy = (
        measured_on(preset(), {"latency": factor}, cases) for factor, cases in ((1.0, LATENCIES), (3.0, CASES))
    )
    both = fit({"it": [idle, busy]}).of_machine["it"]["latency"]
    assert 1.0 < both < 3.0


def test_a_jump_of_the_latency_curve_is_the_eager_limit() -> None:
    limited = with_eager_limit(preset(), 1 << 14)
    assert limited.calibration.eager_limit_bytes == 1 << 14 != preset().calibration.eager_limit_bytes
    found = jump(measured_on(limited, {"handshake": 4.0}, LATENCIES, noise=0.02).measured)
    assert found is not None
    assert found[0] == 1 << 14
    smooth = {case: 2e-6 + case.message_bytes / 1e9 for case in LATENCIES}
    assert jump(smooth) is None


def test_a_limit_beyond_other_figures_is_left() -> None:
    plain = preset()
    other = replace(plain.calibration, latency_factor=((0, 1.0), (4096, 1.1), *plain.calibration.latency_factor[1:]))
    assert with_eager_limit(replace(plain, calibration=other), 1024).calibration == other


def osu(platform: Platform, factors: Factors) -> str:
    seconds = measured_on(platform, factors, [*LATENCIES, *STREAMS]).measured
    latencies = "\n".join(f"{case.message_bytes} {seconds[case] * 5e5!r}" for case in LATENCIES)
    rates = "\n".join(f"{case.message_bytes} {64 * case.message_bytes / seconds[case] / 1e6!r}" for case in STREAMS)
    return OSU.format(latencies=latencies, rates=rates)


def test_what_osu_prints_is_fitted(tmp_path: Path) -> None:
    (tmp_path / "osu.txt").write_text(osu(with_eager_limit(preset(), 1 << 14), {"latency": 2.0, "handshake": 5.0}))
    fitted = fitted_to_times(preset(), [tmp_path / "osu.txt"])
    found = shown(fitted)
    rows = {row["figure"]: row for row in found.rows}
    assert rows["latency"]["factor"] == pytest.approx(2.0, rel=0.1)
    assert [rows[name]["told"] for name in ("latency", "start", "reduction", "copy")] == [True, True, False, False]
    assert found.facts["eager_limit_bytes"] == 1 << 14
    fitted.save(tmp_path / "fitted.toml")
    assert load_description(str(tmp_path / "fitted.toml")).calibration.eager_limit_bytes == 1 << 14
    assert any("at 16 KiB: the eager limit becomes 16 KiB" in str(part) for part in found.parts)


def times_file(measured: Mapping[Case, float], factor: float = 1.0, ppn: int = 1) -> str:
    rows = [
        f"{case.collective},{case.algorithm},{case.procs},{case.message_bytes},{ppn},{seconds * factor!r}"
        for case, seconds in measured.items()
        if case.message_bytes
    ]
    return "\n".join(["# machine: a", "# library: b", "collective,algorithm,procs,bytes,ppn,seconds", *rows, ""])


def calibrated(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """What the command says to a file of times."""
    (folder / "it.csv").write_text(text)
    (folder / "made.toml").write_text(write_description(preset()))
    words = ("--nominal", "made.toml", "--times", "it.csv", "-o", "fitted.toml", "--json")
    return called("platforms", "calibrate", *words, cwd=folder)


UNCUT = [case for case in CASES if not case.segment_bytes and case.collective in ("gather", "scatter", "alltoall")]
LONG = [Case("bcast", name, 16, SIZES[-1]) for name in ("linear", "binomial")]


def test_the_command_fits_a_nominal_platform(tmp_path: Path) -> None:
    """Times as they would be on a machine with a latency that is twice as long: the command finds it, and predicts."""
    done = calibrated(tmp_path, times_file(measured_on(preset(), {"latency": 2.0}, UNCUT).measured))
    rows = {row["figure"]: row for row in printed(done.stdout).rows}
    assert rows["latency"]["factor"] == pytest.approx(2.0, rel=0.2)
    assert rows["latency"]["told"]
    made = load_description(str(tmp_path / "fitted.toml"))
    assert amounts(made)["latency"] == pytest.approx(rows["latency"]["fitted"], rel=1e-5)


REFUSED = [
    # As long as expected, and a thousand times too long.
    (measured_on(preset(), {}, LONG).measured, 1, 1, "the times do not determine any parameter of made; give more"),
    (measured_on(preset(), {}, UNCUT).measured, 1000, 1, "check the unit in the column header"),
    ({Case("latency", "", 2, 64): 5e-7}, 1, 2, "messages between two nodes, or two algorithms of one collective"),
    ({LONG[0]: 5e-6}, 1, 1, "found no usable times; expected times with one process per node"),
]


@pytest.mark.parametrize(("measured", "factor", "ppn", "said"), REFUSED, ids=["known", "unit", "within a node", "one"])
def test_times_that_cannot_be_fitted_are_refused(
    measured: Mapping[Case, float], factor: float, ppn: int, said: str, tmp_path: Path
) -> None:
    done = calibrated(tmp_path, times_file(measured, factor, ppn))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith("collwise: --times: ")
    assert said in done.stderr
    assert not (tmp_path / "fitted.toml").exists()


# The fit's parts.


@settings(max_examples=10)
@given(
    st.sets(st.sampled_from(CASES), min_size=1, max_size=12),
    st.sets(st.sampled_from([*LATENCIES, *STREAMS]), max_size=12),
    st.floats(-1, 1),
)
def test_each_collective_and_each_protocol_of_messages_counts_as_one_observation(
    some: set[Case], messages: set[Case], off: float
) -> None:
    """However many sizes and algorithms were timed, if all times are off by the same factor."""
    plain = TimedCases(preset(), dict.fromkeys([*some, *messages], 1.0))
    run = TimedCases(preset(), dict(zip(plain.cases, (plain.on(preset()) * math.exp(off)).tolist(), strict=True)))
    limit = preset().calibration.eager_limit_bytes
    kinds = {case.collective for case in plain.cases if case in some}
    protocols = {(case.experiment, case.message_bytes >= limit) for case in plain.cases if case in messages}
    wanted = off**2 * (len(kinds) / ERROR**2 + len(protocols) / MESSAGE_ERROR**2)
    assert (_misfit([run], {}) ** 2).sum() == pytest.approx(wanted, abs=1e-9)


@given(st.sampled_from(sorted(FIGURES)), st.floats(-3, 3), st.floats(1e-3, 2))
def test_a_figure_is_told_if_times_narrow_it_or_exclude_1(name: str, log: float, deviation: float) -> None:
    fitted = Fitted({}, {"it": {name: math.exp(log)}}, {"it": {name: deviation}}, np.zeros((0, 0)))
    low, high = stats.norm(log, deviation).interval(0.95)
    assert np.log(fitted.interval("it", name)) == pytest.approx([low, high], abs=1e-3)
    assume(abs(abs(log) / deviation - 1.96) > 1e-3)
    assert fitted.tells("it", name) == (deviation < FIGURES[name].spread / 2 or not low <= 0 <= high)
