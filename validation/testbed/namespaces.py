"""Network namespaces: a check that they can be made here, the commands that make them, and the processes inside."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError

AGENT = Path(__file__).with_name("agent")
"""The command that enters a node of a test bed. mpirun reaches nodes with it instead of ssh."""

_MOUNTS = Path("/run/netns")
# Distributions have ip and tc in directories that are not on every user's path.
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
# Uses all that a bed needs of the kernel, in a namespace that ends with the command.
_PROBE = """set -e
ip link add probe0 type veth peer name probe1
ip link add probe2 type bridge
tc qdisc add dev probe0 root tbf rate 100mbit burst 3200 limit 10000"""
_ENDING_SECONDS = 5.0


def obstacle() -> str:
    """The reason why no test bed can be made here; empty if one can."""
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux")):
        if found_command(tool) is None:
            return f"a test bed needs the command '{tool}' (package {package})"
    if os.geteuid() != 0:
        return "a test bed needs the right to make network namespaces; run as root"
    probe = _run(["unshare", "--net", "--mount", "--uts", "sh", "-c", _PROBE])
    if probe.returncode != 0:
        said = " ".join((probe.stderr or probe.stdout).split())
        return f"a test bed needs the right to make network namespaces, veth, bridge and tbf; this failed: {said}"
    return ""


def found_command(name: str) -> str | None:
    """The path of a command, including commands for administrators."""
    return shutil.which(name, path=_PATH)


def require() -> None:
    """Raises UsageError when no test bed can be made here."""
    if reason := obstacle():
        raise UsageError(reason)


def command(*words: str, text: str = "") -> str:
    """The output of a command with `text` as its input. Raises CollwiseError when it fails."""
    done = _run(words, text)
    if done.returncode != 0:
        raise CollwiseError(f"{' '.join(words)}: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def _run(words: Iterable[str], text: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": _PATH}
    return subprocess.run([*words], input=text, capture_output=True, text=True, check=False, env=environment)


def existing(names: Iterable[str]) -> list[str]:
    """The network namespaces among these names that exist."""
    return [name for name in names if (_MOUNTS / name).exists()]


def processes(names: Iterable[str], mark: Mapping[str, str] | None = None) -> list[int]:
    """Ids of the processes in these network namespaces; with `mark`, only if they have these environment variables."""
    import psutil  # imported here, since a command's help does not need it

    wanted = {_identity(_MOUNTS / name) for name in names} - {None}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            inside = _identity(Path(f"/proc/{process.pid}/ns/net")) in wanted
            if inside and (not mark or mark.items() <= process.environ().items()):
                found.append(process.pid)
    return found


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def end_processes(names: Iterable[str], mark: Mapping[str, str] | None = None) -> int:
    """Kills the processes that `processes` finds and waits until they are gone; returns how many there were."""
    ended: set[int] = set()
    names = list(names)
    deadline = time.monotonic() + _ENDING_SECONDS
    while (found := processes(names, mark)) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        ended.update(found)
        time.sleep(0.01)
    return len(ended)
