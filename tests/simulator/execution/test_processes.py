"""Commands in sessions of their own, and the one line that says why a run failed."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from collwise.simulator.execution.processes import ProgramRun, run_attached, run_command
from tests.waiting import wait_for

_RULE = "-" * 74
_ABORTED = f"""{_RULE}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{_RULE}
"""
_NOTICED = f"""{_RULE}
mpirun noticed that process rank 1 with PID 20530 on node n2 exited on signal 9 (Killed).
{_RULE}
"""


@pytest.mark.parametrize(
    ("returncode", "text", "problem"),
    [
        (137, _ABORTED + _NOTICED, _NOTICED.splitlines()[1] + " (exit code 137)"),
        (137, _ABORTED, "a process exited on signal 9 (exit code 137)"),
        (139, "", "a process exited on signal 11 (exit code 139)"),
        (3, _ABORTED, "no message (exit code 3)"),
        (3, _ABORTED + "benchmark: no such method\n", "benchmark: no such method (exit code 3)"),
        (255, "", "no message (exit code 255)"),
        (-9, "", "no message (killed by signal 9)"),
        (None, "", "no message (stopped at the time limit)"),
    ],
)
def test_problem(returncode: int | None, text: str, problem: str) -> None:
    assert ProgramRun(returncode=returncode, error_text=text).problem == problem


def test_a_known_reason_goes_before_what_was_printed() -> None:
    run = ProgramRun(returncode=137, error_text=_ABORTED + _NOTICED, reason="no answer from n3")
    assert run.problem == "no answer from n3 (exit code 137)"


def gone(process: int) -> bool:
    """Whether there is no such process, or only its exit code."""
    return not psutil.pid_exists(process) or psutil.Process(process).status() == psutil.STATUS_ZOMBIE


def test_processes_in_other_groups_of_the_session_end_with_the_command() -> None:
    run = run_command(["bash", "-c", "set -m; sleep 10000 >/dev/null & echo $!"], timeout_seconds=900)
    assert run.returncode == 0
    wait_for(lambda: gone(int(run.output_lines[0])))


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("echo $COLOUR; exit 0", 0)])
def test_an_attached_command_has_our_streams(capfd: pytest.CaptureFixture[str], script: str, code: int) -> None:
    assert run_attached(["sh", "-c", script], {"COLOUR": "blue"}, 0.0) == code
    assert capfd.readouterr().out == ("blue\n" if "COLOUR" in script else "")


def test_an_interrupt_ends_an_attached_command() -> None:
    """As Ctrl-C does: the command is asked to end, and has time to do so."""
    script = "trap 'echo asked; exit' TERM; echo started; while :; do sleep 0.1; done"
    code = (
        "from collwise.simulator.execution.processes import run_attached; "
        f"raise SystemExit(run_attached(['bash', '-c', {script!r}], {{}}, 900))"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "asked\n"
    assert child.returncode == 130
