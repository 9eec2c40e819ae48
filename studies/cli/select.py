"""collwise select and export: decision tables of the algorithm for each P and m, and rules that MPI libraries read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import read_text, write_text
from collwise.common.program import program_name
from collwise.common.units import counted, format_size
from collwise.platforms import HostPlatform
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import argument, command, flag, group, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.cli.types import COUNTS, NAMES, NEW_FILE, PATH, SIZES
from collwise.validation.guidelines.repair import rules_of
from collwise.validation.libraries.formats import FORMATS, how_to_use
from collwise.validation.libraries.left_to_library import beats_own, summary_over_untuned
from collwise.validation.libraries.mpich_check import check_selection, telling_calls
from collwise.validation.libraries.mpich_file import VERSIONS as MPICH_VERSIONS
from collwise.validation.libraries.openmpi_check import check_rules
from collwise.validation.libraries.pgmpi import parse_profile
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.libraries.variables import ucc_summary
from collwise.validation.select.consumers import (
    ALL_CONSUMERS,
    COLLWISE,
    OPENMPI,
    OPENMPI_VERSIONS,
    openmpi_consumer,
    openmpi_version,
)
from collwise.validation.select.decisions import (
    DecisionTable,
    decisions_document,
    loss_of,
    spans,
    undecided_points,
)
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.defaults import AGREEMENT, SEGMENTS_TEXT, TIE_LIMIT, TOLERANCE_PERCENT

_TIMES = types.NamedChoice("source of times", ("predicted", "simulated", "measured"))
_MOST_ROWS = 200


@command("select --collective bcast --parameters mine.parameters.toml --procs 4,8 --for openmpi-4.1 -o bcast.json")
def select(
    collectives: Sequence[str] = options.COLLECTIVES,
    by: str = option(_TIMES, "predicted"),
    parameters: Path | None = option(PATH),
    platform: HostPlatform | types.Unknown | None = options.placed_platform(option(types.PLATFORM_OR_NAME)),
    procs: tuple[int, ...] | None = option(COUNTS),
    how: dict[str, Any] = group(
        dict,
        sizes=option(SIZES),
        exact=flag(),
        consumer=option(types.NamedChoice("decision consumer", ALL_CONSUMERS)),
        one_choice=option(default=None),
        tolerance=option(float, TOLERANCE_PERCENT),
        segments=option(SIZES, said={"segments_text": SEGMENTS_TEXT}),
        name=options.MODEL,
        by_node=flag(),
        guidelines=flag(),
        configuration=option(NAMES),
        fill=option(types.NamedChoice("source that fills gaps", ("simulated", "predicted"))),
        agreement=option(float, AGREEMENT * 100),
        tie_limit=option(float, TIE_LIMIT * 100),
    ),
    output: Path | None = option(NEW_FILE),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Makes decision tables: the algorithm to run for each P, and the message size from which to run it.

    A table has the fewest rows in which no choice is slower than the best one by more than the --tolerance at any of
    --sizes. By predicted times a row changes between two sizes at the byte from which on the later choice is faster,
    and the command says what is lost between the sizes; with --exact nothing beyond the tolerance is, and with
    --tolerance 0 looking up then decides as evaluating the formulas would. Measured choices whose confidence interval
    overlaps the best one's are as good as it. An algorithm that needs a power of two or an even number of processes
    holds only for the P where it was decided; from P + 1 on the best one that always runs follows it.
    """
    from collwise.studies.cli.deciding import times_by

    if by == "predicted" and parameters is None:
        raise click.UsageError("--by predicted needs --parameters FILE (make one: collwise fit)")
    if by == "simulated" and platform is None:
        raise click.UsageError("--by simulated needs --platform")
    if by == "simulated" and procs is None:
        raise click.UsageError("--by simulated needs --procs, for example --procs 8,16,32")
    if by != "predicted" and how["exact"]:
        raise click.UsageError(f"--exact is for --by predicted; {by} times are known at single sizes only")
    if by == "predicted" and how["by_node"]:
        raise click.UsageError("--by-node is for --by simulated: algorithms by node are chosen by simulated times only")
    if by == "predicted" and how["guidelines"]:
        raise click.UsageError("--guidelines is for --by simulated and measured: no model predicts mock-ups")
    if by != "predicted" and how["fill"] != "predicted":
        declare.refuse_options(("parameters", "name"), "--by predicted, or --fill predicted")
    if by != "simulated" and how["fill"] != "simulated":
        declare.refuse_options(options.SIMULATING, "--by simulated, or --fill simulated")
    if by != "measured":
        declare.refuse_options(("configuration", "fill", "agreement", "tie_limit"), "--by measured")
    elif how["fill"] == "predicted" and parameters is None:
        raise click.UsageError("--fill predicted needs --parameters FILE (make one: collwise fit)")
    if isinstance(platform, types.Unknown) and (by != "measured" or how["fill"] == "simulated"):
        raise platform.problem
    if by == "measured":
        simulation.check_store()
    # Predicted times need the progress only.
    with (options.SimulationOptions(Path(":memory:")) if by == "predicted" else simulation).context() as context:
        times = times_by(by, collectives, parameters, platform, procs, ppn, how, context)
        chosen = {name: how[name] for name in ("consumer", "one_choice", "tolerance", "exact", "tie_limit")}
        decisions = collwise.select({one.collective: one for one in times}, **chosen)
    if by == "simulated" and how["by_node"]:
        note("forms of algorithms that use memory which the processes of a node share are not simulated, and no choice")
    if output is not None:
        decisions.save(output)
    if as_json:
        rows = [
            {"collective": table.collective, "procs": p, "from_bytes": start, **vars(choice)}
            for table in decisions.tables
            for p, row in table.rules.items()
            for start, choice in row
        ]
        print_json(rows, {"tables": decisions_document(decisions.tables)})
    else:
        for decided in decisions.tables:
            _print_decisions(decided, how["tolerance"], openmpi_version(how["consumer"] or ""))
        if output is not None:
            click.echo(f"written: {output}")
    check_failed(decisions.failed)


