"""collwise compare, select, export, report: the comparison layer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError, note
from collwise.common.files import writable_folder
from collwise.common.units import format_size
from collwise.models.registry import BY_PARTS, CRITICAL_PATH, DEFAULT_MODEL, MODEL_NAMES, check_formulas
from collwise.platforms import HostPlatform
from collwise.studies.cli import declare, options
from collwise.studies.cli.declare import (
    COLLECTIVES,
    COUNTS,
    FOLDER,
    NEW_FILE,
    PATH,
    PLATFORM,
    SIZES,
    argument,
    command,
    flag,
    group,
    option,
)
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.reports.comparison_table import summary_line, table_columns, table_row
from collwise.validation.fitting.models_by_name import model_of
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.comparison import Comparison
from collwise.validation.selection.comparison import compare as run_comparison
from collwise.validation.selection.consumers import COLLWISE, CONSUMERS, OPENMPI, OPENMPI_VERSIONS
from collwise.validation.selection.decision_table import DecisionTable, decisions_document
from collwise.validation.selection.defaults import SEGMENTS_TEXT, TOLERANCE_PERCENT, sizes_of

TIMES = declare.NamedChoice("source of times", ("predicted", "simulated"))
_MOST_ROWS = 200
_ONE_OR_MORE = "A choice may have any of them; the least is the common one."


@command("compare --platform gros --collective bcast --procs 16,64")
def compare(
    platform: HostPlatform = options.placed_platform(),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] = option("Process counts: 50,80,90.", COUNTS, required=True),
    sizes: tuple[int, ...] | None = options.SIZES,
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    segments: tuple[int, ...] = options.segments(SEGMENTS_TEXT, _ONE_OR_MORE),
    parameters: Path | None = option("A file from 'collwise fit'. Default: parameters fitted now.", PATH),
    model: str | None = option(
        f"A model's name. Default: that of the file, {DEFAULT_MODEL} without one.",
        declare.NamedChoice("model", MODEL_NAMES),
    ),
    figures: Path | None = option("Write figures into this folder.", FOLDER),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Shows the best algorithm by simulated time for each P and m, and the slowdowns of a model's and Open MPI's picks.

    A choice is an algorithm, and with several --segments also a segment size; in brackets its slowdown against the best
    one in percent. Open MPI is the fixed decision of 3.1. With one segment size, "Open MPI" has its algorithm at that
    size, as in the paper, and the last column the segment sizes that Open MPI ships, which may beat it (negative).
    """
    ppn = ppn or platform.default_processes_per_node
    names = arguments.algorithms(collective, algorithms)
    if model is None and parameters is None:
        model = DEFAULT_MODEL
    if model is not None:
        check_formulas(model, [collective])
    grid = CaseGrid(collective, procs, sizes_of(collective, sizes), ppn, segments, names)
    for count in procs:
        platform.hosts_for(count, ppn)
    with simulation.context() as context:
        fitted = model_of(model, parameters, platform, ppn, segments, context, [collective])
        result = run_comparison(platform, grid, fitted, context)
    if figures is not None:
        _write_figures(figures, platform, collective, result.rows)
    if as_json:
        print_json([_row_record(row) for row in result.rows])
        for line in result.left_out.splitlines():
            note(line)
    elif result.rows:
        widths = ", ".join(map(format_size, segments))
        title = f"{collective} on {platform.title}, segments of {widths}, {result.sweep.configuration.maker}"
        rows = [table_row(row) for row in result.rows]
        print_table(title, table_columns(result.rows), rows, left=0, keys=2)
        click.echo(summary_line(result))
        if figures is not None:
            click.echo(f"figures: {figures}")
    check_failed(result.sweep.failed)


def _write_figures(folder: Path, platform: HostPlatform, collective: str, rows: Sequence[Comparison]) -> None:
    from collwise.studies.figures import picks as draw
    from collwise.studies.figures.style import save

    title = f"{collective} on {platform.title}, simulated"
    stem = f"{platform.name}-{collective}"
    save(draw.picks_by_size(rows, title), folder / f"{stem}-by-size.png")
    if len({row.procs for row in rows}) > 3:
        save(draw.picks_by_procs(rows, title), folder / f"{stem}-by-procs.png")
    largest = max(row.procs for row in rows)
    here = [row for row in rows if row.procs == largest]
    save(draw.algorithms_by_size(here, f"{title}, P = {largest}"), folder / f"{stem}-algorithms.png")


