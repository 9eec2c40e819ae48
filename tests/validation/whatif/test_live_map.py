"""The map that follows changes, against the times of whole simulations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.testing import assert_equal

from collwise.platforms import load_description
from collwise.platforms.changes import Change, changed, parse_change
from collwise.simulator.schedule import live_groups
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import State
from collwise.validation.whatif.live_map import LiveMap, largest_error

GROS = load_description("gros")
GRID = Grid.of("allreduce", (6, 16, 48), (8, 1000, 2**16, 2**21), 1, (8192,))


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
    grid = Grid.of(GRID.collective, GRID.procs, GRID.message_bytes, 1, GRID.segments, algorithms)
    live = LiveMap(GROS, grid)
    view, drawn = live.on(changes, every=True), live.on(changes)
    new = changed(GROS, changes)
    with Store(tmp_path / "timings.sqlite") as store:
        there = replace(grid, processes_per_node=new.processes_per_node or 1)
        [exact] = simulate(new.platform, [there], SimulationContext(store, SCHEDULE))
    every, best = exact.array, exact.best_seconds.values
    assert (np.isnan(every) | (np.abs(view.array - every) <= view.half_widths.values + 1e-9 * every)).all()
    assert view.best_seconds.values == pytest.approx(best, rel=0.002)
    close = np.sort(every, axis=0)
    clear = close[1] > close[0] * 1.005
    assert (view.best.values[clear] == exact.best.values[clear]).all()
    assert_equal(drawn.best.values, view.best.values)
    assert_equal(drawn.best_seconds.values, view.best_seconds.values)


def test_maps_of_little_work_have_all_times() -> None:
    live = LiveMap(GROS, GRID)
    assert_equal(live.on([parse_change("bandwidth=x2")]).state.values, live.base.state.values)
    assert live.on(()).data.equals(live.base.data)
    assert largest_error(live.base) == pytest.approx(0.002)


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
            collective: LiveMap(GROS, Grid.of(collective, (7, 16, 40), (8, 4096, 2**17, 2**20), 1, (8192,)), jobs=1)
            for collective in ("bcast", "reduce", "allreduce", "scatter")
        }


@settings(max_examples=20)
@given(collective=st.sampled_from(("bcast", "reduce", "allreduce", "scatter")), sliders=SLIDERS)
def test_what_is_left_out_is_slower(maps: dict[str, LiveMap], collective: str, sliders: dict[str, str]) -> None:
    changes = [Change(name, value) for name, value in sliders.items()]
    drawn, all_times = maps[collective].on(changes), maps[collective].on(changes, every=True)
    timed, best = drawn.state.values == State.TIMED, all_times.best_seconds.values
    for one, other in ((drawn.array, all_times.array), (drawn.half_widths.values, all_times.half_widths.values)):
        assert_equal(one[timed], other[timed])
    assert (drawn.best_seconds.values <= best * 1.01).all()
    assert (timed | ~(all_times.array <= best * 1.02)).all()


@pytest.fixture(scope="module")
def maps_of_nodes() -> Iterator[dict[str, LiveMap]]:
    """Maps with four processes on each node, which share its port and a memory that is slower than the port."""
    where = replace(GROS, memory_bytes_per_second=2e9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_groups, "LITTLE_WORK", 0)
        yield {
            collective: LiveMap(where, Grid.of(collective, (20, 40), (4096, 2**16, 2**20), 4, (8192,)), jobs=1)
            for collective in ("allreduce", "reduce_scatter")
        }


@settings(max_examples=20)
@example(collective="allreduce", factors={"bandwidth": "x0.8784", "memory": "x4.453"})
@example(collective="reduce_scatter", factors={"bandwidth": "x1.188", "memory": "x4.31"})
@given(
    collective=st.sampled_from(("allreduce", "reduce_scatter")),
    factors=st.fixed_dictionaries({}, optional={"bandwidth": FACTORS, "latency": FACTORS, "memory": FACTORS}),
)
def test_the_best_choice_is_never_left_out_although_times_jump(
    maps_of_nodes: dict[str, LiveMap], collective: str, factors: dict[str, str]
) -> None:
    live, changes = maps_of_nodes[collective], [Change(name, value) for name, value in factors.items()]
    assert_equal(live.on(changes).best_seconds.values, live.on(changes, every=True).best_seconds.values)


def test_most_of_a_map_is_left_out(maps: dict[str, LiveMap]) -> None:
    for live in maps.values():
        drawn = live.on([parse_change("bandwidth=x0.4")])
        assert (drawn.state == State.LEFT_OUT).sum() > drawn.best.size
