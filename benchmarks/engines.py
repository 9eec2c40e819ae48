"""The schedule engine and formulas against SMPI on described platforms: errors of times, and slowdowns of picks.

    .venv/bin/python benchmarks/engines.py [--procs 8,16,32] [--store FILE] [--markdown FILE] [PLATFORM...]

Every algorithm of every collective is timed by SMPI and by the schedule engine, once with the engine's rules and once
with SMPI's (docs/engine.md); the formulas of the point-to-point models, with parameters fitted in SMPI, predict the
algorithms that they cover. A table by platform has the mean and the largest |time / SMPI's time - 1|, and the slowdown
of the picks against the best algorithm, both by SMPI's times. SMPI takes about two minutes of one core for the small
platforms and several for the fat tree, of which three sizes are compared, and for each collective the process counts at
which its algorithms send no more than SAMPLED_MESSAGES. On the two clusters of Grid'5000 the picks of both engines are
judged by each other's times, too, over what `tune` simulates for the demo's collectives. SMPI's times are stored, by
default in results/timings.sqlite, and are not made again: a run that was stopped goes on where it was. --markdown
writes docs/engines.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.project import default_store_path
from collwise.platforms import HostPlatform, load
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.smpi_runner import cost_of
from collwise.simulator.timing import Case
from collwise.studies.cli.output import print_table
from collwise.studies.present.scores import score_records
from collwise.studies.present.shown import Table
from collwise.studies.reports.markdown import markdown_table, percent
from collwise.validation.compare.scores import AllScores, compare
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.fitting.scheduled_model import PlayedModel
from collwise.validation.times.defaults import USUAL_COLLECTIVES, sizes_of
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted, simulate

SAMPLED = "fat-tree-1024"
SAMPLED_PROCS, SAMPLED_SIZES, SAMPLED_MESSAGES = (64, 128, 256, 512, 1024), (2**10, 2**15, 2**19), 100_000
PLATFORMS = ("grisou", "gros", "boba", "frodo", "dahu", SAMPLED)
SIZES = tuple(1024 * 4**k for k in range(6))
SEGMENTS = (8192, 65536)
FORMULAS = ("hockney", "loggp", "plogp")
TUNED_PLATFORMS, TUNED_PROCS = ("grisou", "gros"), (8, 32)
BOTH_COLUMNS = (
    *("platform", "collective", "times", "error: median", "mean"),
    *("engine's picks by SMPI's times: mean", "worst", "SMPI's picks by the engine's: mean", "worst"),
)
OWN, LIKE_SMPI = "schedule engine", "with SMPI's rules"
MEAN_LIMIT, WORST_LIMIT, NOTABLE = 0.01, 0.05, 0.02
COLUMNS = (
    *("collective", "times", "error, SMPI's rules: mean", "worst", "error, own rules: mean", "worst"),
    *("slowdown, SMPI's rules: mean", "worst", "slowdown, own rules: mean", "worst"),
    *("best formula", "error: mean", "worst", "slowdown: mean", "worst"),
)


Score = Any
"""What `score_records` says of a model and a collective."""


class Evaluation(NamedTuple):
    """The scores of a platform."""

    platform: str
    scores: list[Score]


@dataclass(frozen=True)
class Engine(PlayedModel):
    """The schedule engine on a platform, as a model that predicts every algorithm. Is a CollectiveModel."""

    on: HostPlatform
    like_smpi: bool

    @property
    def name(self) -> str:
        """The rules that it plays by."""
        return LIKE_SMPI if self.like_smpi else OWN

    @property
    def platform(self) -> str:
        """The platform's name."""
        return self.on.name

    def seconds(self, case: Case) -> float:
        """The seconds of a case, played once."""
        return played(self, case)


@cache
def played(engine: Engine, case: Case) -> float:
    schedule = Schedule(case)
    return schedule.play(network_tables(engine.on, case.procs, 1, schedule.sizes, engine.like_smpi)).seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("platforms", nargs="*", default=PLATFORMS)
    parser.add_argument("--procs", default="8,16,32")
    parser.add_argument("--store", type=Path, default=default_store_path())
    parser.add_argument("--jobs", type=int, help="simulations at a time; default: one per core")
    parser.add_argument("--markdown", type=Path, help="write the page docs/engines.md into this file")
    given = parser.parse_args()
    procs = tuple(int(count) for count in given.procs.split(","))
    with Store(given.store) as store:
        context = SimulationContext(store, jobs=given.jobs)
        found = [evaluated(load(name), procs, context) for name in given.platforms]
        tuned = [name for name in given.platforms if name in TUNED_PLATFORMS]
        both = [row for name in tuned for row in judged_by_each_other(name, context)]
    for result in found:
        title = f"against SMPI on {load(result.platform).title}, P = {given.procs}"
        print_table(Table(title, COLUMNS, list(rows(result))))
    print_table(Table("both engines by each other's times", BOTH_COLUMNS, both))
    if given.markdown is not None:
        given.markdown.write_text(page(found, both, given.procs), encoding="utf-8")


