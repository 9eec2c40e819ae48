"""The answers of `whatif` and `sweep`: what changes with a platform, and where the best choice changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pandas as pd
from xarray import DataArray

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.switch_points import Indices
from collwise.platforms import HostPlatform, Platform
from collwise.platforms.changes import Change, Changed
from collwise.simulator.timing import Timing
from collwise.validation.compare.deciders import Decider
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import TOLERANCE_PERCENT
from collwise.validation.times.slowdown import summary_of
from collwise.validation.times.times import BYTES, PROCS, Times
from collwise.validation.whatif.sweep import (
    AFTER,
    BEFORE,
    CHANGE,
    FACTOR,
    CrossOver,
    Factors,
    changes_choice,
    limits_of,
    relieved,
    with_left_out,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LIMIT_COLUMNS = ("limited", "share", "relief", "relieved")


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The answer of `whatif`; `frame`, `summary` and `figure` show it.

    `times` have the dimension `change` with `before` and `after`. The kept rules are what `rules` decide or, without
    them, the best choices before the change. If `limits` is true, the frame says what limits the best choices.
    """

    times: Times
    changes: tuple[Change, ...]
    before: HostPlatform
    after: Changed
    rules: Decider | None = None
    limits: bool = True

    def best(self, when: str) -> dict[tuple[int, int], Choice | None]:
        """The best choice at each P and m, `before` or `after` the change."""
        picks = self.times.best.sel({CHANGE: when}).values
        return dict(zip(self.times.grid.points, map(self.times.choice, picks.flat), strict=True))

    def best_seconds(self, when: str) -> DataArray:
        """The time of the best choice at each P and m, `before` or `after` the change."""
        return self.times.best_seconds.sel({CHANGE: when}, drop=True)

    @property
    def time_ratio(self) -> DataArray:
        """The best time after the change, relative to the best time before it."""
        return self.best_seconds(AFTER) / self.best_seconds(BEFORE)

    @property
    def kept(self) -> Indices:
        """The picks of the kept rules at each P and m, NOBODY where the rules decide nothing."""
        before: Indices = self.times.best.sel({CHANGE: BEFORE}).values
        return before if self.rules is None else self.times.picks_of(partial(self.rules.choice, self.times.collective))

    @property
    def kept_rules(self) -> str:
        """The kept rules in words."""
        return self.rules.title if self.rules else "the best choices before the change"

    def kept_slowdown(self, when: str = AFTER) -> DataArray:
        """The slowdown of the kept rules against the best choices `before` or `after` the change.

        It is nan where the rules decide nothing.
        """
        return self.times.slowdown(self.kept).sel({CHANGE: when}, drop=True)

    @cached_property
    def sure_changes(self) -> tuple[int, int]:
        """The number of points at which the new choice is surely faster than the old one, and of known points.

        It is sure with a probability of 90 %, given the errors of predictions on measured machines. Points are known if
        the best choice changes, and both choices have times after the change.
        """
        from collwise.studies.reports.sureness import DISCREPANCY
        from collwise.validation.measurement.confidence import SURE, messages_of

        times, sure = self.times, list[bool]()
        seconds = times.seconds.sel({CHANGE: AFTER}).values
        per_node = self.after.processes_per_node or times.processes_per_node
        picks = [times.best.sel({CHANGE: when}).values for when in (BEFORE, AFTER)]
        for i, j in np.argwhere(changes_choice(times)):
            point = times.procs[i], times.message_bytes[j], per_node
            places = [int(each[i, j]) for each in picks]
            both = [times.grid.timed[place] for place in places]
            with suppress(UsageError):  # Mock-ups call the library's collectives, whose messages are not known.
                messages = np.array([messages_of(times.collective, choice, *point) for choice in both])
                if np.isfinite(here := seconds[places, i, j]).all():
                    names = [choice.algorithm for choice in both]
                    sure.append(DISCREPANCY.outlook(names, messages, here)[1].fastest >= SURE)
        return sum(sure), len(sure)

    def limit(self, when: str, choice: Choice | None, procs: int, message_bytes: int) -> tuple[str, float, str, float]:
        """The main limit of a choice at a point, this limit's share of the critical path, and the relief.

        The relief is a change that halves the limit's cause, such as 'latency x0.5', and the choice's time with this
        change relative to its time without the change. Without a limit or relief, texts are '-' and numbers nan.
        """
        if choice is None:
            return "-", np.nan, "-", np.nan
        platform, grid = self.before, self.times.grid
        if when == AFTER:
            platform = self.after.platform
            grid = replace(grid, processes_per_node=self.after.processes_per_node or grid.processes_per_node)
        case = grid.case(choice, procs, message_bytes)
        limit, share, change, ratio = relieved(platform, case)
        return limit, share, "-" if change is None else change.label, ratio

    def frame(self) -> pd.DataFrame:
        """A row per point.

        Columns: `procs`, `message_bytes`; `before` and `after`, the best choices; `changes`, true if another choice is
        best after the change; `before_seconds`, `after_seconds` and their `ratio`; `kept`, the choice of the kept
        rules; `kept_slowdown`, its slowdown on the changed platform; `kept_slowdown_before`, its slowdown before the
        change. If `limits` is true, there are also `limited_before` and `limited_after`, the largest part of the best
        choice's critical path, and `share_before` and `share_after`, the share of this part. `relief_before` and
        `relief_after` are the changes that halve the part's cause, and `relieved_before` and `relieved_after` the
        choice's time with such a change, relative to its time without the change.
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
            "kept": [_label(self.times.choice(pick)) for pick in self.kept.ravel().tolist()],
            "kept_slowdown": self.kept_slowdown().values.flat,
            "kept_slowdown_before": self.kept_slowdown(BEFORE).values.flat,
        }
        for when, best in ((BEFORE, before), (AFTER, after)) if self.limits else ():
            found = zip(*(self.limit(when, best[point], *point) for point in points), strict=True)
            columns |= dict(zip((f"{name}_{when}" for name in _LIMIT_COLUMNS), found, strict=True))
        return pd.DataFrame({name: list(values) for name, values in columns.items()})

    def summary(self) -> list[str]:
        """Sentences on how many choices change, by how much times change, and how slow the kept rules are."""
        from collwise.studies.present.shown import said

        times, every = self.times, self.time_ratio.values
        ratio = every[np.isfinite(every)]
        ratios = zip(times.procs, every, strict=True)
        return said(
            "whatif",
            changed=changes_choice(times).sum(),
            sure=self.sure_changes,
            ratio=ratio,
            median=np.median(ratio) if ratio.size else np.nan,
            unmoved=[procs for procs, row in ratios if (known := row[np.isfinite(row)]).size and (known == 1).all()],
            rules=self.kept_rules,
            kept=summary_of(self.kept_slowdown(), TOLERANCE_PERCENT / 100),
            before=summary_of(self.kept_slowdown(BEFORE), TOLERANCE_PERCENT / 100),
            procs=times.procs,
            sizes=times.message_bytes,
            tolerance=TOLERANCE_PERCENT,
        )

    def figure(self) -> Figure:
        """Maps of the best choices, of the ratio of times and of the kept rules' slowdown."""
        from collwise.studies.figures.whatif import whatif_figure

        title = f"{self.times.collective} on {self.before.title}: {self.what}"
        slowdowns = self.kept_slowdown().values
        return whatif_figure(self.times, self.time_ratio.values, slowdowns, f"{title} ({self.times.maker})")

    @property
    def what(self) -> str:
        """The changes in words."""
        return ", ".join(change.label for change in self.changes)

    def __repr__(self) -> str:
        return f"<WhatIf {self.times.collective}, {self.what}: {' '.join(self.summary()[:1])}>"

    def _repr_html_(self) -> str:
        return str(replace(self, limits=False).frame().to_html(index=False, max_rows=40))


