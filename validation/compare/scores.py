"""Scores of times and deciders against reference times (`right`): errors, ranks, and slowdowns of picks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, TIE, fastest, picked_seconds
from collwise.validation.compare.deciders import Decider
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.slowdown import SlowdownSummary, summary_of
from collwise.validation.times.times import Times

COLUMNS = (
    *("cases", "median_error", "mean_error", "bias", "ninetieth_error", "worst_error"),
    *("tau", "points", "best_picks", "mean_slowdown", "worst_slowdown"),
)
"""The columns of `Scores.table` after those that identify its rows."""
CLOCK = 1e-6
"""Simulated times that differ by less than this share count as equal, since the clock is not finer."""
GOOD = 0.01
"""The mean slowdown up to which the picks of a source are good."""


@dataclass(frozen=True)
class Errors:
    """Statistics of relative errors e (0.1: 10 %).

    `median`, `mean` and `ninetieth` (the 90th percentile) are of |e|; `bias` is the mean e, `worst` the e with the
    largest |e|.
    """

    count: int
    median: float
    mean: float
    bias: float
    ninetieth: float
    worst: float

    @classmethod
    def of(cls, errors: ArrayLike) -> Errors | None:
        """The summary of an array without its nans; None if no error is left."""
        values = np.asarray(errors, dtype=float)
        known = values[~np.isnan(values)]
        if not known.size:
            return None
        size = np.abs(known)
        return cls(
            count=int(known.size),
            median=float(np.median(size)),
            mean=float(np.mean(size)),
            bias=float(np.mean(known)),
            ninetieth=float(np.percentile(size, 90)),
            worst=float(known[np.argmax(size)]),
        )


class Ranks(NamedTuple):
    """The agreement of two sources on the order of choices at a point. A number is nan if there is no pair to count.

    `tau` is Kendall's tau-b of the times as they are. `tau_distinguishable` counts only pairs of choices whose
    reference times differ by more than their intervals: (pairs in the same order - pairs in the opposite order) /
    pairs. `distinguishable` is the share of these pairs.
    """

    tau: float
    tau_distinguishable: float
    distinguishable: float


def distinguishable(seconds: Any, half_width: Any, others: Any, others_half_width: Any) -> Any:
    """True if means differ by more than the interval of their difference: |a - b| > sqrt(h_a^2 + h_b^2)."""
    return abs(seconds - others) > np.hypot(half_width, others_half_width)


def ranks_of(seconds: Array, half_widths: Array, others: Array) -> Ranks:
    """The agreement of another source with the reference on the order of choices at a point; nan without pairs."""
    known = np.isfinite(seconds) & np.isfinite(others)
    first, second = np.triu_indices(int(known.sum()), 1)
    right, widths, theirs = (np.asarray(values, dtype=float)[known] for values in (seconds, half_widths, others))
    if not first.size:
        return Ranks(math.nan, math.nan, math.nan)
    order, other = np.sign(right[first] - right[second]), np.sign(theirs[first] - theirs[second])
    pairs = math.sqrt(np.count_nonzero(order) * np.count_nonzero(other))
    clear = distinguishable(right[first], widths[first], right[second], widths[second])
    tied = np.abs(theirs[first] - theirs[second]) <= TIE * np.maximum(theirs[first], theirs[second])
    signs = np.where(tied, 0.0, order * other)[clear]
    return Ranks(
        float(np.sum(order * other)) / pairs if pairs else math.nan,
        float(np.mean(signs)) if signs.size else math.nan,
        float(np.mean(clear)),
    )


class Picked(NamedTuple):
    """A source's pick at a point, with its seconds and its slowdown against the best, by the reference times.

    Both numbers are nan if the reference times do not have the pick.
    """

    choice: Choice | None
    seconds: float
    slowdown: float

    @property
    def name(self) -> str:
        """The algorithm's name; '-' if nothing is picked."""
        return "-" if self.choice is None else self.choice.algorithm

    @property
    def label(self) -> str:
        """The choice's label; '-' if nothing is picked."""
        return "-" if self.choice is None else self.choice.label


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of other sources (Times or deciders), by title, against the times of `right`, for one collective.

    `errors` are the relative errors of every choice's time in Times (0.1: 10 % too long). `picks` are indices in
    `right.grid.timed`, or NOBODY where a source picks nothing. A decider picks its choice; Times pick their fastest
    choice (the first of equals) among those that `right` has a time for. `slowdown` is the slowdown of the picks by the
    times of `right`, against the best of all choices that compete.
    """

    right: Times
    others: Mapping[str, Times | Decider] = field(default_factory=dict)

    @cached_property
    def times(self) -> dict[str, Times]:
        """The other sources that are times, each on the grid of `right`."""
        return {name: other.of_grid(self.right.grid) for name, other in self.others.items() if isinstance(other, Times)}

    @cached_property
    def deciders(self) -> dict[str, Decider]:
        """The other sources that are deciders."""
        return {name: other for name, other in self.others.items() if not isinstance(other, Times)}

    @cached_property
    def errors(self) -> dict[str, xr.DataArray]:
        """The relative errors of the times of choices that compete; nan if the source or `right` has no time."""
        right = self.right.seconds[: len(self.right.choices)]
        return {name: (times.seconds[: len(right)] / right - 1).where(right > 0) for name, times in self.times.items()}

    @cached_property
    def picks(self) -> dict[str, xr.DataArray]:
        """The indices of the picks."""
        found: dict[str, xr.DataArray] = {}
        for name in self.others:
            if name in self.times:
                both = np.isfinite(self.right.array)
                picked = fastest(np.where(both, self.times[name].array, np.nan))
            else:
                picked = self.right.picks_of(partial(self.deciders[name].choice, self.right.collective))
            found[name] = self.right.best.copy(data=self.right.everywhere(picked))
        return found

    @cached_property
    def slowdown(self) -> dict[str, xr.DataArray]:
        """The slowdowns of the picks."""
        return {name: self.right.slowdown(picks) for name, picks in self.picks.items()}

    @cached_property
    def runner_up_slowdown(self) -> Array:
        """The slowdown of the runner-up, the best choice of another algorithm, at each (P, m); nan without one."""
        right = self.right
        names, best = np.array([choice.algorithm for choice in right.choices]), right.best_seconds.values
        same = names[:, None, None] == names[right.best.values][None]
        other = np.min(np.where(same | np.isnan(right.array), np.inf, right.array), axis=0, initial=np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(np.isfinite(other) & (best > 0), other / best - 1, np.nan)

    def pick(self, title: str | None, i: int, j: int) -> Picked:
        """The pick of the source with this title at the place (i, j) of P and m; without a title, the best choice.

        If an untuned library runs an algorithm that is not in the catalogue, the pick has only the algorithm's name.
        """
        place = int((self.right.best if title is None else self.picks[title]).values[i, j])
        if place == NOBODY:
            library, named = self.deciders.get(title or ""), None
            if isinstance(library, Baseline):
                point = self.right.procs[i], self.right.message_bytes[j]
                decision = library.decide(self.right.collective, *point)
                named = decision.choice or Choice(decision.algorithm)
            return Picked(named, math.nan, math.nan)
        seconds = float(self.right.seconds.values[place, i, j])
        lost = 0.0 if title is None else float(self.slowdown[title].values[i, j])
        return Picked(self.right.grid.timed[place], seconds, lost)

    def places(self, *titles: str) -> list[tuple[int, int]]:
        """The places (i, j) of P and m at which the best choice and these sources' picks are known."""
        shown = self.right.best.values != NOBODY
        for title in titles:
            shown = shown & (self.picks[title].values != NOBODY)
        return [(int(i), int(j)) for i, j in np.argwhere(shown)]

    @cached_property
    def single(self) -> int:
        """The number of points at which one choice at most has a time, besides the library's own decision."""
        known = np.isfinite(self.right.seconds.values)
        own = np.array([choice == LIBRARY_DECIDES for choice in self.right.grid.timed])
        return int((known.any(axis=0) & (known[~own].sum(axis=0) <= 1)).sum())

    @cached_property
    def is_alone(self) -> bool:
        """True if only one choice has a time at each point, so that picks say nothing."""
        return self.single == len(self.places())

    def summary(self, title: str, tolerance: float = TIE) -> SlowdownSummary:
        """The summary of the slowdowns of a source's picks; picks slower by at most `tolerance` count as the best."""
        return summary_of(self.slowdown[title].values, tolerance)

    def without(self, *titles: str) -> Scores:
        """The scores without the sources with these titles."""
        return Scores(self.right, {name: other for name, other in self.others.items() if name not in titles})

    def only(self, keep: Callable[[Choice], bool]) -> Scores:
        """The scores with only some of the competing choices."""
        return Scores(self.right.only(keep), self.others)

    def errors_of(self, title: str) -> Errors | None:
        """The summary of a source's errors; None for a decider, and if there are no errors."""
        return Errors.of(self.errors[title].values) if title in self.errors else None

    def worst_error_at(self, title: str) -> tuple[Choice, int, int]:
        """The choice, P and m of the largest error. Raises KeyError for a decider, ValueError without errors."""
        errors = np.abs(self.errors[title].values)
        a, i, j = np.unravel_index(int(np.nanargmax(errors)), errors.shape)
        return self.right.choices[a], self.right.procs[i], self.right.message_bytes[j]

    def unpredicted(self, title: str) -> int:
        """The number of reference times that the source does not have, although it knows their algorithms."""
        names = set(self._given(title).grid.names)
        known = [place for place, choice in enumerate(self.right.choices) if choice.algorithm in names]
        right, theirs = (np.isfinite(times.array[known]) for times in (self.right, self.times[title]))
        return int((right & ~theirs).sum())

    def unknown(self, title: str) -> tuple[str, ...]:
        """The algorithms of the reference times that the source does not know at all."""
        names = set(self._given(title).grid.names)
        return tuple(name for name in self.right.grid.names if name not in names)

    def _given(self, title: str) -> Times:
        given = self.others[title]
        assert isinstance(given, Times)
        return given

    def table(self, rows: Sequence[str] = ("source",)) -> pd.DataFrame:
        """A row for each source, or for each combination of values in the columns that `rows` names.

        After these columns come COLUMNS. `rows` can have `platform`, `collective`, `reference` (the source of the
        reference times), `source`, `procs`, `message_bytes` and any further dimension of the times.
        """
        return AllScores([self]).table(rows)

    def trusted(self) -> pd.DataFrame:
        """The source whose picks have the smallest slowdown, for each size; see `AllScores.trusted`."""
        return AllScores([self]).trusted()

    def error_rows(self) -> pd.DataFrame:
        """A row for each error of a source, with `choice`, `error` and all columns that `table` accepts as `rows`."""
        frames = []
        for title, errors in self.errors.items():
            found = errors.drop_vars("choice").to_series().rename("error").dropna().reset_index()
            choices = [self.right.choices[place] for place in found["choice"]]
            frames.append(found.assign(choice=choices, **_facts(self, title)))
        return pd.concat(frames) if frames else pd.DataFrame(columns=[*_named(self), "choice", "error"])

    def pick_rows(self) -> pd.DataFrame:
        """A row for each point and source, with the source's pick, its `Ranks` and all columns accepted as `rows`.

        `pick` and `best` are choices or None. `slowdown` is nan without a pick. `certain` is true if the reference
        times of pick and best choice differ by more than their intervals. `measured` is the number of choices with a
        reference time, and `candidates` the number of these among which the source could pick, 0 for a decider.
        """
        right, frames = self.right, []
        known, best, widths = np.isfinite(right.array), right.best.values, right.half_widths.values
        for title, found in self.slowdown.items():
            picks = self.picks[title].values
            certain = distinguishable(
                right.at(picks).values, picked_seconds(widths, picks), right.best_seconds, picked_seconds(widths, best)
            )
            both = known & np.isfinite(self.times[title].array) if title in self.times else np.zeros_like(known)
            columns = {
                "pick": [right.choice(int(place)) for place in picks.flat],
                "best": [right.choice(int(place)) for place in best.flat],
                "certain": np.ravel(certain),
                "candidates": both.sum(axis=0).ravel(),
                "measured": known.sum(axis=0).ravel(),
                **dict(zip(Ranks._fields, np.transpose(_ranks(self, title)), strict=True)),
            }
            frames.append(found.to_series().rename("slowdown").reset_index().assign(**columns, **_facts(self, title)))
        found = pd.concat(frames) if frames else pd.DataFrame()
        return found.reindex(columns=[*_named(self), *found.columns.difference(_named(self), sort=False)])

    def __repr__(self) -> str:
        return f"<Scores of {self.right.collective} by {self.right.title}: {', '.join(self.others)}>"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>".replace("<Scores", "Scores").replace(">:", ":") + str(
            self.table().to_html(index=False)
        )


