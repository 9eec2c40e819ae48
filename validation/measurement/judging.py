"""Judges predictions by measured runs of machines: their errors, and the time that choices by them lose.

A cell is a job's collective on P processes with one message size. Its candidates are the algorithms that were forced
and acted, have no segments, and are the catalogue's; names of one code count once. What is chosen is the candidate with
the least predicted time. Regret is the time of what was chosen over that of the oracle, less one: the fastest of all
algorithms of the library that were forced and acted, and the library's own decision. Within the intervals of both times
it is 0. Cells with fewer than two candidates do not count.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.models.piecewise import Array
from collwise.platforms import HostPlatform, Platform, Torus, known, load
from collwise.validation.measurement.imports.algorithm_names import WHOLE_BYTES, code_of
from collwise.validation.measurement.runs import MeasuredRun
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import Times

FEW_ITERATIONS = 10
"""A cell with fewer kept iterations is left out of the worst ones."""
SIZE_CLASSES = {"to 2 KiB": 2 << 10, "to 1 MiB": 1 << 20, "above": math.inf}
"""The classes of message sizes, by name and largest size."""
PREDICTED, UNTUNED, FIXED, POSSIBLE = "predicted", "untuned", "best fixed", "best candidate"
"""The deciders: predictions; the library's own decision; for each collective and size class the algorithm of least mean
regret there, and in each cell the fastest candidate, both of which are known only with hindsight."""
DECIDERS = (PREDICTED, UNTUNED, FIXED, POSSIBLE)
_LIBRARYS_OWN = re.compile(r".*_(ompi|mpich)|default-.*|id \d+")
"""The names of libraries' algorithms that the catalogue does not have; others are other implementations."""
_SHAPE = re.compile(r"^\d+(x\d+)+")
_RESAMPLES = 1000


@dataclass(frozen=True)
class MeasuredPlace:
    """Where cells are from: the machine and job, and the collective on P processes."""

    machine: str
    job: str
    collective: str
    procs: int


@dataclass(frozen=True)
class Cell:
    """A measured cell with what was chosen: seconds of the oracle, and of each choice by its decider's name.

    `fixed` has the regret of every candidate. `errors` are those of the predicted times of the candidates, relative.
    `floor` is the candidates' median half-width, relative: how exact their medians are within the job.
    """

    place: MeasuredPlace
    message_bytes: int
    oracle: str
    oracle_seconds: float
    chosen: str
    seconds: Mapping[str, float]
    regrets: Mapping[str, float]
    fixed: Mapping[str, float]
    errors: Sequence[float]
    floor: float
    iterations: int

    @property
    def size_class(self) -> str:
        """The name of the class of its message size."""
        return next(name for name, most in SIZE_CLASSES.items() if self.message_bytes <= most)


@dataclass(frozen=True)
class Regrets:
    """The regrets of a decider over cells: the mean is that of the collectives' means, the others are over all cells.

    `low` and `high` bound 95 % of the means of jobs that are drawn again; nan with a single job. `by_seconds` is the
    time lost over all cells, relative to the oracles' time. `worst_cell` is of those with enough iterations.
    """

    cells: int
    jobs: int
    mean: float
    low: float
    high: float
    median: float
    geometric_mean: float
    percentile_95: float
    worst: float
    worst_cell: Cell | None
    by_seconds: float


def platform_of(machine: str, facts: Mapping[str, str]) -> HostPlatform | None:
    """The platform whose name is the machine's, but for signs and a number at its end; a torus has the job's shape.

    None if there is no such platform.
    """
    plain = _plain(machine)
    name = next((one for one in known() if plain in (_plain(one), _plain(one).rstrip("0123456789"))), None)
    if name is None:
        return None
    platform = load(name)
    shape = _SHAPE.match(facts.get("hosts", ""))
    if shape and isinstance(platform, Platform) and isinstance(platform.topology, Torus):
        dimensions = tuple(map(int, shape[0].split("x")))
        torus = replace(platform.topology, dimensions=dimensions)
        return replace(platform, topology=torus, nodes=math.prod(dimensions))
    return platform


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def candidates(times: Times) -> tuple[Choice, ...]:
    """The unsegmented choices of a measured collective that the catalogue has, each code once."""
    entries = Catalogue.load().collective(times.collective).algorithms
    found = [one for one in times.choices if one.algorithm in entries and one.segment_bytes in (0, WHOLE_BYTES)]
    names = {one.algorithm for one in found}
    codes = {one: code_of(times.collective, one) for one in found}
    return tuple(one for one, code in codes.items() if code == one.algorithm or code not in names)


