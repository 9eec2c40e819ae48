"""collwise profile and gain: what other algorithms would save a program, and what a decision table gains."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise.common.errors import UsageError, note
from collwise.common.files import write_text
from collwise.common.program import program_name
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.execution.interposed import LIBRARIES, LibraryOptions, run_interposed
from collwise.simulator.execution.profiles import profile_of_runs, read_profile
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, option, refuse_options
from collwise.studies.cli.output import check_failed, print_json, print_table, sweep_progress, write_figure
from collwise.studies.cli.target_options import TARGET, TargetOptions, target_from
from collwise.studies.cli.types import COLLECTIVES, COUNTS, NEW_FILE, PATH, PLATFORM, SIZES, NamedChoice
from collwise.validation.measurement.gain import measure_gain
from collwise.validation.times.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT
from collwise.validation.times.grid import builtin_cases

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 40


@command(
    "profile --library openmpi --procs 2 --platform gros -- latency --collectives bcast,allreduce",
    context_settings={"allow_interspersed_args": False},
)
def profile(
    library: str | None = option(NamedChoice("MPI library", LIBRARIES)),
    procs: int | None = option(click.IntRange(1)),
    repetitions: int = option(click.IntRange(1), 1),
    report: Sequence[Path] = option(PATH, multiple=True),
    after: Sequence[Path] = option(PATH, multiple=True),
    platform: HostPlatform | None = option(PLATFORM),
    decisions: Path | None = option(PATH),
    baseline: str | None = options.DEFAULT_LIBRARY,
    segments: tuple[int, ...] = option(SIZES, SEGMENTS_TEXT),
    ppn: int | None = option(click.IntRange(1)),
    output: Path | None = option(NEW_FILE),
    rules: Path | None = option(NEW_FILE),
    simulation: options.SimulationOptions = options.simulation(SCHEDULE.name),
    as_json: bool = options.JSON,
    program: str | None = argument(required=False),
    args: Sequence[str] = argument(click.UNPROCESSED, nargs=-1),
) -> int | None:
    """Shows which collectives of a program take its time, and what other algorithms would save: -- PROGRAM [ARGS].

    The program runs with MPI's own algorithms; nothing is changed. Times are those of the mean process within all calls
    of a collective on a communicator, and include its waiting for later processes. With --platform or --decisions, the
    expected saving is the part of this time that the best algorithm would save. With --report FILE --after FILE,
    compares two runs instead: what a table has saved.
    """
    if (program is None) == (not report):
        raise UsageError("give either a program to run, -- PROGRAM [ARGS], or --report FILE")
    if after and not report:
        raise UsageError("--after needs --report, the report of the earlier run")
    if library == "smpi":
        refuse_options(("repetitions",), "--library openmpi or mpich: simulated runs are all alike")
    if rules is not None and platform is None and decisions is None:
        raise UsageError("--rules needs --platform or --decisions, whose times choose")
    if platform is not None and decisions is not None and library != "smpi":
        raise UsageError("give either --platform or --decisions")
    if output is not None and output.suffix not in (".json", ".csv"):
        raise UsageError(f"--output: {output} is neither .json nor .csv")
    if platform is None or decisions is not None:
        refuse_options(("segments", "engine", "jobs", "executor"), "--platform, whose times choose")
    if platform is None and decisions is None:
        refuse_options(("baseline",), "--platform or --decisions")
    if platform is None:
        refuse_options(("ppn", "simgrid"), "--platform")
    # --simgrid is then the version that runs the program.
    timing = simulation if simulation.engine == SMPI.name or library != "smpi" else replace(simulation, simgrid=None)
    timed_on = platform if decisions is None else None

    def profiled(paths: Sequence[Path]) -> collwise.ProfileResult:
        with nullcontext() if timed_on is None else timing.context() as context:
            return collwise.profile(
                paths, timed_on, decisions=decisions, baseline=baseline, segments=segments,
                ppn=None if timed_on is None else ppn, context=context,
            )  # fmt: skip

    if report:
        refuse_options(("library", "procs", "repetitions"), "a program that is run")
        found = profiled(report)
        if after:
            _show_achieved(found, collwise.achieved(report, after), as_json)
        else:
            _show(found, as_json)
        _write(found, report, output, rules)
        return None
    if library is None or procs is None:
        raise UsageError("running a program needs --library and --procs")
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="collwise-") as folder:
        made = [Path(folder, f"run{number}.json") for number in range(1, repetitions + 1)]
        for number, file in enumerate(made, 1):
            code = run_interposed(
                library,
                program,
                args,
                procs=procs,
                options=LibraryOptions(report=str(file)),
                platform=platform if library == "smpi" else None,
                processes_per_node=ppn or platform.default_processes_per_node if platform is not None else 1,
                simgrid=simulation.simgrid,
            )
            if code != 0:
                return code
            if repetitions > 1:
                note(f"{number} of {repetitions} runs")
        found = profiled(made)
        _show(found, as_json)
        if repetitions == 1 and library != "smpi" and not as_json:
            click.echo("By how much runs differ is not known from a single one; --repetitions 3 shows it.")
        _write(found, made, output, rules)
    return code


def _write(found: collwise.ProfileResult, reports: Sequence[Path], output: Path | None, rules: Path | None) -> None:
    if output is not None:
        # --ppn may have changed the processes per node in `found`; the JSON file has those of the runs.
        if output.suffix == ".csv":
            text = found.frame().to_csv(index=False)
        elif len(reports) == 1:
            text = reports[0].read_text("utf-8")
        else:
            text = profile_of_runs([read_profile(one) for one in reports]).text
        write_text(output, text)
        note(f"written: {output}")
    if rules is not None:
        write_text(rules, found.rules())
        note(f"written: {rules}")


def _size(row: Any) -> str:
    return "-" if row.mean_bytes is None or math.isnan(row.mean_bytes) else format_size(round(row.mean_bytes))


def _show(found: collwise.ProfileResult, as_json: bool) -> None:
    frame, expected = found.frame(), found.savings
    if as_json:
        print_json(
            frame.to_dict("records"),
            {
                "processes": found.profile.processes,
                "seconds": found.profile.seconds,
                "collective_seconds": found.profile.collective_seconds,
                "run_seconds": list(found.profile.run_seconds),
                "saving_seconds": found.saving_seconds,
                "saving_half_width_seconds": found.saving_half_width,
                "made_by": expected.made_by if expected else None,
                "left_out": list(expected.left_out) if expected else [],
            },
        )
        return
    several = bool(found.profile.run_seconds)
    heads = ["collective", "communicator", "P", "m", "ran", "calls", "time", *(["runs"] if several else []), "share"]
    heads += ["default", "tuned", "would save"] if expected else []
    shown = [
        [
            row.collective, row.communicator or f"ranks {row.ranks}", row.processes, _size(row),
            row.algorithm or "MPI's own", row.calls,
            format_seconds(row.seconds),
            *([f"{format_seconds(row.fastest_run_seconds)} to {format_seconds(row.slowest_run_seconds)}"]
              if several else ()),
            f"{100 * row.share:.1f} %",
            *((row.default, row.tuned, _saving(row)) if expected else ()),
        ]
        for row in frame.head(_MOST_ROWS).itertuples()
    ]  # fmt: skip
    title = f"Collectives of {found.profile.processes} processes by time"
    if expected:
        of = "" if expected.source == "measured" else "the times of "
        title += f"; expected savings by {of}{expected.made_by}"
    print_table(title, heads, shown, left=2)
    if len(frame) > _MOST_ROWS:
        click.echo(f"The table has the first {_MOST_ROWS} of {len(frame)} rows; --json prints all.")
    for line in expected.left_out if expected else ():
        click.echo(f"no saving known: {line}")
    for line in _summary(found):
        click.echo(line)


def _saving(row: Any) -> str:
    if math.isnan(row.saving_seconds):
        return "-"
    width = row.saving_half_width_seconds
    off = f" +- {format_seconds(width)}" if width > 0 else ""
    return f"{format_seconds(row.saving_seconds)}{off} (x{row.default_seconds / row.tuned_seconds:.2f})"


def _summary(found: collwise.ProfileResult) -> list[str]:
    within, total = found.profile.collective_seconds, found.profile.seconds
    share = f" ({100 * within / total:.1f} %)" if total else ""
    lines = [f"The mean process spent {format_seconds(within)} of {format_seconds(total)} in collectives{share}."]
    if runs := found.profile.run_seconds:
        each = ", ".join(map(format_seconds, runs))
        lines.append(f"Times are medians of {len(runs)} runs, which spent {each} in collectives.")
    if found.savings is not None:
        saving, width = found.saving_seconds, found.saving_half_width
        off = f" +- {format_seconds(width)}" if width > 0 else ""
        part = f", {100 * saving / total:.1f} % of the run" if total else ""
        lines.append(f"A tuned table would save {format_seconds(saving)}{off}{part}.")
        if found.savings.source == "measured":
            if math.isnan(width):
                lines.append("How exact that is, is not known: some of the times have no confidence interval.")
            elif width > saving:
                lines.append("The times do not tell that from no saving: their confidence intervals are wider.")
            lines.append(f"MPI's own collectives are measured beside it by: {program_name()} gain --decisions FILE")
    return lines


def _show_achieved(found: collwise.ProfileResult, frame: pd.DataFrame, as_json: bool) -> None:
    expected: dict[tuple[str, str, int, int | None], float] = {}
    if found.savings is not None:
        for one in found.savings.rows:
            key = (one.row.collective, one.row.where, one.row.processes, one.row.least_bytes)
            expected[key] = expected.get(key, 0.0) + one.saving_seconds
    rows = []
    for row in frame.itertuples():
        least = None if row.least_bytes is None or math.isnan(row.least_bytes) else int(row.least_bytes)
        key = (row.collective, row.communicator, row.processes, least)
        rows.append(
            {
                "collective": row.collective, "communicator": row.communicator, "processes": row.processes,
                "least_bytes": least, "calls": row.calls, "ran": row.ran, "seconds_before": row.seconds_before,
                "seconds_after": row.seconds_after, "achieved_seconds": row.saving_seconds,
                "expected_seconds": expected.get(key), "changed": row.changed,
            }
        )  # fmt: skip
    if as_json:
        print_json(rows)
        return
    shown = [
        (
            row["collective"], row["communicator"], row["processes"],
            "-" if row["least_bytes"] is None else f"from {format_size(row['least_bytes'])}", row["calls"], row["ran"],
            format_seconds(row["seconds_before"]), format_seconds(row["seconds_after"]),
            _signed(row["achieved_seconds"]), _signed(row["expected_seconds"]),
        )
        for row in sorted(rows, key=lambda row: -row["achieved_seconds"])
    ]  # fmt: skip
    heads = ("collective", "communicator", "P", "m", "calls", "ran", "before", "after", "saved", "expected")
    print_table("Time in collectives by the mean process, before and after", heads, shown, left=2)
    for line in _achieved_summary(rows, found.profile.processes):
        click.echo(line)
    if min(frame.attrs.values()) < 2:
        click.echo("A report of a single run has noise that it does not show: compare several runs on both sides.")


def _achieved_summary(rows: Sequence[Mapping[str, Any]], processes: int) -> list[str]:
    """Sentences: what calls that another algorithm ran save, by how much the others differ, and what that means."""

    def saved(changed: bool) -> str:
        mine = [row["achieved_seconds"] * row["processes"] for row in rows if row["changed"] == changed]
        return _signed(sum(mine) / processes)

    kinds = {row["changed"] for row in rows}
    lines = ["No algorithm of these calls changed."]
    if True in kinds:
        lines = [f"Saved by the mean process in calls whose algorithm changed: {saved(True)}."]
    if False in kinds:
        lines.append(f"In calls that ran as before, which no rule changed: {saved(False)}.")
    return lines


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return ("-" if seconds < 0 else "") + format_seconds(abs(seconds))


_COLLECTIVES = "bcast,gather,scatter,reduce,allreduce,allgather,alltoall"


@command("gain --platform gros --collective bcast --procs 4 --library openmpi")
def gain(
    where: TargetOptions = TARGET,
    decisions: Path | None = option(PATH),
    platform: HostPlatform | None = option(PLATFORM),
    collectives: Sequence[str] | None = option(COLLECTIVES, said={"collectives": _COLLECTIVES}),
    procs: tuple[int, ...] = option(COUNTS, required=True),
    sizes: tuple[int, ...] = option(SIZES, "1KiB:256KiB:x4"),
    segments: tuple[int, ...] = option(SIZES, "8KiB:64KiB:x2"),
    launches: int = option(click.IntRange(2), 5),
    repetitions: int = option(click.IntRange(1), 5),
    check: bool = option(default=True),
    figure: Path | None = option(NEW_FILE),
    report: Path | None = option(NEW_FILE),
    store: Path = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Measures Open MPI as it is, by a rules file, and with libcollwise preloaded: the gain of a decision table.

    It runs with Open MPI on this machine, hosts, a batch job's nodes or a test bed. The program calls MPI's own
    collectives; the three ways are launched in turn. The report of libcollwise proves that the chosen algorithms ran,
    and the messages of Open MPI prove that it follows the rules.

    In a Slurm job of salloc --exclusive --nodes 2 --ntasks-per-node 32, 64 processes are bound and measured by
    --launcher srun --ppn 32 --mpirun-args "--cpu-bind=cores" --procs 64 --no-check.
    """
    from collwise.studies.cli.deciding import Asked, choosable, simulated_times
    from collwise.studies.reports.gain import COLUMNS, cells, check_lines, gains_markdown, records, summary_lines
    from collwise.validation.times.files import AllTimes

    if where.library not in (None, "openmpi"):
        raise UsageError(f"--library {where.library}: rules files are Open MPI's; valid: openmpi")
    if (decisions is None) == (platform is None):
        raise UsageError("name one of --decisions and --platform")
    if platform is None:
        refuse_options(("segments",), "--platform")
    if figure is not None and len(procs) > 1:
        raise UsageError("--figure: one number of processes, please: its map is of collectives and sizes")
    target = target_from(where)
    for count in procs:
        target.processes_per_node(count)
    with Store(store) as opened:
        if decisions is not None:
            chosen = collwise.Decisions.load(decisions)
        else:
            context = SimulationContext(opened, progress=sweep_progress)
            assert platform is not None
            algorithms = choosable(collectives or _COLLECTIVES.split(","), None, by_node=False, guidelines=False)
            margins = dict.fromkeys(algorithms, TOLERANCE_PERCENT / 100)
            asked = Asked(algorithms, None, procs, sizes, segments, 1, margins)
            times = AllTimes.of(simulated_times(asked, platform, context))
            chosen = collwise.select(times, one_choice=False)
            check_failed(chosen.failed)
        tables = {one.collective: one for one in chosen.tables}
        if missing := [name for name in collectives or () if name not in tables]:
            raise UsageError(f"{decisions}: no decisions for {missing[0]}; there are some for {', '.join(tables)}")
        tables = {name: tables[name] for name in collectives or tables}
        cases = [
            case
            for name in tables
            for count in procs
            for case in builtin_cases(name, [count], sizes, target.processes_per_node(count))
        ]
        found = measure_gain(
            target, tables, cases, opened, launches=launches, repetitions=repetitions, check=check,
            on_launch=lambda done, of: note(f"{done} of {of} launches"),
        )  # fmt: skip
    if figure is not None:
        from collwise.studies.figures.gain import gain_figure

        write_figure(gain_figure(found.rows, f"Gain over Open MPI's default, {target.name}, P = {procs[0]}"), figure)
    if report is not None:
        write_text(report, gains_markdown(found))
    if as_json:
        print_json(records(found.rows), {"checks": check_lines(found)})
    else:
        title = f"{target.name}, {target.installation.label}: means ± half-widths; gains in brackets are within them"
        print_table(title, COLUMNS, [cells(row) for row in found.rows])
        for line in (*summary_lines(found), *check_lines(found)):
            click.echo(line)
