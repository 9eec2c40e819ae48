"""Measured runs of machines in files and folders: each is a job with its facts, and times of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.validation.measurement.imports import read_file
from collwise.validation.measurement.imports.archives import is_archive
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.times.measured import times_of_run
from collwise.validation.times.times import Times

TABLES = (".csv.gz", ".times.csv")
"""The ends of names of files with times that are found in folders."""


@dataclass(frozen=True)
class MeasuredRun:
    """A job on a machine under a library: its facts, and the times of each collective by processes per node."""

    machine: str
    job: str
    library: str
    facts: Mapping[str, str]
    times: Sequence[Times]


def runs_in(paths: Sequence[Path], values: bool = True) -> list[MeasuredRun]:
    """The runs in these files and, at any depth, in these folders: archives and folders of PICO, tables (TABLES).

    Without `values` no time is looked at: the runs have the cases that were measured, all as failed. Raises UsageError
    naming the file, where one is wrong, and where there are none.
    """
    found = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
        files = list(_files_in(path))
        if not files:
            raise UsageError(f"{path}: no runs in it; valid: archives or folders of PICO, tables ({', '.join(TABLES)})")
        for file in files:
            for configuration, timings in read_file(file, MissingFacts(), values):
                facts = dict(configuration.details)
                ending = next((end for end in TABLES if file.name.endswith(end)), "")
                job = facts.get("job", file.name.removesuffix(ending))
                times = tuple(times_of_run(configuration, timings))
                found.append(MeasuredRun(configuration.platform, job, configuration.maker, facts, times))
    return found


def _files_in(path: Path) -> Iterator[Path]:
    if not path.is_dir() or is_run(path):
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.is_dir() or is_archive(child) or child.name.endswith(TABLES):
            yield from _files_in(child)


def is_run(folder: Path) -> bool:
    """Whether a folder is a run of PICO that somebody unpacked: it has folders of tests, by their numbers."""
    return any(child.name.isdecimal() and any(child.glob("*_*.csv")) for child in folder.iterdir() if child.is_dir())