def evaluated(platform: HostPlatform, procs: Sequence[int], context: SimulationContext) -> Evaluation:
    """Scores of the engine with both rules and of the formulas."""
    grids = [grid_of(platform, name, procs) for name in Catalogue.load().collectives]
    formulas = models_on(platform, FORMULAS, 1, SEGMENTS, context)
    models = [Engine(platform, True), Engine(platform, False), *formulas]
    found = []
    for grid in grids:
        covering = [model for model in models if grid.of_algorithms(model.algorithms(grid.collective)).choices]
        found += score_records(beside_simulation(platform, grid, [predicted(one, grid) for one in covering], context))
    return Evaluation(platform.name, [SimpleNamespace(**one) for one in found])


def judged_by_each_other(name: str, context: SimulationContext) -> Iterator[tuple[str, ...]]:
    """The rows under BOTH_COLUMNS of a platform: one for each collective, and one for all."""
    grids = [Grid.of(collective, TUNED_PROCS, sizes_of(collective)) for collective in USUAL_COLLECTIVES.split(",")]
    smpi, own = (simulate(load(name), grids, replace(context, engine=engine)) for engine in (SMPI, SCHEDULE))
    there, back = (
        AllScores(compare(*pair) for pair in zip(*pairs, strict=True)) for pairs in ((smpi, own), (own, smpi))
    )
    for by in (("platform", "collective"), ("platform",)):
        for (_, found), (_, other) in zip(there.table(by).iterrows(), back.table(by).iterrows(), strict=True):
            shares = [found.median_error, found.mean_error, found.mean_slowdown, found.worst_slowdown]
            shares += [other.mean_slowdown, other.worst_slowdown]
            yield name, found.get("collective", "**all**"), str(found.cases), *map(percent, shares)


def grid_of(platform: HostPlatform, collective: str, procs: Sequence[int]) -> Grid:
    """The cases of a collective; on the sampled platform none with more processes than SMPI has time for."""
    is_sampled = platform.name == SAMPLED
    sizes = SAMPLED_SIZES if is_sampled else SIZES
    grid = Grid.of(collective, tuple(procs), sizes if collective != "barrier" else (0,), segments=SEGMENTS)
    if not is_sampled:
        return grid

    def few(count: int) -> bool:
        cases = replace(grid, procs=(count,)).cases()
        if sum(map(cost_of, cases)) > SAMPLED_MESSAGES:  # soon said, but too few of chains that pass on all blocks
            return False
        return sum(Schedule(case).messages for case in cases) <= SAMPLED_MESSAGES

    return replace(grid, procs=tuple(filter(few, SAMPLED_PROCS)))


def rows(result: Evaluation) -> Iterator[tuple[str, ...]]:
    """The cells under COLUMNS, a row for each collective and one for all."""
    names = list(dict.fromkeys(score.collective for score in result.scores))
    for name in names:
        like, own = (score_of(result, name, maker) for maker in (LIKE_SMPI, OWN))
        formula = best_formula(result, name)
        yield (
            *(name, str(own.predictions), *errors_of(like), *errors_of(own)),
            *(*slowdowns_of(like), *slowdowns_of(own)),
            *((formula.model, *errors_of(formula), *slowdowns_of(formula)) if formula else ("-",) * 5),
        )
    pairs = [[score_of(result, name, maker) for name in names] for maker in (LIKE_SMPI, OWN)]
    formulas = [formula for name in names if (formula := best_formula(result, name))]
    like, own, best = (summary(scores) for scores in (*pairs, formulas))
    times = sum(score.predictions for score in pairs[0])
    yield ("**all**", str(times), *like[:2], *own[:2], *like[2:], *own[2:], "where there is one", *best)


def summary(scores: Sequence[Score]) -> tuple[str, ...]:
    """Mean and worst error and slowdown over collectives, weighted by their times and picks."""
    times, picks = ([getattr(score, name) for score in scores] for name in ("predictions", "picks"))
    return (
        percent(float(np.average([score.mean_error for score in scores], weights=times))),
        percent(max(score.worst_error for score in scores)),
        percent(float(np.average([score.mean_slowdown for score in scores], weights=picks))),
        percent(max(score.worst_slowdown for score in scores)),
    )


def score_of(result: Evaluation, collective: str, maker: str) -> Score:
    return next(score for score in result.scores if (score.collective, score.model) == (collective, maker))


