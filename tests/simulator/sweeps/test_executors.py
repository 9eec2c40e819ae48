"""Sweeps on executors of concurrent.futures: the store equals a local sweep's, whatever happens on the way."""

from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import collwise
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import Experiment
from collwise.platforms import HostPlatform, known, load, placed
from collwise.simulator.store import Store
from collwise.simulator.sweeps import executors
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext, smpi_as_library
from collwise.simulator.sweeps.dask_workers import pool_on
from collwise.simulator.sweeps.executors import ExecutorPool, Made, Started, code_here, make_elsewhere
from collwise.simulator.sweeps.runner import DividedRunner, Part
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.sweeps.smpi_runner import SmpiRunner
from collwise.simulator.timing import Case, Timing
from collwise.validation.libraries.baselines import library_decisions
from tests.needs import needs

GROS = load("gros")
CASES = [
    Case("bcast", name, procs, size, 8192, processes_per_node=per_node)
    for name in ("chain", "binary")
    for procs, per_node in ((5, 1), (9, 2), (12, 4))
    for size in (1000, 65536)
]


def rows(store: Path) -> list[tuple[Any, ...]]:
    """All that the store has but the instants at which rows were made; nothing while it is being made itself."""
    connection = sqlite3.connect(store)
    try:
        columns = [name for _, name, *_ in connection.execute("pragma table_info(timings)") if name != "made_at"]
        return sorted(connection.execute(f"select {', '.join(columns)} from timings"), key=repr) if columns else []
    finally:
        connection.close()


def sweep(store: Path, pool: ExecutorPool | None = None, seen: list[Case] | None = None, **others: Any) -> None:
    """The cases in a store; each case that is stored is added to `seen`."""

    def shown(label: str) -> AbstractContextManager[Any]:
        return nullcontext(lambda timing, share, cases: seen.append(timing.case) if seen is not None else None)

    with Store(store) as opened:
        SimulationContext(opened, progress=shown, executor=pool, **others).simulate(GROS, CASES).complete()


class Inline(Executor):
    """Runs each task when it is submitted; `fate` may raise in its place, by the number of the task."""

    def __init__(self, fate: dict[int, BaseException] | None = None) -> None:
        self.tasks = 0
        self._fate = fate or {}

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        problem = self._fate.get(self.tasks)
        self.tasks += 1
        try:
            if problem is not None:
                raise problem
            future.set_result(fn(*args, **kwargs))
        except Exception as raised:
            future.set_exception(raised)
        return future


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_the_store_equals_that_of_a_local_sweep(tmp_path: Path, kind: str) -> None:
    executor: Executor = ThreadPoolExecutor(2)
    if kind == "processes":
        executor = ProcessPoolExecutor(2, get_context("spawn"))
    seen: list[Case] = []
    with executor:
        sweep(tmp_path / "elsewhere", pool_on(executor), seen, engine=SCHEDULE)
    sweep(tmp_path / "here", engine=SCHEDULE)
    assert sorted(seen) == sorted(CASES)
    assert rows(tmp_path / "elsewhere") == rows(tmp_path / "here")


@needs("smpi")
def test_smpi_counts_the_processes_that_were_started_elsewhere(tmp_path: Path) -> None:
    with Store(tmp_path / "elsewhere") as store:
        result = SimulationContext(store, executor=pool_on(Inline(), 2)).simulate(GROS, CASES)
    with Store(tmp_path / "here") as store:
        here = SimulationContext(store, jobs=2).simulate(GROS, CASES)
    assert result.processes_started == here.processes_started > 0
    assert rows(tmp_path / "elsewhere") == rows(tmp_path / "here")


@needs("smpi")
def test_experiments_are_made_elsewhere_in_the_same_rounds(tmp_path: Path) -> None:
    """Experiments of pairs that are measured side by side, and more of them than one process makes."""
    side_by_side = [Experiment("roundtrip", pair, 4096) for pair in combinations(range(5), 2)]
    alone = [Experiment("roundtrip", (0, 1), size) for size in range(1, 60)]
    found = []
    for name, pool in (("here", None), ("elsewhere", pool_on(Inline(), 2))):
        with Store(tmp_path / name) as store:
            lab = SimulationContext(store, jobs=2, executor=pool).laboratory(GROS, 5)
            found.append((lab.run(side_by_side), lab.run(alone, in_parallel=False), lab.effort))
    assert found[0] == found[1]
    assert rows(tmp_path / "elsewhere") == rows(tmp_path / "here")


