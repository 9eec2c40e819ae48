"""What decisions gain at run time: Open MPI as it is, following its rules file, and with libcollwise preloaded.

The collective called is MPI's own; the three ways are launched in turn, so that drift concerns all alike. A time
is the mean over launches, its half-width that of the 95 % interval of this mean. Before that one launch more proves by
libcollwise's report that each call is run by the algorithm chosen; and `openmpi_check` sees, once an algorithm, whether
Open MPI follows the rules.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import format_size
from collwise.simulator.execution.interposed import LIBRARY, preloadable
from collwise.simulator.execution.targets import ExecutionTarget, ModifiedTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision, half_width
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case, Timing
from collwise.validation.openmpi.rules import inexpressible, openmpi_rules
from collwise.validation.openmpi.rules_check import RulesCheck, check_rules
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.collwise_rules import collwise_rules
from collwise.validation.selection.consumers import series
from collwise.validation.selection.decision_table import DecisionTable

DEFAULT, RULES, LIBCOLLWISE = "default", "rules", "libcollwise"
WAYS = (DEFAULT, RULES, LIBCOLLWISE)
NOT_BY_RULES = "not by rules"
_REPORT_LINE = re.compile(r"([a-z_]+) +(\d+)  (\S.*?) {2,}(-|\d+(?: to \d+)?) +(\d+)")
_UNSEEN = "collwise: unseen by "

# (collective, P, what ran, least and largest message bytes) of a line of the library's report.
Counted = tuple[str, int, str, int, int]


@dataclass(frozen=True)
class WayTime:
    """Mean seconds of a call, and the half-width of their interval."""

    seconds: float
    half_width_seconds: float


@dataclass(frozen=True)
class GainRow:
    """One call by three ways; `rules` is None where rules cannot ask for the choice, which `note` says."""

    collective: str
    procs: int
    message_bytes: int
    choice: Choice
    default: WayTime
    rules: WayTime | None
    libcollwise: WayTime
    note: str = ""

    def speedup(self, way: str) -> float:
        """Open MPI's default time over that of a way; nan where there is none."""
        time = getattr(self, way)
        return math.nan if time is None else float(self.default.seconds / time.seconds)

    def significant(self, way: str) -> bool:
        """Whether the two intervals do not overlap."""
        time = getattr(self, way)
        if time is None:
            return False
        apart = abs(self.default.seconds - time.seconds)
        return bool(apart > self.default.half_width_seconds + time.half_width_seconds)


@dataclass(frozen=True)
class RunTime:
    """Gains by case, and what Open MPI did with the rules, a line a choice that was looked at."""

    rows: tuple[GainRow, ...]
    checks: tuple[RulesCheck, ...] = ()


