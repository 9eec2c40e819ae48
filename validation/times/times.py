"""Times of a collective's choices in one labelled array, whether they are simulated, measured or predicted."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import counted
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY, Indices, fastest, picked_seconds
from collwise.simulator.timing import Case, Timing, named_parameters
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import AGREEMENT
from collwise.validation.times.grid import CASE_COLUMNS, Grid
from collwise.validation.times.slowdown import slowdown

if TYPE_CHECKING:
    from collwise.models.interface import CollectiveModel
    from collwise.validation.compare.deciders import Decider

CHOICE, PROCS, BYTES = "choice", "procs", "message_bytes"
POINT = (PROCS, BYTES)
"""The dimensions of points; others, such as the factor of a change, may follow."""
MEASURED_UNDER = "times measured under"
"""The beginning of `made_by` of measured times in decision tables. The MPI library follows."""
_NEAR_SIZES, _NEAR_PROCS = 4.0, 2.0
"""Points are nearby if their sizes, or their process counts, differ at most by this factor."""


class State(IntEnum):
    """The state of a choice at a point, such as the reason why there is no time."""

    TIMED = 0
    FILLED = 1
    """The time is from another source, which agrees with the times at nearby points."""
    LEFT_OUT = 2
    """The choice is slower than the fastest one by more than the margin."""
    FAILED = 3
    NO_FORMULA = 4
    NOT_ASKED = 5
    DOES_NOT_RUN = 6


@dataclass(frozen=True, eq=False)
class Times:
    """Times of the choices of a grid.

    `data` has the variables `seconds` (nan where there is no time), `half_width_seconds` of their confidence intervals
    (0: exact, infinite: unknown) and `state`, over the dimensions choice (`grid.timed`), procs, message_bytes and
    possibly others, such as `factor`. Measured times have further variables: `repetitions`, `median_seconds` and the
    like. `source` is simulated, measured or predicted. `maker` is the engine, MPI library or model.

    If the times come from a model, `between` predicts times between the grid's sizes and process counts. Choices that
    are slower than the best by more than the `margin` (0.01: 1 %) may be left out (None: none is). `max_procs` is the
    platform's largest process count, if it is known. `filled_by` is the maker of the times that fill gaps. `facts` say
    where the times come from. Messages shorter than the fact `trusted_from` decide nothing.
    """

    grid: Grid
    platform: str
    source: str
    maker: str
    data: xr.Dataset
    between: CollectiveModel | None = None
    margin: float | None = None
    max_procs: int | None = None
    filled_by: str = ""
    notes: tuple[str, ...] = ()
    failed: tuple[Timing, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_timings(
        cls,
        grid: Grid,
        timings: Mapping[Case, Timing],
        platform: str,
        source: str,
        maker: str,
        *,
        margin: float | None = None,
        **others: Any,
    ) -> Times:
        """The times from timings of the grid's cases. `others` are fields of the class."""
        found = {
            (a, i, j): timing
            for a, choice in enumerate(grid.timed)
            for i, procs in enumerate(grid.procs)
            for j, size in enumerate(grid.message_bytes)
            if (timing := timings.get(grid.case(choice, procs, size))) is not None
        }
        measured = _MEASURED if any(item.repetitions != 1 for item in found.values()) else ()
        state = _without_times(grid, margin)
        values: dict[str, Any] = {name: np.full(state.shape, np.nan) for name in ("seconds", "half_width_seconds")}
        values["state"] = state
        values |= {name: np.full(state.shape, np.nan) for name in measured}
        for place, timing in found.items():
            state[place] = State.TIMED if timing.ok else State.FAILED
            for name in measured:
                values[name][place] = float(getattr(timing, name))
            if timing.ok:
                width = timing.half_width_seconds
                values["seconds"][place] = timing.seconds
                values["half_width_seconds"][place] = width if math.isfinite(width) else math.inf
        failed = tuple(dict.fromkeys(timing for timing in found.values() if not timing.ok))
        return cls.of_values(grid, values, platform, source, maker, margin=margin, failed=failed, **others)

    @classmethod
    def of_seconds(
        cls, grid: Grid, seconds: Array, platform: str, source: str, maker: str, missing: State, **others: Any
    ) -> Times:
        """Exact times of shape (choices, P, m), nan where there is none.

        `missing` is the state where a choice runs but has no time.
        """
        state = np.where(np.isfinite(seconds), State.TIMED, missing).astype(np.int8)
        state[np.isnan(seconds) & ~running(grid)] = State.DOES_NOT_RUN
        values = {"seconds": seconds, "half_width_seconds": np.where(np.isnan(seconds), np.nan, 0.0), "state": state}
        return cls.of_values(grid, values, platform, source, maker, **others)

    @classmethod
    def of_values(
        cls, grid: Grid, values: Mapping[str, Any], platform: str, source: str, maker: str, **others: Any
    ) -> Times:
        """The times with these arrays by variable, each of shape (choices, P, m)."""
        return cls(grid, platform, source, maker, dataset(grid, values), **others)

    @property
    def made_by(self) -> str:
        """A phrase that names the maker of the times, as it stands in decision tables."""
        if self.is_exact:
            return self.maker
        filled = bool((self.state == State.FILLED).any())
        return f"{MEASURED_UNDER} {self.maker}" + (f", gaps filled by {self.filled_by}" if filled else "")

    @property
    def title(self) -> str:
        """The name of the times in tables and figures: their maker, or the name of the model."""
        return self.maker.removeprefix("model ")

    @property
    def fitted_to(self) -> str:
        """The maker of the times to which the model of predicted times was fitted; empty if the model names none."""
        return getattr(getattr(self.between, "parameters", None), "made_by", "")

    @property
    def collective(self) -> str:
        """The collective's name."""
        return self.grid.collective

    @property
    def processes_per_node(self) -> int:
        """The number of processes on each node."""
        return self.grid.processes_per_node

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices that compete, which are the first ones of the array."""
        return self.grid.choices

    @property
    def procs(self) -> tuple[int, ...]:
        """The process counts, in their order in the array."""
        return self.grid.procs

    @property
    def message_bytes(self) -> tuple[int, ...]:
        """The message sizes in bytes, in their order in the array."""
        return self.grid.message_bytes

    @property
    def seconds(self) -> xr.DataArray:
        """Seconds of all choices, also of those that do not compete."""
        return self.data["seconds"]

    @property
    def half_widths(self) -> xr.DataArray:
        """Half-widths of the confidence intervals in seconds; 0: exact, infinite: unknown."""
        return self.data["half_width_seconds"]

    @property
    def state(self) -> xr.DataArray:
        """The state of each choice at each point, as values of `State`."""
        return self.data["state"]

    @property
    def is_exact(self) -> bool:
        """True if another run would give the same times. Simulations and models are exact, measurements not."""
        return self.source != "measured"

    @property
    def has_intervals(self) -> bool:
        """True if the confidence intervals of all times of competing choices are known."""
        return not bool(np.isinf(self.competing(self.half_widths)).any())

    @cached_property
    def array(self) -> Array:
        """Seconds of the choices that compete, with the axes choice, procs, message_bytes and then any others."""
        return self.competing(self.seconds)

    def competing(self, values: xr.DataArray) -> Any:
        """The values of a variable for the choices that compete, as an array with the axes of `array`."""
        return values.values[: len(self.choices)]

    @cached_property
    def best(self) -> xr.DataArray:
        """The index of the fastest competing choice (the first of equals); NOBODY where no choice has a time."""
        return self._at_points(fastest(self.array))

    @cached_property
    def best_seconds(self) -> xr.DataArray:
        """The least seconds of the competing choices; nan where no choice has a time."""
        least = np.min(np.where(np.isnan(self.array), np.inf, self.array), axis=0, initial=np.inf)
        return self._at_points(np.where(np.isfinite(least), least, np.nan))

    def at(self, picks: xr.DataArray | Indices) -> xr.DataArray:
        """Seconds of the choices with these indices in `grid.timed`, at each point; nan for NOBODY."""
        return self._at_points(picked_seconds(self.seconds.values, self.everywhere(picks)))

    def everywhere(self, picks: xr.DataArray | Indices) -> Indices:
        """Picks with the dimensions P and m, and possibly others, broadcast to all dimensions except choice."""
        shape, found = self.seconds.shape[1:], np.asarray(picks)
        return np.broadcast_to(found.reshape(*found.shape, *[1] * (len(shape) - found.ndim)), shape)

    def slowdown(self, picks: xr.DataArray | Indices | None = None) -> xr.DataArray:
        """The slowdowns of picks (indices), or of all choices, against the best; nan without a time."""
        if picks is not None:
            return self._at_points(slowdown(self.at(picks).values, self.best_seconds.values))
        return self.seconds.copy(data=slowdown(self.seconds.values, self.best_seconds.values[None]))

    @property
    def more_dims(self) -> tuple[str, ...]:
        """The dimensions besides choice, P and m."""
        return tuple(str(dim) for dim in self.seconds.dims if dim not in (CHOICE, *POINT))

    def _at_points(self, values: Array | Indices) -> xr.DataArray:
        dims = (*POINT, *self.more_dims)
        return xr.DataArray(values, {dim: self.data[dim] for dim in dims}, dims)

    def choice(self, index: int) -> Choice | None:
        """The choice with this index in `grid.timed`; None for NOBODY."""
        return None if index == NOBODY else self.grid.timed[index]

    def best_choice(self, procs: int, message_bytes: int) -> Choice | None:
        """The fastest competing choice at a point of the grid; the times must have no further dimensions."""
        return self.choice(int(self.best.values[self.procs.index(procs), self.message_bytes.index(message_bytes)]))

    def index_of(self, choice: Choice | None) -> int:
        """The index of a choice in `grid.timed`; NOBODY if it is not among them."""
        return self._places.get(choice, NOBODY) if choice is not None else NOBODY

    @cached_property
    def _places(self) -> dict[Choice, int]:
        return {choice: place for place, choice in enumerate(self.grid.timed)}

    def picks_of(self, choice_at: Callable[[int, int], Choice | None]) -> Indices:
        """The indices of the choices that a function of P and m returns, shape (P, m); NOBODY for untimed choices."""
        found = [[self.index_of(choice_at(procs, size)) for size in self.message_bytes] for procs in self.procs]
        return np.array(found, dtype=np.int64).reshape(len(self.procs), len(self.message_bytes))

    def seconds_of(self, choice: Choice, procs: int, message_bytes: int) -> float:
        """Seconds of a choice at a point of the grid; nan where there is no time."""
        return self._value(self.seconds, choice, procs, message_bytes)

    def half_width_of(self, choice: Choice, procs: int, message_bytes: int) -> float:
        """Half-width of the confidence interval of a choice at a point of the grid, seconds; nan without a time."""
        return self._value(self.half_widths, choice, procs, message_bytes)

    def state_of(self, choice: Choice, procs: int, message_bytes: int) -> State:
        """The state of a choice at a point of the grid."""
        found = self._value(self.state, choice, procs, message_bytes)
        return State.NOT_ASKED if math.isnan(found) else State(int(found))

    def _value(self, values: xr.DataArray, choice: Choice, procs: int, message_bytes: int) -> float:
        place = self.index_of(choice)
        if place == NOBODY or procs not in self.procs or message_bytes not in self.message_bytes:
            return math.nan
        return float(values.values[place, self.procs.index(procs), self.message_bytes.index(message_bytes)])

    def at_or_below(self, procs: int, message_bytes: int) -> tuple[int, int]:
        """The grid's largest P and m not above the given ones, or the first ones if all are above."""
        return _at_or_below(self.procs, procs), _at_or_below(self.message_bytes, message_bytes)

    def at_point(self, procs: int, message_bytes: int) -> dict[Choice, float]:
        """Seconds of all choices that have a time at a point of the grid."""
        i, j = self.procs.index(procs), self.message_bytes.index(message_bytes)
        found = zip(self.grid.timed, self.seconds.values[:, i, j].tolist(), strict=True)
        return {choice: seconds for choice, seconds in found if not math.isnan(seconds)}

    def only(
        self,
        keep: Callable[[Choice], bool] | None = None,
        procs: Collection[int] | None = None,
        message_bytes: Collection[int] | None = None,
    ) -> Times:
        """The times of only some competing choices, process counts and sizes (None: all).

        Choices that do not compete stay.
        """
        grid = self.grid if keep is None else self.grid.only(keep)
        some = tuple(item for item in self.procs if procs is None or item in procs)
        sizes = tuple(item for item in self.message_bytes if message_bytes is None or item in message_bytes)
        return self.of_grid(replace(grid, procs=some, message_bytes=sizes))

    def of_grid(self, grid: Grid) -> Times:
        """The times of another grid's choices and points; NOT_ASKED where there are no times."""
        places, wanted = [self.index_of(choice) for choice in grid.timed], _coords(grid)
        if NOBODY not in places and {*grid.procs} <= {*self.procs} and {*grid.message_bytes} <= {*self.message_bytes}:
            points = {name: wanted[name] for name in POINT}
            return replace(self, grid=grid, data=self.data.isel({CHOICE: places}).sel(points))
        missing = {name: np.nan for name in self.data.data_vars} | {"state": State.NOT_ASKED}
        data = self.data.reindex(wanted, fill_value=missing)
        runs = xr.DataArray(running(grid), {name: data[name] for name in wanted}, tuple(wanted))
        state = data["state"].where((data["state"] != State.NOT_ASKED) | runs, State.DOES_NOT_RUN)
        return replace(self, grid=grid, data=data.assign(state=state.astype(np.int8)))

    def complete(self) -> Times:
        """The times themselves. Raises CollwiseError if a case failed."""
        if self.failed:
            first = self.failed[0]
            raise CollwiseError(f"{counted(len(self.failed), 'case')} failed; first: {first.case}: {first.error}")
        return self

    def by_algorithm(self) -> Times:
        """The times, reordered so that the competing choices of each algorithm are adjacent."""
        return self.of_grid(self.grid.by_algorithm())

    def with_facts(self, **more: Any) -> Times:
        """The times with further facts."""
        return replace(self, facts={**self.facts, **more})

    def trusted(self) -> Times:
        """The times of messages that are long enough to decide, according to the fact `trusted_from`."""
        least = self.facts.get("trusted_from", 0)
        return self.only(message_bytes=[size for size in self.message_bytes if size >= least]) if least else self

    def where(self, mask: ArrayLike) -> Times:
        """The times where a mask, broadcast over all times, is True; NOT_ASKED elsewhere."""
        kept = np.broadcast_to(np.asarray(mask), self.seconds.shape)
        state = self.state.where(kept | (self.state > State.FILLED), State.NOT_ASKED)
        seconds, widths = self.seconds.where(kept), self.half_widths.where(kept)
        data = self.data.assign(seconds=seconds, half_width_seconds=widths, state=state.astype(np.int8))
        return replace(self, data=data)

    def known_to(self, other: Times) -> Times:
        """The times where another Times also has a time."""
        return self.where(np.isfinite(other.of_grid(self.grid).seconds))

    def decider(self) -> Decider:
        """The best choices as a decider. Between points of the grid, the next lower point's choice is taken."""
        from collwise.validation.compare.deciders import Deciding

        def best(collective: str, procs: int, message_bytes: int) -> Choice | None:
            known = collective == self.collective
            return self.best_choice(*self.at_or_below(procs, message_bytes)) if known else None

        return Deciding(f"best of {self.title}", best)

    def with_times(self, other: Times) -> Times:
        """Adds the choices that another Times of the same points has and this one lacks. They do not compete."""
        more = [choice for choice in other.grid.timed if self.index_of(choice) == NOBODY]
        places = [(procs, size, choice) for choice in more for procs, size in self.grid.points]
        grid = replace(self.grid, besides=tuple(dict.fromkeys([*self.grid.besides, *places])))
        added = other.data.isel({CHOICE: [other.index_of(choice) for choice in more]})
        known = [str(name) for name in self.data.data_vars if name in added]
        return replace(self, grid=grid, data=xr.concat([self.data[known], added[known]], CHOICE))

    def filled(self, other: Times, agreement: float = AGREEMENT) -> Times:
        """The times with gaps filled from another source, if this source agrees with the times that are known nearby.

        The times nearby are those of the same choice at the next smaller and larger size, if at most a factor of 4
        away, and at the next smaller and larger P, if at most a factor of 2 away. The source fills the gap if it has a
        time at any of these points, and if it differs at none by more than the share `agreement`. The largest
        difference is the relative half-width of the filled time's interval.
        """
        procs, sizes = {*self.procs, *other.procs}, {*self.message_bytes, *other.message_bytes}
        here = self.of_grid(replace(self.grid, procs=tuple(sorted(procs)), message_bytes=tuple(sorted(sizes))))
        data = here.data.copy(deep=True)
        seconds, widths, state = (data[name].values for name in ("seconds", "half_width_seconds", "state"))
        for a, i, j in np.argwhere(np.isin(here.state.values, (State.NOT_ASKED, State.FAILED))):
            theirs = partial(other.seconds_of, here.grid.timed[a])
            source = theirs(here.procs[i], here.message_bytes[j])
            differences = [
                abs(near / float(here.seconds.values[a, k, n]) - 1)
                for k, n in here.nearby(a, i, j)
                if not math.isnan(near := theirs(here.procs[k], here.message_bytes[n]))
            ]
            if not math.isnan(source) and differences and max(differences) <= agreement:
                seconds[a, i, j], widths[a, i, j] = source, max(differences) * source
                state[a, i, j] = State.FILLED
        return replace(here, data=data, filled_by=other.maker, facts={**self.facts, "filled_from": other.source})

    def nearby(self, a: int, i: int, j: int) -> list[tuple[int, int]]:
        """The points next to a choice's gap at which the choice has a time, as indices of P and m."""
        timed = (self.state.values[a] == State.TIMED) & (self.seconds.values[a] > 0)
        sizes = [(self.message_bytes[n], (i, n)) for n in np.flatnonzero(timed[i]).tolist()]
        procs = [(self.procs[k], (k, j)) for k in np.flatnonzero(timed[:, j]).tolist()]
        return [*_beside(self.message_bytes[j], sizes, _NEAR_SIZES), *_beside(self.procs[i], procs, _NEAR_PROCS)]

    def frame(self) -> pd.DataFrame:
        """A row for each time and each failed case, with the columns of the case, the seconds and other variables."""
        extra = self.more_dims
        stacked = self.data.transpose(*extra, *POINT, CHOICE)
        state = stacked["state"].values
        values = {str(name): stacked[name].values for name in stacked.data_vars}
        errors = {timing.case: timing.error for timing in self.failed}
        rows = []
        for place in np.argwhere(state <= State.FAILED):
            index = tuple(place)
            if state[index] == State.LEFT_OUT:
                continue
            i, j, a = index[-3:]
            choice, procs, size = self.grid.timed[a], self.procs[i], self.message_bytes[j]
            case = self.grid.case(choice, procs, size)
            row = {dim: stacked[dim].values[at] for dim, at in zip(extra, index, strict=False)}
            row |= {name: getattr(case, name) for name in CASE_COLUMNS} | {"parameters": named_parameters(case)}
            row |= {name: value[index] for name, value in values.items() if name != "state"}
            row["state"] = State(int(state[index])).name.lower()
            row["error"] = errors.get(case, "")
            rows.append(row)
        columns = [*extra, *CASE_COLUMNS, "parameters", *(name for name in values if name != "state"), "state", "error"]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        what = f"{len(self.grid.timed)} choices x {len(self.procs)} P x {len(self.message_bytes)} m"
        return f"<Times of {self.collective} on {self.platform}, {self.source} by {self.maker}: {what}>"

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False, max_rows=30))