def best_formula(result: Evaluation, collective: str) -> Score | None:
    """The score of the formulas whose picks have the least mean slowdown."""
    found = [
        score
        for score in result.scores
        if score.collective == collective and score.model not in (OWN, LIKE_SMPI) and score.predictions and score.picks
    ]
    return min(found, key=lambda score: (score.mean_slowdown, score.worst_slowdown), default=None)


def errors_of(score: Score) -> tuple[str, str]:
    return percent(score.mean_error), percent(score.worst_error)


def slowdowns_of(score: Score) -> tuple[str, str]:
    return percent(score.mean_slowdown), percent(score.worst_slowdown)


def page(found: Sequence[Evaluation], both: Sequence[tuple[str, ...]], procs: str) -> str:
    """docs/engines.md."""
    parts = [
        "<!-- Written by benchmarks/engines.py --markdown; do not edit. -->\n",
        "# The schedule engine and formulas against SMPI\n\nThe output of `benchmarks/engines.py`: all algorithms of "
        f"all collectives, one process per node, P = {procs.replace(',', ', ')}, sizes from 1 KiB to 1 MiB by factors "
        f"of 4, segments of 8 and 64 KiB. Of {SAMPLED} there are {len(SAMPLED_SIZES)} sizes, 1, 32 and 512 KiB, and of "
        f"P = 64, 128, ... 1024 those at which all algorithms of a collective send {SAMPLED_MESSAGES:,} messages at "
        "most together. An error is |time / SMPI's time - 1|. A slowdown is that of the pick against "
        "the best algorithm, both by SMPI's times.\n\nBy SMPI's rules the engine should have SMPI's times. By its own "
        "it is meant to differ, as [engine.md](engine.md) says: eager messages leave when they are sent. That shows "
        "most where overheads are small beside the latency, on Grisou and Gros, for the shortest messages and smallest "
        "segments: those of a linear gather then arrive together, where SMPI has them follow one another, each with a "
        "latency. On the fat tree SMPI's MPI_Sendrecv, which posts its receive only after its send has begun, adds a "
        "send overhead to each step of a ring that crosses switches; the engine's, and that of Open MPI and MPICH, "
        "posts it before. The formulas are those of the point-to-point model with the least mean slowdown, with "
        "parameters fitted in SMPI, for the algorithms that they cover.\n",
    ]
    parts.append(
        "\n## What tune would choose on Grisou and Gros by either engine\n\nThe demo's collectives with the sizes and "
        f"segments of `tune`, one process per node, P = {' and '.join(map(str, TUNED_PROCS))}. Errors are those of the "
        "engine by its own rules, by SMPI's times; slowdowns are those of the picks by each engine's times against the "
        "best by the other's. By SMPI's rules the engine's picks are SMPI's, as the tables below show, and one rule "
        "makes most of the difference: in SMPI an eager message leaves when its receive is posted, so that each "
        "segment of a pipeline costs a latency, of 41 us on Gros and 48 us on Grisou. There long segments are best, "
        "and by the engine's rules, as in libraries that send at once, short ones, whose overheads are some 4 us.\n\n"
    )
    parts.append(markdown_table(BOTH_COLUMNS, both, 2))
    for result in found:
        parts.append(f"\n## {load(result.platform).title}\n\n")
        parts.append(markdown_table(COLUMNS, list(rows(result))))
    above = [
        (result.platform, score.collective, score.model, *slowdowns_of(score), score.worst_at)
        for result in found
        for score in result.scores
        if score.model in (OWN, LIKE_SMPI) and (score.mean_slowdown > MEAN_LIMIT or score.worst_slowdown > WORST_LIMIT)
    ]
    parts.append(
        f"\n## Slowdowns above {MEAN_LIMIT * 100:.0f} % on average or {WORST_LIMIT * 100:.0f} % at worst\n\n"
        f"Of the engine's picks: {sum(row[2] == LIKE_SMPI for row in above)} by SMPI's rules, "
        f"{sum(row[2] == OWN for row in above)} by its own, of {len(found)} platforms with 16 collectives each.\n\n"
    )
    heads = ("platform", "collective", "engine", "slowdown: mean", "worst", "worst at")
    parts.append(markdown_table(heads, above, 3))
    parts.append(f"\n## Times by SMPI's rules that are more than {NOTABLE * 100:.0f} % off\n\nThe largest of each.\n\n")
    apart = [
        (result.platform, score.collective, percent(score.worst_error), score.worst_error_at)
        for result in found
        for score in result.scores
        if score.model == LIKE_SMPI and score.worst_error > NOTABLE
    ]
    parts.append(markdown_table(("platform", "collective", "error", "at"), apart, 2))
    return "".join(parts)


if __name__ == "__main__":
    main()
