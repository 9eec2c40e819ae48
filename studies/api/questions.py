"""What-if questions about a platform: `whatif`, `sweep`, `whatif_application` and `live_map`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from xarray import DataArray

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.platforms import HostPlatform, Platform
from collwise.platforms.changes import Change, Changed, changed, parse_change
from collwise.simulator.execution.profiles import read_profile
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Timing
from collwise.validation.library_defaults.baselines import baseline as baseline_of
from collwise.validation.select.decisions import DecisionTable, decisions_from
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT, sizes_of
from collwise.validation.times.grid import Grid
from collwise.validation.times.points import asked_points, warn_of_doubtful
from collwise.validation.times.slowdown import slowdown, summary_of
from collwise.validation.times.times import BYTES, PROCS, Times
from collwise.validation.whatif.limits import limits_of, main_limit
from collwise.validation.whatif.live_map import LiveMap
from collwise.validation.whatif.sweep import (
    AFTER,
    BEFORE,
    CHANGE,
    FACTOR,
    CrossOver,
    Factors,
    before_and_after,
    changes_choice,
    parse_factors,
    sweep_over,
    with_left_out,
)
from collwise.validation.whatif.workload import BEST_BEFORE, Calls, Saving, Workload, savings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Changes = str | Change | Sequence[str | Change]
"""Changes of a platform: 'bandwidth=x2', or several in a list."""

_LEAST_PROCS = 4


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The answer of `whatif`; `frame`, `summary` and `figure` show it.

    `times` have the dimension `change` with `before` and `after`; `kept` are the choices of the kept rules at each P
    and m, None where they decide nothing: the best ones before the change, or those of a table.
    """

    times: Times
    changes: tuple[Change, ...]
    before: HostPlatform
    after: Changed
    kept: Mapping[tuple[int, int], Choice | None]
    kept_rules: str

    def best(self, when: str) -> dict[tuple[int, int], Choice | None]:
        """The best choice at each P and m, `before` or `after` the change."""
        picks = self.times.best.sel({CHANGE: when}).values
        return dict(zip(self.times.grid.points, map(self.times.choice, picks.flat), strict=True))

    def best_seconds(self, when: str) -> DataArray:
        """The time of the best choice at each P and m, `before` or `after` the change."""
        return self.times.at(self.times.best).sel({CHANGE: when}, drop=True)

    @property
    def time_ratio(self) -> DataArray:
        """The best time after the change, relative to the best one before."""
        return self.best_seconds(AFTER) / self.best_seconds(BEFORE)

    def kept_slowdown(self, when: str = AFTER) -> DataArray:
        """The slowdown of the kept rules against the best choices of one side, nan where they decide nothing."""
        best = self.best_seconds(when)
        kept = self.times.at(self.times.picks_of(lambda *point: self.kept[point])).sel({CHANGE: when}, drop=True)
        return best.copy(data=slowdown(kept.values, best.values))

    def limit(self, when: str, choice: Choice | None, procs: int, message_bytes: int) -> tuple[str, float]:
        """What limits a choice at a point, and its share of the critical path; nothing without a choice."""
        if choice is None:
            return "-", np.nan
        platform, grid = self.before, self.times.grid
        if when == AFTER:
            platform = self.after.platform
            grid = replace(grid, processes_per_node=self.after.processes_per_node or grid.processes_per_node)
        shares = limits_of(platform, grid.case(choice, procs, message_bytes))
        name = main_limit(shares)
        return name, shares[name]

    def frame(self, limits: bool = True) -> pd.DataFrame:
        """A row per point.

        Columns: `procs`, `message_bytes`; `before` and `after`, the best choices; `changes`, whether they differ;
        `before_seconds`, `after_seconds` and their `ratio`; `kept`, the choice of the kept rules, and `kept_slowdown`,
        its slowdown on the changed platform, and `kept_slowdown_before`, that on the platform as it was. With `limits`
        also `limited_before` and `limited_after`, what the largest part of the best choice's critical path is, and
        `share_before`, `share_after`, how large.
        """
        before, after = self.best(BEFORE), self.best(AFTER)
        points = self.times.grid.points
        columns: dict[str, Iterable[object]] = {
            "procs": [procs for procs, _ in points],
            "message_bytes": [size for _, size in points],
            "before": map(_label, before.values()),
            "after": map(_label, after.values()),
            "changes": changes_choice(self.times).flat,
            "before_seconds": self.best_seconds(BEFORE).values.flat,
            "after_seconds": self.best_seconds(AFTER).values.flat,
            "ratio": self.time_ratio.values.flat,
            "kept": [_label(self.kept[point]) for point in points],
            "kept_slowdown": self.kept_slowdown().values.flat,
            "kept_slowdown_before": self.kept_slowdown(BEFORE).values.flat,
        }
        for when, best in ((BEFORE, before), (AFTER, after)) if limits else ():
            found = [self.limit(when, best[point], *point) for point in points]
            columns |= {f"limited_{when}": [name for name, _ in found], f"share_{when}": [share for _, share in found]}
        return pd.DataFrame({name: list(values) for name, values in columns.items()})

    def summary(self) -> list[str]:
        """Sentences: how many choices change, by how much times change, and what the kept rules cost."""
        times, every = self.times, self.time_ratio.values
        ratio = every[np.isfinite(every)]
        lines = [f"The best choice changes at {changes_choice(times).sum()} of {ratio.size} points."]
        if ratio.size:
            lines.append(
                f"The best times are multiplied by {ratio.min():.3g} to {ratio.max():.3g}, by {np.median(ratio):.3g} "
                "in the median."
            )
        ratios = zip(times.procs, every, strict=True)
        unmoved = [procs for procs, row in ratios if (known := row[np.isfinite(row)]).size and (known == 1).all()]
        if unmoved:
            lines.append(
                f"At P = {', '.join(map(str, unmoved))} no best time changes at all: the messages of so many "
                "processes, on the first nodes, may not pass what was changed."
            )
        kept = summary_of(self.kept_slowdown(), TOLERANCE_PERCENT / 100)
        if not kept.points:
            return [*lines, f"The kept rules, {self.kept_rules}, decide none of the points."]
        before = summary_of(self.kept_slowdown(BEFORE), TOLERANCE_PERCENT / 100)
        was = f" ({before.mean * 100:.1f} % before the change)" if before.points and before.mean > 0 else ""
        i, j = kept.worst_at
        procs, size = times.procs[i], times.message_bytes[j]
        worst = f", at most {kept.worst * 100:.1f} %, at P = {procs}, m = {format_size(size)}" if kept.worst > 0 else ""
        return [
            *lines,
            f"Rules that are kept, {self.kept_rules}, would now have a slowdown of {kept.mean * 100:.1f} % on average"
            f"{was}{worst}; at {kept.best_chosen} of {kept.points} points it is at most {TOLERANCE_PERCENT:g} %.",
        ]

    def figure(self) -> Figure:
        """Maps of the best choices, of the ratio of times and of the kept rules' slowdown."""
        from collwise.studies.figures.whatif import whatif_figure

        title = f"{self.times.collective} on {self.before.title}: {self._what}"
        slowdowns = self.kept_slowdown().values
        return whatif_figure(self.times, self.time_ratio.values, slowdowns, f"{title} ({self.times.maker})")

    @property
    def _what(self) -> str:
        return ", ".join(change.label for change in self.changes)

    def __repr__(self) -> str:
        return f"<WhatIf {self.times.collective}, {self._what}: {' '.join(self.summary()[:1])}>"

    def _repr_html_(self) -> str:
        return str(self.frame(limits=False).to_html(index=False, max_rows=40))