def _places(run: MeasuredRun) -> Iterator[tuple[MeasuredPlace, Times]]:
    """The places of a run with one process on each node, each with the times of its collective."""
    for times in run.times:
        if times.processes_per_node == 1:
            for procs in times.procs:
                yield MeasuredPlace(run.machine, run.job, times.collective, procs), times


def grids(run: MeasuredRun) -> Iterator[tuple[MeasuredPlace, Grid]]:
    """The points of a run to predict: its candidates at the sizes of each P above 1."""
    for place, times in _places(run):
        choices = candidates(times)
        if choices and place.procs > 1:
            yield place, Grid(times.collective, choices, (place.procs,), times.message_bytes)


def cells_of(run: MeasuredRun, predicted: Mapping[MeasuredPlace, Times]) -> Iterator[Cell]:
    """The cells of a run whose place has predictions, with at least two candidates that have both times."""
    for place, times in _places(run):
        if place in predicted:
            cells = (_cell(place, size, times, predicted[place]) for size in times.message_bytes)
            yield from (cell for cell in cells if cell is not None)


def _cell(place: MeasuredPlace, size: int, measured: Times, predicted: Times) -> Cell | None:
    procs = place.procs
    known = {one: seconds for one, seconds in measured.at_point(procs, size).items() if seconds > 0}
    expected = {one: predicted.seconds_of(one, procs, size) for one in predicted.choices if one in known}
    expected = {one: seconds for one, seconds in expected.items() if math.isfinite(seconds)}
    if len(expected) < 2:
        return None
    counting = [one for one in known if one in expected or _is_librarys(measured, one)]
    oracle = min(counting, key=known.__getitem__)

    def width(choice: Choice) -> float:
        found = measured.half_width_of(choice, procs, size)
        return found if math.isfinite(found) else 0.0

    def regret(choice: Choice) -> float:
        lost = known[choice] - known[oracle]
        return 0.0 if lost <= width(choice) + width(oracle) else lost / known[oracle]

    chosen = min(expected, key=expected.__getitem__)
    fastest = min(expected, key=known.__getitem__)
    picks = {PREDICTED: chosen, POSSIBLE: fastest} | ({UNTUNED: LIBRARY_DECIDES} if LIBRARY_DECIDES in known else {})
    repetitions = measured.data.get("repetitions")
    at = {"procs": procs, "message_bytes": size}
    counts: Any = (
        [] if repetitions is None else repetitions.sel(at).values[[measured.index_of(one) for one in expected]]
    )
    return Cell(
        place,
        size,
        oracle.algorithm,
        known[oracle],
        chosen.algorithm,
        {name: known[one] for name, one in picks.items()},
        {name: regret(one) for name, one in picks.items()},
        {one.algorithm: regret(one) for one in expected},
        [abs(seconds / known[one] - 1) for one, seconds in expected.items()],
        float(np.median([width(one) / known[one] for one in expected])),
        int(min(counts)) if len(counts) else 1,
    )


def _is_librarys(measured: Times, choice: Choice) -> bool:
    entries = Catalogue.load().collective(measured.collective).algorithms
    name = choice.algorithm
    return choice == LIBRARY_DECIDES or name in entries or _LIBRARYS_OWN.fullmatch(name) is not None


