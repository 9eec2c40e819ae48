"""Checks that the installed Open MPI follows a rules file, by the messages that it sends in one call.

Open MPI's own monitoring counts the messages of the program `call`. The expected counts are recorded from our
implementation of the algorithm, if it sends the same messages. Otherwise they are observed while Open MPI's own option
forces the algorithm. The file's rules for other collectives then also apply, since some algorithms call these.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from collwise.algorithms.catalogue import Catalogue, Collective
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import read_text
from collwise.common.units import format_size
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.launchers import parameter_options, run_program
from collwise.simulator.execution.processes import ProgramRun
from collwise.validation.compare.deciders import Decider, Deciding
from collwise.validation.libraries.baselines import DEFAULT
from collwise.validation.libraries.openmpi_rules import OTHER_COMPONENTS, Rule, parse_rules, settings_of_rules
from collwise.validation.select.consumers import RULES_VERSIONS, rule_message, series
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of

Traffic = Mapping[tuple[int, int], tuple[int, int]]
"""Messages and bytes by (source, destination)."""

# Many processes on few cores take long to start, longer still if other programs run.
_TIME_LIMIT_SECONDS = 60.0
_TIME_LIMIT_SECONDS_PER_PROCESS = 4.0
_SENT = re.compile(r"^([EI])\s+(\d+)\s+(\d+)\s+(\d+) bytes\s+(\d+) msgs sent")


@dataclass(frozen=True)
class Monitored:
    """The program's own messages in a run, and those of collectives, counted by `counted` processes."""

    run: ProgramRun
    counted: int
    by_program: Traffic
    by_collectives: Traffic


def monitored(program: str, procs: int, args: Sequence[str], settings: Mapping[str, str]) -> Monitored:
    """Runs a program under the installed Open MPI with these settings. Raises UsageError if there is no Open MPI."""
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        monitoring = {
            "coll": OTHER_COMPONENTS,
            "pml_monitoring_enable": "2",  # counts the messages of collectives and of the program separately
            "pml_monitoring_enable_output": "3",
            "pml_monitoring_filename": f"{directory}/sent",
        }
        words = parameter_options({**settings, **monitoring})
        limit = _TIME_LIMIT_SECONDS + _TIME_LIMIT_SECONDS_PER_PROCESS * procs
        run = run_program("openmpi", program, procs, args, timeout_seconds=limit, launcher_args=words)
        profiles = [path.read_text(encoding="utf-8") for path in Path(directory).glob("sent.*.prof")]
    sent: dict[str, dict[tuple[int, int], tuple[int, int]]] = {"E": {}, "I": {}}
    for line in "\n".join(profiles).splitlines():
        if match := _SENT.match(line):
            source, target, size, messages = map(int, match.groups()[1:])
            sent[match[1]][source, target] = (messages, size)
    return Monitored(run, len(profiles), sent["E"], sent["I"])


def forcing(collective: str, algorithm: int, **parameters: int) -> dict[str, str]:
    """Open MPI's options that force the algorithm of this id, with parameters such as `segmentsize`."""
    option = f"coll_tuned_{collective}_algorithm"
    settings = {"coll_tuned_use_dynamic_rules": "1", option: str(algorithm)}
    return settings | {f"{option}_{name}": str(value) for name, value in parameters.items()}


# The algorithms whose implementations by Open MPI and by us send the same messages.
KNOWN_TRAFFIC = {
    "bcast": ("linear", "chain", "k_chain", "binary", "split_binary", "binomial"),
    "gather": ("linear", "linear_sync", "binomial"),
}
_DEGREES = ("tree_fanout", "chain_fanout")


_Messages = TypeVar("_Messages")


@dataclass(frozen=True)
class CallCheck(Generic[_Messages]):
    """One call under a file of decisions: the messages that `library` sent, and those that the file demands.

    `without` are the messages that the library sends without the file.
    """

    collective: str
    procs: int
    message_bytes: int
    library: str
    observed: _Messages
    demanded: _Messages
    without: _Messages

    @property
    def call(self) -> str:
        """The call in words."""
        return f"{self.collective} of {format_size(self.message_bytes)} on {self.procs} processes"

    @property
    def matches(self) -> bool:
        """True if every message count and size is as the file demands."""
        return self.observed == self.demanded

    @property
    def changes_something(self) -> bool:
        """True if the library sends other messages without the file."""
        return self.observed != self.without


