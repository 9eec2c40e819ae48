"""What-if questions about a platform: `whatif`, `whatif_sweep`, `whatif_application` and `live_map`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.platforms import HostPlatform, Platform
from collwise.platforms.changes import Change, changed, parse_change
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.library_defaults.baselines import baseline as baseline_of
from collwise.validation.select.decisions import DecisionTable, decisions_from
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT, sizes_of
from collwise.validation.times.grid import CaseGrid
from collwise.validation.times.points import asked_points, warn_of_doubtful
from collwise.validation.times.slowdown import summary_of
from collwise.validation.whatif.application import Application, reported_calls, what_if_application
from collwise.validation.whatif.comparison import Side, WhatIf, what_if
from collwise.validation.whatif.limits import limits_of, main_limit
from collwise.validation.whatif.live_map import LiveMap
from collwise.validation.whatif.sweep import Factors, Sweep, parse_factors, sweep_over

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Changes = str | Change | Sequence[str | Change]
"""Changes of a platform: 'bandwidth=x2', or several in a list."""

_LEAST_PROCS = 4


@dataclass(frozen=True, repr=False)
class WhatIfResult:
    """The answer of `whatif`: `result` has all times; `frame`, `summary` and `figure` show them."""

    result: WhatIf

    def frame(self, limits: bool = True) -> pd.DataFrame:
        """A row per point.

        Columns: `procs`, `message_bytes`; `before` and `after`, the best choices; `changes`, whether they differ;
        `before_seconds`, `after_seconds` and their `ratio`; `kept`, the choice of the kept rules, and `kept_slowdown`,
        its slowdown on the changed platform, and `kept_slowdown_before`, that on the platform as it was. With `limits`
        also `limited_before` and `limited_after`, what the largest part of the best choice's critical path is, and
        `share_before`, `share_after`, how large.
        """
        found = self.result
        rows = []
        for i, procs in enumerate(found.before.grid.procs):
            for j, size in enumerate(found.before.grid.message_bytes):
                before, after, kept = found.before.choice(i, j), found.after.choice(i, j), found.kept[i][j]
                row: dict[str, object] = {
                    "procs": procs,
                    "message_bytes": size,
                    "before": _label(before),
                    "after": _label(after),
                    "changes": bool(found.changes_choice[i, j]),
                    "before_seconds": found.before.best_seconds[i, j],
                    "after_seconds": found.after.best_seconds[i, j],
                    "ratio": found.time_ratio[i, j],
                    "kept": _label(kept),
                    "kept_slowdown": found.kept_slowdown[i, j],
                    "kept_slowdown_before": found.kept_slowdown_before[i, j],
                }
                if limits:
                    for name, side, choice in (("before", found.before, before), ("after", found.after, after)):
                        row[f"limited_{name}"], row[f"share_{name}"] = _limit(side, choice, procs, size)
                rows.append(row)
        return pd.DataFrame(rows)

    def summary(self) -> list[str]:
        """Sentences: how many choices change, by how much times change, and what the kept rules cost."""
        found = self.result
        points = int(np.isfinite(found.time_ratio).sum())
        changes = int(found.changes_choice.sum())
        ratio = found.time_ratio[np.isfinite(found.time_ratio)]
        lines = [f"The best choice changes at {changes} of {points} points."]
        if points:
            lines.append(
                f"The best times are multiplied by {ratio.min():.3g} to {ratio.max():.3g}, by {np.median(ratio):.3g} "
                "in the median."
            )
        ratios = zip(found.before.grid.procs, found.time_ratio, strict=True)
        unmoved = [procs for procs, row in ratios if (known := row[np.isfinite(row)]).size and (known == 1).all()]
        if unmoved:
            lines.append(
                f"At P = {', '.join(map(str, unmoved))} no best time changes at all: the messages of so many "
                "processes, on the first nodes, may not pass what was changed."
            )
        kept = summary_of(found.kept_slowdown, TOLERANCE_PERCENT / 100)
        if not kept.points:
            return [*lines, f"The kept rules, {found.kept_rules}, decide none of the points."]
        before = summary_of(found.kept_slowdown_before, TOLERANCE_PERCENT / 100)
        was = f" ({before.mean * 100:.1f} % before the change)" if before.points and before.mean > 0 else ""
        i, j = kept.worst_at
        procs, size = found.after.grid.procs[i], found.after.grid.message_bytes[j]
        worst = f", at most {kept.worst * 100:.1f} %, at P = {procs}, m = {format_size(size)}" if kept.worst > 0 else ""
        return [
            *lines,
            f"Rules that are kept, {found.kept_rules}, would now have a slowdown of {kept.mean * 100:.1f} % on average"
            f"{was}{worst}; at {kept.best_chosen} of {kept.points} points it is at most {TOLERANCE_PERCENT:g} %.",
        ]

    def figure(self) -> Figure:
        """Maps of the best choices, of the ratio of times and of the kept rules' slowdown."""
        from collwise.studies.figures.whatif import whatif_figure

        found = self.result
        what = ", ".join(change.label for change in found.changes)
        title = f"{found.before.grid.collective} on {found.before.platform.title}: {what}"
        return whatif_figure(found, f"{title} ({found.made_by})")

    def __repr__(self) -> str:
        what = ", ".join(change.label for change in self.result.changes)
        return f"<WhatIfResult {self.result.before.grid.collective}, {what}: {' '.join(self.summary()[:1])}>"

    def _repr_html_(self) -> str:
        return str(self.frame(limits=False).to_html(index=False, max_rows=40))


