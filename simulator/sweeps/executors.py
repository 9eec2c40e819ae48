"""Sweeps on any executor of concurrent.futures: parts of a runner's work as tasks for other processes and machines.

What a task needs travels with it: the platform, the cases and the options. What stays where it is are collwise and the
simulator of the worker, which must be the same as here; a worker where they differ says so.
"""

from __future__ import annotations

import collections
import pickle
import queue
import socket
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import cast

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.folders import SOURCES, digest_of
from collwise.common.program import __version__
from collwise.simulator.sweeps.runner import DividedRunner, Keep, Part, Pool
from collwise.simulator.timing import Configuration, Timing

_FLOORS = ("algorithms", "common", "platforms", "simulator", "validation")
"""The floors whose code times depend on."""

_CODE = "code"
_TEND_SECONDS = 5.0
_WATCH_SECONDS = 0.2

_MAKE_ELSEWHERE = f"__import__('importlib').import_module('{__name__}').make_elsewhere(*task)"
"""The text that a worker evaluates. A worker without collwise can read it, and fails with a reason."""

Cancelled = Callable[[], bool]
"""Tells whether the task that runs has been cancelled."""


@dataclass(frozen=True)
class Started:
    """An executor that runs tasks, and how many at a time.

    `tend` is called every few seconds while tasks are waited for. A task that fails with one of `lost` has cost several
    workers their lives.
    """

    executor: Executor
    slots: int
    tend: Callable[[], None] = lambda: None
    lost: tuple[type[Exception], ...] = ()


class ExecutorPool(Pool):
    """An executor that makes the parts, each as a task.

    Only the process that has the pool writes the store: it keeps the timings of each part when that is done. What
    becomes of the tasks of a worker that is lost is the executor's affair: Dask gives them to another one.
    """

    def __init__(self, start: Callable[[ExitStack], Started]) -> None:
        """`start` starts the executor when the first part is to be made, and registers how it is ended."""
        self._start = start
        self._ends = ExitStack()
        self._started: Started | None = None

    def __enter__(self) -> ExecutorPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    @property
    def slots(self) -> int:
        """The number of tasks that run at a time."""
        return self._running().slots

    def _running(self) -> Started:
        if self._started is None:
            self._started = self._start(self._ends)
        return self._started

    def make(self, runner: DividedRunner, parts: Sequence[Part], keep: Keep) -> None:
        """Makes all parts; the timings of a part are kept when it is done."""
        running = self._running()
        order = zlib.compress(pickle.dumps((runner.configuration, runner)))
        futures: dict[Future[Made], Part] = {}
        done: queue.SimpleQueue[Future[Made]] = queue.SimpleQueue()
        finished: collections.deque[Timing] = collections.deque()
        try:
            for part in parts:
                task = {"task": (code_here(), order, pickle.dumps(part))}
                future = running.executor.submit(eval, _MAKE_ELSEWHERE, task)
                futures[future] = part
                future.add_done_callback(done.put)
            tended = time.monotonic()
            while futures:
                if time.monotonic() >= tended + _TEND_SECONDS:
                    running.tend()
                    tended = time.monotonic()
                try:
                    future = done.get(timeout=_TEND_SECONDS)
                except queue.Empty:
                    continue
                made = _result(future, futures[future], running.lost)
                runner.processes_started += made.processes_started
                finished.extend(made.timings)
                del futures[future]
                _keep_all(finished, keep)
        except BaseException:
            for future in futures:
                future.cancel()
            for future in futures:
                if future.done() and not future.cancelled() and future.exception() is None:
                    finished.extend(future.result().timings)
            _keep_all(finished, keep)
            raise


def _keep_all(finished: collections.deque[Timing], keep: Keep) -> None:
    """Keeps timings, which leave the queue once they are kept: an interrupt may keep one twice, but loses none."""
    while finished:
        keep(finished[0])
        finished.popleft()


@dataclass(frozen=True)
class Made:
    """The timings of a part, and how many processes were started for them."""

    timings: Sequence[Timing]
    processes_started: int = 0


