"""Decision tables as what MPI libraries read: Open MPI's classic dynamic rules, and the interposing library's table.

Open MPI's file (`coll_tuned_dynamic_rules_filename`), which is read back here, too, is a stream of whole numbers; `#`
starts a comment:
    collectives, then of each: id, communicator sizes, then of each: size, message sizes, then of each:
        message size, algorithm id, fan-out, segment size
A communicator takes the last entry that is not larger than it, or the first; so does a message. Algorithm 0 is Open
MPI's own decision. The reader takes anything: a wrong count shifts every number behind it, and Open MPI then falls
back to its own decisions without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.validation.openmpi.builtin_decisions import Choice
from collwise.validation.selection.consumers import (
    COLLWISE,
    OWN_SEND_COUNT_COUNTS,
    can_run,
    multiplies_by_procs,
    rule_message,
    sees_sizes,
    series,
)
from collwise.validation.selection.decision_table import DecisionTable, Row

_HAS_HAN = ("4.1", "5.0")

_OWN_DECISION = 0
# From the last row of a table on, where message sizes are multiplied by P: one rule for P to 33/32 P, up to here.
_TAIL_STEP = 32
_TAIL_END_PROCS = 2**20
# linear_sync sends two halves, Open MPI a first part of fixed size: half of a power of two within these bounds.
_HALVED_BYTES = tuple(2**exponent for exponent in range(12, 23))
# K of Open MPI's k-nomial trees is an option of its own (coll_tuned_COLLECTIVE_algorithm_knomial_radix), 4 unless set.
_KNOMIAL_FANOUT = 4

# Open MPI's reductions that keep the order of operands; of the others its rules do not ask whether operations commute
# (its issues 7765 and 8010).
_KEEPS_ORDER = {
    "reduce": ("linear", "in_order_binary"),
    "allreduce": ("linear", "non_overlapping", "recursive_doubling"),
    "reduce_scatter": ("non_overlapping",),
    "reduce_scatter_block": ("linear",),
}


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


def openmpi_rules(
    tables: Sequence[DecisionTable],
    openmpi_version: str,
    *,
    largest_procs: int | None = None,
    skip_inexpressible: bool = False,
) -> str:
    """The text of a rules file that makes Open MPI run what the tables choose.

    Below the smallest P of a table Open MPI decides itself. Above the last one its last row stays in force, as in
    `DecisionTable.choose`; with `largest_procs` Open MPI decides itself above that, and with `skip_inexpressible` where
    it has no such algorithm (see `inexpressible`). Raises UsageError for what cannot be written: an unknown version, an
    algorithm that this version lacks, two tables of one collective, a choice by message size where Open MPI does not
    look at it.
    """
    version = series(openmpi_version)
    by_id = {Catalogue.load().collective(table.collective).openmpi_collective: table for table in tables}
    if not tables:
        raise UsageError("no decision table to write rules from")
    if len(by_id) < len(tables):
        names = [table.collective for table in tables]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two decision tables for {twice}: a rules file holds one a collective")
    sections = {
        identity: _section(by_id[identity], version, largest_procs, skip_inexpressible) for identity in sorted(by_id)
    }
    lines = [*_header([by_id[identity] for identity in sections], version, _by_size(sections))]
    lines.append(f"{len(sections)} # collectives")
    for identity, sizes in sections.items():
        entry = Catalogue.load().collective(by_id[identity].collective)
        lines += ["", f"{identity} # {entry.name}", f"{len(sizes)} # communicator sizes"]
        for procs, rules in sizes.items():
            lines += [f"{procs} # processes and more", f"{len(rules)} # message sizes"]
            lines += [f"{r.start} {r.algorithm} {r.fanout} {r.segment_bytes} # {r.note}" for r in rules]
    return "\n".join(lines) + "\n"


def _header(tables: Sequence[DecisionTable], version: str, by_size: set[str]) -> Iterator[str]:
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
    totals = [table.collective for table in tables if multiplies_by_procs(table.collective, version)]
    if totals:
        yield f"# Message sizes are totals, bytes a process times processes, for {', '.join(totals)}."
        yield "# Behind the last decision these repeat it, with the totals of more and more processes."
    yield "# Communicators larger than any that was decided for take the last decision: decide for as many as are used."
    for table in tables:
        if table.collective in OWN_SEND_COUNT_COUNTS and table.collective in by_size:
            yield from _OWN_SEND_COUNT_WARNINGS[table.collective]
    disordered = ", ".join(f"MPI_{table.collective.capitalize()}" for table in tables if _reorders(table))
    if disordered:
        yield f"# WARNING: for {disordered}, Open MPI does not look"
        yield "# whether the operation commutes: with one that does not, the algorithms below give wrong results. Leave"
        yield "# these collectives out for programs with such operations."


_OWN_SEND_COUNT_WARNINGS = {
    "gather": (
        "# WARNING: for MPI_Gather, Open MPI looks the rule up by each process's own send count. A program whose",
        "# root passes MPI_IN_PLACE with another send count than the others (most pass 0) may then run two",
        "# algorithms at once: it hangs or gathers wrong data. Leave gather out for such programs.",
    ),
    "scatter": (
        "# WARNING: for MPI_Scatter, Open MPI looks the rule up by each process's own send count, which means nothing",
        "# but at the root. A program whose other processes pass another one may then run two algorithms at once: it",
        "# hangs or scatters wrong data. Leave scatter out for such programs.",
    ),
}


def _by_size(sections: Mapping[int, Mapping[int, tuple[Rule, ...]]]) -> set[str]:
    """The collectives whose rules tell message sizes apart."""
    names = {entry.openmpi_collective: name for name, entry in Catalogue.load().collectives.items()}
    return {names[identity] for identity, sizes in sections.items() if any(len(rules) > 1 for rules in sizes.values())}


def _reorders(table: DecisionTable) -> bool:
    ordered = _KEEPS_ORDER.get(table.collective)
    return ordered is not None and any(c.algorithm not in ordered for row in table.rules.values() for _, c in row)


def _section(
    table: DecisionTable, version: str, largest_procs: int | None, skip_inexpressible: bool
) -> dict[int, tuple[Rule, ...]]:
    """Communicator size -> rules of one table."""
    if not any(table.rules.values()):
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
        if skip_inexpressible:
            row = [(start, None if c and inexpressible(table.collective, c, version) else c) for start, c in row]
        if not sees_sizes(f"openmpi-{version}", table.collective):
            _check_one_choice(table, first, f"rules of Open MPI {version}")
            row = row[:1]
        varies = len(row) > 1 and multiplies_by_procs(table.collective, version)
        for procs in _each_size(first, end) if varies else (first,):
            section[procs] = tuple(_rule(table.collective, version, procs, *step) for step in row)
    if largest_procs is not None:
        section[largest_procs + 1] = nothing
    return section


def _check_one_choice(table: DecisionTable, procs: int, whose: str) -> None:
    """Raises UsageError if the row of a process count tells message sizes apart, 0 from the first one included."""
    row = table.rules[procs]
    if len(row) > 1 or (row and row[0][0] > 0):
        name = table.collective
        raise UsageError(
            f"{whose} cannot choose for {name} by message size, which P = {procs} needs; make the table with "
            f"'collwise select --one-choice' or leave {name} out"
        )


def _each_size(first: int, end: int | None) -> Iterator[int]:
    """Every P below `end`; without an end, steps so small that a threshold sinks by 1/33 at most between two."""
    if end is not None:
        yield from range(first, end)
        return
    procs = first
    while procs <= max(first, _TAIL_END_PROCS):
        yield procs
        procs += max(1, procs // _TAIL_STEP)


def _steps(collective: str, row: Row) -> Iterator[tuple[int, Choice | None]]:
    """The row as Open MPI has to be told it: from 0, and split where it would understand a choice differently."""
    if not row or row[0][0] > 0:
        yield 0, None
    ends = [*(start for start, _ in row[1:]), None]
    for (start, choice), end in zip(row, ends, strict=False):
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
    problem = inexpressible(collective, choice, version)
    if problem:
        raise UsageError(problem)
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    fanout = _fanout(algorithm, choice)
    note = f"{since}: {choice.algorithm}"
    note += f", fan-out {fanout}" if fanout else ""
    note += f", segments of {format_size(choice.segment_bytes)}" if choice.segment_bytes else ""
    return Rule(message, algorithm.openmpi[version], fanout, choice.segment_bytes, note)


def inexpressible(collective: str, choice: Choice, version: str) -> str:
    """Why rules of this Open MPI series ('4.1') cannot ask for a choice; empty where they can."""
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    if not can_run(f"openmpi-{version}", algorithm):
        return (
            f"rules of Open MPI {version} have no {collective} algorithm '{choice.algorithm}'; make the table with "
            f"'collwise select --for openmpi-{version}'"
        )
    fanout = _fanout(algorithm, choice)
    if choice.algorithm == "knomial" and fanout != _KNOMIAL_FANOUT:
        return f"rules of Open MPI cannot set the fan-out of knomial, {fanout}; it is {_KNOMIAL_FANOUT} there"
    return ""


def _fanout(algorithm: Algorithm, choice: Choice) -> int:
    return (choice.fanout or algorithm.default_count) if algorithm.count_parameter else 0


def collwise_rules(tables: Sequence[DecisionTable]) -> str:
    """The text of a table for `collwise run`: one rule a line, 'default' where nothing is decided.

    A call takes of its collective's rules those with the largest P that is not above its own, of these those with the
    largest number of processes a node likewise, of these that with the largest message size. Tables of one collective
    may differ in processes a node. Raises UsageError for two that do not, and for a choice by message size where not
    all processes know it.
    """
    if not tables:
        raise UsageError("no decision table to write rules from")
    by_key = {(table.collective, table.processes_per_node): table for table in tables}
    if len(by_key) < len(tables):
        raise UsageError("two decision tables of one collective for the same number of processes a node")
    lines = ["# Rules for collwise run:", "# collective procs processes_per_node message_bytes algorithm [parameters]"]
    for name in sorted({table.collective for table in tables}):
        mine = [by_key[key] for key in sorted(by_key) if key[0] == name]
        lines.append("")
        lines += [f"# {name} on {table.platform}, chosen by {' '.join(table.made_by.split())}" for table in mine]
        # A row of one table would hide those of the others for less processes: all have rows wherever one has.
        for procs in sorted({procs for table in mine for procs in table.rules}):
            for table in mine:
                lines += _collwise_lines(table, procs)
    return "\n".join(lines) + "\n"


def _collwise_lines(table: DecisionTable, procs: int) -> Iterator[str]:
    row = table.row(procs)
    if not sees_sizes(COLLWISE, table.collective) and procs in table.rules:
        _check_one_choice(table, procs, "rules of collwise")
    where = f"{table.collective} {procs} {table.processes_per_node}"
    if not row or row[0][0] > 0:
        yield f"{where} 0 default"
    for start, choice in row:
        algorithm = Catalogue.load().algorithm(table.collective, choice.algorithm)
        named = algorithm.named_parameters(choice.segment_bytes, choice.fanout, choice.limit_bytes)
        yield " ".join([where, str(start), choice.algorithm, *(f"{name}={value}" for name, value in named.items())])


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
