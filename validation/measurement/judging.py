"""Judges predictions by measured runs of machines: the errors of predictions, and the time lost by choices from them.

A cell is a collective of a job, on P processes and with one message size. Its candidates are the unsegmented algorithms
of the catalogue that were forced and really ran, and the one that the library decides for if that is known; names of
the same code count as one candidate. The oracle is the fastest of the library's own decision and all of the library's
algorithms that really ran. Regret is the time of the choice divided by the oracle's time, minus one; it is 0 if the
intervals of the two times overlap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.models.piecewise import Array
from collwise.models.switch_points import NOBODY
from collwise.platforms import HostPlatform, Platform, Torus, known, load
from collwise.validation.libraries.baselines import baseline_of
from collwise.validation.measurement.imports.algorithms import WHOLE_BYTES, code_of
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times

FEW_ITERATIONS = 10
"""A cell with fewer iterations cannot be the worst cell."""
SIZE_CLASSES = {"to 2 KiB": 2 << 10, "to 1 MiB": 1 << 20, "above": math.inf}
"""The classes of message sizes, by name and largest size."""
PREDICTED, UNTUNED, POSSIBLE = "predicted", "untuned", "best candidate"
"""Deciders in each cell: the engine's predictions, the library's own decision, and, with hindsight, the fastest
candidate. Other deciders are models, by their names, and the deciders of `validation.measurement.deciding`."""
NODE_MAP = "node_map"
"""The name of a fact of predicted times and of a column of their file. Both contain the name of a job's node map."""
SHEETS = "data sheets"
"""The predictor that is the engine with values from data sheets alone."""
_LIBRARYS_OWN = re.compile(r".*_(ompi|mpich)|default-.*|id \d+")
"""Names of libraries' algorithms that are not in the catalogue. Other unknown names belong to other implementations."""
_SHAPE = re.compile(r"^\d+(x\d+)+")
_RESAMPLES = 1000
_LOSES, _CLOSE = 0.1, 0.05


@dataclass(frozen=True, order=True)
class MeasuredPlace:
    """The origin of cells: the machine, the job, the collective, P, and the number of processes on each node."""

    machine: str
    job: str
    collective: str
    procs: int
    processes_per_node: int = 1


Predictions = Mapping[MeasuredPlace, Times]
"""Predicted times of the candidates at each place."""


@dataclass(frozen=True)
class Cell:
    """A measured cell with the choices of deciders.

    `seconds` and `lost` have the time and the regret of each candidate and of the library's own decision, by algorithm;
    `lost_to_candidates` is the regret against the fastest candidate instead of the oracle.
    `codes` has the candidates by the algorithm whose code they run, `choices` the chosen algorithms by decider, and
    `predicted` the predicted times of candidates by predictor. `floor` is the candidates' median relative half-width.
    """

    place: MeasuredPlace
    library: str
    message_bytes: int
    oracle: str
    oracle_seconds: float
    seconds: Mapping[str, float]
    lost: Mapping[str, float]
    lost_to_candidates: Mapping[str, float]
    codes: Mapping[str, str]
    choices: Mapping[str, str]
    predicted: Mapping[str, Mapping[str, float]]
    floor: float
    iterations: int

    @property
    def size_class(self) -> str:
        """The name of the class of the cell's message size."""
        return next(name for name, most in SIZE_CLASSES.items() if self.message_bytes <= most)

    @property
    def chosen(self) -> str:
        """The algorithm that the engine's predictions chose."""
        return self.choices[PREDICTED]

    @property
    def candidates(self) -> list[str]:
        """The algorithms of the candidates."""
        return list(self.codes.values())

    @cached_property
    def errors(self) -> dict[str, list[float]]:
        """The relative errors of predicted times, by predictor."""
        return {by: [abs(value / self.seconds[name] - 1) for name, value in some.items()]
                for by, some in self.predicted.items()}  # fmt: skip

    @cached_property
    def regrets(self) -> dict[str, float]:
        """The regret of each decider."""
        return {decider: self.lost[name] for decider, name in self.choices.items()}


@dataclass(frozen=True)
class Regrets:
    """The regrets of a decider. `mean` is the mean of the collectives' means; other statistics are over all cells.

    `over_candidates` is such a mean of the regrets against the fastest candidates. `low` and `high` bound 95 % of the
    means over resampled jobs; they are nan with a single job. `by_seconds` is the time lost over all cells, relative to
    the oracles' time. `worst` leaves out cells with few iterations.
    """

    cells: int
    jobs: int
    mean: float
    over_candidates: float
    low: float
    high: float
    median: float
    geometric_mean: float
    percentile_95: float
    worst: float
    worst_cell: Cell | None
    by_seconds: float


