"""Launchers for real: mpirun on this machine; srun and oarsh by stand-ins that check how they are called."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.execution.cluster import LaunchOptions
from collwise.simulator.execution.launchers import LocalMachine, Mpirun, Oar, Srun
from tests.needs import each, needs
from tests.simulator.execution.stand_ins import OARSH, SRUN, stand_in

pytestmark = needs("openmpi")


def processes_of(*words: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if entry.name.isdecimal() and all(word in command for word in words):
            found.append(command)
    return found


@pytest.mark.parametrize("library", each("openmpi", "mpich"))
def test_mpirun_on_this_machine_twice(library: str) -> None:
    target = Mpirun({"localhost": 2}, LaunchOptions(library, reach_seconds=900))
    host = target.facts["hosts"].removesuffix("*2")
    assert target.facts["hosts"] == f"{host}*2"
    assert ("Open MPI" if library == "openmpi" else "MPICH") in target.facts["library"]
    assert target.processes_per_node(2) == 2
    run = target.run("whereabouts", 2, timeout_seconds=900)
    assert run.returncode == 0
    assert [f'"rank": {rank}' in line for rank, line in enumerate(run.output_lines)] == [True, True]
    with pytest.raises(UsageError, match=r"3 processes on one host; valid: 1 to 2 \(more: --ppn\)"):
        target.processes_per_node(3)


def test_variables_reach_the_processes_and_arguments_the_launcher() -> None:
    target = Mpirun({"localhost": 1}, LaunchOptions(extra_args=("--tag-output",), reach_seconds=900))
    shell = shutil.which("env")
    run = target.run(str(shell), 1, environment={"COLOUR": "blue"}, timeout_seconds=900)
    assert any(line.endswith("COLOUR=blue") and line.startswith("[1,0]") for line in run.output_lines)


@needs("ssh")
@pytest.mark.parametrize("library", each("openmpi", "mpich"))
def test_a_host_that_does_not_resolve(library: str) -> None:
    host = f"nosuch{os.getpid()}.invalid"  # processes of others may have a host of this kind
    with pytest.raises(CollwiseError, match=re.escape(host)) as told:
        Mpirun({host: 1}, LaunchOptions(library, reach_seconds=5))
    assert "resolve" in str(told.value) or "no answer" in str(told.value)
    assert "\n" not in str(told.value)
    assert not processes_of(host)


def test_a_host_that_keeps_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = shutil.copy(shutil.which("sleep") or "/bin/sleep", tmp_path / "sleep")
    stand_in(tmp_path, "deaf-shell", f"#!/bin/sh\nexec {sleep} 10000\n", monkeypatch)
    with pytest.raises(CollwiseError, match=r"mpirun on far\.invalid: no answer within 2 s"):
        Mpirun({"far.invalid": 1}, LaunchOptions(reach_seconds=2), remote_shell="deaf-shell")
    assert not processes_of(str(sleep))


def test_a_warning_of_the_launcher_is_not_why_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warning = "plm:rsh: Warning: setpgid(7,7) failed in parent with errno=Permission denied(13)"
    stand_in(tmp_path, "failing-shell", f"#!/bin/sh\necho '{warning}' >&2\nexit 1\n", monkeypatch)
    with pytest.raises(CollwiseError, match=r"mpirun on far\.invalid: ") as told:
        Mpirun({"far.invalid": 1}, LaunchOptions(reach_seconds=900), remote_shell="failing-shell")
    assert "setpgid" not in str(told.value)


def test_no_remote_shell() -> None:
    with pytest.raises(UsageError, match="'nosuchshell' not found on PATH"):
        Mpirun({"n1": 1}, LaunchOptions(), remote_shell="nosuchshell -x")


def test_srun_by_a_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, "srun", SRUN, monkeypatch)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n1")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):  # of the mpirun behind the stand-in
        monkeypatch.setenv(name, "1")
    target = Srun(LaunchOptions(extra_args=("--partition=short",), reach_seconds=900))
    assert target.facts["launcher"] == "srun --partition=short"
    preloaded = str(target.installation.program("libcollwise.so"))
    run = target.run(
        "/bin/sh", 1, ["-c", "echo $COLOUR $LD_PRELOAD; env | grep SLURM_PMIX"], timeout_seconds=900,
        environment={"COLOUR": "blue", "LD_PRELOAD": preloaded},
    )  # fmt: skip
    assert (run.returncode, run.output_lines[0]) == (0, f"blue {preloaded}")
    first, second = log.read_text().splitlines()
    assert "--ntasks=2 --nodes=1 --ntasks-per-node=2" in first
    assert "--ntasks=1 --nodes=1" in second
    assert "SLURM_PMIX_FENCE=tree" in run.output_lines[1:]
    assert second.endswith(" blue "), "srun itself has the one variable and not the library"


def test_oar_by_a_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, "oarsh", OARSH, monkeypatch)
    nodes = tmp_path / "nodes"
    nodes.write_text("dahu-1\ndahu-1\n")
    monkeypatch.setenv("OAR_NODEFILE", str(nodes))
    monkeypatch.setenv("OMPI_MCA_orte_keep_fqdn_hostnames", "1")
    target = Oar(LaunchOptions(reach_seconds=900))
    assert target.facts["hosts"].endswith("*2")
    assert "dahu-1" in log.read_text()
    assert "orted" in log.read_text()


def test_options_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="unknown transport 'tpc'; did you mean tcp"):
        LaunchOptions(transport="tpc")
    with pytest.raises(UsageError, match="transport tcp is for Open MPI"):
        LaunchOptions("mpich", transport="tcp")
    with pytest.raises(UsageError, match=r"hosts take from 1 to 2 processes.*--ppn 1"):
        Mpirun({"localhost": 2, "127.0.0.1": 1}, LaunchOptions())


def test_files_for_hosts_are_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Mpirun({"localhost": 1}, LaunchOptions(reach_seconds=900)).shared_directory() as shared:
        assert shared.parent == tmp_path
        assert not list(shared.iterdir())
    assert not shared.exists()
    with LocalMachine("openmpi").shared_directory() as own:
        assert own.parent != tmp_path


def test_targets_stay_the_same_within_a_batch_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, "far-shell", OARSH, monkeypatch)
    job = {"SLURM_JOBID": "7", "SLURM_NODELIST": "far1", "SLURM_NNODES": "1", "SLURM_TASKS_PER_NODE": "2"}
    for name, value in {**job, "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "far1"}.items():
        monkeypatch.setenv(name, value)
    run = LocalMachine("openmpi").run("/bin/true", 2, timeout_seconds=900)
    assert run.returncode == 0, run.problem
    assert Mpirun({"far2": 1}, LaunchOptions(reach_seconds=900), remote_shell="far-shell").usual_procs == 1
    assert "far2" in log.read_text()
    assert "far1" not in log.read_text()
