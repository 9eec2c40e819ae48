"""Runs one C program under an engine, line by line, and ends it and all its processes when we end."""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collwise.common.notices import warn
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Installation, engine

# Computation costs nothing and reading the clock takes no time: runs are deterministic. `smpi/async-small-thresh`
# stays 0: above it, queued segments become concurrent flows that share the link instead of following one another.
SMPI_OPTIONS = {
    "smpi/simulate-computation": "no",
    "smpi/wtime": "0",
    "smpi/async-small-thresh": "0",
}
NO_BATCH_JOB = {"OMPI_MCA_ras": "^slurm,tm,lsf,gridengine"}
"""For Open MPI's mpirun: within a batch job it would know the job's nodes only, and take all of them."""
_NOISE = (
    "[WARNING]",
    "/INFO]",
    "xbt_cfg/WARNING",
    "DEPRECATED",
    "setpgid(",
    "-----",
    "with errorcode",
    "help_aggregate",
    "Primary job  terminated normally",
    "a non-zero exit code. Per user-direction",
)
# How Open MPI says that a process died.
_DEATH = "exited on signal"
_DEATH_CODE = 128
# Processes a core beyond which times say nothing of communication.
_CROWDED = 4
# Others may hold the pipe of a command that has ended, which would then never be read to its end.
_GRACE_SECONDS = 2.0


@dataclass
class ProgramRun:
    """How a program ended: its exit code (None when stopped at the time limit), output and last error lines.

    `reason` is what whoever ran it knows of a failure, where that is more than what was printed.
    """

    returncode: int | None
    output_lines: list[str] = field(default_factory=list)
    error_text: str = ""
    version: str = ""
    reason: str = ""

    @property
    def problem(self) -> str:
        """One line that says why the run failed: what is known of it, or the engine's own last words."""
        lines = [line.strip() for line in self.error_text.splitlines() if line.strip(" -=")]
        telling = [line for line in lines if not any(noise in line for noise in _NOISE)]
        deaths = [line for line in telling if _DEATH in line]
        worst = [line for line in telling if "CRITICAL" in line or "rror" in line]
        chosen = self.reason or (deaths or worst or telling or [self._unsaid()])[0]
        if self.returncode is None:
            return f"{chosen} (stopped at the time limit)"
        ended = f"exit code {self.returncode}" if self.returncode >= 0 else f"killed by signal {-self.returncode}"
        return f"{chosen} ({ended})"

    def _unsaid(self) -> str:
        """Open MPI does not always come to say which process died, but its exit code is then as of a shell."""
        if self.returncode is not None and _DEATH_CODE < self.returncode <= _DEATH_CODE + signal.SIGRTMAX:
            return f"a process {_DEATH} {self.returncode - _DEATH_CODE}"
        return "no message"


def smpi_command(
    smpi: Installation,
    platform_file: Path,
    host_file: Path,
    procs: int,
    program: Path,
    args: Sequence[str],
    *,
    privatize: bool = False,
    wrapper: str = "",
    options: Mapping[str, str] = SMPI_OPTIONS,
) -> list[str]:
    """The smpirun command line. Unless `privatize`, the program must have no mutable statics.

    The simulator is run by the command `wrapper`, where there is one: words by blanks.
    """
    settings = [f"--cfg={name}:{value}" for name, value in options.items()]
    return [
        str(smpi.launcher),
        *([] if privatize else ["-no-privatize"]),
        *(["-wrapper", wrapper] if wrapper else []),
        *("-platform", str(platform_file)),
        *("-hostfile", str(host_file)),
        *("-np", str(procs)),
        *settings,
        "--log=root.thres:error",
        str(program),
        *args,
    ]


def smpi_environment(smpi: Installation) -> dict[str, str]:
    """What makes the simulator quicker and changes no result: our CPU clock without system calls, and jemalloc.

    Without them a sweep takes about twice as long. LD_PRELOAD takes no path with a blank or a colon: our clock stays
    away then.
    """
    libraries = []
    quick_clock = str(smpi.build_directory / "libquick_clock.so")
    if os.path.exists(quick_clock) and not set(quick_clock) & set(" :"):
        libraries.append(quick_clock)
    if jemalloc := ctypes.util.find_library("jemalloc"):
        libraries.append(jemalloc)
    before = os.environ.get("LD_PRELOAD")
    return {"LD_PRELOAD": ":".join([*libraries, *([before] if before else [])])} if libraries else {}


