"""The run core: a runner times cases, and every timing becomes a row of the timing table."""

from __future__ import annotations

import collections
import concurrent.futures
import ctypes
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from collwise.common.errors import CollwiseError
from collwise.simulator.timing import Case, Configuration, Timing

if TYPE_CHECKING:
    from collwise.simulator.store import Store

Keep = Callable[[Timing], None]  # receives a timing as soon as it exists; may be called from several threads
Result = TypeVar("Result")


class Progress(Protocol):
    """Shows how far a sweep is. It is called from another thread."""

    def __call__(self, timing: Timing | None, done: float, cases: int = 0, /) -> None:
        """Gets each new timing once it is stored, the share of the work done, and the number of cases."""


class Runner(Protocol):
    """Makes times by SMPI, by the schedule engine, or by a real MPI library on an execution target."""

    processes_started: int = 0
    """The number of simulations or executions of MPI that `make` has started so far."""

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""

    def weight(self, case: Case) -> float:
        """The relative effort of a case, from which progress is computed."""
        return 1.0

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times the cases in any order and passes each timing to `keep`; the timing of a failed case has an error.

        Stops as soon as possible when `keep` raises. Raises CollwiseError when the runner cannot continue; kept timings
        stay valid.
        """


@dataclass(frozen=True)
class Part:
    """A share of a runner's work, which does not depend on other shares."""

    cases: Sequence[Case]
    known: Mapping[Case, Mapping[Case, float]] = field(default_factory=dict)  # seconds of other cases, by contest


class DividedRunner(Runner):
    """A runner whose work consists of parts, which a pool makes.

    Its pickle contains only the arguments that made it, so a copy on another machine uses that machine's installation.
    """

    def __init__(self, pool: Pool | None = None) -> None:
        """`pool` makes the parts, by default in one thread per core."""
        self._pool = pool or LocalThreads()

    @abstractmethod
    def parts(self, cases: Sequence[Case], slots: int) -> Sequence[Part]:
        """The cases in parts, of which `slots` are made at a time. Raises UsageError if a case does not fit."""

    @abstractmethod
    def make_part(self, part: Part, keep: Keep, stop: Stop) -> int:
        """Times the cases of a part until `stop` is set. Returns the number of processes that were started for them."""

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times the cases. Raises UsageError, before anything starts, when a case does not fit."""
        self._pool.make(self, self.parts(cases, self._pool.slots), keep)


class Pool(Protocol):
    """Makes the parts of a runner's work, many at a time."""

    @property
    def slots(self) -> int:
        """The number of parts that are made at a time."""

    def make(self, runner: DividedRunner, parts: Sequence[Part], keep: Keep) -> None:
        """Makes all parts, passes their timings to `keep`, and counts the runner's processes.

        When `keep` or a part raises, or on an interrupt, parts that run are asked to stop, and the error is raised.
        """


class Stop(threading.Event):
    """An event that asks parts to end; C code looks at its `flag`, which is 1 once the event is set."""

    def __init__(self) -> None:
        super().__init__()
        self.flag = ctypes.c_int(0)

    def set(self) -> None:
        """Sets the event and the flag."""
        super().set()
        self.flag.value = 1

    def clear(self) -> None:
        """Resets both."""
        self.flag.value = 0
        super().clear()


class LocalThreads(Pool):
    """Runs parts in threads of this process; each part starts processes of its own, or calls C code."""

    def __init__(self, jobs: int | None = None) -> None:
        """`jobs` is the number of parts at a time, by default one per core."""
        self._jobs = jobs or os.cpu_count() or 1

    @property
    def slots(self) -> int:
        """The number of threads."""
        return self._jobs

    def make(self, runner: DividedRunner, parts: Sequence[Part], keep: Keep) -> None:
        """Makes all parts; each timing is kept as soon as it exists."""
        stop = Stop()
        tasks = [partial(runner.make_part, part, keep, stop) for part in parts]
        runner.processes_started += sum(run_concurrently(tasks, self._jobs, stop))


