"""The times and parameters of the page models-measured.md, and what it says of them.

    .venv/bin/python docs/models_against_measured.py fit         # parameters of every model: docs/measured/*.toml
    .venv/bin/python docs/models_against_measured.py receivers   # of LogGP and PLogP with a gap by number of receivers
    .venv/bin/python docs/models_against_measured.py RUN         # a run, first or second: docs/measured/RUN.csv.gz
    .venv/bin/python docs/models_against_measured.py fast        # the same over links of twice the rate

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
from typing import Any

import numpy as np
import pandas as pd

import collwise
from collwise import session
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size
from collwise.models.collectives.steps import steps_of
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.registry import AS_PRINTED, BY_PARTS, CRITICAL_PATH, IMPLEMENTATION_AWARE
from collwise.platforms import load_description, write_description
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.simulator.timing import Configuration
from collwise.studies.figures.maps import decision_figure, slowdown_figure
from collwise.studies.figures.style import save
from collwise.studies.figures.three_way import rank_map
from collwise.studies.reports.markdown import markdown_table, percent, whole_percent
from collwise.validation.calibration.calibration import USUAL, measure_points, refit
from collwise.validation.compare.deciders import Decider, Deciding
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.compare.simulated import one_segment_is_none
from collwise.validation.fitting.models_by_name import load_models
from collwise.validation.measurement.imports import read_file
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.measurement.imports.table import text_of
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way.verdicts import ALL, OWN, SCHEDULED, rank_agreement
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid, without_repeats
from collwise.validation.times.measured import robust, times_of_run
from collwise.validation.times.sources import predicted, simulate
from collwise.validation.times.times import Times

MEASURED = Path(__file__).resolve().parent / "measured"
FIGURES, MACHINES_PAGE = MEASURED.parent / "figures", MEASURED.parent / "machines.md"
SHAPE = Shape(nodes=8, bits_per_second=25e6)
FAST = replace(SHAPE, bits_per_second=2 * SHAPE.bits_per_second)
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
FIRST, SECOND, EARLIER, SMPI_NAME = "first run", "second run", "earlier runs", "SMPI"
RUNS = ("earlier-first", "earlier-second", "first", "fast", "second")
IN_FIGURES = (FIRST, SCHEDULED, CRITICAL_PATH, "hockney_by_size_as_printed", "loggp_as_printed", "plogp_as_printed")
WITH_RECEIVERS = ("loggp", "plogp")
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
    os.environ |= {"OMPI_MCA_mca_base_env_list": f"LD_PRELOAD={library}"}


def fit(context: SimulationContext) -> None:
    with temporarily_up(SHAPE, "measured") as bed:
        target, nominal = TestBed(bed), simulated_platform(SHAPE)
        points = measure_points(target, nominal, USUAL, context.store)
        (MEASURED / "bed.toml").write_text(write_description(refit(points, nominal, context).platform))
        for family in FAMILIES:
            tell(family)
            names = {"collective": [*SIZES]} if family == CRITICAL_PATH else {}
            collwise.fit(target, family, context=context, **names).save(MEASURED / f"{family}.toml")


def fit_receivers(context: SimulationContext) -> None:
    with temporarily_up(SHAPE, "measured") as bed:
        for family in WITH_RECEIVERS:
            tell(family)
            fitted = collwise.fit(TestBed(bed), family, by_receivers=True, context=context)
            fitted.save(MEASURED / f"{family}-by-receivers.toml")


def measure(run: str, context: SimulationContext) -> None:
    loads = [os.getloadavg()[0]]
    with temporarily_up(FAST if run == "fast" else SHAPE, "measured") as bed:
        target = TestBed(bed)
        for name, grids, launches in (("", collectives(), 3), ("-trees", [TREES], 2)):
            how = Method(precision=Precision(3, 8, 0.95, 0.05), warmup=1, launches=launches)
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
    ((about, timings),) = read_file(MEASURED / f"{name}.csv.gz", MissingFacts())
    # Whoever forces a library's algorithms may be mistaken about it; these are our own, and ran.
    ran = [replace(one, seconds=one.median_seconds, error="") for one in timings]
    by_collective = {one.collective: one for one in times_of_run(about, ran)}
    return [by_collective[grid.collective].of_grid(grid) for grid in grids]


def fact(run: str, name: str) -> str:
    """A fact of a run of measurements."""
    ((about, _),) = read_file(MEASURED / f"{run}.csv.gz", MissingFacts(), values=False)
    return dict(about.details)[name]


def models() -> dict[str, CollectiveModel]:
    """Every model of every parameter file, those with parameters of each algorithm first.

    The names of models whose gap depends on the number of receivers say so; those that are refitted have the same
    parameters without that.
    """
    found: dict[str, CollectiveModel] = {}
    for family in FAMILIES[::-1]:
        found |= load_models(MEASURED / f"{family}.toml")
        if family in WITH_RECEIVERS:
            one: Any = load_models(MEASURED / f"{family}-by-receivers.toml")[family]
            constant = replace(one, parameters=replace(one.parameters, further_gap=None))
            found |= {f"{family}, refitted": constant, f"{family}, by receivers": one}
    return found


def shares(right: Times, fast: Times) -> Array:
    """The processors' share of each time: what is left at twice the rate of the half that the links would take."""
    return np.asarray(2 * fast.of_grid(right.grid).array / right.array - 1)