def _print_decisions(decisions: DecisionTable, tolerance: float, version: str | None) -> None:
    """Prints a table, and by its times the loss of its choices or, for a version of Open MPI, of its rules."""

    rows: list[tuple[object, ...]] = []
    for p, row in decisions.rules.items():
        for start, end, choice in spans(row):
            segment = format_size(choice.segment_bytes) if choice.segment_bytes else "-"
            star = " *" if decisions.rests_on_gaps(p, start, end) else ""
            rows.append((p, format_size(start), choice.algorithm + star, segment))
        if not row:
            rows.append((p, "-", "nothing decided", "-"))
    title = f"{decisions.collective} on {decisions.platform} by {decisions.made_by}"
    columns = ["from P", "from m", "algorithm", "segment"]
    print_table(title, columns, rows[:_MOST_ROWS], left=0, keys=2)
    left_out = f", of which these are the first {_MOST_ROWS}; --json prints all, -o FILE keeps them"
    click.echo(f"{counted(len(rows), 'row')}, tolerance {tolerance:g} %{left_out if len(rows) > _MOST_ROWS else ''}")
    decided = any(decisions.rules.values())
    said = for_consumer([decisions], f"{OPENMPI}-{version}")[0][0] if version is not None and decided else decisions
    loss = loss_of(said)
    if loss.points:
        mean, worst = f"{loss.mean * 100:.2f} %", f"{loss.worst * 100:.1f} %"
        what, best = "choices", "the best"
        if version is not None:
            what, best = f"rules for Open MPI {version}", "the best that they can name"
        click.echo(f"by these times the {what} are {mean} slower than {best} on average, at most {worst}")
    if version is not None and (line := summary_over_untuned(said, version)):
        click.echo(line)
    undecided, points = undecided_points(decisions)
    if points:
        click.echo(_undecided_text(undecided, points))
        if decisions.source == "measured":
            click.echo(_own_text(decisions))
    if decisions.between is not None:
        click.echo(f"between the sizes, {decisions.between}")
    if any(str(row[2]).endswith(" *") for row in rows) and decisions.times is not None:
        click.echo(f"* at some of its sizes by {decisions.times.filled_by}, where the choice was not measured")


