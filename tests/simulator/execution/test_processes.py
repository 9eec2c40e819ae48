"""Commands in sessions of their own, and the one line that says why a run failed."""

from __future__ import annotations

import subprocess

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
_INITIALISATION = f"""{_RULE}
It looks like MPI_INIT failed for some reason; your parallel process is
likely to abort. There are many reasons that a parallel process can fail
during MPI_INIT; some of which are due to configuration or environment
problems.
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
        (1, _INITIALISATION, f"{' '.join(_INITIALISATION.split()[1:-1])} (exit code 1)"),
        (1, f"{_RULE}\n{'a' * 60}\n  --> Returned error\n", "--> Returned error (exit code 1)"),
        (1, f"{'a' * 60}\n{'b' * 60}\n", f"{'a' * 60} (exit code 1)"),
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


def test_an_interrupt_ends_an_attached_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command is asked to end, and has time to do so."""
    wait, interrupts = subprocess.Popen.wait, [KeyboardInterrupt]

    def interrupted(child: subprocess.Popen[str], timeout: float | None = None) -> int:
        if interrupts:
            wait_for(lambda: "started" in capfd.readouterr().out)
            raise interrupts.pop()
        return wait(child, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    script = "trap 'echo asked; exit' TERM; echo started; while :; do sleep 0.1; done"
    assert run_attached(["bash", "-c", script], {}, 900.0) == 130
    assert capfd.readouterr().out == "asked\n"
