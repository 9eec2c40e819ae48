"""collwise study: runs a study's notebook."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from collwise.studies.cli.commands import example
from collwise.studies.cli.options import SimulationOptions, json_option, print_json, simulation_options


@click.command(epilog=example("study nuriyev2021"))
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder. Default: results/NAME")
@click.option("--quick", is_flag=True, help="Fewer points where all of them take many minutes (pjesivac2007).")
@simulation_options
@json_option
def study(name: str, output: Path | None, quick: bool, simulation: SimulationOptions, as_json: bool) -> None:
    """Runs the study NAME: executes its notebook in a fresh Jupyter kernel.

    \b
    nuriyev2021   Nuriyev & Lastovetsky 2021 against its own data and simulation
    oflynn2009    O'Flynn 2009: models of a heterogeneous cluster, LMO among them
    pjesivac2007  Pješivac-Grbović et al. 2007: table, figures and claims (some 20 minutes on two cores)

    Writes NAME.md with the narrative, tables and figures (PNG), NAME.json with the results, and the executed notebook
    NAME.ipynb.
    """
    from collwise.studies.papers.notebook import run
    from collwise.studies.papers.study import environment

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0)
        results, files = run(
            name,
            environment(simulation, quick),
            output or Path("results") / name,
            lambda heading, done: bar.update(task, description=f"{name}: {heading}", completed=done),
        )
    if as_json:
        print_json(results)
        return
    for sentence in results["conclusions"]:
        click.echo(f"- {sentence}")
    click.echo("written: " + ", ".join(str(path) for path in files))