def _own_text(decisions: DecisionTable) -> str:
    """A sentence on measured choices against MPI's own collective."""
    known = decisions.times
    if known is None or LIBRARY_DECIDES not in known.grid.timed:
        return (
            "MPI's own collective is not among these times: measure it with --algorithms library, or the table with "
            f"'{program_name()} program gain'"
        )
    chosen = {point: decisions.choice_at(*point) for point in known.grid.points}
    own = {point: known.seconds_of(LIBRARY_DECIDES, *point) for point in chosen}
    both = {point: one for point, one in chosen.items() if one and not math.isnan(own[point])}
    faster = sum(beats_own(known, one, *point) for point, one in both.items())
    left = "" if faster == len(both) else "; rules for Open MPI and libcollwise leave the others to MPI"
    return f"faster than MPI's own collective beyond the intervals at {faster} of {counted(len(both), 'point')}{left}"


def _undecided_text(undecided: int, points: int) -> str:
    """A sentence on how far confidence intervals tell the best measured choice."""
    if not undecided:
        return f"at {'the only point' if points == 1 else f'all {points} points'} the intervals tell the best choice"
    return (
        f"undecided at {undecided} of {counted(points, 'point')}: the interval of the fastest choice overlaps another "
        "one's; more --launches of measure make intervals narrower"
    )


# Few enough processes for one machine, and the most that it can still hold where rules begin with more of them; one
# short and one long message, or one where counting messages takes long.
_PROCS = 8
_MOST_PROCS = 64
_CHECKS_AT_ONCE = 2
_SIZES = {
    "bcast": (16384, 262144),
    "gather": (16384, 131072),
    "allreduce": (65536,),
    "alltoall": (65536,),
    "barrier": (0,),
}
_OTHER_SIZES = (1024, 65536)
_MOST_BYTES = 32 * 2**20
"""The first message of rules that begin with longer ones than these is checked if P of them have at most so much."""


@command("export bcast.json --openmpi-version 4.1 -o mine.rules")
def export(
    decisions: Sequence[Path] = argument(PATH, nargs=-1, required=True),
    format_name: str = option(
        types.NamedChoice("format", FORMATS),
        OPENMPI,
        said={"formats": "; ".join((f"{name}: {known.title}" for name, known in FORMATS.items()))},
    ),
    openmpi_version: str = option(default="4.1", said={"openmpi_versions": OPENMPI_VERSIONS}),
    mpich_version: str = option(types.NamedChoice("version", MPICH_VERSIONS), MPICH_VERSIONS[0]),
    procs: int | None = option(click.IntRange(1)),
    output: Path = option(NEW_FILE, required=True),
    check: bool = flag(),
) -> None:
    """Writes rules that an MPI library reads from DECISIONS files (from 'collwise select'; one table a collective).

    Where a format cannot express a choice, the best one that it can express is written, and a note says what it costs.
    Profiles of PGMPITuneLib (.prf) become a table for libcollwise, with --format collwise.
    """
    if any(file.suffix == ".prf" for file in decisions):
        _export_profiles(decisions, format_name, output)
        return

    if check and format_name not in (OPENMPI, "mpich"):
        raise click.UsageError("--check is for --format openmpi and mpich")
    if format_name != OPENMPI:
        declare.refuse_options(("openmpi_version",), f"--format {OPENMPI}")
    if format_name != "mpich":
        declare.refuse_options(("mpich_version",), "--format mpich")
    if not FORMATS[format_name].one_procs:
        declare.refuse_options(("procs",), f"--format {', '.join(name for name in FORMATS if FORMATS[name].one_procs)}")
    tables = collwise.Decisions.load(*decisions)
    text = collwise.export(
        tables,
        output,
        format_name,
        openmpi_version=openmpi_version,
        mpich_version=mpich_version,
        procs=procs,
    )
    known = FORMATS[format_name]
    version = f" {openmpi_version}" if format_name == OPENMPI else ""
    collectives = arguments.several([one.collective for one in tables.tables])
    what = f"rules for Open MPI{version}" if format_name == OPENMPI else f"{known.title} for {collectives}"
    click.echo(f"{output}: {what}; use them with")
    click.echo(f"  {how_to_use(format_name, output)}")
    if known.consumer.startswith(OPENMPI):
        click.echo(
            "On InfiniBand untuned Open MPI may run hcoll, which this leaves out: measure both (docs/exports.md)"
        )
    for table in tables.tables:
        click.echo(table.between_procs)
        if table.between is not None:
            click.echo(f"{table.collective}, slower than the best between the sizes: {table.between}")
    if format_name == OPENMPI:
        for said in for_consumer(tables.tables, openmpi_consumer(openmpi_version))[0]:
            if line := summary_over_untuned(said, openmpi_version):
                click.echo(line)
    if format_name == "ucc":
        click.echo(ucc_summary(tables.tables, text))
    if check:
        _check(format_name, output, tables.tables)


