"""collwise compare, select, export, report: the comparison layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import read_text, writable_folder, write_text
from collwise.common.program import program_name
from collwise.common.project import results_folder
from collwise.common.units import counted, format_size
from collwise.models.registry import BY_PARTS, CRITICAL_PATH, DEFAULT_MODEL, MODEL_NAMES, ModelKind, check_formulas
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import argument, command, flag, group, option
from collwise.studies.cli.output import check_failed, own_command, print_json, print_table
from collwise.studies.cli.sources import PREDICTED, SIMULATED, Asked, compare_sources, parse_sources
from collwise.studies.cli.types import COLLECTIVES, COUNTS, FOLDER, NAMES, NEW_FILE, PATH, SIZES
from collwise.validation.exports.formats import FORMATS
from collwise.validation.exports.mpich import VERSIONS as MPICH_VERSIONS
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.consumers import ALL_CONSUMERS, OPENMPI, OPENMPI_VERSIONS, openmpi_version
from collwise.validation.selection.defaults import AGREEMENT, SEGMENTS_TEXT, TIE_LIMIT, TOLERANCE_PERCENT, sizes_of

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.validation.selection.comparison import Comparison, ComparisonResult, Pick
    from collwise.validation.selection.decision_table import DecisionTable

TIMES = types.NamedChoice("source of times", ("predicted", "simulated"))
ALL_TIMES = types.NamedChoice("source of times", ("predicted", "simulated", "measured"))
_MOST_ROWS = 200
_ONE_OR_MORE = "A choice may have any of them; the least is the common one."


@command("compare --platform gros --collective bcast --procs 16,64")
def compare(
    platform: HostPlatform | types.Unknown = options.placed_platform(
        option(
            "A known platform (see 'collwise platforms list') or a .toml or .xml file; with measured --sources a name "
            "that the store has.",
            types.PLATFORM_OR_NAME,
            required=True,
            in_project=True,
        )
    ),
    collective: str = options.COLLECTIVE,
    procs: tuple[int, ...] | None = option(
        "Process counts: 50,80,90. Needed, unless measured --sources have some.", COUNTS
    ),
    sizes: tuple[int, ...] | None = options.SIZES,
    algorithms: Sequence[str] | None = options.ALGORITHMS,
    segments: tuple[int, ...] = options.segments(SEGMENTS_TEXT, _ONE_OR_MORE),
    parameters: Path | None = option("A file from 'collwise fit'. Default: parameters fitted now.", PATH),
    model: str | None = option(
        f"A model's name. Default: that of the file; without one {DEFAULT_MODEL}, or no model with --engine schedule.",
        types.NamedChoice("model", MODEL_NAMES),
    ),
    figures: Path | None = option("Write figures into this folder.", FOLDER),
    baseline: Baseline = options.BASELINE,
    sources: tuple[str, str] | None = option(
        "Instead compare the choices by two sources of times: measured, simulated, predicted, or an engine's name.",
        types.Parsed("sources", parse_sources),
        metavar="A,B",
    ),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Shows the best choice by simulated time for each P and m, and the slowdowns of a model's and a library's picks.

    All sixteen collectives can be compared, among those of their algorithms that the model covers; the default model
    covers all. Times are simulated by SMPI or, with --engine schedule, by the schedule engine. A choice is an algorithm
    and, where that cuts messages, one of --segments; in brackets its slowdown against the best one in percent. The
    library decides untuned, with what it ships, which may not be among the choices and beat them (negative). See
    'collwise defaults' for its decisions.

    With --sources measured,simulated the choices by these times stand side by side, each with its slowdown by measured
    times (without any, by the second source's).
    """
    from collwise.simulator.limits import check_message_sizes
    from collwise.studies.reports.comparison_table import summary_line, table_columns, table_row
    from collwise.validation.fitting.models_by_name import model_of
    from collwise.validation.selection.comparison import compare as run_comparison

    if sources is not None:
        declare.refuse_options(("figures", "baseline"), "comparisons of a model and Open MPI with simulated times")
        if PREDICTED not in sources:
            declare.refuse_options(("model", "parameters"), f"--sources with {PREDICTED}")
        if SIMULATED not in sources and PREDICTED not in sources:
            declare.refuse_options(("engine",), f"--sources with {SIMULATED} or {PREDICTED}")
        cut = segments if declare.was_given("segments") else ()
        asked = Asked(
            *(collective, procs, sizes, arguments.algorithms(collective, algorithms), cut, ppn),
            *(model or DEFAULT_MODEL, parameters),
        )
        with simulation.context() as context:
            compare_sources(sources, platform, asked, sizes_of(collective), context, as_json)
        return
    if isinstance(platform, types.Unknown):
        raise platform.problem
    if procs is None:
        raise click.UsageError("Missing option '--procs'.")
    ppn = ppn or platform.default_processes_per_node
    names = arguments.algorithms(collective, algorithms)
    if model is None and parameters is None and simulation.engine != SCHEDULE.name:
        model = DEFAULT_MODEL
    if model is not None:
        check_formulas(model, [collective])
    grid = CaseGrid(collective, procs, sizes_of(collective, sizes), ppn, segments, names)
    check_message_sizes(grid.cases())
    for count in procs:
        platform.hosts_for(count, ppn)
    with simulation.context() as context:
        compares_model = model is not None or parameters is not None
        wanted = (model, parameters, platform, ppn, segments, context, [collective])
        fitted = model_of(*wanted) if compares_model else None
        result = run_comparison(platform, grid, fitted, context, baseline)
    made_by = getattr(getattr(fitted, "parameters", None), "made_by", "")
    if figures is not None:
        _write_figures(figures, platform, result, made_by)
    if as_json:
        print_json([_row_record(row, baseline) for row in result.rows])
        for line in result.left_out.splitlines():
            note(line)
    elif result.rows:
        widths = ", ".join(map(format_size, segments))
        title = f"{collective} on {platform.title}, segments of {widths}, {result.sweep.configuration.maker}"
        rows = [table_row(row) for row in result.rows]
        print_table(title, table_columns(result), rows, left=0, keys=2)
        click.echo(summary_line(result, made_by))
        if figures is not None:
            click.echo(f"figures: {figures}")
    check_failed(result.sweep.failed)


