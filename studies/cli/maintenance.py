"""collwise test, setup, studio: looking after the project itself."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.execution.installations import REPOSITORY


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def test(pytest_arguments: tuple[str, ...]) -> None:
    """Runs the tests; more arguments go to pytest (-m slow runs the long ones)."""
    command = [sys.executable, "-m", "pytest", *pytest_arguments]
    done = subprocess.run(command, cwd=REPOSITORY, check=False)
    if done.returncode != 0:
        raise CollwiseError(f"pytest ended with exit code {done.returncode}")


@click.command()
@click.option("--simgrid", "simgrid_version", metavar="VERSION", help="Build this SimGrid beside the system's: 4.1.")
@click.option("--jobs", type=click.IntRange(1), help="Compilations side by side. Default: the number of cores.")
def setup(simgrid_version: str | None, jobs: int | None) -> None:
    """Checks the set-up, or builds a newer SimGrid from its PyPI source package (several minutes).

    Simulations of 1024 processes and more then use it by themselves; --engine VERSION asks for it.
    """
    from collwise.simulator.execution.installations import build_programs, mpi_installation, smpi_installation
    from collwise.simulator.execution.simgrid_build import install_simgrid

    if simgrid_version is not None:
        prefix = install_simgrid(simgrid_version, jobs)
        build_programs(smpi_installation(simgrid_version))
        click.echo(f"SimGrid {simgrid_version}: {prefix}; use it with --engine {simgrid_version}")
        return
    missing = 0
    for find in (smpi_installation, lambda: mpi_installation("openmpi"), lambda: mpi_installation("mpich")):
        try:
            found = find()
            click.echo(f"{found.label}: {found.launcher}, programs in {found.build_directory}")
        except UsageError as problem:
            missing += 1
            click.echo(f"missing: {problem}")
    if missing:
        raise CollwiseError(f"{missing} of 3 engines are missing")


@click.command()
def studio() -> None:
    """Opens JupyterLab on the studies' notebooks; installs it on first use."""
    if importlib.util.find_spec("jupyterlab") is None:
        click.echo("collwise: installing JupyterLab (once)", err=True)
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", f"{REPOSITORY}[studio]"], check=False)
        if done.returncode != 0:
            raise CollwiseError("JupyterLab could not be installed; pip's message is above")
    os.chdir(REPOSITORY / "studies")
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab"])