def _export_profiles(files: Sequence[Path], format_name: str, output: Path) -> None:
    """Writes the table of profiles of PGMPITuneLib. Raises UsageError for other files beside them."""

    other = next((file for file in files if file.suffix != ".prf"), None)
    if other is not None:
        raise UsageError(f"{other}: not a profile of PGMPITuneLib as the others are; valid beside them: .prf")
    if format_name != COLLWISE:
        raise UsageError(f"--format {format_name}: profiles of PGMPITuneLib name mock-ups; valid: {COLLWISE}")
    text = rules_of({str(file): parse_profile(read_text(file), str(file)) for file in files})
    write_text(output, text)
    click.echo(f"{output}: a table for libcollwise; use it with")
    click.echo(f"  {how_to_use(COLLWISE, output)}")


def _check(format_name: str, output: Path, tables: Sequence[DecisionTable]) -> None:
    wrong = 0
    for line, ok in check_all(output, tables) if format_name == OPENMPI else _check_mpich(output, tables):
        click.echo(line)
        wrong += not ok
    if wrong:
        raise CollwiseError(f"{wrong} of the checks show no call that runs as the rules say")


def _check_mpich(file: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool]]:
    """Checks calls for each table, if possible such that MPICH by itself would run otherwise; as `check_all` does."""

    calls = telling_calls(file.read_text(encoding="utf-8"), tables)
    if not calls:
        yield "no rule applies to 8 processes or fewer: nothing was checked", False
    for checked in check_selection(file, calls):
        yield checked.summary, checked.matches


def check_all(rules: Path, tables: Sequence[DecisionTable]) -> Iterator[tuple[str, bool]]:
    """Checks a short and a long message for each table: a line on what ran, and whether the rules ask for it.

    Where rules begin with longer messages, their first one is checked. A table whose rules begin with more processes
    than this machine can hold, or with too long messages, is not checked, which is no success.

    The calls start at once and run beside what the caller does before it takes the lines. Taking one raises UsageError
    or CollwiseError when Open MPI is missing or does not run.
    """
    from concurrent.futures import ThreadPoolExecutor

    calls, unchecked = [], []
    for table in tables:
        procs = max(_PROCS, min(table.rules))
        sizes, most = _SIZES.get(table.collective, _OTHER_SIZES), _MOST_BYTES // procs
        first = min((start for start, _ in table.row(procs)), default=None)
        if procs > _MOST_PROCS:
            unchecked.append(f"{table.collective}: no rule applies to {_MOST_PROCS} processes: nothing was checked")
        elif first is None or first > max(*sizes, most):
            at_most = f"{procs} processes and {format_size(most)} or less"
            unchecked.append(f"{table.collective}: no rule applies to {at_most}: nothing was checked")
        else:
            within = [size for size in sizes if size >= first] or [first]
            calls += [(rules, table.collective, procs, size) for size in within]
    pool = ThreadPoolExecutor(_CHECKS_AT_ONCE)
    checks = [pool.submit(check_rules, *call) for call in calls]
    pool.shutdown(wait=False)
    return itertools.chain(
        ((one.result().summary, one.result().matches) for one in checks), ((line, False) for line in unchecked)
    )