@dataclass(frozen=True)
class RulesCheck(CallCheck[Traffic]):
    """One call under a rules file. `expected` is the choice that the file asks for, None if Open MPI decides."""

    expected: Choice | None

    @property
    def summary(self) -> str:
        """The result in one line."""
        call, ran, alone = self.call, self._recognised(self.observed), self._recognised(self.without)
        if self.expected is None:
            verdict = f"decided {call} itself and ran {ran}" if self.matches else f"did not decide {call}: it ran {ran}"
            return f"{self.library} {verdict}"
        if not self.matches:
            return f"{self.library} did not follow the rules: {call} ran {ran}, not {self.expected.algorithm}"
        control = f"without the rules: {alone}" if self.changes_something else "as it would without the rules"
        return f"{self.library} accepted the rules and ran {self.expected.algorithm} for {call} ({control})"

    def _recognised(self, observed: Traffic) -> str:
        if self.collective in KNOWN_TRAFFIC:
            return recognise(self.collective, self.procs, self.message_bytes, observed)
        return "its own choice" if observed == self.without else "something else"


def check_rules(path: Path, collective: str, procs: int, message_bytes: int) -> RulesCheck:
    """Makes one call with the installed Open MPI, with and without the rules file.

    Raises UsageError for a file that cannot be read or a call that cannot be made, CollwiseError when Open MPI fails.
    """
    if procs < 2 or (message_bytes < 1 and collective != "barrier"):
        raise UsageError("the check needs at least 2 processes and 1 byte")
    installed = find_installation("openmpi")
    version = series(installed.version)
    rules = parse_rules(read_text(path), str(path))
    entry = Catalogue.load().collective(collective)
    rule = rules.lookup(entry.openmpi_collective, procs, rule_message(collective, version, procs, message_bytes))
    expected = None if rule is None else _choice_of(rule, entry, version, path)
    without = observe(collective, procs, message_bytes)
    observed = observe(collective, procs, message_bytes, path)
    if expected is not None and expected.algorithm in KNOWN_TRAFFIC.get(collective, ()):
        demanded = traffic(collective, expected, procs, message_bytes)
    else:
        with tempfile.TemporaryDirectory() as folder:
            others = Path(folder, "others.rules")
            others.write_text(rules.without(entry.openmpi_collective).text)
            demanded = observe(collective, procs, message_bytes, others, rule)
    return RulesCheck(collective, procs, message_bytes, installed.label, observed, demanded, without, expected)


def _choice_of(rule: Rule, entry: Collective, version: str, path: Path) -> Choice:
    names = {algorithm.openmpi.get(version): name for name, algorithm in entry.algorithms.items()}
    if rule.algorithm not in names:
        raise UsageError(f"{path}: collwise has no {entry.name} algorithm with the id {rule.algorithm}")
    return Choice(names[rule.algorithm], rule.segment_bytes, rule.faninout)


def rules_decider(path: Path) -> Decider:
    """A file of classic rules as a decider. Calls that the file leaves to Open MPI get untuned Open MPI's decision.

    The file's header names the version of Open MPI (default: 4.1). Raises UsageError for other files.
    """
    text = read_text(path)
    rules, named = parse_rules(text, str(path)), re.search(r"Open MPI (\d+\.\d+)", text)
    version = series(named[1] if named else RULES_VERSIONS[0])

    def chosen(collective: str, procs: int, message_bytes: int) -> Choice | None:
        entry = Catalogue.load().collective(collective)
        message = rule_message(collective, version, procs, message_bytes)
        rule = rules.lookup(entry.openmpi_collective, procs, message)
        if rule is None:
            return DEFAULT.choice(collective, procs, message_bytes)
        choice = _choice_of(rule, entry, version, path)
        usual = choice.parameter == entry.algorithms[choice.algorithm].default_count
        return replace(choice, parameter=0) if usual else choice

    return Deciding(path.name, chosen)


