"""Runs commands in sessions that end with them, and gives files of work to our programs, which print JSON records."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from collwise.common.errors import note
from collwise.simulator.timing import Case

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
    "error message you will receive",
)
# Open MPI frames its messages with lines of dashes, and wraps them at about 75 columns; list items are shorter or
# indented.
_RULE = re.compile("-{40,}")
_WRAPPED_FROM = 50
# Open MPI's words for a process that a signal ended, and the number that shells add to a signal in their exit code.
_SIGNALLED = "exited on signal"
_SIGNALLED_CODE = 128
# Processes that outlive their command may hold its pipe open, which would then never be read to its end.
_OUTLIVING_SECONDS = 2.0
_WATCH_SECONDS = 0.1
_TELL_EVERY_SECONDS = 30


@dataclass
class ProgramRun:
    """The end of a program: its exit code (None if the time limit stopped it), output lines and standard error.

    `reason` explains a failure if the caller knows more than the program printed.
    """

    returncode: int | None
    output_lines: list[str] = field(default_factory=list)
    error_text: str = ""
    reason: str = ""

    @property
    def telling_lines(self) -> list[str]:
        """The lines of standard error, without lines that launchers also print in successful runs.

        A paragraph that Open MPI has wrapped, between two lines of dashes, becomes one line.
        """
        lines: list[str] = []
        framed = goes_on = False
        for line in self.error_text.splitlines():
            text = line.strip()
            if _RULE.fullmatch(text):
                framed = not framed
            if goes_on and text.strip(" -=") and line[0] != " ":
                lines[-1] += f" {text}"
            elif text.strip(" -="):
                lines.append(text)
            goes_on = framed and len(line) >= _WRAPPED_FROM and line[0] not in " -"
        return [line for line in lines if not any(noise in line for noise in _NOISE)]

    @property
    def problem(self) -> str:
        """One line that says why the run failed: the known reason, or the most informative line."""
        telling = self.telling_lines
        deaths = [line for line in telling if _SIGNALLED in line]
        worst = [line for line in telling if "CRITICAL" in line or "rror" in line]
        chosen = self.reason or (deaths or worst or telling or [self._without_message()])[0]
        if self.returncode is None:
            return f"{chosen} (stopped at the time limit)"
        ended = f"exit code {self.returncode}" if self.returncode >= 0 else f"killed by signal {-self.returncode}"
        return f"{chosen} ({ended})"

    def _without_message(self) -> str:
        """The problem of a run that printed none; Open MPI's exit code still shows the signal."""
        if self.returncode is not None and _SIGNALLED_CODE < self.returncode <= _SIGNALLED_CODE + signal.SIGRTMAX:
            return f"a process {_SIGNALLED} {self.returncode - _SIGNALLED_CODE}"
        return "no message"


