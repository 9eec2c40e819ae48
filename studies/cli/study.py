"""collwise study: runs a notebook from question to answer."""

from __future__ import annotations

from pathlib import Path

import click

from collwise.common.project import results_folder
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, flag, option
from collwise.studies.cli.derive import command
from collwise.studies.cli.output import print_json
from collwise.studies.cli.types import PATH


@command("study nuriyev2021")
def study(
    name: str = argument(),
    output: Path | None = option(PATH),
    quick: bool = flag(),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Runs the study NAME: executes its notebook in a fresh Jupyter kernel.

    \b
    hunold2018       Hunold & Carpen-Amarie 2018: guidelines that libraries violate, on the paper's machines
    luo2020          Luo et al. 2020 (HAN): hierarchical collectives, their tasks and tuning (some 20 minutes)
    nuriyev2021      Nuriyev & Lastovetsky 2021 against its own data and simulation
    oflynn2009       O'Flynn 2009: models of a heterogeneous cluster, LMO among them
    pjesivac2007     Pješivac-Grbović et al. 2007: table, figures and claims (some 20 minutes on two cores)
    getting_started  which broadcast to use on Dahu, and what it gains over Open MPI as it is
    model_accuracy   which model or simulation to trust, by collective and size
    own_cluster      a cluster of one's own, from its description to rules
    whatif           another bandwidth for Gros: what changes, from where on and why, with sliders

    Writes NAME.md with the narrative, tables and figures (PNG), NAME.json with the results, and the executed notebook
    NAME.ipynb.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from collwise.studies.papers.notebook import run
    from collwise.studies.papers.study import environment

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0)
        results, files = run(
            name,
            environment(simulation, quick),
            output or results_folder() / name,
            lambda heading, done: bar.update(task, description=f"{name}: {heading}", completed=done),
        )
    if as_json:
        print_json([results])
        return
    for sentence in results["conclusions"]:
        click.echo(f"- {sentence}")
    click.echo("written: " + ", ".join(str(path) for path in files))
