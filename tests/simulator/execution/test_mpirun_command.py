"""mpirun's command line, for each library, on this machine and on hosts; nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.simulator.execution.installations import Installation
from collwise.simulator.execution.launchers import PMI, RemoteHosts, mpirun_command

OPENMPI, MPICH = (Installation(name, "1.0", Path("mpirun"), Path("build"), PMI[name]) for name in ("openmpi", "mpich"))
SLOTS = "a slots=2\nb slots=2\n"
SSH = "--mca plm_rsh_args -o BatchMode=yes -o ConnectTimeout=10 --mca plm rsh"


def words(installation: Installation, **options: object) -> str:
    return " ".join(mpirun_command(installation, 4, **options).words)  # type: ignore[arg-type]


def test_on_this_machine() -> None:
    environment = {"COLOUR": "blue"}
    assert words(OPENMPI, environment=environment, parameters={"pml": "ob1"}, launcher_args=["--tag-output"]) == (
        "mpirun -np 4 --bind-to none --oversubscribe --mca pml ob1 -x COLOUR=blue --tag-output"
    )
    assert words(MPICH, environment=environment) == "mpirun -np 4 -genv COLOUR blue"


@pytest.mark.parametrize(
    ("installation", "shell", "reached", "lines"),
    [
        (OPENMPI, "", SSH, SLOTS),
        (OPENMPI, "oarsh -x", "--mca plm_rsh_agent oarsh -x --mca plm rsh", SLOTS),
        (MPICH, "oarsh", "-ppn 2 -launcher ssh -launcher-exec oarsh", "a:2\nb:2\n"),
        (MPICH, "", "-ppn 2", "a:2\nb:2\n"),
    ],
)
def test_on_hosts(tmp_path: Path, installation: Installation, shell: str, reached: str, lines: str) -> None:
    file = tmp_path / "hosts"
    found = words(installation, hosts=RemoteHosts({"a": 2, "b": 2}, file, shell))
    assert found.endswith(reached)
    assert str(file) in found
    assert file.read_text() == lines
    assert "--oversubscribe" not in found


def test_binding_is_left_to_whoever_asks_for_it() -> None:
    assert "none" not in words(OPENMPI, launcher_args=["--bind-to", "core"])
