"""The project: a folder with the store and the results of all commands that run in it or below it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError, unknown_name
from collwise.common.keys import read_toml

MARKER = "collwise.toml"  # the file that makes a folder a project
HOME = "COLLWISE_HOME"  # the environment variable that names a project's folder, for commands that run anywhere
_KEYS = ("platform", "procs")


@dataclass(frozen=True)
class Project:
    """A project: its folder, and its values of --platform and --procs for commands that require them."""

    folder: Path
    platform: str | None = None
    procs: str | None = None

    @property
    def results(self) -> Path:
        """The folder of the project's store and of the results of commands."""
        return self.folder / "results"

    @property
    def marker(self) -> Path:
        """The file that makes the folder a project."""
        return self.folder / MARKER

    @classmethod
    def read(cls, folder: Path) -> Project:
        """The project of a folder. Raises UsageError, naming file and key, if its marker has errors."""
        marker = folder / MARKER
        if not marker.exists():
            return cls(folder)
        values = read_toml(marker)
        if unknown := next((key for key in values if key not in _KEYS), None):
            raise UsageError(f"{marker}: {unknown_name('key', unknown, _KEYS)}")
        for key, value in values.items():
            if not isinstance(value, str) or not value:
                raise UsageError(f'{marker}: {key} must be text as on the command line: {key} = "..."')
        platform = values.get("platform", "")
        if is_file(platform):
            values["platform"] = str(folder / Path(platform).expanduser())
        return cls(folder, **values)


def is_file(platform: str) -> bool:
    """True if the text names a platform's file and not a known platform."""
    return Path(platform).suffix in (".toml", ".xml") or len(Path(platform).parts) > 1


def find_project() -> Project | None:
    """The project that COLLWISE_HOME names, else the nearest one at or above the working directory, if any."""
    if home := os.environ.get(HOME):
        folder = Path(home).expanduser().absolute()
        if not folder.is_dir():
            how = f"'collwise setup project {home}' creates it as a project"
            raise UsageError(f"{HOME}: there is no folder {home}; {how}")
        return Project.read(folder)
    here = Path.cwd()
    return next((Project.read(folder) for folder in (here, *here.parents) if (folder / MARKER).is_file()), None)


def results_folder() -> Path:
    """The folder of the store and of results: results/ in the project, else in the working directory."""
    project = find_project()
    return Path("results") if project is None or project.folder == Path.cwd() else project.results


def default_store_path() -> Path:
    """The store of timings: timings.sqlite in the folder of results."""
    return results_folder() / "timings.sqlite"