def undisturbed_times(runs: Sequence[Times]) -> Times:
    """Each time from the run in which it was shorter, since whatever else the machine does only adds to it."""
    first, second = runs
    shorter = first.seconds <= second.seconds.fillna(np.inf)
    data = first.data.assign(
        {name: first.data[name].where(shorter, second.data[name]) for name in ("seconds", "half_width_seconds")}
    )
    return replace(first, data=data)


def scores_of(runs: Sequence[Times], fast: Times, context: SimulationContext, earlier: Sequence[Times] = ()) -> Scores:
    """Scores of all runs, both engines and every model by the undisturbed times of the cells that count."""
    right = undisturbed_times(runs)
    right = right.where(np.nanmedian(shares(right, fast), axis=0)[None] < MOST_OF_PROCESSORS)
    ours, bed = replace(right.grid, besides=()), load_description(MEASURED / "bed.toml")
    named: dict[str, Times | Decider] = dict(zip((FIRST, SECOND), runs, strict=True))
    if earlier:
        named[EARLIER] = undisturbed_times(earlier)
    for name, engine in ((SCHEDULED, SCHEDULE), (SMPI_NAME, SMPI)):
        (named[name],) = simulate(bed, [ours], replace(context, engine=engine))
    for name, model in models().items():
        if {*model.algorithms(ours.collective)} & {*ours.names}:
            named[name] = one_segment_is_none(predicted(model, ours))
    if right.grid.besides:
        named[OWN] = Deciding(OWN, lambda *_: LIBRARY_DECIDES)
    return Scores(right, named)


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


def by_size(scores: Scores) -> list[tuple[str, ...]]:
    """A collective in the form of tables 2 and 3 of Nuriyev & Lastovetsky 2021: picks and their slowdowns."""
    rows = []
    for i, j in scores.places():
        best, picks = scores.pick(None, i, j), [scores.pick(name, i, j) for name in (AS_PRINTED, BY_PARTS)]
        own = whole_percent(float(scores.slowdown[OWN].values[i, j]))
        shown = [f"{one.name} ({whole_percent(one.slowdown)})" for one in picks]
        size, seconds = format_size(scores.right.message_bytes[j]), format_seconds(best.seconds)
        rows.append((scores.right.collective, size, best.name, seconds, *shown, own))
    return rows


def ranked(scores: AllScores) -> list[tuple[str, float, float]]:
    """Models that know half of the algorithms in half of the cells, with mean regret and median error, in order."""
    table, picks = scores.table(["source"]).set_index("source"), scores.pick_rows().dropna(subset="slowdown")
    known, cells = picks.groupby("source")[["candidates", "measured"]].sum(), picks.groupby("source").size()
    wide = known.index[(known.candidates >= known.measured / 2) & (cells >= cells[SCHEDULED] / 2)]
    wide = wide.difference([FIRST, SECOND, EARLIER, SCHEDULED, SMPI_NAME, OWN])
    found = [(name, float(table.mean_slowdown[name]), float(table.median_error[name])) for name in wide]
    return sorted(found, key=lambda one: one[1])


