from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.simulator.execution.installations import smpi_installation
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.execution.processes import case_lines
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.store import Store
from collwise.simulator.sweeps import smpi_runner as sweeps
from collwise.simulator.sweeps.context import SimulationContext, smpi_as_library
from collwise.simulator.sweeps.runner import Progress, RunResult
from collwise.simulator.sweeps.smpi_runner import cost_of, plan_batches
from collwise.simulator.timing import Case, Timing
from tests.free import free
from tests.needs import needs
from tests.waiting import wait_for

GRISOU = free("grisou")
ENGINE_PRECISION = 1e-9


def mixed_cases() -> list[Case]:
    cases = []
    for procs in (2, 5, 8):
        for size in (1000, 65536, 131072):
            cases += [
                Case("bcast", name, procs, size, 8192)
                for name in ("linear_nonblocking", "chain", "k_chain", "binary", "split_binary", "binomial")
            ]
            cases.append(Case("bcast", "linear", procs, size))
            cases += [Case("gather", name, procs, size) for name in ("linear", "linear_sync", "binomial")]
        cases.append(Case("bcast", "chain", procs, 65536, 8192, experiment="bcast_gather", gather_bytes=2048))
        cases.append(Case("-", "-", procs, 0, experiment="barrier"))
    return [replace(case, processes_per_node=per_node) for case in cases for per_node in (1, 2)]


def run(folder: Path, cases: Sequence[Case], name: str = "timings", jobs: int = 1, **others: object) -> RunResult:
    with Store(folder / f"{name}.sqlite") as store:
        return SimulationContext(store, jobs=jobs, **others).simulate(GRISOU, cases)  # type: ignore[arg-type]


def shown_by(tell: Callable[[Timing, float, int], None]) -> Callable[[str], AbstractContextManager[Progress]]:
    """Progress of any label, told to a function."""
    return lambda label: nullcontext(tell)


# Independence


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Timing]:
    result = run(tmp_path_factory.mktemp("together"), mixed_cases(), jobs=2)
    assert result.failed == []
    return result.timings


def assert_same(found: Timing, expected: Timing) -> None:
    assert found.seconds == pytest.approx(expected.seconds, rel=0, abs=ENGINE_PRECISION), found.case
    assert found.root_seconds == pytest.approx(expected.root_seconds, rel=0, abs=ENGINE_PRECISION), found.case


@needs("smpi")
def test_a_case_alone_takes_the_time_it_takes_with_others(together: dict[Case, Timing], tmp_path: Path) -> None:
    chosen = random.Random(1).sample(mixed_cases(), 12)
    for number, case in enumerate(chosen):
        result = run(tmp_path, [case], f"alone{number}")
        assert result.processes_started == 1
        assert_same(result.timings[case], together[case])


@needs("smpi")
def test_order_and_company_do_not_matter(together: dict[Case, Timing], tmp_path: Path) -> None:
    """Straight to the program, with more processes than any case asks for: as in a batch with greater P."""
    cases = random.Random(2).sample([case for case in mixed_cases() if case.processes_per_node == 1], 60)
    (tmp_path / "cases").write_text(case_lines(cases))
    done = run_program("smpi", "benchmark", 18, [str(tmp_path / "cases")], platform=GRISOU)
    records = [sweeps.json.loads(line) for line in done.output_lines if line.startswith('{"id"')]
    assert len(records) == len(cases)
    for case, record in zip(cases, records, strict=True):
        assert_same(Timing(case, record["seconds"], record["root_seconds"]), together[case])


@needs("smpi")
def test_long_pipelines_of_many_processes_are_alone_what_they_are_together(tmp_path: Path) -> None:
    """Where links are shared, events nearly coincide: the least difference in rounding would show."""
    cases = [
        Case("bcast", name, procs, 524288, 8192, processes_per_node=2)
        for name, procs in (("chain", 37), ("k_chain", 50), ("binary", 37), ("split_binary", 50), ("binomial", 50))
    ] + [Case("gather", name, 50, 65536, processes_per_node=2) for name in ("linear_sync", "binomial")]
    many = run(tmp_path, [*cases, Case("bcast", "linear", 80, 1024, processes_per_node=2)])
    for number, case in enumerate(cases):
        assert_same(run(tmp_path, [case], f"alone{number}").timings[case], many.timings[case])


@needs("smpi")
def test_processes_on_one_node_are_closer(together: dict[Case, Timing]) -> None:
    across = Case("bcast", "chain", 2, 1000, 8192)
    within = replace(across, processes_per_node=2)
    assert together[within].seconds < together[across].seconds / 10


