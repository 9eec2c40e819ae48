from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from collwise.simulator.store import Store
from collwise.studies.cli.main import main
from collwise.targets import TargetOptions, target_from
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.testbed.bed import Bed, Shape
from collwise.validation.times.choice import Choice
from tests.command_line import Printed, printed
from tests.needs import needs
from tests.simulator.execution.stand_ins import BLIND_SHELL, OARSH, SRUN, stand_in

GAIN = "program gain {file} --procs 2 --sizes 1KiB --launches 2 --repetitions 1 --store s.sqlite --json"
REGIONS = "platforms thresholds --procs 3 --sizes 1KiB:12KiB:+1KiB --repetitions 1 --store s.sqlite --json"


def ended(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> tuple[object, str, str]:
    """Exit code and what was printed."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code or 0, *capsys.readouterr()


def problem(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, output, errors = ended(capsys, arguments)
    assert (code, output) == (2, "")
    assert len(errors.strip().splitlines()) == 1, errors
    assert errors.startswith("collwise: ")
    return errors


def made(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> Printed:
    code, output, errors = ended(capsys, arguments)
    assert code == 0, errors
    return printed(output)


def launchers(store: Path) -> set[str]:
    """Of all times that are kept."""
    with Store(store) as opened:
        return {str(dict(json.loads(row["details"])).get("launcher")) for row in opened.rows()}


@pytest.fixture
def decisions(tmp_path: Path) -> str:
    file = tmp_path / "decisions.json"
    table = DecisionTable("bcast", "made up", 1, "simulated", "hand", {2: ((1024, Choice("chain", 8192)),)})
    file.write_text(json.dumps(decisions_document([table])))
    return str(file)


@needs("openmpi")
def test_gain_on_hosts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decisions: str
) -> None:
    """The command itself proves that libcollwise ran."""
    monkeypatch.chdir(tmp_path)
    log = stand_in(tmp_path, "far-shell", OARSH, monkeypatch)
    target = ["--hosts", "far1:2", "--remote-shell", "far-shell", "--host-timeout", "900"]
    more = ["--mpirun-args", "--mca mpi_yield_when_idle 1"]
    document = made(capsys, [*GAIN.format(file=decisions).split(), "--no-check", *target, *more])
    (row,) = document.rows
    assert row["procs"] == 2
    assert all(row[way]["seconds"] > 0 for way in ("default", "rules", "libcollwise"))
    assert "far1" in log.read_text()
    assert launchers(tmp_path / "s.sqlite") == {"mpirun --mca mpi_yield_when_idle 1"}
    assert not list(tmp_path.glob(".collwise*"))


@pytest.mark.slow
@needs("openmpi")
def test_gain_within_a_slurm_job(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decisions: str
) -> None:
    """The call that shows whether Open MPI follows the rules is made on this machine, not on the job's nodes."""
    monkeypatch.chdir(tmp_path)
    stand_in(tmp_path, "srun", SRUN, monkeypatch)
    variables = {"JOBID": "7", "JOB_ID": "7", "NODELIST": "far1", "JOB_NODELIST": "far1", "NNODES": "1"}
    for name, value in {**variables, "TASKS_PER_NODE": "2"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):  # of the mpirun behind the stand-in
        monkeypatch.setenv(name, "1")
    document = made(capsys, [*GAIN.format(file=decisions).split(), "--launcher", "srun", "--host-timeout", "900"])
    assert len(document.rows) == 1
    assert "accepted the rules" in document.facts["checks"][0]
    assert launchers(tmp_path / "s.sqlite") == {"srun"}


@needs("openmpi", "mount-namespaces")
def test_gain_where_hosts_do_not_see_the_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decisions: str
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.chdir(shared)
    stand_in(tmp_path, "blind-shell", BLIND_SHELL, monkeypatch)
    target = ["--hosts", "far1:2", "--remote-shell", "blind-shell", "--host-timeout", "900"]
    code, output, errors = ended(capsys, [*GAIN.format(file=decisions).split(), *target])
    assert (code, output) == (1, "")
    assert len(errors.strip().splitlines()) == 1, errors
    assert "rules; collwise and the working directory must be where all hosts see them" in errors
    assert not list(shared.glob(".collwise*"))


@pytest.mark.slow
@needs("openmpi")
def test_regions_on_hosts(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = stand_in(tmp_path, "far-shell", OARSH, monkeypatch)
    target = ["--hosts", "far1", "--ppn", "3", "--remote-shell", "far-shell", "--host-timeout", "900"]
    (found,) = made(capsys, [*REGIONS.split(), *target]).rows
    assert (found["procs"], found["variant"]) == (3, "")
    assert all(series["counts"] == {} for series in found["series"]), "nothing was counted, which is not 0"
    assert "far1" in log.read_text()
    assert launchers(tmp_path / "s.sqlite") == {"mpirun"}


@needs("openmpi")
def test_regions_refuse_more_processes_than_there_is_room_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    errors = problem(capsys, *REGIONS.split(), "--hosts", "localhost:2", "--host-timeout", "900")
    assert "3 processes on one host; valid: 1 to 2" in errors


@needs("openmpi")
def test_a_beds_own_ranks_per_node_hold_unless_ppn_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collwise.validation.testbed.bed.running", lambda name: Bed(name, Shape(4, ranks_per_node=2)))
    target = target_from(TargetOptions(testbed="two"))
    assert (target.usual_procs, target.processes_per_node(8)) == (8, 2)
    target = target_from(TargetOptions(testbed="two", ppn=1))
    assert (target.usual_procs, target.processes_per_node(4)) == (4, 1)
    assert target_from(TargetOptions(testbed="two", ppn=3)).usual_procs == 12