@dataclass(frozen=True, repr=False)
class Sweep:
    """The answer of `sweep`; `crossovers`, `frame`, `summary`, `figure` and `map` show it.

    `times` have the dimension `factor`; `found` are the cross-over points. From one factor to the next, a choice stays
    until it is slower than the best by more than the `tolerance` (0.01: 1 %).
    """

    times: Times
    found: tuple[CrossOver, ...]
    platform: HostPlatform
    factors: Factors
    tolerance: float

    def crossovers(self) -> pd.DataFrame:
        """A row per cross-over point: `procs`, `message_bytes`, `factor`, `below` and `above`, the choices."""
        rows = [
            (*crossing.point, crossing.value, crossing.below.label, crossing.above.label) for crossing in self.found
        ]
        return pd.DataFrame(rows, columns=[PROCS, BYTES, FACTOR, "below", "above"])

    def at(self, procs: int, message_bytes: int) -> list[CrossOver]:
        """The cross-over points of one P and m."""
        return [crossing for crossing in self.found if crossing.point == (procs, message_bytes)]

    def frame(self) -> pd.DataFrame:
        """A row per factor and point: `factor`, `procs`, `message_bytes`, the best `choice`, and its `seconds`."""
        best = self.times.best.transpose(FACTOR, PROCS, BYTES)
        seconds = self.times.best_seconds.transpose(FACTOR, PROCS, BYTES)
        labels = [_label(self.times.choice(index)) for index in best.values.flat]
        index = pd.MultiIndex.from_product([best[dim].values for dim in best.dims], names=best.dims)
        return pd.DataFrame({"choice": labels, "seconds": seconds.values.ravel()}, index).reset_index()

    def limits(self, procs: int, message_bytes: int) -> dict[float, dict[str, float]]:
        """The share of each limit in the best choice's critical path at one point, by factor."""
        best = self.times.best.sel({PROCS: procs, BYTES: message_bytes})
        found = {}
        for factor, choice in zip(self.factors.values, map(self.times.choice, best.values), strict=True):
            if choice is not None:
                case = self.times.grid.case(choice, procs, message_bytes)
                found[factor] = limits_of(self.factors.on(self.platform, factor), case)
        return found

    def unit(self) -> str:
        """The value that a factor of 1 stands for: '25 Gbit/s', or 'that of Grisou' if it is unknown."""
        amount = _amount(self.platform, self.factors.name, 1.0)
        return amount[2:-1] if amount else f"that of {self.platform.title}"

    def summary(self) -> list[str]:
        """A sentence on each cross-over point and its reason, and one on each point without a cross-over."""
        from collwise.studies.present.shown import said

        name, points = self.factors.name.replace("_", " "), []
        for procs, size in self.times.grid.points:
            first = self.times.best.sel({PROCS: procs, BYTES: size}).values[0]
            crossings = [
                (crossing, _amount(self.platform, name, crossing.value), *self._parts(crossing, procs, size))
                for crossing in self.at(procs, size)
            ]
            points.append((f"P = {procs}, m = {format_size(size)}", _label(self.times.choice(first)), crossings))
        span = f"x{self.factors.values[0]:g} to x{self.factors.values[-1]:g}"
        return said("sweep", points=points, name=name, span=span, tolerance=self.tolerance)

    def _parts(self, crossing: CrossOver, procs: int, size: int) -> Iterator[str]:
        """The two largest limits below and above a cross-over point: 'latency 65 %, bandwidth 31 %'."""
        platform = self.factors.on(self.platform, crossing.value)
        for choice in (crossing.below, crossing.above):
            shares = limits_of(platform, self.times.grid.case(choice, procs, size))
            largest = sorted(shares.items(), key=lambda item: -item[1])[:2]
            yield ", ".join(f"{name} {share * 100:.0f} %" for name, share in largest if share > 0)

    def figure(self, procs: int | None = None, message_bytes: int | None = None) -> Figure:
        """The times relative to the best, and the limits of the best choice, over the factor at one point.

        The default is the point with the cross-over nearest to a factor of 1, or the last point if there is none.
        """
        from collwise.studies.figures.whatif import sweep_figure

        grid = self.times.grid
        nearest = min(self.found, key=lambda crossing: abs(np.log(crossing.value)), default=None)
        point = nearest.point if nearest is not None else grid.points[-1]
        procs = int(point[0]) if procs is None else procs
        size = int(point[1]) if message_bytes is None else message_bytes
        if (procs, size) not in grid.points:
            raise UsageError(f"the sweep has no point P = {procs}, m = {format_size(size)}")
        title = f"{self.what}, P = {procs}, m = {format_size(size)} ({self.times.maker})"
        times = with_left_out(self.times.only(procs=[procs], message_bytes=[size]), self.platform, self.factors)
        return sweep_figure(times, self.at(procs, size), self.limits(procs, size), self._axis, title)

    def map(self, message_bytes: int | None = None) -> Figure:
        """The best choice over the factor and P, by default for the largest message size."""
        from collwise.studies.figures.whatif import sweep_map

        size = self.times.message_bytes[-1] if message_bytes is None else message_bytes
        title = f"Best choice: {self.what}, m = {format_size(size)} ({self.times.maker})"
        return sweep_map(self.times.only(message_bytes=[size]), self.found, self._axis, title)

    @property
    def _axis(self) -> str:
        return f"{self.factors.name.replace('_', ' ')}, relative to {self.unit()}"

    @property
    def what(self) -> str:
        """The collective, the platform, and the changes that hold at all factors."""
        others = "".join(f", {change.label}" for change in self.factors.others)
        return f"{self.times.collective} on {self.platform.title}{others}"

    def __repr__(self) -> str:
        return f"<Sweep {self.times.collective} over {self.factors.name}: {len(self.found)} cross-over points>"

    def _repr_html_(self) -> str:
        return str(self.crossovers().to_html(index=False, max_rows=40))