def observe(
    collective: str,
    procs: int,
    message_bytes: int,
    rules: Path | None = None,
    forced: Rule | None = None,
    element_bytes: int | None = None,
) -> Traffic:
    """The messages of one call by the installed Open MPI, under a rules file, with one forced rule, or untuned.

    The `forced` rule applies if the file has no rules for the collective. `element_bytes` is 8 for doubles and 16 for
    complex numbers, by default what the program `call` uses.
    """
    settings = {} if rules is None else settings_of_rules(str(rules.resolve()))
    if forced is not None:
        degrees = dict.fromkeys(_DEGREES, forced.faninout) if forced.faninout else {}
        settings |= forcing(collective, forced.algorithm, segmentsize=forced.segment_bytes, **degrees)
    elements = [] if element_bytes is None else [str(element_bytes)]
    seen = monitored("call", procs, [collective, str(message_bytes), *elements], settings)
    if seen.run.returncode != 0:
        raise CollwiseError(f"{collective} of {message_bytes} bytes on {procs} processes failed: {seen.run.problem}")
    if seen.counted != procs:
        raise CollwiseError(
            f"{find_installation('openmpi').label} counted the messages of only {seen.counted} of {procs} processes"
        )
    return seen.by_collectives


def recognise(collective: str, procs: int, message_bytes: int, observed: Traffic) -> str:
    """The algorithms that send these bytes along these edges, with any segment size: 'binary or binomial'."""

    def sizes(sent: Traffic) -> dict[tuple[int, int], int]:
        return {edge: size for edge, (_, size) in sent.items()}

    of_names = {name: traffic(collective, Choice(name), procs, message_bytes) for name in KNOWN_TRAFFIC[collective]}
    fitting = [name for name, sent in of_names.items() if sizes(sent) == sizes(observed)]
    return " or ".join(fitting) or "no algorithm that is known here"


def traffic(collective: str, choice: Choice, procs: int, message_bytes: int) -> Traffic:
    """The messages of Open MPI's implementation of an algorithm, with root 0 and one process on each node.

    They are recorded from our own implementation, with one correction: in linear_sync, Open MPI sends the second part
    of a block even if this part is empty.
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


# The usual number of processes, and the largest number that fits on one machine, for rules that begin with more than
# the usual number. `_SIZES` are a short and a long message, or a single message if counting takes long.
_PROCS = 8
_MAX_PROCS = 64
_CHECKS_AT_ONCE = 2
_SIZES = {
    "bcast": (16384, 262144),
    "gather": (16384, 131072),
    "allreduce": (65536,),
    "alltoall": (65536,),
    "barrier": (0,),
}
_OTHER_SIZES = (1024, 65536)
_MAX_BYTES = 32 * 2**20
"""The largest P times message size that is checked. It matters if rules begin above `_SIZES`."""


def check_all(rules: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool | None]]:
    """Checks a short and a long message for each table; yields lines on what ran. True marks a followed rule.

    If the rules of a table begin with longer messages, the first size of the rules is checked. If they begin with more
    processes than this machine can hold, or with messages that are too long, the table is not checked and its line
    comes with None.

    The calls start immediately, and run in the background while the caller takes the lines. Taking a line raises
    CollwiseError if Open MPI fails. Raises UsageError if Open MPI is missing.
    """
    calls, unchecked = [], []
    for table in tables:
        procs = max(_PROCS, min(table.rules))
        sizes, most = _SIZES.get(table.collective, _OTHER_SIZES), _MAX_BYTES // procs
        first = min((start for start, _ in table.row(procs)), default=None)
        if procs > _MAX_PROCS:
            unchecked.append(
                f"{table.collective}: not checked, since its rules begin with P = {procs}, and at most {_MAX_PROCS} "
                "processes run here; rules that begin with fewer can be checked"
            )
        elif first is None or first > max(*sizes, most):
            at_most = f"{procs} processes and {format_size(most)} or less"
            unchecked.append(f"{table.collective}: not checked, since no rule applies to {at_most}")
        else:
            within = [size for size in sizes if size >= first] or [first]
            calls += [(rules, table.collective, procs, size) for size in within]
    if calls:
        # The program is built first, since simultaneous calls would wait for one another to build it.
        find_installation("openmpi").program("call")
    # Two simultaneous calls on many processes would only wait for each other.
    pool = ThreadPoolExecutor(_CHECKS_AT_ONCE if all(procs <= _PROCS for _, _, procs, _ in calls) else 1)
    checks = [pool.submit(check_rules, *call) for call in calls]
    pool.shutdown(wait=False)
    return itertools.chain(
        ((check.result().summary, check.result().matches) for check in checks), ((line, None) for line in unchecked)
    )
