"""A platform without overheads is warned of, in one line, wherever its times choose something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import collwise
from collwise.common.errors import warn
from collwise.platforms import Calibration, Platform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.libraries.baselines import PAPERS
from collwise.validation.times.grid import Grid
from tests.free import free
from tests.needs import needs
from tests.runners import context_with

FREE = free()
CHARGED = replace(FREE, calibration=Calibration(os=((0, 1e-6, 0.0),)))
GRID = Grid.of("bcast", (4,), (8192,), 1, (0,), ("linear", "chain"))

Choosing = Callable[[Platform, SimulationContext], object]


def simulate(platform: Platform, context: SimulationContext) -> object:
    return collwise.simulate(platform, "bcast", 4, 8192, context=context)


def warnings_of(
    choosing: Choosing, platform: Platform, context: SimulationContext, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    warn.cache_clear()
    choosing(platform, context)
    return [line for line in capsys.readouterr().err.splitlines() if "warning" in line]


@pytest.mark.parametrize(
    "choosing",
    [
        simulate,
        lambda platform, context: beside_simulation(platform, GRID, [], context, PAPERS),
    ],
    ids=["simulate", "compare"],
)
def test_what_chooses_warns_once(choosing: Choosing, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context = context_with(store, lambda case: 1.0)
        (line,) = warnings_of(choosing, FREE, context, capsys)
        assert line.startswith("collwise: warning: platform 'gros' has no overheads (os, or, ois)")
        # Stored times are warned of like new ones.
        assert len(warnings_of(choosing, FREE, context, capsys)) == 1
        assert warnings_of(choosing, CHARGED, context, capsys) == []


@needs("smpi")
@pytest.mark.parametrize("engine", [SMPI, SCHEDULE], ids=lambda engine: engine.name)
def test_both_engines_warn(engine: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, engine)  # type: ignore[arg-type]
        assert len(warnings_of(simulate, FREE, context, capsys)) == 1
        assert warnings_of(simulate, CHARGED, context, capsys) == []