class AllScores(dict[str, Scores]):
    """Scores of several collectives, by name."""

    def __init__(self, scores: Iterable[Scores]) -> None:
        super().__init__({score.right.collective: score for score in scores})

    def table(self, rows: Sequence[str] = ("collective", "source")) -> pd.DataFrame:
        """A row for each collective and source, or for each combination of values of `rows`; see `Scores.table`."""
        known = dict.fromkeys(name for score in self.values() for name in _named(score))
        if unknown := [name for name in rows if name not in known]:
            raise UsageError(f"no rows come from '{unknown[0]}'; valid: {', '.join(known)}")
        by = [*rows]
        errors = dict(iter(self.error_rows().groupby(by, sort=False)))
        found = []
        for key, here in self.pick_rows().groupby(by, sort=False):
            summary = Errors.of(errors[key]["error"]) if key in errors else None
            costs = summary_of(here["slowdown"], TIE)
            said = (0, *(math.nan,) * 5) if summary is None else (*astuple(summary)[:-1], abs(summary.worst))
            picks = (costs.points, costs.best_chosen, costs.mean, costs.worst)
            found.append((*key, *said, here["tau"].mean(), *picks))
        return pd.DataFrame(found, columns=[*by, *COLUMNS])

    def error_rows(self) -> pd.DataFrame:
        """The error rows of all collectives; see `Scores.error_rows`."""
        return _together(scores.error_rows() for scores in self.values())

    def pick_rows(self) -> pd.DataFrame:
        """The pick rows of all collectives; see `Scores.pick_rows`."""
        return _together(scores.pick_rows() for scores in self.values())

    def trusted(self) -> pd.DataFrame:
        """The source with the best picks for each collective and size. Sources with equal picks are ranked by errors.

        The columns are those of `table` for this source, and `good_choices`, the sources whose picks are on average at
        most 1 % slower than the best choices.
        """
        order, by = ["mean_slowdown", "mean_error"], ["collective", "message_bytes"]
        groups = self.table([*by, "source"]).dropna(subset=order).groupby(by, sort=False)
        best = groups.apply(lambda rows: rows.sort_values(order, kind="stable").iloc[0], include_groups=False)
        good = groups.apply(
            lambda rows: ", ".join(rows.source[rows.mean_slowdown <= GOOD]) or "none", include_groups=False
        )
        return best.assign(good_choices=good).reset_index()

    def __repr__(self) -> str:
        return f"<Scores of {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return str(self.table().to_html(index=False))


