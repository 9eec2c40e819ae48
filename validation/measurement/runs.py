"""Measured runs of machines in files and folders. Each run is a job with its facts, and times of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.common.experiments import PRTT, ROUNDTRIP, SATURATION
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports import is_output, read_file
from collwise.validation.measurement.imports.pico import is_archive
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.times.measured import times_of_run
from collwise.validation.times.times import Times

TABLES = (".csv.gz", ".times.csv")
"""The endings by which files with times are recognised in folders."""
NODE_MAPS = ("_nodes.txt", ".nodes.csv", ".topology.conf", ".topology.conf.gz")
DESCRIPTION = ".toml"
"""After a machine's name, the endings of files with its nodes' switches (NODE_MAPS), and of its description."""
_NONE = MissingFacts()


@dataclass(frozen=True)
class MeasuredRun:
    """A job on a machine under a library: its facts, and the times of each collective by processes per node.

    `node_map` is the file with the switches of the machine's nodes, `description` the file of its platform. `messages`
    are the seconds of roundtrips and of successive messages between two nodes.
    """

    machine: str
    job: str
    library: str
    facts: Mapping[str, str]
    times: Sequence[Times]
    node_map: Path | None = None
    description: Path | None = None
    messages: Mapping[Case, float] = field(default_factory=dict)


def runs_in(
    paths: Sequence[Path], values: bool = True, maps: Sequence[Path] = (), missing: MissingFacts = _NONE
) -> list[MeasuredRun]:
    """The runs in these files and, at any depth, in these folders: archives and folders of PICO, tables (TABLES),
    and text that benchmarks wrote.

    If `values` is false, no time is read: the runs have the measured cases, all marked as failed. The map of a
    machine's nodes (NODE_MAPS) and the machine's description (DESCRIPTION) are looked for in the run, next to it, in
    the folder above, and then in the folders `maps`. `missing` supplies facts that files do not contain.
    """
    found = []
    expected = f"expected archives or folders of PICO, tables ({', '.join(TABLES)}), or output of benchmarks (.txt)"
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
        files = list(_files_in(path))
        if not files:
            raise UsageError(f"{path}: contains no runs; {expected}")
        for file in files:
            around = (file, *file.resolve().parents[:2], *maps)
            job = file.name.removesuffix(next((end for end in TABLES if file.name.endswith(end)), ""))
            found += [run_of(*read, job, around) for read in read_file(file, missing, values)]
    return found


def run_of(configuration: Configuration, timings: Sequence[Timing], job: str, around: Sequence[Path]) -> MeasuredRun:
    """The run of a configuration. `job` is its name if the configuration has none, `around` folders with its files."""
    facts, machine = dict(configuration.details), configuration.platform
    beside = _beside(machine, NODE_MAPS, around), _beside(machine, (DESCRIPTION,), around)
    times = tuple(times_of_run(configuration, timings))
    job = facts.get("job", job)
    return MeasuredRun(machine, job, configuration.maker, facts, times, *beside, _messages(timings))


def _messages(timings: Sequence[Timing]) -> dict[Case, float]:
    """The seconds of messages between two nodes. In a benchmark's roundtrip, the reply has the message's size."""
    found = {}
    for timing in timings:
        case = timing.case
        if case.experiment in (ROUNDTRIP, SATURATION, PRTT) and timing.ok and (case.nodes, case.procs) == (2, 2):
            reply = case.message_bytes if case.experiment == ROUNDTRIP else case.reply_bytes
            found[replace(case, peers="0,1", reply_bytes=reply)] = timing.seconds
    return found


def _beside(machine: str, endings: Sequence[str], folders: Sequence[Path]) -> Path | None:
    """The machine's file with one of the endings, from the first folder that has it."""
    files = (folder / f"{machine}{end}" for folder in folders for end in endings)
    return next((file for file in files if file.is_file()), None)


def _files_in(path: Path) -> Iterator[Path]:
    if not path.is_dir() or is_run(path):
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.is_dir() or is_archive(child) or child.name.endswith(TABLES) or is_output(child):
            yield from _files_in(child)


def is_run(folder: Path) -> bool:
    """True if a folder is an unpacked run of PICO. Such a run has a numbered folder for each test."""
    return any(child.name.isdecimal() and any(child.glob("*_*.csv")) for child in folder.iterdir() if child.is_dir())