def platform_of(machine: str, facts: Mapping[str, str], description: Path | None = None) -> HostPlatform | None:
    """The platform that a `description` describes, or the one named after the machine; None if there is none.

    A platform named after the machine and the run's transport comes first. Names are compared without punctuation, and
    without a number at the end of the platform's name. A torus gets the job's shape. Raises UsageError for a malformed
    description.
    """
    plain = [_plain(machine + facts.get("transport", "")), _plain(machine)]
    names = {form: text for text in reversed(known()) for form in (_plain(text).rstrip("0123456789"), _plain(text))}
    name = next((names[text] for text in plain if text in names), None)
    if description is None and name is None:
        return None
    platform = load(description or name or "")
    shape = _SHAPE.match(facts.get("hosts", ""))
    if shape and isinstance(platform, Platform) and isinstance(platform.topology, Torus):
        torus = replace(platform.topology, dimensions=tuple(map(int, shape[0].split("x"))))
        return replace(platform, topology=torus, nodes=math.prod(torus.dimensions))
    return platform


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def candidates(times: Times) -> tuple[Choice, ...]:
    """A measured collective's unsegmented choices of the catalogue's algorithms, one for each code that runs."""
    entries = Catalogue.load().collective(times.collective).algorithms
    whole = [choice for choice in times.choices if choice.segment_bytes in (0, WHOLE_BYTES)]
    found = [choice for choice in whole if choice.algorithm in entries]
    names = {choice.algorithm for choice in found}
    codes = {choice: code_of(times.collective, choice) for choice in found}
    return tuple(choice for choice, code in codes.items() if code == choice.algorithm or code not in names)


def with_decided(run: MeasuredRun) -> MeasuredRun:
    """The run, with the library's own decision also under the name of the algorithm that it decides for.

    This adds algorithms that were not forced, if the decisions of the library's version are known.
    """
    return replace(run, times=tuple(_with_decided(times, run.library) for times in run.times))


def _with_decided(times: Times, library: str) -> Times:
    baseline = baseline_of(library, times.processes_per_node)
    own = times.index_of(LIBRARY_DECIDES)
    if baseline is None or times.collective not in baseline.collectives or own == NOBODY:
        return times
    forced = {name for choice in candidates(times) for name in (choice.algorithm, code_of(times.collective, choice))}
    decided: dict[Choice, list[tuple[int, int]]] = {}
    for i, procs in enumerate(times.procs):
        for j, size in enumerate(times.message_bytes):
            choice = baseline.choice(times.collective, procs, size)
            if choice is None or forced & {choice.algorithm, code_of(times.collective, choice)}:
                continue
            if not 0 < choice.segment_bytes < size:
                decided.setdefault(replace(choice, segment_bytes=0), []).append((i, j))
    found = times.of_grid(replace(times.grid, choices=(*times.choices, *decided)))
    data = found.data.copy(deep=True)
    for choice, points in decided.items():
        i, j = np.transpose(points)
        for name, values in data.data_vars.items():
            values.values[found.index_of(choice), i, j] = times.data[name].values[own, i, j]
    return replace(found, data=data)


def _places(run: MeasuredRun) -> Iterator[tuple[MeasuredPlace, Times]]:
    """The places of a run, each with the times of its collective."""
    for times in run.times:
        for procs in times.procs:
            yield MeasuredPlace(run.machine, run.job, times.collective, procs, times.processes_per_node), times


def grids(run: MeasuredRun) -> Iterator[tuple[MeasuredPlace, Grid, Times]]:
    """The points of a run to be predicted: at each P above 1, sizes with two candidates or more, and the times."""
    for place, times in _places(run):
        at = times.state.sel(procs=place.procs).values
        asked = {candidate: at[times.index_of(candidate)] != State.NOT_ASKED for candidate in candidates(times)}
        choices = tuple(choice for choice, sizes in asked.items() if sizes.any())
        if len(choices) > 1 and place.procs > 1:
            many = np.sum([asked[choice] for choice in choices], axis=0) > 1
            sizes = tuple(size for size, known in zip(times.message_bytes, many, strict=True) if known)
            if sizes:
                grid = Grid(times.collective, choices, (place.procs,), sizes, times.processes_per_node)
                yield place, grid, times


