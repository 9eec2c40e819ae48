"""Measures the irregular regions of linear gather and scatter: O'Flynn 2009, sections 4.4.1 and 7.2.

Since escalations happen in some repetitions only, single repetitions are measured in several rounds over all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collwise.common.errors import UsageError, check_name
from collwise.models.fitting.lmo import (
    MIN_POINTS,
    escalations,
    gather_irregular_from,
    gather_regular_from,
    scatter_leap,
)
from collwise.models.piecewise import Array
from collwise.models.single_messages import Thresholds
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import MpiRunner
from collwise.simulator.sweeps.runner import run_cases
from collwise.simulator.timing import Case
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.namespaces import command
from collwise.validation.testbed.shape import TCP_VARIANTS, Shape
from collwise.validation.testbed.target import TcpCounts, TestBed, tcp_counts

if TYPE_CHECKING:
    import pandas as pd

# LMO gather with half the bound is tried, too, since pieces just below M1 nearly overflow the buffer.
HALF_BOUND = "lmo at M1/2"
ALGORITHMS = ("linear", "lmo", HALF_BOUND, "linear_sync", "binomial")
COMPARED_SIZES = tuple(1024 * kib for kib in (1, 2, 4, 8, 12, 16, 24, 32, 48, 56, 64, 96, 128))
# The first part of a block in linear_sync, as Open MPI cuts blocks of these sizes.
_SYNC_FIRST_PART_BYTES = 1024
TIMEOUT_SECONDS = 0.15
"""Extra time that shows a time-out. Linux's minimum time-out is 0.2 s, but other blocks arrive during part of it."""

Counters = Callable[[], TcpCounts]
"""Returns the current counters of a target."""

# Single repetitions, timed by the slowest process, after an untimed one.
_ONCE = Method(precision=Precision(1, 1))
_NONE = Thresholds()


@dataclass(frozen=True)
class RegionsPlan:
    """The block sizes of the series, all of which are measured in `rounds`; M1 is located to within `finest_bytes`.

    Each round may take `timeout_seconds`.
    """

    procs: int
    sizes: tuple[int, ...] = tuple(range(4096, 128 * 1024 + 1, 4096))
    rounds: int = 5
    finest_bytes: int = 1024
    timeout_seconds: float = 600.0

    def __post_init__(self) -> None:
        if self.procs < 3:
            raise UsageError(f"{self.procs} processes; at least 3 are needed to overwhelm the root of a gather")
        if len(self.sizes) < 2 * MIN_POINTS:
            raise UsageError(f"{len(self.sizes)} block sizes: thresholds need at least {2 * MIN_POINTS}")
        if not self.compared_bytes:
            end = f"block sizes end at {self.sizes[-1]} bytes"
            raise UsageError(f"{end}; comparing algorithms needs {COMPARED_SIZES[0]} or more")

    @property
    def compared_bytes(self) -> tuple[int, ...]:
        """Block sizes at which gather's algorithms are compared."""
        return tuple(size for size in COMPARED_SIZES if size <= self.sizes[-1])


@dataclass(frozen=True)
class Series:
    """An algorithm's times over block sizes, shape (rounds, sizes).

    `counts` has TCP's counters for each range of sizes, if they were read.
    """

    collective: str
    algorithm: str
    message_bytes: tuple[int, ...]
    seconds: Array
    counts: Mapping[str, TcpCounts]

    @property
    def escalated(self) -> NDArray[np.bool_]:
        """True for each repetition that had a time-out, shape (rounds, sizes)."""
        return escalated(self.seconds)


@dataclass(frozen=True)
class Regions:
    """The results on one target: the two series, the thresholds, and gather's algorithms with these thresholds."""

    target: str
    variant: str
    procs: int
    gather: Series
    scatter: Series
    thresholds: Thresholds
    compared: tuple[Series, ...]


def escalated(seconds: Array) -> NDArray[np.bool_]:
    """True for each time that exceeds a time of a larger block by TIMEOUT_SECONDS, shape (rounds, ascending sizes)."""
    return np.asarray(seconds >= min_times(seconds) + TIMEOUT_SECONDS)


def min_times(seconds: Array) -> Array:
    """The smallest time in any repetition at each size or a larger one, shape (sizes,)."""
    return np.asarray(np.minimum.accumulate(np.min(seconds, axis=0)[::-1])[::-1])


