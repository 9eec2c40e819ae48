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
NODE_MAPS = ("_nodes.txt", ".nodes.csv", ".topology.conf", ".topology.conf.gz")
"""The ends of names of files that say at which switches a machine's nodes are; its name is before them."""


@dataclass(frozen=True)
class MeasuredRun:
    """A job on a machine under a library: its facts, and the times of each collective by processes per node.

    `node_map` is the file that says at which switches the machine's nodes are, if there is one.
    """

    machine: str
    job: str
    library: str
    facts: Mapping[str, str]
    times: Sequence[Times]
    node_map: Path | None = None


def runs_in(paths: Sequence[Path], values: bool = True, maps: Sequence[Path] = ()) -> list[MeasuredRun]:
    """The runs in these files and, at any depth, in these folders: archives and folders of PICO, tables (TABLES).

    Without `values` no time is looked at: the runs have the cases that were measured, all as failed. The map of a
    machine's nodes (NODE_MAPS) is in the run, beside it or in the folder above, or else in one of the folders `maps`.
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
                machine, around = configuration.platform, (file, *file.resolve().parents[:2], *maps)
                node_map = _node_map(machine, around)
                found.append(MeasuredRun(machine, job, configuration.maker, facts, times, node_map))
    return found


def _node_map(machine: str, folders: Sequence[Path]) -> Path | None:
    files = (folder / f"{machine}{end}" for folder in folders for end in NODE_MAPS)
    return next((file for file in files if file.is_file()), None)


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
