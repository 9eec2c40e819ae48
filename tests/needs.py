"""The needs of tests on the machine they run on: the one place that decides whether a test is skipped.

A test that needs something carries the mark `needs`, for example `needs("openmpi", "testbed")`; parameters that name
capabilities come from `each`; a fixture or a helper calls `need`. tests/conftest.py reads the marks, lists at the end
of the run what was not tested and why, and fails in continuous integration where a skip hides one of `REQUIRED`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.common.folders import cache_folder
from collwise.simulator.execution.installations import mpi_installation, smpi_installation
from collwise.validation.testbed import namespaces, slurm
from tests.browser import NAMES, executable

ROOT = Path(__file__).resolve().parents[1]
MPICH_ARCHIVE = Path("/usr/lib", f"{os.uname().machine}-linux-gnu", "libmpich.a")
_SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
# Shaping a port, in a network namespace that goes with the command: what a test bed needs most of the kernel.
_SHAPES_A_PORT = "tc qdisc add dev lo root tbf rate 1mbit burst 3200 limit 10000"


@dataclass(frozen=True)
class Capability:
    """Something a machine may lack. `missing` says why tests of it cannot run, and nothing when they can.

    `present` is evidence of its own, weaker than `missing` asks for: a machine that shows it has the capability, and a
    test that is skipped there is a fault of the set-up or of the test.
    """

    title: str
    missing: Callable[[], str]
    present: Callable[[], bool] = lambda: False


def _found(*commands: str) -> list[str]:
    return [command for command in commands if shutil.which(command, path=_SEARCHED)]


def _commands(title: str, *commands: str) -> Capability:
    def missing() -> str:
        absent = [command for command in commands if command not in _found(*commands)]
        return f"{', '.join(absent)} not found on PATH" if absent else ""

    return Capability(title, missing, lambda: bool(_found(*commands)))


def _shapes_ports() -> bool:
    if os.geteuid() != 0 or len(_found("ip", "tc", "unshare")) < 3:
        return False
    command = ["unshare", "--net", "sh", "-c", _SHAPES_A_PORT]
    environment = os.environ | {"PATH": _SEARCHED}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def _has_slurm() -> bool:
    return _shapes_ports() and bool(_found("slurmctld", "slurmd"))


def _lacks_simgrid(version: str) -> str:
    try:
        smpi_installation(version)
    except UsageError as problem:
        return str(problem)
    return ""


def _lacks_built_simgrid() -> str:
    built = any(cache_folder().glob("simgrid-*/.complete"))
    return "" if built else "none is built (collwise setup install --simgrid 4.1)"


def _lacks_linked_simulation() -> str:
    version = smpi_installation().version if _found("smpirun") else "none"
    return "" if version == "3.32" else f"only SimGrid 3.32 calls a library that is linked alone, and here is {version}"


def _lacks_version(library: str, *series: str) -> str:
    try:
        version = mpi_installation(library).version
    except UsageError as problem:
        return str(problem)
    return "" if version.startswith(tuple(f"{one}." for one in series)) else f"the installed one is {version}"


def _lacks_mount_namespaces() -> str:
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"they may not be made: {' '.join(done.stderr.split())}"


def _lacks_host_names() -> str:
    """Why commands cannot run under host names of their own, by which a machine passes for several nodes."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(["unshare", *rights, "--uts", "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"they may not be made: {' '.join(done.stderr.split())}"


