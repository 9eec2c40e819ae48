"""Open MPI's file of classic dynamic rules (`coll_tuned_dynamic_rules_filename`): its rules, and how it is read.

The file is a stream of whole numbers; `#` starts a comment:
    collectives, then for each: id, communicator sizes, then for each: size, message sizes, then for each:
        message size, algorithm id, fan-out, segment size
Open MPI takes the last entry whose size is not above the communicator's, or the first entry if all sizes are above it.
The entry for the message size is found in the same way. Algorithm 0 leaves the call to Open MPI. Open MPI does not
check the file: after a wrong count it misreads every number, and then silently decides itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError

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
    return {
        "coll_tuned_use_dynamic_rules": "1",
        "coll_tuned_dynamic_rules_filename": file,
        "coll": OTHER_COMPONENTS,
    }


@dataclass(frozen=True)
class RulesFile:
    """The rules by collective id and communicator size, ascending."""

    collectives: Mapping[int, Mapping[int, tuple[Rule, ...]]]

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
        names = {entry.openmpi_collective: name for name, entry in Catalogue.load().collectives.items()}
        lines = [f"{len(self.collectives)} # collectives"]
        for identity, sizes in self.collectives.items():
            lines += ["", f"{identity} # {names.get(identity, 'unknown')}", f"{len(sizes)} # communicator sizes"]
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
