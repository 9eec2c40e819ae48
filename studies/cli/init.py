"""collwise init: makes a folder a project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from collwise import arguments
from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.common.project import HOME, Project, is_file
from collwise.platforms import known
from collwise.studies.cli.declare import argument, command, option
from collwise.studies.cli.types import PATH, Parsed, checked

_TEXT = """\
# A project of collwise: commands in this folder and below it keep their times in results/timings.sqlite here, and
# write to results/ by default. The values of --platform and --procs where a command requires them and has none:"""


@command("init study --platform gros --procs 16,64")
def init(
    directory: Path = argument(PATH, default=Path()),
    platform: str | None = option(
        "The platform of commands that require one.",
        Parsed("platform", checked(arguments.platform), lambda _: known(), False),
    ),
    procs: str | None = option(
        "The process counts of commands that require them: 16,64.", Parsed("counts", checked(arguments.counts))
    ),
) -> None:
    """Makes DIRECTORY, by default this one, a project: one store and results for all commands in it and below it.

    The file collwise.toml there marks it. The environment variable COLLWISE_HOME names a project for commands that run
    elsewhere.
    """
    project = Project(Path(os.path.abspath(directory)))
    if project.marker.exists():
        raise UsageError(f"{directory / project.marker.name} exists already; edit it, or remove it to make another one")
    if platform is not None and is_file(platform):
        file = Path(os.path.abspath(Path(platform).expanduser()))
        below = file.is_relative_to(project.folder)
        platform = f"./{file.relative_to(project.folder)}" if below else str(file)
    lines = _line("platform", platform, "gros"), _line("procs", procs, "16,64")
    write_text(project.marker, "\n".join([_TEXT, *lines, ""]))
    click.echo(f"{project.folder}: a project, with its store in {project.results / 'timings.sqlite'}")
    click.echo(f"commands that run elsewhere use it with {HOME}={project.folder}")


def _line(key: str, value: str | None, example: str) -> str:
    return f"# {key} = {json.dumps(example)}" if value is None else f"{key} = {json.dumps(value, ensure_ascii=False)}"