def _lacks_mpi4py() -> str:
    done = subprocess.run(["/usr/bin/python3", "-c", "import mpi4py.MPI"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "the system's Python has none (apt install python3-mpi4py)"


def _lacks_fuzzer() -> str:
    if not _found("clang"):
        return "clang not found on PATH"
    done = subprocess.run(["clang", "--print-runtime-dir"], capture_output=True, text=True, check=False)
    has_library = any(Path(done.stdout.strip()).glob("libclang_rt.fuzzer*.a"))
    return "" if has_library else "clang has no libFuzzer (apt install libclang-rt-14-dev)"


def _lacks(path: Path, what: str) -> Callable[[], str]:
    return lambda: "" if path.exists() else what


CAPABILITIES: Mapping[str, Capability] = {
    "smpi": _commands("SMPI", "smpirun", "smpicc"),
    "openmpi": _commands("Open MPI", "mpirun.openmpi", "mpicc.openmpi"),
    "mpich": _commands("MPICH", "mpirun.mpich", "mpicc.mpich"),
    "testbed": Capability("test bed", namespaces.obstacle, _shapes_ports),
    "slurm": Capability("Slurm on a test bed", lambda: namespaces.obstacle() or slurm.obstacle(), _has_slurm),
    "smpi-4.1": Capability("SimGrid 4.1", lambda: _lacks_simgrid("4.1")),
    "smpi-built": Capability("newer SimGrid", _lacks_built_simgrid),
    "smpi-linked": Capability("linked simulation", _lacks_linked_simulation),
    "mount-namespaces": Capability("mount namespaces", _lacks_mount_namespaces),
    "nodes": Capability("nodes by host names", _lacks_host_names),
    "ssh": _commands("ssh", "ssh"),
    "openmpi-known": Capability("Open MPI 4.1 or 5.0", lambda: _lacks_version("openmpi", "4.1", "5.0")),
    "openmpi-4.1": Capability("Open MPI 4.1", lambda: _lacks_version("openmpi", "4.1")),
    "mpich-4.0": Capability("MPICH 4.0", lambda: _lacks_version("mpich", "4.0")),
    "mpich-archive": Capability("MPICH's static library", _lacks(MPICH_ARCHIVE, f"no {MPICH_ARCHIVE}")),
    "pyarrow": Capability("Parquet files", lambda: "" if find_spec("pyarrow") else "pyarrow is not installed"),
    "dask": Capability("Dask", lambda: "" if find_spec("dask_jobqueue") else "dask-jobqueue is not installed"),
    "browser": Capability("a browser", lambda: "" if executable() else f"none of {', '.join(NAMES)} on PATH"),
    "studio": Capability("the studio", lambda: "" if find_spec("voila") else "Voilà is not installed"),
    "hpcc": _commands("the HPC Challenge benchmark", "hpcc"),
    "fortran": _commands("Fortran", "gfortran"),
    "mpi4py": Capability("the system's mpi4py", _lacks_mpi4py),
    "fuzzer": Capability("clang's libFuzzer", _lacks_fuzzer),
    "git": Capability("the repository", _lacks(ROOT / ".git", "no .git")),
    "cc": _commands("C compiler", "cc"),
    "c-headers": Capability("C headers", _lacks(Path("/usr/include/stdio.h"), "no /usr/include/stdio.h")),
    "shellcheck": _commands("shellcheck", "shellcheck"),
    "set-up": Capability(
        "the launcher's environment", _lacks(ROOT / ".venv/collwise-stamp", "no .venv; run ./collwise")
    ),
}
# The needs that continuous integration must not skip if the machine has them.
REQUIRED = ("testbed", "slurm", "openmpi", "mpich", "smpi")
_REASON = re.compile(r"needs ([\w.-]+): (.*)", re.DOTALL)


def needs(*names: str) -> pytest.MarkDecorator:
    """Marks a test that needs these capabilities; without one of them it is skipped."""
    for name in names:
        _known(name)
    return pytest.mark.needs(*names)


def each(*names: str) -> list[object]:
    """Parameters of these names, each of which needs the capability of its name."""
    return [pytest.param(name, marks=needs(name)) for name in names]


def need(*names: str) -> None:
    """Skips the running test if the machine lacks one of these capabilities."""
    for name in names:
        if why := why_missing(name):
            pytest.skip(f"needs {name}: {why}")


def why_missing(name: str) -> str:
    return _asked_once(_known(name))


@cache
def _asked_once(capability: Capability) -> str:
    return capability.missing()


def _known(name: str) -> Capability:
    if name not in CAPABILITIES:
        raise ValueError(f"unknown capability '{name}'; valid: {', '.join(CAPABILITIES)}")
    return CAPABILITIES[name]


def parse_reason(reason: str) -> tuple[str, str] | None:
    """The capability and why it is missing, from the reason that `need` gave; None for any other reason."""
    match = _REASON.fullmatch(reason.removeprefix("Skipped: "))
    return (match[1], match[2]) if match and match[1] in CAPABILITIES else None


def hidden(skipped: Iterable[str]) -> list[str]:
    """Those of the skipped capabilities that are required and that this machine shows evidence of having."""
    return [name for name in REQUIRED if name in skipped and CAPABILITIES[name].present()]


def in_continuous_integration() -> bool:
    """Whether CI is set in the environment, as hosted services and .ci/run do."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")