@dataclass(frozen=True)
class LauncherCommand:
    """A launcher's command line up to the program, and environment variables for the launcher itself."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def run_command(
    command: Sequence[str],
    *,
    timeout_seconds: float | None = None,
    on_line: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
    end_others: Callable[[], None] = lambda: None,
    grace_seconds: float = 0.0,
) -> ProgramRun:
    """Runs a command and captures its output. Its session ends when the command ends, on errors, and at `stop`.

    `on_line` gets each line of standard output as it arrives. `end_others` ends processes that the command started
    outside of its session; another thread calls it when such processes could block the reading of output. With
    `grace_seconds`, the command first gets SIGTERM and this much time to end its processes, also on other hosts.
    """
    run = ProgramRun(returncode=None)
    finished, timed_out = threading.Event(), threading.Event()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        _session(
            command,
            environment or {},
            grace_seconds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
        ) as child,
    ):

        def watch() -> None:
            waited = outlived = 0.0
            while not finished.wait(_WATCH_SECONDS):
                waited += _WATCH_SECONDS
                outlived += _WATCH_SECONDS if child.poll() is not None else 0.0
                if timeout_seconds is not None and waited >= timeout_seconds:
                    timed_out.set()
                if timed_out.is_set() or outlived >= _OUTLIVING_SECONDS or (stop is not None and stop.is_set()):
                    _end_session(child, grace_seconds)
                    end_others()
                    return

        threading.Thread(target=watch, daemon=True).start()
        try:
            assert child.stdout is not None
            for line in child.stdout:
                run.output_lines.append(line.rstrip("\n"))
                if on_line is not None:
                    on_line(run.output_lines[-1])
            child.wait()
        finally:
            finished.set()
        run.returncode = None if timed_out.is_set() else child.returncode
        errors.seek(0)
        run.error_text = errors.read()
    return run


def run_attached(
    command: Sequence[str],
    environment: Mapping[str, str],
    grace_seconds: float,
    log: IO[str] | None = None,
    started: Callable[[Callable[[], int | None]], None] = lambda ended: None,
    what: str = "",
) -> int:
    """Runs a command with our standard streams; its session ends when the command ends or we are interrupted.

    With a `log`, the output goes there. `started` is called while the command runs, with a function that returns the
    exit code, or None before there is one. If `what` is given, notes say for how long it has run. Returns the exit
    code, 128 + the signal that killed the command, or 130 after an interrupt.
    """
    streams = {} if log is None else {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    with _session(command, environment, grace_seconds, **streams) as child:
        try:
            started(child.poll)
            for turn in itertools.count(1):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = child.wait(_TELL_EVERY_SECONDS if what else None)
                    break
                note(f"{what} has run for {turn * _TELL_EVERY_SECONDS} s")
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _session(
    command: Sequence[str], environment: Mapping[str, str], grace_seconds: float, **streams: Any
) -> Iterator[subprocess.Popen[Any]]:
    """The started command, in a session that ends with the block."""
    child = subprocess.Popen(command, start_new_session=True, env=os.environ | environment, **streams)
    try:
        yield child
    finally:
        _end_session(child, grace_seconds)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _end_session(child: subprocess.Popen[Any], grace_seconds: float) -> None:
    """Ends all processes of the session; launchers put processes into other groups, but not into other sessions."""
    import psutil

    gone = (ProcessLookupError, PermissionError)
    try:
        if grace_seconds > 0 and child.poll() is None:
            with contextlib.suppress(*gone, subprocess.TimeoutExpired):
                os.killpg(child.pid, signal.SIGTERM)
                child.wait(grace_seconds)
    finally:
        with contextlib.suppress(*gone):
            os.killpg(child.pid, signal.SIGKILL)
        for process in psutil.pids():
            with contextlib.suppress(*gone):
                if os.getsid(process) == child.pid:
                    os.kill(process, signal.SIGKILL)


@dataclass
class Worklist:
    """A file of work. `take` passes the records in a program's lines of output to `keep`; `done` counts them."""

    file_name: str
    keep: Callable[[dict[str, Any]], None]
    done: int = 0

    def take(self, line: str) -> None:
        """Takes a line of output; ignores lines that are not records, or were cut off at the end."""
        if line.startswith('{"id"'):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                return
            if record["id"] < 0:  # the record of a line whose id could not be read
                return
            self.done += 1
            self.keep(record)


@contextlib.contextmanager
def worklist(
    text: str, keep: Callable[[dict[str, Any]], None], folder: AbstractContextManager[Path] | None = None
) -> Iterator[Worklist]:
    """A file with that text in `folder`, by default a temporary directory of this machine."""
    with folder or tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        file = Path(directory, "list")
        file.write_text(text, encoding="utf-8")
        yield Worklist(str(file), keep)


def case_lines(cases: Sequence[Case]) -> str:
    """The cases as programs/benchmark.c reads them; a case's id is its position."""
    return "".join(
        f"{number} {case.experiment} {case.collective} {case.algorithm} {case.procs} {case.root} "
        f"{case.message_bytes} {case.segment_bytes} {case.parameter} {case.gather_bytes} {case.limit_bytes}\n"
        for number, case in enumerate(cases)
    )