@needs("smpi")
def test_an_experiment_that_costs_its_workers_is_an_error(tmp_path: Path) -> None:
    pool = ExecutorPool(lambda ends: Started(Inline({0: LostError()}), 1, lost=(LostError,)))
    with Store(tmp_path / "store") as store:
        lab = SimulationContext(store, executor=pool).laboratory(GROS, 2)
        with pytest.raises(CollwiseError, match=r"1 cases failed; first: .*roundtrip.*: every worker that ran"):
            lab.run([Experiment("roundtrip", (0, 1), 1)])
        assert lab.run([Experiment("roundtrip", (0, 1), 1)])[0].seconds > 0


def test_contests_know_elsewhere_what_they_know_here(tmp_path: Path) -> None:
    """Cases are left out that a choice does not need, also in view of times that the store has."""
    tolerances = {"bcast": 0.0}
    found = []
    for name, pool in (("here", None), ("elsewhere", pool_on(Inline(), 1))):
        with Store(tmp_path / name) as store:
            context = SimulationContext(store, SCHEDULE, jobs=1, executor=pool)
            context.simulate(GROS, CASES[:4])
            replace(context, tolerances=tolerances).simulate(GROS, CASES)
        found.append(rows(tmp_path / name))
    assert found[0] == found[1]


def test_nothing_is_started_when_nothing_is_missing(tmp_path: Path) -> None:
    sweep(tmp_path / "store", engine=SCHEDULE)

    def never(ends: ExitStack) -> Started:
        raise AssertionError("started")

    before = rows(tmp_path / "store")
    sweep(tmp_path / "store", ExecutorPool(never), engine=SCHEDULE)
    assert rows(tmp_path / "store") == before


# Runners and platforms in other processes


@pytest.mark.parametrize("name", known())
def test_platforms_travel_with_their_content(name: str) -> None:
    platform = load(name)
    for one in (platform, placed(platform.reordered(list(reversed(range(len(platform.hosts))))), "cyclic")):
        assert pickle.loads(pickle.dumps(one)) == one


def test_a_file_is_not_read_again_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.xml"
    file.write_text(GROS.xml_text())
    sent = pickle.dumps(load(str(file)))
    file.unlink()
    assert pickle.loads(sent).digest() == GROS.digest()


def runners(platform: HostPlatform) -> Iterator[DividedRunner]:
    yield ScheduleRunner(platform)
    yield ScheduleRunner(platform, library=library_decisions())
    with Store(":memory:") as store:
        for engine in (SMPI, smpi_as_library("mpich"), smpi_as_library("ompi", "bcast 2 0 chain\n")):
            runner = engine.collectives(platform, 4, SimulationContext(store))
            assert isinstance(runner, SmpiRunner)
            yield runner


@needs("smpi")
def test_a_copy_of_a_runner_makes_times_of_the_same_configuration() -> None:
    for runner in runners(GROS):
        assert pickle.loads(pickle.dumps(runner)).configuration == runner.configuration


# Workers that differ


def test_another_collwise_says_so(tmp_path: Path) -> None:
    other = code_here() | {"version": "0.0.9", "code": "another"}
    with pytest.raises(
        UsageError, match=r"^worker on \S+: its collwise .* differs from that of the sweep .*version 0\.0\.9.*restart"
    ):
        make_elsewhere(other, b"is not read", b"nor this")


