"""Decision tables as Open MPI's classic dynamic rules (`coll_tuned_dynamic_rules_filename`), and that file read back.

The file is a stream of whole numbers; `#` starts a comment:
    collectives, then of each: id, communicator sizes, then of each: size, message sizes, then of each:
        message size, algorithm id, fan-out, segment size
A communicator takes the last entry that is not larger than it, or the first; so does a message. Algorithm 0 is Open
MPI's own decision. The reader takes anything: a wrong count shifts every number behind it, and Open MPI then falls
back to its own decisions without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, unknown_name
from collwise.common.units import format_size
from collwise.validation.openmpi import Choice
from collwise.validation.selection import DecisionTable


def _versions() -> tuple[str, ...]:
    collectives = Catalogue.load().collectives.values()
    return tuple(sorted({v for entry in collectives for a in entry.algorithms.values() for v in a.openmpi}))


OPENMPI_VERSIONS = _versions()

# Open MPI 4.0 compares datatype size times processes and forgets the count (mended by its pull requests 7758, 8048).
_BLIND_TO_COUNT = {("gather", "4.0")}
_HAS_HAN = ("4.1", "5.0")

_OWN_DECISION = 0
# From the last row of a table on, where message sizes are multiplied by P: one rule for P to 33/32 P, up to here.
_TAIL_STEP = 32
_TAIL_END_PROCS = 2**20
# linear_sync sends two halves, Open MPI a first part of fixed size: half of a power of two within these bounds.
_HALVED_BYTES = tuple(2**exponent for exponent in range(12, 23))


@dataclass(frozen=True)
class Rule:
    """From `start` on (in the unit that Open MPI compares): algorithm id, fan-out, segment size in bytes (0: none)."""

    start: int
    algorithm: int
    fanout: int = 0
    segment_bytes: int = 0
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class RulesFile:
    """Collective id -> communicator size -> rules, all ascending."""

    collectives: Mapping[int, Mapping[int, tuple[Rule, ...]]]

    def lookup(self, collective: int, procs: int, message: int) -> Rule | None:
        """The rule that Open MPI takes (`message` as from `rule_message`); None: its own decision."""
        sizes = self.collectives.get(collective)
        if not sizes:
            return None
        rules = sizes[max((size for size in sizes if size <= procs), default=min(sizes))]
        rule = [rule for rule in rules if rule.start <= message][-1]
        return None if rule.algorithm == _OWN_DECISION else rule


def series(openmpi_version: str) -> str:
    """'4.1' of '4.1' or '4.1.4'. Raises UsageError for a version that the catalogue has no ids for."""
    short = ".".join(openmpi_version.split(".")[:2])
    if short not in OPENMPI_VERSIONS:
        raise unknown_name("Open MPI version", openmpi_version, OPENMPI_VERSIONS)
    return short


def rule_message(collective: str, openmpi_version: str, procs: int, message_bytes: int, datatype_bytes: int = 1) -> int:
    """What Open MPI compares with the message sizes of its rules, for a call of `message_bytes`."""
    if (collective, series(openmpi_version)) in _BLIND_TO_COUNT:
        return datatype_bytes * procs
    multiplied = Catalogue.load().collective(collective).openmpi_message == "times_procs"
    return message_bytes * procs if multiplied else message_bytes


def openmpi_rules(tables: Sequence[DecisionTable], openmpi_version: str, *, largest_procs: int | None = None) -> str:
    """The text of a rules file that makes Open MPI run what the tables choose.

    Below the smallest P of a table Open MPI decides itself. Above the last one its last row stays in force, as in
    `DecisionTable.choose`; with `largest_procs` Open MPI decides itself above that. Raises UsageError for what cannot
    be written: an unknown version, an algorithm that this version lacks, two tables of one collective.
    """
    version = series(openmpi_version)
    by_id = {Catalogue.load().collective(table.collective).openmpi_collective: table for table in tables}
    if not tables:
        raise UsageError("no decision table to write rules from")
    if len(by_id) < len(tables):
        names = [table.collective for table in tables]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two decision tables for {twice}: a rules file holds one a collective")
    sections = {identity: _section(by_id[identity], version, largest_procs) for identity in sorted(by_id)}
    lines = [*_header([by_id[identity] for identity in sections], version, _unsafe_in_place(sections))]
    lines.append(f"{len(sections)} # collectives")
    for identity, sizes in sections.items():
        entry = Catalogue.load().collective(by_id[identity].collective)
        lines += ["", f"{identity} # {entry.name}", f"{len(sizes)} # communicator sizes"]
        for procs, rules in sizes.items():
            lines += [f"{procs} # processes and more", f"{len(rules)} # message sizes"]
            lines += [f"{r.start} {r.algorithm} {r.fanout} {r.segment_bytes} # {r.note}" for r in rules]
    return "\n".join(lines) + "\n"


def _header(tables: Sequence[DecisionTable], version: str, unsafe_in_place: bool) -> Iterator[str]:
    yield f"# Dynamic rules for the tuned collectives of Open MPI {version}, written by collwise."
    for table in tables:
        made_for = " ".join(f"{table.collective} on {table.platform}, chosen by {table.made_by}".split())
        yield f"#   {made_for}, from {min(table.rules)} processes"
    yield "# Use:"
    without_han = " --mca coll ^han" if version in _HAS_HAN else ""
    yield f"#   mpirun{without_han} --mca coll_tuned_use_dynamic_rules 1 \\"
    yield "#          --mca coll_tuned_dynamic_rules_filename FILE PROGRAM"
    if without_han:
        yield "# (where the component han takes a collective over, these rules have no effect on it)"
    yield "# A line of four: message size from which, algorithm, fan-out, segment size. Algorithm 0: Open MPI decides."
    for table in tables:
        if Catalogue.load().collective(table.collective).openmpi_message == "times_procs":
            yield f"# Message sizes of {table.collective} are totals, bytes a process times processes."
    if unsafe_in_place:
        yield "# WARNING: for MPI_Gather, Open MPI looks the rule up by each process's own send count. A program whose"
        yield "# root passes MPI_IN_PLACE with another send count than the others (most pass 0) may then run two"
        yield "# algorithms at once: it hangs or gathers wrong data. Leave gather out for such programs."


def _unsafe_in_place(sections: Mapping[int, Mapping[int, tuple[Rule, ...]]]) -> bool:
    gather = sections.get(Catalogue.load().collective("gather").openmpi_collective, {})
    return any(len(rules) > 1 for rules in gather.values())


def _section(table: DecisionTable, version: str, largest_procs: int | None) -> dict[int, tuple[Rule, ...]]:
    """Communicator size -> rules of one table."""
    if not table.rules or not all(table.rules.values()):
        raise UsageError(f"the {table.collective} decision table is empty")
    sizes = sorted(table.rules)
    if largest_procs is not None and largest_procs < sizes[-1]:
        raise UsageError(f"the {table.collective} decision table goes to P = {sizes[-1]}, not {largest_procs}")
    section: dict[int, tuple[Rule, ...]] = {}
    nothing = (Rule(0, _OWN_DECISION, note="Open MPI decides"),)
    if sizes[0] > 1:
        section[1] = nothing
    for first, after in zip(sizes, [*sizes[1:], None], strict=True):
        end = after if after is not None or largest_procs is None else largest_procs + 1
        row = list(_steps(table.collective, table.rules[first]))
        if (table.collective, version) in _BLIND_TO_COUNT:
            if len(table.rules[first]) > 1 or row[0][1] is None:
                raise UsageError(
                    f"rules of Open MPI {version} cannot choose a {table.collective} algorithm by message size, which "
                    f"P = {first} needs; leave {table.collective} out or write rules for a later version"
                )
            row = row[:1]
        varies = len(row) > 1 and Catalogue.load().collective(table.collective).openmpi_message == "times_procs"
        for procs in _each_size(first, end) if varies else (first,):
            section[procs] = tuple(_rule(table.collective, version, procs, *step) for step in row)
    if largest_procs is not None:
        section[largest_procs + 1] = nothing
    return section


def _each_size(first: int, end: int | None) -> Iterator[int]:
    """Every P below `end`; without an end, steps so small that a threshold sinks by 1/33 at most between two."""
    if end is not None:
        yield from range(first, end)
        return
    procs = first
    while procs <= max(first, _TAIL_END_PROCS):
        yield procs
        procs += max(1, procs // _TAIL_STEP)


def _steps(collective: str, row: Sequence[tuple[int, Choice]]) -> Iterator[tuple[int, Choice | None]]:
    """The row as Open MPI has to be told it: from 0, and split where it would understand a choice differently."""
    if row[0][0] > 0:
        yield 0, None
    for (start, choice), (end, _) in zip(row, [*row[1:], (None, None)], strict=True):
        yield from _translated(collective, start, end, choice)


def _translated(collective: str, start: int, end: int | None, choice: Choice) -> Iterator[tuple[int, Choice]]:
    if (collective, choice.algorithm) == ("bcast", "split_binary") and start < 2 * choice.segment_bytes:
        # A half shorter than a segment makes Open MPI run its chain instead; unsegmented halves are the same traffic.
        yield start, Choice("split_binary")
        start = 2 * choice.segment_bytes
        if end is not None and end <= start:
            return
    elif (collective, choice.algorithm) == ("gather", "linear_sync") and choice.segment_bytes == 0:
        halved = [start, *(size for size in _HALVED_BYTES if start < size and (end is None or size < end))]
        for size in halved:
            yield size, Choice("linear_sync", max(size, _HALVED_BYTES[0] // 2) // 2)
        return
    yield start, choice


def _rule(collective: str, version: str, procs: int, start: int, choice: Choice | None) -> Rule:
    message = rule_message(collective, version, procs, start) if start else 0
    since = f"from {format_size(start)}"
    if choice is None:
        return Rule(message, _OWN_DECISION, note=f"{since}: Open MPI decides")
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    if version not in algorithm.openmpi:
        raise UsageError(f"Open MPI {version} has no {collective} algorithm '{choice.algorithm}'")
    fanout = (choice.fanout or algorithm.default_fanout) if "fanout" in algorithm.parameters else 0
    note = f"{since}: {choice.algorithm}"
    note += f", fan-out {fanout}" if fanout else ""
    note += f", segments of {format_size(choice.segment_bytes)}" if choice.segment_bytes else ""
    return Rule(message, algorithm.openmpi[version], fanout, choice.segment_bytes, note)


def parse_rules(text: str, source: str = "rules") -> RulesFile:
    """Reads the classic format, strictly. Raises UsageError with `source` and the line."""
    numbers = _Numbers(text, source)
    collectives: dict[int, dict[int, tuple[Rule, ...]]] = {}
    for _ in range(numbers.take("the number of collectives")):
        identity = numbers.take("a collective id")
        if identity in collectives:
            raise numbers.error(f"collective {identity} comes twice")
        sizes = collectives[identity] = {}
        for _ in range(numbers.take("the number of communicator sizes")):
            procs = numbers.take("a communicator size")
            if sizes and procs <= max(sizes):
                raise numbers.error(f"communicator size {procs} after {max(sizes)}; sizes must ascend")
            sizes[procs] = _parse_messages(numbers)
    if not numbers.at_end():
        raise numbers.error("numbers after the last rule; one of the counts is too small")
    return RulesFile(collectives)


def _parse_messages(numbers: _Numbers) -> tuple[Rule, ...]:
    count = numbers.take("the number of message sizes")
    if count < 1:
        raise numbers.error("a communicator size without rules")
    rules: list[Rule] = []
    for _ in range(count):
        start = numbers.take("a message size")
        if not rules and start != 0:
            raise numbers.error(f"the first message size is {start}; it must be 0")
        if rules and start <= rules[-1].start:
            raise numbers.error(f"message size {start} after {rules[-1].start}; sizes must ascend")
        algorithm, fanout, segment = (numbers.take(what) for what in ("an algorithm", "a fan-out", "a segment size"))
        rules.append(Rule(start, algorithm, fanout, segment))
    return tuple(rules)


class _Numbers:
    """The numbers of a rules file, one after the other, with their lines."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._words = [
            (line_number, word)
            for line_number, line in enumerate(text.splitlines(), start=1)
            for word in line.split("#", 1)[0].split()
        ]
        self._next = 0

    def take(self, what: str) -> int:
        if self.at_end():
            raise self.error(f"the file ends where {what} is expected")
        line_number, word = self._words[self._next]
        self._next += 1
        if not (word.isascii() and word.isdigit()):
            raise UsageError(f"{self._source}:{line_number}: '{word}' where {what} is expected")
        return int(word)

    def at_end(self) -> bool:
        return self._next >= len(self._words)

    def error(self, problem: str) -> UsageError:
        """An error at the number taken last."""
        line_number = self._words[self._next - 1][0] if self._words else 1
        return UsageError(f"{self._source}:{line_number}: {problem}")
