"""What a stopped command says: that it resumes, if it keeps finished cases."""

from __future__ import annotations

import pytest

from collwise.studies.cli import main as command_line


@pytest.mark.parametrize(
    ("words", "resumes"),
    [
        (["simulate", "--platform", "gros"], True),
        (["search", "tasks", "--platform", "gros"], True),
        (["check", "algorithms", "--quick"], False),
        (["program", "run", "--procs", "4", "latency"], False),
        (["platforms", "show", "gros", "--check"], False),
    ],
)
def test_only_commands_with_a_store_promise_to_resume(
    words: list[str], resumes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line.collwise, "main", stopped)
    with pytest.raises(SystemExit) as ended:
        command_line.main(words)
    assert ended.value.code == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "collwise: stopped" + "; finished cases are in the store; the same command resumes there" * resumes
