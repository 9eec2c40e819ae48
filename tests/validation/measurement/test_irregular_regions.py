from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

from collwise.common.errors import UsageError
from collwise.models.parameters import read_thresholds, thresholds_text
from collwise.models.single_messages import Thresholds
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.store import Store
from collwise.studies.figures.measurements import _finish, regions_figure
from collwise.validation.measurement.irregular_regions import (
    ALGORITHMS,
    HALF_BOUND,
    Regions,
    RegionsPlan,
    Series,
    escalated,
    find_regions,
    min_times,
    parts,
    region_times,
    regions_on_bed,
    thresholds_of,
    verdict,
)
from collwise.validation.testbed.bed import Shape, down, up
from collwise.validation.testbed.target import TcpCounts, node_counts, switch_counts
from tests.needs import need, needs

KIB = 1024
SIZES = tuple(4 * KIB * k for k in range(1, 33))
RATE = 12e6


def linear(sizes: Sequence[int]) -> np.ndarray:
    """Seconds on a wire without escalations: 7 blocks of each size."""
    return 1e-4 + 7 * np.array(sizes) / RATE


def escalating(first: int, last: int, seed: int = 1, rounds: int = 5) -> np.ndarray:
    """Half of the repetitions from `first` and below `last` wait for one time-out; a line of another slope behind."""
    random = np.random.default_rng(seed)
    sizes = np.array(SIZES)
    times = np.tile(linear(SIZES) * 1.0, (rounds, 1)) * random.uniform(1, 1.02, (rounds, len(sizes)))
    medium = (sizes >= first) & (sizes < last)
    times[:, medium] += 0.2 * (random.random((rounds, int(medium.sum()))) < 0.5)
    times[:, sizes >= last] *= 1.3
    times[0, sizes == first] = linear([first])[0] + 0.2
    return times


def series(seconds: np.ndarray, collective: str = "gather", algorithm: str = "linear") -> Series:
    return Series(collective, algorithm, SIZES, seconds, {"all": TcpCounts(1, 2, 3, 4)})


def leaping() -> np.ndarray:
    sizes = np.array(SIZES)
    return np.tile(linear(SIZES) + 0.01 * (sizes >= 64 * KIB), (3, 1))


def test_thresholds_are_found_again_from_single_measurements() -> None:
    asked: list[int] = []

    def finer(sizes: Sequence[int]) -> np.ndarray:
        asked.extend(sizes)
        return linear(sizes) + 0.2 * (np.array(sizes) >= 6 * KIB)

    found = thresholds_of(series(escalating(8 * KIB, 64 * KIB)), series(leaping(), "scatter"), finer, KIB)
    assert found == Thresholds(64 * KIB, 6 * KIB, 64 * KIB)
    assert asked, "M1 is searched below the stride"


@pytest.mark.parametrize(("last_late", "regular_from"), [(32 * KIB, 36 * KIB), (128 * KIB, None)])
def test_blocks_that_all_wait_are_not_regular(last_late: int, regular_from: int | None) -> None:
    sizes = np.array(SIZES)
    random = np.random.default_rng(3)
    waiting = 0.2 * ((sizes >= 24 * KIB) & (sizes <= last_late)) + 0.2 * (
        ((sizes >= 8 * KIB) & (sizes < 24 * KIB)) * (random.random((5, len(sizes))) < 0.5)
    )
    times = linear(SIZES) + waiting
    times[0, -1] = linear([SIZES[-1]])[0]
    found = thresholds_of(series(times), series(leaping(), "scatter"), lambda more: linear(more), KIB)
    assert found.gather_regular_from_bytes == regular_from


def test_a_regular_network_has_no_thresholds() -> None:
    smooth = np.tile(linear(SIZES), (3, 1))

    def never(sizes: Sequence[int]) -> np.ndarray:
        raise AssertionError("nothing more is to be measured where nothing escalates")

    assert thresholds_of(series(smooth), series(smooth, "scatter"), never, KIB) == Thresholds()


def test_escalated_repetitions_are_those_no_rising_line_explains() -> None:
    times = np.array([[0.01, 0.25, 0.03, 0.45], [0.01, 0.02, 0.30, 0.40]])
    assert min_times(times).tolist() == [0.01, 0.02, 0.03, 0.40]
    assert escalated(times).tolist() == [[False, True, False, False], [False, False, True, False]]


def test_parts_hold_every_size_once() -> None:
    found = parts(SIZES, Thresholds(None, 6 * KIB, 64 * KIB))
    assert [size for sizes in found.values() for size in sizes] == list(SIZES)
    assert found["small"] == (4 * KIB,)
    assert (found["medium"][0], found["medium"][-1], found["large"][0]) == (8 * KIB, 60 * KIB, 64 * KIB)
    assert parts(SIZES, Thresholds()) == {"all": SIZES}
    assert "large" not in parts(SIZES, Thresholds(None, 6 * KIB, None))


def regions(lmo: np.ndarray, half: np.ndarray, thresholds: Thresholds) -> Regions:
    times = {name: np.tile(linear(SIZES), (5, 1)) for name in ALGORITHMS}
    times |= {"linear": escalating(8 * KIB, 64 * KIB), "lmo": lmo, HALF_BOUND: half}
    compared = tuple(series(seconds, "gather", name) for name, seconds in times.items())
    return Regions("bed", "reno", 8, compared[0], series(leaping(), "scatter"), thresholds, compared)


