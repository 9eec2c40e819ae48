"""Profiles of PGMPITuneLib (.prf): mock-ups that replace an MPI function, by ranges of message sizes.

The format is listing 1 of Hunold & Carpen-Amarie 2018. A profile holds for one function and one process count,
and leaves sizes outside its ranges to the library. Comments begin with #. Sizes are bytes of a block or message, as in
collwise; PGMPITuneLib reads them as C integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, located
from collwise.validation.select.consumers import PGMPI
from collwise.validation.select.decisions import DecisionTable, spans
from collwise.validation.times.choice import LIBRARY_DECIDES

_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Range:
    """The message sizes from `start` to `end`, both included, for which a mock-up is used."""

    start: int
    end: int
    mockup: int


@dataclass(frozen=True)
class PgmpiProfile:
    """A profile: the MPI function, the process count, the mock-ups' names by id, and the ranges, ascending."""

    function: str
    procs: int
    mockups: Mapping[int, str]
    ranges: tuple[Range, ...]

    def __post_init__(self) -> None:
        before = -1
        for item in self.ranges:
            if item.mockup not in self.mockups:
                raise UsageError(
                    f"{self.function}: range {item.start} {item.end} has mock-up {item.mockup}, which has no name"
                )
            if not before < item.start <= item.end:
                raise UsageError(f"{self.function}: range {item.start} {item.end}: ranges must ascend and not overlap")
            before = item.end

    def lookup(self, message_bytes: int) -> str | None:
        """The mock-up for a message; None if the library's own function is called."""
        found = next((item for item in self.ranges if item.start <= message_bytes <= item.end), None)
        return None if found is None else self.mockups[found.mockup]


def profile_of(tables: Sequence[DecisionTable], procs: int) -> PgmpiProfile:
    """The profile of a table for P processes. Raises UsageError for several tables, or if no mock-up is chosen."""
    if len(tables) > 1:
        names = ", ".join(table.collective for table in tables)
        raise UsageError(f"a profile covers one MPI function, and the tables are of {names}; export each separately")
    [one] = tables
    known = Catalogue.load().collective(one.collective).algorithms
    ids: dict[str, int] = {}
    ranges = []
    for start, end, choice in spans(one.whole_row(procs)):
        if choice != LIBRARY_DECIDES and start <= _LARGEST:
            mockup = ids.setdefault(known[choice.algorithm].name_in(PGMPI), len(ids) + 1)
            ranges.append(Range(start, _LARGEST if end is None else min(end - 1, _LARGEST), mockup))
    if not ranges:
        raise UsageError(f"no mock-up is chosen for {one.collective} with P = {procs}; a profile names mock-ups only")
    function = f"MPI_{one.collective.capitalize()}"
    return PgmpiProfile(function, procs, {identity: name for name, identity in ids.items()}, tuple(ranges))


def profile_text(profile: PgmpiProfile) -> str:
    """The text of a .prf file."""
    lines = ["# pgtune profile", profile.function, f"{profile.procs} # nb. of processes"]
    lines += [f"{len(profile.mockups)} # nb. of mock-up impl."]
    lines += [f"{identity} {name}" for identity, name in profile.mockups.items()]
    lines += [f"{len(profile.ranges)} # nb. of ranges"]
    lines += [f"{item.start} {item.end} {item.mockup}" for item in profile.ranges]
    if profile.ranges:
        lines[-len(profile.ranges)] += " # byte_range_start byte_range_end alg_id"
    return "\n".join(lines) + "\n"


def parse_profile(text: str, source: str = "profile") -> PgmpiProfile:
    """Reads a .prf file. Raises UsageError, which names `source` and the line."""
    reader = _Lines(source, text)
    (function,) = reader.take("the name of an MPI function", 1)
    if not function.startswith("MPI_"):
        raise reader.error("the name of an MPI function")
    procs = reader.number("the number of processes", 1)
    mockups: dict[int, str] = {}
    for _ in range(reader.number("the number of mock-ups")):
        identity, name = reader.take("a mock-up's id and name", 2)
        mockups[reader.whole(identity, "a mock-up's id and name")] = name
    ranges = []
    for _ in range(reader.number("the number of ranges")):
        words = reader.take("the start and the end of a range of bytes, and a mock-up's id", 3)
        ranges.append(Range(*(reader.whole(word, "three whole numbers") for word in words)))
    reader.end()
    with located(source):
        return PgmpiProfile(function, procs, mockups, tuple(ranges))


class _Lines:
    """The words of the non-empty lines, taken one line after another."""

    def __init__(self, source: str, text: str) -> None:
        self._source, self._number = source, 0
        lines = ((number, line.split("#")[0].split()) for number, line in enumerate(text.splitlines(), 1))
        self._rest = iter([(number, words) for number, words in lines if words])

    def take(self, expected: str, words: int) -> list[str]:
        """The words of the next line. Raises UsageError if there is no line, or it has another number of words."""
        following = next(self._rest, None)
        self._number, self._words = following or (self._number + 1, ["the end"])
        if following is None or len(self._words) != words:
            raise self.error(expected)
        return self._words

    def end(self) -> None:
        """Raises UsageError if there is another line."""
        if following := next(self._rest, None):
            self._number, self._words = following
            raise self.error("the end")

    def number(self, expected: str, least: int = 0) -> int:
        """The number on the next line, which must be the only word."""
        (word,) = self.take(expected, 1)
        return self.whole(word, expected, least)

    def whole(self, word: str, expected: str, least: int = 0) -> int:
        """A word of the current line, as a whole number of at least `least`."""
        if not (word.isascii() and word.isdecimal() and len(word) <= 18 and int(word) >= least):
            raise self.error(expected)
        return int(word)

    def error(self, expected: str) -> UsageError:
        """The error for the line taken last."""
        return UsageError(f"{self._source}:{self._number}: expected {expected}, not '{' '.join(self._words)[:80]}'")
