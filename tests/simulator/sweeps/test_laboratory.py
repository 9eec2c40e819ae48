"""Experiments between few processes: in SMPI against times derived by hand, and on real MPI libraries."""

from __future__ import annotations

import itertools
import json
import math
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import KINDS, Effort, Experiment, Laboratory
from collwise.common.folders import SOURCES
from collwise.platforms import Calibration, load_description
from collwise.simulator.execution.installations import MPI_LIBRARIES
from collwise.simulator.execution.launchers import LocalMachine, run_program
from collwise.simulator.execution.processes import run_command
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SMPI, Engine, SimulationContext
from collwise.simulator.sweeps.experiment_runner import (
    ExperimentLaboratory,
    MeasuredExperiments,
    SimulatedExperiments,
    case_of,
    experiment_lines,
    plan_rounds,
    processes_of,
)
from collwise.simulator.sweeps.method import Precision
from collwise.simulator.sweeps.runner import run_cases
from tests.needs import each, needs
from tests.runners import FunctionRunner

SEND, RECEIVE, PER_BYTE = 1e-3, 2e-3, 1e-7
LATENCY, BANDWIDTH, ENVELOPE_BYTES = 5e-4, 1e8, 16
# No factors, no cross traffic. A byte costs a processor ten times what it costs the network, so that messages of one
# process never share a link.
PLATFORM = replace(
    load_description("grisou"),
    name="exact",
    nodes=8,
    link_latency_seconds=LATENCY / 2,
    link_bytes_per_second=BANDWIDTH,
    calibration=Calibration(crosstraffic=False, os=((0, SEND, PER_BYTE),), or_=((0, RECEIVE, PER_BYTE),)),
)
LARGE = 1_000_000
DELAY = 0.125
PROCS = 7


def sends(size: int) -> float:
    """Seconds of the processor in sending."""
    return SEND + PER_BYTE * size


def receives(size: int) -> float:
    return RECEIVE + PER_BYTE * size


def wire(size: int) -> float:
    return LATENCY + (size + ENVELOPE_BYTES) / BANDWIDTH


def by_hand(m: int, r: int) -> dict[Experiment, float]:
    """Eager messages of m bytes, replies of r bytes."""
    there, back = sends(m) + wire(m) + receives(m), sends(r) + wire(r) + receives(r)
    return {
        Experiment("roundtrip", (0, 1), m, r): there + back,
        Experiment("roundtrip", (5, 2), m, r): there + back,
        Experiment("send", (0, 1), m, r): sends(m),
        Experiment("isend", (0, 1), m, r): 0.0,
        Experiment("receive", (1, 0), m, r, delay_seconds=DELAY): receives(m),
        # A message sets out when its receive is posted.
        Experiment("unexpected_receive", (1, 0), m, r, delay_seconds=DELAY): wire(m) + receives(m),
        # Both directions at once do not share the link here, and the sends within MPI_Sendrecv do not block.
        Experiment("sendrecv", (2, 0), m, count=5): wire(m) + receives(m),
        # Receiving takes longer than sending, so that the partner is what the messages wait for.
        Experiment("saturation", (3, 1), m, r, 5): sends(m) + wire(m) + 5 * receives(m) + back,
        Experiment("prtt", (0, 6), m, r, 5, DELAY): 5 * sends(m) + 4 * DELAY + wire(m) + receives(m) + back,
        Experiment("prtt", (0, 6), m, r, 1, DELAY): there + back,
        # The second partner is done a send later; then the first process takes in two replies.
        Experiment("one_to_two", (0, 1, 2), m, r): sends(m) + there + back + receives(r),
        Experiment("one_to_two", (4, 3, 0), m, r): sends(m) + there + back + receives(r),
        Experiment("scatter", (0, 1, 2, 3), m): 3 * sends(m) + wire(m) + receives(m),
        Experiment("scatter", (2, 0, 1), m): 2 * sends(m) + wire(m) + receives(m),
        # Receives are posted one after another, and a message sets out when its own is.
        Experiment("gather", (0, 1, 2, 3), m): sends(m) + 3 * (wire(m) + receives(m)),
        # Forwarding sends do not block, and those are free here.
        Experiment("chain_bcast", (0, 1, 2, 3), m): 3 * (wire(m) + receives(m)),
    }


