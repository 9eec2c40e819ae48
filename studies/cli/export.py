"""collwise export: decision tables as rules that MPI libraries read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import read_text, write_text
from collwise.common.units import format_size
from collwise.studies.cli import declare, types
from collwise.studies.cli.declare import argument, command, flag, option
from collwise.studies.cli.types import NEW_FILE, PATH
from collwise.validation.exports.formats import FORMATS, for_openmpi, how_to_use
from collwise.validation.exports.mpich import VERSIONS as MPICH_VERSIONS
from collwise.validation.exports.pgmpi import parse_profile
from collwise.validation.exports.variables import ucc_summary
from collwise.validation.openmpi.untuned import summary_over_untuned
from collwise.validation.select.consumers import COLLWISE, OPENMPI, OPENMPI_VERSIONS
from collwise.validation.select.decisions import DecisionTable

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
        for said in for_openmpi(tables.tables, openmpi_version)[0]:
            if line := summary_over_untuned(said, openmpi_version):
                click.echo(line)
    if format_name == "ucc":
        click.echo(ucc_summary(tables.tables, text))
    if check:
        _check(format_name, output, tables.tables)


def _export_profiles(files: Sequence[Path], format_name: str, output: Path) -> None:
    """Writes the table of profiles of PGMPITuneLib. Raises UsageError for other files beside them."""
    from collwise.validation.guidelines.repair import rules_of

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
    from collwise.validation.exports.mpich_check import check_selection, telling_calls

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

    from collwise.validation.openmpi.rules_check import check_rules

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
