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
from collwise.validation.times.defaults import PAPER_SIZES

if TYPE_CHECKING:
    from rich.console import Console

    from collwise.validation.compare.comparison import ComparisonResult
    from collwise.validation.select.tuning import Tuning

# The process counts of the paper's figure 5, and those of its tables 2 and 3, which are shown.
CLUSTERS = {"grisou": (50, 80, 90), "gros": (80, 100, 124)}
SHOWN = {"grisou": 90, "gros": 100}
BY_MODEL, BY_ENGINE = ("bcast", "gather"), ("allreduce", "alltoall")
"""The collectives of the paper, whose choices are made by its models, and those that the schedule engine decides."""


@command("demo")
def demo(
    output: Path = option(
        None, FOLDER, lambda: results_folder() / "demo", names="-o --output", show_default="results/demo"
    ),
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
    from collwise.validation.select.tuning import decided

    console = stdout_console()
    first, second = CLUSTERS
    # Another process makes the decisions and figures of the first platform, this one those of the second.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with simulation.context() as context:
            made = pool.submit(decided, _tuned(first, context, baseline, console))
            tuning = _tuned(second, context, baseline, console)
        own = decided(tuning)
        tunings = [made.result(), own]
        drawn = pool.submit(sections_of, tunings[0], output)
        write_rules(tunings, output)
        # Open MPI runs in its own processes while the figures are drawn.
        checks = check_all(rules_path(output, tunings[0], "4.1"), list(tunings[0].decisions.values()))
        own_sections = sections_of(own, output)
        page = write_report(tunings, output, [drawn.result(), own_sections], own_command())
    click.echo("Open MPI, run here with the rules of Grisou:")
    wrong = 0
    for line, ok in checks:
        click.echo(f"  {line}")
        wrong += not ok
    click.echo(f"\nreport with all tables and figures: {page}")
    for tuning in tunings:
        click.echo(f"rules for {tuning.platform.title}: {rules_path(output, tuning, '4.1')}")
    failures = sum(tuning.failures for tuning in tunings)
    if failures or wrong:
        raise CollwiseError(f"{failures} simulated cases failed, {wrong} checks of the rules failed")


def _tuned(name: str, context: SimulationContext, baseline: Baseline, console: Console) -> Tuning:
    """The choices by models and engine on a platform, which are printed as well."""
    from collwise.platforms import load
    from collwise.validation.select.tuning import tune, tune_by_engine

    tuning = tune(load(name), BY_MODEL, CLUSTERS[name], context, baseline, sizes=PAPER_SIZES)
    tuning = tune_by_engine(tuning, BY_ENGINE, SHOWN[name], context)
    _show(console, tuning, SHOWN[name])
    return tuning


def _show(console: Console, tuning: Tuning, procs: int) -> None:
    """Prints the tables for one process count, and the slowdowns of the picks over all process counts."""
    from collwise.studies.reports.comparison_table import summary_line, table_columns, table_row
    from collwise.studies.reports.engine_table import agreement_line, engine_columns, engine_rows, library_line

    for collective, result in tuning.comparisons.items():
        rows = [table_row(row) for row in result.rows if row.procs == procs]
        maker = result.sweep.configuration.maker
        title = f"{collective} on {tuning.platform.title}, P = {procs} (simulated by {maker})"
        print_table(title, table_columns(result)[1:], [row[1:] for row in rows], left=0)
        click.echo(f"P = {', '.join(sorted({str(row.procs) for row in result.rows}, key=int))}: {summary_line(result)}")
        click.echo(f"{_gain(result)}\n{agreement_line(tuning.by_engine[collective])}\n")
    for collective in BY_ENGINE:
        choices = tuning.by_engine[collective]
        title = f"{collective} on {tuning.platform.title}, P = {procs} (by the schedule engine)"
        rows = [row[1:] for row in engine_rows(choices) if row[0] == str(procs)]
        print_table(title, engine_columns(choices)[1:], rows, left=0)
        if line := library_line(choices):
            click.echo(line)
        click.echo(f"{agreement_line(choices)}\n")


def _gain(result: ComparisonResult) -> str:
    """The point at which the model's choice saves most time, in a line."""
    title = result.baseline.title
    gained = max(result.rows, key=lambda row: row.baseline.seconds - row.model.seconds)
    if gained.baseline.seconds <= gained.model.seconds:
        return f"no gain over {title}, whose choices are as good"
    return (
        f"largest gain over {title}: {format_size(gained.message_bytes)} on P = {gained.procs} takes "
        f"{format_seconds(gained.model.seconds)} with {gained.model.choice.label} instead of "
        f"{format_seconds(gained.baseline.seconds)} with {gained.baseline.choice.label}"
    )