# A barrier's messages carry a byte. Reports share the link of process 0, which takes them in by turns, then sends the
# releases. Rendezvous is free of overhead.
BY_HAND = by_hand(1, 1) | by_hand(1000, 1) | by_hand(60_000, 2000)
BY_HAND |= {
    Experiment("linear_barrier", tuple(range(procs)), 0): procs * (sends(1) + receives(1))
    + LATENCY
    + (procs - 1) * (1 + ENVELOPE_BYTES) / BANDWIDTH
    + wire(1)
    for procs in (2, 3, PROCS)
}
BY_HAND |= {
    Experiment("clock", (0, 1), 0, count=100): 0.0,
    Experiment("reduce", (0, 1), 8000): 0.0,
    Experiment("roundtrip", (0, 1), LARGE, LARGE): 2 * wire(LARGE),
    Experiment("roundtrip", (0, 1), LARGE, 1): wire(LARGE) + sends(1) + wire(1) + receives(1),
    Experiment("send", (0, 1), LARGE, 1): wire(LARGE),
    Experiment("saturation", (0, 1), LARGE, 1, 3): 3 * wire(LARGE) + sends(1) + wire(1) + receives(1),
    Experiment("scatter", (0, 1, 2), LARGE): 2 * wire(LARGE),
    Experiment("gather", (0, 1, 2), LARGE): 2 * wire(LARGE),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "timings.sqlite") as opened:
        yield opened


def simulated(store: Store, version: str | None = None) -> ExperimentLaboratory:
    return SimulationContext(store, simgrid=version, jobs=2).laboratory(PLATFORM, PROCS)


@needs("smpi")
@pytest.mark.parametrize("version", [None, pytest.param("4.1", marks=needs("smpi-4.1"))], ids=["system", "4.1"])
@pytest.mark.parametrize("in_parallel", [True, False], ids=["parallel", "one after another"])
def test_simulated_times_are_those_derived_by_hand(store: Store, version: str | None, in_parallel: bool) -> None:
    assert {experiment.kind for experiment in BY_HAND} == set(KINDS)
    runner: Laboratory = simulated(store, version)
    found = runner.run(list(BY_HAND), in_parallel)
    for (experiment, seconds), measurement in zip(BY_HAND.items(), found, strict=True):
        assert measurement.seconds == pytest.approx(seconds, rel=1e-8), experiment
        assert (measurement.half_width_seconds, measurement.repetitions) == (0.0, 1)


@needs("smpi")
def test_one_to_two_with_equal_overheads_takes_what_lmo_says(store: Store) -> None:
    """4 C + 2 L + 2 C: two sends and two receives of the replies at i, a receive and a send at k."""
    overhead = ((0, SEND, 0.0),)
    platform = replace(PLATFORM, calibration=Calibration(crosstraffic=False, os=overhead, or_=overhead))
    runner = SimulationContext(store).laboratory(platform, 3)
    (measurement,) = runner.run([Experiment("one_to_two", (0, 1, 2), 1, 1)])
    assert measurement.seconds == pytest.approx(6 * SEND + 2 * wire(1), rel=1e-8)


@needs("smpi")
def test_side_by_side_takes_no_longer(store: Store) -> None:
    """On the real cluster's description, with its factors and cross traffic."""
    pairs = list(itertools.combinations(range(8), 2))
    asked = [Experiment("roundtrip", pair, size, size) for size in (1, 100_000) for pair in pairs]
    grisou = load_description("grisou")
    parallel, serial = (SimulationContext(store).laboratory(grisou, 8) for _ in range(2))
    together, alone = parallel.run(asked), serial.run(asked, in_parallel=False)
    for one, other in zip(together, alone, strict=True):
        assert one.seconds == pytest.approx(other.seconds, rel=0, abs=1e-9)
    assert parallel.effort.measurements == serial.effort.measurements == 2 * len(pairs)
    assert serial.effort.seconds == pytest.approx(sum(one.seconds for one in alone))
    assert parallel.effort.seconds == pytest.approx(7 * (together[0].seconds + together[-1].seconds), rel=1e-6)