def run_time(
    place: ExecutionTarget,
    decisions: Mapping[str, DecisionTable],
    cases: Sequence[Case],
    store: Store,
    *,
    launches: int = 5,
    repetitions: int = 5,
    check: bool = True,
    run: str = "",
    timeout_seconds: float = 600.0,
    on_launch: Callable[[int, int], None] | None = None,
) -> RunTime:
    """Times of `cases` (see `builtin_cases`) on a place with Open MPI: as it is, by rules, and with libcollwise.

    `on_launch` gets how many launches are done and how many there are. With `check` one call for each choice shows,
    with processes of this machine, whether Open MPI follows the rules. Finished launches are kept in the store. Raises
    UsageError where nothing is decided for a case or the library is not Open MPI, and CollwiseError when a launch fails
    or libcollwise did not run what it was to.
    """
    if place.engine.library != "openmpi":
        raise UsageError(f"{place.engine.label}: rules files are Open MPI's; valid library: openmpi")
    if launches < 2:
        raise UsageError(f"{launches} launches; an interval takes 2 at least")
    choices = {case: choice_for(decisions, case) for case in cases}
    version = series(place.engine.version)
    used = [decisions[name] for name in dict.fromkeys(case.collective for case in cases)]
    notes = _notes(used, choices, version)
    with place.folder() as folder:
        rules_file, table_file = Path(folder, "rules"), Path(folder, "table")
        rules_text = _rules_text(used, version)
        rules_file.write_text(rules_text, encoding="utf-8")
        table_file.write_text(collwise_rules(used), encoding="utf-8")
        digest = hashlib.sha256((rules_text + table_file.read_text(encoding="utf-8")).encode()).hexdigest()
        preloading = _preloading(place, table_file)
        told = {
            DEFAULT: _told(place, DEFAULT, "none", {}),
            RULES: _told(place, RULES, digest, following(rules_file)),
            LIBCOLLWISE: _told(place, LIBCOLLWISE, digest, preloading),
        }
        _see(place, max(case.procs for case in cases), (rules_file, Path(preloading["LD_PRELOAD"])), timeout_seconds)
        _prove(_told(place, "report", "", {**preloading, "COLLWISE_REPORT": "1"}), choices, timeout_seconds)
        method = Method(precision=Precision(repetitions, repetitions))
        found: dict[str, list[list[Timing]]] = {way: [] for way in WAYS}
        for number in range(launches):
            for turn, way in enumerate(WAYS):
                label = f"{run} launch {number + 1}".strip()
                found[way].append(
                    measure(told[way], cases, store, method=method, run=label, timeout_seconds=timeout_seconds)
                )
                if on_launch is not None:
                    on_launch(number * len(WAYS) + turn + 1, launches * len(WAYS))
        checks = tuple(_checks(rules_file, choices, notes)) if check else ()
    times = {way: _way_times(cases, found[way]) for way in WAYS}
    rows = tuple(
        GainRow(
            case.collective, case.procs, case.message_bytes, choices[case], times[DEFAULT][case],
            None if notes[case] else times[RULES][case], times[LIBCOLLWISE][case], notes[case],
        )
        for case in cases
    )  # fmt: skip
    return RunTime(rows, checks)


def choice_for(decisions: Mapping[str, DecisionTable], case: Case) -> Choice:
    """What was decided for a case. Raises UsageError, naming the call, where nothing is."""
    table = decisions.get(case.collective)
    if table is None:
        raise UsageError(f"no decisions for {case.collective}; there are some for {', '.join(sorted(decisions))}")
    try:
        return table.choose(case.procs, case.message_bytes)
    except UsageError as problem:
        raise UsageError(f"{case.collective} on {case.procs} processes: {problem}") from None


def _notes(used: Sequence[DecisionTable], choices: Mapping[Case, Choice], version: str) -> dict[Case, str]:
    """Why rules cannot ask for a case's choice; empty where they can."""
    whole = {table.collective: _refusal(table, version) for table in used}

    def note(case: Case, choice: Choice) -> str:
        if whole[case.collective]:
            return whole[case.collective]
        reason = inexpressible(case.collective, choice, version).split(";")[0]
        return f"{NOT_BY_RULES}: {reason}" if reason else ""

    return {case: note(case, choice) for case, choice in choices.items()}


def _refusal(table: DecisionTable, version: str) -> str:
    try:
        openmpi_rules([table], version, skip_inexpressible=True)
    except UsageError as problem:
        return f"{NOT_BY_RULES}: {str(problem).split(';')[0]}"
    return ""


def _rules_text(used: Sequence[DecisionTable], version: str) -> str:
    expressible = [table for table in used if not _refusal(table, version)]
    return openmpi_rules(expressible, version, skip_inexpressible=True) if expressible else "0 # collectives\n"


def following(file: Path) -> dict[str, str]:
    """What makes Open MPI follow a rules file: its parameters as variables, which every launcher hands on."""
    settings = {"coll": "^han", "coll_tuned_use_dynamic_rules": "1", "coll_tuned_dynamic_rules_filename": str(file)}
    return {f"OMPI_MCA_{name}": value for name, value in settings.items()}


def _preloading(place: ExecutionTarget, table: Path) -> dict[str, str]:
    """What the processes are told; where need be, a link to the library is made beside the table."""
    library = preloadable(place.engine.program(LIBRARY), table.parent)
    return {"LD_PRELOAD": library, "COLLWISE_TABLE": str(table)}