@dataclass(frozen=True, repr=False)
class SweepResult:
    """The answer of `whatif_sweep`: `result` has all times; `crossovers`, `frame`, `summary` and `figure` show them."""

    result: Sweep

    def crossovers(self) -> pd.DataFrame:
        """A row per cross-over point: `procs`, `message_bytes`, `factor`, `below` and `above`, the choices."""
        rows = [
            (one.procs, one.message_bytes, one.factor, one.below.label, one.above.label)
            for one in self.result.crossovers
        ]
        return pd.DataFrame(rows, columns=["procs", "message_bytes", "factor", "below", "above"])

    def frame(self) -> pd.DataFrame:
        """A row per factor and point: `factor`, `procs`, `message_bytes`, `choice`, the best one, and its `seconds`."""
        sweep = self.result
        rows = []
        for k, factor in enumerate(sweep.factors.values):
            for i, procs in enumerate(sweep.grid.procs):
                for j, size in enumerate(sweep.grid.message_bytes):
                    best = int(sweep.best[k, i, j])
                    seconds = float(sweep.seconds[k, best, i, j]) if best >= 0 else np.nan
                    rows.append((factor, procs, size, _label(sweep.choices[best] if best >= 0 else None), seconds))
        return pd.DataFrame(rows, columns=["factor", "procs", "message_bytes", "choice", "seconds"])

    def limits(self, procs: int, message_bytes: int) -> dict[float, dict[str, float]]:
        """The shares of the best choice's critical path by factor, at one point."""
        sweep = self.result
        i, j = sweep.grid.procs.index(procs), sweep.grid.message_bytes.index(message_bytes)
        found = {}
        for factor, best in zip(sweep.factors.values, sweep.best[:, i, j], strict=True):
            if best >= 0:
                case = sweep.grid.case(sweep.choices[best], procs, message_bytes)
                found[factor] = limits_of(sweep.platform_at(factor), case)
        return found

    def unit(self) -> str:
        """What a factor of 1 stands for: '25 Gbit/s', or 'the platform'."""
        amount = _amount(self.result.platform, self.result.factors.name, 1.0)
        return amount[2:-1] if amount else f"that of {self.result.platform.title}"

    def summary(self) -> list[str]:
        """A sentence for each cross-over point that says why, and one for each point without any."""
        sweep = self.result
        lines = []
        name = sweep.factors.name.replace("_", " ")
        span = f"x{sweep.factors.values[0]:g} to x{sweep.factors.values[-1]:g}"
        for i, procs in enumerate(sweep.grid.procs):
            for j, size in enumerate(sweep.grid.message_bytes):
                where = f"P = {procs}, m = {format_size(size)}"
                mine = [one for one in sweep.crossovers if (one.procs, one.message_bytes) == (procs, size)]
                if not mine:
                    best = int(sweep.best[0, i, j])
                    choice = _label(sweep.choices[best] if best >= 0 else None)
                    nearly = f", or at most {sweep.tolerance * 100:g} % slower," if sweep.tolerance else ""
                    lines.append(f"{where}: {choice} is the best choice{nearly} at any {name} from {span}.")
                for one in mine:
                    at = sweep.platform_at(one.factor)
                    below, above = (
                        _parts_text(limits_of(at, sweep.grid.case(choice, procs, size)))
                        for choice in (one.below, one.above)
                    )
                    lines.append(
                        f"{where}: from {name} x{one.factor:.3g}{_amount(sweep.platform, name, one.factor)} on "
                        f"{one.above.label} ({above}) is faster than {one.below.label} ({below})."
                    )
        return lines

    def figure(self, procs: int | None = None, message_bytes: int | None = None) -> Figure:
        """Times relative to the best over the factor and what limits the best choice, at one point.

        By default that is the point with the cross-over nearest to a factor of 1, else the last point.
        """
        from collwise.studies.figures.whatif import sweep_figure

        sweep = self.result
        nearest = min(sweep.crossovers, key=lambda one: abs(np.log(one.factor)), default=None)
        if procs is None:
            procs = nearest.procs if nearest is not None else sweep.grid.procs[-1]
        if message_bytes is None:
            message_bytes = nearest.message_bytes if nearest is not None else sweep.grid.message_bytes[-1]
        if procs not in sweep.grid.procs or message_bytes not in sweep.grid.message_bytes:
            raise UsageError(f"the sweep has no point P = {procs}, m = {format_size(message_bytes)}")
        title = f"{self._what()}, P = {procs}, m = {format_size(message_bytes)} ({sweep.made_by})"
        return sweep_figure(sweep, procs, message_bytes, self.limits(procs, message_bytes), self.unit(), title)

    def map(self, message_bytes: int | None = None) -> Figure:
        """The best choice over the factor and P, by default for the largest message size."""
        from collwise.studies.figures.whatif import sweep_map

        size = self.result.grid.message_bytes[-1] if message_bytes is None else message_bytes
        title = f"Best choice: {self._what()}, m = {format_size(size)} ({self.result.made_by})"
        return sweep_map(self.result, size, self.unit(), title)

    def _what(self) -> str:
        others = "".join(f", {change.label}" for change in self.result.others)
        return f"{self.result.grid.collective} on {self.result.platform.title}{others}"

    def __repr__(self) -> str:
        sweep = self.result
        found = f"{len(sweep.crossovers)} cross-over points"
        return f"<SweepResult {sweep.grid.collective} over {sweep.factors.name}: {found}>"

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
) -> WhatIfResult:
    """Which choices and times change if a platform does, and what the rules of before would then cost.

    Parameters: `platform`, see `platform`; `changes`, such as 'bandwidth=x2' or ['nodes=64', 'latency=x0.5'] (`collwise
    whatif --help` lists them); `collective`, `procs`, `sizes`, `segments`, `algorithms` and `ppn` as for `simulate`, by
    default powers of two and all nodes; `rules`, a file from `collwise select`, instead of the best choices before the
    change; `context`, see `session`, by default one of the schedule engine.

    Returns a WhatIfResult. Raises UsageError for wrong arguments, and for changes that a platform cannot express.

    >>> import collwise
    >>> answer = collwise.whatif("gros", "bandwidth=x0.125", "allreduce", procs="31,64", sizes="1KiB,1MiB")
    >>> answer.frame()[["before", "after", "limited_before", "limited_after"]].iloc[1].tolist()
    ['rabenseifner', 'ring', 'bandwidth', 'bandwidth']
    >>> print(answer.summary()[0])
    The best choice changes at ... of 4 points.
    """
    where = arguments.platform(platform)
    grid = _grid(where, collective, procs, sizes, segments, algorithms, ppn, changes_of(changes))
    table = _table(rules, grid.collective)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        return WhatIfResult(what_if(where, changes_of(changes), grid, simulations, table))


