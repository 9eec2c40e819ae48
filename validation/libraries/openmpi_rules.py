"""Writes and reads dynamic rules of Open MPI: classic rules, and for 6.0 and later, rules in JSON.

The file of classic rules (`coll_tuned_dynamic_rules_filename`) is a stream of whole numbers; `#` starts a comment:
    collectives, then for each: id, communicator sizes, then for each: size, message sizes, then for each:
        message size, algorithm id, fan-out, segment size
Open MPI takes the last entry whose size is not above the communicator's, or the first entry if all sizes are above it.
The entry for the message size is found in the same way. Algorithm 0 leaves the call to Open MPI. Open MPI does not
check the file: after a wrong count it misreads every number, and then silently decides itself.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.validation.libraries.openmpi_untuned import ELEMENT_BYTES
from collwise.validation.libraries.sayable import needs_elements
from collwise.validation.select.consumers import (
    KNOMIAL_RADIX,
    LOCAL_SEND_COUNT_COMPARED,
    OPENMPI,
    can_run,
    can_say,
    multiplies_by_procs,
    rule_message,
    sees_sizes,
    series,
)
from collwise.validation.select.decisions import (
    DecisionTable,
    check_one_choice,
    check_one_table_each,
    from_zero,
    spans,
    wide_steps_texts,
)
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

OPENMPI_DECIDES = 0
"""The algorithm id that leaves a call to Open MPI."""


OTHER_COMPONENTS = "^han,hcoll,ucc"
"""The value of Open MPI's parameter `coll` that excludes components which run collectives without looking up rules."""


@dataclass(frozen=True)
class Rule:
    """The algorithm from message size `start` on, with segments in bytes (0: unsegmented).

    `start` is in the unit that Open MPI compares.
    """

    start: int
    algorithm: int
    faninout: int = 0
    segment_bytes: int = 0
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        line = f"{self.start} {self.algorithm} {self.faninout} {self.segment_bytes}"
        return f"{line} # {self.note}" if self.note else line


def settings_of_rules(file: str) -> dict[str, str]:
    """Open MPI's parameters that make it read a rules file, and exclude components that would bypass the rules."""
    dynamic = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_dynamic_rules_filename": file}
    return dynamic | {"coll": OTHER_COMPONENTS}


_Section = Mapping[int, tuple[Rule, ...]]


@dataclass(frozen=True)
class RulesFile:
    """The rules by collective id and communicator size, ascending."""

    collectives: Mapping[int, _Section]

    def lookup(self, collective: int, procs: int, message: int) -> Rule | None:
        """The rule that Open MPI takes for a message size from `rule_message`; None if Open MPI decides itself."""
        sizes = self.collectives.get(collective)
        if not sizes:
            return None
        rules = sizes[max((size for size in sizes if size <= procs), default=min(sizes))]
        rule = [rule for rule in rules if rule.start <= message][-1]
        return None if rule.algorithm == OPENMPI_DECIDES else rule

    def without(self, collective: int) -> RulesFile:
        """The rules of the other collectives."""
        return RulesFile({identity: sizes for identity, sizes in self.collectives.items() if identity != collective})

    @property
    def text(self) -> str:
        """The text of the file, with comments on what the numbers are."""
        lines = [f"{len(self.collectives)} # collectives"]
        for identity, sizes in self.collectives.items():
            lines += ["", f"{identity} # {_names().get(identity, 'unknown')}", f"{len(sizes)} # communicator sizes"]
            for procs, rules in sizes.items():
                lines += [f"{procs} # processes and more", f"{len(rules)} # message sizes", *map(str, rules)]
        return "\n".join(lines) + "\n"


def parse_rules(text: str, source: str = "rules") -> RulesFile:
    """Reads the classic format, strictly. Any error is a UsageError that names `source` and the line."""
    numbers = _Numbers(text, source)
    collectives: dict[int, dict[int, tuple[Rule, ...]]] = {}
    for _ in range(numbers.take("the number of collectives")):
        identity = numbers.take("a collective id")
        if identity in collectives:
            raise numbers.error(f"collective {identity} appears twice")
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
        algorithm, faninout, segment = (numbers.take(what) for what in ("an algorithm", "a fan-out", "a segment size"))
        rules.append(Rule(start, algorithm, faninout, segment))
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


JSON_VERSION = "6.0"
"""The version of Open MPI that reads rules in JSON."""
_HAS_HAN = ("4.1", "5.0", "6.0")

# If message sizes are multiplied by P, a row of a table is repeated so that each copy covers P to 33/32 P. The last row
# is repeated up to the platform's largest P, or up to `_END_PROCS` if the size of the platform is not known.
_STEP = 32
_END_PROCS = 2**20
# Our linear_sync sends a block in two halves, but Open MPI's sends a first part of fixed size. So a rule begins at each
# of these block sizes, with half of the block size as the first part.
_HALVED_BYTES = tuple(2**exponent for exponent in range(12, 23))