@contextlib.contextmanager
def smpi_files(platform: HostPlatform, procs: int, processes_per_node: int) -> Iterator[tuple[Path, Path]]:
    """A temporary directory with the platform XML and the host file; yields their two paths."""
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        platform_file, host_file = Path(directory, "platform.xml"), Path(directory, "hosts")
        platform_file.write_text(platform.xml_text(), encoding="utf-8")
        hosts = platform.hosts_for(procs, processes_per_node)
        host_file.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
        yield platform_file, host_file


def run_command(
    command: Sequence[str],
    *,
    timeout_seconds: float | None = None,
    on_line: Callable[[str], None] | None = None,
    environment: dict[str, str] | None = None,
    stop: threading.Event | None = None,
    end_others: Callable[[], None] = lambda: None,
    grace_seconds: float = 0.0,
) -> ProgramRun:
    """Runs a command in a session of its own, which ends with it, on errors, and when `stop` is set.

    `on_line` gets each line of standard output as it comes. `end_others` ends processes of the command outside of its
    session; it is called when they may keep us waiting, from another thread. With `grace_seconds`, the command is first
    asked to end and has so long to end what it started, on other hosts too.
    """
    run = ProgramRun(returncode=None)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
            env=os.environ | (environment or {}),
        )
        finished = threading.Event()
        timed_out = threading.Event()

        def watch() -> None:
            waited = ended = 0.0
            while not finished.wait(0.1):
                waited += 0.1
                ended += 0.1 if child.poll() is not None else 0.0
                if timeout_seconds is not None and waited >= timeout_seconds:
                    timed_out.set()
                overdue = ended >= _GRACE_SECONDS
                if timed_out.is_set() or overdue or (stop is not None and stop.is_set()):
                    _ask_to_end(child, grace_seconds)
                    _end_session(child.pid)
                    end_others()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            assert child.stdout is not None
            for line in child.stdout:
                run.output_lines.append(line.rstrip("\n"))
                if on_line is not None:
                    on_line(run.output_lines[-1])
            child.wait()
        finally:
            finished.set()
            _ask_to_end(child, grace_seconds)
            _end_session(child.pid)
            child.wait()
        run.returncode = None if timed_out.is_set() else child.returncode
        errors.seek(0)
        run.error_text = errors.read()
    return run


def _ask_to_end(child: subprocess.Popen[str], grace_seconds: float) -> None:
    if grace_seconds > 0 and child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace_seconds)


def _end_session(session: int) -> None:
    """Launchers put what they start into groups of their own, but leave it in their session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if os.getsid(int(entry.name)) == session:
                    os.kill(int(entry.name), signal.SIGKILL)


def warn_if_crowded(procs: int) -> None:
    """Warns when far more processes are to run on this machine than it has cores."""
    cores = len(os.sched_getaffinity(0))
    if procs > _CROWDED * cores:
        warn(f"{procs} processes share {cores} cores of this machine; their times are mostly of waiting for a core")


def run_program(
    library: str,
    program: str,
    procs: int,
    args: Sequence[str] = (),
    *,
    platform: HostPlatform | None = None,
    processes_per_node: int = 1,
    engine_version: str | None = None,
    timeout_seconds: float | None = None,
    on_line: Callable[[str], None] | None = None,
    extra_launcher_args: Sequence[str] = (),
) -> ProgramRun:
    """Runs one of our programs under 'smpi' (needs `platform`), 'openmpi' or 'mpich' on this machine.

    Raises UsageError when the engine is missing or the platform is too small.
    """
    chosen = engine(library, engine_version, procs)
    binary = chosen.program(program)
    if library == "smpi":
        if platform is None:
            raise ValueError("running under SMPI needs a platform")
        with smpi_files(platform, procs, processes_per_node) as (platform_file, host_file):
            command = smpi_command(chosen, platform_file, host_file, procs, binary, args)
            command[1:1] = extra_launcher_args
            environment = smpi_environment(chosen)
            run = run_command(command, timeout_seconds=timeout_seconds, on_line=on_line, environment=environment)
    else:
        command = [str(chosen.launcher), "-np", str(procs), *extra_launcher_args, str(binary), *args]
        environment = {}
        if library == "openmpi":
            command[1:1] = ["--oversubscribe", "--bind-to", "none"]
            environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **NO_BATCH_JOB}
        run = run_command(command, timeout_seconds=timeout_seconds, on_line=on_line, environment=environment)
    run.version = chosen.version
    return run
