"""Message times in SMPI agree with the published LogGP, the thesis's table 7.1 and the synthetic platforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP, Experiment
from collwise.platforms import Calibration, HeterogeneousPlatform, HostPlatform, load, load_description
from collwise.platforms.linear_costs import point_to_point
from collwise.platforms.xml_file import XmlPlatform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case, Timing
from tests.needs import needs

# Pješivac-Grbović et al. 2007, table 5: L, o, g in seconds, G in seconds a byte.
LOGGP = {"boba": (30.40e-6, 8.15e-6, 8.683e-6, 0.015e-6), "frodo": (61.22e-6, 8.2e-6, 23.8e-6, 0.084e-6)}

# O'Flynn 2009, table 7.1: alpha in us, beta in us a byte; type 1 with 1 to 7, 2 with 2 to 7, and so on.
TABLE_7_1 = {
    1: "63.9 0.00967 124 0.00941 61.2 0.00932 121 0.0172 60.7 0.00948 61.4 0.00950 61.3 0.00939",
    2: "122 0.00963 58.3 0.00932 122 0.017 60.8 0.00934 57.9 0.00941 60.4 0.00934",
    3: "39.4 0.0151 61.8 0.00914 43.1 0.00918 46.3 0.00923 38.1 0.00908",
    4: "X X 61.2 0.0146 60.9 0.0143 61.2 0.0142",
    5: "X X 59 0.0488 48.8 0.00923",
    6: "X X 53.3 0.00923",
    7: "36.1 0.00921",
}
NODES_OF_TYPES = (2, 6, 2, 1, 1, 1, 3)


def published_pairs() -> dict[tuple[int, int], tuple[float, float]]:
    """alpha (seconds) and beta (seconds a byte) by types."""
    pairs = {}
    for one, row in TABLE_7_1.items():
        figures = row.split()
        for other, alpha, beta in zip(range(one, 8), figures[::2], figures[1::2], strict=True):
            if alpha != "X":
                pairs[one, other] = float(alpha) * 1e-6, float(beta) * 1e-6
    return pairs


def heterogeneous(name: str) -> HeterogeneousPlatform:
    platform = load(name)
    assert isinstance(platform, HeterogeneousPlatform)
    return platform


def timed(platform: HostPlatform, cases: Sequence[Case], folder: Path) -> dict[Case, Timing]:
    with Store(folder / "timings.sqlite") as store:
        result = SimulationContext(store, jobs=1).simulate(platform, cases)
    assert not result.failed
    return result.timings


def roundtrips(
    platform: HostPlatform,
    sizes: Sequence[int],
    folder: Path,
    pairs: Sequence[tuple[int, int]] | None = None,
    processes_per_node: int = 1,
) -> dict[tuple[int, int, int], float]:
    """Seconds of a message and its reply by two ranks, each pair once by default, and bytes."""
    asked = [
        Experiment(ROUNDTRIP, pair, size, size)
        for pair in pairs or combinations(range(len(platform.hosts)), 2)
        for size in sizes
    ]
    procs = 1 + max(max(one.processes) for one in asked)
    with Store(folder / "timings.sqlite") as store:
        lab = SimulationContext(store).laboratory(platform, procs, processes_per_node)
        found = lab.run(asked, in_parallel=False)
    return {(*one.processes, one.message_bytes): time.seconds for one, time in zip(asked, found, strict=True)}  # type: ignore[misc]


@needs("smpi")
@pytest.mark.parametrize("name", LOGGP)
def test_messages_take_what_loggp_says(name: str, tmp_path: Path) -> None:
    latency, overhead, _, gap_per_byte = LOGGP[name]
    sizes = [1, 2, 1000, 8192, 65536, 131071, 131072, 4194304]
    for (_, _, size), seconds in roundtrips(load(name), sizes, tmp_path, [(0, 1)]).items():
        expected = latency + 2 * overhead + (size - 1) * gap_per_byte
        assert seconds / 2 == pytest.approx(expected, rel=0.01), size


@needs("smpi")
@pytest.mark.parametrize("name", LOGGP)
def test_a_row_of_sends_goes_out_at_the_gap_and_shares_the_link(name: str, tmp_path: Path) -> None:
    latency, overhead, gap, gap_per_byte = LOGGP[name]
    cases = [Case("bcast", "linear", procs, size) for procs in (2, 12, 32) for size in (1, 65536)]
    for case, timing in timed(load(name), cases, tmp_path).items():
        sends = case.procs - 1
        assert timing.root_seconds == pytest.approx(sends * gap, rel=0.01)
        if case.message_bytes == 1:
            assert timing.seconds == pytest.approx((sends - 1) * gap + latency + 2 * overhead, rel=0.01)
        else:
            # Flows begun one gap apart end when the link has carried all of them.
            expected = latency + 2 * overhead + (sends * case.message_bytes - 1) * gap_per_byte
            assert timing.seconds == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", LOGGP)
def test_the_published_figures_are_those_of_the_paper(name: str) -> None:
    keys = ("latency_seconds", "overhead_seconds", "gap_seconds", "gap_seconds_per_byte")
    platform = load_description(name)
    assert tuple(platform.published["loggp"][key] for key in keys) == pytest.approx(LOGGP[name])
    truth = point_to_point(platform)
    assert truth.seconds(1) == pytest.approx(LOGGP[name][0] + 2 * LOGGP[name][1], rel=1e-4)
    assert truth.beta_seconds_per_byte[0, 1] == pytest.approx(LOGGP[name][3], rel=1e-6)


def test_the_hcl_cluster_is_that_of_the_thesis() -> None:
    platform = heterogeneous("hcl16")
    assert tuple(kind.nodes for kind in platform.node_types) == NODES_OF_TYPES
    pairs = published_pairs()
    assert len(pairs) == len(platform.wires) == 25
    for (one, other), (alpha, beta) in pairs.items():
        figures = platform.published["hockney"][f"{one}-{other}"]
        assert figures == pytest.approx({"alpha_seconds": alpha, "beta_seconds_per_byte": beta})
    rates = [1 / wire.bytes_per_second for wire in platform.wires]
    assert min(rates) >= 8e-9 - 1e-15, "no wire beats Gigabit Ethernet"
    assert all(wire.latency_seconds > 0 for wire in platform.wires)


@needs("smpi")
def test_every_two_types_meet_the_thesis_alpha_and_beta(tmp_path: Path) -> None:
    platform = heterogeneous("hcl16")
    types = [number for number, nodes in enumerate(NODES_OF_TYPES, start=1) for _ in range(nodes)]
    small, large = 1, 65535
    times = roundtrips(platform, [small, large], tmp_path)
    pairs = published_pairs()
    seen = set()
    for i, j in combinations(range(16), 2):
        alpha, beta = pairs[types[i], types[j]]
        one_way = {size: times[i, j, size] / 2 for size in (small, large)}
        assert one_way[small] == pytest.approx(alpha, rel=0.01)
        assert (one_way[large] - one_way[small]) / (large - small) == pytest.approx(beta, rel=0.01)
        seen.add((types[i], types[j]))
    assert seen == set(pairs)


@needs("smpi")
@pytest.mark.parametrize("name", ["exact", "exact-heterogeneous"])
def test_the_true_parameters_are_those_that_smpi_shows(name: str, tmp_path: Path) -> None:
    platform = load(name)
    truth = point_to_point(platform)
    for (i, j, size), seconds in roundtrips(platform, [1, 1000, 1000000], tmp_path).items():
        expected = float(truth.seconds(size, i, j) + truth.seconds(size, j, i))
        assert seconds == pytest.approx(expected, rel=1e-6), (i, j, size)


def test_the_exact_platform_has_round_parameters() -> None:
    truth = point_to_point(load("exact"))
    assert truth.alpha_seconds[0, 1] == pytest.approx(5e-6 + 2 * 20e-6 + 8e-6, abs=1e-10)
    assert truth.beta_seconds_per_byte[0, 1] == pytest.approx(1e-8, rel=2e-4)
    assert truth.processor_seconds == pytest.approx(np.full(8, 6.5e-6))
    assert truth.processor_seconds_per_byte == pytest.approx(np.full(8, 5e-9))
    assert np.all(np.diag(truth.latency_seconds) == 0)


def test_the_exact_heterogeneous_platform_follows_its_rule() -> None:
    truth = point_to_point(load("exact-heterogeneous"))
    i = np.arange(16)
    assert truth.send_seconds == pytest.approx(3e-6 + 9e-6 * (7 * i % 16) / 15, rel=1e-4)
    assert truth.receive_seconds_per_byte == pytest.approx(12e-9 + 18e-9 * ((11 * i + 5) % 16) / 15, rel=1e-4)
    one, other = np.triu_indices(16, 1)
    rate = 8e-9 + 2e-9 * ((one + other + 2 * one * other) % 29) / 28
    assert truth.network_seconds_per_byte[one, other] == pytest.approx(rate, rel=1e-4)
    latency = 20e-6 + 60e-6 * ((one + other + one * other) % 31) / 30 + 16 * rate
    assert truth.latency_seconds[one, other] == pytest.approx(latency, rel=1e-4)
    assert np.array_equal(truth.latency_seconds, truth.latency_seconds.T)
    assert len(set(truth.send_seconds)) == len(set(truth.send_seconds_per_byte)) == 16
    # Wires never hold a sender up, so that flows never queue behind one another.
    assert truth.network_seconds_per_byte.max() < truth.send_seconds_per_byte.min()


def test_truth_moves_with_the_order() -> None:
    platform = heterogeneous("hcl16")
    order = [5, 0, 15, *(set(range(16)) - {5, 0, 15})]
    truth, moved = point_to_point(platform), point_to_point(platform.reordered(order))
    assert moved.seconds(1000, 2, 0) == truth.seconds(1000, 15, 5)
    assert moved.processor_seconds[1] == truth.processor_seconds[0]


def test_what_changes_with_the_size_or_is_not_described_has_no_truth() -> None:
    gros = load_description("gros")
    bent = replace(gros, calibration=Calibration(os=((0, 1e-6, 0.0), (9, 2e-6, 0.0))))
    for platform in (gros, bent):
        with pytest.raises(UsageError, match=r"^platform 'gros': factors or overheads that change with the message"):
            point_to_point(platform)
    own = XmlPlatform("own", "own", "<platform/>", ("a", "b"))
    with pytest.raises(UsageError, match=r"^platform 'own' is platform XML"):
        point_to_point(own)


@needs("smpi")
@pytest.mark.parametrize(("collective", "algorithm"), [("scatter", "linear"), ("gatherv", "linear_nonblocking")])
def test_flows_of_a_node_share_its_link(collective: str, algorithm: str, tmp_path: Path) -> None:
    platform, size, gigabit = heterogeneous("hcl16"), 60000, 8e-9
    case = Case(collective, algorithm, 4, size)
    shared = timed(platform, [case], tmp_path)[case].seconds
    assert 3 * size * gigabit < shared < 1.2 * 3 * size * gigabit
    fast = tuple(replace(kind, link_bytes_per_second=1e12) for kind in platform.node_types)
    apart = timed(replace(platform, node_types=fast), [case], tmp_path)[case].seconds
    assert apart < 0.6 * shared


@needs("smpi")
def test_opposite_directions_do_not_share(tmp_path: Path) -> None:
    exchange = Case("allgather", "recursive_doubling", 2, 60000)
    platform = heterogeneous("hcl16")
    both_ways = timed(platform, [exchange], tmp_path)[exchange].seconds
    (there_and_back,) = roundtrips(platform, [60000], tmp_path, [(0, 1)]).values()
    assert both_ways == pytest.approx(there_and_back / 2, rel=1e-3)


@needs("smpi")
def test_two_processes_of_a_node_use_the_loopback(tmp_path: Path) -> None:
    platform = heterogeneous("hcl16")
    kind = platform.node_types[0]
    overheads = kind.send_base_seconds + kind.receive_base_seconds
    overheads += 10000 * (kind.send_seconds_per_byte + kind.receive_seconds_per_byte)
    expected = overheads + platform.loopback_latency_seconds + 10016 / platform.loopback_bytes_per_second
    (there_and_back,) = roundtrips(platform, [10000], tmp_path, [(0, 1)], processes_per_node=2).values()
    assert there_and_back / 2 == pytest.approx(expected, rel=1e-4)