def find_regions(
    target: ExecutionTarget,
    plan: RegionsPlan,
    store: Store,
    *,
    variant: str = "",
    run: str = "",
    counters: Counters | None = None,
) -> Regions:
    """Measures the series, estimates S, M1 and M2, and measures gather's algorithms with these thresholds.

    The store has the times under the label `run`. Raises CollwiseError if a run ends early.
    """
    measurements = _Measurements(target, plan, store, run, counters)
    scatter = measurements.series("scatter", "linear", {"all": plan.sizes})
    gather = measurements.series("gather", "linear", {"all": plan.sizes})

    def finer(sizes: Sequence[int]) -> Array:
        return np.asarray(measurements.series("gather", "linear", {"finer": sizes}).seconds.max(axis=0))

    thresholds = thresholds_of(gather, scatter, finer, plan.finest_bytes)
    # The comparison is a separate run, so that linear gather is also measured anew.
    comparison = replace(measurements, run=f"{run} comparison".strip())
    by_part = parts(plan.compared_bytes, thresholds)
    compared = tuple(comparison.series("gather", name, by_part, thresholds) for name in ALGORITHMS)
    return Regions(target.name, variant, plan.procs, gather, scatter, thresholds, compared)


def thresholds_of(
    gather: Series, scatter: Series, finer: Callable[[Sequence[int]], Sequence[float] | Array], finest_bytes: int
) -> Thresholds:
    """The thresholds S, M1 and M2 of linear scatters and gathers.

    S is from the medians, M1 from the round that escalates at the smallest size, and M2 the median over the rounds. To
    locate M1, `finer` measures the worst times at more sizes. If nearly all repetitions of some sizes wait for a time-
    out, their times also lie on a line and look regular. So M2 is at least the size after the largest one that
    escalated, if there is a larger one. An M2 at or below M1 is dropped.
    """
    sizes, rounds = gather.message_bytes, [list(row) for row in gather.seconds]
    first = None
    if escalating := [row for row in rounds if escalations(row).any()]:
        earliest = min(escalating, key=lambda row: int(np.argmax(escalations(row))))
        first = gather_irregular_from(lambda more: list(finer(more)), sizes, earliest, finest_bytes)
    lasts = sorted(last for row in rounds if (last := gather_regular_from(sizes, row)) is not None)
    last = lasts[len(lasts) // 2] if len(lasts) > len(rounds) / 2 else None
    late = np.flatnonzero(gather.escalated.any(axis=0))
    if last is not None and len(late) and sizes[late[-1]] >= last:
        last = sizes[late[-1] + 1] if late[-1] + 1 < len(sizes) else None
    if first is not None and last is not None and last <= first:
        last = None
    return Thresholds(scatter_leap(scatter.message_bytes, list(np.median(scatter.seconds, axis=0))), first, last)


@dataclass(frozen=True)
class _Measurements:
    """Series of single repetitions, with the TCP counts during each series."""

    target: ExecutionTarget
    plan: RegionsPlan
    store: Store
    run: str
    counters: Counters | None

    def series(
        self, collective: str, algorithm: str, sizes_by_part: Mapping[str, Sequence[int]], bounds: Thresholds = _NONE
    ) -> Series:
        """A series over all parts. `bounds` has the thresholds for the LMO algorithms."""
        seconds, counts = [], dict[str, TcpCounts]()
        for part, sizes in sizes_by_part.items():
            before = self.counters() if self.counters else None
            cases = [self._case(collective, algorithm, size, bounds) for size in sizes]
            seconds.append(self._rounds(cases, f"{self.run} {collective} {algorithm} {part}".strip()))
            if self.counters and before is not None:
                counts[part] = self.counters() - before
        all_sizes = tuple(size for sizes in sizes_by_part.values() for size in sizes)
        return Series(collective, algorithm, all_sizes, np.concatenate(seconds, axis=1), counts)

    def _case(self, collective: str, algorithm: str, size: int, thresholds: Thresholds) -> Case:
        procs = self.plan.procs
        case = Case(collective, algorithm, procs, size, processes_per_node=self.target.processes_per_node(procs))
        if algorithm == "linear_sync":
            return replace(case, segment_bytes=_SYNC_FIRST_PART_BYTES)
        if algorithm not in ("lmo", HALF_BOUND):
            return case
        bound = (thresholds.gather_irregular_from_bytes or 0) // (2 if algorithm == HALF_BOUND else 1)
        limit = thresholds.last_irregular_bytes
        return replace(case, algorithm="lmo", segment_bytes=bound, limit_bytes=limit)

    def _rounds(self, cases: Sequence[Case], run: str) -> Array:
        """Times of shape (rounds, cases). A round is one execution of MPI."""
        rounds, limit = [], self.plan.timeout_seconds
        for number in range(1, self.plan.rounds + 1):
            runner = MpiRunner(self.target, _ONCE, run=f"{run}, round {number}", timeout_seconds=limit)
            timings = run_cases(runner, cases, self.store).complete().timings
            rounds.append([timings[case].seconds for case in cases])
        return np.array(rounds)


def parts(sizes: Sequence[int], thresholds: Thresholds) -> dict[str, tuple[int, ...]]:
    """Ascending sizes by part: 'small', 'medium' (at least M1), 'large' (at least M2); 'all' if there is no M1."""
    first, last = thresholds.gather_irregular_from_bytes, thresholds.gather_regular_from_bytes
    if first is None:
        return {"all": tuple(sizes)}
    end = math.inf if last is None else last
    found = {
        "small": tuple(size for size in sizes if size < first),
        "medium": tuple(size for size in sizes if first <= size < end),
        "large": tuple(size for size in sizes if size >= end),
    }
    return {part: some for part, some in found.items() if some}


def region_times(regions: Regions) -> pd.DataFrame:
    """Gather's times against linear gather without escalation, a row for each algorithm and part of the sizes.

    The columns have the mean and the worst slowdown, and `escalated`, the share of repetitions with a time-out.
    """
    import pandas as pd

    linear = next(series for series in regions.compared if series.algorithm == "linear")
    floor = min_times(linear.seconds)
    rows = []
    for series in regions.compared:
        late = series.seconds >= floor + TIMEOUT_SECONDS
        for part, sizes in parts(series.message_bytes, regions.thresholds).items():
            here = [series.message_bytes.index(size) for size in sizes]
            ratios = series.seconds[:, here] / floor[here]
            slowdowns = (ratios.mean(), ratios.max())
            rows.append((series.algorithm, part, *slowdowns, late[:, here].mean(), series.counts.get(part)))
    columns = ["algorithm", "part", "mean_slowdown", "worst_slowdown", "escalated", "counts"]
    return pd.DataFrame(rows, columns=columns)


def verdict(regions: Regions) -> str:
    """A sentence on whether linear gather escalates, and whether LMO gather avoids that."""
    if regions.thresholds.gather_irregular_from_bytes is None:
        part = regions.gather.escalated.mean()
        return f"no tenfold escalation of linear gather; {part:.0%} of its repetitions had a time-out"
    rows = region_times(regions).query("part == 'medium'").set_index("algorithm")
    if rows.empty:
        return "linear gather escalates, but only between the compared sizes"
    linear = rows.loc["linear"]
    tried = [
        f"{name} {_effect(rows.escalated[name], linear.escalated)} ({rows.escalated[name]:.0%} with a time-out, "
        f"{rows.mean_slowdown[name] / linear.mean_slowdown:.2f} of the mean time)"
        for name in ("lmo", HALF_BOUND)
    ]
    return (
        f"of linear gather's medium blocks {linear.escalated:.0%} have a time-out; {'; '.join(tried)}; "
        f"the fastest for these blocks is {rows.mean_slowdown.idxmin()}"
    )


def _effect(part: float, of_linear: float) -> str:
    if part <= of_linear / 10:
        return "avoids them"
    return "lessens them" if part <= of_linear / 2 else "does not avoid them"


@contextmanager
def bed_with_tcp(shape: Shape, variant: str, name: str) -> Iterator[TestBed]:
    """A test bed with a TCP variant. Raises UsageError if it is unknown, CollwiseError if the kernel refuses it."""
    check_name("TCP variant", variant, TCP_VARIANTS)
    # The shape also has these settings, since its facts are recorded with the times.
    settings = TCP_VARIANTS[variant]
    queue_bytes = int(settings["tcp_limit_output_bytes"])
    shape = replace(shape, congestion_control=settings["tcp_congestion_control"], host_queue_bytes=queue_bytes)
    with temporarily_up(shape, name) as bed:
        assigned = [f"net.ipv4.{name}={value}" for name, value in settings.items()]
        for node in bed.nodes:
            command("ip", "netns", "exec", bed.namespace(f"n{node}"), "sysctl", "-qw", *assigned)
        target = TestBed(bed)
        target.facts = {**target.facts, "tcp": variant}
        yield target


def regions_on_bed(shape: Shape, variant: str, plan: RegionsPlan, store: Store, *, name: str, run: str = "") -> Regions:
    """Makes the test bed `name`, looks for irregular regions on it, and takes it down in any case."""
    with bed_with_tcp(shape, variant, name) as target:
        label = f"{variant}, buffers of {shape.buffer_bytes / 1e3:g} kB"
        return find_regions(target, plan, store, variant=label, run=run, counters=lambda: tcp_counts(target.bed))
