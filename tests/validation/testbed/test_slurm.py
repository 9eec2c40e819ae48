"""Slurm on a test bed: real sbatch and srun on a network of limited rate, whatever happens to jobs and nodes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.platforms import write_description
from collwise.simulator.store import Store
from collwise.studies.cli.main import main
from collwise.validation.testbed import bed as beds, slurm
from collwise.validation.testbed.namespaces import processes
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TestBed
from tests.command_line import printed
from tests.needs import needs
from tests.slurm import COLLWISE, finish, login, slurm_bed, state_of, submit
from tests.waiting import wait_for

pytestmark = needs("slurm", "openmpi")
ALGORITHMS = ("linear", "chain", "scatter_allgather")
SHORT, LONG = ({f"{algorithm} {size}" for algorithm in ALGORITHMS} for size in (1024, 2**20))
MEASURE = f"{COLLWISE} measure --launcher srun --collective bcast --procs 3 --sizes 1KiB,1MiB --segments 0"
MEASURE += f" --algorithms {','.join(ALGORITHMS)} --repetitions 2 --store times.sqlite"
CLUSTER_NAME = "sed -n s/^ClusterName=//p $SLURM_CONF"


@pytest.fixture(scope="module")
def bed() -> Iterator[beds.Bed]:
    with slurm_bed(3) as made:
        yield made


def stored(folder: Path) -> dict[str, float]:
    """The times of the store by algorithm and size, as far as it is made."""
    with contextlib.suppress(sqlite3.OperationalError):
        found = sqlite3.connect(f"{(folder / 'times.sqlite').as_uri()}?mode=ro", uri=True)
        with contextlib.closing(found):
            rows = found.execute("select algorithm, message_bytes, seconds from timings").fetchall()
        return {f"{algorithm} {size}": seconds for algorithm, size, seconds in rows}
    return {}


def await_part(bed: beds.Bed, folder: Path, job: str) -> None:
    """Waits until a job has measured the short cases."""
    wait_for(lambda: set(stored(folder)) >= SHORT or not state_of(bed, job), 0.05)
    assert state_of(bed, job) == "RUNNING", (folder / f"{job}.out").read_text()


def test_a_cluster_under_slurm(bed: beds.Bed) -> None:
    assert beds.running(bed.name).slurm
    assert slurm.node_states(bed) == {"n1": "idle", "n2": "idle", "n3": "idle"}
    assert login(bed, "sh", "-c", "hostname; getent hosts n3").split() == ["login", "10.77.0.3", "n3"]
    # Names and temporary files of nodes are their own, and Open MPI has the settings of the bed.
    script = "echo $(hostname) $(dirname $SLURM_CONF) $OMPI_MCA_btl_tcp_sndbuf"
    found = sorted(login(bed, "srun", "--nodes=3", "sh", "-c", script).splitlines())
    assert found == [f"n{node} {bed.directory}/slurm 16384" for node in (1, 2, 3)]


def test_status_run_and_login(bed: beds.Bed, capsys: pytest.CaptureFixture[str]) -> None:
    named = ["--name", bed.name]

    def call(*words: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["testbed", *words])
        return (ended.value.code, *capsys.readouterr())

    described = printed(call("status", *named, "--json")[1]).rows[0]["slurm"]
    assert described == {"nodes": {"n1": "idle", "n2": "idle", "n3": "idle"}, "jobs": []}
    code, output, _ = call("run", *named, "--", "sh", "-c", "hostname; echo $SLURM_STEP_NUM_TASKS")
    assert (code, sorted(output.split())) == (0, ["3", "3", "3", "n1", "n2", "n3"])
    assert call("run", *named, "--procs", "4", "true")[2].count("has room for 3") == 1
    assert "exit code 3" in call("run", *named, "--", "sh", "-c", "exit 3")[2]
    # srun may miss a signal while it starts a job; the job then ends by itself.
    cut_off = ["timeout", "8", *shlex.split(COLLWISE), "testbed", "run", *named, "--", "sleep", "30"]
    assert subprocess.run(cut_off, capture_output=True, check=False).returncode == 124
    assert "unknown node 'n9'" in call("power", *named, "--off", "n9")[2]
    assert "--on" in call("power", *named, "n1")[2]
    command = [*shlex.split(COLLWISE), "testbed", "run", "--login", *named, "--", "sh", "-c", "hostname; exit 4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "login\n")
    wait_for(lambda: set(slurm.node_states(bed).values()) == {"idle"}, 0.1)


def test_other_runs_wait_for_the_jobs(bed: beds.Bed, tmp_path: Path) -> None:
    job = submit(bed, tmp_path, "sleep 100", "--nodes=1")
    with pytest.raises(UsageError, match="has 1 job of Slurm"):
        TestBed(bed).run("/bin/true", 3)
    login(bed, "scancel", job)
    wait_for(lambda: not state_of(bed, job), 0.1)
    assert TestBed(bed).run("/bin/true", 3).returncode == 0
    assert set(slurm.node_states(bed)) == {"n1", "n2", "n3"}, "the run's end leaves Slurm alone"


def test_a_cancelled_job_keeps_what_was_measured(bed: beds.Bed, tmp_path: Path) -> None:
    # The signal ends a shell at once, and Slurm then kills what the shell has started.
    job = submit(bed, tmp_path, f"exec {MEASURE}", "--nodes=3")
    await_part(bed, tmp_path, job)
    login(bed, "scancel", job)
    assert "finished cases are in the store; the same command resumes there" in finish(bed, tmp_path, job)
    before = stored(tmp_path)
    assert SHORT <= set(before) < SHORT | LONG
    assert not list(tmp_path.glob(".collwise-*"))
    finish(bed, tmp_path, submit(bed, tmp_path, MEASURE, "--nodes=3"))
    after = stored(tmp_path)
    assert set(after) == SHORT | LONG
    assert {case: after[case] for case in before} == before
    # Two copies of 1 MiB leave the root through its port.
    assert all(after[case] > 2 * 2**20 / (50e6 / 8) for case in LONG if case.startswith("linear"))


def test_a_lost_node_keeps_what_was_measured(bed: beds.Bed, tmp_path: Path) -> None:
    job = submit(bed, tmp_path, MEASURE, "--nodes=3")
    await_part(bed, tmp_path, job)
    assert beds.switch_off(bed, 3) >= 1
    # What slurmctld finds out by itself after half a minute.
    login(bed, "scontrol", "update", "nodename=n3", "state=down", "reason=lost")
    wait_for(lambda: state_of(bed, job) == "PENDING", 0.1)
    before = stored(tmp_path)
    assert SHORT <= set(before) < SHORT | LONG
    login(bed, "scontrol", "update", "nodename=n3", "state=idle")
    beds.switch_on(bed, 3)
    assert "scatter_allgather" in finish(bed, tmp_path, job)
    after = stored(tmp_path)
    assert set(after) == SHORT | LONG
    assert {case: after[case] for case in before} == before


def test_times_of_any_nodes(bed: beds.Bed, tmp_path: Path) -> None:
    measure = f"{MEASURE.replace('--procs 3', '--procs 2').replace(',1MiB', '')} --json"
    found = []
    for node, options in (("n1", " --any-nodes"), ("n3", " --any-nodes"), ("n3", "")):
        nodes = ["--nodes=2", f"--nodelist=n2,{node}"]
        output = finish(bed, tmp_path, submit(bed, tmp_path, measure + options, *nodes))
        found.append(output.partition('"rows"')[2])
    assert all(found)
    assert found[0] == found[1] != found[2]
    with Store(tmp_path / "times.sqlite") as store:
        details = [dict(json.loads(row["details"])) for row in store.rows()]
    assert {one["hosts"] for one in details} == {"any of n", "n2*1,n3*1"}
    assert {one["cluster"] for one in details} == {login(bed, "sh", "-c", CLUSTER_NAME).strip()}
    assert details[0]["cluster"].startswith("testbed-3x50m-")


def test_everything_ends_with_the_bed_and_after_a_kill() -> None:
    name = f"test-slurm-{os.getpid()}-killed"
    code = "from collwise.validation.testbed.bed import up\nfrom collwise.validation.testbed.shape import Shape\n"
    made = beds.Bed(name, Shape(nodes=8))
    maker = subprocess.Popen([sys.executable, "-P", "-c", f"{code}up(Shape(nodes=8), '{name}', slurm=True)"])
    try:
        wait_for(lambda: len(processes(made.namespaces)) > 4, 0.002)
        maker.send_signal(signal.SIGKILL)
        maker.wait()
        inside = processes(made.namespaces)
        assert inside
        with pytest.raises(UsageError, match="make one: collwise testbed up"):
            beds.running(name)
    finally:
        beds.down(f"{name}-other")
    assert name not in beds.names()
    assert not [process for process in inside if re.search("slurm|munge", _command_line(process))]


def _command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def test_without_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "_COMMANDS", ("munged", "nosuchslurmd"))
    with pytest.raises(UsageError, match=r"needs the command 'nosuchslurmd' \(packages slurmctld, slurmd"):
        beds.up(Shape(nodes=2), f"test-slurm-{os.getpid()}-none", slurm=True)


@pytest.mark.slow
@needs("smpi")
def test_from_a_lost_node_to_the_report(bed: beds.Bed, tmp_path: Path) -> None:
    """Measured, lost, found by Slurm itself, resumed, compared with simulation and reported, by one script."""
    (tmp_path / "bed.toml").write_text(write_description(simulated_platform(bed.shape)))
    small = "--nominal bed.toml --quick --collective bcast --sizes 8KiB --no-models --store times.sqlite"
    validate = f"{COLLWISE} check three-way --launcher srun --ppn 1 {small} --output report --json >report.json"
    job = submit(bed, tmp_path, f"set -e\n{MEASURE}\n{validate}", "--nodes=3")
    await_part(bed, tmp_path, job)
    beds.switch_off(bed, 3)
    before = stored(tmp_path)
    wait_for(lambda: state_of(bed, job) == "PENDING", 0.5)
    assert slurm.node_states(bed)["n3"] == "down*"
    beds.switch_on(bed, 3)
    said = finish(bed, tmp_path, job)
    assert "DUE TO NODE FAILURE" in said
    after = stored(tmp_path)
    assert set(after) >= SHORT | LONG
    assert {case: after[case] for case in before} == before
    text = (tmp_path / "report.json").read_text()
    assert text, said
    found = printed(text)
    assert {row["point"]["procs"] for row in found.rows} == {3}
    assert (tmp_path / "report" / "validation.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_time_limit_keeps_what_was_measured(bed: beds.Bed, tmp_path: Path) -> None:
    long = MEASURE.replace("1MiB", "32MiB")
    said = finish(bed, tmp_path, submit(bed, tmp_path, long, "--nodes=3", "--time=1"))
    assert "DUE TO TIME LIMIT" in said
    assert "the same command resumes there" in said
    assert SHORT <= set(stored(tmp_path)) < SHORT | {f"{algorithm} {2**25}" for algorithm in ALGORITHMS}


@pytest.mark.slow
@needs("smpi")
def test_commands_that_measure(bed: beds.Bed, tmp_path: Path) -> None:
    """Each ends well in a job, and its times are those of srun."""
    (tmp_path / "bed.toml").write_text(write_description(simulated_platform(bed.shape)))
    on = "--launcher srun --ppn 1 --store times.sqlite"
    lines = [
        "set -e",
        f"{COLLWISE} platforms calibrate {on} --nominal bed.toml --quick --sizes 1B:64KiB --alone -o job.toml",
        f"{COLLWISE} fit {on} --model hockney -o parameters.toml",
        f"{COLLWISE} predict --parameters parameters.toml --collective bcast --procs 3 --sizes 8KiB -o bcast.times",
        f"{COLLWISE} select bcast.times -o bcast.json",
        f"{COLLWISE} program gain bcast.json {on} --procs 3 --sizes 8KiB --repetitions 2 --no-check",
        f"{COLLWISE} platforms experiment {on} roundtrip --sizes 8KiB",
        "echo all done",
    ]
    assert "all done" in finish(bed, tmp_path, submit(bed, tmp_path, "\n".join(lines), "--nodes=3"))
    with Store(tmp_path / "times.sqlite") as store:
        assert {json.loads(row["details"])["launcher"] for row in store.rows(source="measured")} == {"srun"}