@needs("smpi")
def test_effort_is_all_of_the_roundtrip(store: Store) -> None:
    runner = simulated(store)
    whole = by_hand(1000, 1)[Experiment("roundtrip", (0, 1), 1000, 1)]
    runner.run([Experiment("send", (0, 1), 1000, 1), Experiment("send", (2, 3), 1000, 1)])
    assert runner.effort.seconds == pytest.approx(whole, rel=1e-8)
    runner.run([Experiment("receive", (0, 1), 1000, 1, delay_seconds=DELAY)])
    assert runner.effort.seconds == pytest.approx(whole + sends(1) + DELAY + receives(1000), rel=1e-8)
    assert runner.effort.measurements == 3


# The store


@needs("smpi")
def test_nothing_is_made_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list(by_hand(1, 1))
    first = simulated(store)
    some = first.run(asked[:5])
    assert first.run([*asked, asked[0]])[:5] == some
    second = simulated(store)
    monkeypatch.setattr("collwise.simulator.sweeps.experiment_runner.run_smpi", None)
    measurements = second.run(asked)
    assert first.effort == Effort(5 + len(asked), pytest.approx(first.effort.seconds))
    assert second.effort.measurements == len(asked)
    assert [one.seconds for one in measurements] == pytest.approx([BY_HAND[one] for one in asked], rel=1e-8)
    assert len(list(store.rows())) == len(asked)


@needs("smpi")
def test_other_ways_of_making_are_other_times() -> None:
    keys = {SimulatedExperiments(PLATFORM, PROCS, in_parallel=how).configuration.key for how in (True, False)}
    keys.add(SimulatedExperiments(replace(PLATFORM, link_latency_seconds=1e-6), PROCS).configuration.key)
    assert len(keys) == 3


# Ends itself after the third row, when it is asked to.
RUN_SCRIPT = """
import os, signal, sys
from collwise.common.experiments import Experiment
from collwise.platforms import load_description
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.store import Store

add, left = Store.add, [int(sys.argv[2])]

def add_one_by_one(store, configuration, timings):
    for timing in timings:
        add(store, configuration, [timing])
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

Store.add = add_one_by_one
with Store(sys.argv[1]) as store:
    runner = SimulationContext(store, jobs=1).laboratory(load_description("grisou"), 3)
    runner.run([Experiment("saturation", (0, 1), size, 1, 10) for size in range(1000, 1012)])
    print(runner.effort.measurements)
"""


def rows_of(path: Path) -> dict[int, tuple[float, str]]:
    connection = sqlite3.connect(path)
    try:
        found = connection.execute("select message_bytes, seconds, made_at from timings").fetchall()
    finally:
        connection.close()
    return {size: (seconds, made_at) for size, seconds, made_at in found}


@needs("smpi")
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "timings.sqlite"
    command = [sys.executable, "-c", RUN_SCRIPT, str(path)]
    assert subprocess.run([*command, "3"], stdout=subprocess.DEVNULL).returncode == -signal.SIGKILL
    kept = rows_of(path)
    assert len(kept) == 3
    time.sleep(1.1)  # made_at counts whole seconds
    assert subprocess.run([*command, "0"], capture_output=True, text=True, check=True).stdout.split() == ["12"]
    rows = rows_of(path)
    assert sorted(rows) == list(range(1000, 1012))
    assert {size: rows[size] for size in kept} == kept


# Rounds

EXPERIMENTS = st.lists(
    st.builds(
        Experiment,
        st.sampled_from(["roundtrip", "one_to_two"]),
        st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True).map(tuple),
        st.sampled_from([0, 1, 1000, 1100]),
    ),
    unique=True,
)


@given(EXPERIMENTS, st.booleans())
def test_rounds_hold_everything_once_on_disjoint_processes(experiments: list[Experiment], in_parallel: bool) -> None:
    cases = [case_of(one, 1) for one in experiments]
    rounds = plan_rounds(cases, in_parallel)
    assert sorted(one for together in rounds for one in together) == sorted(cases)
    for together in rounds:
        ranks = [rank for one in together for rank in processes_of(one)]
        assert len(set(ranks)) == len(ranks)
        assert len({one.experiment for one in together}) == 1
        assert in_parallel or len(together) == 1


@pytest.mark.parametrize("procs", [2, 3, 4, 7, 8, 12, 16, 24, 31, 32])
def test_all_pairs_take_hardly_more_rounds_than_they_must(procs: int) -> None:
    pairs = [case_of(Experiment("roundtrip", pair, 1), 1) for pair in itertools.combinations(range(procs), 2)]
    assert len(plan_rounds(pairs, True)) <= max(1, procs)


