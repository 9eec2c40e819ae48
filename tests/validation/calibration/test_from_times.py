"""Figures fitted to times of collectives: of known machines, what times do not tell, what to measure next."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

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
    TimedCases,
    check,
    fit,
    jump,
    most_telling,
    without_each_collective,
)
from collwise.validation.times.grid import Grid
from tests.command_line import called, printed

SIZES = (64, 4096, 262144, 8388608)
CASES = [
    case
    for collective in ("bcast", "gather", "scatter", "alltoall", "reduce", "allreduce")
    for case in Grid.of(collective, (16,), SIZES, 1, (0,)).cases()
    if not case.entry.by_node and case.parameter == 0
]
MESSAGE_SIZES = [1 << power for power in range(0, 23, 2)]
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


def test_the_command_fits_a_nominal_platform(tmp_path: Path) -> None:
    """Times as they would be on a machine with a latency that is twice as long: the command finds it, and predicts."""
    wanted = [one for one in measured_on(preset(), {"latency": 2.0}, CASES).measured.items() if one[0].message_bytes]
    lines = [
        f"{case.collective},{case.algorithm},{case.procs},{case.message_bytes},1,{case.segment_bytes},{seconds * 1e6!r}"
        for case, seconds in wanted
    ]
    head = "# machine: somewhere\n# library: ours\ncollective,algorithm,procs,bytes,ppn,segment,us\n"
    times, nominal, made = (tmp_path / name for name in ("it.times.csv", "made.toml", "fitted.toml"))
    times.write_text(head + "\n".join(lines) + "\n")
    nominal.write_text(write_description(preset()))
    asked = ["platforms", "calibrate", "--nominal", str(nominal), "--times", str(times), "-o", str(made), "--json"]
    rows = {row["figure"]: row for row in printed(called(*asked, cwd=tmp_path).stdout).rows}
    assert rows["latency"]["factor"] == pytest.approx(2.0, rel=0.2)
    assert rows["latency"]["told"]
    assert amounts(load_description(str(made)))["latency"] == pytest.approx(rows["latency"]["fitted"], rel=1e-5)


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


def test_times_that_determine_nothing_are_refused(tmp_path: Path) -> None:
    """Two broadcasts that take as long as expected, whose rate is known better than such times."""
    cases = [Case("bcast", name, 16, SIZES[-1]) for name in ("linear", "binomial")]
    lines = [f"bcast,{case.algorithm},16,{SIZES[-1]},{seconds!r}\n"
             for case, seconds in measured_on(preset(), {}, cases).measured.items()]  # fmt: skip
    head = "# machine: a\n# library: b\ncollective,algorithm,procs,bytes,seconds\n"
    (tmp_path / "it.csv").write_text(head + "".join(lines))
    (tmp_path / "made.toml").write_text(write_description(preset()))
    done = called("platforms", "calibrate", "--nominal", "made.toml", "--times", "it.csv", "-o", "x.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("collwise: --times: the times do not determine any parameter of made; give more")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.toml").exists()


def test_messages_within_a_node_are_not_fitted(tmp_path: Path) -> None:
    text = "# machine: a\n# library: b\ncollective,algorithm,procs,bytes,ppn,us\nlatency,,2,64,2,0.5\n"
    (tmp_path / "it.csv").write_text(text)
    done = called("platforms", "calibrate", "--nominal", "gros", "--times", "it.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "messages between two nodes, or two algorithms of one collective" in done.stderr


def test_times_of_one_algorithm_are_refused(tmp_path: Path) -> None:
    times = tmp_path / "it.times.csv"
    times.write_text("# machine: a\n# library: b\ncollective,algorithm,procs,bytes,us\nbcast,binomial,8,64,5\n")
    done = called("platforms", "calibrate", "--nominal", "gros", "--times", str(times), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("collwise: --times: found no usable times; expected times with one process per node")
    assert len(done.stderr.splitlines()) == 1


def test_times_in_another_unit_are_refused(tmp_path: Path) -> None:
    """Nothing is written where all times are a thousand times too long."""
    wanted = measured_on(preset(), {}, CASES).measured.items()
    lines = [
        f"{one.collective},{one.algorithm},{one.procs},{one.message_bytes},1,{one.segment_bytes},{seconds * 1e9!r}"
        for one, seconds in wanted
        if one.message_bytes
    ]
    times, nominal = tmp_path / "it.times.csv", tmp_path / "made.toml"
    head = "# machine: somewhere\n# library: ours\ncollective,algorithm,procs,bytes,ppn,segment,us\n"
    times.write_text(head + "\n".join(lines) + "\n")
    nominal.write_text(write_description(preset()))
    asked = ("--nominal", str(nominal), "--times", str(times), "-o", "fitted.toml")
    done = called("platforms", "calibrate", *asked, cwd=tmp_path)
    assert done.returncode == 2
    assert "check the unit in the column header" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "fitted.toml").exists()