# The store is asked first


@needs("smpi")
def test_nothing_is_simulated_twice(tmp_path: Path) -> None:
    cases = mixed_cases()[:20]
    seen: list[tuple[Case, float]] = []
    first = run(
        tmp_path,
        [*cases[:12], *cases[:5]],
        progress=shown_by(lambda timing, share, cases: seen.append((timing.case, share))),
    )
    assert (first.reused, len(first.timings)) == (0, 12)
    assert first.processes_started >= 1
    assert {case for case, _ in seen} == set(cases[:12])
    assert [share for _, share in seen] == sorted(share for _, share in seen)
    assert seen[-1][1] == pytest.approx(1.0)

    second = run(tmp_path, cases[:12])
    assert (second.reused, second.processes_started) == (12, 0)
    assert second.timings == first.timings

    more = run(tmp_path, cases)
    assert more.reused == 12
    assert more.processes_started >= 1
    assert list(more.timings) == cases
    with sqlite3.connect(tmp_path / "timings.sqlite") as connection:
        assert connection.execute("select count(*) from timings").fetchone() == (20,)


@needs("smpi")
def test_no_case_is_no_work(tmp_path: Path) -> None:
    result = run(tmp_path, [])
    assert (result.timings, result.reused, result.processes_started, result.failed) == ({}, 0, 0, [])


@needs("smpi")
def test_another_platform_program_engine_or_option_is_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("bcast", "chain", 4, 65536, 8192)
    first = run(tmp_path, [case])

    def again() -> RunResult:
        with Store(tmp_path / "timings.sqlite") as store:
            return SimulationContext(store, jobs=1).simulate(GRISOU, [case])

    assert again().processes_started == 0
    slower = replace(GRISOU, link_latency_seconds=2 * GRISOU.link_latency_seconds)
    with Store(tmp_path / "timings.sqlite") as store:
        found = SimulationContext(store, jobs=1).simulate(slower, [case])
    assert (found.reused, found.processes_started) == (0, 1)
    assert found.timings[case].seconds > 1.2 * first.timings[case].seconds

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "file_digest", lambda path: "another program")
        assert again().reused == 0
        assert again().reused == 1
    with monkeypatch.context() as patch:
        patch.setitem(sweeps.SMPI_OPTIONS, "smpi/wtime", "1e-6")
        assert again().reused == 0
    with monkeypatch.context() as patch:
        engine = replace(smpi_installation(), version="9.9")
        patch.setattr(sweeps, "smpi_installation", lambda version, procs: engine)
        other = again()
        assert other.reused == 0
        assert other.configuration.maker == "SimGrid 9.9"
    last = again()
    assert (last.reused, last.processes_started) == (1, 0)
    assert last.timings == first.timings
    with sqlite3.connect(tmp_path / "timings.sqlite") as connection:
        assert connection.execute("select count(distinct configuration) from timings").fetchone() == (5,)


@needs("smpi")
def test_too_many_processes_for_the_platform(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="platform 'grisou' cannot hold P = 103 with 2 per node; valid: 1 to 102"):
        run(tmp_path, [Case("bcast", "chain", 4, 1), Case("bcast", "chain", 103, 1, processes_per_node=2)])
    with Store(tmp_path / "timings.sqlite") as store:
        assert list(store.rows()) == []


# Ended in the middle

# Ends itself by a signal after the fourth case, when it is asked to; no case is finished until that is under way.
SWEEP_SCRIPT = """
import os, signal, sys, threading
from contextlib import nullcontext
from collwise.platforms import load_description
from collwise.simulator.store import Store
from collwise.simulator.timing import Case
from collwise.simulator.sweeps.context import SimulationContext

ending, left, interrupted = int(sys.argv[2]), [4], threading.Event()

def interrupt(*_):
    interrupted.set()
    raise KeyboardInterrupt

def end(*_):
    left[0] -= 1
    if ending and left[0] == 0:
        os.kill(os.getpid(), ending)
        interrupted.wait()

signal.signal(signal.SIGINT, interrupt)
cases = [Case("bcast", "chain", 40, 1_000_000 + n, 8192) for n in range(12)]
with Store(sys.argv[1]) as store:
    context = SimulationContext(store, jobs=2, progress=lambda label: nullcontext(end))
    result = context.simulate(load_description("grisou"), cases)
    print(result.reused, len(result.timings), len(result.failed))
"""


