"""Two trees keep in step: where there is a next segment, who sends does not go ahead of who receives."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.algorithms.compiling import compiled

SOURCE = Path(__file__).with_name("in_step.c")
LATE_SECONDS, SEGMENT_BYTES = 0.5, 2048


@pytest.mark.parametrize(("collective", "other"), [("bcast", "chain"), ("reduce", "pipeline")])
def test_who_sends_waits_for_who_receives(collective: str, other: str, tmp_path: Path) -> None:
    """In simulation, where an eager message is never waited for; a real library may run out of room for it."""
    program = compiled("smpi", SOURCE, tmp_path / "in_step")

    def seconds(algorithm: str, segments: int) -> float:
        arguments = [collective, algorithm, str(segments * SEGMENT_BYTES), str(SEGMENT_BYTES), str(LATE_SECONDS)]
        run = run_program("smpi", str(program), 4, arguments, platform=load("grisou"), timeout_seconds=900)
        assert run.returncode == 0, run.error_text
        return float(run.output_lines[-1])

    assert seconds("two_tree", 8) >= 0.9 * LATE_SECONDS
    assert seconds("two_tree", 1) < 0.9 * LATE_SECONDS
    assert seconds(other, 8) < 0.9 * LATE_SECONDS
