"""Pools of Dask: a cluster that runs already, an executor of the caller, or workers in jobs of Slurm or OAR."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from collwise.common.errors import UsageError, note
from collwise.simulator.sweeps.executors import BATCH_SYSTEMS, DASK, EXECUTORS, Cancelled, ExecutorPool, Place, Started

_REACH_SECONDS = 10
_LOST_SECONDS = 5


def pool_at(place: Place) -> ExecutorPool:
    """The pool of a place that is not local. It reaches Dask, or submits jobs, when it first has cases to simulate."""
    return ExecutorPool(partial(_connect, place.address) if place.kind == DASK else partial(_start_jobs, place))


def pool_on(executor: Any, slots: int | None = None) -> ExecutorPool:
    """The pool that runs tasks, `slots` at a time, on an executor of concurrent.futures or on Dask's Client."""
    if hasattr(executor, "get_executor"):
        return ExecutorPool(lambda ends: _client(executor, slots))
    if not isinstance(executor, Executor):
        raise UsageError(
            f"{executor!r} is not an executor; valid: {', '.join(EXECUTORS)}, an executor of concurrent.futures, or "
            "Dask's Client"
        )
    workers = slots or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    return ExecutorPool(lambda ends: Started(executor, workers))


def _client(client: Any, slots: int | None = None, tend: Callable[[], None] = lambda: None) -> Started:
    """Dask's client as an executor. With `pure`, Dask would treat equal tasks of two sweeps as one task."""
    from distributed.scheduler import KilledWorker

    threads = slots or sum(client.nthreads().values())
    return Started(client.get_executor(pure=False), max(1, threads), tend, (KilledWorker,))


def _connect(address: str, ends: ExitStack) -> Started:
    """A client of the Dask scheduler at an address, or of the one that wrote the file `address`."""
    from distributed import Client

    _silence()
    where = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    if "scheduler_file" in where and not Path(address).exists():
        raise UsageError(
            f"--executor dask:{address}: there is no such file; 'dask scheduler --scheduler-file' writes it"
        )
    try:
        client = ends.enter_context(Client(**where, timeout=_REACH_SECONDS, set_as_default=False))
    except OSError as problem:
        raise UsageError(
            f"--executor dask:{address}: no Dask scheduler answers there within {_REACH_SECONDS} s "
            f"({str(problem).splitlines()[0]}); start one with 'dask scheduler'"
        ) from None
    tell = _teller(client, f"the Dask scheduler at {address} has no worker")
    tell()
    return _client(client, tend=tell)


def _start_jobs(place: Place, ends: ExitStack) -> Started:
    """Dask's scheduler in this process, with workers in batch jobs that end with the sweep."""
    import dask
    import dask_jobqueue
    from distributed import Client, Status

    name, command = BATCH_SYSTEMS[place.kind]
    if shutil.which(command) is None:
        raise UsageError(f"--executor {place.kind}: {command} not found on PATH; run this on a machine that has {name}")
    _silence()
    kind = getattr(dask_jobqueue, f"{place.kind.upper()}Cluster")
    refusals: list[str] = []

    class Job(kind.job_cls):  # type: ignore[name-defined]
        """A job that records the reason if the batch system refuses it."""

        async def start(self) -> None:
            """Submits the job."""
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as problem:
                refusals.append(_reason(problem))
                self.status = Status.running

    ends.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": _LOST_SECONDS}))
    configured = dask.config.get(f"jobqueue.{place.kind}.scheduler-options", {})
    scheduler = {"dashboard": False, "dashboard_address": ":0", **configured}
    own = {"scheduler_options": scheduler, "silence_logs": logging.CRITICAL}
    try:
        cluster = ends.enter_context(kind(job_cls=Job, config_name=place.kind, **own, **job_options(place)))
    except (OSError, RuntimeError, ValueError) as problem:
        why = f"no Dask scheduler can be started here: {_reason(problem)}"
        raise UsageError(f"--executor {place.kind}: {why}") from None
    client = ends.enter_context(Client(cluster, set_as_default=False))
    jobs = place.keys.get("jobs", 1)
    tell = _teller(client, f"no job of {name} has a connected worker")

    def tend() -> None:
        if refusals and not client.nthreads():
            raise UsageError(f"--executor {place.kind}: {name} rejected the job: {refusals[0]}")
        # Submits jobs again if their workers were lost.
        cluster.scale(jobs=jobs)
        tell()

    cluster.scale(jobs=jobs)
    return _client(client, jobs * job_options(place)["cores"], tend)


def job_options(place: Place) -> dict[str, Any]:
    """The settings of a job for dask-jobqueue: one worker with a thread for each core.

    Settings that the place does not have come from Dask's own configuration (jobqueue.slurm, jobqueue.oar). Memory is
    neither requested nor limited unless it is given, since Dask does not count the memory of simulations, which are
    separate processes.
    """
    import dask

    def configured(key: str) -> Any:
        return dask.config.get(f"jobqueue.{place.kind}.{key}", None)

    keys = dict(place.keys)
    cores = keys.pop("cores", None) or configured("cores") or 1
    memory = keys.pop("memory", None)
    named = {"account": "project"} if place.kind == "oar" else {}
    options = {named.get(key, key): value for key, value in keys.items() if key != "jobs"}
    options |= {"cores": cores, "processes": 1, "nanny": False, "job_name": "collwise"}
    options["python"] = shlex.quote(sys.executable)
    options["worker_extra_args"] = [*(configured("worker-extra-args") or []), "--memory-limit", "0", "--no-dashboard"]
    by_core = configured("memory-per-core-property-name")
    if place.kind == "oar":
        options["memory_per_core_property_name"] = by_core or "not_applicable"
        if memory is not None and not by_core:
            raise UsageError(
                "--executor oar: memory: OAR requests memory by a property of nodes; set the property's name in Dask's "
                "configuration (jobqueue.oar.memory-per-core-property-name)"
            )
    if memory is None and configured("memory") is None:
        options["memory"] = "1GiB"
        options["job_directives_skip"] = [*(configured("job-directives-skip") or []), "--mem="]
    else:
        options["memory"] = configured("memory") if memory is None else f"{memory}B"
    return options


def _silence() -> None:
    """Keeps Dask's log off stderr, since collwise reports what matters in it as errors."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _reason(problem: Exception) -> str:
    """The reason that a batch system gives, which is the last line of its error output."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    said = lines[lines.index("stderr:") + 1 :] if "stderr:" in lines else lines
    return (said or lines or [type(problem).__name__])[-1]


def _teller(client: Any, text: str) -> Callable[[], None]:
    """A function that prints a note when the sweep has no worker, but only once until a worker appears."""
    told = False

    def tell() -> None:
        nonlocal told
        lacks = not client.nthreads()
        if lacks and not told:
            note(f"{text}; waiting for one (Ctrl-C keeps what is finished)")
        told = lacks

    return tell


def cancelled_here() -> Cancelled | None:
    """A function that says whether Dask has cancelled this thread's task or is closing its worker; None outside tasks.

    A worker that closes waits for its task, and ignores signals meanwhile.
    """
    if "distributed.worker" not in sys.modules:
        return None
    from distributed import Status, get_worker

    try:
        worker = get_worker()
    except ValueError:
        return None
    key = worker.get_current_task()

    def cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status in (Status.closing, Status.closed)

    return cancelled