@pytest.mark.parametrize("procs", [3, 6, 8, 16])
def test_all_triplets_take_hardly_more_rounds_than_they_must(procs: int) -> None:
    triplets = [
        case_of(Experiment("one_to_two", (first, *(rank for rank in three if rank != first)), 1), 1)
        for three in itertools.combinations(range(procs), 3)
        for first in three
    ]
    assert len(plan_rounds(triplets, True)) <= 1.1 * len(triplets) / (procs // 3)


# Bad input

GOOD = Experiment("roundtrip", (0, 1), 1, 1)
BAD = {
    "unknown experiment 'rundtrip'": replace(GOOD, kind="rundtrip"),
    "ranks must be from 0 to 6": replace(GOOD, processes=(0, 7)),
    "ranks must be from 0 to 6 ": replace(GOOD, processes=(-1, 0)),
    "named twice": replace(GOOD, processes=(1, 1)),
    "takes 2 processes": replace(GOOD, processes=(0, 1, 2)),
    "takes 3 processes": replace(GOOD, kind="one_to_two"),
    "all ranks from 0 to P - 1": Experiment("scatter", (0, 2), 1),
    r"all ranks from 0 to P - 1 \(at least two\)": Experiment("gather", (0,), 1),
    "-1 bytes": replace(GOOD, message_bytes=-1),
    "1073741825 bytes": replace(GOOD, reply_bytes=2**30 + 1),
    "3221225472 bytes": replace(GOOD, kind="saturation", message_bytes=2**29, count=6),
    "no replies": Experiment("scatter", (0, 1), 1, 1),
    "messages are empty": Experiment("linear_barrier", (0, 1), 1),
    "2 messages": replace(GOOD, count=2),
    "0 messages": replace(GOOD, kind="prtt", count=0),
    "a delay of -1 s": replace(GOOD, kind="prtt", delay_seconds=-1),
    "a delay of nan s": replace(GOOD, kind="prtt", delay_seconds=math.nan),
    "a delay of 1.0 s": replace(GOOD, delay_seconds=1.0),
}


@needs("smpi")
@pytest.mark.parametrize("message", BAD)
def test_experiments_that_do_not_fit_are_refused(store: Store, message: str) -> None:
    with pytest.raises(UsageError, match=message.strip()):
        simulated(store).run([GOOD, BAD[message]])
    assert list(store.rows()) == []


def test_precision_that_makes_no_sense_is_refused() -> None:
    for wrong in ((0, 5), (6, 5), (5, 10**6)):
        with pytest.raises(UsageError, match="repetitions; valid"):
            Precision(*wrong)
    with pytest.raises(UsageError, match=r"confidence 1.0; valid: strictly between 0 and 1"):
        Precision(confidence=1.0)
    with pytest.raises(UsageError, match=r"relative error 0.0; valid"):
        Precision(relative_error=0.0)


@needs("smpi")
def test_a_platform_that_is_too_small_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="cannot hold P = 9"):
        SimulationContext(store).laboratory(PLATFORM, 9)


def test_the_runner_of_experiments_is_the_engines(store: Store) -> None:
    made = FunctionRunner(lambda case: 1.0 + case.message_bytes)
    lab = SimulationContext(store, Engine("test", SMPI.collectives, lambda *_: made)).laboratory(PLATFORM, 2)
    (measurement,) = lab.run([Experiment("roundtrip", (0, 1), 7)])
    assert (measurement.seconds, made.processes_started) == (8.0, 1)


def test_an_engine_without_experiments_says_so(store: Store) -> None:
    context = SimulationContext(store, replace(SMPI, name="other", experiments=None))
    with pytest.raises(UsageError, match="experiments that fit models; use --engine smpi"):
        context.laboratory(PLATFORM, 2)
    with pytest.raises(UsageError, match="engine other cannot run the experiments that fit models"):
        context.simulate_experiments(PLATFORM, 2, 1, [])