def run_concurrently(tasks: Sequence[Callable[[], Result]], jobs: int, stop: threading.Event) -> list[Result]:
    """The results of all tasks, of which `jobs` run at a time; after an error, `stop` asks the others to end."""
    stop.clear()
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            futures = [pool.submit(task) for task in tasks]
            return [future.result() for future in concurrent.futures.as_completed(futures)]
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


@dataclass(frozen=True)
class RunResult:
    """Timings by case, in the order of the request; cases left out are missing, `reused` cases were in the store."""

    timings: dict[Case, Timing]
    reused: int
    processes_started: int
    configuration: Configuration

    @property
    def failed(self) -> list[Timing]:
        """The timings of cases that did not run."""
        return [timing for timing in self.timings.values() if not timing.ok]

    def complete(self) -> RunResult:
        """The result itself. Raises CollwiseError, which names the first failed case, unless all ran."""
        if failed := self.failed:
            raise CollwiseError(f"{len(failed)} cases failed; first: {failed[0].case}: {failed[0].error}")
        return self


def run_cases(
    runner: Runner,
    cases: Sequence[Case],
    store: Store,
    on_progress: Progress | None = None,
    known: dict[Case, Timing] | None = None,
) -> RunResult:
    """Times of all cases; makes those that the store does not have, and tries failed ones again.

    `known` holds rows that were read from the store before; new timings are added to it. After an error of the runner
    or the store, finished cases are in the store.
    """
    configuration = runner.configuration
    if known is None:
        known = known_timings(store, configuration)
    asked = list(dict.fromkeys(cases))
    missing = [case for case in asked if case not in known]
    started = runner.processes_started
    made: dict[Case, Timing] = {}
    if missing:
        total = sum(map(runner.weight, missing)) or 1.0
        finished = 0.0

        def stored(timing: Timing) -> None:
            nonlocal finished
            finished += runner.weight(timing.case)
            if on_progress is not None:
                on_progress(timing, finished / total, len(missing))

        with _Writer(store, configuration, stored) as writer:

            def keep(timing: Timing) -> None:
                made[timing.case] = timing
                writer.add(timing)

            runner.make(missing, keep)
    known.update({case: timing for case, timing in made.items() if timing.ok})
    timings = {case: timing for case in asked if (timing := made.get(case) or known.get(case)) is not None}
    return RunResult(timings, len(asked) - len(missing), runner.processes_started - started, configuration)


def known_timings(store: Store, configuration: Configuration) -> dict[Case, Timing]:
    """The rows of a configuration, without those of failed cases."""
    return {case: timing for case, timing in store.timings(configuration).items() if timing.ok}


class _Writer:
    """Writes timings in a thread of its own. Timings that arrive during one commit are written by the next commit.

    `on_stored` is called for each timing once it is committed. After a commit or `on_stored` has failed, `add` raises
    the same error, so that the runner stops.
    """

    def __init__(self, store: Store, configuration: Configuration, on_stored: Keep) -> None:
        self._store, self._configuration, self._on_stored = store, configuration, on_stored
        self._waiting: collections.deque[Timing] = collections.deque()
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._problem: Exception | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True)
        # If the runner was stopped because the store cannot be written, that is the error to report.
        if self._problem is not None:
            raise self._problem

    def add(self, timing: Timing) -> None:
        """Queues a row."""
        if self._problem is not None:
            raise self._problem
        self._waiting.append(timing)
        self._thread.submit(self._write)

    def _write(self) -> None:
        rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not rows or self._problem is not None:
            return
        try:
            self._store.add(self._configuration, rows)
            for timing in rows:
                self._on_stored(timing)
        except Exception as problem:
            # Nobody reads the thread's result, so `add` and `__exit__` raise the error instead.
            self._problem = problem
