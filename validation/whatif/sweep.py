"""Times before and after changes, or at many factors of one change, and values at which the best choice changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from collwise.common.errors import UsageError, check_name
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, fastest
from collwise.platforms import HostPlatform
from collwise.platforms.changes import CHANGES, Change, Changed, changed, factor_of
from collwise.simulator.schedule.critical_path import path_parts
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.timing import Case, Timing
from collwise.validation.compare.deciders import Decider, timed_besides
from collwise.validation.select.decisions import without_doubtful
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.slowdown import slowdown
from collwise.validation.times.sources import predict_choice, simulate
from collwise.validation.times.times import BYTES, CHOICE, PROCS, State, Times, joined

CHANGE, BEFORE, AFTER = "change", "before", "after"
"""The dimension of times before and after a change, and its labels."""
FACTOR = "factor"
"""The dimension of times at several factors of a change."""

SWEPT = tuple(name for name, kind in CHANGES.items() if kind.has_factor)
"""The changes that a sweep can make."""

STEPS_A_DOUBLING = 4
_MAX_FACTORS = 200
_SAME = 1e-9
"""Choices whose times differ by less than this share are equally good, so that neither replaces the other."""
_EXACTLY = 1.002
"""Cross-over points are found to within this factor, or exactly if they are whole numbers."""

Timer = Callable[[Mapping[str, float]], Array]
"""Returns the seconds of the competing choices at a point, given by all its coordinates; nan for left-out choices."""


def before_and_after(
    platform: HostPlatform,
    new: Changed,
    grid: Grid,
    context: SimulationContext,
    kept: Decider | None = None,
    doubtful: bool = False,
) -> Times:
    """The times of a grid before and after a change of the platform, along the dimension `change`.

    Choices that cannot be the best may be left out, except the choices that `kept` returns for each P and m. If `kept`
    is None, the best choices before the change are also timed after it. If `doubtful` is false, a doubtful choice is
    timed only at the P and m for which `kept` returns it.
    """
    if kept is not None:
        grid = timed_besides(grid, [kept])
    after = replace(grid, processes_per_node=new.processes_per_node or grid.processes_per_node)
    for where, points in ((platform, grid), (new.platform, after)):
        for procs in points.procs:
            where.hosts_for(procs, points.processes_per_node)
    first = _timed(platform, grid, context, _SAME, doubtful)
    if kept is None:
        after = after.with_besides(first.best_choice)
    times = joined([first, _timed(new.platform, after, context, _SAME, doubtful)], CHANGE, [BEFORE, AFTER])
    return times if kept is None else times.of_grid(replace(times.grid, choices=times.grid.timed))


def _timed(platform: HostPlatform, grid: Grid, context: SimulationContext, margin: float, doubtful: bool) -> Times:
    [times] = simulate(platform, [grid], context, {grid.collective: margin}, f"{platform.name}: timing")
    return times if doubtful else without_doubtful(times)


def changes_choice(times: Times) -> npt.NDArray[np.bool_]:
    """True where the best choice after the change differs from the one before and is faster, shape (P, m)."""
    before, after = (times.best.sel({CHANGE: label}).values for label in (BEFORE, AFTER))
    same = slowdown(times.at(before).values, times.at(times.best).values)[..., -1]
    found: npt.NDArray[np.bool_] = (before != NOBODY) & (after != NOBODY) & ~(same <= _SAME)
    return found


@dataclass(frozen=True)
class Factors:
    """The factors of a sweep over one change, ascending and evenly spaced in logarithms. They include 1 if possible.

    `name` is the name of the change. The changes in `others` hold at all factors.
    """

    name: str
    values: tuple[float, ...]
    others: tuple[Change, ...] = ()

    def on(self, platform: HostPlatform, factor: float) -> HostPlatform:
        """The platform with the other changes and this factor. Raises UsageError for changes that cannot be made."""
        return changed(platform, [*self.others, Change(self.name, f"x{factor:.10g}")]).platform


@dataclass(frozen=True)
class CrossOver:
    """The value of a dimension, to within 0.2 %, at which the choice `above` becomes faster than `below`.

    `point` has the coordinates of all other dimensions, in the order of the times.
    """

    point: tuple[float, ...]
    value: float
    below: Choice
    above: Choice


def parse_factors(text: str) -> Factors:
    """The factors in a text such as 'bandwidth=x0.25:x8'. Raises UsageError if it is malformed or cannot be swept."""
    name, equals, span = (part.strip() for part in text.partition("="))
    check_name("change to sweep over", name, SWEPT)
    low_text, colon, high_text = span.partition(":")
    if not equals or not colon:
        raise UsageError(f"malformed sweep '{text}'; write for example {name}=x0.25:x8")
    try:
        low, high = factor_of(low_text), factor_of(high_text)
    except UsageError as problem:
        raise UsageError(f"sweep '{text}': {problem} (a range of factors: {name}=x0.25:x8)") from None
    first, last = math.log2(low) * STEPS_A_DOUBLING, math.log2(high) * STEPS_A_DOUBLING
    if not first < last < first + _MAX_FACTORS:
        raise UsageError(
            f"sweep '{text}' has no factors, or more than {_MAX_FACTORS}; write for example {name}=x0.25:x8"
        )
    inner = range(math.floor(first) + 1, math.ceil(last))
    return Factors(name, (low, *(2.0 ** (step / STEPS_A_DOUBLING) for step in inner), high))


def sweep_over(
    platform: HostPlatform,
    factors: Factors,
    grid: Grid,
    context: SimulationContext,
    tolerance: float = 0.0,
    doubtful: bool = False,
) -> tuple[Times, list[CrossOver]]:
    """The times of a grid at each factor, in the dimension `factor`, and the cross-over points (`crossovers`).

    Choices that are slower than the best by more than the tolerance may be left out. If `doubtful` is false, doubtful
    choices do not compete.
    """
    failed: list[Timing] = []

    def timed(grid: Grid, factor: float) -> Times:
        found = _timed(factors.on(platform, factor), grid, context, tolerance, doubtful)
        failed.extend(found.failed)
        return found

    def timer(point: Mapping[str, float]) -> Array:
        grid = replace(times.grid, procs=(int(point[PROCS]),), message_bytes=(int(point[BYTES]),))
        found: Array = timed(grid, point[FACTOR]).array[:, 0, 0]
        return found

    per_node = changed(platform, factors.others).processes_per_node
    grid = replace(grid, processes_per_node=per_node or grid.processes_per_node)
    for procs in grid.procs:
        factors.on(platform, 1.0).hosts_for(procs, grid.processes_per_node)
    times = joined([timed(grid, factor) for factor in factors.values], FACTOR, factors.values)
    found = list(crossovers(times, FACTOR, timer, tolerance))
    return replace(times, failed=tuple(dict.fromkeys(failed))), found


def with_left_out(times: Times, platform: HostPlatform, factors: Factors) -> Times:
    """The times at several factors, with times or failures also for choices that the schedule engine left out."""
    data = times.data.copy(deep=True)
    seconds, widths, state = (data[name].values for name in ("seconds", "half_width_seconds", "state"))
    left_out = np.argwhere(state == State.LEFT_OUT)
    runners = {k: ScheduleRunner(factors.on(platform, factors.values[k])) for k in {*left_out[:, -1].tolist()}}
    for index in map(tuple, left_out):
        a, i, j, k = index
        timing = runners[k].timing(times.grid.case(times.grid.timed[a], times.procs[i], times.message_bytes[j]))
        seconds[index], widths[index] = timing.seconds, 0.0 if timing.ok else math.nan
        state[index] = State.TIMED if timing.ok else State.FAILED
    return replace(times, data=data, margin=None)


def crossovers(times: Times, dim: str, timer: Timer | None = None, tolerance: float = 0.0) -> Iterator[CrossOver]:
    """The values of a dimension at which the choice changes, for each point of the other dimensions (by P, m).

    Between the values of `times`, seconds come from the timer, or if there is none, from the model that predicted the
    times. With a tolerance of 0.01, a choice stays until it is 1 % slower than the fastest one, so that choices that
    are nearly equally fast at many values do not take turns. The cross-over point is then where the times of the two
    choices cross.
    """
    seconds_at = timer or partial(_predicted, times)
    seconds = times.seconds[: len(times.choices)]
    others = [str(other) for other in seconds.dims if other not in (CHOICE, dim)]
    values = seconds[dim].values.tolist()
    points = product(*(seconds[name].values.tolist() for name in others))
    rows = seconds.transpose(*others, dim, CHOICE).values.reshape(-1, len(values), len(times.choices))
    for point, at_point in zip(points, rows, strict=True):
        where = dict(zip(others, point, strict=True))
        swept = dict(zip(values, at_point, strict=True))

        def seconds_here(value: float, where: Mapping[str, float] = where) -> Array:
            return seconds_at({**where, dim: value})

        for value, below, above in _cross_overs(swept, seconds_here, tolerance):
            yield CrossOver(point, value, times.choices[below], times.choices[above])


def _predicted(times: Times, point: Mapping[str, float]) -> Array:
    """Seconds of the competing choices at a point by the model that predicted the times."""
    if times.between is None:
        raise UsageError(f"the times of {times.collective} are known only for timed P and m; no model predicted them")
    return np.array(
        [
            float(predict_choice(times.between, times.collective, choice, point[PROCS], point[BYTES]))
            for choice in times.choices
        ]
    )


def _cross_overs(
    swept: Mapping[float, Array], seconds_at: Callable[[float], Array], tolerance: float
) -> Iterator[tuple[float, int, int]]:
    """The factors at which the choice of a point changes, with the candidates below and above."""
    now = NOBODY
    # `last` is the largest factor so far that was looked at, `led` the largest one at which the choice was the fastest.
    last, led = math.nan, math.nan
    for factor, seconds in swept.items():
        best = int(fastest(seconds))
        if NOBODY in (now, best):
            now, led = best, factor
        while now != (after := _chosen(now, tolerance, seconds)):
            left, after = _first(last, factor, after, now, seconds_at, partial(_chosen, now, tolerance))
            crossed, _ = _first(led, left, after, now, seconds_at, partial(_faster, now, after))
            yield crossed, now, after
            now, last, led = after, left, left
        if now == best:
            led = factor
        last = factor


def _chosen(now: int, tolerance: float, seconds: Array) -> int:
    """The candidate to choose at the next larger factor if `now` is chosen."""
    best = int(fastest(seconds))
    return now if best != NOBODY and seconds[now] <= (1 + tolerance) * seconds[best] else best


def _faster(one: int, other: int, seconds: Array) -> int:
    """The faster of two candidates. Candidates that were left out count as slower than others."""
    return other if fastest(seconds[[one, other]]) == 1 else one


def _first(
    low: float,
    high: float,
    at_high: int,
    at_low: int,
    seconds_at: Callable[[float], Array],
    rule: Callable[[Array], int],
) -> tuple[float, int]:
    """The first factor, approximately, at which a rule no longer returns `at_low`, and what the rule returns there.

    At `high` the rule returns `at_high`.
    """
    whole = isinstance(low, int) and isinstance(high, int)
    while high - low > 1 if whole else high / low > _EXACTLY:
        middle = (low + high) // 2 if whole else math.sqrt(low * high)
        found = rule(seconds_at(middle))
        if found == at_low:
            low = middle
        else:
            high, at_high = middle, found
    return high, at_high


LIMITS: Mapping[str, tuple[str, ...]] = {
    "latency": ("latency", "handshake", "answers"),
    "overhead": ("send overhead", "receive overhead", "copies", "fresh memory"),
    "gap at node ports": ("waiting for ports", "waiting for ports and time-outs"),
    "gap in memory": ("waiting for memory",),
    "gap between sockets": ("waiting between sockets",),
    "gap on uplinks": ("waiting for uplinks",),
    "bandwidth": ("transfer",),
    "reduction": ("reduction",),
    "shared memory": ("copies by shared memory", "flags"),
}
"""The limits, and the parts of the critical path (simulator/schedule/critical_path.py) that each consists of.