def cells_of(run: MeasuredRun, predicted: Mapping[str, Predictions]) -> Iterator[Cell]:
    """The cells of a run in which at least two candidates were measured and predicted by the engine (PREDICTED).

    Any other predictor makes a choice only in the cells for which it has times of at least two candidates.
    """
    for place, times in _places(run):
        here = {name: some[place] for name, some in predicted.items() if place in some}
        if PREDICTED in here:
            cells = (_cell(place, run.library, size, times, here) for size in times.message_bytes)
            yield from (cell for cell in cells if cell is not None)


def _cell(
    place: MeasuredPlace, library: str, size: int, measured: Times, predicted: Mapping[str, Times]
) -> Cell | None:
    procs = place.procs
    known = {one: seconds for one, seconds in measured.at_point(procs, size).items() if seconds > 0}
    every: dict[str, dict[Choice, float]] = {}
    for name, times in predicted.items():
        expected = {choice: times.seconds_of(choice, procs, size) for choice in times.choices if choice in known}
        every[name] = {choice: seconds for choice, seconds in expected.items() if math.isfinite(seconds)}
    every = {name: some for name, some in every.items() if len(some) > 1}
    if PREDICTED not in every:
        return None
    ours = every[PREDICTED]
    counting = [item for item in known if item in ours or _is_librarys(measured, item)]
    oracle = min(counting, key=known.__getitem__)

    def width(choice: Choice) -> float:
        found = measured.half_width_of(choice, procs, size)
        return found if math.isfinite(found) else 0.0

    def regret(choice: Choice, best: Choice) -> float:
        lost = known[choice] - known[best]
        return 0.0 if lost <= width(choice) + width(best) else lost / known[best]

    picks = {name: min(some, key=some.__getitem__) for name, some in every.items()}
    picks[POSSIBLE] = possible = min(ours, key=known.__getitem__)
    if LIBRARY_DECIDES in known:
        picks[UNTUNED] = LIBRARY_DECIDES
    chosen = [*ours, *([LIBRARY_DECIDES] if LIBRARY_DECIDES in known else [])]
    repetitions = measured.data.get("repetitions")
    at = {"procs": procs, "message_bytes": size}
    counts: Any = [] if repetitions is None else repetitions.sel(at).values[[measured.index_of(item) for item in ours]]
    return Cell(
        place, library, size, oracle.algorithm, known[oracle],
        seconds={item.algorithm: known[item] for item in chosen},
        lost={item.algorithm: regret(item, oracle) for item in chosen},
        lost_to_candidates={item.algorithm: regret(item, possible) for item in chosen},
        codes={code_of(place.collective, item): item.algorithm for item in ours},
        choices={name: pick.algorithm for name, pick in picks.items()},
        predicted={name: {item.algorithm: some[item] for item in some} for name, some in every.items()},
        floor=float(np.median([width(item) / known[item] for item in ours])),
        iterations=int(min(counts)) if len(counts) else 1,
    )  # fmt: skip


def _is_librarys(measured: Times, choice: Choice) -> bool:
    in_catalogue = Catalogue.load().find(measured.collective, choice.algorithm) is not None
    return choice == LIBRARY_DECIDES or in_catalogue or _LIBRARYS_OWN.fullmatch(choice.algorithm) is not None


def regrets_of(cells: Sequence[Cell], decider: str) -> Regrets | None:
    """The regrets of a decider over the cells for which it chooses; None if there are no such cells."""
    chosen = [cell for cell in cells if decider in cell.choices]
    if not chosen:
        return None
    values = np.array([cell.regrets[decider] for cell in chosen])
    enough = [cell for cell in chosen if cell.iterations >= FEW_ITERATIONS]
    worst = max(enough, key=lambda cell: cell.regrets[decider], default=None)
    jobs = list(dict.fromkeys(cell.place.job for cell in chosen))
    low, high = _bootstrap_interval(chosen, jobs, values)
    over_candidates = np.array([cell.lost_to_candidates[cell.choices[decider]] for cell in chosen])
    once = np.ones((1, len(jobs)))
    seconds = sum(cell.seconds[cell.choices[decider]] for cell in chosen)
    return Regrets(
        len(chosen), len(jobs),
        mean=float(_means(chosen, jobs, values, once)[0]),
        over_candidates=float(_means(chosen, jobs, over_candidates, once)[0]),
        low=low,
        high=high,
        median=float(np.median(values)),
        geometric_mean=float(np.exp(np.mean(np.log1p(values))) - 1),
        percentile_95=float(np.percentile(values, 95)),
        worst=worst.regrets[decider] if worst is not None else math.nan,
        worst_cell=worst,
        by_seconds=seconds / sum(cell.oracle_seconds for cell in chosen) - 1,
    )  # fmt: skip


