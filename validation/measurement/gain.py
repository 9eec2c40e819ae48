"""The gain of decisions: Open MPI's own decisions compared with a rules file and with preloaded libcollwise.

The program calls MPI's own collectives. It is launched in turn with Open MPI's own decisions, with the rules file and
with libcollwise, so that drift affects all three equally. A time is the mean over launches, with its 95 % interval.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import CollwiseError, UsageError, located
from collwise.common.units import format_size
from collwise.simulator.execution.interposed import LIBRARY, following_rules
from collwise.simulator.execution.launchers import parameter_variables
from collwise.simulator.execution.profiles import Profile, read_profile
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision, combine
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.openmpi_check import RulesCheck, check_rules
from collwise.validation.libraries.openmpi_rules import RulesFile, inexpressible, openmpi_rules, settings_of_rules
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.select.consumers import COLLWISE, OPENMPI, series
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

DEFAULT, RULES, LIBCOLLWISE = "default", "rules", "libcollwise"
WAYS = (DEFAULT, RULES, LIBCOLLWISE)
NOT_BY_RULES = "not by rules"
_UNREADABLE = "collwise: unreadable on "


@dataclass(frozen=True)
class GainRow:
    """The mean times of one call by default, with rules and with libcollwise.

    `rules` is None if rules cannot express any choice, and `note` says why. `instead` is the choice in the rules if
    these cannot express the best one.
    """

    collective: str
    procs: int
    message_bytes: int
    choice: Choice
    default: Timing
    rules: Timing | None
    libcollwise: Timing
    note: str = ""
    instead: Choice | None = None

    def speedup(self, way: str) -> float:
        """Open MPI's default time divided by the time with `way` ('rules' or 'libcollwise'); nan if not known."""
        time: Timing | None = getattr(self, way)
        return math.nan if time is None else self.default.seconds / time.seconds

    def significant(self, way: str) -> bool:
        """True if the confidence intervals of the default time and of the time with `way` do not overlap."""
        time: Timing | None = getattr(self, way)
        if time is None:
            return False
        apart = abs(self.default.seconds - time.seconds)
        return apart > self.default.half_width_seconds + time.half_width_seconds


@dataclass(frozen=True)
class MeasuredGain:
    """The gain for each case, and checks that Open MPI follows the rules."""

    rows: tuple[GainRow, ...]
    checks: tuple[RulesCheck, ...] = ()
    target: str = ""
    library: str = ""


def measure_gain(
    target: ExecutionTarget,
    decisions: Mapping[str, DecisionTable],
    cases: Sequence[Case],
    store: Store,
    *,
    launches: int = 5,
    repetitions: int = 5,
    check: bool = True,
    timeout_seconds: float = 600.0,
    on_launch: Callable[[int, int], None] | None = None,
) -> MeasuredGain:
    """Times calls of MPI by default, with rules, and with libcollwise, on a target with Open MPI.

    The rules and the table are as `export` writes them. `on_launch` gets the number of finished launches and the number
    of all launches. If `check` is true, one call of each algorithm on this machine shows whether Open MPI follows the
    rules. Raises UsageError if a case has no decision or the library is not Open MPI, and CollwiseError if a launch
    fails or libcollwise did not run a chosen algorithm.
    """
    if target.installation.library != "openmpi":
        raise UsageError(f"{target.installation.label}: rules files are for Open MPI; use --library openmpi")
    if launches < 2:
        raise UsageError(f"{launches} launches: a confidence interval needs at least 2")
    left = {table.collective: table for table in for_consumer([*decisions.values()], COLLWISE)[0]}
    choices = {case: choice_for(left, case) for case in cases}
    version = series(target.installation.version)
    used = [decisions[name] for name in dict.fromkeys(case.collective for case in cases)]
    said = {table.collective: table for table in for_consumer(used, f"{OPENMPI}-{version}")[0]}
    in_rules = {case: said[case.collective].choice_at(case.procs, case.message_bytes) for case in cases}
    by_rules = {case: in_rules[case] or choice for case, choice in choices.items()}
    refusals = {name: _refusal(table, version) for name, table in said.items()}
    notes = {case: refusals[case.collective] or _why_not(case, choice, version) for case, choice in by_rules.items()}
    expressible = [table for name, table in said.items() if not refusals[name]]
    rules = openmpi_rules(expressible, version, skip_inexpressible=True) if expressible else RulesFile({}).text
    method = Method(precision=Precision(repetitions, repetitions))
    found: dict[str, list[list[Timing]]] = {way: [] for way in WAYS}
    with target.shared_directory() as folder:
        rules_file, table = folder / "openmpi.rules", collwise_rules(used)
        rules_file.write_text(rules, encoding="utf-8")
        digest = hashlib.sha256((rules + table).encode()).hexdigest()
        preloading = following_rules(table, target.installation.program(LIBRARY), folder)
        procs = max(case.procs for case in cases)
        _check_readable(target, procs, (rules_file, Path(preloading["LD_PRELOAD"])), timeout_seconds)
        replaced = {case: choice for case, choice in choices.items() if choice != LIBRARY_DECIDES}
        if replaced:
            verify_algorithms(deciding(target, "report", "", preloading), folder, replaced, timeout_seconds)
        targets = {
            DEFAULT: deciding(target, DEFAULT, "none", {}),
            RULES: deciding(target, RULES, digest, parameter_variables(settings_of_rules(str(rules_file)))),
            LIBCOLLWISE: deciding(target, LIBCOLLWISE, digest, preloading),
        }
        turns = [(number, way) for number in range(1, launches + 1) for way in WAYS]
        for done, (number, way) in enumerate(turns, 1):
            run = f"launch {number}"
            timings = measure(targets[way], cases, store, method=method, run=run, timeout_seconds=timeout_seconds)
            found[way].append(timings)
            if on_launch is not None:
                on_launch(done, len(turns))
        checks = tuple(_rules_checks(rules_file, by_rules, notes) if check else ())
    times = {way: _mean_times(cases, found[way]) for way in WAYS}
    rows = tuple(
        GainRow(
            case.collective, case.procs, case.message_bytes, choices[case], times[DEFAULT][case],
            None if notes[case] else times[RULES][case], times[LIBCOLLWISE][case], notes[case],
            None if by_rules[case] == choices[case] else by_rules[case],
        )
        for case in cases
    )  # fmt: skip
    return MeasuredGain(rows, checks, target.name, target.installation.label)


