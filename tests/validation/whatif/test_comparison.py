"""What-if: choices and times before and after a change, against separate simulations of the changed platform's file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_equal

import collwise
from collwise import Decisions
from collwise.common.errors import UsageError
from collwise.platforms import Node, load, new_platform, write_description
from collwise.platforms.changes import Change, changed, parse_change
from collwise.platforms.topology import FatTree
from collwise.simulator.schedule.critical_path import path_parts
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import simulate
from collwise.validation.whatif.sweep import AFTER, BEFORE, LIMITS, changes_choice, limits_of, main_limit
from tests.free import free
from tests.needs import needs

if TYPE_CHECKING:
    from collwise import WhatIf
    from collwise.platforms import HostPlatform

GROS = free()
GRID = Grid.of("allreduce", (8, 12), (1024, 65536, 2**21), 1, (8192,))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, SCHEDULE)


def ask(context: SimulationContext, *texts: str, platform: HostPlatform = GROS, **asked: Any) -> WhatIf:
    points: dict[str, Any] = {"procs": GRID.procs, "sizes": GRID.message_bytes, "segments": GRID.segments}
    return collwise.whatif(platform, texts, "allreduce", context=context, **(points | asked))["allreduce"]


def test_a_doubled_bandwidth_halves_a_time_bound_by_bandwidth(context: SimulationContext) -> None:
    free = changed(GROS, [Change("latency", "x1e-6"), Change("reduction", "x1e-6")]).platform
    found = ask(context, "bandwidth=x2", platform=free, sizes=2**21)
    assert found.time_ratio.values == pytest.approx(np.full((2, 1), 0.5), rel=1e-3)
    assert not changes_choice(found.times).any()


def test_titles_of_figures_say_what_changes(context: SimulationContext) -> None:
    found = ask(context, "bandwidth=x0.25")
    changed_at, ratios = changes_choice(found.times).sum(), found.time_ratio.values
    assert found.figure().get_suptitle().splitlines() == [
        f"Another choice is best at {changed_at} of 6 points; "
        f"the best times change by x {ratios.min():.2f} to x {ratios.max():.2f}",
        f"allreduce on {GROS.title}: bandwidth x0.25 (schedule engine)",
    ]
    asked: dict[str, Any] = {"procs": 31, "sizes": 2**20, "segments": 8192, "context": context}
    swept = collwise.sweep("gros", "bandwidth=x0.25:x8", "allreduce", **asked)["allreduce"]
    (crossing,) = swept.found
    turns = f"{crossing.below.label} is the choice up to x{crossing.value:.3g}, then {crossing.above.label}"
    figure = swept.figure()
    assert figure.get_suptitle().startswith(f"{turns}\n")
    named = [text.get_text().replace("\n", "") for text in figure.axes[0].texts]
    assert f"x{crossing.value:.3g}" in named
    assert {crossing.below.label, crossing.above.label} <= {*named}
    one = f"x{crossing.value:.3g}"
    changes = f"The best choice changes for 1 of 1 process counts, between {one} and {one}\n"
    assert swept.map().get_suptitle().startswith(changes)
    still = collwise.sweep("gros", "bandwidth=x4:x8", "allreduce", **asked)["allreduce"]
    assert still.figure().get_suptitle().startswith(f"{crossing.above.label} is the choice at every factor\n")


NOTHING = ("bandwidth=x1", "latency=x1", "reduction=x1", "background=0", "degraded_link=3:x1")


@settings(max_examples=10)
@given(st.lists(st.sampled_from(NOTHING), unique=True), st.sampled_from(["bcast", "allreduce", "scatter"]), st.data())
def test_changes_that_change_nothing_change_no_time(texts: list[str], collective: str, data: st.DataObject) -> None:
    procs, size = data.draw(st.integers(4, 12)), data.draw(st.integers(1, 2**20))
    with collwise.session(store=":memory:", engine="schedule") as context:
        found = collwise.whatif(GROS, texts, collective, procs=procs, sizes=size, context=context)[collective]
    before, after = (found.times.seconds.sel(change=label).values for label in (BEFORE, AFTER))
    assert_equal(before, after)
    assert not changes_choice(found.times).any()
    assert (found.kept_slowdown() == 0).all()


def test_a_choice_that_is_far_faster_is_sure(context: SimulationContext) -> None:
    """The new choice is surely faster than the old one only if it is faster by far."""
    answer = ask(context, "bandwidth=x0.01")
    sure, known = answer.sure_changes
    assert 0 <= sure <= known <= changes_choice(answer.times).sum()
    assert ask(context, "bandwidth=x1").sure_changes == (0, 0)


def test_the_summary_says_for_which_process_counts_nothing_changes(context: SimulationContext) -> None:
    """Eight processes are on nodes 0 to 7, and of 12 one is on node 9."""
    lines = ask(context, "degraded_link=9:x0.1").summary()
    assert any(line.startswith("At P = 8 no best time changes at all") for line in lines)
    assert not any("no best time" in line for line in ask(context, "bandwidth=x2").summary())


@pytest.mark.parametrize(
    "texts",
    [
        ("bandwidth=x0.25", "latency=x2"),
        ("overheads=2us", "slow_node=5:x8"),
        ("degraded_link=0:x0.1",),
        ("overheads=2us", "topology=fat-tree:nodes_per_switch=4", "slow_node=5:x8", "degraded_link=switch1:x0.1"),
        ("topology=fat-tree:nodes_per_switch=4", "oversubscription=4", "background=0.5"),
        ("eager_limit=4KiB", "nodes=12"),
        ("ppn=2", "placement=cyclic"),
    ],
)
def test_times_are_those_of_simulate_on_a_file_of_the_changed_platform(
    texts: tuple[str, ...], context: SimulationContext, tmp_path: Path
) -> None:
    found = ask(context, *texts)
    file, per_node = tmp_path / "changed.toml", 2 if "ppn=2" in texts else 1
    described = getattr(found.after.platform, "base", found.after.platform)
    file.write_text(write_description(described))
    where = load(file)
    if "placement=cyclic" in texts:
        where = changed(where, [Change("placement", "cyclic")]).platform
    [other] = simulate(where, [replace(GRID, processes_per_node=per_node)], context)
    own, best = found.times.seconds.sel(change=AFTER).values, found.best_seconds(AFTER).values
    # What was left out is slower than the best.
    assert ((own == other.array) | (np.isnan(own) & ~(other.array < best))).all()


@needs("smpi")
def test_smpi_can_simulate_instead(context: SimulationContext) -> None:
    asked: dict[str, Any] = {"procs": 8, "sizes": 65536, "algorithms": "ring,rabenseifner"}
    found = ask(replace(context, engine=SMPI), "bandwidth=x0.5", **asked)
    assert found.times.maker.startswith("SimGrid")
    assert (found.time_ratio > 1).all()


def test_rules_of_a_table_are_kept_where_they_decide(context: SimulationContext) -> None:
    rules = {8: ((65536, Choice("ring")),), 12: ((0, Choice("segmented_ring", 4096)),)}
    table = DecisionTable("allreduce", "gros", 1, "simulated", "nobody", rules)
    found = ask(context, "bandwidth=x2", decisions=Decisions((table,)))
    kept = found.kept_slowdown().values
    assert np.isnan(kept[0, 0])
    case = GRID.case(Choice("ring"), 8, GRID.message_bytes[1])
    alone = context.simulate(found.after.platform, [case]).timings[case].seconds
    assert kept[0, 1] == alone / found.best_seconds(AFTER).values[0, 1] - 1
    assert (kept[1] >= 0).all()
    assert [found.times.choice(pick) for pick in found.kept[1]] == [Choice("segmented_ring", 4096)] * 3


def test_rules_compete_with_segments_that_the_grid_lacks(context: SimulationContext) -> None:
    """No rules are faster than the best choice, and what they lose before the change is known."""
    good, bad = Choice("chain", 65536), Choice("chain")
    table = DecisionTable("bcast", "gros", 1, "simulated", "nobody", {8: ((0, bad), (2**21, good))})
    asked: dict[str, Any] = {"segments": 0, "algorithms": "binomial,chain", "context": context}
    found = collwise.whatif(
        GROS, "bandwidth=x1", "bcast", procs=8, sizes=[1024, 2**23], decisions=Decisions((table,)), **asked
    )["bcast"]
    assert found.best(AFTER)[8, 2**23] == good
    assert found.kept_slowdown().values[0, 1] == 0
    assert found.kept_slowdown().values[0, 0] > 0
    assert found.kept_slowdown(BEFORE).values == pytest.approx(found.kept_slowdown().values)


def test_kept_choices_cost_what_their_times_say(context: SimulationContext) -> None:
    found = ask(context, "bandwidth=x0.02")
    places = np.argwhere(changes_choice(found.times))
    assert places.size
    for i, j in places:
        procs, size = GRID.procs[i], GRID.message_bytes[j]
        choice = found.best(BEFORE)[procs, size]
        assert choice is not None
        case = GRID.case(choice, procs, size)
        kept = context.simulate(found.after.platform, [case]).timings[case].seconds
        expected = kept / found.best_seconds(AFTER).values[i, j] - 1
        assert expected > 0
        assert found.kept_slowdown().values[i, j] == pytest.approx(expected)


def test_points_must_fit_on_the_changed_platform(context: SimulationContext) -> None:
    with pytest.raises(UsageError, match="platform 'gros-nodes-8' cannot hold P = 12 with 1 per node"):
        ask(context, "nodes=8")


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("alltoall", "linear"),
        ("alltoall", "pairwise"),
        ("allgather", "bruck"),
        ("allreduce", "ring"),
        ("bcast", "chain"),
    ],
)
@pytest.mark.parametrize(("message_bytes", "per_node"), [(8, 1), (24 * 4096, 1), (24 * 4096, 4)])
def test_limits_from_a_few_processes_are_those_from_all(
    collective: str, algorithm: str, message_bytes: int, per_node: int
) -> None:
    case = Case(
        collective, algorithm, 24, message_bytes, 8192 if algorithm == "chain" else 0, processes_per_node=per_node
    )
    platform = changed(GROS, [parse_change("overheads=1us")]).platform
    schedule = Schedule(case)
    network = network_tables(platform, 24, per_node, schedule.sizes)
    (whole, parts), (few, same) = (path_parts(schedule, network, every) for every in (True, False))
    assert few.seconds == pytest.approx(whole.seconds, rel=1e-12)
    assert same.seconds.to_numpy() == pytest.approx(parts.seconds.to_numpy(), rel=1e-9, abs=1e-15)
    are_alike = message_bytes > 8 and algorithm != "chain"
    assert (5 * len(few.spans) <= len(whole.spans)) == are_alike or message_bytes == 8


def test_limits_of_a_short_and_a_long_message() -> None:
    short = limits_of(GROS, GRID.case(Choice("recursive_doubling"), 8, 8))
    long = limits_of(GROS, GRID.case(Choice("ring"), 8, 2**26))
    assert set(short) == set(LIMITS)
    assert sum(short.values()) == pytest.approx(1)
    assert (main_limit(short), main_limit(long)) == ("latency", "bandwidth")
    slow = changed(GROS, [Change("overheads", "500us")]).platform
    assert main_limit(limits_of(slow, GRID.case(Choice("recursive_doubling"), 8, 8))) == "overhead"
    several = Grid.of("gather", (8,), (2**14,)).case(Choice("linear"), 8, 2**14)
    assert main_limit(limits_of(GROS, several)) == "gap at node ports"


@pytest.mark.parametrize(
    ("case", "changes", "limit"),
    [
        # All messages are for the root, on another node, or on its own.
        (("gather", "linear", 8, 1), {}, "gap at node ports"),
        (("gather", "linear", 4, 4), {"memory_bytes_per_second": 1e9}, "gap in memory"),
        (("gather", "linear", 4, 4), {"between_sockets_bytes_per_second": 1e9}, "gap between sockets"),
        # Each process of a switch sends to the other one, over one cable that is slower than a port.
        (("alltoall", "linear", 8, 1), {"topology": FatTree(4, 1e-7, 16.0)}, "gap on uplinks"),
        (("alltoall", "linear", 8, 1), {"topology": FatTree(4, 1e-7, 1.0)}, "gap at node ports"),
    ],
)
def test_what_messages_wait_for(case: tuple[str, str, int, int], changes: dict[str, Any], limit: str) -> None:
    collective, algorithm, procs, per_node = case
    platform = replace(GROS, cpus_per_node=2, cores_per_node=4, nodes=8, **changes)
    grid = Grid.of(collective, (procs,), (2**14,), per_node)
    found = limits_of(platform, grid.case(Choice(algorithm), procs, 2**14))
    assert main_limit(found) == limit, found
    gaps = [share for name, share in found.items() if name.startswith("gap ")]
    assert sum(gaps) == pytest.approx(found[limit], rel=0.2)


def test_rules_for_a_library_cost_what_the_library_runs(context: SimulationContext) -> None:
    """Rules leave an allreduce of 16 KiB on 2048 processes to Open MPI, since it has too few elements of 16 bytes."""
    where = new_platform("cluster", 64, Node(cores=32, processes=32), interconnect_name="infiniband-hdr100")
    asked: dict[str, Any] = {"procs": 2048, "sizes": "16KiB", "algorithms": "recursive_doubling,rabenseifner"}
    times = collwise.simulate(where, "allreduce", **asked, consumer="openmpi-4.1", context=context)
    decisions = collwise.select(times, consumer="openmpi-4.1")
    assert decisions.choose("allreduce", 2048, "16KiB") == Choice("recursive_doubling")
    asked |= {"decisions": decisions, "context": context}
    found = collwise.whatif(where, "latency=x1", "allreduce", **asked, consumer="openmpi-4.1")["allreduce"]
    assert [found.times.choice(pick) for pick in found.kept.ravel()] == [Choice("rabenseifner")]
    assert (found.kept_slowdown() == 0).all()
    as_decided = collwise.whatif(where, "latency=x1", "allreduce", **asked)["allreduce"]
    assert (as_decided.kept_slowdown() > 1).all()


def test_a_linear_alltoall_of_many_processes_competes_only_where_it_is_allowed(context: SimulationContext) -> None:
    """It sends all messages at once. Choices that are slower than it are timed."""
    asked: dict[str, Any] = {"procs": "32,64", "sizes": "8KiB", "context": context}
    points = [(32, 8192), (64, 8192)]
    found = collwise.whatif("gros", "bandwidth=x2", "alltoall", **asked)["alltoall"]
    allowed = collwise.whatif("gros", "bandwidth=x2", "alltoall", **asked, doubtful=True)["alltoall"]
    for when in (BEFORE, AFTER):
        assert {point for point, choice in found.best(when).items() if choice == Choice("linear")} == {points[0]}
        assert found.best(when)[points[1]] is not None
        assert [*allowed.best(when).values()] == [Choice("linear")] * 2
    swept = collwise.sweep("gros", "bandwidth=x1:x2", "alltoall", **asked)["alltoall"].frame()
    assert {*swept[swept.choice == "linear"].procs} == {32}
    live = collwise.live_map("gros", "alltoall", "32,64", "8KiB").base
    assert [live.best_choice(*point) == Choice("linear") for point in points] == [True, False]


def test_a_margin_keeps_what_is_fastest_besides_a_doubtful_choice(context: SimulationContext) -> None:
    asked: dict[str, Any] = {"procs": 64, "sizes": "128:8KiB:x4", "context": context}
    every, near = (collwise.simulate("gros", "alltoall", **asked, margin=margin) for margin in (None, 1))
    assert collwise.select(near).tables[0].rules == collwise.select(every).tables[0].rules
    assert collwise.select(near, doubtful=True).tables[0].rules == collwise.select(every, doubtful=True).tables[0].rules
