"""What-if: choices and times before and after a change, against separate simulations of the changed platform's file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.platforms import load, load_description, write_description
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
from collwise.validation.times.grid import CaseGrid
from collwise.validation.whatif.comparison import WhatIf, what_if
from collwise.validation.whatif.limits import LIMITS, limits_of, main_limit
from tests.needs import needs

GROS = load_description("gros")
GRID = CaseGrid("allreduce", (8, 12), (1024, 65536, 2**21), 1, (8192,))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store, SCHEDULE)


def ask(context: SimulationContext, *texts: str, grid: CaseGrid = GRID) -> WhatIf:
    return what_if(GROS, [parse_change(text) for text in texts], grid, context)


def test_a_doubled_bandwidth_halves_a_time_bound_by_bandwidth(context: SimulationContext) -> None:
    free = changed(GROS, [Change("latency", "x1e-6"), Change("reduction", "x1e-6")]).platform
    found = what_if(free, [Change("bandwidth", "x2")], replace(GRID, message_bytes=(2**21,)), context)
    assert found.time_ratio == pytest.approx(np.full((2, 1), 0.5), rel=1e-3)
    assert not found.changes_choice.any()


def test_a_change_that_changes_nothing_changes_no_choice(context: SimulationContext) -> None:
    found = ask(context, "bandwidth=x1", "latency=x1", "reduction=x1", "background=0")
    assert not found.changes_choice.any()
    assert (found.time_ratio == 1).all()
    assert (found.kept_slowdown == 0).all()


def test_a_link_that_is_degraded_by_nothing_changes_no_time(context: SimulationContext) -> None:
    found = ask(context, "degraded_link=3:x1")
    assert (found.after.best_seconds == found.before.best_seconds).all()
    assert not found.changes_choice.any()


def test_the_summary_says_for_which_process_counts_nothing_changes(context: SimulationContext) -> None:
    """Eight processes are on nodes 0 to 7, and of 12 one is on node 9."""
    lines = collwise.WhatIfResult(ask(context, "degraded_link=9:x0.1")).summary()
    assert any(line.startswith("At P = 8 no best time changes at all") for line in lines)
    assert not any("no best time" in line for line in collwise.WhatIfResult(ask(context, "bandwidth=x2")).summary())


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
    with collwise.session(store=tmp_path / "other.sqlite", engine="schedule") as other:
        times = collwise.simulate(
            where, "allreduce", list(GRID.procs), list(GRID.message_bytes), segments=8192, ppn=per_node, context=other
        )
    seconds = times.set_index(["algorithm", "procs", "message_bytes"]).seconds
    for index, choice in enumerate(GRID.candidates.values()):
        for i, procs in enumerate(GRID.procs):
            for j, size in enumerate(GRID.message_bytes):
                expected = seconds.get((choice.algorithm, procs, size), np.nan)
                own, best = found.after.seconds[index, i, j], found.after.best_seconds[i, j]
                # What was left out is slower than the best.
                assert own == expected or (np.isnan(own) and not expected < best)


@needs("smpi")
def test_smpi_can_simulate_instead(context: SimulationContext) -> None:
    grid = replace(GRID, procs=(8,), message_bytes=(65536,), algorithms=("ring", "rabenseifner"))
    found = what_if(GROS, [Change("bandwidth", "x0.5")], grid, replace(context, engine=SMPI))
    assert found.made_by.startswith("SimGrid")
    assert (found.time_ratio > 1).all()


def test_rules_of_a_table_are_kept_where_they_decide(context: SimulationContext) -> None:
    rules = {8: ((65536, Choice("ring")),), 12: ((0, Choice("segmented_ring", 4096)),)}
    table = DecisionTable("allreduce", "gros", 1, "nobody", rules)
    found = what_if(GROS, [Change("bandwidth", "x2")], GRID, context, table)
    assert np.isnan(found.kept_slowdown[0, 0])
    case = GRID.case(Choice("ring"), 8, GRID.message_bytes[1])
    assert found.after.kept_seconds[0, 1] == context.simulate(found.after.platform, [case]).timings[case].seconds
    assert (found.kept_slowdown[1] >= 0).all()
    assert found.kept[1] == (Choice("segmented_ring", 4096),) * 3
    with pytest.raises(UsageError, match="the rules are for bcast, not for allreduce"):
        what_if(GROS, [], GRID, context, replace(table, collective="bcast"))


def test_rules_compete_with_segments_that_the_grid_lacks(context: SimulationContext) -> None:
    """No rules are faster than the best choice, and what they lose before the change is known."""
    good, bad = Choice("chain", 65536), Choice("chain")
    table = DecisionTable("bcast", "gros", 1, "nobody", {8: ((0, bad), (2**21, good))})
    grid = CaseGrid("bcast", (8,), (1024, 2**23), 1, (0,), ("binomial", "chain"))
    found = what_if(GROS, [Change("bandwidth", "x1")], grid, context, table)
    assert found.after.choice(0, 1) == good
    assert found.kept_slowdown[0, 1] == 0
    assert found.kept_slowdown[0, 0] > 0
    assert found.kept_slowdown_before == pytest.approx(found.kept_slowdown)


def test_kept_choices_cost_what_their_times_say(context: SimulationContext) -> None:
    found = ask(context, "bandwidth=x0.02")
    assert found.changes_choice.any()
    for i, j in np.argwhere(found.changes_choice):
        choice = found.before.choice(i, j)
        assert choice is not None
        case = GRID.case(choice, GRID.procs[i], GRID.message_bytes[j])
        kept = context.simulate(found.after.platform, [case]).timings[case].seconds
        expected = kept / found.after.best_seconds[i, j] - 1
        assert expected > 0
        assert found.kept_slowdown[i, j] == pytest.approx(expected)


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
    several = CaseGrid("gather", (8,), (2**14,)).case(Choice("linear"), 8, 2**14)
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
    grid = CaseGrid(collective, (procs,), (2**14,), per_node)
    found = limits_of(platform, grid.case(Choice(algorithm), procs, 2**14))
    assert main_limit(found) == limit, found
    gaps = [share for name, share in found.items() if name.startswith("gap ")]
    assert sum(gaps) == pytest.approx(found[limit], rel=0.2)