# Open MPI's reductions that keep the order of operands. Rules make it run other reductions even if the operation does
# not commute (issues 7765 and 8010 of Open MPI).
_KEEPS_ORDER = {
    "reduce": ("linear", "in_order_binary"),
    "allreduce": ("linear", "non_overlapping", "recursive_doubling"),
    "reduce_scatter": ("non_overlapping",),
    "reduce_scatter_block": ("linear",),
}


def openmpi_rules(
    tables: Sequence[DecisionTable],
    openmpi_version: str,
    *,
    skip_inexpressible: bool = False,
) -> str:
    """The text of a rules file that makes Open MPI run what the tables choose.

    Below the smallest P of a table, Open MPI decides itself. Above the largest P, the last row stays in force. If
    `skip_inexpressible` is true, Open MPI also decides for choices that rules cannot express (see `inexpressible`).
    """
    version = series(openmpi_version)
    sections = _sections(tables, version, skip_inexpressible)
    return _header(sorted(tables, key=_id), version, _by_size(sections)) + RulesFile(sections).text


def _sections(
    tables: Sequence[DecisionTable], openmpi_version: str, skip_inexpressible: bool = False
) -> dict[int, _Section]:
    """The rules of a file by collective id and communicator size; raises as `openmpi_rules` does."""
    version = series(openmpi_version)
    check_one_table_each(tables)
    return {_id(table): _section(table, version, skip_inexpressible) for table in sorted(tables, key=_id)}


def _id(table: DecisionTable) -> int:
    return Catalogue.load().collective(table.collective).openmpi_collective


def json_rules(tables: Sequence[DecisionTable]) -> str:
    """The text of a rules file in JSON (rule_file_version 3). Raises UsageError as `openmpi_rules` does.

    Open MPI takes the first entry whose range of communicator sizes fits, and the first rule of this entry whose range
    of message sizes fits. If no rule fits, Open MPI decides itself. Ranges include both ends. Message sizes have the
    units of classic rules.
    """
    collectives: dict[str, list[dict[str, Any]]] = {}
    for identity, sizes in _sections(tables, JSON_VERSION).items():
        entries = collectives[_names()[identity]] = []
        for first, end, held in spans(list(sizes.items())):
            if rules := _json_rules(held):
                entries.append({"comm_size_min": first, "comm_size_max": _last(end), "rules": rules})
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=1) + "\n"


