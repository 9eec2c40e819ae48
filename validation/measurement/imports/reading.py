"""Tools of the readers of files: numbered lines, errors that name them, and cases of built-in collectives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.common.experiments import ROUNDTRIP
from collwise.common.files import read_text
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.times.grid import BUILTIN

# Our names by MPI's name in lower case without 'MPI_' and underscores. In all of these programs, as here, the size is
# that of one block where a collective has a block per process or pair, and that of the whole vector in reductions.
COLLECTIVES = {
    name.replace("_", ""): name
    for name in ("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast", "gather",
                 "gatherv", "reduce", "reduce_scatter", "scatter", "scatterv", "scan", "exscan")
}  # fmt: skip
# A larger size is a misread number.
_MOST_BYTES = 1 << 40


@dataclass(frozen=True)
class MissingFacts:
    """Facts that files of other programs do not contain: the platform's name, often P, and the processes per node."""

    platform: str = ""
    procs: int = 0
    processes_per_node: int = 1


@dataclass(frozen=True)
class Lines:
    """The lines of a file, numbered from 1 in messages, and the facts that it does not contain."""

    path: Path
    lines: tuple[str, ...]
    missing: MissingFacts

    @classmethod
    def of(cls, path: Path, missing: MissingFacts) -> Lines:
        """Raises UsageError when the file cannot be read, is empty or is not text."""
        text = read_text(path)
        if not text.strip():
            raise UsageError(f"{path}: the file is empty")
        return cls(path, tuple(text.splitlines()), missing)

    def objection(self, number: int, expected: str) -> UsageError:
        """The error for a line: what it says and what was expected."""
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
            raise self.objection(number, "numbers from 0 on")
        return found

    def whole(self, number: int, value: float, what: str, least: int = 0) -> int:
        """A size or a count. Raises UsageError, naming the line."""
        if value != int(value) or not least <= value <= _MOST_BYTES:
            raise self.objection(number, f"{what} as a whole number from {least} on")
        return int(value)

    def procs(self, stated: int) -> int:
        """P from the file or from --procs. Raises UsageError when neither gives it, or when the two differ."""
        given = self.missing.procs
        if stated and given and stated != given:
            raise UsageError(f"--procs {given}: {self.path} says that there were {stated}")
        if not (stated or given):
            raise UsageError(f"{self.path} does not say how many processes there were; say it: --procs P")
        return stated or given

    def case(self, collective: str, procs: int, message_bytes: int) -> Case:
        """A call of a library's own collective, whose algorithm is unknown; '-': a message to the last one and back."""
        experiment = ROUNDTRIP if collective == "-" else BUILTIN
        per_node = min(self.missing.processes_per_node, procs)
        return Case(collective, "-", procs, message_bytes, processes_per_node=per_node, experiment=experiment)

    def mean(self, case: Case, seconds: float, repetitions: int) -> Timing:
        """A mean of unknown exactness; programs give half of a roundtrip."""
        unknown = math.inf
        if case.experiment == ROUNDTRIP:
            return Timing(case, 2 * seconds, 2 * seconds, unknown, repetitions)
        return Timing(case, seconds, half_width_seconds=unknown, repetitions=repetitions)

    def configuration(self, program: str, details: dict[str, str]) -> Configuration:
        """The configuration of another program's times. Raises UsageError when the platform has no name."""
        if not self.missing.platform:
            raise UsageError(f"{self.path} does not say where it was measured; name it: --platform NAME")
        return Configuration("measured", self.missing.platform, program, tuple(sorted(details.items())))


def collective_of(name: str) -> str | None:
    """Our name for 'MPI_Reduce_scatter', 'Reduce_scatter' or 'reduce_scatter'; None for an unknown collective."""
    return COLLECTIVES.get(name.lower().removeprefix("mpi_").replace("_", ""))
