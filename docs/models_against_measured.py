"""The times and parameters of the page models-measured.md, and what it says of them.

    .venv/bin/python docs/models_against_measured.py fit    # parameters of every model: docs/measured/*.toml
    .venv/bin/python docs/models_against_measured.py RUN    # times of a run, first or second: docs/measured/RUN.csv.gz
    .venv/bin/python docs/models_against_measured.py fast   # the same calls over links of 1 Gbit/s

They measure on test beds in this machine, for 10 to 25 minutes each, and need the right to make network namespaces.
Finished experiments are in results/measured-NAME.sqlite: a command that was stopped resumes. Other work may go on: see
`undisturbed`.
`docs/regenerate.py models-measured` makes the page from docs/measured and measures nothing.
"""

from __future__ import annotations

import gzip
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import collwise
from collwise import session
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size
from collwise.models.collectives.steps import steps_of
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.registry import CRITICAL_PATH, IMPLEMENTATION_AWARE
from collwise.platforms import load_description, write_description
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.simulator.timing import Configuration
from collwise.studies.figures.maps import decision_figure, slowdown_figure
from collwise.studies.figures.style import save
from collwise.studies.figures.three_way import rank_map
from collwise.studies.reports.markdown import markdown_table, percent
from collwise.validation.calibration.calibration import measure_points, refit
from collwise.validation.calibration.plan import USUAL
from collwise.validation.compare.deciders import Decider, Deciding
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.compare.simulated import one_segment_is_none
from collwise.validation.fitting.models_by_name import load_models
from collwise.validation.measurement.imports.table import text_of
from collwise.validation.measurement.runs import runs_in
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.platform import simulated_platform
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way.verdicts import ALL, OWN, SCHEDULED, rank_agreement
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid, without_repeats
from collwise.validation.times.measured import robust
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times

MEASURED = Path(__file__).resolve().parent / "measured"
FIGURES = MEASURED.parent / "figures"
SHAPE = Shape(nodes=8, bits_per_second=25e6)
FAST = Shape(nodes=8, bits_per_second=1e9)
# No size of the collectives is one that models were fitted with.
_WHOLE, _BLOCKS = tuple(1536 * 4**k for k in range(1, 5)), tuple(768 * 4**k for k in range(1, 4))
SIZES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("bcast", "reduce", "allreduce"), _WHOLE),
    **dict.fromkeys(("gather", "scatter", "allgather", "alltoall"), _BLOCKS),
}
TREES = Grid.of(
    "bcast", (3, 4, 5, 6, 7, 8), tuple(1024 * 2**k for k in range(9)), 1, (0, 1024, 8192),
    ("linear", "binomial", "binary", "split_binary", "chain"),
)  # fmt: skip
"""Figures 6 and 7 of Pješivac-Grbović et al. 2007, as far as the bed has processes."""
MOST_OF_PROCESSORS = 0.2
"""The share of a cell's time that may be the processors'."""
AGAIN, SMPI_NAME = "the first run (floor)", "SMPI"
IN_FIGURES = (AGAIN, SCHEDULED, CRITICAL_PATH, "hockney_by_size_as_printed", "loggp_as_printed", "plogp_as_printed")
FAMILIES = ("hockney", "logp", "loggp", "hockney_by_size", "plogp", "lmo", IMPLEMENTATION_AWARE, CRITICAL_PATH)


def collectives() -> list[Grid]:
    """Every algorithm of seven collectives, those that cut messages by 8 KiB, and the library's own choice."""
    grids = [Grid.of(name, (8,), sizes, 1, (8192,)) for name, sizes in SIZES.items()]
    return [grid.with_besides(lambda *_: LIBRARY_DECIDES) for grid in grids]


def undisturbed() -> None:
    """Gives this process and its children precedence over others, and has MPI's processes sleep while they wait."""
    os.setpriority(os.PRIO_PROCESS, 0, -15)
    library = results_folder() / "sleep_while_waiting.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", MEASURED / "sleep_while_waiting.c", "-o", library], check=True)
    os.environ["OMPI_MCA_mca_base_env_list"] = f"LD_PRELOAD={library}"