def counted(report: str) -> set[Counted]:
    """The lines of the library's report in what a run printed on standard error."""
    found = set()
    for line in report.splitlines():
        row = _REPORT_LINE.fullmatch(line.strip())
        if row is not None and row.group(4) != "-":
            least, _, largest = row.group(4).partition(" to ")
            found.add((row.group(1), int(row.group(2)), row.group(3), int(least), int(largest or least)))
    return found


def not_run(report: str, choices: Mapping[Case, Choice]) -> list[str]:
    """What a report does not show of the calls and algorithms that it should."""
    seen = counted(report)

    def ran(case: Case, choice: Choice) -> bool:
        return any(
            (collective, procs, what) == (case.collective, case.procs, choice.algorithm)
            and least <= case.message_bytes <= largest
            for collective, procs, what, least, largest in seen
        )

    return [
        f"{choice.algorithm} for {case.collective} of {format_size(case.message_bytes)} on {case.procs} processes"
        for case, choice in choices.items()
        if not ran(case, choice)
    ]


def _see(place: ExecutionTarget, procs: int, files: Sequence[Path], timeout_seconds: float) -> None:
    """Raises CollwiseError where a process cannot read a file: Open MPI and the loader would go on without."""
    script = f'for file; do [ -r "$file" ] || echo "{_UNSEEN}$(uname -n) $file"; done'
    run = place.run("/bin/sh", procs, ["-c", script, "sh", *map(str, files)], timeout_seconds=timeout_seconds)
    if run.returncode != 0:
        raise CollwiseError(f"{place.name}: looking for {files[0].name} on all hosts: {run.problem}")
    for line in run.output_lines:
        if _UNSEEN in line:
            host, _, file = line.partition(_UNSEEN)[2].partition(" ")
            raise CollwiseError(
                f"host {host} cannot read {file}; collwise and the working directory must be where all hosts see them"
            )


def _prove(reporting: ModifiedTarget, choices: Mapping[Case, Choice], timeout_seconds: float) -> None:
    """A launch that is not kept. Raises CollwiseError where a call is not run by the algorithm chosen."""
    once = Method(precision=Precision(1, 1))
    with tempfile.TemporaryDirectory(prefix="collwise-") as scratch, Store(Path(scratch, "proof.sqlite")) as store:
        measure(reporting, list(choices), store, method=once, timeout_seconds=timeout_seconds)
    missing = not_run(reporting.errors, choices)
    if missing:
        raise CollwiseError(
            f"libcollwise was to run {missing[0]}, and its report does not show it ({len(missing)} of {len(choices)} "
            "calls)"
        )


def _checks(rules_file: Path, choices: Mapping[Case, Choice], notes: Mapping[Case, str]) -> Iterable[RulesCheck]:
    """One call for each collective and algorithm that rules can ask for."""
    looked_at: set[tuple[str, str]] = set()
    for case, choice in choices.items():
        key = case.collective, choice.algorithm
        if not notes[case] and key not in looked_at:
            looked_at.add(key)
            yield check_rules(rules_file, case.collective, case.procs, case.message_bytes)


def _told(place: ExecutionTarget, way: str, digest: str, environment: Mapping[str, str]) -> ModifiedTarget:
    """The place where MPI gets its decisions in a way; `digest` is theirs."""
    return ModifiedTarget(place, {"told_by": way, "decisions": digest}, environment=environment)


def _way_times(cases: Sequence[Case], launches: Sequence[Sequence[Timing]]) -> dict[Case, WayTime]:
    found = {}
    for place, case in enumerate(cases):
        timings = [launch[place] for launch in launches]
        failed = [timing for timing in timings if not timing.ok]
        if failed:
            raise CollwiseError(f"{case.collective} of {case.message_bytes} bytes: {failed[0].error}")
        seconds = [timing.seconds for timing in timings]
        found[case] = WayTime(float(np.mean(seconds)), half_width(seconds))
    return found