@dataclass(frozen=True)
class Beside:
    """A decider compared with the untuned library.

    `better` (or equal), `close` (at most 5 % slower) and `worse` are numbers of collectives, by their mean regrets.
    `slow` is the number of cells in which the library loses more than 10 %, `otherwise` the number of slow cells in
    which the decider does not leave the call to the library, and `faster` the number of the latter in which the decider
    loses less.
    """

    better: int
    close: int
    worse: int
    slow: int
    otherwise: int
    faster: int


def beside_untuned(cells: Sequence[Cell], decider: str) -> Beside | None:
    """The comparison over the cells in which decider and library both choose; None if there are no such cells."""
    both = [cell for cell in cells if decider in cell.choices and UNTUNED in cell.choices]
    longer: list[float] = []
    for collective in {cell.place.collective for cell in both}:
        some = [cell for cell in both if cell.place.collective == collective]
        ours, theirs = (np.mean([cell.regrets[name] for cell in some]) for name in (decider, UNTUNED))
        longer.append(float((1 + ours) / (1 + theirs) - 1))
    slow = [cell for cell in both if cell.regrets[UNTUNED] > _LOSES]
    otherwise = [cell for cell in slow if cell.choices[decider] != LIBRARY_DECIDES.algorithm]
    better, close = sum(value <= 0 for value in longer), sum(0 < value <= _CLOSE for value in longer)
    faster = sum(cell.regrets[decider] < cell.regrets[UNTUNED] for cell in otherwise)
    counts = (better, close, len(longer) - better - close, len(slow), len(otherwise), faster)
    return Beside(*counts) if both else None


def _means(cells: Sequence[Cell], jobs: Sequence[str], values: Array, weights: Array) -> Array:
    """The mean over collectives of the mean of each one's values, for each row of `weights`, which weigh the jobs.

    `values` has a value for each cell.
    """
    collectives = list(dict.fromkeys(cell.place.collective for cell in cells))
    sums, counts = np.zeros((2, len(jobs), len(collectives)))
    for cell, value in zip(cells, values, strict=True):
        at = jobs.index(cell.place.job), collectives.index(cell.place.collective)
        sums[at] += value
        counts[at] += 1
    counted = weights @ counts
    means = np.divide(weights @ sums, counted, out=np.full_like(counted, math.nan), where=counted > 0)
    found: Array = np.nanmean(means, axis=1)
    return found


def _bootstrap_interval(cells: Sequence[Cell], jobs: Sequence[str], values: Array) -> tuple[float, float]:
    """The bounds of 95 % of the means over resampled jobs, with a fixed seed; nan for a single job."""
    if len(jobs) < 2:
        return math.nan, math.nan
    drawn = np.random.default_rng(1).integers(len(jobs), size=(_RESAMPLES, len(jobs)))
    weights = np.sum(drawn[:, :, None] == np.arange(len(jobs)), axis=1)
    low, high = np.percentile(_means(cells, jobs, values, weights), [2.5, 97.5])
    return float(low), float(high)


def predictions_text(predicted: Mapping[str, Predictions]) -> str:
    """The predicted seconds of all cells as CSV, by predictor, with all digits and in a fixed order."""
    names = ("machine", "job", "collective", "algorithm", "segment_bytes", "parameter", "procs", "processes_per_node")
    lines = [",".join((*names, "message_bytes", NODE_MAP, "predictor", "seconds"))]
    for name, some in predicted.items():
        for place, times in sorted(some.items(), key=itemgetter(0)):
            node_map = times.facts.get(NODE_MAP, "")
            for size in times.message_bytes:
                for choice, seconds in times.at_point(place.procs, size).items():
                    at = (choice.segment_bytes, choice.parameter, place.procs, place.processes_per_node, size)
                    where = (place.machine, place.job, place.collective, choice.algorithm)
                    lines.append(",".join((*where, *map(str, at), node_map, name, repr(seconds))))
    return "\n".join(lines) + "\n"