def choice_for(decisions: Mapping[str, DecisionTable], case: Case) -> Choice:
    """The decision for a case. Raises UsageError, naming the call, if there is none."""
    table = decisions.get(case.collective)
    if table is None:
        raise UsageError(f"no decisions for {case.collective}; there are some for {', '.join(sorted(decisions))}")
    with located(f"{case.collective} on {case.procs} processes"):
        return table.choose(case.procs, case.message_bytes)


def _why_not(case: Case, choice: Choice, version: str) -> str:
    """The reason why rules cannot express the choice for a case; empty if they can."""
    reason = inexpressible(case.collective, choice, version).split(";")[0]
    return f"{NOT_BY_RULES}: {reason}" if reason else ""


def _refusal(table: DecisionTable, version: str) -> str:
    """The reason why rules cannot express any choice of a table; empty if they can express one."""
    try:
        openmpi_rules([table], version, skip_inexpressible=True)
    except UsageError as problem:
        return f"{NOT_BY_RULES}: {str(problem).split(';')[0]}"
    return ""


def missing_calls(report: Profile, choices: Mapping[Case, Choice]) -> list[str]:
    """The calls that did not run the chosen algorithm, according to libcollwise's report."""
    missing = []
    for case, choice in choices.items():
        call = (case.collective, case.procs, choice.algorithm)
        rows = [row for row in report.rows if (row.collective, row.processes, row.algorithm) == call]
        if not any(row.holds(case.message_bytes) for row in rows):
            size = format_size(case.message_bytes)
            missing.append(f"{choice.algorithm} for {case.collective} of {size} on {case.procs} processes")
    return missing


def _check_readable(target: ExecutionTarget, procs: int, files: Sequence[Path], timeout_seconds: float) -> None:
    """Raises CollwiseError if a process cannot read a file, since Open MPI and the loader would silently ignore it."""
    script = f'for file; do [ -r "$file" ] || echo "{_UNREADABLE}$(uname -n) $file"; done'
    run = target.run("/bin/sh", procs, ["-c", script, "sh", *map(str, files)], timeout_seconds=timeout_seconds)
    if run.returncode != 0:
        raise CollwiseError(f"{target.name}: looking for {files[0].name} on all hosts: {run.problem}")
    for line in run.output_lines:
        if _UNREADABLE in line:
            host, _, file = line.partition(_UNREADABLE)[2].partition(" ")
            raise CollwiseError(
                f"host {host} cannot read {file}; collwise and the working directory must be where all hosts see them"
            )


def verify_algorithms(
    following: ExecutionTarget, folder: Path, choices: Mapping[Case, Choice], timeout_seconds: float
) -> None:
    """Makes one launch and drops its times. Raises CollwiseError if a call does not run the chosen algorithm.

    `following` preloads libcollwise, which writes its report to a file in `folder`.
    """
    once = Method(precision=Precision(1, 1))
    file = folder / "report.json"
    reporting = following.modified({}, {"COLLWISE_REPORT": str(file)})
    with Store(":memory:") as store:
        measure(reporting, list(choices), store, method=once, timeout_seconds=timeout_seconds)
    if not file.exists():
        raise CollwiseError(f"libcollwise wrote no report to {file}: it was not loaded, or cannot write there")
    if missing := missing_calls(read_profile(file), choices):
        many = f"{len(missing)} of {len(choices)} choices"
        raise CollwiseError(f"libcollwise did not run {many}, according to its report; the first: {missing[0]}")


def _rules_checks(rules_file: Path, choices: Mapping[Case, Choice], notes: Mapping[Case, str]) -> list[RulesCheck]:
    """A check of one call for each collective and algorithm that rules can express."""
    firsts: dict[tuple[str, str], Case] = {}
    for case, choice in choices.items():
        if not notes[case]:
            firsts.setdefault((case.collective, choice.algorithm), case)
    return [check_rules(rules_file, first.collective, first.procs, first.message_bytes) for first in firsts.values()]


def deciding(target: ExecutionTarget, way: str, digest: str, environment: Mapping[str, str]) -> ExecutionTarget:
    """The target, where calls are decided by `way`, for example RULES. `digest` identifies the decisions."""
    return target.modified({"decided_by": way, "decisions": digest}, environment)


def _mean_times(cases: Sequence[Case], launches: Sequence[Sequence[Timing]]) -> dict[Case, Timing]:
    combined = list(map(combine, zip(*launches, strict=True)))
    if failed := [timing for timing in combined if not timing.ok]:
        raise CollwiseError(f"{failed[0].case.collective} of {failed[0].case.message_bytes} bytes: {failed[0].error}")
    return dict(zip(cases, combined, strict=True))