def compare(right: Times, *others: Times | Decider) -> Scores:
    """Compares other times and deciders with the times of `right`."""
    named: dict[str, Times | Decider] = {}
    for other in others:
        if isinstance(other, Times) and other.collective != right.collective:
            raise UsageError(f"times of {other.collective} cannot be compared with those of {right.collective}")
        same = sum(name == other.title or name.startswith(f"{other.title} (") for name in named)
        named[f"{other.title} ({same + 1})" if same else other.title] = other
    return Scores(right, named)


def _together(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(list(frames), ignore_index=True)


def _facts(scores: Scores, title: str) -> dict[str, object]:
    right = scores.right
    return {
        "platform": right.platform, "collective": right.collective, "reference": right.title, "source": title,
    }  # fmt: skip


def _named(scores: Scores) -> list[str]:
    """The columns that tables can have as `rows`."""
    return [*_facts(scores, ""), *(str(dim) for dim in scores.right.best.dims)]


def _ranks(scores: Scores, title: str) -> list[Ranks]:
    """The agreement of ranks at every point, in the order of the array; nan for a decider."""
    count = scores.right.best.size
    if title not in scores.times:
        return [Ranks(math.nan, math.nan, math.nan)] * count
    right, other = (times.array.reshape(len(scores.right.choices), -1) for times in (scores.right, scores.times[title]))
    widths = scores.right.competing(scores.right.half_widths).reshape(right.shape)
    return [ranks_of(right[:, k], widths[:, k], other[:, k]) for k in range(count)]