def _row_record(row: Comparison) -> dict[str, object]:
    def pick(source: str) -> dict[str, object]:
        chosen = getattr(row, source)
        return {**vars(chosen.choice), "seconds": chosen.seconds, "slowdown": chosen.slowdown}

    return {
        "collective": row.collective,
        "procs": row.procs,
        "message_bytes": row.message_bytes,
        **{source: pick(source) for source in ("best", "model", "openmpi", "openmpi_shipped")},
        "simulated_seconds": dict(row.simulated),
        "predicted_seconds": dict(row.predicted),
    }


@command("select --collective bcast --parameters mine.parameters.toml --procs 4,8 --for openmpi-4.1 -o bcast.json")
def select(
    collectives: Sequence[str] = options.COLLECTIVES,
    by: str = option("The times that decide.", TIMES, "predicted"),
    parameters: Path | None = option("A file from 'collwise fit', for --by predicted.", PATH),
    platform: HostPlatform | None = options.placed_platform(
        option("The platform, needed for --by simulated. Default: that of the parameters.", PLATFORM)
    ),
    procs: tuple[int, ...] | None = option(
        "Process counts: 2:124:+1, needed for --by simulated. Default: 2 to all.", COUNTS
    ),
    how: dict[str, Any] = group(
        dict,
        sizes=option("Message sizes. Default: by doubling from 8 KiB (gather: 64 KiB).", SIZES),
        sampled=flag("Choose at --sizes only, which makes shorter tables; for --by predicted."),
        consumer=option(
            "Choose only what the rules of this consumer can express. Default: all.",
            declare.NamedChoice("decision consumer", CONSUMERS),
            names="--for",
        ),
        one_choice=option(
            "Make one choice for each process count, or choose by message size. Default: one if the consumer needs it.",
            default=None,
            names="--one-choice/--by-size",
        ),
        tolerance=option(
            "By how many percent a choice may be slower than the best, so that the table is short; 0: the fastest.",
            float,
            TOLERANCE_PERCENT,
            metavar="PERCENT",
        ),
        segments=options.segments(SEGMENTS_TEXT, _ONE_OR_MORE),
        name=options.MODEL,
        by_node=flag(
            "Choose also among the algorithms that treat the processes of one node differently from others; for --by "
            "simulated."
        ),
    ),
    output: Path | None = option("Write the decision tables (JSON) here.", NEW_FILE, names="-o --output"),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Makes decision tables: the algorithm to run for each P, and the message size from which to run it.

    A table has the fewest rows in which no choice is slower than the best one by more than the --tolerance: by
    predicted times, to the byte, at every size between the least and the largest of --sizes; by simulated times, and by
    the model critical_path, at --sizes. With --tolerance 0 looking it up decides as evaluating the formulas would. An
    algorithm that needs a power of two or an even number of processes holds only for the P where it was decided; from
    P + 1 on the best one that always runs follows it.
    """
    if by == "predicted" and parameters is None:
        raise click.UsageError("--by predicted needs --parameters FILE (make one: collwise fit)")
    if by == "simulated" and platform is None:
        raise click.UsageError("--by simulated needs --platform")
    if by == "simulated" and procs is None:
        raise click.UsageError("--by simulated needs --procs, for example --procs 8,16,32")
    if by == "simulated" and how["sampled"]:
        raise click.UsageError("--sampled is for --by predicted; simulated times are always sampled")
    if by == "predicted" and how["by_node"]:
        raise click.UsageError("--by-node is for --by simulated: algorithms by node are chosen by simulated times only")
    with simulation.context() if by == "simulated" else nullcontext() as context:
        decisions = collwise.select(
            collectives, parameters, platform=platform, by=by, procs=procs, ppn=ppn, context=context, **how
        )
    if output is not None:
        decisions.save(output)
    if as_json:
        print_json(decisions_document(decisions.tables))
    else:
        for decided in decisions.tables:
            _print_decisions(decided, how["tolerance"])
        if output is not None:
            click.echo(f"written: {output}")
    check_failed(decisions.failed)


def _print_decisions(decisions: DecisionTable, tolerance: float) -> None:
    rows: list[tuple[object, ...]] = []
    for p, row in decisions.rules.items():
        for start, choice in row:
            segment = format_size(choice.segment_bytes) if choice.segment_bytes else "-"
            rows.append((p, format_size(start), choice.algorithm, segment))
        if not row:
            rows.append((p, "-", "nothing decided", "-"))
    title = f"{decisions.collective} on {decisions.platform} by {decisions.made_by}"
    columns = ["from P", "from m", "algorithm", "segment"]
    print_table(title, columns, rows[:_MOST_ROWS], left=0, keys=2)
    left_out = f", of which these are the first {_MOST_ROWS}; --json prints all, -o FILE keeps them"
    click.echo(f"{len(rows)} rows, tolerance {tolerance:g} %{left_out if len(rows) > _MOST_ROWS else ''}")


@command("export bcast.json --openmpi-version 4.1 -o mine.rules")
def export(
    decisions: Sequence[Path] = argument(PATH, nargs=-1, required=True),
    format_name: str = option(
        f"{OPENMPI}: classic dynamic rules; {COLLWISE}: the table of collwise run.",
        declare.NamedChoice("format", (OPENMPI, COLLWISE)),
        OPENMPI,
        names="--format",
    ),
    openmpi_version: str = option(f"For openmpi: {', '.join(OPENMPI_VERSIONS)}.", default="4.1"),
    output: Path = option("The rules file.", NEW_FILE, required=True, names="-o --output"),
    check: bool = flag("Run the installed Open MPI with the rules and see what it does."),
) -> None:
    """Writes rules that an MPI library reads from DECISIONS files (from 'collwise select'; one table a collective)."""
    if check and format_name == COLLWISE:
        raise click.UsageError("--check is for --format openmpi")
    tables = collwise.Decisions.load(*decisions)
    text = collwise.export(tables, output, format_name, openmpi_version=openmpi_version)
    if format_name == COLLWISE:
        click.echo(f"{output}: rules for {arguments.several([one.collective for one in tables.tables])}; use them with")
        click.echo(f"  collwise run --table {output} ...")
        return
    click.echo(f"{output}: rules for Open MPI {openmpi_version}; use them with")
    click.echo(
        "  mpirun --mca coll_tuned_use_dynamic_rules 1 "
        f"--mca coll_tuned_dynamic_rules_filename {output.resolve()} --mca coll ^han ..."
    )
    if "WARNING" in text:
        note("the file's head has a WARNING: read it")
    if check:
        from collwise.studies.cli.rules_check import check_all

        wrong = 0
        for line, ok in check_all(output, tables.tables):
            click.echo(line)
            wrong += not ok
        if wrong:
            raise CollwiseError(f"{wrong} of the checks did not run as the rules say")


@command("report --platform gros --procs 16,32,64")
def report(
    platform: HostPlatform = options.placed_platform(),
    procs: tuple[int, ...] = option("Process counts to compare: 50,80,90.", COUNTS, required=True),
    collectives: Sequence[str] = option("Names by commas, or all.", COLLECTIVES, "bcast,gather", names="--collective"),
    segments: tuple[int, ...] = options.segments(SEGMENTS_TEXT, _ONE_OR_MORE),
    model: str = option(
        f"The model that decides the rules: {BY_PARTS}, or {CRITICAL_PATH}, at the usual sizes only.",
        declare.NamedChoice("model", (BY_PARTS, CRITICAL_PATH)),
        BY_PARTS,
    ),
    by: str = option("The times that decide the rules.", TIMES, "predicted"),
    output: Path | None = option("Folder. Default: results/PLATFORM-report", PATH, names="-o --output"),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
) -> None:
    """The main job for one platform: an HTML report with tables and figures, and Open MPI rules beside it.

    By predicted times the rules hold for every P, to the byte; by simulated times they are made from those that the
    report compares, and hold from each of --procs up to the next one.
    """
    from collwise.studies.reports.report import sections_of, write_report, write_rules
    from collwise.validation.selection.tuning import decided, tune

    check_formulas(model, collectives)
    output = writable_folder(output or Path("results") / f"{platform.name}-report")
    with simulation.context() as context:
        tuning = tune(platform, collectives, procs, context, processes_per_node=ppn, segments=segments, model=model)
    tuning = decided(tuning, by)
    write_rules([tuning], output)
    page = write_report([tuning], output, [sections_of(tuning)])
    click.echo(f"report: {page}")
    if tuning.failures:
        raise CollwiseError(f"{tuning.failures} cases failed; their rows are left out")