def fit(context: SimulationContext) -> None:
    with temporarily_up(SHAPE, "measured") as bed:
        target, nominal = TestBed(bed), simulated_platform(SHAPE)
        points = measure_points(target, nominal, USUAL, context.store)
        (MEASURED / "bed.toml").write_text(write_description(refit(points, nominal, context).platform))
        for family in FAMILIES:
            tell(family)
            names = {"collective": [*SIZES]} if family == CRITICAL_PATH else {}
            collwise.fit(target, family, context=context, **names).save(MEASURED / f"{family}.toml")


def measure(run: str, context: SimulationContext) -> None:
    loads = [os.getloadavg()[0]]
    with temporarily_up(FAST if run == "fast" else SHAPE, "measured") as bed:
        target = TestBed(bed)
        for name, grids, launches in (("", collectives(), 3), ("-trees", [TREES], 2)):
            how = Method(precision=Precision(3, 8, 0.95, 0.05), warmup=1, launches=1 if run == "fast" else launches)
            cases = without_repeats(case for grid in grids for case in grid.cases())
            tell(f"{run}{name}: {len(cases)} cases")
            found = measure_launches(target, cases, context.store, how)
            loads.append(os.getloadavg()[0])
            facts = {
                "timing": "maximum over processes after a barrier",
                "job": run,
                "launches": str(how.launches),
                "waiting": "sleeps of 50 us, nice -15",
                "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
                "load": " ".join(f"{load:.1f}" for load in loads),
            }
            about = Configuration("measured", target.name, target.installation.label, tuple(facts.items()))
            text = text_of(about, [robust(each) for each in zip(*found, strict=True)])
            (MEASURED / f"{run}{name}.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


# The page.


def times_of(name: str, grids: Sequence[Grid]) -> list[Times]:
    """The stored times of a run, on these grids."""
    (run,) = runs_in((MEASURED / f"{name}.csv.gz",))
    by_collective = {one.collective: one for one in run.times}
    return [by_collective[grid.collective].of_grid(grid) for grid in grids]


def facts_of(name: str) -> Mapping[str, str]:
    (run,) = runs_in((MEASURED / f"{name}.csv.gz",))
    return run.facts


def models() -> list[CollectiveModel]:
    """Every model of every parameter file, those with parameters of each algorithm first."""
    return [one for family in FAMILIES[::-1] for one in load_models(MEASURED / f"{family}.toml").values()]


def shares(right: Times, fast: Times) -> Array:
    """The processors' share of each time, at most: that of the same call over links 40 times as fast."""
    return np.asarray(fast.of_grid(right.grid).array / right.array)


def shown_cells(right: Times, fast: Times) -> Times:
    """The times at the sizes at which the processors' share is below the limit for every algorithm."""
    return right.where(np.nanmax(shares(right, fast), axis=0)[None] < MOST_OF_PROCESSORS)


def scores_of(run: str, grids: Sequence[Grid], context: SimulationContext, cut: Sequence[Times]) -> AllScores:
    """Scores of the other run, both engines and every model by the times `cut`."""
    ours = [replace(grid, besides=()) for grid in grids]
    bed = load_description(MEASURED / "bed.toml")
    first, schedule, smpi = (
        times_of(run, grids),
        *(simulate(bed, ours, replace(context, engine=engine)) for engine in (SCHEDULE, SMPI)),
    )
    found = []
    for right, *others, grid in zip(cut, first, schedule, smpi, ours, strict=True):
        named: dict[str, Times | Decider] = dict(zip((AGAIN, SCHEDULED, SMPI_NAME), others, strict=True))
        for model in models():
            if {*model.algorithms(grid.collective)} & {*grid.names}:
                named[model.name] = one_segment_is_none(predicted(model, grid))
        named |= {OWN: Deciding(OWN, lambda *_: LIBRARY_DECIDES)} if right.grid.besides else {}
        found.append(Scores(right, named))
    return AllScores(found)


def overview(scores: AllScores) -> str:
    """A row for each source: errors, ranks, what its picks lose, and what the schedule engine's lose there."""
    table, picks = scores.table(["source"]).set_index("source"), scores.pick_rows().dropna(subset="slowdown")
    ranks = rank_agreement(scores)
    taus = ranks[ranks.collective == ALL].set_index("source").tau_distinguishable
    at = ["collective", "procs", "message_bytes"]
    engines = picks[picks.source == SCHEDULED].set_index(at).slowdown
    rows = []
    for source in table.index:
        one, mine = table.loc[source], picks[picks.source == source]
        among = f"{mine.candidates.sum() / mine.measured.sum():.0%}".replace("%", " %") if source != OWN else "-"
        there = engines.reindex(pd.MultiIndex.from_frame(mine[at])).to_numpy().mean()
        rows.append(
            (
                *(source, int(one.cases) or "-", percent(one.median_error), percent(one.ninetieth_error)),
                f"{taus[source]:.2f}" if math.isfinite(taus.get(source, math.nan)) else "-",
                *(len(mine), among, percent(one.mean_slowdown), percent(one.worst_slowdown), percent(there)),
            )
        )
    columns = (
        *("source", "times", "median error", "90 % within", "tau", "cells"),
        *("of the algorithms", "mean regret", "worst", "the engine's there"),
    )
    return markdown_table(columns, rows, 1)


def by_collective(scores: AllScores, column: str) -> str:
    """One of the columns of scores for each source and collective."""
    table = scores.table(["source", "collective"]).set_index(["source", "collective"])[column]
    sources = dict.fromkeys(source for source, _ in table.index)
    rows = [(one, *(percent(float(table.get((one, name), math.nan))) for name in scores)) for one in sources]
    return markdown_table(("source", *scores), rows, 1)


def further_receivers(right: Times, model: CollectiveModel) -> str:
    """The time of each further receiver of a linear broadcast over g(m): what depends on their number."""
    linear, procs = right.index_of(Choice("linear")), right.procs
    gap = steps_of(model.parameters).gap  # type: ignore[attr-defined]
    rows = []
    for j, size in enumerate(right.message_bytes):
        seconds = right.seconds.values[linear, :, j]
        ratios = np.diff(seconds) / float(gap(size))
        rows.append((format_size(size), format_seconds(float(gap(size))), *(f"{one:.2f}" for one in ratios)))
    return markdown_table(("m", "g(m)", *(f"{count - 1} to {count}" for count in procs[1:])), rows, 1)


def page(context: SimulationContext) -> str:
    """The whole page; writes its figures."""
    grids, trees = collectives(), replace(TREES, besides=())
    fast = times_of("fast", grids)
    every = times_of("second", grids)
    scores = scores_of("first", grids, context, [shown_cells(*both) for both in zip(every, fast, strict=True)])
    (fast_trees,), (measured_trees,) = times_of("fast-trees", [trees]), times_of("second-trees", [trees])
    cells = np.nanmax(shares(measured_trees, fast_trees), axis=0) < MOST_OF_PROCESSORS
    maps = scores_of("first-trees", [trees], context, [measured_trees.where(cells[None])])
    (bcasts,) = maps.values()
    drawn = bcasts.without(*(name for name in bcasts.others if name not in IN_FIGURES))
    for name, figure in {
        "ranks": rank_map(rank_agreement(scores), "Rank agreement with measured times, pairs that differ"),
        "figure-6": decision_figure(drawn, "The best broadcast for P = 3 to 8"),
        "figure-7": slowdown_figure(drawn, "Penalty of the picks: broadcast for P = 3 to 8"),
    }.items():
        save(figure, FIGURES / f"models-measured-{name}.png")
    plogp = load_models(MEASURED / "plogp.toml")["plogp"]
    return "\n".join(
        [
            overview(scores),
            by_collective(scores, "median_error"),
            by_collective(scores, "mean_slowdown"),
            overview(maps),
            further_receivers(measured_trees, plogp),
        ]
    )


def tell(what: str) -> None:
    print(time.strftime("%H:%M:%S"), f"load {os.getloadavg()[0]:.1f}", what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    undisturbed()
    for name in sys.argv[1:]:
        with session(results_folder() / f"measured-{name}.sqlite") as open_session:
            fit(open_session) if name == "fit" else measure(name, open_session)
        tell(f"{name}: done")