def with_best_fixed(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with what each machine's best fixed algorithm by collective and size class would have lost.

    Of the algorithms that are candidates in the most cells there, it is the one of least mean regret; in cells where it
    is no candidate the library decides.
    """
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.place.machine, cell.place.collective, cell.size_class), []).append(cell)
    found = []
    for group in groups.values():
        counts = Counter(name for cell in group for name in cell.fixed)
        names = sorted(name for name, number in counts.items() if number == max(counts.values()))

        def regret(cell: Cell, name: str) -> float:
            return cell.fixed.get(name, cell.regrets.get(UNTUNED, math.inf))

        best = min(names, key=lambda name: sum(regret(cell, name) for cell in group))
        for cell in group:
            lost = regret(cell, best)
            seconds = {**cell.seconds, FIXED: cell.oracle_seconds * (1 + lost)}
            found.append(replace(cell, seconds=seconds, regrets={**cell.regrets, FIXED: lost}))
    return found


def regrets_of(cells: Sequence[Cell], decider: str) -> Regrets | None:
    """The regrets of a decider over those of these cells for which it chooses; None if there are none."""
    chosen = [cell for cell in cells if math.isfinite(cell.regrets.get(decider, math.nan))]
    if not chosen:
        return None
    values = np.array([cell.regrets[decider] for cell in chosen])
    enough = [cell for cell in chosen if cell.iterations >= FEW_ITERATIONS]
    worst = max(enough, key=lambda cell: cell.regrets[decider], default=None)
    jobs = list(dict.fromkeys(cell.place.job for cell in chosen))
    low, high = _drawn_again(chosen, jobs, decider)
    return Regrets(
        len(chosen),
        len(jobs),
        float(_means(chosen, jobs, decider, np.ones((1, len(jobs))))[0]),
        low,
        high,
        float(np.median(values)),
        float(np.exp(np.mean(np.log1p(values))) - 1),
        float(np.percentile(values, 95)),
        worst.regrets[decider] if worst is not None else math.nan,
        worst,
        sum(cell.seconds[decider] for cell in chosen) / sum(cell.oracle_seconds for cell in chosen) - 1,
    )


def _means(cells: Sequence[Cell], jobs: Sequence[str], decider: str, weights: Array) -> Array:
    """The means over collectives of the mean regret over each one's cells, for rows of weights of the jobs."""
    collectives = list(dict.fromkeys(cell.place.collective for cell in cells))
    sums, counts = np.zeros((2, len(jobs), len(collectives)))
    for cell in cells:
        at = jobs.index(cell.place.job), collectives.index(cell.place.collective)
        sums[at] += cell.regrets[decider]
        counts[at] += 1
    counted = weights @ counts
    means = np.divide(weights @ sums, counted, out=np.full_like(counted, math.nan), where=counted > 0)
    found: Array = np.nanmean(means, axis=1)
    return found


def _drawn_again(cells: Sequence[Cell], jobs: Sequence[str], decider: str) -> tuple[float, float]:
    """The bounds of 95 % of the means over jobs that are drawn again, with a fixed seed; nan for a single job."""
    if len(jobs) < 2:
        return math.nan, math.nan
    drawn = np.random.default_rng(1).integers(len(jobs), size=(_RESAMPLES, len(jobs)))
    weights = np.sum(drawn[:, :, None] == np.arange(len(jobs)), axis=1)
    low, high = np.percentile(_means(cells, jobs, decider, weights), [2.5, 97.5])
    return float(low), float(high)


def predictions_text(predicted: Mapping[MeasuredPlace, Times]) -> str:
    """The predicted seconds of all cells as CSV, with all digits, in one order."""
    lines = ["machine,job,collective,algorithm,segment_bytes,fanout,procs,message_bytes,seconds"]
    for place in sorted(predicted, key=lambda one: (one.machine, one.job, one.collective, one.procs)):
        times = predicted[place]
        for size in times.message_bytes:
            for choice, seconds in times.at_point(place.procs, size).items():
                names = (place.machine, place.job, place.collective, choice.algorithm)
                lines.append(
                    ",".join(
                        (*names, *map(str, (choice.segment_bytes, choice.fanout, place.procs, size)), repr(seconds))
                    )
                )
    return "\n".join(lines) + "\n"
