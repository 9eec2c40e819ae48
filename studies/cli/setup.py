"""collwise setup: install, project, completion, schema; test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import write_text
from collwise.common.folders import SOURCES
from collwise.common.program import NAME
from collwise.common.project import HOME, Project, is_file
from collwise.platforms import known
from collwise.simulator.execution.installations import mpi_installation, smpi_installation
from collwise.studies.cli import json_schema
from collwise.studies.cli.commands import COMPLETION_VARIABLE, CommandGroup, example
from collwise.studies.cli.declare import argument, option
from collwise.studies.cli.derive import command
from collwise.studies.cli.types import PATH, NamedChoice, Parsed, checked

_SHELLS = ("bash", "zsh", "fish")
# One process more than there are cores, since tests wait for programs that they start. A process that has finished
# takes over tests of the others, so that the process with the long tests does not end long after the others.
_WORKERS = ("-n", str(min(len(os.sched_getaffinity(0)) + 1, 4)), "--dist", "worksteal")

_PROJECT_FILE = """\
# A project of collwise: commands in this folder and below it keep their times in results/timings.sqlite here, and
# write to results/ by default. The defaults of --platform and --procs for commands that require these options:"""


@click.group(cls=CommandGroup, epilog=example("setup install --simgrid 4.1"), invoke_without_command=True)
@click.pass_context
def setup(context: click.Context) -> None:
    """Manages the installation and projects.

    Without a subcommand it checks the installation, as 'setup install' does.
    """
    if context.invoked_subcommand is None:
        context.invoke(install)


@command("setup project study --platform gros --procs 16,64", parent=setup)
def project(
    directory: Path = argument(PATH, default=Path()),
    platform: str | None = option(Parsed("platform", checked(arguments.platform), lambda _: known(), False)),
    procs: str | None = option(Parsed("counts", checked(arguments.counts))),
) -> None:
    """Makes DIRECTORY (by default the current one) a project.

    All commands in DIRECTORY and below it share one store and one folder of results. The file collwise.toml in
    DIRECTORY marks the project.
    --platform and --procs become the defaults of commands that require these options.
    The environment variable COLLWISE_HOME names a project for commands that run elsewhere.
    """
    made = Project(Path(os.path.abspath(directory)))
    if made.marker.exists():
        raise UsageError(f"{directory / made.marker.name} already exists; edit it, or remove it to make another one")
    if platform is not None and is_file(platform):
        file = Path(os.path.abspath(Path(platform).expanduser()))
        below = file.is_relative_to(made.folder)
        platform = f"./{file.relative_to(made.folder)}" if below else str(file)
    lines = _project_line("platform", platform, "gros"), _project_line("procs", procs, "16,64")
    write_text(made.marker, "\n".join([_PROJECT_FILE, *lines, ""]))
    click.echo(f"{made.folder}: a project, with its store in {made.results / 'timings.sqlite'}")
    click.echo(f"commands that run elsewhere use it with {HOME}={made.folder}")


def _project_line(key: str, value: str | None, example: str) -> str:
    return f"# {key} = {json.dumps(example)}" if value is None else f"{key} = {json.dumps(value, ensure_ascii=False)}"


@command("setup install --simgrid 4.1", parent=setup)
def install(
    simgrid_version: str | None = option(key="simgrid"),
    jobs: int | None = option(click.IntRange(1)),
) -> None:
    """Checks the installation and builds all C programs, or SimGrid.

    Other commands build the C programs that they need. With --simgrid it builds a newer SimGrid from its PyPI source
    package (several minutes). Simulations of 1024 or more processes then use this SimGrid automatically; smaller
    simulations use it if --simgrid asks for it.
    """
    from collwise.simulator.execution.simgrid_build import install_simgrid

    if simgrid_version is not None:
        prefix = install_simgrid(simgrid_version, jobs)
        smpi_installation(simgrid_version).build.make()
        click.echo(f"SimGrid {simgrid_version}: {prefix}; use it with --simgrid {simgrid_version}")
        return
    missing = 0
    for engine in _build_all():
        click.echo(engine)
        missing += engine.startswith("missing")
    if missing:
        raise CollwiseError(f"{missing} of 3 engines are missing")


def _build_all() -> Iterator[str]:
    """Builds all C programs of each installed engine. Yields a line about each engine, also about missing ones."""
    from collwise.simulator.schedule.library import library_file, schedule_build

    for find in (smpi_installation, lambda: mpi_installation("openmpi"), lambda: mpi_installation("mpich")):
        try:
            found = find()
            found.build.make()
            yield f"{found.label}: {found.launcher}, programs in {found.build_directory}"
        except UsageError as problem:
            yield f"missing: {problem}"
    schedule_build().make()
    yield f"schedule engine: {library_file()}"


@command("setup completion bash", parent=setup)
def completion(shell: str = argument(NamedChoice("shell", _SHELLS))) -> None:
    """Prints a script for completion in SHELL.

    SHELL then completes commands, options, platforms, collectives and algorithms.

    \b
    bash: put eval "$(/path/to/collwise setup completion bash)" into ~/.bashrc.
    zsh: put eval "$(/path/to/collwise setup completion zsh)" into ~/.zshrc, after compinit; collwise must be on
    the PATH.
    fish: collwise setup completion fish > ~/.config/fish/completions/collwise.fish; collwise must be on the PATH.
    """
    root = click.get_current_context().find_root()
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(root.command, {}, NAME, COMPLETION_VARIABLE).source())


@command("setup schema predict", "schema", parent=setup)
def show_schema(
    words: tuple[str, ...] = argument(nargs=-1, metavar="[COMMAND [SUBCOMMAND]]"),
) -> None:
    """Prints the JSON Schema of a command's --json output.

    Without COMMAND it prints the schema of all commands.
    """
    click.echo(json.dumps(json_schema.schema(" ".join(words) or None), indent=2))


@command("setup test -q tests/platforms", parent=setup, context_settings={"ignore_unknown_options": True})
def test(pytest_arguments: tuple[str, ...] = argument(click.UNPROCESSED, nargs=-1)) -> None:  # noqa: PT028
    """Runs the tests in up to four processes.

    There is one process more than there are cores. More arguments go to pytest: -m slow runs the long tests, -n 0 runs
    them in one process.
    """
    if not (SOURCES / "tests").is_dir():
        raise UsageError("the tests are not part of an installed package; run ./collwise test in a clone")
    for engine in _build_all():
        if engine.startswith("missing"):
            note(engine)
    command = [sys.executable, "-m", "pytest", *_WORKERS, *pytest_arguments]
    done = subprocess.run(command, cwd=SOURCES, check=False)
    if done.returncode != 0:
        raise CollwiseError(f"pytest ended with exit code {done.returncode}")
