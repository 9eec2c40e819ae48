"""Tools for readers of files: numbered lines, errors that name a line, and cases of built-in collectives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP, SATURATION
from collwise.common.files import read_text
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.libraries.baselines import BASELINES, Baseline, baseline_of
from collwise.validation.measurement.imports.algorithms import choice_of
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.grid import BUILTIN, case_of

# Our names by MPI's names in lower case without 'MPI_' and underscores. In these programs, as in collwise, the message
# size is that of one block if a collective has a block per process or pair, and that of the whole vector in reductions.
COLLECTIVES = {
    name.replace("_", ""): name
    for name in ("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast", "gather",
                 "gatherv", "reduce", "reduce_scatter", "scatter", "scatterv", "scan", "exscan")
}  # fmt: skip
NOT_READ = "not read"
"""The error of cells whose times were deliberately not read."""
LONGEST_SECONDS = 3600.0
"""The longest plausible time of a call. A longer time is a misread number."""
STREAM_COUNT, STREAM_REPLY_BYTES = 64, 4
"""The number of successive messages of osu_bw, and the size of the reply."""
# A larger size is a misread number.
_MAX_BYTES = 1 << 40


@dataclass(frozen=True)
class MissingFacts:
    """Facts that files of other programs do not contain.

    `library` is its name and version. `algorithm` is the forced one, by the catalogue's name or the library's id, or an
    untuned library that decided (BASELINES); it is empty if nobody knows what the library decided. `about` has other
    facts about the times, such as job, source and licence. With 0 processes per node, one is assumed, and a note of
    `read_file` says so.
    """

    platform: str = ""
    procs: int = 0
    processes_per_node: int = 1
    library: str = ""
    algorithm: str = ""
    about: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Lines:
    """The lines of a file, numbered from 1 in messages, and the facts that the file does not contain."""

    path: Path
    lines: tuple[str, ...]
    missing: MissingFacts

    @classmethod
    def of(cls, path: Path, missing: MissingFacts) -> Lines:
        """The lines of a text file, possibly packed by gzip. Raises UsageError if it is unreadable or empty."""
        text = read_text(path)
        if not text.strip():
            raise UsageError(f"{path}: the file is empty")
        return cls(path, tuple(text.splitlines()), missing)

    def objection(self, number: int, expected: str) -> UsageError:
        """The error for a line, with the line's text and what was expected."""
        line = self.lines[number - 1].strip() if number <= len(self.lines) else "the end"
        return UsageError(f"{self.path}:{number}: expected {expected}, not '{line[:80]}'")

    def numbers(self, number: int, words: list[str], names: list[str]) -> dict[str, float]:
        """A row of a table as numbers by column. Raises UsageError, naming the line, for any other row."""
        expected = f"{len(names)} numbers ({', '.join(names)})"
        if len(words) != len(names):
            raise self.objection(number, expected)
        try:
            found = dict(zip(names, map(float, words), strict=True))
        except ValueError:
            raise self.objection(number, expected) from None
        if not all(math.isfinite(value) and value >= 0 for value in found.values()):
            raise self.objection(number, "numbers of at least 0")
        return found

    def whole(self, number: int, value: float, what: str, least: int = 0) -> int:
        """A size or a count. Raises UsageError, naming the line, if it is not a whole number of at least `least`."""
        if value != int(value) or not least <= value <= _MAX_BYTES:
            raise self.objection(number, f"{what} as a whole number of at least {least}")
        return int(value)

    def procs(self, stated: int) -> int:
        """P from the file or from --procs. Raises UsageError if neither gives P, or if the two differ."""
        given = self.missing.procs
        if stated and given and stated != given:
            raise UsageError(f"--procs {given}: {self.path} has times of {stated} processes")
        if not (stated or given):
            raise UsageError(f"{self.path} does not say how many processes there were; give --procs P")
        return stated or given

    def case(self, collective: str, procs: int, message_bytes: int) -> Case:
        """A call of a library's own collective, with the forced algorithm if there is one; a roundtrip for '-'."""
        name, per_node = self.missing.algorithm, min(self.missing.processes_per_node or 1, procs)
        if not name or collective == "-":
            experiment = ROUNDTRIP if collective == "-" else BUILTIN
            return Case(collective, "-", procs, message_bytes, processes_per_node=per_node, experiment=experiment)
        if name in BASELINES:
            objection = _objection(BASELINES[name], self.missing.library, per_node)
            choice = BASELINES[name].choice(collective, procs, message_bytes) or LIBRARY_DECIDES
        else:
            choice, objection = choice_of(collective, name, self.missing.library, procs)
        if objection:
            raise UsageError(f"--algorithm {name}: {objection}; nothing of {self.path} was imported")
        return case_of(collective, choice, procs, message_bytes, per_node)

    def stream(self, message_bytes: int) -> Case:
        """Successive messages from one process to another, as osu_bw sends them."""
        one = self.case("-", 2, message_bytes)
        return replace(one, experiment=SATURATION, count=STREAM_COUNT, reply_bytes=STREAM_REPLY_BYTES)

    def mean(self, case: Case, seconds: float, repetitions: int) -> Timing:
        """The timing of a mean without a known interval. Programs give half of a roundtrip, which is doubled here."""
        if case.experiment == ROUNDTRIP:
            return Timing(case, 2 * seconds, 2 * seconds, math.inf, repetitions)
        return Timing(case, seconds, half_width_seconds=math.inf, repetitions=repetitions)

    def configuration(self, program: str, details: dict[str, str]) -> Configuration:
        """The configuration of another program's times. Raises UsageError if the platform has no name."""
        if not self.missing.platform:
            where = "give its --platform NAME to 'collwise times import'"
            raise UsageError(f"{self.path} does not say where it was measured; {where}")
        library = self.missing.library
        facts = {**details, **dict(self.missing.about), **({"program": program} if library else {})}
        return Configuration("measured", self.missing.platform, library or program, tuple(sorted(facts.items())))


def _objection(baseline: Baseline, library: str, per_node: int) -> str:
    """The reason why times cannot be those of what the baseline decides, and what to do; empty if there is none."""
    instead = "leave out --algorithm, and the times are those of 'library decides'"
    if library and baseline_of(library, 1) is not baseline:
        return f"--library '{library}' is not a version of '{baseline.title}'; correct one of the two, or {instead}"
    otherwise = baseline.otherwise(per_node)
    return f"{otherwise}; {instead}" if otherwise else ""


def collective_of(name: str) -> str | None:
    """Our name for 'MPI_Reduce_scatter', 'Reduce_scatter' or 'reduce_scatter'; None for an unknown collective."""
    return COLLECTIVES.get(name.lower().removeprefix("mpi_").replace("_", ""))