def page(context: SimulationContext) -> str:
    """The whole page; writes its figures."""
    names = ("first", "second", "fast")
    each, (of_trees,) = (
        [*zip(*(times_of(f"{run}{name}", grids) for run in names), strict=True)]
        for name, grids in (("", collectives()), ("-trees", [replace(TREES, besides=())]))
    )
    earlier = zip(*(times_of(f"earlier-{run}", collectives()) for run in names[:2]), strict=True)
    scores = AllScores(
        scores_of((first, second), fast, context, before)
        for (first, second, fast), before in zip(each, earlier, strict=True)
    )
    bcasts = scores_of(of_trees[:2], of_trees[2], context)
    apart = np.concatenate([np.abs(first.array / second.array - 1).ravel() for first, second, _ in each])
    drawn = bcasts.without(*(name for name in bcasts.others if name not in IN_FIGURES))
    for name, figure in {
        "ranks": rank_map(rank_agreement(scores), "Rank agreement with measured times, pairs that differ"),
        "figure-6": decision_figure(drawn, "The best broadcast for P = 3 to 8"),
        "figure-7": slowdown_figure(drawn, "Penalty of the picks: broadcast for P = 3 to 8"),
    }.items():
        save(figure, FIGURES / f"models-measured-{name}.png")
    table, table_of_maps = (one.table(["source"]).set_index("source") for one in (scores, bcasts))
    cells, shown = sum(len(first.grid.points) for first, *_ in each), int(table.points[SCHEDULED])
    tree_points = int(table_of_maps.points[SCHEDULED])
    best, then, *_ = models_by_regret = ranked(scores)
    places = {name: number for number, (name, *_) in enumerate(models_by_regret, 1)}
    two_and_three = [row for name in ("bcast", "gather") for row in by_size(scores[name])]
    machines = MACHINES_PAGE.read_text(encoding="utf-8")
    on_machines = machines.split("**Data sheets and models", 1)[1].split("\n\n")[1]
    plogp = load_models(MEASURED / "plogp.toml")["plogp"]
    by_receivers: Any = load_models(MEASURED / "loggp-by-receivers.toml")["loggp"]
    gap, further = by_receivers.parameters.gap_seconds, by_receivers.parameters.further_gap
    change = [*zip(further.receivers, further.seconds, strict=True)][1:]
    return f"""
# Models against measured times

Every model, both engines and untuned Open MPI 4.1.4 beside times that real Open MPI took over TCP, **emulated**: on a
[test bed](testbed.md) of 8 nodes at 25 Mbit/s in one machine. **By construction**: critical_path, by_parts and
as_printed are fitted to the same algorithms on 5 and 8 processes, at other sizes than those of the collectives shown;
other parameters, and the engines' platform, are fitted to messages between a few processes. All were fitted before the
first of two runs of measurements. Of both runs the shorter time judges, since other work on the machine only adds to
times. A run's own row is therefore no error of a second measurement: the floor is what the two differ by.

## What to take away

- **The floor**: two runs differ by {percent(float(np.nanmedian(apart)))} in the median; choosing by one of them loses
  {percent(table.mean_slowdown[FIRST])} or {percent(table.mean_slowdown[SECOND])} on average. Earlier runs, on a busy
  machine, differ by {percent(table.median_error[EARLIER])} from them; choosing by those loses
  {percent(table.mean_slowdown[EARLIER])}.
- **The engines**: the schedule engine is {percent(table.median_error[SCHEDULED])} off in the median, and its picks lose
  {percent(table.mean_slowdown[SCHEDULED])} on average, {percent(table.worst_slowdown[SCHEDULED])} at worst; SMPI is
  {percent(table.median_error[SMPI_NAME])} off, and loses {percent(table.mean_slowdown[SMPI_NAME])} and
  {percent(table.worst_slowdown[SMPI_NAME])}.
- **Models** that know at least half of the algorithms in half of the cells: {best[0]} loses
  least, {percent(best[1])}, then {then[0]},
  {percent(then[1])}. Small errors are another thing: {percent(best[2])} and {percent(then[2])} in the median.
- **critical_path**, the default, is number {places[CRITICAL_PATH]} of {len(places)} in regret, but
  {percent(table.median_error[CRITICAL_PATH])} off, and loses
  {percent(table_of_maps.mean_slowdown[CRITICAL_PATH])} in the decision functions below. Its errors are those of eager
  messages, short ones and segments: what a send waits for room in its socket's buffer is measured as time of the
  processor. In simulation nothing waits there, and it is the best model ([evaluation](evaluation.md)).
- **Untuned Open MPI** loses {percent(table.mean_slowdown[OWN])} on average, {percent(table.worst_slowdown[OWN])} at
  worst.
- A model may be off by much and choose well: errors that all algorithms share cancel. Look at regret and tau.

## All collectives

Seven collectives on 8 processes, each at three or four sizes that no fit had. tau is Kendall's, of pairs whose measured
times differ by more than their intervals. Regret is the measured time of the pick over that of the best of all
algorithms, less one; "of the algorithms" says how many the source has times for, and the last column what the
engine's picks lose in the cells of that row. {shown} of {cells} cells are shown: those where the processors' share
of the time is below {percent(MOST_OF_PROCESSORS, digits=0)}, by the same calls over links of twice the rate.

{overview(scores)}
Median errors by collective:

{by_collective(scores, "median_error")}
Mean regret by collective:

{by_collective(scores, "mean_slowdown")}
![Kendall's tau by source and collective](figures/models-measured-ranks.png)

## In the form of tables 2 and 3 of Nuriyev & Lastovetsky 2021

Picks of the paper's model, fitted and measured under one Open MPI, and Open MPI's own choice; slowdowns in percent.

{markdown_table(("collective", "m", "best", "time", "as_printed (%)", "by_parts (%)", "Open MPI (%)"), two_and_three)}
## Decision functions of Pješivac-Grbović et al. 2007

Figures 6 and 7 of the paper for P = 3 to 8 from measured times: linear, binomial, binary, split-binary and chain,
whole and by 1 and 8 KiB, 1 to 256 KiB; {tree_points} of {len(TREES.points)} points have so small a share of the
processors.

![the best broadcast by source](figures/models-measured-figure-6.png)

![penalties](figures/models-measured-figure-7.png)

{overview(AllScores([bcasts]))}
### Does the gap depend on the number of receivers?

The paper suspects so where its models fail. The time of each further receiver of a linear broadcast, over PLogP's g(m):

{further_receivers(undisturbed_times(of_trees[:2]), plogp)}
From 16 KiB on a further receiver costs about a gap, whatever their number; below, a message fits into the bed's token
bucket or a socket's buffer, and times are those of processors. There the gap does depend on receivers: with
`fit --by-receivers`, LogGP and PLogP have a gap of {format_seconds(gap)} to one receiver, and of
{", ".join(f"{format_seconds(gap + seconds)} to {count:.0f}" for count, seconds in change)}, by linear scatters of one
byte, measured later than the rest. Against the same parameters without it ("refitted"), the median error of LogGP in
the decision functions goes from {percent(table_of_maps.median_error["loggp, refitted"])} to
{percent(table_of_maps.median_error["loggp, by receivers"])}, the mean regret from
{percent(table_of_maps.mean_slowdown["loggp, refitted"])} to
{percent(table_of_maps.mean_slowdown["loggp, by receivers"])}; of PLogP from
{percent(table_of_maps.median_error["plogp, refitted"])} to
{percent(table_of_maps.median_error["plogp, by receivers"])}, and from
{percent(table_of_maps.mean_slowdown["plogp, refitted"])} to
{percent(table_of_maps.mean_slowdown["plogp, by receivers"])}. The engine has no such gap: it matters only for messages
whose time is mostly the processors'.

## On supercomputers

`collwise check machines` judges the same models, fitted to descriptions, by public runs ([machines](machines.md)):
cells, median error, mean regret (that of the engine in the same cells).

{on_machines}

## How it was measured

`docs/models_against_measured.py fit`, `first`, `second` and `fast` measure; `docs/regenerate.py models-measured` makes
this page from docs/measured. Eight processes share two processors: they therefore slept for 50 us in place of polling,
and had precedence. Times are medians of three launches' medians, those of decision functions of two. When runs ended,
and the load at their beginnings and ends:

{markdown_table(("run", "ended", "load"), [(run, fact(run, "measured"), fact(run, "load")) for run in RUNS], 2)}
Two rules were made after a look at the earlier runs. By the second of them alone a few stalls ruled the errors: 1.1 %
and a regret of 4.5 % for the engine, with a floor of 4.5 %. By the worst algorithm at 1 Gbit/s hardly a cell had a
small share of the processors. Parameters were fitted anew for the later runs.

Whoever has a bed or a cluster gets the same comparison of all models by

```sh
./collwise check three-way --testbed --quick --rate 25Mbit
```
"""


def tell(what: str) -> None:
    print(time.strftime("%H:%M:%S"), f"load {os.getloadavg()[0]:.1f}", what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    undisturbed()
    for name in sys.argv[1:]:
        with session(results_folder() / f"measured-{name}.sqlite") as open_session:
            fits = {"fit": fit, "receivers": fit_receivers}
            fits[name](open_session) if name in fits else measure(name, open_session)
        tell(f"{name}: done")
