"""Times over allocations: medians, 95th percentiles and losses; draws of nodes."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform, allocated, load, scattered
from collwise.platforms.allocation import ScatteredPlatform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.times.allocations import ALLOCATION, RARE, losses, over_allocations
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times, joined

GRID = Grid.of("bcast", (4, 8), (8, 1024), segments=(0,), algorithms=("chain", "linear", "binomial"))


@pytest.fixture
def context(tmp_path: Path) -> SimulationContext:
    return SimulationContext(Store(tmp_path / "timings.sqlite"), SCHEDULE)


def drawn_times(count: int) -> Times:
    generator = random.Random(7)
    shape = (len(GRID.timed), len(GRID.procs), len(GRID.message_bytes))
    each = [
        Times.of_seconds(
            GRID, np.array([generator.uniform(1, 3) for _ in range(np.prod(shape))]).reshape(shape),
            "any", "simulated", "engine", State.NOT_ASKED,
        )
        for _ in range(count)
    ]  # fmt: skip
    return joined(each, ALLOCATION, range(1, count + 1))


def test_medians_and_losses_are_those_of_the_definitions() -> None:
    times = drawn_times(21)
    typical, rare = over_allocations(times), over_allocations(times, RARE)
    median_loss, rare_loss = losses(times)
    assert typical.array.shape == (3, 2, 2)
    assert typical.made_by == "engine, median of 21 allocations"
    assert rare.made_by == "engine, 95th percentile of 21 allocations"
    for place in np.ndindex(3, 2, 2):
        values = [float(one) for one in times.array[place]]
        assert typical.array[place] == pytest.approx(statistics.median(values))
        # The 95th percentile of 21 values is the second largest one.
        assert rare.array[place] == pytest.approx(sorted(values)[-2])
        best = times.array[(slice(None), *place[1:])].min(axis=0)
        lost = [value / least - 1 for value, least in zip(values, best, strict=True)]
        assert float(median_loss.values[place]) == pytest.approx(statistics.median(lost))
        assert float(rare_loss.values[place]) == pytest.approx(sorted(lost)[-2])
    assert over_allocations(typical) is typical


def test_decisions_are_by_medians_and_say_what_they_lose(capsys: pytest.CaptureFixture[str]) -> None:
    times = drawn_times(21)
    decisions = collwise.select(times, tolerance=0)
    typical = over_allocations(times)
    picks = typical.picks_of(decisions.tables[0].choice_at)
    assert (picks == typical.best.values).all()
    lost = times.slowdown(picks).values
    said = capsys.readouterr().err
    median, rare = np.quantile(lost, [0.5, 0.95])
    assert (
        f"over 21 allocations the choices lose {median * 100:.1f} % in the median, {rare * 100:.1f} % at the 95th"
        in said
    )
    assert f"{lost.max() * 100:.1f} % at worst (P = " in said
    worst = collwise.compare(times, decisions).table().worst_slowdown
    assert worst.tolist() == [pytest.approx(0, abs=1e-12)]


def test_draws_are_repeated_scattered_and_differ() -> None:
    leonardo = load("leonardo")
    draws = scattered(leonardo, 40)
    positions = [one.positions(64, 4) for one in draws]
    assert positions == [one.positions(64, 4) for one in scattered(leonardo, 40)]
    assert len({*positions}) == len({one.digest() for one in draws}) == 40
    switches = []
    for one in positions:
        assert set(Counter(one).values()) == {4}
        assert list(one) == [one[rank // 4 * 4] for rank in range(64)]
        switches.append(len({node // 10 for node in one}))
    # From packed, 16 nodes at two or three switches, to scattered, nearly each at one of its own.
    assert min(switches) <= 3
    assert max(switches) >= 14
    assert leonardo.max_procs(1) == draws[0].max_procs(1)
    everything = draws[0].positions(3456, 1)
    assert sorted(everything) == list(range(3456))


def test_draws_and_files_of_the_same_nodes_have_the_same_times(context: SimulationContext, tmp_path: Path) -> None:
    leonardo = load("leonardo")
    asked = {"procs": 12, "sizes": "8,64KiB", "algorithms": "ring,bruck", "ppn": 1, "context": context}
    times = collwise.simulate(leonardo, "allgather", allocations=3, **asked)["allgather"]
    assert times.array.shape == (2, 1, 2, 3)
    assert len(times.frame()) == 12
    for number in range(1, 4):
        hosts = ScatteredPlatform(leonardo, number).hosts_for(12, 1)
        file = tmp_path / f"{number}.csv"
        file.write_text("\n".join(f"{rank},{host}" for rank, host in enumerate(hosts)))
        own = collwise.simulate(allocated(leonardo, file), "allgather", **asked)["allgather"]
        assert own.array.tolist() == times.array[..., number - 1].tolist()
    again = collwise.simulate(leonardo, "allgather", allocations=3, **asked)["allgather"]
    assert again.facts["reused"] == 12


@pytest.mark.parametrize(
    ("platform", "count", "message"),
    [
        (load("gros"), 3, "all nodes of 'gros' are alike"),
        (load("leonardo"), 0, "--allocations 0: at least 1 is needed"),
        (allocated(load("gros"), "gros-[1-2]"), 2, r"draws nodes at random, but gros-\[1-2\] fixes them"),
    ],
)
def test_what_draws_are_not_for(platform: HostPlatform, count: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scattered(platform, count)


def test_a_margin_is_not_for_draws() -> None:
    with pytest.raises(UsageError, match="--margin leaves out choices"):
        collwise.simulate("leonardo", "bcast", procs=4, ppn=1, allocations=2, margin=1)