@dataclass(frozen=True, repr=False)
class Sweep:
    """The answer of `sweep`; `crossovers`, `frame`, `summary`, `figure` and `map` show it.

    `times` have the dimension `factor`; `found` are the cross-over points. A choice stayed until it was slower than the
    best by more than the `tolerance` (0.01: 1 %).
    """

    times: Times
    found: tuple[CrossOver, ...]
    platform: HostPlatform
    factors: Factors
    tolerance: float

    def crossovers(self) -> pd.DataFrame:
        """A row per cross-over point: `procs`, `message_bytes`, `factor`, `below` and `above`, the choices."""
        rows = [(*one.point, one.value, one.below.label, one.above.label) for one in self.found]
        return pd.DataFrame(rows, columns=[PROCS, BYTES, FACTOR, "below", "above"])

    def at(self, procs: int, message_bytes: int) -> list[CrossOver]:
        """The cross-over points of one P and m."""
        return [one for one in self.found if one.point == (procs, message_bytes)]

    def frame(self) -> pd.DataFrame:
        """A row per factor and point: `factor`, `procs`, `message_bytes`, `choice`, the best one, and its `seconds`."""
        best = self.times.best.transpose(FACTOR, PROCS, BYTES)
        seconds = self.times.at(self.times.best).transpose(FACTOR, PROCS, BYTES)
        labels = [_label(self.times.choice(index)) for index in best.values.flat]
        index = pd.MultiIndex.from_product([best[dim].values for dim in best.dims], names=best.dims)
        return pd.DataFrame({"choice": labels, "seconds": seconds.values.ravel()}, index).reset_index()

    def limits(self, procs: int, message_bytes: int) -> dict[float, dict[str, float]]:
        """The shares of the best choice's critical path by factor, at one point."""
        best = self.times.best.sel({PROCS: procs, BYTES: message_bytes})
        found = {}
        for factor, choice in zip(self.factors.values, map(self.times.choice, best.values), strict=True):
            if choice is not None:
                case = self.times.grid.case(choice, procs, message_bytes)
                found[factor] = limits_of(self.factors.on(self.platform, factor), case)
        return found

    def unit(self) -> str:
        """What a factor of 1 stands for: '25 Gbit/s', or 'the platform'."""
        amount = _amount(self.platform, self.factors.name, 1.0)
        return amount[2:-1] if amount else f"that of {self.platform.title}"

    def summary(self) -> list[str]:
        """A sentence for each cross-over point that says why, and one for each point without any."""
        lines = []
        name = self.factors.name.replace("_", " ")
        span = f"x{self.factors.values[0]:g} to x{self.factors.values[-1]:g}"
        for procs, size in self.times.grid.points:
            where = f"P = {procs}, m = {format_size(size)}"
            mine = self.at(procs, size)
            if not mine:
                first = self.times.best.sel({PROCS: procs, BYTES: size}).values[0]
                nearly = f", or at most {self.tolerance * 100:g} % slower," if self.tolerance else ""
                label = _label(self.times.choice(first))
                lines.append(f"{where}: {label} is the best choice{nearly} at any {name} from {span}.")
            for one in mine:
                at = self.factors.on(self.platform, one.value)
                below, above = (
                    _parts_text(limits_of(at, self.times.grid.case(choice, procs, size)))
                    for choice in (one.below, one.above)
                )
                lines.append(
                    f"{where}: from {name} x{one.value:.3g}{_amount(self.platform, name, one.value)} on "
                    f"{one.above.label} ({above}) is faster than {one.below.label} ({below})."
                )
        return lines

    def figure(self, procs: int | None = None, message_bytes: int | None = None) -> Figure:
        """Times relative to the best over the factor and what limits the best choice, at one point.

        By default that is the point with the cross-over nearest to a factor of 1, else the last point.
        """
        from collwise.studies.figures.whatif import sweep_figure

        grid = self.times.grid
        nearest = min(self.found, key=lambda one: abs(np.log(one.value)), default=None)
        point = nearest.point if nearest is not None else grid.points[-1]
        procs = int(point[0]) if procs is None else procs
        size = int(point[1]) if message_bytes is None else message_bytes
        if (procs, size) not in grid.points:
            raise UsageError(f"the sweep has no point P = {procs}, m = {format_size(size)}")
        title = f"{self._what}, P = {procs}, m = {format_size(size)} ({self.times.maker})"
        times = with_left_out(self.times.only(procs=[procs], message_bytes=[size]), self.platform, self.factors)
        return sweep_figure(times, self.at(procs, size), self.limits(procs, size), self._axis, title)

    def map(self, message_bytes: int | None = None) -> Figure:
        """The best choice over the factor and P, by default for the largest message size."""
        from collwise.studies.figures.whatif import sweep_map

        size = self.times.message_bytes[-1] if message_bytes is None else message_bytes
        title = f"Best choice: {self._what}, m = {format_size(size)} ({self.times.maker})"
        return sweep_map(self.times.only(message_bytes=[size]), self.found, self._axis, title)

    @property
    def _axis(self) -> str:
        return f"{self.factors.name.replace('_', ' ')}, relative to {self.unit()}"

    @property
    def _what(self) -> str:
        others = "".join(f", {change.label}" for change in self.factors.others)
        return f"{self.times.collective} on {self.platform.title}{others}"

    def __repr__(self) -> str:
        return f"<Sweep {self.times.collective} over {self.factors.name}: {len(self.found)} cross-over points>"

    def _repr_html_(self) -> str:
        return str(self.crossovers().to_html(index=False, max_rows=40))