def test_the_verdict_says_which_bound_avoids_the_escalation() -> None:
    smooth, thresholds = np.tile(linear(SIZES), (5, 1)), Thresholds(None, 8 * KIB, 64 * KIB)
    found = regions(escalating(8 * KIB, 64 * KIB, seed=2), smooth, thresholds)
    assert "lmo does not avoid them" in verdict(found)
    assert f"{HALF_BOUND} avoids them (0% with a time-out" in verdict(found)
    times = region_times(found).set_index(["algorithm", "part"])
    linear_row = times.loc[("linear", "medium")]
    assert 0.3 < linear_row.escalated < 0.7
    # The smallest medium block of all takes least, and one time-out.
    assert linear_row.worst_slowdown == pytest.approx(1 + 0.2 / linear([8 * KIB])[0], rel=0.05)
    assert "no tenfold escalation" in verdict(regions(smooth, smooth, Thresholds()))


def test_the_figure_shows_every_series() -> None:
    smooth = np.tile(linear(SIZES), (5, 1))
    figure = regions_figure(regions(smooth, smooth, Thresholds(None, 8 * KIB, 64 * KIB)), "bed")
    labels = [text.get_text() for text in figure.axes[2].texts]
    plt.close(figure)
    assert labels == list(ALGORITHMS)
    assert figure.axes[2].get_title().endswith("; dashed: M1 = 8 KiB, M2 = 64 KiB")


@pytest.mark.parametrize("largest", [KIB, 15 * KIB, 16 * KIB, 512 * KIB, 513 * KIB])
def test_sizes_are_labelled_in_equal_steps_up_to_the_largest(largest: int) -> None:
    axis = plt.subplots()[1]
    _finish(axis, "title", np.array([1, largest]), {})
    ticks = axis.get_xticks()
    plt.close("all")
    step = ticks[1] / ticks[0] if len(ticks) > 1 else 2
    assert ticks.tolist() == [KIB * step**k for k in range(len(ticks))]
    assert ticks[-1] <= largest < ticks[-1] * step


def test_counters_are_read_and_added() -> None:
    node = node_counts({"kernel": {"TcpRetransSegs": 5, "TcpExtTCPTimeouts": 2, "TcpExtTCPLossProbes": 1}})
    switch = switch_counts([{"kind": "tbf", "drops": 3}, {"kind": "noqueue"}, {"kind": "tbf", "drops": 4}])
    assert node + node + switch == TcpCounts(10, 4, 2, 7)
    assert node + switch - node == switch


def test_thresholds_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "thresholds.toml"
    for thresholds in (Thresholds(None, 6144, 65536), Thresholds(), Thresholds(70000, None, None)):
        file.write_text(thresholds_text(thresholds, "here"))
        assert read_thresholds(file) == thresholds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"procs": 2}, "2 processes; at least 3 are needed"), ({"procs": 8, "sizes": (32768,)}, "at least 12")],
)
def test_plans_that_make_no_sense_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RegionsPlan(**arguments)


def test_unknown_tcp_variants_name_the_valid_ones(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store, pytest.raises(UsageError, match="reno-2009"):
        regions_on_bed(Shape(3), "renno", RegionsPlan(3), store, name="none")


@needs("openmpi")
def test_every_round_of_every_series_is_measured_anew_and_stored(tmp_path: Path) -> None:
    plan = RegionsPlan(3, sizes=SIZES[:12], rounds=2, timeout_seconds=900)
    with Store(tmp_path / "store.sqlite") as store:
        found = find_regions(LocalMachine("openmpi"), plan, store, run="here")
        kept = list(store.rows(collective="gather", algorithm="linear"))
    assert found.gather.seconds.shape == (2, len(plan.sizes))
    assert {one.algorithm for one in found.compared} == set(ALGORITHMS)
    assert all(one.message_bytes == plan.compared_bytes for one in found.compared)
    assert len(kept) >= 2 * (len(plan.sizes) + len(plan.compared_bytes))


@pytest.fixture
def bed_name() -> Iterator[str]:
    need("testbed", "openmpi")
    name = f"irregular{os.getpid()}"
    try:
        up(Shape(2), name)
        yield name
    finally:
        down(name)


@pytest.mark.slow
def test_a_small_buffer_loses_packets_that_a_large_one_holds(tmp_path: Path, bed_name: str) -> None:
    """Four senders of 64 KiB and less overflow 8 kB, never 1 MB; the counters tell."""
    plan = RegionsPlan(5, sizes=SIZES[:12], rounds=1, timeout_seconds=900)
    with Store(tmp_path / "store.sqlite") as store:
        small = regions_on_bed(Shape(5, buffer_bytes=8000), "reno-2009", plan, store, name=bed_name, run="small")
        large = regions_on_bed(Shape(5, buffer_bytes=1_000_000), "reno-2009", plan, store, name=bed_name, run="large")
        kept = list(store.rows(source="measured"))
    assert small.gather.counts["all"].drops > 0
    assert small.gather.counts["all"].sent_again > 0
    assert large.gather.counts["all"].drops == 0
    assert small.gather.seconds.shape == (1, 12)
    assert {series.algorithm for series in small.compared} == set(ALGORITHMS)
    assert sum(row["algorithm"] == "linear" and row["collective"] == "scatter" for row in kept) == 24