@needs("smpi")
def test_a_failing_engine_is_an_error_that_keeps_what_is_done(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program refuses a kind that it does not know."""
    monkeypatch.setattr(
        "collwise.simulator.sweeps.experiment_runner.experiment_lines",
        lambda rounds, repetitions: experiment_lines(rounds, repetitions).replace("prtt", "?"),
    )
    with pytest.raises(CollwiseError, match=r"experiment '.* \? .*': kind is unknown; 1 of 2 experiments"):
        simulated(store).run([GOOD, replace(GOOD, kind="prtt")])


@needs("smpi")
def test_a_store_that_cannot_be_written_is_what_the_error_is_about(store: Store) -> None:
    runner = simulated(store)
    runner.run([GOOD])
    store.close()
    with pytest.raises(UsageError, match="cannot be used"):
        runner.run([replace(GOOD, message_bytes=size) for size in range(2, 200)])


@needs("smpi")
def test_bad_experiments_are_told_and_the_others_run(tmp_path: Path) -> None:
    bad = {
        "0 roundtrip 1 1 1 0.0 0 2 0": "a rank is not a whole number from 0 to 1",
        "0 roundtrip 1 1 1 0.0 0 2 0 9": "a rank is not a whole number from 0 to 1",
        "0 roundtrip 1 1 1 0.0 0 2 0 0": "a rank is named twice",
        "0 roundtrip -1 1 1 0.0 0 2 0 1": "message_bytes is not a whole number from 0 to 1073741824",
        "0 roundtrip 1 1 1 soon 0 2 0 1": "delay_seconds is not a number from 0 to 1000000",
        "0 roundtrip 1 1 1 nan 0 2 0 1": "delay_seconds is not a number from 0 to 1000000",
        "0 roundtrip 1 1 1 0.0 -1 2 0 1": "repetitions is not a whole number from 0 to 16777216",
        "0 roundtrip 1 1 1 0.0 0 1 0": "procs is not 3 for one_to_two, and not even for pairs",
        "0 roundtrip 1 1 1 0.0 0 2 0 1 0": "there is more on the line than its fields",
        "0 one_to_two 1 1 1 0.0 0 2 0 1": "procs is not 3 for one_to_two, and not even for pairs",
        "0 gather 1 0 1 0.0 0 9 0": "procs is not a whole number from 1 to 2",
        "0 gather 1 0 1 0.0 0 2 2": "a rank is not a whole number from 0 to 1",
    }
    good = "1 roundtrip 1 1 1 0.0 0 2 0 1"
    (tmp_path / "file.txt").write_text("".join(f"{i} {line}\n" for i, line in enumerate([*bad, good])))
    run = run_program("smpi", "experiments", 2, [str(tmp_path / "file.txt")], platform=PLATFORM, timeout_seconds=900)
    found = [json.loads(line) for line in run.output_lines if line.startswith('{"id"')]
    assert [record.get("error") for record in found] == [*bad.values(), None]
    assert found[-1]["seconds"] > 0


# Real MPI libraries

EVERY_KIND = [
    Experiment("roundtrip", (0, 1), 1000, 1000),
    Experiment("roundtrip", (2, 1), 100_000, 0),
    Experiment("send", (1, 2), 1000, 0),
    Experiment("isend", (2, 0), 100_000, 1),
    Experiment("unexpected_receive", (2, 0), 1000, 0, delay_seconds=1e-4),
    Experiment("sendrecv", (1, 2), 1000, count=4),
    Experiment("clock", (2, 1), 0, count=1000),
    Experiment("reduce", (1, 0), 8000),
    Experiment("receive", (2, 0), 1000, 0, delay_seconds=1e-4),
    Experiment("saturation", (0, 2), 1000, 0, 10),
    Experiment("saturation", (0, 2), 100_000, 0, 3),
    Experiment("prtt", (1, 0), 100, 0, 4, 1e-4),
    Experiment("one_to_two", (1, 0, 2), 1000, 1000),
    Experiment("scatter", (0, 1, 2), 1000),
    Experiment("scatter", (1, 0), 1000),
    Experiment("gather", (2, 0, 1), 100_000),
    Experiment("chain_bcast", (0, 1, 2), 1000),
    Experiment("linear_barrier", (0, 1, 2), 0),
]


@pytest.mark.usefixtures("yielding_mpich")
@pytest.mark.parametrize("library", each(*MPI_LIBRARIES))
def test_real_libraries_run_every_kind_until_it_is_exact_enough(store: Store, library: str) -> None:
    precision = Precision(3, 12, relative_error=0.2)
    runner = ExperimentLaboratory.measured(LocalMachine(library), 3, store, precision=precision)
    assert {experiment.kind for experiment in EVERY_KIND} == set(KINDS)
    measurements = runner.run(EVERY_KIND)
    for experiment, measurement in zip(EVERY_KIND, measurements, strict=True):
        assert measurement.seconds > 0, experiment
        assert 3 <= measurement.repetitions <= 12
        close = measurement.half_width_seconds < 0.2 * measurement.seconds
        assert close or measurement.repetitions == 12, experiment
    by_kind = dict(zip((experiment.kind for experiment in EVERY_KIND), measurements, strict=True))
    assert by_kind["prtt"].seconds > 3 * 1e-4
    assert runner.effort.measurements == sum(one.repetitions for one in measurements)
    # All that passed, the busy-waiting and the synchronisation, too.
    assert runner.effort.seconds > sum(one.seconds * one.repetitions for one in measurements)
    again = ExperimentLaboratory.measured(LocalMachine(library), 3, store, precision=precision)
    assert again.run(EVERY_KIND) == measurements
    assert again.effort == runner.effort


@pytest.mark.usefixtures("yielding_mpich")
@pytest.mark.parametrize("library", each(*MPI_LIBRARIES))
def test_a_fixed_number_of_repetitions(store: Store, library: str) -> None:
    """As in the thesis, where the least and the most are one number."""
    for count, width in ((1, math.inf), (2, None)):
        runner = ExperimentLaboratory.measured(LocalMachine(library), 2, store, precision=Precision(count, count))
        (measurement,) = runner.run([GOOD])
        assert measurement.repetitions == count
        assert width is None or measurement.half_width_seconds == width


@pytest.mark.usefixtures("yielding_mpich")
@pytest.mark.parametrize("library", each(*MPI_LIBRARIES))
def test_pairs_side_by_side_give_all_samples_of_the_first(store: Store, library: str) -> None:
    cases = {
        case_of(Experiment("saturation", (1, 0, 3, 2), 1000, 1, 8), 4): 5,
        case_of(Experiment("roundtrip", (2, 3), 10, 10), 4): 2,
        case_of(Experiment("eager_limit", (2, 1), 2**20, count=1, delay_seconds=2e-2), 4): 1,
    }
    runner = MeasuredExperiments(LocalMachine(library), 4, Precision(2, 5), repetitions=cases)
    found = run_cases(runner, list(cases), store).timings
    *pairs, limit = [found[case] for case in cases]
    for timing, repetitions in zip(pairs, cases.values(), strict=False):
        assert timing.repetitions == repetitions
        assert timing.samples is not None
        assert len(timing.samples) == repetitions
        assert timing.seconds == pytest.approx(sum(timing.samples) / repetitions)
    assert limit.samples is not None
    assert 0 <= limit.samples[0] <= 2**20
    assert math.isnan(limit.seconds)
    again = run_cases(
        MeasuredExperiments(LocalMachine(library), 4, Precision(2, 5), repetitions=cases), list(cases), store
    )
    assert (again.reused, again.processes_started) == (3, 0)
    assert repr(again.timings) == repr(found)


@pytest.mark.slow
@needs("openmpi")
def test_no_memory_error_under_openmpi(tmp_path: Path) -> None:
    build = tmp_path / "sanitized"
    configure = ["cmake", "-S", str(SOURCES), "-B", str(build), "-G", "Ninja", "-DCOLLWISE_MPI=openmpi"]
    subprocess.run([*configure, "-DCOLLWISE_SANITIZE=ON"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "experiments"], check=True, capture_output=True)
    (tmp_path / "file.txt").write_text(experiment_lines(plan_rounds([case_of(one, 1) for one in EVERY_KIND], True), {}))
    environment = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "ASAN_OPTIONS": "detect_leaks=0",  # Open MPI itself leaks
    }
    launch = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-np", "3"]
    command = [*launch, str(build / "experiments"), str(tmp_path / "file.txt"), *Precision(2, 5).options(), "--samples"]
    run = run_command(command, environment=environment, timeout_seconds=900)
    assert run.returncode == 0, run.error_text
    assert len([line for line in run.output_lines if line.startswith('{"id"')]) == len(EVERY_KIND)