def rows_of(path: Path) -> dict[int, tuple[str, float]]:
    """made_at and seconds by message size."""
    connection = sqlite3.connect(path)
    try:
        found = connection.execute("select message_bytes, made_at, seconds from timings").fetchall()
    finally:
        connection.close()
    return {size: (made_at, seconds) for size, made_at, seconds in found}


def simulators_of(store: Path) -> list[int]:
    """Processes that carry the mark which our children inherit."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"COLLWISE_TEST_STORE={store}".encode() in environment and state != "Z":
                found.append(int(entry.name))
    return found


def sweep(store: Path, ending: int) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", SWEEP_SCRIPT, str(store), str(int(ending))],
        env=os.environ | {"COLLWISE_TEST_STORE": str(store)},
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: not simulators_of(store))
    return done


@needs("smpi")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_goes_on_where_it_was_ended(tmp_path: Path, ending: signal.Signals) -> None:
    store = tmp_path / "timings.sqlite"
    ended = sweep(store, ending)
    assert ended.returncode == -ending, ended.stderr
    if ending == signal.SIGINT:
        assert ended.stderr.strip().splitlines()[-1] == "KeyboardInterrupt"
    kept = rows_of(store)
    assert 4 <= len(kept) < 12

    time.sleep(1.1)  # made_at counts whole seconds
    again = sweep(store, 0)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split() == [str(len(kept)), "12", "0"]
    rows = rows_of(store)
    assert sorted(rows) == [1_000_000 + n for n in range(12)]
    assert {size: rows[size] for size in kept} == kept
    assert min(made_at for size, (made_at, _) in rows.items() if size not in kept) > max(
        made_at for made_at, _ in kept.values()
    )


# An engine that fails

FAKE_SMPIRUN = """#!/bin/sh
if [ "$1" = -version ]; then echo "SimGrid version 3.99"; exit 0; fi
echo started >> {log}
for last; do :; done
while read -r id experiment collective algorithm procs root bytes rest; do
    case " $MESSAGES_THAT_FAIL " in
    *" all "*|*" $bytes "*)
        echo "[0.000000] [xbt_cfg/INFO] Configuration change: Set 'x' to 'y'" >&2
        echo "[node-1:0:(1) 0.5] [root/CRITICAL] the network caught fire at $bytes" >&2
        exit 41;;
    esac
    case " $MESSAGES_WITHOUT_END " in
    *" $bytes "*) while :; do :; done;;
    esac
    echo "some other output"
    line="{{\\"id\\": $id, \\"seconds\\": 0.$bytes, \\"root_seconds\\": 0.5, \\"repetitions\\": 1}}"
    if [ -z "$PRINTS_LATE" ]; then echo "$line"; else [ -z "$before" ] || echo "$before"; before=$line; fi