def whatif(
    platform: PlatformLike,
    changes: Changes,
    collective: str,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    segments: Numbers = SEGMENTS_TEXT,
    algorithms: Names | None = None,
    rules: DecisionTable | str | Path | None = None,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> WhatIf:
    """Which choices and times change if a platform does, and what the rules of before would then cost.

    Parameters: `platform`, see `platform`; `changes`, such as 'bandwidth=x2' or ['nodes=64', 'latency=x0.5'] (`collwise
    whatif --help` lists them); `collective`, `procs`, `sizes`, `segments`, `algorithms` and `ppn` as for `simulate`, by
    default powers of two and all nodes; `rules`, a file from `collwise select`, instead of the best choices before the
    change; `context`, see `session`, by default one of the schedule engine.

    Returns a WhatIf, whose `times` have the dimension `change`. Raises UsageError for wrong arguments, and for changes
    that a platform cannot express.

    >>> import collwise
    >>> answer = collwise.whatif("gros", "bandwidth=x0.125", "allreduce", procs="31,64", sizes="1KiB,1MiB")
    >>> answer.frame()[["before", "after", "limited_before", "limited_after"]].iloc[1].tolist()
    ['rabenseifner', 'ring', 'bandwidth', 'bandwidth']
    >>> print(answer.summary()[0])
    The best choice changes at ... of 4 points.
    """
    where, made = arguments.platform(platform), changes_of(changes)
    grid = _grid(where, collective, procs, sizes, segments, algorithms, ppn, made)
    table = _table(rules, grid.collective)
    new = changed(where, made)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        times = before_and_after(where, new, grid, simulations, None if table is None else table.choice_at)
    if table is not None:
        kept = {point: table.choice_at(*point) for point in grid.points}
        return WhatIf(times, made, where, new, kept, f"the table made by {table.made_by}")
    kept = {(p, m): times.choice(times.best.sel({PROCS: p, BYTES: m, CHANGE: BEFORE}).item()) for p, m in grid.points}
    return WhatIf(times, made, where, new, kept, "the best choices before the change")


def sweep(
    platform: PlatformLike,
    factors: str | Factors,
    collective: str,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    changes: Changes = (),
    segments: Numbers = SEGMENTS_TEXT,
    algorithms: Names | None = None,
    ppn: int | None = None,
    tolerance: float = TOLERANCE_PERCENT,
    context: SimulationContext | None = None,
) -> Sweep:
    """The best choices while a platform changes by many factors, and the factors at which they change.

    Parameters: `factors`, such as 'bandwidth=x0.25:x8'; `changes` that hold at all of them; `tolerance`, by how many
    percent a choice may be slower than the best one before another one takes its place, so that choices that are nearly
    as fast do not take turns; the others as for `whatif`.

    Returns a Sweep, whose `times` have the dimension `factor`. Raises UsageError for wrong arguments, and for changes
    that a platform cannot express.

    >>> import collwise
    >>> swept = collwise.sweep("gros", "bandwidth=x0.25:x1", "allreduce", procs=62, sizes="1MiB")
    >>> [(row.below, row.above, round(row.factor, 2)) for row in swept.crossovers().itertuples()]
    [('ring', 'rabenseifner', 0.28)]
    """
    arguments.check_percent("tolerance", tolerance)
    where = arguments.platform(platform)
    others = changes_of(changes)
    grid = _grid(where, collective, procs, sizes, segments, algorithms, ppn, others)
    over = replace(factors if isinstance(factors, Factors) else parse_factors(factors), others=others)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        times, found = sweep_over(where, over, grid, simulations, tolerance / 100)
    return Sweep(times, tuple(found), where, over, tolerance / 100)


@dataclass(frozen=True)
class Application:
    """A program's calls, before and after a change: a pair of savings for each row of its report.

    The default is the same on both platforms.
    """

    rows: tuple[tuple[Saving, Saving], ...]
    left_out: tuple[str, ...]
    made_by: str
    failed: tuple[Timing, ...]

    def total(self, name: str) -> float:
        """The seconds of all calls: of 'default_before', 'tuned_before', 'default_after' or 'tuned_after'."""
        return float(sum(self.seconds(row)[name] for row in self.rows))

    def seconds(self, row: tuple[Saving, Saving]) -> dict[str, float]:
        """The seconds of all calls of a row, by the names of `total`."""
        return {
            f"{which}_{when}": one.row.calls * getattr(one, f"{which}_seconds")
            for when, one in zip((BEFORE, AFTER), row, strict=True)
            for which in ("default", "tuned")
        }


def whatif_application(
    platform: PlatformLike,
    changes: Changes,
    report: str | Path,
    *,
    baseline: str | None = None,
    segments: Numbers = SEGMENTS_TEXT,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> Application:
    """What the collectives of a program would take on a changed platform, by default and tuned.

    Parameters: `report`, the file in which libcollwise counted the calls of a run (`collwise run --report-to
    FILE.json`, see docs/interposing.md); `baseline`, the library whose decisions are the default, such as 'openmpi-4.1'
    or 'mpich-4', by default the installed Open MPI; the others as for `whatif`.

    Returns an Application: `rows` with the savings by each row of the report, before and after, and `total(name)` of
    'default_before', 'tuned_before', 'default_after' or 'tuned_after'. Raises UsageError for wrong arguments and files.

    >>> import collwise
    >>> row = '{"collective": "bcast", "communicator": "MPI_COMM_WORLD", "ranks": "0-15", "processes": 16, '
    >>> row += '"processes_per_node": 1, "mpis_own": "no rule", "least_bytes": 65536, "most_bytes": 131071, '
    >>> row += '"mean_bytes": 98304, "calls": 100, "seconds": 0.4, "shortest_seconds": 0.3, "longest_seconds": 0.5}'
    >>> text = '{"collwise_report": 1, "processes": 16, "seconds": 2.0, "rows": [' + row + "]}"
    >>> _ = open("report.json", "w").write(text)
    >>> found = collwise.whatif_application("gros", "bandwidth=x2", "report.json")
    >>> found.total("tuned_after") < found.total("default_after") < found.total("default_before")
    True
    """
    where = arguments.platform(platform)
    rows = read_profile(Path(report)).rows
    if not rows:
        raise UsageError(f"{report}: the report counts no call")
    called = Workload.of(rows).placed(ppn or where.default_processes_per_node)
    if not called.rows:
        raise UsageError(f"no call of the report can be timed: {'; '.join(called.left_out)}")
    new, library, cut = changed(where, changes_of(changes)), baseline_of(baseline), arguments.sizes(segments)
    then = called if new.processes_per_node is None else called.placed(new.processes_per_node)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        times = called.simulated(where, simulations, library, cut)
        later = then.simulated(new.platform, simulations, library, cut)
    before = savings(called, times, lambda calls, best: calls.untuned(library) or (best, BEST_BEFORE))
    defaults = {Calls.of(one.row): (one.default, one.default_is) for one in before.rows}
    after = savings(then, later, lambda calls, _: defaults.get(calls))
    by_calls = {Calls.of(one.row): one for one in after.rows}
    pairs = tuple((one, by_calls[calls]) for one in before.rows if (calls := Calls.of(one.row)) in by_calls)
    failed = tuple(dict.fromkeys([*before.failed, *after.failed]))
    return Application(pairs, before.left_out, before.made_by, failed)


def live_map(
    platform: PlatformLike,
    collective: str,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    segments: Numbers = "8KiB",
    algorithms: Names | None = None,
    ppn: int | None = None,
    jobs: int | None = None,
) -> LiveMap:
    """A map of a collective that follows changes of its platform within a fraction of a second, for sliders.

    Parameters: as for `whatif`; `jobs`, the number of threads, by default one per core.

    Returns a LiveMap, whose `on(changes)` gives Times of all choices that are about as fast as the best one, with
    half-widths where they were not played exactly (docs/whatif.md). `on(changes, every=True)` has the times of every
    choice. Raises UsageError for wrong arguments.

    >>> import collwise
    >>> from collwise.platforms.changes import parse_change
    >>> live = collwise.live_map("gros", "allreduce", procs="8:64:+8", sizes="1KiB:1MiB:x4")
    >>> times = live.on([parse_change("bandwidth=x2")])
    >>> times.best.shape, bool((times.best_seconds <= live.base.best_seconds).all())
    ((8, 6), True)
    """
    where = arguments.platform(platform)
    return LiveMap(where, _grid(where, collective, procs, sizes, segments, algorithms, ppn, ()), jobs)


def changes_of(given: Changes) -> tuple[Change, ...]:
    """The changes given, as text or as they are. Raises UsageError for unknown ones."""
    several = [given] if isinstance(given, (str, Change)) else given
    return tuple(one if isinstance(one, Change) else parse_change(one) for one in several)


def default_procs(platform: HostPlatform, processes_per_node: int) -> tuple[int, ...]:
    """Powers of two from 4 on, and all that the platform holds."""
    most = platform.max_procs(processes_per_node)
    powers = [2**k for k in range(most.bit_length()) if _LEAST_PROCS <= 2**k < most]
    return (*powers, most)


def _grid(
    platform: HostPlatform,
    collective: str,
    procs: Numbers | None,
    sizes: Numbers | None,
    segments: Numbers,
    algorithms: Names | None,
    ppn: int | None,
    changes: Sequence[Change],
) -> Grid:
    """The points asked for; by default those that fit on the platform before and after the change."""
    names = arguments.algorithms(collective, algorithms)
    per_node = ppn or platform.default_processes_per_node
    if procs is None:
        new = changed(platform, changes)
        sides = default_procs(platform, per_node), default_procs(new.platform, new.processes_per_node or per_node)
        counts = min(sides, key=max)
    else:
        counts = arguments.counts(procs)
    asked = None if sizes is None else arguments.sizes(sizes)
    grid = Grid.of(collective, counts, sizes_of(collective, asked), per_node, arguments.sizes(segments), names)
    (limited,) = asked_points(platform, [grid])
    warn_of_doubtful(platform, [limited])
    return limited


def _table(rules: DecisionTable | str | Path | None, collective: str) -> DecisionTable | None:
    if rules is None or isinstance(rules, DecisionTable):
        return rules
    tables = {table.collective: table for table in decisions_from(Path(rules))}
    if collective not in tables:
        raise UsageError(f"{rules} has no decisions for {collective} (valid: {', '.join(tables)})")
    return tables[collective]


def _label(choice: Choice | None) -> str:
    return "-" if choice is None else choice.label


def _parts_text(shares: dict[str, float]) -> str:
    """'latency 65 %, bandwidth 31 %': the two largest shares."""
    largest = sorted(shares.items(), key=lambda item: -item[1])[:2]
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in largest if share > 0)


def _amount(platform: HostPlatform, name: str, factor: float) -> str:
    """' (7.07 Gbit/s)': what a factor of the bandwidth or latency of equal nodes stands for."""
    base = getattr(platform, "base", platform)
    if not isinstance(base, Platform):
        return ""
    latency, rate = base.route
    if base.ports is not None:
        latency, rate = base.ports.latency_seconds, base.ports.bytes_per_second
    if name == "bandwidth":
        return f" ({rate * factor * 8e-9:.3g} Gbit/s)"
    return f" ({latency * factor * 1e6:.3g} us)" if name == "latency" else ""
