"""collwise study: runs a study's notebook."""

from __future__ import annotations

from pathlib import Path

import click

from collwise.studies.cli.commands import example
from collwise.studies.cli.options import SimulationOptions, json_option, print_json, simulation_options, sweep_progress


@click.command(epilog=example("study nuriyev2021"))
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder. Default: results/NAME")
@click.option("--quick", is_flag=True, help="Fewer points where all of them take many minutes (pjesivac2007).")
@simulation_options
@json_option
def study(
    name: str,
    output: Path | None,
    quick: bool,
    simulation: SimulationOptions,
    as_json: bool,
) -> None:
    """Runs the study NAME.

    \b
    nuriyev2021   Nuriyev & Lastovetsky 2021 against its own data and simulation
    oflynn2009    O'Flynn 2009: models of a heterogeneous cluster, LMO among them
    pjesivac2007  Pješivac-Grbović et al. 2007: table, figures and claims (some 20 minutes on two cores)

    Writes NAME.md with the narrative, tables and figures (PNG), and NAME.json with the results. Where JupyterLab is
    installed ('collwise studio'), the executed notebook NAME.ipynb is written too.
    """
    from collwise.studies.papers.notebook import Study, notebook_of, run

    notebook_of(name)
    settings = Study(
        name,
        output or Path("results") / name,
        simulation.store,
        simulation.simgrid,
        simulation.jobs,
        sweep_progress,
        quick,
    )
    files = run(settings)
    if as_json:
        print_json(settings.results)
        return
    for sentence in settings.conclusions:
        click.echo(f"- {sentence}")
    click.echo("written: " + ", ".join(str(path) for path in files))