A message that takes longer than it would alone waits for a resource that other messages use. This wait is the gap: at
the ports of nodes, in the memory of a node, on the path between a node's sockets, or on links between switches.
"""


def limits_of(platform: HostPlatform, case: Case) -> dict[str, float]:
    """The share of each limit in the critical path of a case, by the schedule engine. The shares add up to 1."""
    return _path_of(platform, case)[0]


def _path_of(platform: HostPlatform, case: Case) -> tuple[dict[str, float], float, Schedule]:
    """The share of each limit in a case's critical path, the path's seconds, and the case's schedule."""
    schedule = Schedule(case, platform.places(case.procs, case.processes_per_node))
    tables = network_tables(platform, case.procs, case.processes_per_node, schedule.sizes)
    _, parts = path_parts(schedule, tables, every=False)
    share = parts.share.to_dict()
    limits = {limit: float(sum(share.get(name, 0.0) for name in names)) for limit, names in LIMITS.items()}
    return limits, float(parts.seconds.sum()), schedule


def main_limit(shares: Mapping[str, float]) -> str:
    """The limit with the largest share."""
    return max(shares, key=lambda limit: shares[limit])


_RELIEF = {
    "latency": Change("latency", "x0.5"),
    "overhead": Change("overheads", "x0.5"),
    "gap at node ports": Change("bandwidth", "x2"),
    "gap in memory": Change("memory", "x2"),
    "gap on uplinks": Change("bandwidth", "x2"),
    "bandwidth": Change("bandwidth", "x2"),
    "reduction": Change("reduction", "x0.5"),
}
"""The changes of a platform that halve the causes of limits, by limit. Other limits have no such change."""


def relieved(platform: HostPlatform, case: Case) -> tuple[str, float, Change | None, float]:
    """The limit with the largest share in a case's critical path, its share, its relief, and the relief's effect.

    The relief is the change that halves the limit's cause, and the effect is the case's time with the change, divided
    by the time without it: None and nan if no change of this platform halves the cause. The time may change little,
    since another path may be nearly as long as the critical one.
    """
    shares, seconds, schedule = _path_of(platform, case)
    limit = main_limit(shares)
    change = _RELIEF.get(limit)
    try:
        eased = None if change is None else changed(platform, [change]).platform
    except UsageError:
        eased = None
    if eased is None:
        return limit, shares[limit], None, math.nan
    tables = network_tables(eased, case.procs, case.processes_per_node, schedule.sizes)
    return limit, shares[limit], change, schedule.play(tables).seconds / seconds
