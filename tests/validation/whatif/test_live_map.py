"""The map that follows changes, against the times of whole simulations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_equal

from collwise.platforms import load_description
from collwise.platforms.changes import Change, parse_change
from collwise.simulator.schedule import live_groups
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.predictions import simulated_seconds
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
def test_times_and_choices(
    texts: tuple[str, ...], algorithms: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_groups, "LITTLE_WORK", 0)
    changes = [parse_change(text) for text in texts]
    grid = CaseGrid(GRID.collective, GRID.procs, GRID.message_bytes, 1, GRID.segments, algorithms)
    live = LiveMap(GROS, grid)
    view, drawn = live.on(changes, every=True), live.on(changes)
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
    assert (drawn.best == view.best).all()
    assert_equal(drawn.best_seconds, view.best_seconds)


def test_maps_of_little_work_have_all_times() -> None:
    live = LiveMap(GROS, GRID)
    assert_equal(np.isnan(live.on([parse_change("bandwidth=x2")]).seconds), np.isnan(live.base.seconds))


def test_the_base_is_the_platform_without_changes() -> None:
    live = LiveMap(GROS, GRID)
    assert_equal(live.on((), every=True).seconds, live.base.seconds)
    assert_equal(live.on(()).best, live.base.best)
    assert live.base.largest_error == pytest.approx(0.002)


FACTORS = st.floats(-3, 3).map(lambda power: f"x{2**power:.4g}")
SLIDERS = st.fixed_dictionaries(
    {},
    optional={
        "bandwidth": FACTORS,
        "latency": FACTORS,
        "reduction": FACTORS,
        "overheads": st.floats(0.1, 5).map(lambda us: f"{us:.3g}us"),
        "background": st.floats(0.05, 0.9).map(lambda share: f"{share:.3g}"),
        "eager_limit": st.sampled_from(("4KiB", "16KiB", "256KiB", "1MiB")),
    },
)


@pytest.fixture(scope="module")
def maps() -> Iterator[dict[str, LiveMap]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_groups, "LITTLE_WORK", 0)
        yield {
            collective: LiveMap(GROS, CaseGrid(collective, (7, 16, 40), (8, 4096, 2**17, 2**20), 1, (8192,)), jobs=1)
            for collective in ("bcast", "reduce", "allreduce", "scatter")
        }


@settings(max_examples=40)
@given(collective=st.sampled_from(("bcast", "reduce", "allreduce", "scatter")), sliders=SLIDERS)
def test_what_is_left_out_is_slower(maps: dict[str, LiveMap], collective: str, sliders: dict[str, str]) -> None:
    changes = [Change(name, value) for name, value in sliders.items()]
    drawn, all_times = maps[collective].on(changes), maps[collective].on(changes, every=True)
    timed = ~np.isnan(drawn.seconds)
    assert_equal(drawn.seconds[timed], all_times.seconds[timed])
    assert_equal(drawn.errors[timed], all_times.errors[timed])
    assert (drawn.best_seconds <= all_times.best_seconds * 1.01).all()
    near = all_times.seconds <= all_times.best_seconds * 1.02
    assert (timed | ~near).all()


def test_most_of_a_map_is_left_out(maps: dict[str, LiveMap]) -> None:
    for live in maps.values():
        drawn = live.on([parse_change("bandwidth=x0.4")])
        assert np.isnan(drawn.seconds).sum() > np.isnan(live.base.seconds).sum() + drawn.best.size
