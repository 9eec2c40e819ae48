"""The run core, with times that a function makes up."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.simulator.store import Store
from collwise.simulator.sweeps.runner import run_cases
from collwise.simulator.timing import Case, Timing
from tests.runners import FunctionRunner


def test_a_problem_in_showing_progress_is_raised_and_rows_are_kept(tmp_path: Path) -> None:
    """Progress is shown from another thread, whose exceptions nobody would see."""

    def show(timing: Timing | None, fraction: float, cases: int = 0) -> None:
        raise RuntimeError("no terminal")

    runner = FunctionRunner(lambda case: 1.0)
    with Store(tmp_path / "timings.sqlite") as store:
        with pytest.raises(RuntimeError, match="no terminal"):
            run_cases(runner, [Case("bcast", "chain", 2, 1)], store, show)
        assert len(store.timings(runner.configuration)) == 1