@pytest.mark.parametrize("detail", ["program_digest", "platform_digest"])
def test_another_build_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detail: str) -> None:
    class Elsewhere(Inline):
        """The worker has another build, as it finds when the task arrives."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            with monkeypatch.context() as patch:
                if detail == "program_digest":
                    patch.setattr("collwise.simulator.sweeps.schedule_runner.file_digest", lambda path: "another")
                else:
                    patch.setattr(type(GROS), "digest", lambda self: "another")
                executors._runner_of.cache_clear()
                return super().submit(fn, *args, **kwargs)

    with pytest.raises(
        UsageError, match=rf"^worker on \S+: .*that of the sweep differ in {detail}; install the same"
    ) as caught:
        sweep(tmp_path / "store", pool_on(Elsewhere()), engine=SCHEDULE)
    assert "\n" not in str(caught.value)
    executors._runner_of.cache_clear()


def test_a_worker_without_collwise(tmp_path: Path) -> None:
    """What it gets needs none to be read."""

    class Lacking(Inline):
        """The worker runs in an empty environment."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            def fails() -> None:
                read = "import pickle, sys; function, arguments = pickle.loads(sys.stdin.buffer.read()); "
                done = subprocess.run(
                    [sys.executable, "-I", "-S", "-c", f"{read}function(*arguments)"],
                    input=pickle.dumps((fn, args)),
                    capture_output=True,
                )
                raise ModuleNotFoundError(done.stderr.decode().splitlines()[-1])

            return super().submit(fails)

    with pytest.raises(
        UsageError, match=r"a worker has no collwise, or an older version .*No module named 'collwise'\); ins"
    ):
        sweep(tmp_path / "store", pool_on(Lacking()), engine=SCHEDULE)


# Sweeps that end early


def test_an_executor_that_breaks_leaves_what_was_finished(tmp_path: Path) -> None:
    broken = Inline({2: BrokenExecutor()})
    with pytest.raises(CollwiseError, match="a worker process ended; the same command resumes"):
        sweep(tmp_path / "store", pool_on(broken, 2), engine=SCHEDULE)
    kept = rows(tmp_path / "store")
    assert 0 < len(kept) < len(CASES)
    seen: list[Case] = []
    sweep(tmp_path / "store", pool_on(Inline(), 2), seen, engine=SCHEDULE)
    sweep(tmp_path / "here", engine=SCHEDULE)
    assert len(seen) == len(CASES) - len(kept)
    assert rows(tmp_path / "store") == rows(tmp_path / "here")


class LostError(Exception):
    """Stands for Dask's KilledWorker."""


def test_cases_that_cost_their_workers_fail_and_the_others_go_on(tmp_path: Path) -> None:
    started = Started(Inline({0: LostError()}), 2, lost=(LostError,))
    with Store(tmp_path / "store") as store:
        context = SimulationContext(store, SCHEDULE, executor=ExecutorPool(lambda ends: started))
        result = context.simulate(GROS, CASES)
        assert 0 < len(result.failed) < len(CASES)
        assert {timing.error for timing in result.failed} == {"every worker that ran the task with this case was lost"}
        again = context.simulate(GROS, CASES)
        assert (again.failed, again.reused) == ([], len(CASES) - len(result.failed))


@pytest.mark.parametrize("moment", ["the result is read", "a timing is about to be kept", "a timing is kept"])
def test_an_interrupt_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Tasks that are done when it arrives are kept, those that wait are cancelled."""
    waiting: Future[Made] = Future()
    came: list[str] = []

    def now(what: str) -> None:
        if what == moment and not came:
            came.append(what)
            raise KeyboardInterrupt

    class Two(Inline):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return super().submit(fn, *args, **kwargs) if self.tasks < 2 else waiting

    def read(*arguments: Any) -> Made:
        now("the result is read")
        return result(*arguments)

    result = executors._result
    monkeypatch.setattr(executors, "_result", read)
    kept: dict[Case, Timing] = {}

    def keep(timing: Timing) -> None:
        now("a timing is about to be kept")
        kept[timing.case] = timing
        now("a timing is kept")

    runner = ScheduleRunner(GROS)
    with pytest.raises(KeyboardInterrupt):
        pool_on(Two(), 1).make(runner, [Part([case]) for case in CASES[:3]], keep)
    assert list(kept) == CASES[:2]
    assert waiting.cancelled()


def test_what_is_no_executor_is_refused() -> None:
    with (
        pytest.raises(
            UsageError, match=r"^3 is not an executor; valid: local, dask:ADDRESS, slurm, oar, an executor of"
        ),
        collwise.session(store=":memory:", executor=3),
    ):
        pass