_MEASURED = ("repetitions", "median_seconds", "least_seconds", "greatest_seconds", "late_starts", "precise")


def joined(times: Sequence[Times], dim: str, labels: Sequence[Any]) -> Times:
    """The times of grids with the same collective, choices and points, joined along a new last dimension.

    Notes and failed cases are taken from all times, everything else from the first.
    """
    first = times[0]
    if len({(item.choices, item.procs, item.message_bytes) for item in times}) > 1:
        raise UsageError(f"times can be joined over '{dim}' only if their choices and points match")
    besides = tuple(dict.fromkeys(entry for each in times for entry in each.grid.besides))
    grid = replace(first.grid, besides=besides)
    data = xr.concat([item.of_grid(grid).data for item in times], dim).assign_coords({dim: list(labels)})
    return replace(
        first,
        grid=grid,
        data=data.transpose(CHOICE, *POINT, ...),
        notes=tuple(dict.fromkeys(note for item in times for note in item.notes)),
        failed=tuple(dict.fromkeys(timing for item in times for timing in item.failed)),
    )


def running(grid: Grid) -> Any:
    """True where a choice of the grid runs and its buffers fit, shape (choices, P, m)."""
    sizes = np.array(grid.message_bytes)
    fits = sizes[None] <= np.array([grid.max_bytes(procs) for procs in grid.procs])[:, None]

    def runs(choice: Choice) -> Any:
        entry = Catalogue.load().find(grid.collective, choice.algorithm)
        if entry is None:
            return fits
        # Only mock-ups have conditions on the message size.
        asked = grid.message_bytes if entry.guideline else grid.message_bytes[:1]
        return fits & np.array([[not entry.objection(procs, size) for size in asked] for procs in grid.procs])

    return np.stack([runs(choice) for choice in grid.timed]) if grid.timed else np.zeros((0, *fits.shape), dtype=bool)