def _write_figures(folder: Path, platform: HostPlatform, result: ComparisonResult, made_by: str) -> None:
    from collwise.studies.figures import picks as draw
    from collwise.studies.figures.style import save

    collective, rows = result.grid.collective, result.rows
    maker = result.sweep.configuration.maker
    title = f"{collective} on {platform.title}, simulated by {maker}"
    cut = f", segments of {format_size(result.grid.segments[0])}" if result.grid.segments[0] else ""
    stem = f"{platform.name}-{collective}"
    if len({row.procs for row in rows}) > 3 or collective == "barrier":
        save(draw.picks_by_procs(result, title), folder / f"{stem}-by-procs.png")
    if collective == "barrier":
        return
    save(draw.picks_by_size(result, title), folder / f"{stem}-by-size.png")
    largest = max(row.procs for row in rows)
    here = [row for row in rows if row.procs == largest]
    name = f"{collective} on {platform.title}, P = {largest}{cut}"
    save(draw.algorithms_by_size(here, name, maker, made_by), folder / f"{stem}-algorithms.png")


def _row_record(row: Comparison, baseline: Baseline) -> dict[str, object]:
    def pick(chosen: Pick) -> dict[str, object]:
        seconds, slowdown = (None, None) if chosen.missing else (chosen.seconds, chosen.slowdown)
        return {**vars(chosen.choice), "seconds": seconds, "slowdown": slowdown}

    return {
        "collective": row.collective,
        "procs": row.procs,
        "message_bytes": row.message_bytes,
        "best": pick(row.best),
        "model": pick(row.model) if row.predicted else None,
        "baseline": {"name": baseline.name, "in_catalogue": not row.baseline.missing, **pick(row.baseline)},
        **({} if row.listed is None else {"listed": pick(row.listed)}),
        "simulated_seconds": dict(row.simulated),
        "predicted_seconds": dict(row.predicted),
    }


