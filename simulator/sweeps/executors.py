"""Sweeps on any executor of concurrent.futures: parts of a runner's work become tasks for other processes or machines.

A task carries the platform, the cases and the options. A worker uses the collwise and the simulator on its own machine,
and raises an error if they differ from those of the sender. dask_workers.py starts Dask.
"""

from __future__ import annotations

import collections
import pickle
import queue
import re
import socket
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, cast

from collwise.common.errors import CollwiseError, UsageError, check_name, located, unknown_name
from collwise.common.folders import SOURCES, digest_of
from collwise.common.program import __version__
from collwise.common.units import parse_size
from collwise.simulator.sweeps.runner import DividedRunner, Keep, Part, Pool, Stop
from collwise.simulator.timing import Configuration, Timing

LOCAL, DASK = "local", "dask"
BATCH_SYSTEMS = {"slurm": ("Slurm", "sbatch"), "oar": ("OAR", "oarsub")}
"""The full name of each batch system and the command that submits its jobs, by name in options."""

EXECUTORS = (LOCAL, f"{DASK}:ADDRESS", *BATCH_SYSTEMS)
"""The forms that the name of an executor can have, for messages and help."""

_ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}|\S.*\.json")
_MAX_PORT = 65_535
_INSTALL = "install it (pip install 'dask[distributed]' dask-jobqueue)"


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def _word(text: str) -> str:
    if not re.fullmatch(r"[\w./:+@-]+", text):
        raise UsageError(f"'{text}' cannot be put into a job script; valid: letters, digits and ._-+:/@")
    return text


# The keys that describe batch jobs, and how their values are read.
_KEYS: Mapping[str, Callable[[str], Any]] = {
    **{"jobs": _count, "cores": _count, "memory": parse_size},
    **dict.fromkeys(("walltime", "queue", "account", "interface"), _word),
}


@dataclass(frozen=True)
class Place:
    """A place where sweeps run: this machine, a Dask cluster, or jobs of a batch system."""

    kind: str = LOCAL
    address: str = ""  # of Dask's scheduler, or the path of a file that contains it
    keys: Mapping[str, Any] = field(default_factory=dict)  # that describe the batch jobs

    @property
    def is_local(self) -> bool:
        """True if the sweep runs in threads of this process."""
        return self.kind == LOCAL


def parse_place(text: str) -> Place:
    """The place that `local`, `dask:ADDRESS` or `slurm:KEY=VALUE,...` names."""
    kind, colon, rest = text.partition(":")
    if kind == LOCAL and not rest:
        return Place()
    if kind == DASK:
        if not _ADDRESS.fullmatch(rest):
            raise UsageError(
                f"'{text}' has no address; write dask:HOST:PORT, for example dask:node1:8786, or dask:FILE.json, the "
                "file that 'dask scheduler --scheduler-file FILE.json' writes"
            )
        port = rest.rpartition(":")[2]
        if port.isdecimal() and not 1 <= int(port) <= _MAX_PORT:
            raise UsageError(f"'{text}': there is no port {port}; valid: 1 to {_MAX_PORT}")
        _need("distributed", "distributed")
        return Place(kind, rest)
    if kind not in BATCH_SYSTEMS or (colon and not rest):
        raise unknown_name("executor", text, EXECUTORS, "slurm and oar also with keys, such as slurm:jobs=4,cores=8")
    _need("dask_jobqueue", "dask-jobqueue")
    return Place(kind, keys=_keys(rest))


def _keys(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        check_name("key", key, _KEYS)
        if not equals or key in found:
            raise UsageError(f"'{word}': give each key once, with a value, for example jobs=4,cores=8")
        with located(key):
            found[key] = _KEYS[key](value)
    return found


def _need(module: str, package: str) -> None:
    if find_spec(module) is None:
        raise UsageError(f"sweeps on other machines need the package {package}; {_INSTALL}")


_FLOORS = ("algorithms", "common", "platforms", "simulator", "validation")  # the floors on whose code the times depend
_CODE = "code"
_TEND_SECONDS = 5.0
_WATCH_SECONDS = 0.2
# The text that a worker evaluates. A worker without collwise can read it, and fails with a reason.
_MAKE_ELSEWHERE = f"__import__('importlib').import_module('{__name__}').make_elsewhere(*task)"
Cancelled = Callable[[], bool]  # returns whether the running task has been cancelled


@dataclass(frozen=True)
class Started:
    """An executor that runs tasks, `slots` at a time.

    `tend` is called every few seconds while the pool waits for tasks. `lost` lists the exceptions that the executor
    raises for a task during which several workers died.
    """

    executor: Executor
    slots: int
    tend: Callable[[], None] = lambda: None
    lost: tuple[type[Exception], ...] = ()


class ExecutorPool(Pool):
    """A pool that makes each part as a task of an executor.

    Only the process that has the pool writes the store. The executor decides what becomes of the tasks of a lost
    worker.
    """

    def __init__(self, start: Callable[[ExitStack], Started]) -> None:
        """`start` starts the executor when the first part is to be made; it registers on the stack how to end it."""
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
    """Keeps each timing, then removes it from the queue; an interrupt may keep it twice, but loses none."""
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
        problem = "every worker that ran the task with this case was lost"
        return Made([Timing(case, float("nan"), error=problem) for case in part.cases])
    except (BrokenExecutor, CancelledError) as problem:
        cancelled = "it cancelled the tasks, as Dask does when its scheduler is gone"
        why = "a worker process ended" if isinstance(problem, BrokenExecutor) else cancelled
        raise CollwiseError(f"the executor has stopped: {why}; the same command resumes") from None
    except (ImportError, AttributeError) as problem:
        raise UsageError(
            f"a worker has no collwise, or an older version ({problem}); install this version and restart the worker"
        ) from None


# --- In the worker ---------------------------------------------------------------------------------------------------


def make_elsewhere(code: Mapping[str, str], order: bytes, part: bytes) -> Made:
    """Makes a part for a runner in another process. Raises UsageError if this host's collwise is not the sender's.

    No object of the sender is unpickled before the code is known to be the same.
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
    """The sender's runner with this machine's installation. Raises UsageError if times would differ."""
    wanted, runner = cast(tuple[Configuration, DividedRunner], pickle.loads(zlib.decompress(order)))
    found = runner.configuration
    if found != wanted:
        there, here = {"maker": found.maker, **dict(found.details)}, {"maker": wanted.maker, **dict(wanted.details)}
        names = [name for name in sorted(there.keys() | here.keys()) if there.get(name) != here.get(name)]
        raise UsageError(
            f"its configuration and that of the sweep differ in {', '.join(names)}; "
            "install the same versions and the same build, for example on a file system that all nodes share"
        )
    return runner


def _check_code(wanted: Mapping[str, str]) -> None:
    found = code_here()
    if found[_CODE] != wanted[_CODE]:
        there, here = (", ".join(f"{key} {value[:12]}" for key, value in item.items()) for item in (found, wanted))
        raise UsageError(
            f"its collwise ({there}) differs from that of the sweep ({here}); install the same version and restart the "
            "worker"
        )


@cache
def code_here() -> dict[str, str]:
    """The identity of collwise as it is installed here: version, commit, and a digest of its code."""
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
def _stopped_when_cancelled() -> Iterator[Stop]:
    """An event that is set when Dask cancels the task that runs in this thread."""
    from collwise.simulator.sweeps.dask_workers import cancelled_here

    stop, finished = Stop(), threading.Event()
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