def timed_at(grid: Grid) -> Any:
    """True where a grid times a choice, shape (choices, P, m). The grid's `besides` are timed at their own points."""
    asked = np.ones((len(grid.timed), len(grid.procs), len(grid.message_bytes)), dtype=bool)
    asked[len(grid.choices) :] = False
    for procs, size, choice in grid.besides:
        asked[grid.timed.index(choice), grid.procs.index(procs), grid.message_bytes.index(size)] = True
    return asked


def _without_times(grid: Grid, margin: float | None) -> Any:
    """The states of a grid's choices at points for which a source has no timing."""
    state = np.where(running(grid), State.NOT_ASKED, State.DOES_NOT_RUN).astype(np.int8)
    if margin is not None:
        here = state[: len(grid.choices)]
        competes = [grid.competes(choice, *point) for choice in grid.choices for point in grid.points]
        here[(here == State.NOT_ASKED) & np.reshape(competes, here.shape)] = State.LEFT_OUT
    return state


def _beside(here: int, there: Sequence[tuple[int, tuple[int, int]]], most: float) -> list[tuple[int, int]]:
    """The points with the next smaller and next larger value, if at most a factor of `most` away."""
    below = max((entry for entry in there if entry[0] < here and entry[0] * most >= here), default=None)
    above = min((entry for entry in there if entry[0] > here and entry[0] <= here * most), default=None)
    return [item[1] for item in (below, above) if item is not None]


def _at_or_below(values: Sequence[int], wanted: int) -> int:
    return values[max(bisect.bisect_right(values, wanted) - 1, 0)]


def _coords(grid: Grid) -> dict[str, Any]:
    labels = np.empty(len(grid.timed), dtype=object)
    labels[:] = list(grid.timed)
    return {CHOICE: labels, PROCS: list(grid.procs), BYTES: list(grid.message_bytes)}


_NONE: Mapping[str, Any] = MappingProxyType({})


def dataset(grid: Grid, values: Mapping[str, Any], more: Mapping[str, Any] = _NONE) -> xr.Dataset:
    """The arrays by variable as a Dataset over choice, P, m, and `more` dimensions with their labels."""
    dims = (CHOICE, *POINT, *more)
    return xr.Dataset({name: (dims, value) for name, value in values.items()}, {**_coords(grid), **more})