_Answer = TypeVar("_Answer", WhatIf, Sweep)


class _ByCollective(dict[str, _Answer], Generic[_Answer]):
    """The answers of one call, by collective."""

    def frame(self) -> pd.DataFrame:
        """The rows of all answers, with their `collective` first."""
        return _joined({name: item.frame() for name, item in self.items()})

    def summary(self) -> list[str]:
        """The sentences of all answers, each with its collective if there are several."""
        several = len(self) > 1
        return [f"{name}: {line}" if several else line for name, item in self.items() for line in item.summary()]

    @property
    def failed(self) -> list[Timing]:
        """The simulations that failed."""
        return [timing for item in self.values() for timing in item.times.failed]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        return "".join(item._repr_html_() for item in self.values())


class WhatIfs(_ByCollective[WhatIf]):
    """The answers of `whatif` for several collectives, by name."""


class Sweeps(_ByCollective[Sweep]):
    """The choices of each collective over many factors of a change."""

    def crossovers(self) -> pd.DataFrame:
        """A row per cross-over point; see `Sweep.crossovers`."""
        return _joined({name: sweep.crossovers() for name, sweep in self.items()})


def _joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The frames of several collectives as one, with the `collective` first."""
    return pd.concat(
        [frame.assign(collective=name)[["collective", *frame]] for name, frame in frames.items()], ignore_index=True
    )


def _label(choice: Choice | None) -> str:
    return "-" if choice is None else choice.label


def _amount(platform: HostPlatform, name: str, factor: float) -> str:
    """The rate or latency that a factor stands for, as ' (7.07 Gbit/s)'; empty for other changes or if nodes differ."""
    base = getattr(platform, "base", platform)
    if not isinstance(base, Platform):
        return ""
    latency, rate = base.route
    if base.ports is not None:
        latency, rate = base.ports.latency_seconds, base.ports.bytes_per_second
    if name == "bandwidth":
        return f" ({rate * factor * 8e-9:.3g} Gbit/s)"
    if name == "memory" and base.memory_bytes_per_second is not None:
        return f" ({base.memory_bytes_per_second * factor * 1e-9:.3g} GB/s)"
    return f" ({latency * factor * 1e6:.3g} us)" if name == "latency" else ""
