"""Whole programs: `run_program`, `profile`, `application` and `gain`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collwise import arguments
from collwise.arguments import DecisionsLike, Names, NewFile, Numbers, Paths, PlatformLike
from collwise.common.errors import UsageError, note, warn
from collwise.common.files import write_text
from collwise.common.units import counted
from collwise.platform_changes import Changes, changes_of
from collwise.platforms import HostPlatform
from collwise.platforms.changes import changed
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.execution.interposed import LibraryOptions, run_interposed
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.execution.profiles import Profile, differing_calls, profile_of_runs, read_profile
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.validation.libraries.baselines import baseline as baseline_of
from collwise.validation.measurement import applications
from collwise.validation.measurement.applications import ApplicationRow
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.defaults import SEGMENTS_TEXT
from collwise.validation.times.grid import Grid, with_bounds

if TYPE_CHECKING:
    import pandas as pd

    from collwise.models.single_messages import Thresholds
    from collwise.validation.measurement.gain import MeasuredGain
    from collwise.validation.whatif.workload import Achieved, Saving, Savings


PRINTED = "-"
"""The value of --report that prints the report instead of writing a file."""


def run_program(
    program: str,
    /,
    *args: str,
    library: str,
    procs: int,
    platform: PlatformLike | None = None,
    ppn: int | None = None,
    simgrid: str | None = None,
    table: str | Path | None = None,
    algorithms: str = "",
    thresholds: Thresholds | None = None,
    report: NewFile | None = None,
    repetitions: int = 1,
    plain: bool = False,
) -> int:
    """Runs an MPI program with our algorithms.

    --table or --algorithms says for which calls our algorithms run. The program is not modified; for smpi, it must have
    been built by smpicc. collwise has the programs 'latency', 'asp', 'matmul' and 'training'. The report lists the
    calls and the time of each algorithm by message size; 'program profile' reads it as JSON. With --repetitions, the
    report has the median and range of several runs; a wide range shows that runs were disturbed. The exit code is the
    program's, or 1 if the program never calls libcollwise.

    Returns the exit code.

    >>> import collwise
    >>> collwise.run_program("latency", library="openmpi", procs=2, report="report.json")
    0
    """
    options = LibraryOptions(None if table is None else Path(table), algorithms)
    if plain and (options != LibraryOptions() or thresholds is not None or report is not None):
        raise UsageError("--plain runs without libcollwise; leave out --table, --algorithms, --thresholds and --report")
    if library != "smpi" and (platform is not None or ppn is not None or simgrid is not None):
        raise UsageError("--platform, --ppn and --simgrid are for --library smpi")
    if repetitions > 1 and (library == "smpi" or report is None or Path(report).suffix != ".json"):
        raise UsageError(
            "--repetitions is for --library openmpi or mpich with --report FILE.json, which gets the runs' medians"
        )
    options.check()
    where = None if platform is None else arguments.platform(platform)

    def ran(destination: str) -> int:
        return run_interposed(
            library,
            program,
            args,
            procs=procs,
            options=replace(options, algorithms=with_bounds(algorithms, thresholds), report=destination),
            platform=where,
            processes_per_node=ppn or where.default_processes_per_node if where is not None else 1,
            simgrid=simgrid,
            plain=plain,
        )

    if repetitions == 1:
        return ran("" if report is None else "1" if str(report) == PRINTED else str(Path(report).absolute()))
    with tempfile.TemporaryDirectory(prefix="collwise-") as folder:
        files = [Path(folder, f"run{number}.json") for number in range(1, repetitions + 1)]
        for number, file in enumerate(files, 1):
            if code := ran(str(file)):
                return code
            note(f"{number} of {repetitions} runs")
        assert report is not None
        write_text(Path(report), profile_of_runs([read_profile(path) for path in files]).text)
    return 0


@dataclass(frozen=True, repr=False)
class ProfileResult:
    """The answer of `profile`: the profile of a run and, if they were requested, the savings in its calls.

    `changed` holds the savings on the changed platform, if a change was requested, and `after` is the profile of a
    later run, if there is one. If `simulated` is true, the profile's times are not those of the run, but simulated for
    another number of processes.
    """

    profile: Profile
    savings: Savings | None = None
    changed: Savings | None = None
    after: Profile | None = None
    simulated: bool = False

    def rows(self) -> list[dict[str, Any]]:
        """A row per collective, communicator and size; the rows with the most time come first.

        The columns are those of the report (docs/interposing.md), and the `share` of the run's time. If savings were
        requested, there are also the algorithms `default` and `tuned`, `default_seconds` and `tuned_seconds` of one
        call, and `saving_seconds` of all calls with the half-width of the confidence interval; unknown values are nan.
        A change of the platform adds `tuned_changed`, `default_changed_seconds` and `tuned_changed_seconds`. A later
        run adds `ran_after` (the algorithm that ran), `seconds_after` (the later run's time in these calls), and
        `achieved_seconds` (by how much this time is shorter).
        """
        known = {} if self.savings is None else {saving.row: saving for saving in self.savings.rows}
        changed = {before.row: after for before, after in self.pairs}
        later = {achieved.row: achieved for achieved in self.achieved}
        rows = []
        for row in sorted(self.profile.rows, key=lambda row: -row.seconds * row.processes):
            spent = row.seconds * row.processes / self.profile.processes
            found = {**vars(row), "share": spent / self.profile.seconds if self.profile.seconds else 0.0}
            if self.savings is not None:
                found |= _columns(
                    known.get(row), default="default", tuned="tuned", default_seconds="default_seconds",
                    tuned_seconds="tuned_seconds", saving_seconds="saving_seconds",
                    saving_half_width_seconds="saving_half_width",
                )  # fmt: skip
            if self.changed is not None:
                found |= _columns(
                    changed.get(row), tuned_changed="tuned", default_changed_seconds="default_seconds",
                    tuned_changed_seconds="tuned_seconds",
                )  # fmt: skip
            if self.after is not None:
                found |= _columns(
                    later.get(row), ran_after="ran", seconds_after="seconds_after", achieved_seconds="saving_seconds"
                )
            rows.append(found)
        return rows

    def frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    @property
    def pairs(self) -> Iterator[tuple[Saving, Saving]]:
        """The savings of each row before and after the change."""
        from collwise.validation.whatif.workload import Calls

        if self.savings is not None and self.changed is not None:
            changed = {Calls(saving.row).anywhere: saving for saving in self.changed.rows}
            for saving in self.savings.rows:
                if (row := Calls(saving.row).anywhere) in changed:
                    yield saving, changed[row]

    @cached_property
    def achieved(self) -> tuple[Achieved, ...]:
        """The calls that both runs made, with what the later run saved; empty if there is no later run."""
        from collwise.validation.whatif.workload import achieved_between

        return () if self.after is None else achieved_between(self.profile, self.after)

    def totals(self) -> dict[str, float]:
        """Seconds of all calls with known times: with default and with tuned choices, before and after a change."""
        pairs = [*self.pairs] if self.changed else [(saving,) for saving in self.savings.rows] if self.savings else []
        return {
            f"{which}_{when}": float(sum(pair[at].row.calls * getattr(pair[at], f"{which}_seconds") for pair in pairs))
            for at, when in enumerate(("before", "after") if self.changed else ("before",))
            for which in ("default", "tuned")
        }

    @property
    def saving_seconds(self) -> float:
        """The seconds that a tuned table would save, as a mean over processes; nan if savings were not requested."""
        return float("nan") if self.savings is None else self.savings.saving_seconds(self.profile.processes)

    @property
    def saving_half_width(self) -> float:
        """The half-width of the savings' confidence interval, from the intervals of measured times; nan if unknown."""
        return float("nan") if self.savings is None else self.savings.saving_half_width(self.profile.processes)

    def rules(self) -> str:
        """A table for libcollwise with the tuned choices. Raises UsageError if savings were not requested."""
        from collwise.validation.whatif.workload import rules_of

        if self.savings is None:
            raise UsageError("rules need estimated savings; give --platform or --decisions")
        return rules_of(self.savings)

    def save(self, path: str | Path) -> None:
        """Writes the rules. Raises UsageError if savings were not requested."""
        write_text(Path(path), self.rules())

    def __repr__(self) -> str:
        return f"<ProfileResult {len(self.profile.rows)} rows, {self.profile.collective_seconds:.3g} s in collectives>"


def _columns(one: Saving | Achieved | None, **attributes: str) -> dict[str, Any]:
    """The columns' values, which are attributes of `one`: choices by their labels, unknown values as nan or '-'."""
    if one is None:
        return {name: math.nan if "seconds" in name else "-" for name in attributes}
    found = {name: getattr(one, attribute) for name, attribute in attributes.items()}
    return {name: getattr(value, "label", value) for name, value in found.items()}


def profile(
    *reports: str | Path,
    after: Paths = (),
    platform: PlatformLike | None = None,
    changes: Changes = (),
    decisions: DecisionsLike | None = None,
    baseline: str | None = None,
    segments: Numbers = SEGMENTS_TEXT,
    procs: int | None = None,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> ProfileResult:
    """Shows a program's time in collectives, and what could be saved.

    REPORTS are JSON reports of libcollwise; of several runs, the medians are used. Times are the seconds in
    all calls of a collective on a communicator, as means over processes, including the wait for late processes. The
    times of algorithms are simulated on --platform, or come from --decisions. The expected saving is the part of the
    time that the best algorithm would save. -o writes a table for 'program run --table'. With --change, the times of
    the calls on the changed platform are shown as well; there, untuned calls run the same algorithms as before the
    change. With --procs, all times are simulated, as if the same calls of all processes were made by more or fewer
    processes. With --after, reports of later runs with a table show what these runs saved.

    Returns a ProfileResult. Warns if runs made different calls.

    >>> import collwise
    >>> row = '{"collective": "bcast", "communicator": "MPI_COMM_WORLD", "ranks": "0-15", "processes": 16, '
    >>> row += '"processes_per_node": 1, "mpis_own": "no rule", "min_bytes": 1048576, "max_bytes": 2097151, '
    >>> row += '"mean_bytes": 1048576, "calls": 100, "seconds": 0.4, "shortest_seconds": 0.3, "longest_seconds": 0.5}'
    >>> text = '{"collwise_report": 1, "processes": 16, "seconds": 2.0, "rows": [' + row + "]}"
    >>> _ = open("report.json", "w").write(text)
    >>> found = collwise.profile("report.json", platform="gros", changes="bandwidth=x2")
    >>> 0 < found.saving_seconds < 0.4
    True
    >>> found.totals()["tuned_after"] < found.totals()["default_after"] < found.totals()["default_before"]
    True
    """
    from collwise.validation.whatif.workload import BEST_BEFORE, Calls, Workload, savings

    if platform is not None and decisions is not None:
        raise UsageError("give either --platform or --decisions")
    if platform is None and (changes or ppn is not None or procs is not None):
        raise UsageError(f"{'--change' if changes else '--procs' if procs else '--ppn'} works only with --platform")
    if procs is not None and after:
        raise UsageError("--after compares measured times, which are not known with --procs")
    if platform is None and decisions is None and baseline is not None:
        raise UsageError("--baseline needs --platform or --decisions")
    read, library = _profile_of(reports), baseline_of(baseline)
    later = [after] if isinstance(after, str | Path) else list(after)
    second = _profile_of(later) if later else None
    if second is not None:
        _warn_of_other_calls(read, second, f"{_names(reports)} and {_names(later)}")
    if procs is not None and platform is not None:
        ppn = ppn or arguments.platform(platform).default_processes_per_node
    if ppn is not None:
        read = replace(read, rows=tuple(replace(row, processes_per_node=ppn) for row in read.rows))
    found, called = ProfileResult(read, after=second), Workload.of(read.rows)
    if procs is not None:
        called = called.with_processes(read.processes, procs)
    if decisions is not None:
        tables = arguments.decisions(decisions).tables
        return replace(found, savings=savings(called, tables, lambda calls, _: calls.untuned(library)))
    if platform is None:
        return found
    where, cut = arguments.platform(platform), arguments.sizes(segments)
    new = changed(where, changes_of(changes))
    if changes and not called.calls:
        raise UsageError(f"none of the report's calls can be timed: {'; '.join(called.left_out) or 'it has no calls'}")
    warn_of_free_messages(where)
    with arguments.opened(context, SCHEDULE.name) as simulations:
        times = called.simulated(where, simulations, library, cut)
        before = savings(called, times, lambda calls, best: calls.untuned(library) or (best, BEST_BEFORE))
        if procs is not None:
            before = before.as_simulated()
            called = Workload.of(saving.row for saving in before.rows)
            found = ProfileResult(Profile(procs, 0.0, tuple(calls.row for calls in called.calls)), simulated=True)
        found = replace(found, savings=replace(before, made_by=f"{where.title}, {before.made_by}"))
        if not changes:
            return found
        then = called if new.processes_per_node is None else called.placed(new.processes_per_node)
        defaults = {Calls(saving.row).anywhere: (saving.default, saving.default_is) for saving in before.rows}
        times = then.simulated(new.platform, simulations, library, cut)
        return replace(found, changed=savings(then, times, lambda calls, _: defaults.get(calls.anywhere)))


def _profile_of(reports: Sequence[str | Path]) -> Profile:
    profiles = [read_profile(Path(report)) for report in reports]
    whole = profile_of_runs(profiles)
    differing, kinds = max(differing_calls(whole, item) for item in profiles)
    if differing:
        of = counted(kinds, "kind")
        warn(f"the runs of {_names(reports)} differ in how often they made {differing} of {of} of calls")
    return whole


def _warn_of_other_calls(first: Profile, second: Profile, what: str) -> None:
    differing, kinds = differing_calls(first, second)
    if differing or first.processes != second.processes:
        warn(
            f"{what} differ in how often they made {differing} of {counted(kinds, 'kind')} of calls (collective, "
            "communicator, size): probably the programs, inputs or process counts differ, and savings mean nothing"
        )


def _names(reports: Sequence[str | Path]) -> str:
    return ", ".join(map(str, reports))


@dataclass(frozen=True, repr=False)
class ApplicationTimes:
    """The answer of `application`: a row for each process count and choice of collectives, and the platform."""

    rows: tuple[ApplicationRow, ...]
    platform: HostPlatform
    words: tuple[str, ...]
    """The application and its arguments."""

    def frame(self) -> pd.DataFrame:
        """A row for each execution: `seconds`, seconds within collectives, their shares, and `speedup`.

        `mean_seconds` and `max_seconds` are the mean and the maximum over processes of the seconds within collectives.
        `speedup` is relative to the first choice. If an execution failed, its times are nan, and `error` says why.
        """
        import pandas as pd

        return pd.DataFrame(
            [asdict(row) | {"mean_share": row.mean_share, "max_share": row.max_share} for row in self.rows]
        )


def application(
    program: str,
    /,
    platform: PlatformLike,
    procs: Numbers,
    collectives: Names = applications.COLLECTIVES,
    *,
    settings: str | Mapping[str, int] = "",
    rate: float | None = None,
    segments: Numbers | None = None,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> ApplicationTimes:
    """Simulates an application under several choices of collectives.

    Computation is modelled. asp broadcasts the rows of a matrix in turn; matmul is a master-worker matrix
    multiplication; training is an allreduce of AlexNet's gradients. The choices ompi, mpich, mvapich2 and impi are
    SMPI's selectors. A name with a version, such as openmpi-4.1, stands for our algorithms, chosen as this untuned
    library would choose. hierarchical stands for the fastest of our algorithms for each call; flat stands for the
    fastest one that is not in the group by-node. The speed-up is relative to the first choice. Executions in the store
    are not repeated. The exit code is 1 if an execution failed.

    Returns ApplicationTimes.

    >>> import collwise
    >>> times = collwise.application("asp", "gros", procs=4, collectives="ompi,mpich", settings={"iterations": 2})
    >>> bool((times.frame().mean_seconds <= times.frame().max_seconds).all())
    True
    """
    where, names = arguments.platform(platform), arguments.names(collectives)
    chosen = applications.application_of(program)
    if not names:
        raise UsageError(f"--collectives: name at least one; valid: {', '.join(applications.NAMES)}, or a file")
    tuned = {applications.FLAT, applications.HIERARCHICAL}
    if segments is not None and not tuned.intersection(names):
        raise UsageError(f"--segments needs {' or '.join(sorted(tuned))} among the --collectives")
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(f"--rate: {rate} is not a rate; write operations per second, above 0, for example 2e10")
    given = _settings(settings) if isinstance(settings, str) else settings
    with arguments.opened(context) as simulations:
        rows = applications.compare_collectives(
            where,
            chosen,
            arguments.counts(procs),
            ppn or where.default_processes_per_node,
            names,
            simulations,
            settings=given,
            rate=rate,
            segments=arguments.sizes(segments or applications.SEGMENTS),
        )
    return ApplicationTimes(tuple(rows), where, (program, *applications.arguments_of(chosen, given, rate)))


def _settings(text: str) -> dict[str, int]:
    found = {}
    for part in arguments.names(text):
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise UsageError(f"--set: malformed '{part}': write NAME=NUMBER, for example iterations=48")
        found[name] = int(value)
    return found


def gain(
    decisions: DecisionsLike,
    /,
    procs: Numbers,
    sizes: Numbers = "1KiB:256KiB:x4",
    collective: Names | None = None,
    *,
    target: str | ExecutionTarget = "openmpi",
    launches: int = 5,
    repetitions: int = 5,
    check: bool = True,
    store: str | Path | None = None,
) -> MeasuredGain:
    """Measures what `decisions` gain over untuned Open MPI.

    It times calls of collectives under Open MPI in three settings, which are launched in turn: untuned, with a rules
    file, and with libcollwise preloaded. It runs on this machine, hosts, a batch job's nodes or a test bed. The report
    of libcollwise proves that the chosen algorithms ran; the messages that Open MPI sends prove that Open MPI follows
    the rules.

    In a Slurm job of salloc --exclusive --nodes 2 --ntasks-per-node 32, these options bind and measure 64 processes:
    --launcher srun --ppn 32 --mpirun-args "--cpu-bind=cores" --procs 64 --no-check.

    Returns the MeasuredGain of each call.

    >>> import collwise
    >>> times = collwise.simulate("gros", "bcast", procs=2, sizes="1KiB", algorithms="linear,chain")
    >>> found = collwise.gain(collwise.select(times), procs=2, sizes="1KiB", launches=2, repetitions=1, check=False)
    >>> [row.collective for row in found.rows]
    ['bcast']
    """
    from collwise.validation.measurement.gain import measure_gain

    tables = {table.collective: table for table in arguments.decisions(decisions).tables}
    names = [*tables] if collective is None else arguments.collectives(collective)
    if missing := [name for name in names if name not in tables]:
        raise UsageError(f"{decisions}: no decisions for {missing[0]}; there are some for {', '.join(tables)}")
    where = LocalMachine(target) if isinstance(target, str) else target
    asked = arguments.sizes(sizes)
    cases = [
        case
        for name in names
        for count in arguments.counts(procs)
        for case in Grid(name, (LIBRARY_DECIDES,), (count,), asked, where.processes_per_node(count)).cases()
    ]
    with Store(arguments.store_path(store)) as opened:
        return measure_gain(
            where,
            {name: tables[name] for name in names},
            cases,
            opened,
            launches=launches,
            repetitions=repetitions,
            check=check,
            on_launch=lambda done, of: note(f"{done} of {of} launches"),
        )