@command("select --collective bcast --parameters mine.parameters.toml --procs 4,8 --for openmpi-4.1 -o bcast.json")
def select(
    collectives: Sequence[str] = options.COLLECTIVES,
    by: str = option("The times that decide.", ALL_TIMES, "predicted"),
    parameters: Path | None = option("A file from 'collwise fit', for --by predicted.", PATH),
    platform: HostPlatform | types.Unknown | None = options.placed_platform(
        option(
            "The platform, needed for --by simulated; for --by measured its name in the store is enough (see 'results "
            "list'). Default: that of the parameters, or the only one measured.",
            types.PLATFORM_OR_NAME,
        )
    ),
    procs: tuple[int, ...] | None = option(
        "Process counts: 2:124:+1, needed for --by simulated. Default: 2 to all, or those measured.", COUNTS
    ),
    how: dict[str, Any] = group(
        dict,
        sizes=option(
            "Message sizes: 8:1MiB:x4. Default: by doubling from 8 KiB (gather: 64 KiB), or those measured; for --by "
            "simulated also shorter ones (allreduce: from 2 KiB) where the platform has overheads.",
            SIZES,
        ),
        exact=flag(
            "For --by predicted: choose at every size from the least to the largest of --sizes; tables become long. "
            "Default: at --sizes only."
        ),
        consumer=option(
            "Choose only what the rules of this consumer can express. Default: all.",
            types.NamedChoice("decision consumer", ALL_CONSUMERS),
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
        segments=options.segments(None, _ONE_OR_MORE, f"{SEGMENTS_TEXT}, or those measured"),
        name=options.MODEL,
        by_node=flag(
            "Choose also among the algorithms that treat the processes of one node differently from others; for --by "
            "simulated and measured."
        ),
        guidelines=flag(
            "Choose also among the mock-ups of performance guidelines, which libcollwise runs; for --by simulated and "
            "measured."
        ),
        configuration=option(
            "For --by measured, which measurement, if there are several (see 'results list').", NAMES, metavar="KEY"
        ),
        fill=option(
            "For --by measured: fill gaps where these times agree with what is measured nearby.",
            types.NamedChoice("source that fills gaps", ("simulated", "predicted")),
        ),
        agreement=option(
            "How far such times may be from those measured nearby.", float, AGREEMENT * 100, metavar="PERCENT"
        ),
        tie_limit=option(
            "For --by measured: by how many percent a choice may be slower than the best one whose confidence interval "
            "it overlaps.",
            float,
            TIE_LIMIT * 100,
            metavar="PERCENT",
        ),
    ),
    output: Path | None = option("Write the decision tables (JSON) here.", NEW_FILE, names="-o --output"),
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
    from collwise.validation.selection.decision_table import decisions_document

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
    if by == "measured" and not simulation.store.exists():
        raise UsageError(f"there is no store {simulation.store}; fill one with 'collwise measure' or 'collwise import'")
    # Predicted times need the progress only.
    with (options.SimulationOptions(Path(":memory:")) if by == "predicted" else simulation).context() as context:
        decisions = collwise.select(
            collectives, parameters, platform=platform, by=by, procs=procs, ppn=ppn, context=context, **how
        )
    if output is not None:
        decisions.save(output)
    if as_json:
        print_json(_decision_rows(decisions.tables), {"tables": decisions_document(decisions.tables)})
    else:
        for decided in decisions.tables:
            _print_decisions(decided, how["tolerance"], openmpi_version(how["consumer"] or ""))
        if output is not None:
            click.echo(f"written: {output}")
    check_failed(decisions.failed)


def _decision_rows(tables: Sequence[DecisionTable]) -> list[dict[str, object]]:
    """Every choice of the tables, with the process count and the size from which on it holds."""
    return [
        {"collective": table.collective, "procs": p, "from_bytes": start, **vars(choice)}
        for table in tables
        for p, row in table.rules.items()
        for start, choice in row
    ]


def _print_decisions(decisions: DecisionTable, tolerance: float, version: str | None) -> None:
    """Prints a table, and by its times the loss of its choices or, for a version of Open MPI, of its rules."""
    from collwise.validation.exports.formats import for_openmpi
    from collwise.validation.openmpi.untuned import summary_over_untuned
    from collwise.validation.selection.decision_table import spans
    from collwise.validation.selection.measured import loss_of, undecided_points

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
    said = for_openmpi([decisions], version)[0][0] if version is not None and decided else decisions
    loss = loss_of(said)
    if loss.points:
        mean, worst = f"{loss.mean * 100:.2f} %", f"{loss.worst * 100:.1f} %"
        what = "choices" if version is None else f"rules for Open MPI {version}"
        click.echo(f"by these times the {what} are {mean} slower than the best on average, at most {worst}")
    if version is not None and (line := summary_over_untuned(said, version)):
        click.echo(line)
    undecided, points = undecided_points(decisions)
    if points:
        click.echo(_undecided_text(undecided, points))
        if decisions.made_by.startswith("times measured"):
            click.echo(_own_text(decisions))
    if decisions.between is not None:
        click.echo(f"between the sizes, {decisions.between}")
    if any(str(row[2]).endswith(" *") for row in rows) and decisions.evidence is not None:
        click.echo(f"* at some of its sizes by {decisions.evidence.filled_by}, where the choice was not measured")


def _own_text(decisions: DecisionTable) -> str:
    """How measured choices stand against MPI's own collective."""
    known = decisions.evidence
    if known is None or not known.own:
        return (
            "MPI's own collective is not among these times: measure it with --algorithms library, or the table with "
            f"'{program_name()} gain'"
        )
    chosen = {(p, m): decisions.choice_at(p, m) for p in known.procs for m in known.message_bytes}
    both = {point: one for point, one in chosen.items() if one and not math.isnan(known.own_at(*point)[0])}
    faster = sum(known.beats_own(one, *point) for point, one in both.items())
    left = "" if faster == len(both) else "; a table for libcollwise leaves the others to MPI"
    return f"faster than MPI's own collective beyond the intervals at {faster} of {counted(len(both), 'point')}{left}"


def _undecided_text(undecided: int, points: int) -> str:
    """How far confidence intervals tell which measured choice is the best."""
    if not undecided:
        return f"at {'the only point' if points == 1 else f'all {points} points'} the intervals tell the best choice"
    return (
        f"undecided at {undecided} of {counted(points, 'point')}: the interval of the fastest choice overlaps another "
        "one's; more --launches of measure make intervals narrower"
    )


@command("export bcast.json --openmpi-version 4.1 -o mine.rules")
def export(
    decisions: Sequence[Path] = argument(PATH, nargs=-1, required=True),
    format_name: str = option(
        "; ".join(f"{name}: {known.title}" for name, known in FORMATS.items()) + ".",
        types.NamedChoice("format", FORMATS),
        OPENMPI,
        names="--format",
        metavar="NAME",
    ),
    openmpi_version: str = option(f"For openmpi: {', '.join(OPENMPI_VERSIONS)}.", default="4.1"),
    mpich_version: str = option(
        "For mpich: 4.0, or 4.1 for later ones.", types.NamedChoice("version", MPICH_VERSIONS), MPICH_VERSIONS[0]
    ),
    procs: int | None = option(
        "For formats that hold for one process count (mpich-variables, mvapich2, smpi, prf): which.", click.IntRange(1)
    ),
    output: Path = option("The rules file.", NEW_FILE, required=True, names="-o --output"),
    check: bool = flag("Run the installed library with the rules and see what it does; for openmpi and mpich."),
) -> None:
    """Writes rules that an MPI library reads from DECISIONS files (from 'collwise select'; one table a collective).

    Where a format cannot express a choice, the best one that it can express is written, and a note says what it costs.
    Profiles of PGMPITuneLib (.prf) become a table for libcollwise, with --format collwise.
    """
    if any(file.suffix == ".prf" for file in decisions):
        _export_profiles(decisions, format_name, output)
        return
    from collwise.validation.exports.formats import for_openmpi, how_to_use
    from collwise.validation.openmpi.untuned import summary_over_untuned

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
    for table in tables.tables:
        click.echo(table.between_procs)
        if table.between is not None:
            click.echo(f"{table.collective}, slower than the best between the sizes: {table.between}")
    if format_name == OPENMPI:
        for said in for_openmpi(tables.tables, openmpi_version)[0]:
            if line := summary_over_untuned(said, openmpi_version):
                click.echo(line)
    if "WARNING" in text:
        note("the file's head has a WARNING: read it")
    if check:
        _check(format_name, output, tables.tables)


def _export_profiles(files: Sequence[Path], format_name: str, output: Path) -> None:
    """Writes the table of profiles of PGMPITuneLib. Raises UsageError for other files beside them."""
    from collwise.validation.exports.formats import how_to_use
    from collwise.validation.exports.pgmpi import parse_profile
    from collwise.validation.guidelines.repair import rules_of
    from collwise.validation.selection.consumers import COLLWISE

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
    from collwise.studies.cli.rules_check import check_all, check_mpich

    wrong = 0
    for line, ok in check_all(output, tables) if format_name == OPENMPI else check_mpich(output, tables):
        click.echo(line)
        wrong += not ok
    if wrong:
        raise CollwiseError(f"{wrong} of the checks show no call that runs as the rules say")


def _report_model(asked: str | None, by: str, engine: str, collectives: Sequence[str]) -> str | None:
    """The model of a report: the one asked for, the one with formulas, or none where none is needed."""
    if asked is None and by == "simulated" and engine == SCHEDULE.name:
        return None
    formulas = all(map(ModelKind.parse(BY_PARTS).covers, collectives))
    model = asked or (BY_PARTS if formulas else CRITICAL_PATH)
    check_formulas(model, collectives)
    return model


def _example_counts(most: int) -> list[int]:
    """A few process counts on a platform that holds so many."""
    return sorted({max(2, most // 16), max(2, most // 4), most})


@command("report --platform gros --procs 16,32,64")
def report(
    platform: HostPlatform = options.placed_platform(),
    procs: tuple[int, ...] | None = option(
        "Process counts to compare: 64,512,2048. Needed; best those of your jobs.", COUNTS, in_project=True
    ),
    collectives: Sequence[str] = option("Names by commas, or all.", COLLECTIVES, "bcast,gather", names="--collective"),
    how: dict[str, Any] = group(
        dict,
        sizes=option(
            "Message sizes to compare and decide: 8:1MiB:x4. Default: by doubling from 8 KiB (gather: 64 KiB), and "
            "shorter ones (allreduce: from 2 KiB) where the platform has overheads.",
            SIZES,
        ),
        segments=options.segments(SEGMENTS_TEXT, _ONE_OR_MORE),
        model=option(
            f"The model to compare: {BY_PARTS}, or {CRITICAL_PATH}, which decides at the compared points only. "
            f"Default: {BY_PARTS} if it has formulas for all --collective; none for --by simulated with --engine "
            "schedule, so that nothing needs to be fitted.",
            types.NamedChoice("model", (BY_PARTS, CRITICAL_PATH)),
        ),
        by=option("The times that decide the rules. Default: simulated with --engine schedule, else predicted.", TIMES),
    ),
    baseline: Baseline = options.BASELINE,
    output: Path | None = option("Folder. Default: results/PLATFORM-report", PATH, names="-o --output"),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
) -> None:
    """The main job for one platform: an HTML report with tables and figures, and Open MPI rules beside it.

    All sixteen collectives can be in it. Those that Open MPI has no rules for (gatherv, scatterv) are not in the rules.
    By the predicted times of formulas the rules hold for every P, change at the byte from which on the later choice is
    faster, and the report says what they lose between the sizes; by others they are made at the points that the report
    compares, and hold from each of --procs up to the next one.
    """
    from collwise.platforms.smpi import charges_overheads
    from collwise.studies.reports.report import measurements, sections_of, write_report, write_rules
    from collwise.validation.selection.tuning import decided, tune

    if procs is None:
        per_node = ppn or platform.default_processes_per_node
        raise click.UsageError(
            "Missing option '--procs': give the process counts of your jobs, for example --procs "
            f"{','.join(map(str, _example_counts(platform.max_procs(per_node))))} ({platform.name} holds up to "
            f"{platform.max_procs(per_node)} with {per_node} per node)"
        )
    by = how["by"] or ("simulated" if simulation.engine == "schedule" else "predicted")
    model = _report_model(how["model"], by, simulation.engine, collectives)
    free = not charges_overheads(platform.smpi_options())
    sizes = {name: sizes_of(name, how["sizes"], decided=free) for name in collectives}
    output = writable_folder(output or results_folder() / f"{platform.name}-report")
    with simulation.context() as context:
        tuning = tune(
            platform, collectives, procs, context, baseline,
            processes_per_node=ppn, segments=how["segments"], sizes=sizes, model=model,
        )  # fmt: skip
        measured = measurements(context.store, tuning)
        tuning = decided(tuning, by, sizes, context.progress)
    write_rules([tuning], output)
    page = write_report([tuning], output, [sections_of(tuning, output, measured)], own_command())
    click.echo(f"report: {page}")
    if tuning.failures:
        raise CollwiseError(f"{counted(tuning.failures, 'case')} failed; their rows are left out")