def _result(future: Future[Made], part: Part, lost: tuple[type[Exception], ...]) -> Made:
    """The result of a part. Raises CollwiseError when there can be no result."""
    try:
        return future.result()
    except CollwiseError:
        raise
    except lost:
        problem = "every worker that simulated the case and others with it was lost"
        return Made([Timing(case, float("nan"), error=problem) for case in part.cases])
    except (BrokenExecutor, CancelledError) as problem:
        why = (
            "a worker process ended"
            if isinstance(problem, BrokenExecutor)
            else "it cancelled them, as Dask does when its scheduler is gone"
        )
        raise CollwiseError(f"the executor has stopped: {why}; the same command resumes") from None
    except (ImportError, AttributeError) as problem:
        raise UsageError(
            f"a worker has no collwise, or an older version ({problem}); install the same version and restart it"
        ) from None


# --- In the worker ---------------------------------------------------------------------------------------------------


def make_elsewhere(code: Mapping[str, str], order: bytes, part: bytes) -> Made:
    """Makes a part for a runner in another process. Raises UsageError, with the host, if the collwise there differs.

    Nothing of the sender's classes is read before the code is known to be the same.
    """
    timings: list[Timing] = []
    try:
        _check_code(code)
        with _stopped_when_cancelled() as stop:
            started = _runner_of(order).make_part(pickle.loads(part), timings.append, stop)
    except (CollwiseError, OSError) as problem:
        kind = type(problem) if isinstance(problem, CollwiseError) else CollwiseError
        raise kind(f"worker on {socket.gethostname()}: {problem}") from None
    return Made(tuple(timings), started)


@lru_cache(maxsize=4)
def _runner_of(order: bytes) -> DividedRunner:
    """The sender's runner with this machine's installation. Raises UsageError unless its times would be the same."""
    wanted, runner = cast(tuple[Configuration, DividedRunner], pickle.loads(zlib.decompress(order)))
    found = runner.configuration
    if found != wanted:
        there, here = {"maker": found.maker, **dict(found.details)}, {"maker": wanted.maker, **dict(wanted.details)}
        names = [name for name in sorted(there.keys() | here.keys()) if there.get(name) != here.get(name)]
        raise UsageError(
            f"its configuration differs from that of the sweep in {', '.join(names)}; "
            "install the same versions and the same build, for example on a file system that all nodes share"
        )
    return runner


def _check_code(wanted: Mapping[str, str]) -> None:
    found = code_here()
    if found[_CODE] != wanted[_CODE]:
        there, here = (", ".join(f"{key} {value[:12]}" for key, value in one.items()) for one in (found, wanted))
        raise UsageError(
            f"its collwise ({there}) differs from that of the sweep ({here}); install the same version and restart the "
            "worker"
        )


@cache
def code_here() -> dict[str, str]:
    """The identity of collwise as it is installed here: its version, the commit, and a digest of its code."""
    floors = [SOURCES / floor for floor in _FLOORS]
    files = sorted(file for floor in floors for ending in ("*.py", "*.toml") for file in floor.rglob(ending))
    found = {"version": __version__}
    if (SOURCES / ".git").exists():
        command = ["git", "-C", str(SOURCES), "rev-parse", "HEAD"]
        try:
            asked = subprocess.run(command, capture_output=True, text=True, check=False)
            found |= {"commit": asked.stdout.strip()} if asked.returncode == 0 else {}
        except OSError:
            pass
    return {**found, _CODE: digest_of(SOURCES, files)}


@contextmanager
def _stopped_when_cancelled() -> Iterator[threading.Event]:
    """An event that is set when Dask cancels the task that runs in this thread."""
    from collwise.simulator.sweeps.dask_workers import cancelled_here

    stop, finished = threading.Event(), threading.Event()
    cancelled = cancelled_here()

    def watch(cancelled: Cancelled) -> None:
        while not finished.wait(_WATCH_SECONDS):
            if cancelled():
                stop.set()

    if cancelled is not None:
        threading.Thread(target=watch, args=(cancelled,), daemon=True).start()
    try:
        yield stop
    finally:
        finished.set()