def whatif_sweep(
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
) -> SweepResult:
    """The best choices while a platform changes by many factors, and the factors at which they change.

    Parameters: `factors`, such as 'bandwidth=x0.25:x8'; `changes` that hold at all of them; `tolerance`, by how many
    percent a choice may be slower than the best one before another one takes its place, so that choices that are nearly
    as fast do not take turns; the others as for `whatif`.

    Returns a SweepResult. Raises UsageError for wrong arguments, and for changes that a platform cannot express.

    >>> import collwise
    >>> sweep = collwise.whatif_sweep("gros", "bandwidth=x0.25:x1", "allreduce", procs=62, sizes="1MiB")
    >>> [(row.below, row.above, round(row.factor, 2)) for row in sweep.crossovers().itertuples()]
    [('ring', 'rabenseifner', 0.28)]
    """
    arguments.check_percent("tolerance", tolerance)
    where = arguments.platform(platform)
    others = changes_of(changes)
    grid = _grid(where, collective, procs, sizes, segments, algorithms, ppn, others)
    over = factors if isinstance(factors, Factors) else parse_factors(factors)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        return SweepResult(sweep_over(where, others, over, grid, simulations, tolerance / 100))


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

    Returns an Application: `lines` with the times of each line of the report, and `total(name)` of 'default_before',
    'tuned_before', 'default_after' or 'tuned_after'. Raises UsageError for wrong arguments and files.

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
    lines = reported_calls(Path(report))
    per_node = ppn or where.default_processes_per_node
    library = baseline_of(baseline)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        return what_if_application(
            where, changes_of(changes), lines, per_node, simulations, library, arguments.sizes(segments)
        )


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

    Returns a LiveMap, whose `on(changes)` has the `best` choice at each point, the `seconds` of all choices that
    are about as fast, and the `errors` of times that were not played exactly (docs/whatif.md). `on(changes,
    every=True)` has the seconds of every choice. Raises UsageError for wrong arguments.

    >>> import collwise
    >>> from collwise.platforms.changes import parse_change
    >>> live = collwise.live_map("gros", "allreduce", procs="8:64:+8", sizes="1KiB:1MiB:x4")
    >>> view = live.on([parse_change("bandwidth=x2")])
    >>> view.best.shape, bool((view.best_seconds <= live.base.best_seconds).all())
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
) -> CaseGrid:
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
    grid = CaseGrid(collective, counts, sizes_of(collective, asked), per_node, arguments.sizes(segments), names)
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


def _limit(side: Side, choice: Choice | None, procs: int, message_bytes: int) -> tuple[str, float]:
    """What limits a choice at a point, and its share; nothing without a choice."""
    if choice is None:
        return "-", np.nan
    shares = limits_of(side.platform, side.grid.case(choice, procs, message_bytes))
    name = main_limit(shares)
    return name, shares[name]


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
