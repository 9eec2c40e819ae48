"""What the readers have in common: lines with numbers, errors that name them, cases of a library's own collectives."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.timing import Case, Configuration

# MPI's name without 'MPI_' and underlines, in lower case, to ours. In all of these programs, as here, the size is that
# of a process's block where a collective has one block a process or pair, and of the whole vector in reductions.
COLLECTIVES = {
    name.replace("_", ""): name
    for name in ("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast", "gather",
                 "gatherv", "reduce", "reduce_scatter", "scatter", "scatterv", "scan", "exscan")
}  # fmt: skip
# A size beyond this is a misread number.
_MOST_BYTES = 1 << 40


@dataclass(frozen=True)
class Unsaid:
    """What files of other programs do not say: the platform's name, P where it is not there, processes a node."""

    platform: str = ""
    procs: int = 0
    processes_per_node: int = 1


@dataclass(frozen=True)
class Lines:
    """A file's lines, numbered from 1 in messages."""

    path: Path
    lines: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> Lines:
        """Raises UsageError when the file cannot be read, is empty or is not text."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as problem:
            raise UsageError(f"cannot read {path}: {problem.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not text") from None
        if not text.strip():
            raise UsageError(f"{path}: the file is empty")
        return cls(path, tuple(text.splitlines()))

    def objection(self, number: int, expected: str) -> UsageError:
        """The error for a line: what it is and what was expected."""
        line = self.lines[number - 1].strip() if number <= len(self.lines) else "the end"
        return UsageError(f"{self.path}:{number}: expected {expected}, not '{line[:80]}'")

    def any_matches(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern is found in any line."""
        return any(pattern.search(line) for line in self.lines)

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

    def procs(self, said: int, unsaid: Unsaid) -> int:
        """P, of the file or of the option. Raises UsageError when neither says, or both but not the same."""
        if said and unsaid.procs and said != unsaid.procs:
            raise UsageError(f"--procs {unsaid.procs}: {self.path} says that there were {said}")
        if not (said or unsaid.procs):
            raise UsageError(f"{self.path} does not say how many processes there were; say it: --procs P")
        return said or unsaid.procs


def collective_of(name: str) -> str | None:
    """Ours of 'MPI_Reduce_scatter', 'Reduce_scatter' or 'reduce_scatter'; None if there is none."""
    return COLLECTIVES.get(name.lower().removeprefix("mpi_").replace("_", ""))


def builtin_case(collective: str, procs: int, message_bytes: int, unsaid: Unsaid) -> Case:
    """A library's own collective, by nobody knows which algorithm."""
    per_node = min(unsaid.processes_per_node, procs)
    return Case(collective, "-", procs, message_bytes, processes_per_node=per_node, experiment="builtin")


def roundtrip_case(procs: int, message_bytes: int, unsaid: Unsaid) -> Case:
    """A message from process 0 to the last and back."""
    per_node = min(unsaid.processes_per_node, procs)
    return Case("-", "-", procs, message_bytes, processes_per_node=per_node, experiment="roundtrip")


def configuration(unsaid: Unsaid, path: Path, program: str, details: dict[str, str]) -> Configuration:
    """What times of another program are kept under. Raises UsageError when the platform has no name."""
    if not unsaid.platform:
        raise UsageError(f"{path} does not say where it was measured; name it: --platform NAME")
    return Configuration("measured", unsaid.platform, program, tuple(sorted(details.items())))
