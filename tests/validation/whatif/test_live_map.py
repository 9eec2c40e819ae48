"""The map that follows changes, against the times of whole simulations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collwise.platforms import load_description
from collwise.platforms.changes import parse_change
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.predictions import simulated_seconds
from collwise.validation.whatif.comparison import what_if
from collwise.validation.whatif.live_map import LiveMap

GROS = load_description("gros")
GRID = CaseGrid("allreduce", (6, 16, 48), (8, 1000, 2**16, 2**21), 1, (8192,))


@pytest.mark.parametrize(
    "texts",
    [
        ("bandwidth=x0.3", "background=0.2"),
        ("ppn=2", "placement=cyclic"),
        ("degraded_link=1:x0.2",),
        ("topology=fat-tree:nodes_per_switch=8:oversubscription=8",),
    ],
)
@pytest.mark.parametrize("algorithms", [(), ("ring", "hierarchical")])
def test_times_and_choices(texts: tuple[str, ...], algorithms: tuple[str, ...], tmp_path: Path) -> None:
    changes = [parse_change(text) for text in texts]
    grid = CaseGrid(GRID.collective, GRID.procs, GRID.message_bytes, 1, GRID.segments, algorithms)
    view = LiveMap(GROS, grid).on(changes)
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, SCHEDULE)
        found = what_if(GROS, changes, grid, context).after
        every = simulated_seconds(found.grid, context.simulate(found.platform, found.grid.cases()))
    assert view.platform.digest() == found.platform.digest()
    assert (np.abs(view.seconds - every) <= view.errors + 1e-9 * every).all()
    assert view.best_seconds == pytest.approx(found.best_seconds, rel=0.002)
    close = np.sort(every, axis=0)
    clear = close[1] > close[0] * 1.005
    assert (view.best[clear] == found.best[clear]).all()


def test_the_base_is_the_platform_without_changes() -> None:
    live = LiveMap(GROS, GRID)
    assert (live.on(()).seconds == live.base.seconds).all()
    assert live.base.largest_error == pytest.approx(0.002)
