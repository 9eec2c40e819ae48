"""What a failed run says of itself: one line, whatever the engine came to print."""

from __future__ import annotations

import pytest

from collwise.simulator.execution.processes import ProgramRun

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