done < "$last"
[ -z "$PRINTS_LATE" ] || echo "$before"
"""


@pytest.fixture
def fake_smpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for smpirun; gives the log of its starts."""
    folder, log = tmp_path / "bin", tmp_path / "starts"
    folder.mkdir()
    (folder / "smpirun").write_text(FAKE_SMPIRUN.format(log=log))
    (folder / "smpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("MESSAGES_THAT_FAIL", "")
    monkeypatch.setenv("MESSAGES_WITHOUT_END", "")
    monkeypatch.setenv("PRINTS_LATE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "collwise.simulator.execution.installations.Installation.program", lambda self, name: Path("/bin/true")
    )
    return log


def numbered(*sizes: int) -> list[Case]:
    return [Case("bcast", "chain", 4, size) for size in sizes]


@pytest.mark.parametrize(
    "failing",
    [[13], [11], [19], [11, 19], [13, 14], [11, 12, 13], [15, 16, 17, 18, 19], [11, 13, 15, 17, 19]],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_failing_cases_are_marked_and_the_sweep_goes_on(
    fake_smpirun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: list[int], jobs: int
) -> None:
    monkeypatch.setenv("MESSAGES_THAT_FAIL", " ".join(map(str, failing)))
    cases = numbered(*range(11, 20))
    result = run(tmp_path, cases, jobs=jobs)
    assert result.configuration.maker == "SimGrid 3.99"
    assert sorted(timing.case.message_bytes for timing in result.failed) == failing
    for case, timing in result.timings.items():
        if case.message_bytes in failing:
            assert (
                f"SimGrid 3.99: [node-1:0:(1) 0.5] [root/CRITICAL] the network caught fire at {case.message_bytes} "
                in (timing.error)
            )
            assert "exit code 41" in timing.error
            assert "\n" not in timing.error
        else:
            assert timing.seconds == float(f"0.{case.message_bytes}")
    with Store(tmp_path / "timings.sqlite") as store:
        assert {row["message_bytes"] for row in store.rows() if row["error"]} == set(failing)
        assert len(list(store.rows())) == 9

    # Failed cases are tried again, the others are not.
    monkeypatch.setenv("MESSAGES_THAT_FAIL", "")
    fixed = run(tmp_path, cases, jobs=jobs)
    assert fixed.reused == 9 - len(failing)
    assert fixed.failed == []
    with Store(tmp_path / "timings.sqlite") as store:
        assert len(list(store.rows(error=""))) == 9


@pytest.mark.parametrize("failing", [[12], [14], [13, 14], [11, 15]])
def test_a_case_whose_time_was_not_printed_yet_is_not_taken_for_the_one_that_failed(
    fake_smpirun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: list[int]
) -> None:
    monkeypatch.setenv("MESSAGES_THAT_FAIL", " ".join(map(str, failing)))
    monkeypatch.setenv("PRINTS_LATE", "yes")
    result = run(tmp_path, numbered(*range(11, 16)), jobs=1)
    assert sorted(timing.case.message_bytes for timing in result.failed) == failing


def test_an_engine_that_always_fails_is_not_started_for_every_case(
    fake_smpirun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESSAGES_THAT_FAIL", "all")
    result = run(tmp_path, numbered(*range(1, 101)))
    assert len(result.failed) == 100
    assert all("the network caught fire" in timing.error for timing in result.failed)
    assert len(fake_smpirun.read_text().splitlines()) <= 3


def test_a_library_call_that_never_ends_is_given_up(
    fake_smpirun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESSAGES_WITHOUT_END", "14")
    monkeypatch.setattr(sweeps, "_LIMIT_SECONDS", 1)
    result = run(tmp_path, numbered(*range(11, 17)), engine=smpi_as_library("ompi"))
    assert [timing.case.message_bytes for timing in result.failed] == [14]
    assert result.failed[0].error == "SimGrid 3.99: does not end within 1 s of processor time"
    # Once with the cases before it, once alone, and once for those after it.
    assert len(fake_smpirun.read_text().splitlines()) == 3


@needs("smpi")
def test_a_simulator_that_exceeds_its_time_is_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_LIMIT_SECONDS", 1)
    monkeypatch.setattr(sweeps, "_LIMIT_SECONDS_PER_MESSAGE", 0.0)
    # A quarter of a million messages: no machine simulates them within the second.
    case = Case("alltoall", "-", 300, 512, processes_per_node=16, experiment="builtin")
    result = run(tmp_path, [case], engine=smpi_as_library("mpich"))
    assert [timing.error.partition(": ")[2] for timing in result.failed] == [
        "does not end within 1 s of processor time"
    ]


@needs("smpi")
def test_a_case_that_the_program_refuses_fails_alone(tmp_path: Path) -> None:
    cases = [
        Case("bcast", "chain", 3, 1000),
        Case("bcast", "no_such", 3, 1000),
        Case("bcast", "chain", 3, 1000, root=9),
    ]
    result = run(tmp_path, cases)
    assert [timing.error for timing in result.timings.values()] == [
        *("", "unknown algorithm", "root is not a whole number from 0 to 2"),
    ]


def test_smpirun_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"^smpirun not found on PATH; install SimGrid \(apt-get install") as caught:
        run(tmp_path, numbered(1))
    assert "\n" not in str(caught.value)


def test_smpirun_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "smpirun").write_text("#!/bin/sh\necho I am a teapot\n")
    (tmp_path / "smpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="smpirun does not print its version: I am a teapot"):
        run(tmp_path, numbered(1))


@needs("smpi")
def test_a_simgrid_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"SimGrid 1\.2 is not installed; valid: .*collwise setup install --simgrid 1\.2"
    ):
        run(tmp_path, numbered(1), simgrid="1.2")


# Batches

CASES = st.builds(
    Case,
    st.sampled_from(["bcast", "gather"]),
    st.sampled_from(["chain", "linear"]),
    st.integers(1, 200),
    st.integers(0, 2**22),
    st.sampled_from([0, 1024, 8192]),
    processes_per_node=st.integers(1, 2),
    experiment=st.sampled_from(["collective", "bcast_gather"]),
)


@given(st.lists(CASES, max_size=60, unique=True), st.integers(1, 8))
def test_batches(cases: list[Case], jobs: int) -> None:
    batches = plan_batches(cases, jobs)
    assert sorted(case for batch in batches for case in batch) == sorted(cases)
    assert all(batch for batch in batches)
    loads = [sum(map(cost_of, batch)) for batch in batches]
    assert loads == sorted(loads, reverse=True)
    for batch in batches:
        assert len({case.processes_per_node for case in batch}) == 1
        assert [case.procs for case in batch] == sorted(case.procs for case in batch)
    for per_node in {case.processes_per_node for case in cases}:
        group = [case for case in cases if case.processes_per_node == per_node]
        theirs = [sum(map(cost_of, batch)) for batch in batches if batch[0].processes_per_node == per_node]
        assert len(theirs) >= min(jobs, len(group))
        assert max(theirs) <= sum(theirs) / len(theirs) + max(map(cost_of, group))


# Those whose messages follow from the topology alone, whatever the number of processes.
COUNTED = {
    "bcast": "linear linear_nonblocking chain k_chain binary binomial knomial hierarchical hierarchical_chain",
    "reduce": "linear chain pipeline binary binomial knomial",
    "scatter": "linear linear_nonblocking binomial",
    "allgather": "linear ring bruck recursive_doubling",
    "alltoall": "linear linear_sync pairwise bruck",
    "allreduce": "linear non_overlapping ring",
    "reduce_scatter": "non_overlapping ring",
    "barrier": "linear tree bruck",
    "scan": "linear segmented_linear",
}
NAMED = [(collective, name) for collective, names in COUNTED.items() for name in names.split()]


@given(st.sampled_from(NAMED), st.integers(2, 33), st.integers(1, 60), st.sampled_from((0, 256, 1000)))
def test_costs_count_messages(named: tuple[str, str], procs: int, elements: int, cut: int) -> None:
    """Those of the recorded schedule, and some for each process."""
    entry = Catalogue.load().algorithm(*named)
    if entry.objection(procs):
        return
    size = 0 if entry.collective == "barrier" else 8 * procs * elements
    case = Case(*named, procs, size, cut if entry.pipelined else 0)
    for_each_process = cost_of(Case("bcast", "linear", 1, 0))
    assert cost_of(case) == Schedule(case).messages + procs * for_each_process
    assert cost_of(replace(case, procs=procs + 1)) > cost_of(case)


RECORDED = [entry for entry in Catalogue.load().algorithms() if not (entry.guideline or entry.real_mpi_only)]


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: f"{entry.collective}-{entry.name}")
def test_costs_are_at_least_the_messages(entry: Algorithm) -> None:
    """Those of the recorded schedule, whatever the parameters and the number of processes on a node."""
    for procs, per_node in itertools.product((2, 5, 8, 16, 33), (1, 2, 5, 8) if entry.by_node else (1,)):
        if entry.objection(procs):
            continue
        parts = (0, 200, 1000) if entry.part_parameter else (0,)
        limits = (0, 150, 3000) if entry.limit_parameter else (0,)
        for blocks, part, limit in itertools.product((0, 1, 20), parts, limits):
            size = 0 if entry.collective == "barrier" else 8 * procs * blocks
            case = Case(entry.collective, entry.name, procs, size, part, 0, per_node, limit_bytes=limit)
            for count in {0, entry.default_count + 1} if entry.count_parameter else {0}:
                one = replace(case, parameter=count)
                assert cost_of(one) >= Schedule(one).messages, one


def test_costs_of_messages_that_are_not_cut() -> None:
    cut = Case("gather", "lmo", 8, 65536, 5120, limit_bytes=65536)
    assert cost_of(cut) > cost_of(replace(cut, limit_bytes=65535)) == cost_of(replace(cut, segment_bytes=0))
    assert cost_of(cut) == cost_of(replace(cut, limit_bytes=0))


# Long simulations


@pytest.mark.parametrize(("procs", "is_long"), [(8, False), (2048, True)])
def test_a_long_simulation_says_so_before_it_starts(
    procs: int, is_long: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = sweeps.SmpiRunner(GRISOU)
    monkeypatch.setattr(sweeps.SmpiRunner, "parts", lambda *_: [])
    cases = [Case("allreduce", "ring", procs, 65536, segment) for segment in (0, 8192, 16384, 32768)]
    runner.make(cases, lambda timing: None)
    said = capsys.readouterr().err
    assert ("million messages" in said and "session(engine='schedule')" in said) == is_long
    assert bool(said) == is_long