def _json_rules(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return [
        {
            "msg_size_min": start,
            "msg_size_max": _last(end),
            "alg": rule.algorithm,
            **({"faninout": rule.faninout} if rule.faninout else {}),
            **({"seg_size": rule.segment_bytes} if rule.segment_bytes else {}),
        }
        for start, end, rule in spans([(rule.start, rule) for rule in rules])
        if rule.algorithm != OPENMPI_DECIDES
    ]


def _last(end: int | None) -> int | str:
    return "inf" if end is None else end - 1


@cache
def _names() -> dict[int, str]:
    return {entry.openmpi_collective: name for name, entry in Catalogue.load().collectives.items()}


def _header(tables: Sequence[DecisionTable], version: str, by_size: set[str]) -> str:
    """The comments at the top of a rules file: what the file is made from, how to use it, and warnings."""
    import jinja2  # imported here, since most commands do not need it

    warnings = [f"WARNING: {text}" for text in _warnings(tables, by_size)]
    text = Path(__file__).with_name("rules_header.txt").read_text(encoding="utf-8")
    template = jinja2.Template(text, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return template.render(
        version=version,
        tables=tables,
        made_for=lambda of: " ".join(f"{of.collective} on {of.platform}, chosen by {of.made_by}".split()),
        has_han=version in _HAS_HAN,
        others=OTHER_COMPONENTS,
        totals=[table.collective for table in tables if multiplies_by_procs(table.collective, version)],
        few_elements=any(map(needs_elements, tables)),
        element_bytes=ELEMENT_BYTES,
        warnings=[line for warning in warnings for line in textwrap.wrap(warning, 117)],
    )


def warnings_of(tables: Sequence[DecisionTable], openmpi_version: str) -> list[str]:
    """Warnings to read before rules of these tables are used, one per line; raises as `openmpi_rules` does."""
    return list(_warnings(tables, _by_size(_sections(tables, openmpi_version))))


def _warnings(tables: Sequence[DecisionTable], by_size: set[str]) -> Iterator[str]:
    disordered = [
        f"MPI_{table.collective.capitalize()}"
        for table in tables
        if (ordered := _KEEPS_ORDER.get(table.collective))
        and any(choice != LIBRARY_DECIDES and choice.algorithm not in ordered for choice in table.choices)
    ]
    if disordered:
        yield (
            f"for {', '.join(disordered)}, Open MPI does not look whether the operation commutes: with one that does "
            "not, algorithms of these rules give wrong results. Leave these collectives out for programs with such "
            "operations."
        )
    for table in tables:
        if table.collective in LOCAL_SEND_COUNT_COMPARED and table.collective in by_size:
            yield _LOCAL_SEND_COUNT_WARNINGS[table.collective]
    yield from (f"{text}." for text in wide_steps_texts(tables, are_left=True))


_LOCAL_SEND_COUNT_WARNINGS = {
    "gather": (
        "for MPI_Gather, Open MPI looks the rule up by each process's own send count. A program whose root passes "
        "MPI_IN_PLACE with another send count than the others (most pass 0) may then run two algorithms at once: it "
        "hangs or gathers wrong data. Leave gather out for such programs."
    ),
    "scatter": (
        "for MPI_Scatter, Open MPI looks the rule up by each process's own send count, which is significant only at "
        "the root. A program whose other processes pass another send count may then run two algorithms at once: it "
        "hangs or scatters wrong data. Leave scatter out for such programs."
    ),
}


def _by_size(sections: Mapping[int, _Section]) -> set[str]:
    """The collectives whose rules distinguish message sizes."""
    return {_names()[identity] for identity, sizes in sections.items() if max(map(len, sizes.values())) > 1}


def _section(table: DecisionTable, version: str, skip_inexpressible: bool) -> _Section:
    """The rules of one table by communicator size."""
    if not any(table.rules.values()):
        raise UsageError(f"the {table.collective} decision table is empty")
    section: dict[int, tuple[Rule, ...]] = {}
    if min(table.rules) > 1:
        section[1] = (Rule(0, OPENMPI_DECIDES, note="Open MPI decides"),)
    consumer = f"{OPENMPI}-{version}"
    for first, end, decided in spans(sorted(table.rules.items())):
        row = [step for span in spans(from_zero(decided)) for step in _translated(table.collective, *span)]
        if skip_inexpressible:
            says = partial(can_say, consumer, table.collective)
            row = [(start, choice if says(choice) else LIBRARY_DECIDES) for start, choice in row]
        if not sees_sizes(consumer, table.collective):
            check_one_choice(table, first, f"rules of Open MPI {version}")
            row = row[:1]
        varies = len(row) > 1 and multiplies_by_procs(table.collective, version)
        limit = end or (table.platform_procs or _END_PROCS) + 1
        for procs in repeated(first, limit) if varies else (first,):
            section[procs] = tuple(_rule(table.collective, version, procs, *step) for step in row)
    return section


def repeated(first: int, end: int, beyond: bool = False) -> Iterator[int]:
    """P from `first` to below `end`; if `beyond` is true, also the first P at or above `end`.

    The step is 1 below P = 64, and P // 32 above, so that a threshold per block decreases by at most 1/33 per step.
    """
    procs = first
    while procs == first or procs < end:
        yield procs
        procs += max(1, procs // _STEP)
    if beyond:
        yield procs


def _translated(collective: str, start: int, end: int | None, choice: Choice) -> Iterator[tuple[int, Choice]]:
    """A choice as rules express it, split at sizes where Open MPI would run a different algorithm."""
    if (collective, choice.algorithm) == ("bcast", "split_binary") and start < 2 * choice.segment_bytes:
        # If a half is shorter than a segment, Open MPI runs its chain. A rule without segments sends each half in one
        # message, as the choice does.
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


def _rule(collective: str, version: str, procs: int, start: int, choice: Choice) -> Rule:
    message = rule_message(collective, version, procs, start) if start else 0
    since = f"from {format_size(start)}"
    if choice == LIBRARY_DECIDES:
        return Rule(message, OPENMPI_DECIDES, note=f"{since}: Open MPI decides")
    if problem := inexpressible(collective, choice, version):
        raise UsageError(problem)
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    value = _parameter(algorithm, choice)
    note = f"{since}: {choice.algorithm}"
    note += f", {algorithm.count_parameter} {value}" if value else ""
    note += f", segments of {format_size(choice.segment_bytes)}" if choice.segment_bytes else ""
    return Rule(message, algorithm.openmpi[version], value, choice.segment_bytes, note)


def inexpressible(collective: str, choice: Choice, version: str) -> str:
    """The reason why rules of this Open MPI series ('4.1') cannot ask for a choice; empty if they can."""
    consumer = f"{OPENMPI}-{version}"
    if can_say(consumer, collective, choice):
        return ""
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    if can_run(consumer, algorithm):
        radix = _parameter(algorithm, choice)
        return f"rules of Open MPI cannot set the radix of knomial to {radix}; under rules it is {KNOMIAL_RADIX}"
    return (
        f"rules of Open MPI {version} have no {collective} algorithm '{choice.algorithm}'; make the table with "
        f"'collwise select --for {consumer}'"
    )


def _parameter(algorithm: Algorithm, choice: Choice) -> int:
    return (choice.parameter or algorithm.default_count) if algorithm.count_parameter else 0
