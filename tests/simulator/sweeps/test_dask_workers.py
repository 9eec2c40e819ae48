"""Sweeps on Dask: lost workers, interrupts, and workers in batch jobs, with stand-ins for Slurm and OAR."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.simulator.sweeps.dask_workers import cancelled_here, job_options
from collwise.simulator.sweeps.executors import parse_place
from collwise.studies.cli.main import main
from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.namespaces import end_processes
from collwise.validation.testbed.slurm import on_login
from tests.needs import needs
from tests.simulator.sweeps.test_executors import rows
from tests.slurm import slurm_bed
from tests.waiting import PATIENCE_SECONDS, wait_for

GRID = ["--platform", "gros", "--collective", "bcast", "--algorithms", "chain,binary", "--procs", "4,6,8,10"]
GRID += ["--sizes", "1KiB,64KiB", "--segments", "8KiB"]

# Runs the real one. Of those that begin while there is a file 'kill' one ends its worker when its times are made, and
# all but the first wait while there is a file 'hold'.
SMPIRUN = """#!/bin/sh
if [ "$1" = -version ]; then exec {real} -version; fi
if ! mkdir {folder}/first 2>/dev/null; then
    while [ -e {folder}/hold ]; do sleep 0.02; done
fi
{real} "$@"
code=$?
if mv {folder}/kill {folder}/killed 2>/dev/null; then kill -KILL $PPID; fi
exit $code
"""


def command(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose files tell smpirun what to do."""
    real = shutil.which("smpirun")
    folder = tmp_path_factory.mktemp("dask")
    command(folder / "bin" / "smpirun", SMPIRUN.format(real=real, folder=folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
        yield folder


@pytest.fixture(scope="module")
def local(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a local sweep over the grid."""
    store = folder / "local.sqlite"
    assert simulate(store, "local") == 0
    return rows(store)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Any]:
    """A Dask scheduler with two workers in processes of their own, which are started again when they end.

    Dask closes a worker that is not back within a time for good, by default within 15 s.
    """
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": PATIENCE_SECONDS}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=60) as cluster,
    ):
        yield cluster


@pytest.fixture
def scheduler(cluster: Any) -> str:
    """The address of the scheduler, once it has both workers: a sweep has as many parts as there are workers."""
    cluster.wait_for_workers(2)
    return str(cluster.scheduler_address)


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """All but the first smpirun wait while this file exists."""
    hold = folder / "hold"
    hold.touch()
    try:
        yield hold
    finally:
        hold.unlink(missing_ok=True)


def simulate(store: Path, executor: str) -> int | str | None:
    """The exit code of the sweep over the grid."""
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *GRID, "--store", str(store), "--executor", executor])
    return ended.value.code


@needs("smpi", "dask")
def test_the_cases_of_a_worker_that_is_killed_are_made_by_another_one(
    folder: Path, scheduler: str, local: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "kill").touch()
    assert simulate(folder / "killed.sqlite", f"dask:{scheduler}") == 0
    assert (folder / "killed").exists()
    assert "16 cases, 0 of them already in the store" in capsys.readouterr().out
    assert rows(folder / "killed.sqlite") == local


@needs("smpi", "dask")
def test_an_interrupt_keeps_what_is_finished_and_ends_what_runs(
    folder: Path, scheduler: str, local: list[tuple[Any, ...]]
) -> None:
    store = folder / "interrupted.sqlite"
    words = ["simulate", *GRID, "--store", str(store), "--executor", f"dask:{scheduler}"]
    with held(folder):
        (folder / "first").rmdir()
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "collwise.studies", *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert child.stderr is not None
        with child.stderr:
            wait_for(lambda: (store.exists() and rows(store)) or child.poll() is not None)
            child.send_signal(signal.SIGINT)
            said = child.stderr.read().decode()
        assert child.wait() == 130, said
        assert said.endswith("collwise: stopped; finished cases are in the store; the same command resumes there\n")
        kept = rows(store)
        assert 0 < len(kept) < len(local)
        # The workers go on only if they have ended the one that waits.
        wait_for(lambda: not waiting(folder))
    with collwise.session(store, executor=f"dask:{scheduler}") as context:
        times = collwise.simulate(
            "gros", "bcast", [4, 6, 8, 10], "1KiB,64KiB", algorithms="chain,binary", segments="8KiB", context=context
        )
    assert times["bcast"].facts["reused"] == len(kept)
    assert rows(store) == local


@needs("dask")
def test_a_task_ends_when_it_is_cancelled_or_its_worker_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed
    import distributed.worker

    task = SimpleNamespace(state="executing")
    state = SimpleNamespace(tasks={"key": task})
    worker = SimpleNamespace(get_current_task=lambda: "key", state=state, status=distributed.Status.running)
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    cancelled = cancelled_here()
    assert cancelled is not None
    assert not cancelled()
    worker.status = distributed.Status.closing
    assert cancelled()
    worker.status, task.state = distributed.Status.running, "cancelled"
    assert cancelled()
    task.state = "executing"
    assert not cancelled()
    state.tasks.clear()
    assert cancelled()


def waiting(folder: Path) -> list[str]:
    """The processes that run our smpirun."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if f"{folder}/bin/smpirun".encode() in line:
            found.append(entry.name)
    return found


# Runs a job in the background, whose number is that of its group of processes. OAR gets the script itself, last.
SUBMIT = """#!/bin/sh
for last; do :; done
case $0 in
*sbatch) cp "$last" {folder}/job.$$; says="Submitted batch job " ;;
*) printf '%s' "$last" > {folder}/job.$$; says="OAR_JOB_ID=" ;;
esac
echo "$*" >> {folder}/asked
setsid sh -c 'echo $$ > {folder}/id.'$$'; exec sh {folder}/job.'$$ > {folder}/out.$$ 2>&1 < /dev/null &
while [ ! -s {folder}/id.$$ ]; do sleep 0.02; done
echo "$says$(cat {folder}/id.$$)"
"""
CANCEL = """#!/bin/sh
echo "$1" >> {folder}/cancelled
kill -KILL -- "-$1" 2>/dev/null
"""


@needs("smpi", "dask")
@pytest.mark.parametrize(
    ("kind", "submit", "cancel"),
    [pytest.param("slurm", "sbatch", "scancel", marks=pytest.mark.slow), ("oar", "oarsub", "oardel")],
)
def test_a_job_that_is_lost_is_submitted_again(
    folder: Path,
    local: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    submit: str,
    cancel: str,
) -> None:
    place = folder / kind
    command(place / submit, SUBMIT.format(folder=place))
    command(place / cancel, CANCEL.format(folder=place))
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    monkeypatch.setenv("COLLWISE_EXECUTOR", f"{kind}:walltime=1:00:00")
    monkeypatch.setattr("collwise.simulator.sweeps.dask_workers._LOST_SECONDS", 0.1)
    monkeypatch.setattr("collwise.simulator.sweeps.executors._TEND_SECONDS", 0.2)
    (folder / "kill").touch()
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *GRID, "--store", str(folder / f"{kind}.sqlite")])
    assert ended.value.code == 0
    assert not (folder / "kill").exists()
    assert rows(folder / f"{kind}.sqlite") == local
    jobs = {file.read_text().strip() for file in place.glob("id.*")}
    assert len(jobs) == 2
    assert jobs == set((place / "cancelled").read_text().split())


@needs("dask")
def test_a_batch_system_that_refuses_the_job_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("collwise.simulator.sweeps.executors._TEND_SECONDS", 0.2)
    command(tmp_path / "bin" / "sbatch", "#!/bin/sh\necho 'sbatch: error: no such partition' >&2\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *GRID, "--engine", "schedule", "--store", str(tmp_path / "t"), "--executor", "slurm"])
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "collwise: --executor slurm: Slurm rejected the job: sbatch: error: no such partition"


@needs("dask")
def test_no_scheduler_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collwise.simulator.sweeps.dask_workers._REACH_SECONDS", 0.2)
    with (
        pytest.raises(UsageError, match=r"^--executor dask:localhost:1: no Dask scheduler answers there .*; start one"),
        collwise.session(tmp_path / "t", "schedule", executor="dask:localhost:1") as context,
    ):
        collwise.simulate("gros", "bcast", 4, "1KiB", context=context)


def kill_all_on(bed: beds.Bed, node: int) -> int:
    return end_processes([bed.namespace(f"n{node}")])


@needs("smpi", "dask", "slurm")
# Of a node without power nothing is heard; it is given up after Dask's usual 30 s.
@pytest.mark.parametrize("lose", [kill_all_on, pytest.param(beds.switch_off, marks=pytest.mark.slow)])
def test_a_node_of_slurm_is_lost(
    folder: Path, local: list[tuple[Any, ...]], lose: Callable[[beds.Bed, int], int]
) -> None:
    """One node goes while both simulate; the other one makes its cases, too."""
    store = folder / f"{lose.__name__}.sqlite"
    (folder / "first").mkdir(exist_ok=True)
    words = ["simulate", *GRID, "--store", str(store), "--executor", "slurm:jobs=2,cores=1"]
    with held(folder) as hold, slurm_bed(2) as bed:
        child = subprocess.Popen(
            on_login(bed, [sys.executable, "-P", "-m", "collwise.studies", *words]),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert child.stderr is not None
        with child.stderr:
            wait_for(lambda: len(waiting(folder)) == 2 or child.poll() is not None)
            assert lose(bed, 1) > 0
            hold.unlink()
            said = child.stderr.read().decode()
        assert (child.wait(), rows(store)) == (0, local), said


# Options


@needs("dask")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("slrum", r"^unknown executor 'slrum'; did you mean slurm\? Valid: local, dask:ADDRESS, slurm, oar"),
        ("local:4", "unknown executor 'local:4'"),
        ("slurm:", "unknown executor 'slurm:'"),
        ("dask", "'dask' has no address; write dask:HOST:PORT"),
        ("dask:node1:99999", "there is no port 99999; valid: 1 to 65535"),
        ("dask:foo://x:1", "'dask:foo://x:1' has no address"),
        ("slurm:job=3", r"unknown key 'job'; did you mean jobs\? Valid: jobs, cores, memory, walltime"),
        ("slurm:jobs=0", "jobs: '0' is not a whole number of at least 1"),
        ("slurm:jobs=2,jobs=3", "'jobs=3': give each key once, with a value"),
        ("oar:cores", "'cores': give each key once, with a value"),
        ("slurm:memory=lots", "memory: .*lots"),
        ("slurm:queue=a b", "queue: 'a b' cannot be put into a job script"),
    ],
)
def test_texts_that_name_no_executor(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_place(text)


@needs("dask")
@pytest.mark.parametrize("address", ["node1:8786", "tcp://node1:8786", "tls://[::1]:8786", "results/scheduler.json"])
def test_addresses(address: str) -> None:
    assert parse_place(f"dask:{address}").address == address


def test_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collwise.simulator.sweeps.executors.find_spec", lambda name: None)
    assert parse_place("local").is_local
    with pytest.raises(UsageError, match=r"need the package dask-jobqueue; install it \(pip install 'dask\[distribut"):
        parse_place("slurm")


def test_jobs_are_for_local_executors(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"^--jobs is for --executor local"),
        collwise.session(tmp_path / "t", jobs=2, executor="dask:node1:8786"),
    ):
        pass


@needs("dask")
@pytest.mark.parametrize(
    ("text", "header"),
    [
        (
            "slurm:cores=8,memory=8GiB,walltime=2:00:00,queue=batch,account=me",
            ["-J collwise", "-p batch", "-A me", "-n 1", "--cpus-per-task=8", "--mem=8G", "-t 2:00:00"],
        ),
        ("slurm", ["-J collwise", "-n 1", "--cpus-per-task=1", "-t 00:30:00"]),
        (
            "oar:cores=16,walltime=2:00:00,queue=default,account=me",
            ["-n collwise", "-q default", "--project me", "-l /nodes=1/core=16,walltime=2:00:00"],
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_scripts_of_jobs(text: str, header: list[str]) -> None:
    import dask_jobqueue.oar
    import dask_jobqueue.slurm

    place = parse_place(text)
    kind = {"slurm": dask_jobqueue.slurm.SLURMJob, "oar": dask_jobqueue.oar.OARJob}[place.kind]
    lines = kind("tcp://here:8786", name="w", **job_options(place)).job_script().strip().splitlines()
    sign = {"slurm": "#SBATCH ", "oar": "#OAR "}[place.kind]
    assert [line.removeprefix(sign) for line in lines if line.startswith(sign)] == header
    threads = place.keys.get("cores", 1)
    python = shlex.quote(sys.executable)
    assert lines[-1].startswith(f"{python} -m distributed.cli.dask_worker tcp://here:8786 --name w ")
    assert f"--nthreads {threads} " in lines[-1]
    assert lines[-1].endswith("--memory-limit 0 --no-dashboard")


@needs("dask")
def test_memory_under_oar_is_a_property_of_nodes() -> None:
    with pytest.raises(UsageError, match=r"^--executor oar: memory: OAR requests memory by a property of nodes"):
        job_options(parse_place("oar:memory=8GiB"))
