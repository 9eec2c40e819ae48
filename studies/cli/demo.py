"""collwise demo: chooses algorithms for two real clusters, in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.common.errors import CollwiseError
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.export import check_all
from collwise.studies.cli.output import own_command, print_table
from collwise.studies.cli.types import FOLDER
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.defaults import DECISION_SIZES, PAPER_SIZES

if TYPE_CHECKING:
    from rich.console import Console

    from collwise.studies.reports.choices import PlatformChoices
    from collwise.validation.compare.scores import Scores

# The process counts of the paper's figure 5, and those of its tables 2 and 3, which are shown.
CLUSTERS = {"grisou": (50, 80, 90), "gros": (80, 100, 124)}
SHOWN = {"grisou": 90, "gros": 100}
BY_MODEL, BY_ENGINE = ("bcast", "gather"), ("allreduce", "alltoall")
"""The collectives of the paper, whose choices are made by its models, and those that the schedule engine decides."""


@command("demo")
def demo(
    output: Path = option(FOLDER, lambda: results_folder() / "demo", show_default="results/demo"),
    baseline: Baseline = options.BASELINE,
    simulation: options.SimulationOptions = options.SIMULATION,
) -> None:
    """Chooses broadcast, gather, allreduce and alltoall algorithms for Grisou and Gros, and writes Open MPI rules.

    For broadcast and gather the command simulates the clusters, fits the models of Nuriyev & Lastovetsky 2021, and
    compares their choice and that of an untuned library with the best. The schedule engine chooses for allreduce and
    alltoall. Its times of all four are compared with SMPI's. A report, figures and rules files are written.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from collwise.studies.cli.tables import stdout_console
    from collwise.studies.reports.report import rules_path, sections_of, write_report, write_rules

    console = stdout_console()
    first, second = CLUSTERS
    # Another process makes the decisions and figures of the first platform, this one those of the second.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with simulation.context() as context:
            made = pool.submit(_decided, _compared(first, context, baseline, console))
            compared = _compared(second, context, baseline, console)
        own = _decided(compared)
        every = [made.result(), own]
        drawn = pool.submit(sections_of, every[0], output)
        write_rules(every, output)
        # Open MPI runs in its own processes while the figures are drawn.
        checks = check_all(rules_path(output, every[0], "4.1"), list(every[0].decisions.values()))
        own_sections = sections_of(own, output)
        page = write_report(every, output, [drawn.result(), own_sections], own_command())
    click.echo("Open MPI, run here with the rules of Grisou:")
    wrong = 0
    for line, ok in checks:
        click.echo(f"  {line}")
        wrong += not ok
    click.echo(f"\nreport with all tables and figures: {page}")
    for one in every:
        click.echo(f"rules for {one.platform.title}: {rules_path(output, one, '4.1')}")
    failures = sum(one.failures for one in every)
    if failures or wrong:
        raise CollwiseError(f"{failures} simulated cases failed, {wrong} checks of the rules failed")


def _compared(name: str, context: SimulationContext, baseline: Baseline, console: Console) -> PlatformChoices:
    """What models and engine choose on a platform, which is printed as well."""
    from collwise.platforms import load
    from collwise.studies.reports.choices import compared_on

    compared = compared_on(load(name), BY_MODEL, CLUSTERS[name], context, baseline, sizes=PAPER_SIZES)
    found = compared.with_engine(BY_ENGINE, SHOWN[name], context)
    _show(console, found, SHOWN[name])
    return found


def _decided(compared: PlatformChoices) -> PlatformChoices:
    return compared.decided(compared.predictions_to_decide(DECISION_SIZES), DECISION_SIZES)


def _show(console: Console, choices: PlatformChoices, procs: int) -> None:
    """Prints the tables for one process count, and the slowdowns of the picks over all process counts."""
    from collwise.studies.reports.comparison_table import compared_places, summary_line, table_columns, table_row
    from collwise.studies.reports.engine_table import agreement_line, engine_columns, engine_rows, library_line

    where, baseline = choices.platform.title, choices.baseline
    for collective, scores in choices.compared.items():
        right, places = scores.right, compared_places(scores)
        rows = [table_row(scores, baseline, *place)[1:] for place in places if right.procs[place[0]] == procs]
        title = f"{collective} on {where}, P = {procs} (simulated by {right.maker})"
        print_table(title, table_columns(scores, baseline)[1:], rows, left=0)
        counts = ", ".join(map(str, sorted({right.procs[i] for i, _ in places})))
        click.echo(f"P = {counts}: {summary_line(scores, baseline)}")
        click.echo(f"{_gain(scores, baseline)}\n{agreement_line(choices.by_engine[collective])}\n")
    for collective in BY_ENGINE:
        scores = choices.by_engine[collective]
        title = f"{collective} on {where}, P = {procs} (by the schedule engine)"
        rows = [row[1:] for row in engine_rows(scores, baseline) if row[0] == str(procs)]
        print_table(title, engine_columns(scores)[1:], rows, left=0)
        if line := library_line(scores):
            click.echo(line)
        click.echo(f"{agreement_line(scores)}\n")


def _gain(scores: Scores, baseline: Baseline) -> str:
    """The point at which the model's choice saves most time, in a line."""
    from collwise.studies.reports.comparison_table import compared_places

    (model,) = scores.times
    pairs = {at: (scores.pick(model, *at), scores.pick(baseline.title, *at)) for at in compared_places(scores)}
    (i, j), (ours, theirs) = max(pairs.items(), key=lambda pair: pair[1][1].seconds - pair[1][0].seconds)
    if theirs.seconds <= ours.seconds or ours.choice is None or theirs.choice is None:
        return f"no gain over {baseline.title}, whose choices are as good"
    return (
        f"largest gain over {baseline.title}: {format_size(scores.right.message_bytes[j])} on P = "
        f"{scores.right.procs[i]} takes {format_seconds(ours.seconds)} with {ours.choice.label} instead of "
        f"{format_seconds(theirs.seconds)} with {theirs.choice.label}"
    )
