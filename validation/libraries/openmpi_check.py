"""Checks that the installed Open MPI follows a rules file, by the messages that it sends in one call.

The program `call` makes the call, Open MPI's own monitoring counts the messages, and the counts are compared with
those of the algorithm that the file asks for. Of some algorithms our own code sends the same messages, and is recorded.
Those of the others are observed while Open MPI runs the algorithm by its own option, with the file's rules for the
other collectives in force: some algorithms call these.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import read_text
from collwise.common.units import format_size
from collwise.simulator.execution.installations import find_installation
from collwise.validation.libraries.monitoring import Traffic, forcing, monitored
from collwise.validation.libraries.openmpi_file import Rule, parse_rules, settings_of_rules
from collwise.validation.select.consumers import rule_message, series
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of

# The algorithms of which our own code sends the same messages.
KNOWN_TRAFFIC = {
    "bcast": ("linear", "chain", "k_chain", "binary", "split_binary", "binomial"),
    "gather": ("linear", "linear_sync", "binomial"),
}
_FANOUTS = ("tree_fanout", "chain_fanout")


@dataclass(frozen=True)
class RulesCheck:
    """One call under a rules file. `expected` is the choice that the file asks for, None where Open MPI decides."""

    collective: str
    procs: int
    message_bytes: int
    openmpi: str
    expected: Choice | None
    expected_traffic: Traffic
    observed: Traffic
    without_rules: Traffic

    @property
    def matches(self) -> bool:
        """Whether Open MPI ran the algorithm that the file asks for: every message count and size is as expected."""
        return self.observed == self.expected_traffic

    @property
    def changes_something(self) -> bool:
        """Whether Open MPI does something else without the file."""
        return self.observed != self.without_rules

    @property
    def summary(self) -> str:
        """The result in one line."""
        call = f"{self.collective} of {format_size(self.message_bytes)} on {self.procs} processes"
        ran, alone = self._recognised(self.observed), self._recognised(self.without_rules)
        if self.expected is None:
            verdict = f"decided {call} itself and ran {ran}" if self.matches else f"was to decide {call}, and ran {ran}"
            return f"{self.openmpi} {verdict}"
        if not self.matches:
            return f"{self.openmpi} did not follow the rules: {call} ran {ran}, not {self.expected.algorithm}"
        control = f"without the rules: {alone}" if self.changes_something else "as it would without the rules"
        return f"{self.openmpi} accepted the rules and ran {self.expected.algorithm} for {call} ({control})"

    def _recognised(self, observed: Traffic) -> str:
        if self.collective in KNOWN_TRAFFIC:
            return recognise(self.collective, self.procs, self.message_bytes, observed)
        return "its own choice" if observed == self.without_rules else "something else"


def check_rules(path: Path, collective: str, procs: int, message_bytes: int) -> RulesCheck:
    """Makes one call with the installed Open MPI, with and without the rules file.

    Raises UsageError for a file that cannot be read or a call that cannot be made, CollwiseError when Open MPI fails.
    """
    if procs < 2 or (message_bytes < 1 and collective != "barrier"):
        raise UsageError("a call that shows anything needs 2 processes and 1 byte at least")
    installed = find_installation("openmpi")
    version = series(installed.version)
    rules = parse_rules(read_text(path), str(path))
    entry = Catalogue.load().collective(collective)
    rule = rules.lookup(entry.openmpi_collective, procs, rule_message(collective, version, procs, message_bytes))
    names = {algorithm.openmpi.get(version): name for name, algorithm in entry.algorithms.items()}
    if rule is not None and rule.algorithm not in names:
        raise UsageError(f"{path}: collwise has no {collective} algorithm with the id {rule.algorithm}")
    without_rules = observe(collective, procs, message_bytes)
    observed = observe(collective, procs, message_bytes, path)
    expected = None if rule is None else Choice(names[rule.algorithm], rule.segment_bytes, rule.fanout)
    if expected is not None and expected.algorithm in KNOWN_TRAFFIC.get(collective, ()):
        expected_traffic = traffic(collective, expected, procs, message_bytes)
    else:
        with tempfile.TemporaryDirectory() as folder:
            others = Path(folder, "others.rules")
            others.write_text(rules.without(entry.openmpi_collective).text)
            expected_traffic = observe(collective, procs, message_bytes, others, rule)
    return RulesCheck(
        collective, procs, message_bytes, installed.label, expected, expected_traffic, observed, without_rules
    )


def observe(
    collective: str,
    procs: int,
    message_bytes: int,
    rules: Path | None = None,
    forced: Rule | None = None,
    element_bytes: int | None = None,
) -> Traffic:
    """The messages of one call by the installed Open MPI: under a rules file, with one rule for all, or untuned.

    A forced rule holds where the file has none for the collective.

    `element_bytes`: of doubles (8) or complex ones (16) instead of what the program takes by default.
    """
    settings = {} if rules is None else settings_of_rules(str(rules.resolve()))
    if forced is not None:
        fanouts = dict.fromkeys(_FANOUTS, forced.fanout) if forced.fanout else {}
        settings |= forcing(collective, forced.algorithm, segmentsize=forced.segment_bytes, **fanouts)
    elements = [] if element_bytes is None else [str(element_bytes)]
    seen = monitored("call", procs, [collective, str(message_bytes), *elements], settings)
    if seen.run.returncode != 0:
        raise CollwiseError(f"{collective} of {message_bytes} bytes on {procs} processes failed: {seen.run.problem}")
    if seen.counted != procs:
        raise CollwiseError(f"{find_installation('openmpi').label} wrote {seen.counted} of {procs} message counts")
    return seen.by_collectives


def recognise(collective: str, procs: int, message_bytes: int, observed: Traffic) -> str:
    """The algorithms, of any segment size, that send these bytes along these edges: 'binary', or that none is known."""
    sizes = {edge: size for edge, (_, size) in observed.items()}
    fitting = []
    for name in KNOWN_TRAFFIC[collective]:
        usual = traffic(collective, Choice(name), procs, message_bytes)
        if {edge: size for edge, (_, size) in usual.items()} == sizes:
            fitting.append(name)
    return " or ".join(fitting) or "no algorithm that is known here"


def traffic(collective: str, choice: Choice, procs: int, message_bytes: int) -> Traffic:
    """The messages of Open MPI's implementation of an algorithm from root 0, or to it, with a process on each node.

    They are those of our own, as the schedule engine records them, but in one case: Open MPI sends the second part of
    a block also where it is empty.
    """
    from collwise.platforms import load_description
    from collwise.simulator.schedule.library import ON_WAY, Schedule
    from collwise.simulator.schedule.networks import network_tables

    platform = replace(load_description("exact"), nodes=procs)
    schedule = Schedule(case_of(collective, choice, procs, message_bytes), platform.places(procs, 1))
    trace = schedule.trace(network_tables(platform, procs, 1, schedule.sizes))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for span in trace.spans[trace.spans["spent"] == ON_WAY]:
        edge = int(span["process"]), int(span["peer"])
        messages, size = found.get(edge, (0, 0))
        found[edge] = messages + 1, size + int(trace.sizes[span["size"]])
    if (collective, choice.algorithm) == ("gather", "linear_sync"):
        found |= {edge: (2, size) for edge, (_, size) in found.items() if edge[1] == 0}
    return found
